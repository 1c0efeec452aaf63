//! A read on its way to a reader.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::scripts::Found;
use crate::base::ids::UserId;
use crate::cache::CacheError;

/// A user's hash as it was found; None if it cannot be one of ours.
pub(super) type Answer = Result<Option<Found>, CacheError>;

/// What a reader is asked.
pub(super) struct Read {
    pub(super) user: UserId,
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
