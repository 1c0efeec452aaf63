//! Which rows of `inbox` and `directs` the commands of a batch need, and what they find of those
//! that are already there.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, UserId};

/// A direct message as one side has it: whose inbox, the other side, whether it is the owner's own,
/// and the id that its sender gave it.
pub type SentKey = (UserId, UserId, bool, ClientId);

/// Two sides of a chat: whose row it is, and the peer.
pub(super) type ChatKey = (UserId, UserId);

/// Which of these rows a batch needs. The users' own rows are asked for beside it.
#[derive(Debug, Default)]
pub struct InboxNeeds {
    /// Direct messages that may have been sent before.
    pub sent: BTreeSet<SentKey>,
    /// Sides of direct chats.
    pub directs: BTreeSet<ChatKey>,
    /// What rows of the user's inbox are in a chat.
    pub places: BTreeSet<(UserId, UserId, i64)>,
    /// Users of whom the chats with nothing in them are counted.
    pub empty_chats: BTreeSet<UserId>,
    /// Users of whom the chats are needed whose level ends.
    pub timed: BTreeSet<UserId>,
    /// Messages by their place, as the user has them: whose inbox, the other side, the seq.
    pub messages: BTreeSet<(UserId, UserId, i64)>,
    /// Users of whom the first row that is kept is needed.
    pub earliest: BTreeSet<UserId>,
    /// Users whose rows up to this seq may go; with it the chats that they are of.
    pub oldest: BTreeMap<UserId, i64>,
}

/// Where a direct message is, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its number in the inbox.
    pub seq: i64,
    /// When it was sent.
    pub at: UnixMs,
    /// How many messages the peer had sent by then.
    pub peer_seq: i64,
    /// Whether it was recalled since.
    pub recalled: bool,
}

/// A direct message as one side has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The other side.
    pub(super) peer: UserId,
    /// Whether it is the owner's own.
    pub(super) own: bool,
    /// The id that its sender gave it.
    pub(super) client: ClientId,
    /// Its number in the other side's inbox; 0: not known.
    pub(super) other_seq: i64,
    /// Whether it was recalled.
    pub(super) recalled: bool,
}

/// A direct message that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oldest {
    /// The other side of the chat.
    pub peer: UserId,
    /// How many messages the peer had sent by then.
    pub peer_seq: i64,
    /// Whether it was the user's own, or told of a recall.
    pub own: bool,
    /// Whether it was recalled.
    pub recalled: bool,
    /// Its number in the inbox.
    pub seq: i64,
}
