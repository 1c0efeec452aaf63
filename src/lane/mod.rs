//! The one way to write: a command goes into the bounded queue of a lane; the lane takes all that is waiting, commits it in one transaction,
//! and answers every caller.
//!
//! ```text
//!   handler ─ submit ─▶ queue ─▶ lane: take a batch
//!                                  ├─ touch the cache entries ∥ begin, raise the lane's own number, lock and load the rows
//!                                  ├─ apply each command (pure; one that is refused leaves no trace)
//!                                  ├─ save, commit
//!                                  ├─ publish to the cache, wake the waiting polls
//!                                  └─ answer
//! ```
//!
//! An answer means durable. Lanes, here and on other nodes, run side by side: row locks in one order keep them apart, so which lane a command goes
//! to matters for speed alone. To add a command: implement [`Command`] in the feature.

mod aside;
mod attempt;
mod batch;
mod needs;
mod pace;
mod queue;
mod resolve;
mod row;
mod rows;
mod table;
mod ticket;
mod touched;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::Cache;
use crate::clock::{Clock, UnixMs};
use crate::db::{Db, Statement};
use crate::error::{Code, Error, Fault, Problem};
use crate::events::Bell;
use crate::groups::fan_out::FanOut;
use crate::guard::Guard;
use crate::heads::Heads;
use crate::relations::Hot;

pub use needs::Needs;
pub use queue::Lanes;
pub(crate) use row::{announce, sweep};
pub use rows::{Batch, Rows};
pub use table::Table;

/// How writes are batched and bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Writes")]
pub struct LaneConfig {
    /// How many lanes commit side by side on Postgres. SQLite has one writer, so one lane.
    #[arg(long, env = "HEADMARK_LANES", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub lanes: u32,

    /// How many changes may wait in each lane; beyond that writes get 503 at once.
    #[arg(long, env = "HEADMARK_LANE_QUEUE", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    pub lane_queue: u32,

    /// How many writes larger than a transaction takes, such as a notification to 10,000 users, may wait for their turn at each lane; beyond that they get 503 at
    /// once. Other writes wait for one of them at most.
    #[arg(long, env = "HEADMARK_LANE_LARGE_QUEUE", default_value_t = 32, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub lane_large_queue: u32,

    /// How many changes one transaction takes at most; a single larger request still goes whole.
    #[arg(long, env = "HEADMARK_LANE_BATCH", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub lane_batch: u32,

    /// How many changes that met a lock each lane sets aside, so that the others go on; beyond that
    /// they get 503 at once. Not used on SQLite, which has one lock for all.
    #[arg(long, env = "HEADMARK_LANE_ASIDE", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub lane_aside: u32,

    /// How long a batch waits for a lock on Postgres before it is set aside, in milliseconds.
    #[arg(long, env = "HEADMARK_LOCK_TIMEOUT_MS", default_value_t = 250, value_parser = clap::value_parser!(u64).range(10..=1500))]
    pub lock_timeout_ms: u64,

    /// How long a caller waits for its write at most, in milliseconds; then 503, and the outcome is told by trying again with the same key.
    #[arg(long, env = "HEADMARK_WRITE_TIMEOUT_MS", default_value_t = 15_000, value_parser = clap::value_parser!(u64).range(100..=120_000))]
    pub write_timeout_ms: u64,
}

/// What the lanes work with.
#[derive(Debug, Clone)]
pub struct Engines {
    /// The truth.
    pub db: Db,
    /// What polls read.
    pub cache: Arc<Cache>,
    /// What all nodes agree on.
    pub guard: Arc<Guard>,
    /// The heads of shared streams, as this node holds them.
    pub heads: Arc<Heads>,
    /// The groups that are to be fanned out.
    pub fan_out: Arc<FanOut>,
    /// The time.
    pub clock: Clock,
    /// Rung where events are committed.
    pub bell: Bell,
    /// What is shown of much-read users from memory, until their relations change.
    pub hot: Arc<Hot>,
}

/// How long opening a connection may take.
const MAX_CONNECT: Duration = Duration::from_secs(2);

