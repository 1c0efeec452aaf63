//! What was used recently, by user: a map that holds no more than so much.
//!
//! Each shard has two generations. What is put in or used goes into the young one. When that is
//! full, it becomes the old one, and what nobody has used since is gone. So whatever was used while
//! half of the room filled up is there. Neither a use nor an eviction orders anything.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::id_hash::IdHash;
use super::ids::UserId;

/// Independent parts of the map, each with its own lock.
const SHARDS: usize = 64;

/// A value and what it weighs.
#[derive(Debug)]
struct Kept<V> {
    value: V,
    weight: usize,
}

/// A part of the map.
#[derive(Debug)]
struct Shard<V> {
    young: HashMap<UserId, Kept<V>, IdHash>,
    old: HashMap<UserId, Kept<V>, IdHash>,
    /// What the young ones weigh together.
    young_weight: usize,
}

impl<V> Default for Shard<V> {
    fn default() -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), young_weight: 0 }
    }
}

impl<V> Shard<V> {
    fn remove(&mut self, user: UserId) -> Option<Kept<V>> {
        if let Some(kept) = self.young.remove(&user) {
            self.young_weight -= kept.weight.min(self.young_weight);
            return Some(kept);
        }
        self.old.remove(&user)
    }

    /// Puts a user's value in, who has none here, so that a generation is no heavier than `room`.
    fn insert(&mut self, user: UserId, kept: Kept<V>, room: usize) {
        if kept.weight > room {
            return;
        }
        if self.young_weight + kept.weight > room {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
        self.young_weight += kept.weight;
        self.young.insert(user, kept);
    }
}

/// The map. What its values weigh is said as they are put in.
#[derive(Debug)]
pub struct Recent<V> {
    shards: Vec<Mutex<Shard<V>>>,
    hash: IdHash,
    /// What a generation of a shard may weigh.
    room: usize,
}

impl<V: Clone> Recent<V> {
    /// Of so much weight.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect(), hash: IdHash::default(), room: capacity / SHARDS / 2 }
    }

    /// Every change below is made in one step, so a poisoned lock guards whole data.
    fn shard(&self, user: UserId) -> Option<MutexGuard<'_, Shard<V>>> {
        let hash = usize::try_from(self.hash.hash_one(user) >> 32).unwrap_or(0);
        Some(self.shards.get(hash % SHARDS)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A user's value, which stays for being asked for.
    #[must_use]
    pub fn get(&self, user: UserId) -> Option<V> {
        let mut shard = self.shard(user)?;
        if let Some(kept) = shard.young.get(&user) {
            return Some(kept.value.clone());
        }
        let kept = shard.old.remove(&user)?;
        let value = kept.value.clone();
        shard.insert(user, kept, self.room);
        Some(value)
    }

    /// Keeps a value for a user, instead of the one there is.
    pub fn insert(&self, user: UserId, value: V, weight: usize) {
        if let Some(mut shard) = self.shard(user) {
            shard.remove(user);
            shard.insert(user, Kept { value, weight }, self.room);
        }
    }

    /// Keeps nothing for a user.
    pub fn remove(&self, user: UserId) {
        if let Some(mut shard) = self.shard(user) {
            shard.remove(user);
        }
    }

    /// Keeps nothing.
    pub fn clear(&self) {
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = Shard::default();
        }
    }

    /// Changes a user's value, and takes what it weighs from then on.
    pub fn change(&self, user: UserId, change: impl FnOnce(&mut V) -> usize) {
        if let Some(mut shard) = self.shard(user)
            && let Some(mut kept) = shard.remove(user)
        {
            kept.weight = change(&mut kept.value);
            shard.insert(user, kept, self.room);
        }
    }

    /// Those whose values are so, in no order.
    #[must_use]
    pub fn users(&self, are: impl Fn(&V) -> bool) -> Vec<UserId> {
        let mut users = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = shard.young.iter().chain(&shard.old).filter(|(_, kept)| are(&kept.value));
            users.extend(kept.map(|(user, _)| *user));
        }
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    impl<V: Clone> Recent<V> {
        /// What all values weigh, counted again.
        fn weigh(&self) -> usize {
            let weigh = |shard: &Shard<V>| {
                let sum = |of: &HashMap<_, Kept<V>, _>| of.values().map(|kept| kept.weight).sum::<usize>();
                assert_eq!(shard.young_weight, sum(&shard.young), "what was counted as it changed");
                sum(&shard.young) + sum(&shard.old)
            };
            self.shards.iter().map(|shard| weigh(&shard.lock().unwrap())).sum()
        }
    }

    #[test]
    fn it_holds_what_was_used_and_no_more_than_its_room() {
        const CAPACITY: usize = 64_000;
        let recent = Recent::new(CAPACITY);
        for id in 1..=100_000 {
            recent.insert(user(id), id, 1 + usize::try_from(id % 7).unwrap());
            if id % 10 == 0 {
                assert_eq!(recent.get(user(10)), Some(10), "after {id}");
            }
        }
        assert!((CAPACITY / 4..=CAPACITY).contains(&recent.weigh()), "{}", recent.weigh());
        assert_eq!((recent.get(user(11)), recent.get(user(100_000))), (None, Some(100_000)));
    }

    #[test]
    fn a_new_value_stands_for_the_old_one() {
        let recent = Recent::new(64_000);
        for (value, weight) in [(1, 400), (2, 100), (3, 499)] {
            recent.insert(user(7), value, weight);
            assert_eq!((recent.get(user(7)), recent.weigh()), (Some(value), weight));
        }
        assert_eq!((recent.users(|value| *value == 3), recent.users(|value| *value == 2)), (vec![user(7)], vec![]));
        recent.change(user(7), |value| {
            *value += 1;
            3
        });
        assert_eq!((recent.get(user(7)), recent.weigh()), (Some(4), 3));
        recent.change(user(8), |_| panic!("nothing is kept for this user"));
        recent.insert(user(8), 5, 10);
        recent.remove(user(8));
        assert_eq!((recent.get(user(8)), recent.weigh()), (None, 3));
        recent.insert(user(7), 4, 501);
        assert_eq!((recent.get(user(7)), recent.weigh()), (None, 0), "what is larger than all room is not kept, nor what it replaced");
        recent.insert(user(7), 4, 10);
        recent.clear();
        assert_eq!((recent.get(user(7)), recent.weigh()), (None, 0));
    }
}
