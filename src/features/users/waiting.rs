//! The users whose day is yet to be noted.

use std::collections::{HashMap, VecDeque};

use crate::base::id_hash::IdHash;
use crate::base::ids::UserId;

/// How many wait, at most. The day of others is noted at a later request.
const MAX_WAITING: usize = 100_000;

/// Each user with the last day on which it was seen, first come, first served. A user is here until its
/// day is noted.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    days: HashMap<UserId, i64, IdHash>,
    /// Those of whom nobody has begun to note the day.
    order: VecDeque<UserId>,
}

impl Waiting {
    /// Takes in a user who was seen on this day, if there is room.
    pub(super) fn add(&mut self, user: UserId, day: i64) {
        if let Some(known) = self.days.get_mut(&user) {
            *known = day.max(*known);
        } else if self.days.len() < MAX_WAITING {
            self.days.insert(user, day);
            self.order.push_back(user);
        }
    }

    /// Whether the user waits, or is being noted, as seen on this day or a later one.
    pub(super) fn has(&self, user: UserId, day: i64) -> bool {
        self.days.get(&user).is_some_and(|known| *known >= day)
    }

    /// Some of them, which stay until [`Self::end`] or [`Self::put_back`].
    pub(super) fn take(&mut self, most: usize) -> Vec<(UserId, i64)> {
        let users = self.order.drain(..most.min(self.order.len()));
        users.filter_map(|user| Some((user, *self.days.get(&user)?))).collect()
    }

    /// This day of the user is noted, or cannot be. A later one is yet to be.
    pub(super) fn end(&mut self, user: UserId, day: i64) {
        if self.has(user, day.saturating_add(1)) {
            self.order.push_back(user);
        } else {
            self.days.remove(&user);
        }
    }

    /// They could not be noted yet.
    pub(super) fn put_back(&mut self, users: &[(UserId, i64)]) {
        users.iter().rev().for_each(|(user, _)| self.order.push_front(*user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    #[test]
    fn who_waits_is_noted_in_turn_and_for_the_last_day() {
        let mut waiting = Waiting::default();
        waiting.add(user(1), 5);
        waiting.add(user(2), 5);
        waiting.add(user(1), 6);
        let first = waiting.take(1);
        assert_eq!(first, [(user(1), 6)]);
        waiting.put_back(&first);
        assert_eq!(waiting.take(9), [(user(1), 6), (user(2), 5)]);
        assert!(waiting.take(9).is_empty());
        assert!(waiting.has(user(2), 5) && !waiting.has(user(2), 6), "until it is noted");
        waiting.add(user(2), 6);
        waiting.end(user(1), 6);
        waiting.end(user(2), 5);
        assert!(!waiting.has(user(1), 0));
        assert_eq!(waiting.take(9), [(user(2), 6)], "the later day came meanwhile");
    }

    #[test]
    fn no_more_wait_than_may() {
        let mut waiting = Waiting::default();
        let most = i64::try_from(MAX_WAITING).unwrap();
        (1..=most + 1).for_each(|id| waiting.add(user(id), 1));
        waiting.add(user(1), 2);
        assert!(waiting.has(user(1), 2) && waiting.has(user(most), 1) && !waiting.has(user(most + 1), 1));
        assert_eq!(waiting.take(usize::MAX).len(), MAX_WAITING);
    }
}
