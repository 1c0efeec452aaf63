//! Work that fails each time: nobody waits for its answer, so somebody has to be told.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// How long a failure is remembered: another node may have gone on.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How often each piece of work has failed in a row on this node, and when it did last.
#[derive(Debug)]
pub struct Failures<K> {
    /// How many failures in a row are told, and how many more after that.
    told_each: u32,
    of: BTreeMap<K, (u32, Instant)>,
}

impl<K: Ord + Clone> Failures<K> {
    /// None yet. So many in a row are told, and so many more after that.
    #[must_use]
    pub fn new(told_each: u32) -> Self {
        Self { told_each, of: BTreeMap::new() }
    }

    /// What became of a try: how often it has failed in a row, where that is to be told.
    pub fn note(&mut self, key: &K, has_failed: bool, now: Instant) -> Option<u32> {
        self.of.retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
        if !has_failed {
            self.of.remove(key);
            return None;
        }
        let (failures, last) = self.of.entry(key.clone()).or_insert((0, now));
        (*failures, *last) = (*failures + 1, now);
        Some(*failures).filter(|failures| failures.is_multiple_of(self.told_each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_each_time_is_told() {
        let (mut failures, now) = (Failures::new(10), Instant::now());
        let mut told = |key: &str, times: u32, has_failed, seconds| {
            let at = now + Duration::from_secs(seconds);
            (0..times).filter_map(|_| failures.note(&key.to_owned(), has_failed, at)).collect::<Vec<_>>()
        };
        assert_eq!(told("one", 9, true, 0), [] as [u32; 0]);
        assert_eq!(told("other", 1, true, 0), [] as [u32; 0]);
        assert_eq!(told("one", 11, true, 0), [10, 20]);
        assert_eq!(told("one", 1, false, 0), [] as [u32; 0]);
        assert_eq!(told("one", 9, true, 1), [] as [u32; 0], "from the start");
        assert_eq!(told("one", 1, true, 700), [] as [u32; 0], "long ago");
    }
}
