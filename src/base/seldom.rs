//! Log lines that must not become a flood.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For a line that must not become a flood: says whether it may be written again.
#[derive(Debug)]
pub(crate) struct Seldom {
    every: Duration,
    started: Instant,
    /// When it was last written, in milliseconds since the start; 0: never.
    last_ms: AtomicU64,
}

impl Seldom {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, started: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    /// Whether this time is due; then the next is not until later. Of several that ask at once, one
    /// is told yes.
    pub(crate) fn may(&self) -> bool {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let (now_ms, last_ms) = (millis(self.started.elapsed()).max(1), self.last_ms.load(Ordering::Relaxed));
        let due = last_ms == 0 || now_ms.saturating_sub(last_ms) >= millis(self.every);
        due && self.last_ms.compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_seldom_is_written_once_in_its_time() {
        let mut lines = Seldom::new(Duration::from_secs(60));
        assert_eq!([lines.may(), lines.may(), lines.may()], [true, false, false]);
        lines.started = lines.started.checked_sub(Duration::from_secs(61)).unwrap();
        assert_eq!([lines.may(), lines.may()], [true, false]);
    }
}
