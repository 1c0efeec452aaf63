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
//! of its pair under that lock, has them done, and tries again: so it comes after them, and before
//! those that are accepted while it tries.
//!
//! What is accepted is a text here. The feature whose writes they are does them:
//! `relations/deferred.rs` and `relations/worker.rs`. `store.rs` has the SQL, `http.rs` the route
//! and the preference.

mod config;
pub mod exported;
pub mod http;
mod id;
mod pending;
pub mod store;

use std::collections::HashMap;

use axum::http::StatusCode;
use rand::RngExt as _;
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

pub use self::config::OperationConfig;
pub use self::id::OperationId;
use self::pending::Pending;
pub use self::store::sweep;
use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::engine::pairs::Pair;
use crate::http::caller::Caller;

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

/// Which operations of its pair a write comes after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preceding {
    /// All that are pending.
    All,
    /// Those with numbers up to this one: all others were accepted while the write was under way.
    UpTo(i64),
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
    /// How many are pending.
    pending: Pending,
    /// Rung for the worker.
    bell: Notify,
}

impl Operations {
    /// Of a new node; an `open` server has one caller.
    #[must_use]
    pub fn new(config: OperationConfig, open: bool) -> Self {
        let pending = Pending::new(&config, open);
        Self { config, node: rand::rng().random_range(1..i64::MAX), pending, bell: Notify::new() }
    }

    /// An operation of this node's, if there is room for one more.
    ///
    /// # Errors
    /// 503 if there is no room at all, 429 if this caller has none left.
    pub fn begin(&self, caller: &Caller, pair: Pair, command: String, now: UnixMs) -> Result<Operation, Problem> {
        self.pending.take(caller)?;
        Ok(Operation { id: OperationId::new(now), caller: caller.id(), pair, command, node: self.node })
    }

    /// Which node this is.
    #[must_use]
    pub fn node(&self) -> i64 {
        self.node
    }

    /// These callers, each as its text, have one less pending: it is done, or was not accepted.
    pub fn give_back<'a>(&self, callers: impl IntoIterator<Item = &'a str>) {
        self.pending.give_back(callers);
    }

    /// So many each caller has pending, on all nodes; returns how many that are.
    pub fn set_pending(&self, of_callers: HashMap<String, usize>) -> usize {
        self.pending.set(of_callers)
    }

    /// One was accepted since the last time.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    /// One is durable: the worker is told.
    pub fn accepted(&self) {
        self.bell.notify_one();
    }
}
