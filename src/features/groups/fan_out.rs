//! What puts the messages of groups that deliver by writing into the inboxes of their members:
//! beside the requests, one worker at a time for each group.
//!
//! A message is acknowledged when it is in the group; its job is written in the same transaction.
//! The node that took it fans it out at once, in bounded pages ([`delivery`]); should the node die,
//! others find the group by its jobs and go on where the last page ended.
//!
//! Groups are served first come, first served. After [`PAGES_PER_TURN`] pages a group goes back to
//! the end of the queue, so that a large one does not keep small ones waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::delivery::{self, Moved};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::Error;
use crate::base::ids::GroupId;
use crate::db::{Db, in_time};
use crate::engine::guard::{Guard, Trust};
use crate::engine::lanes::{self, AfterCommit, Lanes, Queued, Rows};
use crate::failpoint;
use crate::features::groups::rows::GroupRows;

/// How many groups a node fans out at once.
const WORKERS: usize = 2;

/// How many pages a worker takes for a group before it is the next group's turn.
const PAGES_PER_TURN: u32 = 12;

/// How many pages of a group are under way at once: the next ones are read while the first commits.
const PAGES_AHEAD: usize = 3;

/// How many groups may wait for a worker. Beyond it they are found by their jobs.
const MAX_WAITING: usize = 100_000;

/// How often a node looks for groups that nobody fans out, how many it takes at once, and for how
/// long a group must have stood still.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const MAX_FOUND: i64 = 1000;
const STILL_MS: i64 = 2000;

/// How long a worker waits after a failure before it takes another group.
const PAUSE: Duration = Duration::from_millis(200);

/// A group that is to be fanned out.
#[derive(Debug)]
struct QueuedGroup {
    /// Since when the oldest of what is left waits; never later than it does.
    since: UnixMs,
    /// Since when something waits that came after that.
    newer: Option<UnixMs>,
    /// Whether a worker has it in hand …
    busy: bool,
    /// … and something came meanwhile, which the worker may not have seen.
    again: bool,
}

impl QueuedGroup {
    fn new(since: UnixMs) -> Self {
        Self { since, newer: None, busy: false, again: false }
    }
}

/// What became of a group's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Nothing is left, or another node goes on.
    Over,
    /// There is more to do.
    More,
}

#[derive(Debug, Default)]
struct Queue {
    /// Those that no worker has in hand, in the order in which they are served.
    order: VecDeque<GroupId>,
    groups: HashMap<GroupId, QueuedGroup>,
}

/// The groups that are to be fanned out.
#[derive(Debug, Default)]
pub struct FanOut {
    queue: Mutex<Queue>,
    more: Notify,
}

impl AfterCommit for FanOut {
    fn committed(&self, rows: &Rows, now: UnixMs) {
        rows.get::<GroupRows>().with_jobs().for_each(|group| self.nudge(group, now));
    }
}

impl FanOut {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is made in one step, so a poisoned lock guards whole data.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A group has something to be put into inboxes, since this time.
    pub fn nudge(&self, group: GroupId, since: UnixMs) {
        let mut queue = self.queue();
        if let Some(queued) = queue.groups.get_mut(&group) {
            queued.newer = queued.newer.or(Some(since));
            queued.again |= queued.busy;
        } else if queue.order.len() < MAX_WAITING {
            queue.groups.insert(group, QueuedGroup::new(since));
            queue.order.push_back(group);
            self.more.notify_one();
        }
    }

    fn take(&self) -> Option<GroupId> {
        let mut queue = self.queue();
        let group = queue.order.pop_front()?;
        if let Some(queued) = queue.groups.get_mut(&group) {
            queued.busy = true;
        }
        Some(group)
    }

    /// A pass is done: what is left came later.
    fn end_round(&self, group: GroupId) {
        if let Some(queued) = self.queue().groups.get_mut(&group) {
            queued.since = queued.newer.take().unwrap_or(queued.since);
        }
    }

    /// Ends a group's turn. Where there is more to do, it goes to the end of the queue.
    fn end_turn(&self, group: GroupId, turn: Turn) {
        let mut queue = self.queue();
        if let Some(queued) = queue.groups.remove(&group)
            && (queued.again || turn == Turn::More)
        {
            queue.groups.insert(group, QueuedGroup { busy: false, again: false, ..queued });
            queue.order.push_back(group);
        }
        if !queue.order.is_empty() {
            self.more.notify_one();
        }
    }

