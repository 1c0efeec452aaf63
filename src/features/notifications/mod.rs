//! Notifications (site mail, system notices): one row for each notification, one for each of its
//! receivers, and a number of unread ones for each user and type.
//!
//! A receiver's row is made once and goes only with the notification: it keeps whether the receiver
//! has read the notification, also when the receiver has deleted it from its own list or the sender
//! has withdrawn it. So `read_count` is a count of rows, and recipients never change. Every change
//! is made under the lock of the receiver's own row in `users`, which also gives the seq: dense, in
//! the order of commits.
//!
//! `command.rs` has the rules, `http.rs` the routes, `rows.rs` the rows of batches, `store.rs`
//! their statements, `lists.rs` what is read beside them, `expiry.rs` how long they are kept.

mod command;
mod config;
mod distributed;
pub mod expiry;
pub mod http;
pub mod lists;
pub mod rows;
mod store;

use std::sync::Arc;

use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::ids::{Name, NotificationId, UserId};

pub use command::{NotificationCommand, Which};
pub use config::NotificationConfig;

/// How many types a user may have had notifications of.
pub const MAX_TYPES: i64 = 100;

/// How many recipients a notification may have.
pub const MAX_RECIPIENTS: usize = 10_000;

/// How many characters a title may have.
pub const MAX_TITLE_CHARS: usize = 200;

/// How many characters a content may have.
pub const MAX_CONTENT_CHARS: usize = 10_000;

/// How many notifications one request may name.
pub const MAX_NAMED: usize = 1000;

/// How many notifications the first transaction of a request reads that names none: more than most
/// users have unread.
pub const FIRST_ROWS: i64 = 200;

/// How many each further transaction of that request reads.
pub const MORE_ROWS: i64 = 2000;

/// How many ids a new notification may choose from: the first that is free. That one was given out
/// before happens once in a great while; several never.
const CANDIDATES: usize = 3;

/// Bits of an id that are random; above them is the time.
const RANDOM_BITS: u32 = 20;

/// A notification, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub kind: Name,
    /// Title and content, as one JSON object.
    pub stored: String,
    /// When it was sent.
    pub created_at: UnixMs,
    /// To how many.
    pub recipients: i64,
}

/// Title and content.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Text {
    pub title: String,
    pub content: String,
}

impl Notification {
    /// Title and content.
    #[must_use]
    pub fn text(&self) -> Text {
        serde_json::from_str(&self.stored).unwrap_or_default()
    }
}

/// What a user has of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    pub notification: NotificationId,
    pub kind: Arc<str>,
    /// When the user has read it; 0: not yet.
    pub read_at: UnixMs,
    /// Whether it is in the user's list no longer.
    pub gone: bool,
}

impl Receiver {
    /// Whether it counts.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.read_at == UnixMs(0) && !self.gone
    }
}

/// The notifications to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Those that were not read.
    Unread,
    /// Those that were read.
    Read,
    /// Mark all notifications.
    #[default]
    All,
}

/// A notification in a user's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: NotificationId,
    /// Its number in the user's list.
    pub seq: i64,
    /// The notification.
    pub notification: Notification,
    /// When the user has read it; 0: not yet.
    pub read_at: UnixMs,
}

/// Unread notifications of a user: the oldest, up to a bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    pub user: UserId,
    /// Of which type; None: of all.
    pub kind: Option<Name>,
    /// Up to which seq.
    pub up_to: i64,
    /// The number of ids.
    pub rows: i64,
}

/// A notification, for its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotificationOut {
    /// The id.
    pub notification_id: NotificationId,
    /// The type.
    pub r#type: Name,
    /// The title.
    #[schema(example = "Planned maintenance")]
    pub title: String,
    /// The content.
    #[schema(example = "Tonight from two to three.")]
    pub content: String,
    /// When it was sent.
    pub created_at: UnixMs,
    /// The number of recipients when it was sent.
    #[schema(minimum = 1, example = 1200)]
    pub recipient_count: i64,
    /// The number of recipients who have read it, including those who deleted it since.
    #[schema(minimum = 0, example = 17)]
    pub read_count: i64,
}

impl NotificationOut {
    fn new(id: NotificationId, notification: &Notification, read: i64) -> Self {
        let Text { title, content } = notification.text();
        Self {
            notification_id: id,
            r#type: notification.kind.clone(),
            title,
            content,
            created_at: notification.created_at,
            recipient_count: notification.recipients,
            read_count: read,
        }
    }
}

/// The result of deleting a notification from a user's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedNotificationOut {
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A notification of a user after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadNotificationOut {
    /// The notification.
    pub notification_id: NotificationId,
    /// When the user first read it; omitted if it is unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub read_at: Option<UnixMs>,
    /// The number of unread notifications of its type.
    #[schema(minimum = 0, example = 1)]
    pub unread: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The lowest id that a notification of this time may have.
fn first_id(at: UnixMs) -> i64 {
    (at.0.max(0) << RANDOM_BITS) & i64::MAX
}

/// Ids that a notification sent now may have: the time and some chance, so that no sender waits for
/// another to get a number.
#[must_use]
pub fn candidates(now: UnixMs) -> Vec<NotificationId> {
    let time = first_id(UnixMs(now.0.max(1)));
    let chance = || i64::from(rand::rng().random_range(0..1_u32 << RANDOM_BITS));
    (0..CANDIDATES).filter_map(|_| NotificationId::try_from(time | chance()).ok()).collect()
}

pub mod summary;
#[cfg(test)]
mod tests;
