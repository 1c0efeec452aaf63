//! What was counted of some heads, kept while none of them has changed.

use std::sync::{Mutex, PoisonError};

use super::CachedHead;
use crate::base::clock::UnixMs;

/// A count of some heads, always the same ones. The version of a head only rises while it is loaded. So
/// where the versions add up to the same as before, each of them is the same, and so is the count.
#[derive(Debug)]
pub struct KeptCount<T>(Mutex<Option<Kept<T>>>);

#[derive(Debug)]
struct Kept<T> {
    versions: i64,
    /// Above which it was not counted on.
    most: i64,
    from: UnixMs,
    /// When it is another one without a write; None: never.
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
    heads.try_fold(0_i64, |sum, head| Some(sum.wrapping_add(head.version())).filter(|_| head.is_loaded()))
}

impl<T: Clone> KeptCount<T> {
    /// What was counted before, if it is the same now, or what `count` counts: that with the time at
    /// which it will be another one, or None where something is not known here.
    pub fn get_or_count<'a>(
        &self,
        heads: impl Iterator<Item = &'a CachedHead>,
        most: i64,
        now: UnixMs,
        count: impl FnOnce() -> Option<(T, Option<UnixMs>)>,
    ) -> Option<T> {
        // Before counting: what is counted is then at least as new.
        let versions = versions(heads);
        let is_same = |kept: &&Kept<T>| {
            let is_now = kept.from <= now && kept.until.is_none_or(|until| now < until);
            Some(kept.versions) == versions && kept.most == most && is_now
        };
        if let Some(kept) = self.kept().as_ref().filter(is_same) {
            return Some(kept.count.clone());
        }
        let (count, until) = count()?;
        *self.kept() = versions.map(|versions| Kept { versions, most, from: now, until, count: count.clone() });
        Some(count)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Kept<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::marks::{Kind, Stream};

    fn rise(head: &CachedHead, to: i64) {
        head.set(Kind::Group, &Stream { head: to, version: to, ..Stream::default() });
    }

    #[test]
    fn a_count_is_kept_until_a_head_or_the_time_changes_it() {
        let heads = [CachedHead::default(), CachedHead::default()];
        let kept = KeptCount::default();
        let counted = std::cell::Cell::new(0);
        let count = |most: i64, now: i64| {
            let count = || {
                counted.set(counted.get() + 1);
                let sum: i64 = heads.iter().map(CachedHead::head).sum();
                Some((sum.min(most), Some(UnixMs(100)).filter(|end| UnixMs(now) < *end)))
            };
            (kept.get_or_count(heads.iter(), most, UnixMs(now), count), counted.get())
        };
        rise(&heads[0], 3);
        assert_eq!([count(9, 1), count(9, 1)], [(Some(3), 1), (Some(3), 2)], "one of them is not loaded");
        rise(&heads[1], 2);
        assert_eq!([count(9, 2), count(9, 3)], [(Some(5), 3), (Some(5), 3)]);
        assert_eq!(count(4, 3), (Some(4), 4), "another cap");
        assert_eq!(count(9, 3), (Some(5), 5));
        rise(&heads[0], 4);
        assert_eq!([count(9, 4), count(9, 4)], [(Some(6), 6), (Some(6), 6)]);
        assert_eq!([count(9, 99), count(9, 100), count(9, 101)], [(Some(6), 6), (Some(6), 7), (Some(6), 7)], "its time has come");
        assert_eq!(count(9, 99), (Some(6), 8), "a clock that goes back");
        heads[0].forget();
        rise(&heads[1], 7);
        assert_eq!(count(99, 101), (Some(11), 9), "the sum is the same, but one is not loaded");
    }

    #[test]
    fn what_is_not_known_is_not_kept() {
        let heads = [CachedHead::default()];
        rise(&heads[0], 3);
        let kept = KeptCount::<i64>::default();
        assert_eq!(kept.get_or_count(heads.iter(), 9, UnixMs(1), || None), None);
        assert_eq!(kept.get_or_count(heads.iter(), 9, UnixMs(1), || Some((3, None))), Some(3));
        assert_eq!(kept.get_or_count(heads.iter(), 9, UnixMs(1), || None), Some(3));
    }
}