    /// How many groups wait for a worker.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue().order.len()
    }

    /// For how long the oldest group has waited, or been worked on; 0 where there is none.
    #[must_use]
    pub fn oldest_ms(&self, now: UnixMs) -> i64 {
        let oldest = self.queue().groups.values().map(|queued| queued.since.0).min();
        oldest.map_or(0, |since| (now.0 - since).max(0))
    }
}

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
            Ok(groups) => groups.into_iter().for_each(|(group, since)| state.fan_out.nudge(group, since)),
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

/// A page that is under way.
struct SentPage {
    queued: Queued,
    rows: u64,
    ends_pass: bool,
}

/// Some pages, until nothing is left, or somebody else has taken a page, who then goes on.
async fn deliver(state: &FanOutContext, group: GroupId, stop: &CancellationToken) -> Result<Turn, Error> {
    let (mut sent, mut after) = (VecDeque::new(), None);
    for _ in 0..PAGES_PER_TURN {
        if stop.is_cancelled() {
            break;
        }
        failpoint("fan_out::before_step");
        let Some(page) = in_time(delivery::next_page(&state.db, group, after)).await? else {
            settle(state, group, sent).await?;
            return Ok(Turn::Over);
        };
        after = Some(page.to);
        let rows = page.rows();
        let ends_pass = page.to.delivered > page.from.delivered;
        let queued = state.lanes.queue(lanes::Job { command: Arc::new(page), key: None }).await?;
        sent.push_back(SentPage { queued, rows, ends_pass });
        if sent.len() >= PAGES_AHEAD
            && let Some(first) = sent.pop_front()
            && !take(state, group, first).await?
        {
            return settle(state, group, sent).await;
        }
    }
    settle(state, group, sent).await
}

/// Waits for pages that are under way. The last one tells who goes on: where it was not taken,
/// somebody else.
async fn settle(state: &FanOutContext, group: GroupId, sent: VecDeque<SentPage>) -> Result<Turn, Error> {
    let mut turn = Turn::More;
    for page in sent {
        turn = if take(state, group, page).await? { Turn::More } else { Turn::Over };
    }
    Ok(turn)
}

/// Waits for a page; whether it was still to be done.
async fn take(state: &FanOutContext, group: GroupId, page: SentPage) -> Result<bool, Error> {
    let Moved { moved } = page.queued.answer().await?.value()?;
    if moved {
        if page.ends_pass {
            state.fan_out.end_round(group);
        }
        metrics::counter!("headmark_fan_out_rows_total").increment(page.rows);
        failpoint("fan_out::after_step");
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(id: i64) -> GroupId {
        GroupId::try_from(id).unwrap()
    }

    #[test]
    fn groups_are_served_in_the_order_in_which_they_came() {
        let fan_out = FanOut::default();
        for (at, id) in [9, 3, 7, 3].into_iter().enumerate() {
            fan_out.nudge(group(id), UnixMs(i64::try_from(at).unwrap()));
        }
        assert_eq!((fan_out.waiting(), fan_out.oldest_ms(UnixMs(100))), (3, 100));
        assert_eq!(fan_out.take(), Some(group(9)));
        fan_out.end_turn(group(9), Turn::More);
        assert_eq!(fan_out.oldest_ms(UnixMs(100)), 100, "it keeps its age, not its place");
        assert_eq!([fan_out.take(), fan_out.take(), fan_out.take()], [Some(group(3)), Some(group(7)), Some(group(9))]);
        assert_eq!(fan_out.take(), None, "one worker at a time for each group");
        [3, 7, 9].into_iter().for_each(|id| fan_out.end_turn(group(id), Turn::Over));
        assert_eq!((fan_out.take(), fan_out.oldest_ms(UnixMs(100))), (None, 0));
    }

    #[test]
    fn what_comes_during_a_turn_is_not_lost() {
        let fan_out = FanOut::default();
        fan_out.nudge(group(1), UnixMs(10));
        assert_eq!(fan_out.take(), Some(group(1)));
        fan_out.nudge(group(1), UnixMs(20));
        fan_out.nudge(group(1), UnixMs(30));
        assert_eq!((fan_out.take(), fan_out.oldest_ms(UnixMs(100))), (None, 90));
        fan_out.end_round(group(1));
        fan_out.end_turn(group(1), Turn::Over);
        assert_eq!(fan_out.oldest_ms(UnixMs(100)), 80, "that of what is left");
        assert_eq!(fan_out.take(), Some(group(1)));
        fan_out.end_turn(group(1), Turn::Over);
        assert_eq!(fan_out.take(), None);
    }
}
