//! Fails fast while Redis is away, so that no poll waits for a timeout that the one before it has waited for already.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Shared, wire};
use crate::cache::CacheError;

/// Failures in a row that open the breaker.
const FAILURES_TO_OPEN: u32 = 3;

/// Pause between two tries to reach Redis while it is open.
const PROBE_EVERY: Duration = Duration::from_millis(200);

/// Closed until some operations in a row failed for want of a server; then open until a probe gets through.
#[derive(Default)]
pub(super) struct Breaker {
    failures: AtomicU32,
    open: AtomicBool,
    opened: Notify,
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

    fn close(&self) {
        self.failures.store(0, Ordering::Relaxed);
        self.open.store(false, Ordering::Release);
    }
}

/// While the breaker is open, tries to reach Redis. It does so over new connections, which then replace the old: one whose other end
/// vanished without a word would only time out again.
pub(super) async fn probe(shared: Arc<Shared>) {
    loop {
        shared.breaker.opened.notified().await;
        loop {
            tokio::time::sleep(PROBE_EVERY).await;
            match wire::connect(&shared.redis, &shared.scripts).await {
                Ok(links) => {
                    shared.links.store(Arc::new(links));
                    break;
                }
                Err(error) => tracing::debug!(%error, "Redis is still away"),
            }
        }
        shared.breaker.close();
        shared.meters.breaker(false);
        tracing::info!("Redis is back: the breaker closes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        breaker.close();
        assert!(breaker.check().is_ok());
        assert!(!breaker.failed());
    }
}
