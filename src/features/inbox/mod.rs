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
//! sent, how many of those are read, and where in the inbox the chat was last. The user's own row
//! sums up what is unread, without chats of level `none` and chats with users whom the user blocks or
//! mutes. Those are looked up in `blocks` and `mutes`, under the lock of that row, which every block
//! and mute takes too. Chats whose level or mute ends are in `timed.rs`.
//!
//! `direct.rs` has the rules of a chat, `command.rs`, `recalls.rs` and `device_rules.rs` those over
//! the rows of a batch, `http.rs` (with `page.rs`) and `directs_http.rs` the routes, `rows.rs` and
//! `devices.rs` the rows of batches, `store.rs` the statements of the former, `lists.rs` and
//! `direct_lists.rs` what is read beside them. To put something else into inboxes: a variant of
//! [`Of`], its columns in `store.rs`, its fields in `lists.rs`. What a group sends to many is a
//! [`GroupRun`].

mod changes;
mod command;
mod config;
mod device_rules;
pub mod devices;
mod direct;
pub mod direct_lists;
pub mod directs_http;
mod distributed;
pub mod erase;
pub mod expiry;
pub mod exported;
mod history;
pub mod http;
pub mod import;
pub mod lists;
mod needs;
mod page;
mod recall_store;
mod recalls;
pub mod receipts;
pub mod rows;
mod store;
pub mod timed;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::features::level::Level;

pub use changes::{append_runs, end_unread, set_direct_silence};
pub use command::InboxCommand;
pub use config::InboxConfig;
pub use direct::{Direct, Place};
pub use needs::{InboxNeeds, Oldest, Sent, SentKey};

/// How many characters a message may have.
pub const MAX_CONTENT_CHARS: usize = 10_000;

/// How many devices a user may have.
pub const MAX_DEVICES: usize = 100;

/// How many direct chats without a message a user may silence. Level `all` for one makes room for
/// another.
pub const MAX_EMPTY_CHATS: i64 = 1000;

/// What is put into an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Whether the owner of this inbox sent it, from another device.
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
        /// Its number in the other side's inbox; 0: there is no other.
        other_seq: i64,
        /// Whether it was recalled, and the content removed.
        recalled: bool,
    },
    /// A direct message was recalled.
    DirectRecall {
        /// The other side of the chat.
        peer: UserId,
        /// How many messages the peer had sent by then.
        peer_seq: i64,
        /// The number of the message in this inbox.
        seq: i64,
    },
}

/// Messages of a group that follow one another in an inbox, or their recalls. What they say stays with
/// the group, and is looked up when the inbox is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRun {
    group: GroupId,
    /// Which messages of it, with a space in between.
    seqs: Arc<str>,
    rows: i64,
    own: bool,
    recall: bool,
}

impl GroupRun {
    /// These messages of a group. `own`: the owner of the inbox sent them; `recall`: they are recalled.
    #[must_use]
    pub fn new(group: GroupId, seqs: impl Iterator<Item = i64>, own: bool, recall: bool) -> Self {
        let seqs: Vec<_> = seqs.map(|seq| seq.to_string()).collect();
        let rows = i64::try_from(seqs.len()).unwrap_or(i64::MAX);
        Self { group, seqs: seqs.join(" ").into(), rows, own, recall }
    }

