//! A read on its way to a reader.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::known::KnownEntry;
use super::scripts::Found;
use crate::base::ids::UserId;
use crate::cache::CacheError;

/// What Redis replied.
pub(super) enum Replied {
    /// The same as it did to what is known.
    AsKnown,
    /// A user's hash; None if it cannot be one of ours. With the reply, where the connection shows
    /// it.
    Hash(Option<Found>, Option<Box<[u8]>>),
}

pub(super) type Answer = Result<Replied, CacheError>;

/// What a reader is asked.
pub(super) struct Read {
    pub(super) user: UserId,
    /// What was read of this user before.
    pub(super) known: Option<Arc<KnownEntry>>,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Read {
    pub(super) fn answer(self, answer: Answer) {
        // A caller that has gone in the meantime makes this fail, which is right to ignore.
        let _gone = self.reply.send(answer);
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}
