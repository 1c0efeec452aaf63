//! Operations: writes that are accepted before they are done, where the caller prefers that
//! (`Prefer: respond-async`, RFC 7240).
//!
//! ```text
//!   PUT …/following/7 ─ accept: a row, under the lock of the pair ─▶ 202, Location: /v1/operations/{id}
//!                                    └─ worker: all that is pending of a pair, in order, in one transaction with what comes of it
//! ```
//!
//! Accepting is a command of the lanes, so a 202 means durable. The row's number is given under the
//! lock of the pair, so the order of the rows is that in which they were accepted, on whichever
//! nodes. What comes of an operation is written in the transaction of its effect, which takes the
//! same lock and looks whether it is still pending: so it is done once, however many nodes try, and
//! after a crash anyone who looks next goes on. A write that is not asynchronous finds pending ones
//! of its pair under that lock, has them done, and tries again: so it comes after them.
//!
//! What is accepted is a text here. The feature whose writes they are does them:
//! `relations/deferred.rs` and `relations/worker.rs`. `store.rs` has the SQL, `http.rs` the route
//! and the preference.

pub mod exported;
pub mod http;
mod id;
pub mod store;

use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::StatusCode;
use clap::Args;
use rand::RngExt as _;
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

pub use self::id::OperationId;
pub use self::store::sweep;
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::engine::pairs::Pair;

/// How operations are kept and bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Operations")]
pub struct OperationConfig {
    /// The retention period of the results of asynchronous writes, in hours. After that they get
    /// 410.
    #[arg(long, env = "HEADMARK_OPERATION_TTL_HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    pub operation_ttl_hours: u32,

    /// The maximum number of pending asynchronous writes. Further ones get 503 immediately.
    #[arg(long, env = "HEADMARK_MAX_PENDING_OPERATIONS", default_value_t = 100_000, value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    pub max_pending_operations: i64,
}

impl OperationConfig {
    /// What was done before this time is kept no longer.
    #[must_use]
    pub fn kept_since(&self, now: UnixMs) -> UnixMs {
        UnixMs(now.0 - self.ttl_ms())
    }

    fn ttl_ms(&self) -> i64 {
        i64::from(self.operation_ttl_hours) * 3_600_000
    }
}

/// The status of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationStatus {
    /// Accepted, and not done yet.
    Pending,
    /// Done.
    Done,
    /// Refused, as it would have been at once.
    Failed,
}

/// An operation as it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub id: OperationId,
    /// Who may read what came of it.
    pub caller: String,
    /// Under whose lock it is done.
    pub pair: Pair,
    /// JSON: what is to be done.
    pub command: String,
    /// Which node accepted it.
    pub node: i64,
}

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The HTTP status.
    pub status: StatusCode,
    /// JSON: the answer's body or the problem.
    pub body: String,
    /// When the dot was lit.
    pub at: UnixMs,
}

/// The response to an asynchronous write.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedOut {
    /// The id of the operation: poll `/v1/operations/{operation_id}` for its result.
    pub operation_id: OperationId,
    /// Always pending.
    status: OperationStatus,
}

impl AcceptedOut {
    /// Of an operation that was accepted.
    #[must_use]
    pub fn new(operation_id: OperationId) -> Self {
        Self { operation_id, status: OperationStatus::Pending }
    }
}

/// The operations of a node.
#[derive(Debug)]
pub struct Operations {
    /// How they are kept and bounded.
    pub config: OperationConfig,
    /// Which node this is.
    node: i64,
    /// About how many are pending.
    pending: AtomicI64,
    /// Rung for the worker.
    bell: Notify,
}

impl Operations {
    /// Of a new node.
    #[must_use]
    pub fn new(config: OperationConfig) -> Self {
        Self { config, node: rand::rng().random_range(1..i64::MAX), pending: AtomicI64::new(0), bell: Notify::new() }
    }

    /// An operation of this node's, if there is room for one more.
    ///
    /// # Errors
    /// 503 where there is none.
    pub fn begin(&self, caller: String, pair: Pair, command: String, now: UnixMs) -> Result<Operation, Problem> {
        if self.pending.load(Ordering::Relaxed) >= self.config.max_pending_operations {
            return Err(Problem::new(Code::Overloaded, "Too many asynchronous writes are pending. Try again shortly."));
        }
        Ok(Operation { id: OperationId::new(now), caller, pair, command, node: self.node })
    }

    /// Which node this is.
    #[must_use]
    pub fn node(&self) -> i64 {
        self.node
    }

    /// About so many are pending.
    pub fn set_pending(&self, pending: i64) {
        self.pending.store(pending, Ordering::Relaxed);
    }

    /// One was accepted since the last time.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    /// One is durable: the worker is told.
    pub fn accepted(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        self.bell.notify_one();
    }
}