    /// How many rows of an inbox it takes.
    #[must_use]
    pub fn rows(&self) -> i64 {
        self.rows
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
    /// The sender's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A direct chat after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadDirectOut {
    /// The other user.
    pub peer_id: UserId,
    /// The number of unread messages from the peer.
    #[schema(minimum = 0, example = 0)]
    pub unread: i64,
    /// The last message of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
    /// exactly what the user saw.
    #[schema(minimum = 0, example = 57)]
    pub last_seq: i64,
    /// The last message of the chat that the user has read, or 0. It never goes back. If the user read up to
    /// an item before which no message of the chat is kept, it is the number of that item.
    #[schema(minimum = 0, example = 57)]
    pub read_seq: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The settings of a direct chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectSettingsOut {
    /// The other user.
    pub peer_id: UserId,
    /// What `chats` and `total` count: `all` messages or `none`. Always `none` while the user
    /// blocks or mutes the other user.
    pub level: DirectLevel,
    /// When the level ends and is `all` again, with the mute if there is one; omitted if it does
    /// not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level_until: Option<UnixMs>,
    /// The number of unread messages from the peer.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The last message of the chat in the user's inbox, or 0.
    #[schema(minimum = 0, example = 57)]
    pub last_seq: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// What of a direct chat `chats` and `total` count.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is
// malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[schema(rename_all = "snake_case")]
pub enum DirectLevel {
    /// Every unread message.
    All,
    /// Nothing.
    None,
}

impl TryFrom<String> for DirectLevel {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            _ => Err("must be 'all' or 'none'"),
        }
    }
}

impl From<DirectLevel> for Level {
    fn from(level: DirectLevel) -> Self {
        match level {
            DirectLevel::All => Self::All,
            DirectLevel::None => Self::None,
        }
    }
}

impl From<Level> for DirectLevel {
    /// A direct chat has no mentions.
    fn from(level: Level) -> Self {
        match level {
            Level::All => Self::All,
            Level::Mentions | Level::None => Self::None,
        }
    }
}

/// A device of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeviceOut {
    /// The device.
    pub device_id: ClientId,
    /// The last inbox item that the device has read; omitted if it has never put its cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 57)]
    pub cursor: Option<i64>,
    /// The number of items after the cursor; omitted without a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 3)]
    pub lag: Option<i64>,
    /// Whether events tell services of every change of the user's numbers.
    pub push: bool,
    /// The time of the last update.
    pub last_seen_at: UnixMs,
    /// The time of the first update.
    pub created_at: UnixMs,
}

/// A direct chat of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectOut {
    /// The other user.
    pub peer_id: UserId,
    /// The number of unread messages from the peer.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The last message of the chat in the user's inbox, or 0. Send it back as `up_to` to clear
    /// exactly what the user saw.
    #[schema(minimum = 0, example = 57)]
    pub last_seq: i64,
    /// The last message of the chat that the user has read, or 0. It never goes back. If the user read up to
    /// an item before which no message of the chat is kept, it is the number of that item.
    #[schema(minimum = 0, example = 54)]
    pub read_seq: i64,
    /// The first unread message that is kept; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 55)]
    pub first_unread_seq: Option<i64>,
    /// The time of the last message; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_at: Option<UnixMs>,
    /// What `chats` and `total` count: `all` messages or `none`. Always `none` while the user
    /// blocks or mutes the other user.
    pub level: DirectLevel,
    /// When the level ends and is `all` again, with the mute if there is one; omitted if it does
    /// not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level_until: Option<UnixMs>,
}

/// An inbox item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ItemOut {
    /// The number of the item.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// The sender; omitted if that user was erased, or the message of a group is no longer kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sender_id: Option<UserId>,
    /// For a direct message: the other user; omitted if that user was erased.
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
    /// Set if the item says that a message was recalled: the number of that message in the group, or,
    /// of a direct message, in this inbox. Such an item has no content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 12)]
    pub recall: Option<i64>,
    /// True if the message was recalled since, and its content removed; omitted otherwise.
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

/// A page of a direct chat: in descending order with `before`, otherwise in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectMessagesOut {
    /// The messages of both sides.
    pub items: Vec<ItemOut>,
    /// The value of `after` that continues with newer messages.
    #[schema(minimum = 0, example = 57)]
    pub next_after: i64,
    /// With `before` and `around`: the value of `before` that continues with older messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 38)]
    pub next_before: Option<i64>,
    /// Whether there are more messages in the direction of the page: older ones with `before`,
    /// otherwise newer ones.
    pub has_more: bool,
    /// With `around`: whether there are older messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub has_older: Option<bool>,
    /// The number of the last item of the inbox.
    #[schema(minimum = 0, example = 60)]
    pub head: i64,
}

/// How far the other user of a direct chat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectReceiptsOut {
    /// The last own message that is kept and that a device of the other user has fetched, or 0.
    #[schema(minimum = 0, example = 57)]
    pub delivered_seq: i64,
    /// The last own message that is kept and that the other user has read, or 0.
    #[schema(minimum = 0, example = 54)]
    pub read_seq: i64,
}

/// A user's devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DevicesOut {
    /// The devices, most recently seen first.
    pub items: Vec<DeviceOut>,
    /// The number of the last item of the user's inbox.
    #[schema(minimum = 0, example = 57)]
    pub head: i64,
}

#[cfg(test)]
mod tests;
