//! What a notification says, as its row has it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::clock::UnixMs;
use crate::base::error::{Fault, Result};
use crate::base::ids::{ClientId, Name, UserId};

/// A notification, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub kind: Name,
    /// A [`Content`], as JSON.
    pub stored: String,
    /// When it was sent.
    pub created_at: UnixMs,
    /// To how many.
    pub recipients: i64,
}

/// What a notification says. Versions before grouping wrote title and content alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Content {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_key: Option<ClientId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<UserId>,
    /// When it was last edited, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<i64>,
}

impl Content {
    /// As rows have it.
    ///
    /// # Errors
    /// A fault, should it have no JSON form, which is a bug.
    pub fn stored(&self) -> Result<String, Fault> {
        serde_json::to_string(self).map_err(|error| Fault::Bug(error.to_string()))
    }

    /// When it was sent or last edited.
    #[must_use]
    pub fn modified_at(&self, created_at: UnixMs) -> UnixMs {
        self.edited_at.map_or(created_at, UnixMs)
    }
}

impl Notification {
    /// What it says.
    #[must_use]
    pub fn content(&self) -> Content {
        serde_json::from_str(&self.stored).unwrap_or_default()
    }
}

/// What of a notification is replaced.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    pub title: Option<String>,
    pub content: Option<String>,
    pub data: Option<Box<RawValue>>,
}

impl Edit {
    /// What the notification says afterwards; None where that is the same.
    #[must_use]
    pub fn of(&self, before: &Content, now: UnixMs, created_at: UnixMs) -> Option<Content> {
        let after = Content {
            title: self.title.clone().or_else(|| before.title.clone()),
            content: self.content.clone().or_else(|| before.content.clone()),
            data: self.data.clone().or_else(|| before.data.clone()),
            ..before.clone()
        };
        let text = |content: &Content| content.data.as_ref().map(|data| data.get().to_owned());
        let is_same = (&after.title, &after.content, text(&after)) == (&before.title, &before.content, text(before));
        // A clock that goes back must not make an edit older than what it replaces.
        let at = now.max(before.modified_at(created_at));
        (!is_same).then_some(Content { edited_at: Some(at.0), ..after })
    }
}
