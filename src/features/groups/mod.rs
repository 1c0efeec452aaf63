//! Groups: members, messages, and how far each member has read.
//!
//! A group's stream is a shared head
//! ([`StreamKey::group`](crate::engine::marks::StreamKey::group)), whose lock gives messages their
//! dense `seq` and guards who comes and goes. A *membership* is the span from joining to leaving;
//! it begins at the head of that moment and holds how far the member has read ([`Reading`]), so
//! from it follow both what is unread to the member and, turned around, who has read a message
//! (`crate::features::receipts`). A message costs one row, whatever the number of members.
//!
//! `command.rs` has the commands, `members.rs` and `messages.rs` their rules, `again.rs` that of what is
//! unread again, `rows.rs` the rows of batches, `store.rs` and `message_store.rs` their statements,
//! `lists.rs` what is read beside them, `chats.rs` the groups of a user as its unread summary counts them,
//! `known_rows.rs` what that keeps of rows, `fan_out.rs` and `delivery.rs` what puts messages into inboxes, `expiry.rs` what removes old ones, `deletion.rs` what
//! removes a group. `history.rs` has
//! the pages of messages, `message_changes.rs` their changes, `last_read.rs` what polls for both remember.
//! `http.rs`, `history_http.rs`, `message_changes_http.rs` and `user_http.rs` have the routes,
//! `sharing.rs` what users hide of it. `import/` takes over chat logs.

mod again;
pub mod changes;
pub mod chats;
mod command;
mod config;
pub mod deletion;
pub mod delivery;
mod distributed;
mod due_members;
pub mod erase;
pub mod expiry;
pub mod exported;
pub mod fan_out;
pub mod fan_out_queue;
pub mod history;
pub mod history_http;
pub mod http;
pub mod import;
mod known_rows;
mod last_read;
pub mod lists;
mod members;
pub mod message_changes;
pub mod message_changes_http;
mod message_store;
mod messages;
mod needs;
pub mod pages;
pub mod part;
pub mod push_members;
mod reading;
mod refused;
pub mod rows;
pub mod sharing;
mod store;
mod under_way;
pub mod user_groups;
pub mod user_http;

pub use command::GroupCommand;
pub use config::GroupConfig;
pub use members::GroupSettingsOut;
pub(crate) use messages::expired;
pub use reading::{MAX_EXTRA_BYTES, Reading, TooScattered};
pub(crate) use refused::{deleted, no_member, unknown};

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::engine::marks::{Hidden, Intervals};
use crate::features::level::LevelUntil;

/// In how many groups a user may be.
pub const MAX_GROUPS: i64 = 1000;

/// How many members a group may have at a time.
pub const MAX_MEMBERS: i64 = 100_000;

/// How many may join in one request.
pub const MAX_JOINS: usize = 1000;

/// How many members a message may mention by name.
pub const MAX_MENTIONS: usize = 50;

/// How many runs of unread messages that mention a member by name are kept for each membership. With
/// more, the oldest count as messages only.
pub const MAX_MENTION_RUNS: usize = 1000;

/// How many messages that are read may be unread again: the rows between the two marks are looked
/// through for the member's own.
pub const MAX_UNREAD_AGAIN: i64 = 10_000;

/// How a group's messages reach its members.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is
// malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[schema(rename_all = "snake_case")]
pub enum Delivery {
    /// Members count from the group's head: sending costs the same however many there are.
    #[default]
    Read,
    /// Each message is also put into every member's inbox.
    Write,
}

impl TryFrom<String> for Delivery {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            _ => Err("must be 'read' or 'write'"),
        }
    }
}

/// A group, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    /// How messages reach the members.
    pub delivery: Delivery,
    /// Whether receipts are enabled.
    pub receipts: bool,
    /// The number of members.
    pub members: i64,
    /// The total number, including read and removed ones.
    pub ordinals: i64,
    /// The number of the last thing that was to be put into inboxes.
    pub jobs: i64,
    /// When the group was created.
    pub created_at: UnixMs,
    /// The id of the last change of a message.
    pub changes: i64,
    /// Whether it is deleted. Its id may not be used again.
    pub deleted: bool,
}

/// A membership, from joining to leaving.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Membership {
    /// The member's number in the group, from 1 on; kept when rejoining.
    pub ordinal: i64,
    /// The group's head when joining.
    pub from_seq: i64,
    /// The head when leaving; None: a member now.
    pub to_seq: Option<i64>,
    /// How far the member has read: what receipts are made of.
    pub reading: Reading,
    /// How far messages show as read, while some are unread again; None: as `reading` has it.
    pub again: Option<Reading>,
    /// Messages above the shown mark that mention the member by name. Which of them are gone, the
    /// group's head says.
    pub mentions: Intervals,
    /// What of the group counts in the member's sums.
    pub level: LevelUntil,
    /// When it began.
    pub joined_at: UnixMs,
    /// When the member last read something new or sent, or left.
    pub at: UnixMs,
    /// The messages of which nobody sees whether the member has read them.
    pub hidden: Hidden,
}

