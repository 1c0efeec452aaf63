//! What puts the messages of groups that deliver by writing into the inboxes of their members:
//! beside the requests, one worker at a time for each group.
//!
//! A message is acknowledged when it is in the group; its job is written in the same transaction.
//! The node that took it fans it out at once, in bounded pages ([`delivery`]); should the node die,
//! others find the group by its jobs and go on where the last page ended.
//!
//! Groups are served first come, first served. After [`PAGES_PER_TURN`] pages a group goes back to
//! the end of the queue, so that a large one does not keep small ones waiting.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::delivery;
use super::fan_out_queue::{FanOut, Turn};
use super::pages::Step;
use super::under_way::UnderWay;
use crate::base::abandoned::Abandoned;
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::Error;
use crate::base::ids::GroupId;
use crate::db::{Db, in_time};
use crate::engine::guard::{Guard, Trust};
use crate::engine::lanes::Lanes;
use crate::failpoint;

/// How many groups a node fans out at once.
const WORKERS: usize = 2;

/// How many pages a worker takes for a group before it is the next group's turn.
const PAGES_PER_TURN: u32 = 12;

/// How often a node looks for groups that nobody fans out, how many it takes at once, and for how
/// long a group must have stood still.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const MAX_FOUND: i64 = 1000;
const STILL_MS: i64 = 2000;

/// How long a worker waits after a failure before it takes another group.
const PAUSE: Duration = Duration::from_millis(200);

/// What delivers.
#[derive(Debug)]
pub struct FanOutContext {
    pub lanes: Lanes,
    pub db: Db,
    pub guard: Arc<Guard>,
    /// The groups that wait.
    pub fan_out: Arc<FanOut>,
    pub clock: Clock,
}

/// Fans out until told to stop.
pub(crate) async fn run(state: Arc<FanOutContext>, stop: CancellationToken) {
    let workers = (0..WORKERS).map(|_| work(state.clone(), stop.clone()));
    tokio::join!(futures_util::future::join_all(workers), look(state.clone(), stop.clone()));
}

/// Finds groups that stand still: those of a node that died, or that did not fit into a queue.
async fn look(state: Arc<FanOutContext>, stop: CancellationToken) {
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut abandoned = Abandoned::default();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        if state.guard.trust() == Trust::Unsure {
            continue;
        }
        let before = UnixMs(state.clock.now().0 - STILL_MS);
        match in_time(delivery::behind(&state.db, before, MAX_FOUND)).await {
            Ok(groups) => {
                let still = abandoned.ended(groups, |found| *found, before, Instant::now());
                // Whose clock was fast has left no time that could be told.
                still.into_iter().for_each(|(group, since)| state.fan_out.nudge(group, since.min(before)));
            }
            Err(error) => tracing::debug!(%error, "cannot look for groups to fan out; the next look tries again"),
        }
    }
}

async fn work(state: Arc<FanOutContext>, stop: CancellationToken) {
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
        let turn = deliver(&state, group, &stop).await;
        // After a failure the group keeps its age, but not its place.
        state.fan_out.end_turn(group, *turn.as_ref().unwrap_or(&Turn::More));
        if let Err(error) = turn {
            tracing::debug!(%group, ?error, "could not fan out; it is tried again");
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

/// Some pages, until nothing is left, or somebody else has taken a page, who then goes on.
async fn deliver(state: &FanOutContext, group: GroupId, stop: &CancellationToken) -> Result<Turn, Error> {
    let (mut under_way, mut after) = (UnderWay::new(&state.lanes, &state.fan_out, group), None);
    for _ in 0..PAGES_PER_TURN {
        if stop.is_cancelled() {
            break;
        }
        failpoint("fan_out::before_step");
        let Some(page) = in_time(delivery::next_page(&state.db, group, after)).await? else {
            return Ok(if under_way.end().await? == Step::Early { Turn::More } else { Turn::Over });
        };
        after = Some(page.to);
        if !under_way.send(page).await? {
            break;
        }
    }
    Ok(if under_way.end().await? == Step::Late { Turn::Over } else { Turn::More })
}
