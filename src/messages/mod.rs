//! Messages that are read by hand (site mail, system messages): one row for each message, one for each of its receivers, and a number of unread ones for
//! each user and type.
//!
//! A receiver's row is made once and goes only with the message: it keeps whether the receiver has read the message, also when the receiver has deleted it from its own list or
//! the sender has withdrawn it. So `read_count` is a count of rows, and recipients never change. Every change is made under the lock of the receiver's own
//! row in `users`, which also gives the seq: dense, in the order of commits.
//!
//! `command.rs` has the rules, `http.rs` the routes, `store.rs` the rows of batches, `lists.rs` what is read beside them, `expiry.rs` how long they are kept.

mod command;
pub mod expiry;
pub mod http;
pub mod lists;
pub mod store;

use std::sync::Arc;

use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::UnixMs;
use crate::ids::{MessageId, Name, UserId};

pub use command::{Command, Which};
pub use expiry::MessageConfig;

/// How many types a user may have had messages of.
pub const MAX_TYPES: i64 = 100;

/// How many recipients a message may have.
pub const MAX_RECIPIENTS: usize = 10_000;

/// How many characters a title may have.
pub const MAX_TITLE_CHARS: usize = 200;

/// How many characters a content may have.
pub const MAX_CONTENT_CHARS: usize = 10_000;

/// How many messages one request may name.
pub const MAX_NAMED: usize = 1000;

/// How many messages the first transaction of a request reads that names none: more than most users have unread.
pub const FIRST_ROWS: i64 = 200;

/// How many each further transaction of that request reads.
pub const MORE_ROWS: i64 = 2000;

/// How many ids a new message may choose from: the first that is free. That one was given out before happens once in a great while; several never.
const CANDIDATES: usize = 3;

/// Bits of an id that are random; above them is the time.
const RANDOM_BITS: u32 = 20;

/// A message, as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its type.
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
    /// The title.
    pub title: String,
    /// The content.
    pub content: String,
}

impl Message {
    /// Title and content.
    #[must_use]
    pub fn text(&self) -> Text {
        serde_json::from_str(&self.stored).unwrap_or_default()
    }
}

/// What a user has of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// Which message.
    pub message: MessageId,
    /// Its type.
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

/// Which entries of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Those that were not read.
    Unread,
    /// Those that were read.
    Read,
    /// All.
    #[default]
    All,
}

/// An entry of a user's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which message.
    pub id: MessageId,
    /// Its number in the user's list.
    pub seq: i64,
    /// The message.
    pub message: Message,
    /// When the user has read it; 0: not yet.
    pub read_at: UnixMs,
}

/// Unread messages of a user: the oldest, up to a bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// Whose.
    pub user: UserId,
    /// Of which type; None: of all.
    pub kind: Option<Name>,
    /// Up to which seq.
    pub up_to: i64,
    /// How many.
    pub rows: i64,
}

/// A message as its sender sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MessageOut {
    /// Its id.
    pub message_id: MessageId,
    /// Its type.
    pub r#type: Name,
    /// The title.
    #[schema(example = "Planned maintenance")]
    pub title: String,
    /// The content.
    #[schema(example = "Tonight from two to three.")]
    pub content: String,
    /// When it was sent.
    pub created_at: UnixMs,
    /// To how many users it was sent: fixed from then on.
    #[schema(minimum = 1, example = 1200)]
    pub recipient_count: i64,
    /// How many of them have read it, also those who deleted it from their lists since.
    #[schema(minimum = 0, example = 17)]
    pub read_count: i64,
}

impl MessageOut {
    fn new(id: MessageId, message: &Message, read: i64) -> Self {
        let Text { title, content } = message.text();
        Self {
            message_id: id,
            r#type: message.kind.clone(),
            title,
            content,
            created_at: message.created_at,
            recipient_count: message.recipients,
            read_count: read,
        }
    }
}

/// What deleting a message from a user's list answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeletedMessageOut {
    /// The user's revision after it.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// What marking one message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadMessageOut {
    /// The message.
    pub message_id: MessageId,
    /// When the user has read it first; left out where it is unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub read_at: Option<UnixMs>,
    /// How many of its type the user has not read.
    #[schema(minimum = 0, example = 1)]
    pub unread: i64,
    /// The user's revision after it.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The lowest id that a message of this time may have.
fn first_id(at: UnixMs) -> i64 {
    (at.0.max(0) << RANDOM_BITS) & i64::MAX
}

/// Ids that a message sent now may have: the time and some chance, so that no sender waits for another to get a number.
#[must_use]
pub fn candidates(now: UnixMs) -> Vec<MessageId> {
    let time = first_id(UnixMs(now.0.max(1)));
    let chance = || i64::from(rand::rng().random_range(0..1_u32 << RANDOM_BITS));
    (0..CANDIDATES).filter_map(|_| MessageId::try_from(time | chance()).ok()).collect()
}

#[cfg(test)]
mod tests;
