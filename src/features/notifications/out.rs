//! What the routes of notifications answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::content::{Content, Notification};
use super::entry::Count;
use super::lists::Listed;
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, Name, NotificationId, UserId};
use crate::features::summary_part::Cap;

/// A notification, for its sender.
#[derive(Debug, Serialize, ToSchema)]
pub struct NotificationOut {
    /// The id.
    pub notification_id: NotificationId,
    /// The type.
    pub r#type: Name,
    /// The title; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Planned maintenance")]
    pub title: Option<String>,
    /// The content; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Tonight from two to three.")]
    pub content: Option<String>,
    /// Additional data for clients; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    pub data: Option<Box<RawValue>>,
    /// What it is grouped by; omitted if it is an entry of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "post:117:like")]
    pub group_key: Option<ClientId>,
    /// The user whose act it tells of; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub actor_id: Option<UserId>,
    /// The number of recipients when it was sent, minus the users erased since.
    #[schema(minimum = 0, example = 1200)]
    pub recipient_count: i64,
    /// The number of recipients who have read the entry that holds it, including those who deleted
    /// the entry since.
    #[schema(minimum = 0, example = 17)]
    pub read_count: i64,
    /// When it was sent.
    pub created_at: UnixMs,
    /// When it was sent or last edited.
    pub modified_at: UnixMs,
}

impl NotificationOut {
    pub(super) fn new(id: NotificationId, notification: &Notification, read: i64) -> Self {
        let content = notification.content();
        let modified_at = content.modified_at(notification.created_at);
        let Content { title, content, data, group_key, actor_id, .. } = content;
        Self {
            notification_id: id,
            r#type: notification.kind.clone(),
            title,
            content,
            data,
            group_key,
            actor_id,
            recipient_count: notification.recipients,
            read_count: read,
            created_at: notification.created_at,
            modified_at,
        }
    }
}

/// An entry of a user's list. It shows what its newest notification says.
#[derive(Debug, Serialize, ToSchema)]
pub struct NotificationEntryOut {
    /// The id of the entry. It never changes.
    pub id: NotificationId,
    /// The place of the entry in the user's list. An entry that a notification joins moves to a
    /// higher one.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// The type.
    pub r#type: Name,
    /// The title; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Planned maintenance")]
    pub title: Option<String>,
    /// The content; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Tonight from two to three.")]
    pub content: Option<String>,
    /// Additional data for clients; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    pub data: Option<Box<RawValue>>,
    /// What its notifications are grouped by; omitted if it holds one alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "post:117:like")]
    pub group_key: Option<ClientId>,
    /// The number of distinct actors of its notifications. Notifications without an actor count
    /// one each.
    #[schema(minimum = 1, example = 13)]
    pub count: i64,
    /// Up to three of the actors, the newest act first.
    #[schema(max_items = 3)]
    pub actors: Vec<UserId>,
    /// The newest notification of the entry.
    pub notification_id: NotificationId,
    /// When the first notification of the entry was sent.
    pub created_at: UnixMs,
    /// When the last notification joined the entry.
    pub updated_at: UnixMs,
    /// Whether the user has seen the entry in the list. Read entries are seen.
    pub seen: bool,
    /// When the user first read it; omitted if it is unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub read_at: Option<UnixMs>,
}

impl NotificationEntryOut {
    pub(super) fn new(entry: &Listed, seen_up_to: i64) -> Self {
        let Content { title, content, data, group_key, .. } = entry.content();
        Self {
            id: entry.id,
            seq: entry.seq,
            r#type: entry.kind.clone(),
            title,
            content,
            data,
            group_key,
            count: entry.count,
            actors: entry.actors(),
            notification_id: entry.newest,
            created_at: entry.created_at,
            updated_at: entry.updated_at,
            seen: entry.read_at.is_some() || entry.seq <= seen_up_to,
            read_at: entry.read_at,
        }
    }
}

/// The unread entries of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotificationCountOut {
    /// The number of unread entries.
    #[schema(minimum = 0, example = 7)]
    pub unread: i64,
    /// The number of unread entries that arrived, or that a notification joined, since the user
    /// last saw the list.
    #[schema(minimum = 0, example = 2)]
    pub unseen: i64,
    /// With `cap`: whether `unread` is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

impl NotificationCountOut {
    /// As a summary with this cap shows it.
    #[must_use]
    pub fn new(count: Count, cap: Cap) -> Self {
        let (unread, capped) = cap.show(count.unread);
        Self { unread, unseen: cap.show(count.unseen()).0, capped }
    }
}

/// The numbers of each type.
pub(super) type CountsOut = BTreeMap<String, NotificationCountOut>;

/// The result of deleting an entry from a user's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedNotificationOut {
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The result of having seen the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SeenNotificationsOut {
    /// The number of unread entries of all types that the user has not seen.
    #[schema(minimum = 0, example = 0)]
    pub unseen: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// An entry of a user's list after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadNotificationOut {
    /// The entry.
    pub id: NotificationId,
    /// When the user first read it; omitted if it is unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub read_at: Option<UnixMs>,
    /// The number of unread entries of its type.
    #[schema(minimum = 0, example = 1)]
    pub unread: i64,
    /// The number of these that the user has not seen in the list.
    #[schema(minimum = 0, example = 0)]
    pub unseen: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The result of marking entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadNotificationsOut {
    /// The number of entries that were unread before.
    #[schema(minimum = 0, example = 12)]
    pub changed: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
    /// The numbers of each type, as in the unread summary.
    #[schema(value_type = BTreeMap<Name, NotificationCountOut>)]
    pub notifications: CountsOut,
}
