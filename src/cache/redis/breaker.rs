//! Fails fast while Redis is away, so that no poll waits for a timeout that the one before it has
//! waited for already.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cache::CacheError;

/// Failures in a row that open the breaker.
const FAILURES_TO_OPEN: u32 = 3;

/// Closed until some operations in a row failed for want of a server; then open until a probe gets
/// through.
#[derive(Default)]
pub(super) struct Breaker {
    failures: AtomicU32,
    open: AtomicBool,
    /// Until when it stays open, whatever a probe would find.
    rests_until: Mutex<Option<Instant>>,
    pub(super) opened: Notify,
}

impl Breaker {
    /// Refuses while open.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        if self.open.load(Ordering::Acquire) {
            return Err(CacheError::Away("not reachable a moment ago; the breaker is open".to_owned()));
        }
        Ok(())
    }

    pub(super) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a failure. Whether this one opened the breaker.
    pub(super) fn failed(&self) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        failures >= FAILURES_TO_OPEN && self.open()
    }

    /// Opens it. Whether it was closed before.
    pub(super) fn open(&self) -> bool {
        let opens = !self.open.swap(true, Ordering::AcqRel);
        if opens {
            self.opened.notify_one();
        }
        opens
    }

    /// Opens it until then at least. Whether it was closed before.
    pub(super) fn open_until(&self, until: Instant) -> bool {
        let mut rests_until = self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        *rests_until = Some(rests_until.map_or(until, |before| before.max(until)));
        self.open()
    }

    /// Until when it stays open, where that was said.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it, unless it rests. Whether it is closed.
    pub(super) fn close(&self, now: Instant) -> bool {
        // Held meanwhile, so that nobody makes it rest in between.
        let rests_until = self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        let rests = rests_until.is_some_and(|until| until > now);
        if !rests {
            self.failures.store(0, Ordering::Relaxed);
            self.open.store(false, Ordering::Release);
        }
        !rests
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_rests_until_the_latest_time_that_was_said() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert!(breaker.rests_until().is_none() && breaker.open_until(now + Duration::from_secs(3)));
        assert!(!breaker.open_until(now + Duration::from_secs(1)), "it was open");
        assert_eq!(breaker.rests_until(), Some(now + Duration::from_secs(3)));
        assert!(!breaker.close(now + Duration::from_secs(2)) && breaker.check().is_err());
        assert!(breaker.close(now + Duration::from_secs(3)) && breaker.check().is_ok());
    }

    #[test]
    fn only_failures_in_a_row_open_it() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            assert!(!breaker.failed());
            assert!(!breaker.failed());
            breaker.succeeded();
        }
        assert!(!breaker.failed());
        assert!(!breaker.failed());
        assert!(breaker.check().is_ok());
        assert!(breaker.failed());
        assert!(breaker.check().is_err());
        assert!(!breaker.failed(), "it opens once");
        assert!(breaker.close(Instant::now()));
        assert!(breaker.check().is_ok());
        assert!(!breaker.failed());
    }
}
