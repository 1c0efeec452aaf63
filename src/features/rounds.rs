//! What one sweep may take: so many rounds and so long, with a pause between two. The rest waits for the next sweep.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many rounds one sweep has at most, and how long it takes, but for what it has begun with. Other sweeps wait for it.
const MAX_ROUNDS: u32 = 100;
const MAX_TIME: Duration = Duration::from_secs(20);

/// The pause between two rounds, in which others have the database.
pub const PAUSE: Duration = Duration::from_millis(5);

/// The rounds of one sweep.
#[derive(Debug)]
pub struct Rounds<'a> {
    draining: &'a CancellationToken,
    begun: u32,
    most: u32,
    end: Instant,
}

impl<'a> Rounds<'a> {
    /// Those of a sweep that begins now; `draining` ends it.
    #[must_use]
    pub fn new(draining: &'a CancellationToken) -> Self {
        Self { draining, begun: 0, most: MAX_ROUNDS, end: Instant::now() + MAX_TIME }
    }

    /// The same for rounds so small that only time bounds them.
    #[must_use]
    pub fn small(draining: &'a CancellationToken) -> Self {
        Self { most: u32::MAX, ..Self::new(draining) }
    }

    /// Whether the sweep is to end, also within a round.
    #[must_use]
    pub fn are_over(&self) -> bool {
        self.draining.is_cancelled() || Instant::now() >= self.end
    }

    /// Waits until the next round may begin. False: the sweep is over.
    pub async fn next(&mut self) -> bool {
        if self.begun > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        self.begun = self.begun.saturating_add(1);
        self.begun <= self.most && !self.are_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn they_end_by_number_by_time_and_when_the_node_stops() {
        let draining = CancellationToken::new();
        let count = async |mut rounds: Rounds<'_>| {
            let mut count = 0;
            while rounds.next().await {
                count += 1;
            }
            count
        };
        let now = Instant::now();
        let within = |ms: u64| Rounds { end: now + Duration::from_millis(ms), ..Rounds::small(&draining) };
        assert_eq!(count(Rounds { most: 3, ..Rounds::new(&draining) }).await, 3);
        assert!((1..20).contains(&count(within(100)).await));
        assert!(within(0).are_over() && !Rounds::new(&draining).are_over());
        draining.cancel();
        assert_eq!(count(Rounds::small(&draining)).await, 0);
    }
}
