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
    /// How many messages a peer had sent by a row of the user's inbox.
    pub places: BTreeSet<(UserId, UserId, i64)>,
    /// Users of whom the chats with nothing in them are counted.
    pub empty_chats: BTreeSet<UserId>,
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
}

/// A direct message that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oldest {
    /// The other side of the chat.
    pub peer: UserId,
    /// How many messages the peer had sent by then.
    pub peer_seq: i64,
    /// Whether it was the user's own.
    pub own: bool,
    /// Its number in the inbox.
    pub seq: i64,
}
