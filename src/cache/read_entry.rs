//! An entry as readers share it, with what they made of it.
//!
//! The cache does not look into what readers keep here; it only counts how much memory that takes.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Parts;

/// A user's version number: counts the changes of the user's own rows, never goes back.
pub type Revision = i64;

/// One user's state as of one revision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// The revision that the parts show.
    pub revision: Revision,
    /// All parts of this user's own state.
    pub parts: Parts,
}

/// What a cache takes for an entry besides the entry itself: keys, links, counts.
pub(crate) const KEPT_BYTES: usize = 256;

/// What readers made of an entry. It is right for as long as the entry is the same.
pub trait Derived: Any + fmt::Debug + Send + Sync {
    /// How much memory it takes, in bytes.
    fn size_bytes(&self) -> usize;
}

/// An entry that was read. It never changes: a change of the user makes another one, with which
/// nothing is kept yet.
#[derive(Debug)]
pub struct ReadEntry {
    entry: Entry,
    derived: Mutex<Option<Arc<dyn Derived>>>,
}

impl ReadEntry {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Derived>>> {
        self.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was kept with it last.
    #[must_use]
    pub fn derived<T: Derived>(&self) -> Option<Arc<T>> {
        let derived: Arc<dyn Any + Send + Sync> = Arc::clone(self.lock().as_ref()?) as _;
        derived.downcast().ok()
    }

    /// The same, whatever it is.
    pub(super) fn all_derived(&self) -> Option<Arc<dyn Derived>> {
        self.lock().clone()
    }

    /// Keeps this instead. Only the cache that holds the entry does so, as it counts what it holds.
    pub(super) fn keep(&self, derived: Arc<dyn Derived>) {
        *self.lock() = Some(derived);
    }

    /// How much memory it takes with what is kept, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let derived = self.lock().as_ref().map_or(0, |derived| derived.size_bytes());
        size_of::<Self>() + self.entry.parts.size_bytes() + derived
    }

    /// How much memory it takes as a weight, for caches that are bounded by it.
    pub(crate) fn weight<K>(_: &K, entry: &Arc<Self>) -> u32 {
        u32::try_from(KEPT_BYTES + entry.size_bytes()).unwrap_or(u32::MAX)
    }

    /// Changes what a cache shows, without a copy if nobody reads it.
    pub(super) fn change(this: &mut Arc<Self>, change: impl FnOnce(&mut Entry)) {
        let mut entry = match Arc::get_mut(this) {
            Some(read) => std::mem::take(&mut read.entry),
            None => this.entry.clone(),
        };
        change(&mut entry);
        *this = Arc::new(entry.into());
    }
}

impl From<Entry> for ReadEntry {
    fn from(entry: Entry) -> Self {
        Self { entry, derived: Mutex::default() }
    }
}

impl Deref for ReadEntry {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

impl PartialEq for ReadEntry {
    fn eq(&self, other: &Self) -> bool {
        self.entry == other.entry
    }
}

impl Eq for ReadEntry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Sum(usize);

    impl Derived for Sum {
        fn size_bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn what_is_kept_goes_with_a_change() {
        let mut shown = Arc::new(ReadEntry::from(Entry::default()));
        let bare = shown.size_bytes();
        for is_read in [false, true] {
            shown.keep(Arc::new(Sum(100)));
            assert_eq!((shown.derived::<Sum>().unwrap().0, shown.size_bytes()), (100, bare + 100));
            let reader = is_read.then(|| Arc::clone(&shown));
            let before = shown.revision;
            ReadEntry::change(&mut shown, |entry| entry.revision += 1);
            assert_eq!((shown.revision, shown.derived::<Sum>().is_none()), (before + 1, true));
            if let Some(reader) = reader {
                assert_eq!((reader.revision, reader.derived::<Sum>().is_some()), (before, true), "what is being read stays as it is");
            }
        }
    }
}
