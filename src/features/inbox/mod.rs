//! Direct messages, the inbox from which a user's devices fetch what came for the user, and the
//! devices themselves.
//!
//! An inbox is one stream for each receiver: direct messages, messages of groups that deliver by
//! writing, and what happened to them. Its numbers are made under the lock of the receiver's own
//! row in `users`, so they are dense and in the order of commits, and a reader that has seen *n*
//! never finds a new row at or below *n* later. A row never changes. Old rows go, the lowest first
//! ([`expiry`]), so that what is kept is always one run up to the head.
//!
//! A direct chat has a row in `directs` for each of its two sides: how many messages the peer ever
//! sent, how many of those are read, and where in the inbox the chat was last. What of it is
//! unread, muted chats and those with users whom the user blocks aside, is summed up in the user's
//! own row. Whether it is such a one is looked up in `blocks`, under the lock of that row, which
//! anyone who blocks takes too.
//!
//! `command.rs` has the rules, `http.rs` the routes, `rows.rs` and `devices.rs` the rows of
//! batches, `store.rs` the statements of the former, `lists.rs` what is read beside them, `epoch.rs` which numbering it is. To put something
//! else into inboxes: a variant of [`Of`], its columns in `store.rs`, its fields in `lists.rs`.

mod changes;
mod command;
mod config;
pub mod devices;
mod distributed;
pub mod expiry;
pub mod http;
pub mod import;
pub mod lists;
mod needs;
pub mod rows;
mod store;

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::engine::marks::Intervals;

pub use changes::{append_inbox, set_direct_blocked};
pub use command::InboxCommand;
pub use config::InboxConfig;
pub use needs::{InboxNeeds, Oldest, Sent, SentKey};

/// How many characters a message may have.
pub const MAX_CONTENT_CHARS: usize = 10_000;

/// How many devices a user may have.
pub const MAX_DEVICES: usize = 100;

/// How many direct chats a user may mute in which there is no message. Unmuting one makes room for
/// another.
pub const MAX_EMPTY_CHATS: i64 = 1000;

/// How many runs of expired messages are kept for each direct chat that had not been read; below
/// those any `up_to` clears.
const MAX_GONE_RUNS: usize = 100;

/// What is put into an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Who sent the message.
    pub sender: UserId,
    /// Whether that is the owner of this inbox, from another device.
    pub own: bool,
    /// What it is.
    pub of: Of,
}

/// What an inbox holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Of {
    Direct {
        /// The other side of the chat.
        peer: UserId,
        /// How many messages the peer had sent by then, this one included.
        peer_seq: i64,
        /// The id that its sender gave it.
        client: ClientId,
        content: Arc<str>,
        /// When it was sent: earlier than it was put here where it was imported.
        sent_at: UnixMs,
    },
    /// A message of a group. What it says stays with the group, and is looked up when the inbox is
    /// read.
    Group {
        group: GroupId,
        /// Which message of it.
        seq: i64,
    },
    /// A message of a group was recalled.
    Recall {
        group: GroupId,
        /// Which message of it.
        seq: i64,
    },
}

/// A direct chat as one of its sides has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Direct {
    /// The number of messages that the peer ever sent.
    pub head: i64,
    /// The number of those messages that the user has read.
    pub mark: i64,
    /// The chat's last row in the user's inbox; 0: there never was one.
    pub last_seq: i64,
    /// When it came.
    pub last_at: UnixMs,
    /// Whether the user had the chat count in no sum. Nor does it while the user blocks the peer
    /// ([`rows::InboxRows::is_silent`]).
    pub muted: bool,
    /// How many of the peer's messages have expired.
    pub gone: i64,
    /// Where in the inbox those of them were that had not been read by then.
    pub gone_seqs: Intervals,
}

impl Direct {
    /// The number of unread messages from the peer.
    #[must_use]
    pub fn unread(&self) -> i64 {
        (self.head - self.mark).max(0)
    }
}