impl Membership {
    /// How far messages show as read to the member.
    #[must_use]
    pub fn shown(&self) -> &Reading {
        self.again.as_ref().unwrap_or(&self.reading)
    }

    /// Whether the member is one now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.to_seq.is_none()
    }
}

/// A message, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// None: a user that was erased.
    pub sender: Option<UserId>,
    /// The sender's own id for it; once for each sender.
    pub client_id: ClientId,
    /// The text; empty once it is recalled.
    pub content: String,
    /// When it was sent.
    pub sent_at: UnixMs,
    /// Whether it was recalled.
    pub recalled: bool,
    /// Whether it is put into the members' inboxes. A recall then has to reach the same inboxes.
    pub written: bool,
}

/// A message as its sender says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The sender's own id for it.
    pub client_id: ClientId,
    pub content: String,
    /// Members whom it mentions by name, in the order of the request.
    pub mentions: Vec<UserId>,
    /// Whether it mentions all members.
    pub mention_all: bool,
}

/// Whom a message mentions, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mentions {
    /// Members by name, without the sender.
    pub named: BTreeSet<UserId>,
    /// Whether it mentions all.
    pub all: bool,
}

/// What a user's entry in the cache holds of a group that the user is in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupMark {
    /// The message up to which the user has read.
    pub read_seq: i64,
    /// The message up to which all shows as read: lower while messages are unread again.
    pub mark: i64,
    /// Single messages above `mark` that show as read.
    pub extra: Intervals,
    /// Messages that mention the user by name.
    pub mentions: Intervals,
    /// What of the group counts in sums.
    pub level: LevelUntil,
    /// When the user last read something new or sent.
    pub at: UnixMs,
    /// Whether the user has read nothing since joining: `read_seq` is the head of that moment, and
    /// `at` is when that was.
    pub is_new: bool,
}

/// Added to the level of a row where the member has read nothing since joining.
pub(crate) const NEW_MEMBER: i64 = 8;

impl GroupMark {
    /// As a row of `memberships` holds it; `level` with [`NEW_MEMBER`] where that applies.
    #[must_use]
    pub fn from_row([read_seq, level, at, until, unread_from]: [i64; 5], extra: &[u8], mentions: &str) -> Self {
        let mark = if unread_from > 0 { unread_from - 1 } else { read_seq };
        let shown = Reading::from_row(mark, extra);
        Self {
            read_seq,
            mark: shown.read_seq(),
            extra: shown.extra_runs(),
            mentions: Intervals::parse(mentions),
            level: LevelUntil::from_row(level % NEW_MEMBER, until),
            at: UnixMs(at),
            is_new: level >= NEW_MEMBER,
        }
    }

    /// Whether a message was sent since the user joined, in a group with this head.
    #[must_use]
    pub fn has_messages(&self, head: i64) -> bool {
        head > self.read_seq || !self.is_new
    }
}

impl From<&Membership> for GroupMark {
    fn from(of: &Membership) -> Self {
        Self {
            read_seq: of.reading.read_seq(),
            mark: of.shown().read_seq(),
            extra: of.shown().extra_runs(),
            mentions: of.mentions.clone(),
            level: of.level,
            at: of.at,
            is_new: of.reading.read_seq() == of.from_seq,
        }
    }
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupOut {
    /// The id.
    pub group_id: GroupId,
    /// How messages reach the members.
    pub delivery: Delivery,
    /// Whether receipts are enabled.
    pub receipts: bool,
    /// The number of members.
    #[schema(minimum = 0, example = 12)]
    pub members: i64,
    /// The number of messages ever sent.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// When the group was created.
    pub created_at: UnixMs,
}

impl GroupOut {
    /// A group with its head.
    #[must_use]
    pub fn new(group_id: GroupId, group: &Group, head: i64) -> Self {
        let Group { delivery, receipts, members, created_at, .. } = *group;
        Self { group_id, delivery, receipts, members, head, created_at }
    }
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MemberOut {
    /// The user.
    pub user_id: UserId,
    /// The member's number in the group, from 1, and its position in bitmaps of receipts. A member
    /// who rejoins keeps it.
    #[schema(minimum = 1, example = 7)]
    pub ordinal: i64,
    /// When the membership began.
    pub joined_at: UnixMs,
}

/// The added members, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MembersOut {
    /// One member for each user.
    pub items: Vec<MemberOut>,
}

/// A sent group message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupSentOut {
    /// The group.
    pub group_id: GroupId,
    /// The number of the message in the group, without gaps, in commit order.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// When it was sent.
    pub sent_at: UnixMs,
    /// The sender's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// What a read of a group answers inside; where the batch does not hold what the number is counted
/// from, the route counts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadStep {
    /// What is unread now.
    pub unread: Option<i64>,
    /// The message up to which the user has read.
    pub read_seq: i64,
    /// The number of messages ever sent.
    pub head: i64,
    /// The user's revision after the write.
    pub revision: i64,
}

#[cfg(test)]
mod tests;
