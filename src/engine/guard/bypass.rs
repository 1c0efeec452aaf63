//! The state of a node's own bypass.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

/// What must be left of a bypass for a commit to begin: longer than any transaction runs.
pub(super) const COMMIT_MARGIN: Duration = Duration::from_secs(8);

/// A bypass that begins so soon after the last one ended is left to run out: a cache that comes and
/// goes would cost more waits of [`SEEN`](super::SEEN) than it saves reads.
const CALM: Duration = Duration::from_secs(60);

/// The state of a node's own bypass. Times are milliseconds since the start of the guard.
#[derive(Debug)]
pub(super) struct Bypass {
    /// Whether this node commits past the cache.
    on: AtomicBool,
    /// Until when it holds, as writers must see it (early).
    until_ms: AtomicI64,
    /// Bypassing transactions that are under way.
    pub(super) under_way: AtomicUsize,
    /// Until when a bypassing transaction may still commit whose outcome nobody knows.
    pub(super) in_doubt_until_ms: AtomicI64,
    /// When the last one was ended ahead of its time.
    pub(super) ended_ms: AtomicI64,
    /// Whether this one is left to run out.
    pub(super) runs_out: AtomicBool,
}

impl Default for Bypass {
    fn default() -> Self {
        Self {
            on: AtomicBool::new(false),
            until_ms: AtomicI64::new(0),
            under_way: AtomicUsize::new(0),
            in_doubt_until_ms: AtomicI64::new(0),
            ended_ms: AtomicI64::new(-ms(CALM)),
            runs_out: AtomicBool::new(false),
        }
    }
}

impl Bypass {
    /// From now on this node commits past the cache.
    pub(super) fn entered(&self, now_ms: i64) {
        self.runs_out.store(now_ms - self.ended_ms.load(Ordering::SeqCst) < ms(CALM), Ordering::SeqCst);
        self.on.store(true, Ordering::SeqCst);
    }

    /// From now on no commit of this node goes past the cache, whatever the row says, until it enters again.
    /// Returns whether any could.
    pub(super) fn stop(&self) -> bool {
        self.on.swap(false, Ordering::SeqCst)
    }

    /// Whether it was entered, and nobody has stopped it.
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::SeqCst)
    }

    /// What the row says.
    pub(super) fn holds_until(&self, until_ms: i64) {
        self.until_ms.store(until_ms, Ordering::SeqCst);
    }

    pub(super) fn left_ms(&self, now_ms: i64) -> i64 {
        self.until_ms.load(Ordering::SeqCst) - now_ms
    }

    /// Whether a bypassing commit may begin now.
    pub(super) fn allows(&self, now_ms: i64) -> bool {
        self.is_on() && self.left_ms(now_ms) > ms(COMMIT_MARGIN)
    }

    /// Whether no bypassing commit can come any more, once no further one begins.
    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0 && now_ms >= self.in_doubt_until_ms.load(Ordering::SeqCst)
    }
}

pub(super) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_nothing_is_under_way_or_in_doubt() {
        let bypass = Bypass::default();
        assert!(!bypass.allows(0) && bypass.is_over(0));
        bypass.holds_until(15_000);
        bypass.entered(3000);
        assert!(bypass.allows(6999) && !bypass.allows(7000), "a commit that begins later may outlive it");
        bypass.under_way.store(1, Ordering::SeqCst);
        assert!(!bypass.is_over(4000));
        bypass.under_way.store(0, Ordering::SeqCst);
        bypass.in_doubt_until_ms.store(9000, Ordering::SeqCst);
        assert!(!bypass.is_over(8999) && bypass.is_over(9000));
    }

    #[test]
    fn one_that_was_stopped_lets_nobody_commit_until_it_is_entered_again() {
        let bypass = Bypass::default();
        bypass.holds_until(15_000);
        bypass.entered(3000);
        assert!(bypass.allows(6000) && bypass.is_on());
        // It has lapsed. The row is raised, and a refresh tells of it before other nodes have seen it.
        assert!(bypass.stop() && !bypass.stop());
        bypass.holds_until(60_000);
        assert!(!bypass.allows(46_000) && !bypass.is_on());
        bypass.entered(48_000);
        assert!(bypass.allows(48_000));
    }

    #[test]
    fn the_second_one_within_a_minute_runs_out() {
        let bypass = Bypass::default();
        bypass.entered(0);
        assert!(!bypass.runs_out.load(Ordering::SeqCst), "the first one after the start");
        bypass.ended_ms.store(10_000, Ordering::SeqCst);
        bypass.entered(69_999);
        assert!(bypass.runs_out.load(Ordering::SeqCst));
        bypass.entered(70_000);
        assert!(!bypass.runs_out.load(Ordering::SeqCst));
    }
}
