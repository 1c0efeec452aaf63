//! What follows a commit, in the order of commits: the cache is told, then those who hear of it,
//! then the callers.
//!
//! With a shared cache this happens beside the lane, which goes on with its next batch. Nobody is
//! answered before the cache has the own batch.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::commit::Reached;
use super::failure::{CACHE_PATIENCE, CACHE_PAUSE};
use super::ticket::Ticket;
use super::written_entries::WrittenEntries;
use super::{LaneEngines, Rows, Verdict, unknown_outcome};
use crate::cache::{Cache, CacheError, Change, Changes, FactsChange, READ_LEASE, Writer};
use crate::failpoint;

/// Committed batches that wait to be finished; with one more, the lane waits.
const BATCHES_WAITING: usize = 1;

/// A batch that is committed.
pub(super) struct Committed {
    pub(super) written: WrittenEntries,
    pub(super) writer: Writer,
    pub(super) changes: Vec<Change>,
    pub(super) facts: Vec<FactsChange>,
    pub(super) rows: Rows,
    pub(super) reached: Reached,
    pub(super) began: Instant,
}

/// A committed batch with the answers of its callers.
struct Finish {
    committed: Committed,
    answers: Vec<(Ticket, Verdict)>,
}

/// The way to what finishes the batches of one lane.
pub(super) struct Finisher {
    engines: LaneEngines,
    /// None where the lane does it itself: a cache in this process needs no wait.
    queue: Option<mpsc::Sender<Finish>>,
}

impl Finisher {
    /// Starts what finishes batches. It ends when this is dropped and all is answered.
    pub(super) fn start(engines: LaneEngines, tasks: &TaskTracker) -> Self {
        let queue = engines.cache.is_shared().then(|| {
            let (sender, receiver) = mpsc::channel(BATCHES_WAITING);
            tasks.spawn(work(engines.clone(), receiver));
            sender
        });
        Self { engines, queue }
    }

    /// Has a batch finished and its callers answered.
    pub(super) async fn finish(&self, committed: Committed, answers: Vec<(Ticket, Verdict)>) {
        let finish = Finish { committed, answers };
        let here = match &self.queue {
            Some(queue) => queue.send(finish).await.err().map(|refused| refused.0),
            None => Some(finish),
        };
        match here {
            Some(finish) => finish.run(&self.engines).await,
            // So that the cache is told of this batch before the next one begins: where both
            // have a user, the entry is clean in between.
            None => tokio::task::yield_now().await,
        }
    }
}

async fn work(engines: LaneEngines, mut queue: mpsc::Receiver<Finish>) {
    while let Some(finish) = queue.recv().await {
        finish.run(&engines).await;
    }
}

impl Finish {
    async fn run(self, engines: &LaneEngines) {
        let Self { committed, answers } = self;
        let jobs = u64::try_from(answers.len()).unwrap_or_default();
        let applied = AssertUnwindSafe(committed.apply_write(engines)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("telling of a committed batch panicked");
            Err(Outdated)
        });
        metrics::counter!("headmark_lane_commands_total").increment(jobs);
        for (ticket, verdict) in answers {
            match applied {
                Ok(shown_until) => ticket.answer_after(verdict, shown_until),
                Err(Outdated) => ticket.answer(Err(unknown_outcome().into())),
            }
        }
    }
}

/// Polls may show what was there before a commit, and nothing will end that for a while.
#[derive(Debug, Clone, Copy)]
struct Outdated;

impl Committed {
    /// Brings the cache what changed; whether this writer was inside of all entries all the time.
    /// A writer that was not in time abandons them first, so that its apply changes nothing and only
    /// wakes waiting polls. Its lease may have ended before it was renewed. Then others may have
    /// committed later, and the entries do not show that. Where it cannot abandon them, it applies
    /// nothing, and wakes the polls of this node alone.
    async fn tell_cache(&self, cache: &Cache) -> Result<bool, CacheError> {
        let in_time = self.reached.in_time;
        if !in_time && let Err(error) = self.written.abandon_write(cache, self.writer).await {
            // The commit has been made, whatever the cache knows of it.
            cache.wake_local(self.changes.iter().filter(|change| change.before != change.after).map(|change| change.user));
            return Err(error);
        }
        let was_inside = cache.apply_write(self.writer, Changes { entries: &self.changes, facts: &self.facts }).await?;
        Ok(was_inside && in_time)
    }

    /// The cache could not be told. The entries are still dirty, unless they were evicted since the
    /// begin, or the lease has ended: then others may have filled in what was there before. So they
    /// are made dirty again, or all entries end.
    async fn end_shown(&self, engines: &LaneEngines) -> Result<(), Outdated> {
        let give_up = Instant::now() + CACHE_PATIENCE;
        while !engines.guard.is_bypassing() && Instant::now() < give_up {
            match self.written.abandon_write(&engines.cache, self.writer).await {
                Ok(()) => return Ok(()),
                Err(error) => tracing::debug!(%error, "could not make the cache entries dirty; trying again"),
            }
            tokio::time::sleep(CACHE_PAUSE).await;
        }
        engines.guard.enter_bypass().await.map_err(|_| Outdated)
    }

    /// Tells the cache, and all who hear of commits. Until when other nodes may show what was there
    /// before.
    async fn apply_write(self, engines: &LaneEngines) -> Result<Option<Instant>, Outdated> {
        let was_inside = match self.tell_cache(&engines.cache).await {
            Ok(was_inside) => was_inside,
            Err(error) => {
                tracing::debug!(%error, "could not apply a write to the cache");
                self.end_shown(engines).await?;
                false
            }
        };
        // Copies of what was filled in meanwhile are shown until a read lease after that.
        let shown_until = if was_inside { self.reached.shown_until } else { Some(Instant::now() + READ_LEASE) };
        let shared = self.rows.committed();
        if !shared.heads.is_empty() {
            engines.heads.committed(shared).await;
        }
        let now = engines.clock.now();
        engines.after_commit.iter().for_each(|hook| hook.committed(&self.rows, now));
        if self.rows.has_events() {
            engines.bell.ring();
        }
        failpoint("lane::after_apply_write");
        metrics::histogram!("headmark_lane_batch_seconds").record(self.began.elapsed().as_secs_f64());
        Ok(shown_until)
    }
}
