//! Whether publishing stands still.

use std::time::Duration;

use tokio::time::Instant;

/// For how long something has waited to be published while nothing was.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// Since when, and how far publishing was then. None while nothing waits.
    since: Option<(Instant, i64)>,
}

impl Stall {
    /// At this moment something waits or not, and publishing is so far.
    pub(super) fn note(&mut self, now: Instant, waits: bool, reached: i64) {
        self.since = match self.since {
            _ if !waits => None,
            Some(since) if since.1 == reached => Some(since),
            _ => Some((now, reached)),
        };
    }

    /// Publishes the metric. It also grows while nobody can look.
    pub(super) fn measure(&self, now: Instant) {
        let stalled = self.since.map_or(Duration::ZERO, |(since, _)| now.saturating_duration_since(since));
        metrics::gauge!("headmark_events_stalled_seconds").set(stalled.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_begins_when_nothing_moves_and_ends_when_something_does() {
        let (mut stall, begin) = (Stall::default(), Instant::now());
        let mut at = |seconds: u64, waits, reached| {
            stall.note(begin + Duration::from_secs(seconds), waits, reached);
            stall.since.map(|(since, _)| since.duration_since(begin).as_secs())
        };
        assert_eq!(at(0, false, 5), None);
        assert_eq!(at(1, true, 5), Some(1));
        assert_eq!(at(9, true, 5), Some(1), "nothing has moved");
        assert_eq!(at(10, true, 6), Some(10), "under load something always waits");
        assert_eq!(at(11, false, 7), None);
    }
}
