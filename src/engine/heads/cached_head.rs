//! The head of one shared stream in memory: written by anyone who hears of a change, read by
//! everybody who counts, without a lock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::base::clock::UnixMs;
use crate::engine::marks::{Intervals, Kind, Numbers, Stream, mention_floor, numbers, other_changes, unread};

/// In place of a version: nothing was read yet.
const NOT_LOADED: i64 = -1;

/// Which positions of a stream do not count as the others.
#[derive(Debug, Default)]
struct Special {
    /// The head that it belongs to.
    head: i64,
    /// What was taken back.
    retracted: Intervals,
    floor: i64,
    /// What mentions all.
    mention_all: Intervals,
    /// Of a group: whether it is deleted.
    is_deleted: bool,
    other_changes: i64,
}

/// What is needed of a head beside what its rows tell.
#[derive(Debug)]
pub struct AboveFloor {
    pub head: i64,
    /// What mentions all, above the position from which the rows must tell.
    pub mention_all: Intervals,
    /// Up to where the rows must tell that.
    pub mention_floor: i64,
    /// See [`other_changes`]. Of the same moment as the head.
    pub other_changes: i64,
}

/// The head of one shared stream.
#[derive(Debug)]
pub struct CachedHead {
    /// Written last and read first: anyone who sees a version sees a head that is at least as new.
    version: AtomicI64,
    head: AtomicI64,
    /// None in most streams, which have no such positions.
    special: ArcSwapOption<Special>,
    /// When the head was raised last.
    at: AtomicI64,
    /// Held while it is written. What was told of it while it had no head.
    told: Mutex<Option<Stream>>,
}

impl Default for CachedHead {
    fn default() -> Self {
        Self {
            version: AtomicI64::new(NOT_LOADED),
            head: AtomicI64::new(0),
            special: ArcSwapOption::empty(),
            at: AtomicI64::new(0),
            told: Mutex::default(),
        }
    }
}

