//! Operations: writes that are accepted before they are done, where the caller prefers that (`Prefer: respond-async`, RFC 7240).
//!
//! ```text
//!   PUT …/following/7 ─ accept: a row, under the lock of the pair ─▶ 202, Location: /v1/operations/{id}
//!                                    └─ worker: all that is pending of a pair, in order, in one transaction with what comes of it
//! ```
//!
//! Accepting is a command of the lanes, so a 202 means durable. The row's number is given under the lock of the pair, so the order of the rows is that in which they were
//! accepted, on whichever nodes. What comes of an operation is written in the transaction of its effect, which takes the same lock and looks whether it is still
//! pending: so it is done once, however many nodes try, and after a crash whoever looks next goes on. A write that is not asynchronous finds pending ones of its
//! pair under that lock, has them done, and tries again: so it comes after them.
//!
//! `worker.rs` does what is pending, `store.rs` has the SQL, `http.rs` the route and the preference.

pub mod http;
pub mod store;
mod worker;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::StatusCode;
use clap::Args;
use rand::RngExt as _;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use utoipa::ToSchema;

pub use self::worker::{drain, run};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Fault, Problem};
use crate::base::ids::Invalid;
use crate::db::{Db, DbResult};
use crate::engine::lanes::{self, Answer, Needs, Rows};
use crate::features::relations::rows::RelationRows;
use crate::features::relations::rows::need_operations;
use crate::features::relations::{Deed, Pair, Terms, apply_deed};

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
    fn ttl_ms(&self) -> i64 {
        i64::from(self.operation_ttl_hours) * 3_600_000
    }
}

const ID_RULE: Invalid = Invalid("must have 32 characters of 0-9, a-f");

/// How long an id is, and the part of it that follows from the rest.
const ID_CHARS: usize = 32;
const CHECK_CHARS: usize = 4;

