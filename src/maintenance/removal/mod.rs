//! What works on removals (`crate::features::removals` says how): step after step, one bounded batch
//! at a time, some removals side by side.

mod lease;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::lease::{hold, lease};
pub use self::steps::{Steps, user_steps};
use crate::base::abandoned::Abandoned;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::failures::Failures;
use crate::db::in_time;
use crate::engine::guard::{Guard, Trust};
use crate::failpoint;
use crate::features::operations::OperationId;
use crate::features::removals::{Engines, Place, Progress, Removal, Step, store};
use crate::maintenance::oldest::Oldest;

/// How often a node looks for removals.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// After how long at most a step is looked at again that waits for something. Far below `AHEAD_MS`, after which a node
/// counts as gone: the clocks of nodes may differ by some seconds.
const MAX_LATER_MS: i64 = 30_000;

/// How many failures in a row are told, and how many more after that: each is followed by the rest of a lease.
const TOLD_EACH: u32 = 10;

/// How many removals a node works on at once.
const MAX_REMOVALS: i64 = 4;

/// How many batches a removal gets before it is the turn of others.
const BATCHES_PER_TURN: u32 = 50;

/// What removes.
#[derive(Debug)]
pub struct RemovalContext {
    pub engines: Arc<Engines>,
    pub guard: Arc<Guard>,
    pub steps: Steps,
}

/// What a node knows of removals from one look to the next.
#[derive(Debug)]
struct Seen {
    /// Those that are due in the far future.
    abandoned: Abandoned<OperationId>,
    failures: Failures<OperationId>,
    oldest: Oldest,
}

impl Default for Seen {
    fn default() -> Self {
        let oldest = Oldest::new("headmark_removal_oldest_seconds");
        Self { abandoned: Abandoned::default(), failures: Failures::new(TOLD_EACH), oldest }
    }
}

/// Removes until told to stop.
pub(crate) async fn run(state: Arc<RemovalContext>, stop: CancellationToken) {
    let (mut idle, mut seen) = (true, Seen::default());
    loop {
        let pause = if idle { LOOK_EVERY } else { Duration::ZERO };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        idle = true;
        if state.guard.trust() == Trust::Unsure {
            continue;
        }
        match round(&state, &mut seen, &stop).await {
            Ok(found) => idle = found == 0,
            // It goes on from where its row says.
            Err(error) => tracing::debug!(?error, "cannot go on with a removal yet"),
        }
    }
}

/// A turn of each removal that is due, up to a bound. How many there were.
async fn round(state: &RemovalContext, seen: &mut Seen, stop: &CancellationToken) -> Result<usize> {
    seen.oldest.measure(&state.engines.clock, store::oldest(&state.engines.db)).await;
    let now = state.engines.clock.now();
    let found = in_time(store::due(&state.engines.db, &state.steps.known, now, MAX_REMOVALS)).await?;
    let mut due = seen.abandoned.ended(found, |removal| (removal.id.clone(), removal.due_at), now, Instant::now());
    let outcomes = join_all(due.iter_mut().map(|removal| turn(state, removal, stop))).await;
    for (removal, outcome) in due.iter().zip(&outcomes) {
        let step = state.steps.at(removal.kind, &removal.step).map_or("", |(step, _)| step.name);
        if let Some(failures) = seen.failures.note(&removal.id, outcome.is_err(), Instant::now()) {
            // Of the error only the log at debug level tells: what a database says may quote contents.
            tracing::warn!(operation = %removal.id, step, failures, "a removal fails each time; it is tried again");
        }
    }
    outcomes.into_iter().collect::<Result<Vec<()>>>()?;
    Ok(due.len())
}

/// Some batches of a removal, for as long as no other node has taken it.
async fn turn(state: &RemovalContext, removal: &mut Removal, stop: &CancellationToken) -> Result<()> {
    let Engines { db, clock, .. } = &*state.engines;
    let (step, place) = (removal.step.clone(), removal.place.clone());
    match in_time(store::move_on(db, removal, &step, place, lease(clock))).await? {
        Some(taken) => *removal = taken,
        None => return Ok(()),
    }
    for _ in 0..BATCHES_PER_TURN {
        // Those that this version does not know are not found as due.
        let Some((step, next)) = state.steps.at(removal.kind, &removal.step) else { return Ok(()) };
        let work = batch(state, step, removal.subject, removal.place.clone());
        let Some(progress) = hold(db, clock, removal, work).await? else {
            lost(removal);
            return Ok(());
        };
        let (name, place, later) = match progress {
            Progress::More(place) => (step.name, place, None),
            Progress::Later(place, over_at) => (step.name, place, Some(look_again(over_at, clock.now()))),
            Progress::Done => match next {
                Some(next) => (next.name, Default::default(), None),
                None => return finish(state, removal).await,
            },
        };
        match in_time(store::move_on(db, removal, name, place, later.unwrap_or_else(|| lease(clock)))).await? {
            Some(moved) if later.is_none() && !stop.is_cancelled() => *removal = moved,
            Some(_) => return Ok(()),
            None => {
                lost(removal);
                return Ok(());
            }
        }
    }
    // Others that are due go first.
    let (step, place) = (removal.step.clone(), removal.place.clone());
    in_time(store::move_on(db, removal, &step, place, clock.now())).await.map(|_| ()).map_err(Into::into)
}

/// The batch that this node has begun or done is done again, or was done twice.
fn lost(removal: &Removal) {
    tracing::warn!(operation = %removal.id, step = removal.step, "another node took a removal while this one did a batch of it");
}

/// When a step is looked at again that waits for what is over at this time.
fn look_again(over_at: UnixMs, now: UnixMs) -> UnixMs {
    over_at.min(UnixMs(now.0.saturating_add(MAX_LATER_MS)))
}

async fn batch(state: &RemovalContext, step: &Step, subject: i64, place: Place) -> Result<Progress> {
    failpoint(&format!("removal::before_{}", step.name));
    let progress = step.batch(Arc::clone(&state.engines), subject, place).await?;
    failpoint(&format!("removal::after_{}", step.name));
    metrics::counter!("headmark_removal_batches_total").increment(1);
    Ok(progress)
}

async fn finish(state: &RemovalContext, removal: &Removal) -> Result<()> {
    failpoint("removal::before_finish");
    let Engines { db, clock, .. } = &*state.engines;
    if !in_time(store::finish(db, removal, clock.now())).await? {
        lost(removal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::abandoned::AHEAD_MS;

    #[test]
    fn what_waits_is_looked_at_when_it_is_over_and_counts_as_left_by_nobody() {
        let now = UnixMs(1_800_000_000_000);
        assert_eq!(look_again(UnixMs(now.0 + 15_000), now), UnixMs(now.0 + 15_000), "not before");
        assert_eq!(look_again(UnixMs(now.0 + 3_600_000), now), UnixMs(now.0 + MAX_LATER_MS));
        let slow = 20_000;
        assert!(look_again(UnixMs(i64::MAX), now).0 - (now.0 - slow) < AHEAD_MS, "also for a node whose clock is behind");
    }
}
