//! What a node has heard of the lanes, and whether it may go on from there.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::clock::UnixMs;

/// A node that was not answered for longer reads all that it holds again: well below the time for
/// which the row of a lane is kept that has ended
/// ([`RETIRED_MS`](crate::engine::lanes::RETIRED_MS)).
const MAX_APART: Duration = Duration::from_secs(600);

/// What was heard of the lanes so far.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// How far each lane was; None before the first look.
    pub(super) lanes: Option<HashMap<i64, i64>>,
    /// When the last look began.
    pub(super) last: Option<Instant>,
    /// When the last one began that was answered, by either clock: one of them goes on while a
    /// machine is suspended.
    pub(super) answered: Option<(Instant, UnixMs)>,
}

impl Followed {
    /// Whether a lane may have come and gone since the last answer.
    pub(super) fn is_old(&self, now: (Instant, UnixMs)) -> bool {
        let (began, at) = self.answered.unwrap_or(now);
        now.0.saturating_duration_since(began) > MAX_APART || now.1.0 - at.0 > i64::try_from(MAX_APART.as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_long_ago_by_either_clock_is_old() {
        let (began, at) = (Instant::now(), UnixMs(1_000_000));
        let mut followed = Followed::default();
        assert!(!followed.is_old((began, at)), "nothing was heard yet");
        followed.answered = Some((began, at));
        let after = |seconds, ms| followed.is_old((began + Duration::from_secs(seconds), UnixMs(at.0 + ms)));
        assert!(!after(600, 600_000) && !after(0, -900_000), "a clock that was set back");
        assert!(after(601, 0) && after(0, 600_001));
    }
}
