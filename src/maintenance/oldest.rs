//! The age of the oldest work that is not done, as a metric: what stands still makes no noise.

use std::time::Duration;

use tokio::time::Instant;

use crate::base::clock::{Clock, UnixMs};
use crate::db::{DbResult, in_time};

/// How often it is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(10);

/// Measures one of them from time to time.
#[derive(Debug)]
pub(super) struct Oldest {
    metric: &'static str,
    measured: Option<Instant>,
}

impl Oldest {
    /// As a gauge of this name, in seconds.
    pub(super) fn new(metric: &'static str) -> Self {
        Self { metric, measured: None }
    }

    /// Publishes the age of what `look` finds: 0 where it finds nothing, or what is yet to come. Where it cannot be
    /// read, nothing waits for it.
    pub(super) async fn measure(&mut self, clock: &Clock, look: impl Future<Output = DbResult<Option<UnixMs>>>) {
        let at = Instant::now();
        if self.measured.is_some_and(|before| at - before < MEASURE_EVERY) {
            return;
        }
        self.measured = Some(at);
        let Ok(oldest) = in_time(look).await.inspect_err(|error| {
            tracing::debug!(?error, metric = self.metric, "cannot look for the oldest yet");
        }) else {
            return;
        };
        let age_ms = oldest.map_or(0, |began| (clock.now().0 - began.0).max(0));
        metrics::gauge!(self.metric).set(Duration::from_millis(age_ms.unsigned_abs()).as_secs_f64());
    }
}