/// A sent direct message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SentOut {
    /// The number of the item in the receiver's inbox.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// The number of the item in the sender's own inbox; omitted if it has expired there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 31)]
    pub own_seq: Option<i64>,
    /// When it was sent.
    pub sent_at: UnixMs,
}

/// A direct chat after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadDirectOut {
    /// The other user.
    pub peer_id: UserId,
    /// The number of unread messages from the peer.
    #[schema(minimum = 0, example = 0)]
    pub unread: i64,
    /// The last item of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
    /// exactly what the user saw.
    #[schema(minimum = 0, example = 57)]
    pub head: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The settings of a direct chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectSettingsOut {
    /// The other user.
    pub peer_id: UserId,
    /// Whether `chats` and `total` exclude the chat. Also true while the user blocks the other
    /// user.
    pub muted: bool,
    /// The number of unread messages from the peer.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The last item of the chat in the user's inbox, or 0.
    #[schema(minimum = 0, example = 57)]
    pub head: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// How far a device has read the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CursorOut {
    /// The device.
    pub device_id: ClientId,
    /// The last inbox item that the device has read.
    #[schema(minimum = 0, example = 57)]
    pub cursor: i64,
    /// The number of items after the cursor.
    #[schema(minimum = 0, example = 3)]
    pub lag: i64,
    /// The time of the last update.
    pub last_seen_at: UnixMs,
    /// The time of the first update.
    pub created_at: UnixMs,
}

/// A direct chat in a user's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectOut {
    /// The other user.
    pub peer_id: UserId,
    /// The number of unread messages from the peer.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The last item of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
    /// exactly what the user saw.
    #[schema(minimum = 0, example = 57)]
    pub head: i64,
    /// The time of that item; omitted if there is no item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_at: Option<UnixMs>,
    /// Whether `chats` and `total` exclude the chat. Also true while the user blocks the other
    /// user.
    pub muted: bool,
}

impl DirectOut {
    fn new(peer: UserId, direct: &Direct) -> Self {
        let last_at = Some(direct.last_at).filter(|_| direct.last_seq > 0);
        Self { peer_id: peer, unread: direct.unread(), head: direct.last_seq, last_at, muted: direct.muted }
    }
}

/// An inbox item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ItemOut {
    /// The number of the item.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// The sender.
    pub sender_id: UserId,
    /// For a direct message: the other user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub peer_id: Option<UserId>,
    /// For a group message: the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub group_id: Option<GroupId>,
    /// For a group message: its number in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 12)]
    pub group_seq: Option<i64>,
    /// True if the user sent the message; omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub own: bool,
    /// For an own direct message: the id that it was sent with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub client_id: Option<ClientId>,
    /// True if the item says that this group message was recalled. Such an item has no content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 12)]
    pub recall: Option<i64>,
    /// True if the group message was recalled since, and its content removed; omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub recalled: bool,
    /// The content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Are you there?")]
    pub content: Option<String>,
    /// When it was sent.
    pub sent_at: UnixMs,
}

/// A page of inbox items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct InboxOut {
    /// The items, in ascending order, without gaps.
    pub items: Vec<ItemOut>,
    /// The numbering of the items; send it along with `after`.
    #[schema(example = "6f1c0b9de2a47785")]
    pub epoch: String,
    /// The number of the last item of the inbox.
    #[schema(minimum = 0, example = 57)]
    pub head: i64,
    /// The value of `after` for the next request.
    #[schema(minimum = 0, example = 57)]
    pub next_after: i64,
    /// Whether there are more items.
    pub has_more: bool,
}

/// A user's devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DevicesOut {
    /// The devices, most recently seen first.
    pub items: Vec<CursorOut>,
    /// The number of the last item of the user's inbox.
    #[schema(minimum = 0, example = 57)]
    pub head: i64,
}

#[cfg(test)]
mod tests;
