//! Leases that a node with a fast clock has left: they end in the far future of every other node.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::clock::UnixMs;

/// How far in the future a lease ends that another clock wrote: further than any lease lasts.
pub const AHEAD_MS: i64 = 60_000;

/// How long such a lease stays as it is until its node counts as gone. One that lives moves it every few seconds.
const STAYS: Duration = Duration::from_secs(10);

/// The leases that end in the far future, and since when each has been as it is, as far as this node has seen.
/// Two nodes whose clocks are far apart would take work from each other without end, if either went by its clock
/// alone.
#[derive(Debug)]
pub struct Abandoned<K>(BTreeMap<K, (UnixMs, Instant)>);

impl<K> Default for Abandoned<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Abandoned<K> {
    /// Whose leases have ended, of what one look has found with its key and its lease: those that ended by `now`, then
    /// those whose node is gone. It remembers the others of this look alone.
    pub fn ended<T>(&mut self, found: Vec<T>, lease: impl Fn(&T) -> (K, UnixMs), now: UnixMs, at: Instant) -> Vec<T> {
        let before = std::mem::take(&mut self.0);
        let has_ended = |one: &T| {
            let (key, ends_at) = lease(one);
            if ends_at <= now {
                return true;
            }
            let since = before.get(&key).filter(|(as_it_was, _)| *as_it_was == ends_at).map_or(at, |(_, since)| *since);
            self.0.insert(key, (ends_at, since));
            at.duration_since(since) >= STAYS
        };
        let mut ended: Vec<_> = found.into_iter().filter(has_ended).collect();
        ended.sort_by_key(|one| lease(one).1);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_nobody_moves_has_ended() {
        let (mut abandoned, begin, now) = (Abandoned::default(), Instant::now(), UnixMs(1000));
        let mut look = |seconds: u64, found: &[(i32, i64)]| {
            let at = begin + Duration::from_secs(seconds);
            let ended = abandoned.ended(found.to_vec(), |(key, ends_at)| (*key, UnixMs(*ends_at)), now, at);
            ended.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(look(0, &[(1, 99_000), (2, 1000), (3, 98_000)]), [2]);
        assert_eq!(look(9, &[(1, 99_000), (3, 99_000)]), [] as [i32; 0]);
        assert_eq!(look(10, &[(1, 99_000), (3, 99_000)]), [1], "the node of the other one lives");
        assert_eq!(look(18, &[(3, 99_000), (2, 7)]), [2]);
        assert_eq!(look(19, &[(3, 99_000), (2, 7)]), [2, 3], "what is due longest goes first");
        assert_eq!(look(20, &[]), [] as [i32; 0]);
        assert_eq!(look(40, &[(3, 99_000)]), [] as [i32; 0], "it was not seen in between");
    }
}
