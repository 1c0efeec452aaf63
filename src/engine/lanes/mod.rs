//! The one way to write: a command goes into the bounded queue of a lane; the lane takes all that
//! is waiting, commits it in one transaction, and answers every caller.
//!
//! ```text
//!   handler ─ submit ─▶ queue ─▶ lane: take a batch
//!                                  ├─ begin the cache write ∥ lock the users among the lanes of this node (`local_locks.rs`), begin the
//!                                  │  transaction, raise the lane's own number, lock and load the rows
//!                                  │  (or take users' rows as this node knows them: `known_users.rs`)
//!                                  ├─ apply each command (pure; one that is refused leaves no trace)
//!                                  └─ save, commit
//!                       finisher:  ├─ apply the write to the cache, wake the waiting polls
//!                                  └─ answer
//! ```
//!
//! An answer means durable. Lanes, here and on other nodes, run side by side: row locks in one
//! order keep them apart, so which lane a command goes to matters for speed alone. To add a
//! command: implement [`Command`] in the feature.

mod ahead;
mod answer;
mod apply;
mod aside;
mod attempt;
mod batch;
mod commit;
mod entry_parts;
mod failure;
mod finish;
mod known_users;
mod lane;
mod local_locks;
mod log;
mod needs;
mod pace;
mod place;
mod queue;
mod resolve;
mod row;
mod row_set;
mod rows;
mod statements;
mod table;
mod ticket;
mod written_entries;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Code, Error, Problem};
use crate::base::ids::UserId;
use crate::cache::Cache;
use crate::db::{Db, Owners};
use crate::engine::events::Bell;
use crate::engine::guard::Guard;
use crate::engine::heads::Heads;

pub use answer::{Answer, Ending, after_commit};
pub use entry_parts::EntryParts;
pub use needs::Needs;
pub use queue::{Lanes, MIN_LARGE, Queued};
pub use row::RETIRED_MS;
pub(crate) use row::{NOT_KNOWN, NOTHING_WRITTEN, announce, sweep, time_of};
pub use row_set::{NewRowSet, RowSet};
pub use rows::{Core, Rows};
pub use statements::statements;
pub use table::Table;

/// How writes are batched and bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Writes")]
pub struct LaneConfig {
    /// The number of lanes that commit in parallel on Postgres. SQLite has one writer, and so one
    /// lane. Where tables are partitioned, each lane writes to partitions of its own. With more lanes
    /// than partitions, several lanes share the owners of one partition.
    #[arg(long, env = "HEADMARK_LANES", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub lanes: u32,

    /// The maximum number of changes that wait in each lane. Further writes get 503 immediately.
    #[arg(long, env = "HEADMARK_LANE_QUEUE", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    pub lane_queue: u32,

    /// The maximum number of writes larger than a transaction, such as a notification to 10,000
    /// users, that wait in each lane. Further ones get 503 immediately. Other writes wait for at
    /// most one of them.
    #[arg(long, env = "HEADMARK_LANE_LARGE_QUEUE", default_value_t = 32, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub lane_large_queue: u32,

    /// The maximum number of changes in a transaction. A single larger request still commits in
    /// one.
    #[arg(long, env = "HEADMARK_LANE_BATCH", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub lane_batch: u32,

    /// The maximum number of changes blocked by a lock that each lane sets aside, so that other
    /// changes continue. Further ones get 503 immediately. Not used on SQLite, which has a single
    /// lock.
    #[arg(long, env = "HEADMARK_LANE_ASIDE", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub lane_aside: u32,

    /// The time for which a batch waits for a lock on Postgres before it is set aside, in
    /// milliseconds. Before that it waits for other lanes of this node: as long, and at most 250 ms.
    #[arg(long, env = "HEADMARK_LOCK_TIMEOUT_MS", default_value_t = 250, value_parser = clap::value_parser!(u64).range(10..=1500))]
    pub lock_timeout_ms: u64,