/// The end of an id that begins like this.
fn check(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(CHECK_CHARS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The id of an operation, in hexadecimal digits: 12 of the time of acceptance in milliseconds, 16
/// random ones, and a checksum of 4. The checksum distinguishes an expired id from an unknown one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{32}$", example = "0190163d8694739b3d5c2a7f00112233")]
pub struct OperationId(Arc<str>);

impl OperationId {
    /// A new one.
    #[must_use]
    pub fn new(now: UnixMs) -> Self {
        let text = format!("{:012x}{:016x}", now.0.unsigned_abs() & 0xffff_ffff_ffff, rand::rng().random::<u64>());
        let check = check(&text);
        Self((text + &check).into())
    }

    /// Whether it was made by [`OperationId::new`], as far as one can tell: of one that is kept no longer nothing else is known.
    #[must_use]
    pub fn was_made(&self) -> bool {
        self.0.split_at_checked(ID_CHARS - CHECK_CHARS).is_some_and(|(text, end)| check(text) == end)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When it was accepted, as the id tells.
    #[must_use]
    pub fn time(&self) -> UnixMs {
        let digits = self.0.get(..12).unwrap_or_default();
        UnixMs(i64::from_str_radix(digits, 16).unwrap_or_default())
    }
}

impl FromStr for OperationId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == ID_CHARS && text.bytes().all(digit) { Ok(Self(text.into())) } else { Err(ID_RULE) }
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for OperationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
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
    /// The id.
    pub id: OperationId,
    /// Who may read what came of it.
    pub caller: String,
    /// What is to be done.
    pub deed: Deed,
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

/// A write of operations.
#[derive(Debug, Clone)]
pub enum Command {
    /// One is accepted.
    Accept(Operation),
    /// Those of a pair are done, in order.
    Drain {
        /// The pair, the lower id first.
        pair: Pair,
        /// What was pending when somebody looked, by number: it may have been done since, and more may have come.
        queue: Vec<(i64, Deed)>,
        /// To what the deeds are held.
        terms: Terms,
    },
}

/// The response to an asynchronous write.
#[derive(Debug, Serialize, ToSchema)]
pub struct AcceptedOut {
    /// The id of the operation: poll `/v1/operations/{operation_id}` for its result.
    operation_id: OperationId,
    /// Always pending.
    status: OperationStatus,
}

impl lanes::Command for Command {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Accept(operation) => need_operations(needs, operation.deed.pair),
            Self::Drain { pair, queue, terms } => {
                need_operations(needs, *pair);
                queue.iter().for_each(|(_, deed)| deed.needs(terms, needs));
            }
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Accept(operation) => operation.deed.pair.stripe(),
            Self::Drain { pair, .. } => pair.stripe(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Accept(_) => 1,
            Self::Drain { queue, .. } => u32::try_from(queue.len()).unwrap_or(u32::MAX),
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Accept(operation) => {
                rows.get_mut::<RelationRows>().operations.accept(operation, now);
                let accepted = AcceptedOut { operation_id: operation.id.clone(), status: OperationStatus::Pending };
                Ok(Answer::accepted(accepted))
            }
            Self::Drain { pair, queue, terms } => {
                // What has a lower number is done; what has a higher one than all of these came after them, and is seen with the next look.
                let Some(first) = rows.get::<RelationRows>().operations.first_pending(*pair) else { return Ok(Answer::no_content()) };
                let mut left = queue.iter().filter(|(seq, _)| *seq >= first).peekable();
                // One may stand before them that was not in sight.
                if left.peek().is_some_and(|(seq, _)| *seq == first) {
                    while let Some((seq, deed)) = left.next() {
                        let next = left.peek().map(|(seq, _)| *seq);
                        finish(rows, *pair, (*seq, next), deed, terms, now);
                    }
                }
                Ok(Answer::no_content())
            }
        }
    }
}

/// Does one operation: its effect stays, or nothing of it does; what came of it is kept in either case.
fn finish(rows: &mut Rows, pair: Pair, (seq, next): (i64, Option<i64>), deed: &Deed, terms: &Terms, now: UnixMs) {
    let applied = catch_unwind(AssertUnwindSafe(|| apply_deed(rows, deed, terms, now)));
    let applied = applied.unwrap_or_else(|_| Err(Fault::Bug(String::new()).problem()));
    let applied = applied.and_then(|answer| Ok((StatusCode::from_u16(answer.status()).unwrap_or_default(), answer.json()?)));
    let outcome = match applied {
        Ok((status, body)) => {
            rows.settle();
            Outcome { status, body, at: now }
        }
        Err(problem) => {
            rows.undo();
            let body = serde_json::to_string(&problem.body()).unwrap_or_default();
            Outcome { status: problem.code.status(), body, at: now }
        }
    };
    rows.get_mut::<RelationRows>().operations.finish(pair, seq, next, outcome);
    rows.settle();
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
    pub fn begin(&self, caller: String, deed: Deed, now: UnixMs) -> Result<Operation, Problem> {
        if self.pending.load(Ordering::Relaxed) >= self.config.max_pending_operations {
            return Err(Problem::new(Code::Overloaded, "Too many asynchronous writes are pending. Try again shortly."));
        }
        Ok(Operation { id: OperationId::new(now), caller, deed, node: self.node })
    }

    /// One is durable: the worker is told.
    pub fn accepted(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        self.bell.notify_one();
    }
}

/// Removes some operations of which it is no longer kept what came of them; returns how many. Call again while it returns any.
///
/// # Errors
/// The driver's own.
pub async fn sweep(db: &Db, config: &OperationConfig, now: UnixMs) -> DbResult<u64> {
    store::sweep(db, UnixMs(now.0 - config.ttl_ms())).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::relations::state::Act;

    #[test]
    fn an_id_tells_its_time_and_is_never_the_same() {
        let ids = [0; 50].map(|_| OperationId::new(UnixMs(1_800_000_000_123)));
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!((distinct.len(), ids[0].time()), (50, UnixMs(1_800_000_000_123)));
        assert_eq!(ids[0].as_str().parse::<OperationId>().as_ref(), Ok(&ids[0]));
        for bad in ["", "1", &"g".repeat(32), &"A".repeat(32), &"0".repeat(33), &"é".repeat(16)] {
            assert_eq!(bad.parse::<OperationId>(), Err(ID_RULE), "{bad}");
        }
    }

    fn deed(act: Act) -> Deed {
        Deed { pair: Pair { follower: 1.try_into().unwrap(), followee: 2.try_into().unwrap() }, act }
    }

    fn drain(rows: &mut Rows, queue: &[(i64, Act)]) {
        use crate::engine::lanes::Command as _;
        let terms = Terms { max_following: 10, max_blocks: 10, badge: None };
        let queue = queue.iter().map(|(seq, act)| (*seq, deed(*act))).collect();
        Command::Drain { pair: deed(Act::Block).pair, queue, terms }.apply(rows, UnixMs(1)).unwrap();
        rows.settle();
    }

    const FOLLOW: Act = Act::Follow { secret: None, special: None };

    #[test]
    fn those_of_a_pair_are_done_in_order_and_once() {
        let pair = deed(Act::Block).pair;
        let mut rows = Rows::new(crate::app::ROW_SETS);
        rows.get_mut::<RelationRows>().operations.insert_pending(pair, 3, 7);
        drain(&mut rows, &[(5, Act::Block), (7, Act::Unblock)]);
        assert!(
            rows.get::<RelationRows>().follow(pair).is_none() && !rows.get::<RelationRows>().blocks(pair),
            "3 was not in sight and comes first"
        );
        drain(&mut rows, &[(1, Act::Block), (3, FOLLOW)]);
        assert!(rows.get::<RelationRows>().follow(pair).is_some() && !rows.get::<RelationRows>().blocks(pair), "1 was done before");
        assert!(rows.get::<RelationRows>().has_pending(pair.reversed()), "up to 7");
        drain(&mut rows, &[(3, Act::Unfollow)]);
        assert!(rows.get::<RelationRows>().follow(pair).is_some(), "done already");
    }

    #[test]
    fn what_came_after_those_in_sight_is_still_waited_for() {
        let pair = deed(Act::Block).pair;
        let operation = Operation { id: OperationId::new(UnixMs(1)), caller: String::new(), deed: deed(FOLLOW), node: 1 };
        let mut rows = Rows::new(crate::app::ROW_SETS);
        assert!(!rows.get::<RelationRows>().has_pending(pair));
        rows.get_mut::<RelationRows>().operations.insert_pending(pair, 3, 3);
        rows.get_mut::<RelationRows>().operations.accept(&operation, UnixMs(1));
        rows.settle();
        drain(&mut rows, &[(3, FOLLOW)]);
        assert!(
            rows.get::<RelationRows>().follow(pair).is_some() && rows.get::<RelationRows>().has_pending(pair),
            "the one of this batch has no number yet"
        );
        let mut rows = Rows::new(crate::app::ROW_SETS);
        rows.get_mut::<RelationRows>().operations.insert_pending(pair, 3, 3);
        drain(&mut rows, &[(3, FOLLOW)]);
        assert!(!rows.get::<RelationRows>().has_pending(pair));
        rows.get_mut::<RelationRows>().operations.accept(&operation, UnixMs(1));
        rows.undo();
        assert!(!rows.get::<RelationRows>().has_pending(pair));
    }
}
