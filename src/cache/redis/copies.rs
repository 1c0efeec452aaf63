//! Copies of entries that this node has read, with what readers keep with them.
//!
//! A copy is put into a place that was made before Redis was asked. Word of a change takes the
//! place away. So what was read before the change finds no place when it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::ids::UserId;
use crate::base::recent::Recent;
use crate::cache::{Derived, Entry, KEPT_BYTES, ReadEntry};

/// How long a copy may be shown, in nanoseconds since the connection was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// From when on it ends soon.
    pub(super) soon: u64,
    /// When the entry ends in Redis, which may tell of it later.
    pub(super) end: u64,
}

/// A place for a copy.
#[derive(Debug, Clone)]
struct Place {
    /// Tells it from any other place.
    number: u64,
    /// The connection over which Redis tells of a change.
    connection: u64,
    /// The epoch in which the copy was a hit.
    epoch: i64,
    /// None until Redis has answered.
    entry: Option<Arc<ReadEntry>>,
    life: Life,
}

impl Place {
    fn weight(&self) -> usize {
        KEPT_BYTES + self.entry.as_ref().map_or(0, |entry| entry.size_bytes())
    }
}

/// A copy that may be shown.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) entry: Arc<ReadEntry>,
    pub(super) ends_soon: u64,
}

/// A read that is about to ask Redis.
#[derive(Debug)]
pub(super) struct Reading {
    place: u64,
    /// What was read of the user before.
    before: Option<Arc<ReadEntry>>,
}

/// Those of a node.
#[derive(Debug)]
pub(super) struct Copies {
    places: Recent<Place>,
    made: AtomicU64,
}

impl Copies {
    /// Of no more than so many bytes.
    pub(super) fn new(capacity_bytes: u64) -> Self {
        Self { places: Recent::new(usize::try_from(capacity_bytes).unwrap_or(usize::MAX)), made: AtomicU64::new(0) }
    }

    /// A user's, of this epoch, of which Redis would have told over this connection if it had
    /// changed.
    pub(super) fn get(&self, user: UserId, epoch: i64, connection: u64, now: u64) -> Option<Copy> {
        let place = self.places.get(user)?;
        let is_right = place.connection == connection && place.epoch == epoch && now < place.life.end;
        let entry = if is_right { place.entry } else { None };
        entry.map(|entry| Copy { entry, ends_soon: place.life.soon })
    }

    /// From then on the user's copy ends soon.
    pub(super) fn ends_soon(&self, user: UserId, from: u64) {
        self.places.change(user, |place| {
            place.life.soon = from;
            place.weight()
        });
    }

    /// Makes a place for what Redis is asked next over this connection. Readers of one user share
    /// it.
    pub(super) fn begin(&self, user: UserId, connection: u64) -> Reading {
        let found = self.places.get(user);
        let before = found.as_ref().and_then(|place| place.entry.clone());
        if let Some(place) = found.filter(|place| place.connection == connection) {
            return Reading { place: place.number, before };
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let place = Place { number, connection, epoch: 0, entry: None, life: Life { soon: 0, end: 0 } };
        let weight = place.weight();
        self.places.insert(user, place, weight);
        Reading { place: number, before }
    }

    /// Puts a hit of this epoch into the place that was made for it, if
    /// that is still there. A hit that says the same as what was read before is that entry, with all
    /// that is kept with it.
    pub(super) fn take(&self, user: UserId, epoch: i64, reading: Reading, entry: Entry, life: Life) -> Arc<ReadEntry> {
        let before = reading.before.filter(|before| ***before == entry);
        let entry = before.unwrap_or_else(|| Arc::new(entry.into()));
        self.places.change(user, |place| {
            if place.number == reading.place {
                (place.epoch, place.entry, place.life) = (epoch, Some(Arc::clone(&entry)), life);
            }
            place.weight()
        });
        entry
    }

    /// Keeps what a reader made of an entry of which there is a copy.
    pub(super) fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        self.places.change(user, |place| {
            if let Some(copy) = place.entry.as_ref().filter(|copy| Arc::ptr_eq(copy, entry)) {
                copy.keep(derived);
            }
            place.weight()
        });
    }

    /// A user's entry changes.
    pub(super) fn remove(&self, user: UserId) {
        self.places.remove(user);
    }

    /// These users' entries change.
    pub(super) fn remove_all(&self, users: impl Iterator<Item = UserId>) {
        users.for_each(|user| self.remove(user));
    }

    /// Any entry may have changed.
    pub(super) fn clear(&self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life = Life { soon: 5, end: 10 };

    fn user() -> UserId {
        UserId::try_from(7).unwrap()
    }

    fn entry(revision: i64) -> Entry {
        Entry { revision, ..Entry::default() }
    }

    fn copies() -> Copies {
        Copies::new(1 << 20)
    }

    #[test]
    fn a_copy_is_of_its_epoch_and_its_connection() {
        let copies = copies();
        let reading = copies.begin(user(), 1);
        assert!(copies.get(user(), 0, 1, 9).is_none(), "nothing was read yet");
        let read = copies.take(user(), 3, reading, entry(8), LIFE);
        assert!(copies.get(user(), 3, 1, 9).is_some_and(|copy| Arc::ptr_eq(&copy.entry, &read)));
        assert!(copies.get(user(), 3, 1, 10).is_none(), "it has ended in Redis");
        assert!(copies.get(user(), 4, 1, 9).or(copies.get(user(), 3, 2, 9)).is_none());
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept() {
        let copies = copies();
        for forget in [Copies::clear, |copies: &Copies| copies.remove(user())] {
            let reading = copies.begin(user(), 1);
            forget(&copies);
            assert_eq!(copies.take(user(), 0, reading, entry(8), LIFE).revision, 8, "its reader is answered");
            assert!(copies.get(user(), 0, 1, 9).is_none());
        }
        let early = copies.begin(user(), 1);
        copies.remove(user());
        let late = copies.begin(user(), 1);
        copies.take(user(), 0, early, entry(8), LIFE);
        assert!(copies.get(user(), 0, 1, 9).is_none(), "the place is that of a later reader");
        copies.take(user(), 0, late, entry(9), LIFE);
        assert_eq!(copies.get(user(), 0, 1, 9).map(|copy| copy.entry.revision), Some(9));
    }

    #[test]
    fn an_entry_that_says_the_same_is_the_same() {
        let copies = copies();
        let first = copies.take(user(), 0, copies.begin(user(), 1), entry(8), LIFE);
        let again = copies.take(user(), 0, copies.begin(user(), 2), entry(8), LIFE);
        assert!(Arc::ptr_eq(&first, &again));
        let changed = copies.take(user(), 0, copies.begin(user(), 2), entry(9), LIFE);
        assert!(!Arc::ptr_eq(&first, &changed));
    }
}