/// A write of a feature.
pub trait Command: fmt::Debug + Send + Sync {
    /// The rows that [`Command::apply`] looks at or changes.
    fn needs(&self, needs: &mut Needs);

    /// Which lane: commands with the same number go through the same lane, in order.
    fn lane_key(&self) -> i64;

    /// How many changes it stands for, for the bounds of queue and batch.
    fn weight(&self) -> u32 {
        1
    }

    /// The rule: pure, over the loaded rows. It may run several times (retries), so it keeps nothing.
    ///
    /// # Errors
    /// The problem that the caller gets; then the rows are put back as they were.
    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem>;
}

/// The final answer to a write, as it is sent and as it is kept for its idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// JSON: the resource, or for 4xx a problem.
    pub body: Cow<'static, str>,
    /// Whether it is the first answer again.
    pub replayed: bool,
}

impl Answer {
    /// 200 with this body.
    ///
    /// # Errors
    /// When the body cannot be written as JSON, which is a bug.
    pub fn ok<T: Serialize>(body: &T) -> Result<Self, Problem> {
        match serde_json::to_string(body) {
            Ok(json) => Ok(Self { status: StatusCode::OK, body: json.into(), replayed: false }),
            Err(error) => {
                tracing::error!(%error, "cannot write an answer as JSON");
                Err(Fault::Bug(String::new()).problem())
            }
        }
    }

    /// 201 with this body.
    ///
    /// # Errors
    /// When the body cannot be written as JSON, which is a bug.
    pub fn created<T: Serialize>(body: &T) -> Result<Self, Problem> {
        Ok(Self { status: StatusCode::CREATED, ..Self::ok(body)? })
    }

    /// What the body says: for a route that answers with more than its command did.
    ///
    /// # Errors
    /// When the body is another one than the command writes, which is a bug.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.body).map_err(|error| Fault::Bug(format!("cannot read an answer of a command: {error}")).into())
    }

    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: "".into(), replayed: false }
    }

    /// A problem as an answer that can be kept.
    fn of_problem(problem: &Problem) -> Self {
        let body = serde_json::to_string(&problem.body()).unwrap_or_default();
        Self { status: problem.code.status(), body: body.into(), replayed: false }
    }
}

/// Marks an answer that was given before.
static REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        if self.status == StatusCode::NO_CONTENT {
            return self.status.into_response();
        }
        let media = if self.status.is_client_error() { "application/problem+json" } else { "application/json" };
        let mut response = (self.status, [(header::CONTENT_TYPE, HeaderValue::from_static(media))], self.body).into_response();
        if self.status.is_client_error() {
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if self.replayed {
            response.headers_mut().insert(REPLAYED.clone(), HeaderValue::from_static("true"));
        }
        response
    }
}

/// A command with the idempotency key under which it was sent, if any.
#[derive(Debug, Clone)]
pub struct Job {
    /// The write.
    pub command: Arc<dyn Command>,
    /// Under which its answer is kept.
    pub key: Option<crate::idempotency::Key>,
}

/// Every statement of the lanes, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [row::statements().as_slice(), resolve::statements().as_slice()].concat()
}

fn unavailable() -> Error {
    Problem::new(Code::StoreUnavailable, "A store did not answer; nothing was changed. Try again shortly.").into()
}

fn unknown_outcome() -> Problem {
    Problem::new(
        Code::OutcomeUnknown,
        "The write may or may not have taken effect. Send it again with the same Idempotency-Key to be sure.",
    )
}

/// What a lane tells one caller.
pub(crate) type Verdict = Result<Answer, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_answer_is_a_fault_and_not_a_default() {
        #[derive(Debug, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
        struct Out {
            revision: i64,
        }
        let answer = Answer::ok(&Out { revision: 7 }).unwrap();
        assert_eq!(answer.read::<Out>().unwrap(), Out { revision: 7 });
        for body in ["", "{}", r#"{"revision":"7"}"#] {
            let broken = Answer { body: body.into(), ..answer.clone() };
            assert!(matches!(broken.read::<Out>(), Err(Error::Fault(Fault::Bug(_)))), "{body}");
        }
    }
}
