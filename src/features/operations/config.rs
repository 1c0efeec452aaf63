//! The settings of operations.

use clap::Args;

use crate::base::clock::UnixMs;
use crate::http::shares::Bounds;

/// How operations are kept and bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Operations")]
pub struct OperationConfig {
    /// The retention period of the results of asynchronous writes, in hours. After that they get
    /// 410.
    #[arg(long, env = "HEADMARK_OPERATION_TTL_HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    pub operation_ttl_hours: u32,

    /// The maximum number of pending asynchronous writes. Further ones get 503 immediately.
    #[arg(long, env = "HEADMARK_MAX_PENDING_OPERATIONS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub max_pending_operations: u32,

    /// The maximum number of pending asynchronous writes of each service key. Further ones get 429.
    /// Must be below HEADMARK_MAX_PENDING_OPERATIONS; default: nine tenths of it.
    #[arg(long, env = "HEADMARK_MAX_PENDING_OPERATIONS_PER_SERVICE", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub max_pending_operations_per_service: Option<u32>,

    /// The maximum number of pending asynchronous writes of each end user. Further ones get 429.
    /// Default: 1000, or nine tenths of HEADMARK_MAX_PENDING_OPERATIONS if that is less.
    #[arg(long, env = "HEADMARK_MAX_PENDING_OPERATIONS_PER_USER", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub max_pending_operations_per_user: Option<u32>,
}

impl OperationConfig {
    /// What was done before this time is kept no longer.
    #[must_use]
    pub fn kept_since(&self, now: UnixMs) -> UnixMs {
        UnixMs(now.0 - self.ttl_ms())
    }

    /// Checks the bounds on pending writes against each other.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        let (total, (service, user)) = self.bounds();
        let set = [("HEADMARK_MAX_PENDING_OPERATIONS_PER_SERVICE", service), ("HEADMARK_MAX_PENDING_OPERATIONS_PER_USER", user)];
        Bounds::check(("HEADMARK_MAX_PENDING_OPERATIONS", total), set)
    }

    /// All, and what is set for a service and for a user.
    pub(super) fn bounds(&self) -> (usize, (Option<usize>, Option<usize>)) {
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let set = (self.max_pending_operations_per_service.map(size), self.max_pending_operations_per_user.map(size));
        (size(self.max_pending_operations), set)
    }

    pub(super) fn ttl_ms(&self) -> i64 {
        i64::from(self.operation_ttl_hours) * 3_600_000
    }
}
