//! Read receipts in groups: who of a message's recipients has read it.
//!
//! Nothing is stored for it with a message. Recipients are those whose membership spans the message
//! (joined before it, not left before it), less the sender; who of them has read it follows from
//! how far each has read in that membership (`crate::features::groups::Reading`). So a message
//! costs no byte, who catches up on many messages writes one row, and no row is written by two
//! members. The answers are those of the known design that keeps `{max id, read bits, quit bits}`
//! with each message, bitmaps on the wire included; see docs/adr/0011.
//!
//! Answering goes through all memberships of a group, once for a screenful. A node keeps them for a
//! second ([`Receipts`]). It reads them again at once after a write of its own, and for a message
//! that is newer. `spans.rs` has the rules, `store.rs` reads the rows, `looks.rs` looks for changes
//! on behalf of all polls that wait, which `watch.rs` keeps, `http.rs` has the routes,
//! `access.rs` who may see what, `answers.rs` the bodies, `bitmaps.rs` how bitmaps are encoded.

mod access;
pub mod answers;
pub mod bitmaps;
pub mod http;
mod looks;
mod spans;
pub mod store;
mod watch;

pub use self::spans::{Bitmaps, Count, Ordinals, Recipient, Span, Spans};
pub use self::watch::Watch;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use moka::future::Cache as Kept;
use tokio::time::Instant;

use crate::base::error::Error;
use crate::base::ids::GroupId;
use crate::db::{Db, in_time};
use crate::engine::get_or_read::get_or_read;
use crate::engine::turns::Turns;
use crate::features::groups::changes::GroupChanges;

/// For how long memberships that were read are kept, and how many in all.
const KEPT: Duration = Duration::from_secs(1);
const MAX_KEPT_SPANS: u64 = 1_000_000;

/// How receipts are bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Groups")]
pub struct ReceiptConfig {
    /// The maximum number of ordinals in a bitmap of receipts. Above it, the ordinals of at most
    /// 10,000 recipients are listed instead.
    #[arg(long, env = "HEADMARK_MAX_RECEIPT_MEMBERS", default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pub max_receipt_members: i64,
}

/// The memberships of a group that were read, and before which change.
#[derive(Debug, Clone)]
struct Read {
    spans: Arc<Spans>,
    change: u64,
    /// How many messages there were, at least.
    head: i64,
    at: Instant,
}

/// What memberships must not be older than.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtLeast {
    /// What the client has seen (see [`Spans::progress`]).
    pub progress: i64,
    /// The message that is asked about: its recipients are the members when it was sent.
    pub seq: i64,
    /// This moment.
    pub at: Option<Instant>,
}

impl Read {
    fn is_good(&self, change: u64, least: AtLeast) -> bool {
        let seen = self.change == change && self.spans.progress() >= least.progress && self.head >= least.seq;
        seen && least.at.is_none_or(|at| self.at >= at) && self.at.elapsed() < KEPT
    }
}

/// The memberships of the groups that are asked about.
#[derive(Debug)]
pub struct Receipts {
    db: Db,
    turns: Arc<Turns>,
    kept: Kept<GroupId, Read>,
    /// The changes that this node made.
    changes: Arc<GroupChanges>,
    /// The groups of which polls wait for receipts.
    watched: watch::Watched,
    /// How many ordinals a bitmap may have.
    pub max_members: i64,
}

impl Receipts {
    /// Over this database.
    #[must_use]
    pub fn new(config: &ReceiptConfig, db: Db, turns: Arc<Turns>, changes: Arc<GroupChanges>) -> Arc<Self> {
        let weigh = |_: &GroupId, read: &Read| u32::try_from(read.spans.len()).unwrap_or(u32::MAX);
        Arc::new(Self {
            db,
            turns,
            kept: Kept::builder().weigher(weigh).max_capacity(MAX_KEPT_SPANS).time_to_live(KEPT).build(),
            changes,
            watched: watch::Watched::default(),
            max_members: config.max_receipt_members,
        })
    }

    /// The memberships of a group: not older than a second, than what this node has written, or
    /// than `least`. `head` is how many messages there are by now.
    pub async fn spans(&self, group: GroupId, least: AtLeast, head: i64) -> Result<Arc<Spans>, Error> {
        let change = self.changes.count(group);
        let read = || async move {
            let at = Instant::now();
            let _turn = self.turns.take().await?;
            let read = in_time(store::spans(&self.db, group)).await?;
            Ok(Read { spans: Arc::new(Spans::new(read)), change, head, at })
        };
        let read = get_or_read(&self.kept, group, |read| read.is_good(change, least), read).await?;
        Ok(read.spans)
    }
}
