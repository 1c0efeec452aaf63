//! What works on removals (`crate::features::removals` says how): step after step, one bounded batch
//! at a time, some removals side by side.

mod failures;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::failures::Failures;
pub use self::steps::{Steps, user_steps};
use crate::base::abandoned::Abandoned;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::db::in_time;
use crate::engine::guard::{Guard, Trust};
use crate::failpoint;
use crate::features::operations::OperationId;
use crate::features::removals::{Engines, Progress, Removal, Step, store};

/// How often a node looks for removals.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// For how long a removal is left to the node that works on it, after each batch.
const LEASE_MS: i64 = 3000;

/// When a step is looked at again that waits for something to pass.
const LATER_MS: i64 = 1000;

/// How often the age of the oldest removal is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(10);

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
#[derive(Debug, Default)]
struct Seen {
    /// Those that are due in the far future.
    abandoned: Abandoned<OperationId>,
    failures: Failures,
    /// When the age of the oldest one was measured.
    measured: Option<Instant>,
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
    measure(state, seen).await;
    let now = state.engines.clock.now();
    let found = in_time(store::due(&state.engines.db, &state.steps.known, now, MAX_REMOVALS)).await?;
    let mut due = seen.abandoned.ended(found, |removal| (removal.id.clone(), removal.due_at), now, Instant::now());
    let outcomes = join_all(due.iter_mut().map(|removal| turn(state, removal, stop))).await;
    for (removal, outcome) in due.iter().zip(&outcomes) {
        let step = state.steps.at(removal.kind, &removal.step).map_or("", |(step, _)| step.name);
        seen.failures.note(&removal.id, step, outcome.is_err(), Instant::now());
    }
    outcomes.into_iter().collect::<Result<Vec<()>>>()?;
    Ok(due.len())
}

/// Publishes the age of the oldest removal from time to time. Where it cannot be read, nothing waits for it.
async fn measure(state: &RemovalContext, seen: &mut Seen) {
    let at = Instant::now();
    if seen.measured.is_some_and(|before| at - before < MEASURE_EVERY) {
        return;
    }
    seen.measured = Some(at);
    let Ok(oldest) = in_time(store::oldest(&state.engines.db)).await.inspect_err(|error| {
        tracing::debug!(?error, "cannot look for the oldest removal yet");
    }) else {
        return;
    };
    let age_ms = oldest.map_or(0, |began| (state.engines.clock.now().0 - began.0).max(0));
    metrics::gauge!("headmark_removal_oldest_seconds").set(Duration::from_millis(age_ms.unsigned_abs()).as_secs_f64());
}

/// Some batches of a removal, for as long as no other node has taken it.
async fn turn(state: &RemovalContext, removal: &mut Removal, stop: &CancellationToken) -> Result<()> {
    let Engines { db, clock, .. } = &*state.engines;
    let lease = || UnixMs(clock.now().0 + LEASE_MS);
    let (step, place) = (removal.step.clone(), removal.place.clone());
    match in_time(store::move_on(db, removal, &step, place, lease())).await? {
        Some(taken) => *removal = taken,
        None => return Ok(()),
    }
    for _ in 0..BATCHES_PER_TURN {
        // Those that this version does not know are not found as due.
        let Some((step, next)) = state.steps.at(removal.kind, &removal.step) else { return Ok(()) };
        let (name, place, later) = match batch(state, step, removal).await? {
            Progress::More(place) => (step.name, place, None),
            Progress::Later(place) => (step.name, place, Some(UnixMs(clock.now().0 + LATER_MS))),
            Progress::Done => match next {
                Some(next) => (next.name, Default::default(), None),
                None => return finish(state, removal).await,
            },
        };
        match in_time(store::move_on(db, removal, name, place, later.unwrap_or_else(lease))).await? {
            Some(moved) if later.is_none() && !stop.is_cancelled() => *removal = moved,
            _ => return Ok(()),
        }
    }
    // Others that are due go first.
    let (step, place) = (removal.step.clone(), removal.place.clone());
    in_time(store::move_on(db, removal, &step, place, clock.now())).await.map(|_| ()).map_err(Into::into)
}

async fn batch(state: &RemovalContext, step: &Step, removal: &Removal) -> Result<Progress> {
    failpoint(&format!("removal::before_{}", step.name));
    let progress = step.batch(Arc::clone(&state.engines), removal.subject, removal.place.clone()).await?;
    failpoint(&format!("removal::after_{}", step.name));
    metrics::counter!("headmark_removal_batches_total").increment(1);
    Ok(progress)
}

async fn finish(state: &RemovalContext, removal: &Removal) -> Result<()> {
    failpoint("removal::before_finish");
    let Engines { db, clock, .. } = &*state.engines;
    in_time(store::finish(db, removal, clock.now())).await?;
    Ok(())
}
