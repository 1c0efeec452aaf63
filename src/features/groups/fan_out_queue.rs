//! The groups that wait to be fanned out, first come, first served.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::rows::GroupRows;
use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;
use crate::engine::lanes::{AfterCommit, Rows};

/// How many groups may wait for a worker. Beyond it they are found by their jobs.
const MAX_WAITING: usize = 100_000;

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
pub(super) enum Turn {
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
    pub(super) more: Notify,
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

    /// The group that is next; nobody else gets it until its turn ends.
    pub(super) fn take(&self) -> Option<GroupId> {
        let mut queue = self.queue();
        let group = queue.order.pop_front()?;
        if let Some(queued) = queue.groups.get_mut(&group) {
            queued.busy = true;
        }
        Some(group)
    }

    /// A pass is done: what is left came later.
    pub(super) fn end_round(&self, group: GroupId) {
        if let Some(queued) = self.queue().groups.get_mut(&group) {
            queued.since = queued.newer.take().unwrap_or(queued.since);
        }
    }

    /// Ends a group's turn. Where there is more to do, it goes to the end of the queue.
    pub(super) fn end_turn(&self, group: GroupId, turn: Turn) {
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

    /// The age of the oldest group that waits or is worked on, in milliseconds; 0 if there is none.
    #[must_use]
    pub fn oldest_ms(&self, now: UnixMs) -> i64 {
        let oldest = self.queue().groups.values().map(|queued| queued.since.0).min();
        oldest.map_or(0, |since| (now.0 - since).max(0))
    }
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
