//! What puts the messages of groups that deliver by writing into the inboxes of their members: beside the requests, one worker at a time for each group.
//!
//! A message is acknowledged when it is in the group; its task is written in the same transaction. The node that took it fans it out at once, in bounded steps
//! ([`delivery`]); should the node die, others find the group by its tasks and go on where the last step ended.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::delivery::{self, Moved};
use crate::clock::UnixMs;
use crate::error::{Error, Fault};
use crate::failpoint;
use crate::guard::Trust;
use crate::ids::GroupId;
use crate::lane::Job;
use crate::state::AppState;

/// How many groups a node fans out at once.
const WORKERS: usize = 2;

/// How many groups may wait for a worker. Beyond it they are found by their tasks.
const MAX_WAITING: usize = 100_000;

/// How often a node looks for groups that nobody fans out, how many it takes at once, and for how long a group must have stood still.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const MAX_FOUND: i64 = 1000;
const STILL_MS: i64 = 2000;

/// How long a worker waits after a failure before it takes another group.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one read of SQL may take.
const MAX_SQL_READ: Duration = Duration::from_secs(4);

#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeSet<GroupId>,
    /// Groups that a worker has in hand.
    busy: HashSet<GroupId>,
}

/// The groups that are to be fanned out.
#[derive(Debug, Default)]
pub struct FanOut {
    queue: Mutex<Queue>,
    more: Notify,
}

impl FanOut {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is made in one step, so a poisoned lock guards whole data.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A group has something to be put into inboxes.
    pub fn nudge(&self, group: GroupId) {
        let mut queue = self.queue();
        if queue.waiting.len() < MAX_WAITING {
            queue.waiting.insert(group);
            self.more.notify_one();
        }
    }

    fn take(&self) -> Option<GroupId> {
        let mut queue = self.queue();
        let group = queue.waiting.iter().find(|group| !queue.busy.contains(group)).copied()?;
        queue.waiting.remove(&group);
        queue.busy.insert(group);
        Some(group)
    }

    fn done(&self, group: GroupId) {
        let mut queue = self.queue();
        queue.busy.remove(&group);
        if !queue.waiting.is_empty() {
            self.more.notify_one();
        }
    }

    /// How many groups wait for a worker.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue().waiting.len()
    }
}

/// Fans out until told to stop.
pub(crate) async fn run(state: AppState, stop: CancellationToken) {
    let workers = (0..WORKERS).map(|_| work(state.clone(), stop.clone()));
    tokio::join!(futures_util::future::join_all(workers), look(state.clone(), stop.clone()));
}

/// Finds groups that stand still: those of a node that died, or that did not fit into a queue.
async fn look(state: AppState, stop: CancellationToken) {
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        if state.guard.trust() == Trust::Unsure {
            continue;
        }
        let before = UnixMs(state.clock.now().0 - STILL_MS);
        let found = tokio::time::timeout(MAX_SQL_READ, delivery::behind(&state.db, before, MAX_FOUND)).await;
        match found.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(groups) => groups.into_iter().for_each(|group| state.fan_out.nudge(group)),
            Err(error) => tracing::debug!(%error, "cannot look for groups to fan out; the next look tries again"),
        }
    }
}

async fn work(state: AppState, stop: CancellationToken) {
    loop {
        let Some(group) = state.fan_out.take() else {
            tokio::select! {
                () = stop.cancelled() => return,
                () = state.fan_out.more.notified() => {}
                // A notice may have gone to a worker that found nothing.
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            continue;
        };
        let delivered = deliver(&state, group, &stop).await;
        state.fan_out.done(group);
        if let Err(error) = delivered {
            // The tasks are durable: whoever looks next goes on.
            tracing::debug!(%group, ?error, "could not fan out");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        if stop.is_cancelled() {
            return;
        }
    }
}

/// Step after step, until nothing is left, or somebody else has taken a step, who then goes on.
async fn deliver(state: &AppState, group: GroupId, stop: &CancellationToken) -> Result<(), Error> {
    while !stop.is_cancelled() {
        let step = tokio::time::timeout(MAX_SQL_READ, delivery::next_step(&state.db, group)).await;
        let Some(step) = step.unwrap_or(Err(sqlx::Error::PoolTimedOut))? else { return Ok(()) };
        let rows = u64::try_from(step.items.len()).unwrap_or_default();
        let answer = state.lanes.submit(Job { command: Arc::new(step), key: None }).await?;
        let Moved { moved } = serde_json::from_str(&answer.body).map_err(|error| Fault::Bug(error.to_string()))?;
        if !moved {
            return Ok(());
        }
        metrics::counter!("headmark_fan_out_rows_total").increment(rows);
        failpoint("fan_out::after_step");
    }
    Ok(())
}