impl CachedHead {
    /// Takes in what somebody changed, if it is newer than what is here. Whether it was. Where there is no head,
    /// it waits for a read: before all was forgotten, others may have changed the stream further.
    pub(super) fn change(&self, kind: Kind, stream: &Stream) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_loaded() {
            return self.set(kind, stream);
        }
        let is_newer = told.as_ref().is_none_or(|told| told.version < stream.version);
        if is_newer {
            *told = Some(stream.clone());
        }
        is_newer
    }

    /// Takes in what was read, or what was told meanwhile if that is newer; nothing if the read is outdated.
    pub(super) fn load(&self, kind: Kind, read: &Stream, is_current: impl FnOnce() -> bool) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if is_current() {
            let told = told.take().filter(|told| told.version > read.version);
            self.set(kind, told.as_ref().unwrap_or(read));
        }
    }

    fn set(&self, kind: Kind, stream: &Stream) -> bool {
        if stream.version <= self.version.load(Ordering::Acquire) {
            return false;
        }
        let is_deleted = kind == Kind::Group && stream.is_deleted_group();
        if is_deleted || !stream.retracted.is_empty() || stream.floor > 0 || !stream.mention_all.is_empty() {
            let (retracted, floor, mention_all) = (stream.retracted.clone(), stream.floor, stream.mention_all.clone());
            let other_changes = other_changes(stream);
            self.special.store(Some(Arc::new(Special { head: stream.head, retracted, floor, mention_all, is_deleted, other_changes })));
        } else if self.special.load().is_some() {
            // A recount has found that nothing was taken back.
            self.special.store(None);
        }
        self.at.store(stream.at.0, Ordering::Release);
        self.head.store(stream.head, Ordering::Release);
        self.version.store(stream.version, Ordering::Release);
        true
    }

    /// It is to be read again.
    pub(super) fn forget(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        *told = None;
        self.version.store(NOT_LOADED, Ordering::Release);
    }

    /// Whether it has a head.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.loaded_version().is_some()
    }

    /// Its version, if it has a head. To be read before the head.
    #[must_use]
    pub fn loaded_version(&self) -> Option<i64> {
        Some(self.version()).filter(|version| *version > NOT_LOADED)
    }

    /// Raised by each change. To be read before the head.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version.load(Ordering::Acquire)
    }

    /// How many things ever happened in the stream.
    #[must_use]
    pub fn head(&self) -> i64 {
        self.head.load(Ordering::Acquire)
    }

    /// When the head was raised last.
    #[must_use]
    pub fn at(&self) -> UnixMs {
        UnixMs(self.at.load(Ordering::Acquire))
    }

    /// What lies above a mark, less what was taken back and what is in `own`. None where the mark
    /// lies so far back that the rows must be asked what was taken back since.
    #[must_use]
    pub fn unread(&self, mark: i64, own: &Intervals) -> Option<i64> {
        let head = self.head();
        if head <= mark {
            return Some(0);
        }
        let special = self.special.load();
        match special.as_ref() {
            None => Some(unread(head, mark, &Intervals::default(), own)),
            Some(gone) if mark < gone.floor => None,
            Some(gone) => Some(unread(head, mark, &gone.retracted, own)),
        }
    }

    /// The numbers of a user with this mark, for whom what is in `own` does not count, and whom
    /// what is in `named` mentions. None as for [`Self::unread`].
    #[must_use]
    pub fn numbers(&self, mark: i64, own: &Intervals, named: &Intervals) -> Option<Numbers> {
        let head = self.head();
        let special = self.special.load();
        match special.as_ref() {
            _ if head <= mark => Some(Numbers::default()),
            None => Some(numbers(head, mark, own, named)),
            Some(special) if mark < special.floor || mark < mention_floor(&special.mention_all) => None,
            Some(special) => Some(numbers(head, mark, &special.retracted.with(own), &special.mention_all.with(named))),
        }
    }

    /// What is needed of it where the rows tell what does not count; None where it tells all by itself.
    #[must_use]
    pub fn above_floor(&self) -> Option<AboveFloor> {
        let special = self.special.load();
        // The head beside it may be of another moment: then what is read up to it would lack what these changes took
        // away.
        let Special { head, mention_all, other_changes, .. } = special.as_deref()?;
        let (mention_all, mention_floor) = (mention_all.clone(), mention_floor(mention_all));
        Some(AboveFloor { head: *head, mention_all, mention_floor, other_changes: *other_changes })
    }

    /// Of a group: whether it is deleted, so that no list shows it.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.special.load().as_ref().is_some_and(|special| special.is_deleted)
    }

    /// Up to which position only the rows tell what was taken back.
    #[must_use]
    pub fn floor(&self) -> i64 {
        self.special.load().as_ref().map_or(0, |special| special.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(head: i64, version: i64) -> Stream {
        Stream { head, version, ..Stream::default() }
    }

    #[test]
    fn a_cell_only_goes_on() {
        let cached_head = CachedHead::default();
        assert!(!cached_head.is_loaded());
        cached_head.load(Kind::Group, &Stream::default(), || true);
        assert!(cached_head.is_loaded(), "that nothing ever happened is known, too");
        assert!(
            cached_head.change(Kind::Group, &stream(3, 3))
                && !cached_head.change(Kind::Group, &stream(2, 2))
                && !cached_head.change(Kind::Group, &stream(3, 3))
        );
        assert_eq!((cached_head.head(), cached_head.version(), cached_head.unread(1, &Intervals::default())), (3, 3, Some(2)));
        cached_head.forget();
        cached_head.load(Kind::Group, &stream(3, 3), || true);
        assert!(cached_head.is_loaded());
    }

    #[test]
    fn a_read_brings_what_is_newer_than_it_too() {
        let cached_head = CachedHead::default();
        assert!(cached_head.change(Kind::Group, &stream(6, 6)) && !cached_head.change(Kind::Group, &stream(5, 5)));
        assert!(!cached_head.is_loaded(), "others may have changed it further");
        cached_head.load(Kind::Group, &stream(7, 7), || false);
        assert!(!cached_head.is_loaded(), "all was forgotten meanwhile");
        cached_head.load(Kind::Group, &stream(5, 5), || true);
        assert_eq!((cached_head.is_loaded(), cached_head.head()), (true, 6), "what was told is newer");
        // After a restore versions may be lower.
        cached_head.forget();
        cached_head.load(Kind::Group, &stream(2, 2), || true);
        assert_eq!((cached_head.is_loaded(), cached_head.head()), (true, 2));
    }

    #[test]
    fn a_deleted_group_is_one_even_without_a_message() {
        for messages in [0, 3] {
            let mut group = stream(messages, messages);
            group.delete_group();
            let (cached_head, posts) = (CachedHead::default(), CachedHead::default());
            cached_head.load(Kind::Group, &group, || true);
            posts.load(Kind::Post, &group, || true);
            assert!(cached_head.is_deleted() && !posts.is_deleted());
            assert_eq!(cached_head.unread(0, &Intervals::default()), Some(0));
        }
    }

    #[test]
    fn what_was_taken_back_does_not_count() {
        let cached_head = CachedHead::default();
        let mut taken = stream(10, 10);
        taken.retract(4);
        cached_head.load(Kind::Group, &taken, || true);
        let mut own = Intervals::default();
        own.insert(9, 9);
        assert_eq!([0, 3, 4, 10, 12].map(|mark| cached_head.unread(mark, &own)), [Some(8), Some(5), Some(5), Some(0), Some(0)]);
        cached_head.change(Kind::Group, &Stream { floor: 4, version: 20, ..taken });
        assert_eq!((cached_head.unread(3, &own), cached_head.unread(4, &own), cached_head.floor()), (None, Some(5), 4));
        cached_head.change(Kind::Group, &stream(10, 21));
        assert_eq!((cached_head.unread(3, &own), cached_head.floor()), (Some(6), 0), "what a recount has put right");
    }

    /// The rows are read up to this head, and what is found is kept as of these other changes.
    #[test]
    fn a_head_and_its_other_changes_are_of_one_moment() {
        let cached_head = CachedHead::default();
        let of = |n: i64| Stream { floor: 1, ..stream(n, 2 * n) };
        cached_head.load(Kind::Group, &of(1), || true);
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| (2..=200_000).for_each(|n| assert!(cached_head.change(Kind::Group, &of(n)))));
            while !changing.is_finished() {
                let above = cached_head.above_floor().unwrap();
                assert_eq!(above.head, above.other_changes);
            }
        });
    }
}
