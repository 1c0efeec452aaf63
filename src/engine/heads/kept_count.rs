//! What was counted of some heads, kept while none of them has changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{CachedHead, History};
use crate::base::clock::UnixMs;

/// A count of some heads. Within one history of the database, the version of a head only rises. So where
/// the versions add up to the same as before, each of them is the same, and so is the count.
#[derive(Debug)]
pub struct KeptCount<T>(Mutex<Option<Kept<T>>>);

#[derive(Debug)]
struct Kept<T> {
    history: History,
    versions: i64,
    from: UnixMs,
    /// When it is another one without a write, also because other heads count from then on; None: never.
    until: Option<UnixMs>,
    count: T,
}

impl<T> Default for KeptCount<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The versions of heads added up; None where one is not loaded.
fn versions<'a>(mut heads: impl Iterator<Item = &'a CachedHead>) -> Option<i64> {
    heads.try_fold(0_i64, |sum, head| Some(sum.wrapping_add(head.loaded_version()?)))
}

impl<T: Clone> KeptCount<T> {
    /// What was counted before of the heads that count now, if it is the same, or what `count` counts:
    /// that with the time at which it will be another one, or None where it is not to be kept.
    pub fn get_or_count<'a>(
        &self,
        history: History,
        heads: impl Iterator<Item = &'a CachedHead>,
        now: UnixMs,
        count: impl FnOnce() -> Option<(T, Option<UnixMs>)>,
    ) -> Option<T> {
        // Before counting: what is counted is then at least as new.
        let versions = versions(heads);
        let is_same = |kept: &&Kept<T>| {
            let is_now = kept.from <= now && kept.until.is_none_or(|until| now < until);
            kept.history == history && Some(kept.versions) == versions && is_now
        };
        if let Some(kept) = self.kept().as_ref().filter(is_same) {
            return Some(kept.count.clone());
        }
        let (count, until) = count()?;
        *self.kept() = versions.map(|versions| Kept { history, versions, from: now, until, count: count.clone() });
        Some(count)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::marks::{Kind, Stream};

    const HISTORY: History = History(1);

    fn rise(head: &CachedHead, to: i64) {
        head.load(Kind::Group, &Stream { head: to, version: to, ..Stream::default() }, || true);
    }

    #[test]
    fn a_count_is_kept_until_a_head_or_the_time_changes_it() {
        let heads = [CachedHead::default(), CachedHead::default()];
        let kept = KeptCount::default();
        let counted = std::cell::Cell::new(0);
        let count = |history: u64, now: i64| {
            let count = || {
                counted.set(counted.get() + 1);
                let sum: i64 = heads.iter().map(CachedHead::head).sum();
                Some((sum, Some(UnixMs(100)).filter(|end| UnixMs(now) < *end)))
            };
            (kept.get_or_count(History(history), heads.iter(), UnixMs(now), count), counted.get())
        };
        rise(&heads[0], 3);
        assert_eq!([count(1, 1), count(1, 1)], [(Some(3), 1), (Some(3), 2)], "one of them is not loaded");
        rise(&heads[1], 2);
        assert_eq!([count(1, 2), count(1, 3)], [(Some(5), 3), (Some(5), 3)]);
        rise(&heads[0], 4);
        assert_eq!([count(1, 4), count(1, 4)], [(Some(6), 4), (Some(6), 4)]);
        assert_eq!([count(1, 99), count(1, 100), count(1, 101)], [(Some(6), 4), (Some(6), 5), (Some(6), 5)], "its time has come");
        assert_eq!(count(1, 99), (Some(6), 6), "a clock that goes back");
        heads[0].forget();
        rise(&heads[1], 7);
        assert_eq!(count(1, 101), (Some(11), 7), "one is not loaded");
    }

    #[test]
    fn a_count_is_of_one_history() {
        let heads = [CachedHead::default(), CachedHead::default()];
        let kept = KeptCount::default();
        // What the first head has does not count.
        let count = |history: u64| kept.get_or_count(History(history), heads.iter(), UnixMs(1), || Some((heads[1].head(), None))).unwrap();
        rise(&heads[0], 10);
        rise(&heads[1], 5);
        assert_eq!(count(1), 5);
        // The database has lost a change of one head, and has a new one of the other.
        heads.iter().for_each(CachedHead::forget);
        rise(&heads[0], 9);
        rise(&heads[1], 6);
        assert_eq!(count(2), 6, "though the versions add up to the same");
    }

    #[test]
    fn what_is_not_known_is_not_kept() {
        let heads = [CachedHead::default()];
        rise(&heads[0], 3);
        let kept = KeptCount::<i64>::default();
        assert_eq!(kept.get_or_count(HISTORY, heads.iter(), UnixMs(1), || None), None);
        assert_eq!(kept.get_or_count(HISTORY, heads.iter(), UnixMs(1), || Some((3, None))), Some(3));
        assert_eq!(kept.get_or_count(HISTORY, heads.iter(), UnixMs(1), || None), Some(3));
    }
}
