//! A job on its way through the lanes, with its caller.

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::place::Place;
use super::{Job, Verdict};

/// What a job's caller is told, and not before when.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) verdict: Verdict,
    /// Until then other nodes may show what was there before.
    pub(super) not_before: Option<Instant>,
}

/// A job in the queue.
pub(super) struct Ticket {
    pub(super) job: Job,
    pub(super) weight: u32,
    pub(super) reply: oneshot::Sender<Reply>,
    /// Room in the queue, given back when the job is answered.
    pub(super) _room: OwnedSemaphorePermit,
    /// The turns of a user's own heavy job, and of a large one, given back too.
    pub(super) _turns: (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>),
    /// Until when it may be put off because its idempotency key is taken.
    pub(super) put_off_until: Instant,
    /// Until when it may be set aside because of a lock.
    pub(super) set_aside_until: Instant,
    /// Its place among those that are set aside, if it is.
    pub(super) place: Option<Place>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.job.fmt(f)
    }
}

impl Ticket {
    /// Which jobs it must be ordered with.
    pub(super) fn key(&self) -> i64 {
        self.job.command.lane_key()
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    pub(super) fn answer(self, verdict: Verdict) {
        self.answer_after(verdict, None);
    }

    pub(super) fn answer_after(self, verdict: Verdict, not_before: Option<Instant>) {
        // A caller who hung up is not waiting: the write stays.
        let _ = self.reply.send(Reply { verdict, not_before });
    }
}