    /// The memory for copies of users' rows, in MiB. A write that changes nothing else need not read
    /// a row of which there is a copy. 0: no copies, so that each row is read.
    #[arg(long, env = "HEADMARK_LANE_COPIES_MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(0..=65_536))]
    pub lane_copies_mib: u64,

    /// The time limit for a write, in milliseconds. After that the caller gets 503, and can retry
    /// with the same key to learn the outcome.
    #[arg(long, env = "HEADMARK_WRITE_TIMEOUT_MS", default_value_t = 15_000, value_parser = clap::value_parser!(u64).range(100..=120_000))]
    pub write_timeout_ms: u64,
}

/// What the lanes work with.
#[derive(Debug, Clone)]
pub struct LaneEngines {
    pub db: Db,
    /// Where the rows of an owner are, which decides the lane.
    pub owners: Owners,
    pub cache: Arc<Cache>,
    pub guard: Arc<Guard>,
    /// The heads of shared streams, as this node holds them.
    pub heads: Arc<Heads>,
    pub clock: Clock,
    /// Rung where events are committed.
    pub bell: Bell,
    /// The features' rows, in the order in which they are locked.
    pub row_sets: &'static [NewRowSet],
    /// Who hears of what is committed.
    pub after_commit: Arc<[Arc<dyn AfterCommit>]>,
}

/// Hears of what is committed, once the cache shows it.
pub trait AfterCommit: fmt::Debug + Send + Sync {
    /// These rows are committed.
    fn committed(&self, rows: &Rows, now: UnixMs);
}

/// How long opening a connection may take.
const MAX_CONNECT: Duration = Duration::from_secs(2);

/// A write of a feature.
pub trait Command: fmt::Debug + Send + Sync {
    /// The rows that [`Command::apply`] looks at or changes.
    fn needs(&self, needs: &mut Needs);

    /// Which lane: commands with the same number go through the same lane, in order. The id of the
    /// owner of most of its rows, where there is one: owners whose rows lie together share a lane.
    fn lane_key(&self) -> i64;

    /// The users whom the caller names, each with its place in the body as a JSON pointer; in the path
    /// it is empty. Where one of them was erased, the command is refused. Users whom it only meets, as
    /// the members of a group, are not among them. Each must be asked for: its row
    /// ([`Needs::user`]), or with `pairs::need_named`.
    fn names(&self) -> Names;

    /// How many changes it stands for, for the bounds of queue and batch.
    fn weight(&self) -> u32 {
        1
    }

    /// The user who sends it for itself, where it may be of many changes. It then waits outside of the queues
    /// while they hold many changes of that user.
    fn by_user(&self) -> Option<UserId> {
        None
    }

    /// The rule: pure, over the loaded rows. It may run several times (retries), so it keeps
    /// nothing.
    ///
    /// # Errors
    /// The problem that the caller gets; then the rows are put back as they were.
    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem>;

    /// Its transaction is committed; the cache is not told yet. It wakes somebody at most.
    fn committed(&self) {}
}

/// Users whom a caller names, each with its place in the body as a JSON pointer; in the path it is
/// empty.
pub type Names = Vec<(UserId, String)>;

/// A user in the path.
#[must_use]
pub fn in_path(user: UserId) -> (UserId, String) {
    (user, String::new())
}

/// A command with the idempotency key under which it was sent, if any.
#[derive(Debug, Clone)]
pub struct Job {
    /// The write.
    pub command: Arc<dyn Command>,
    /// Under which its answer is kept.
    pub key: Option<crate::engine::idempotency::Key>,
}

fn unavailable() -> Error {
    Problem::new(Code::StoreUnavailable, "A store did not respond. Nothing was changed. Try again shortly.").into()
}

fn unknown_outcome() -> Problem {
    Problem::new(Code::OutcomeUnknown, "The write may or may not have taken effect. Retry it with the same Idempotency-Key.")
}

/// What a lane tells one caller.
pub(crate) type Verdict = Result<Answer, Error>;
