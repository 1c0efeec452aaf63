//! Read receipts in groups: who of a message's recipients has read it.
//!
//! Nothing is stored for it with a message. Recipients are those whose membership spans the message (joined before it, not left before it), less the sender; who of
//! them has read it follows from how far each has read in that membership (`crate::features::groups::Reading`). So a message costs no byte, who catches up on many
//! messages writes one row, and no row is written by two members. The answers are those of the known design that keeps `{max id, read bits, quit bits}` with
//! each message, bitmaps on the wire included; see docs/adr/0011.
//!
//! Answering goes through all memberships of a group, once for a screenful. A node keeps them for a second ([`Receipts`]). It reads them again at once after a write of its
//! own, and for a message that is newer. `store.rs` reads them, `watch.rs` looks for changes on behalf of all polls that wait, `http.rs` has the routes.

pub mod http;
pub mod store;
mod watch;

pub use self::watch::Watch;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use moka::future::Cache as Kept;
use tokio::time::Instant;

use crate::base::error::{Error, Fault};
use crate::base::ids::{GroupId, UserId};
use crate::db::{Db, DbResult};
use crate::engine::turns::Turns;
use crate::features::groups::Reading;
use crate::features::groups::changes::GroupChanges;

/// For how long memberships that were read are kept, and how many in all.
const KEPT: Duration = Duration::from_secs(1);
const MAX_KEPT_SPANS: u64 = 1_000_000;

/// How long one read of SQL may take.
const MAX_SQL_READ: Duration = Duration::from_secs(4);

/// How receipts are bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Groups")]
pub struct ReceiptConfig {
    /// The maximum number of ordinals in a bitmap of receipts. Counts and lists are available for
    /// more.
    #[arg(long, env = "HEADMARK_MAX_RECEIPT_MEMBERS", default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pub max_receipt_members: i64,
}

/// One membership of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The member's number in the group.
    pub ordinal: i64,
    /// Who.
    pub user: UserId,
    /// The head when joining.
    pub from_seq: i64,
    /// The head when leaving; None: a member now.
    pub to_seq: Option<i64>,
    /// How far the member has read.
    pub reading: Reading,
}

impl Span {
    /// Whether a message was sent within it.
    fn covers(&self, seq: i64) -> bool {
        self.from_seq < seq && self.to_seq.is_none_or(|to| seq <= to)
    }
}

/// All memberships of a group there ever were, as of one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spans {
    /// In the order of ordinals, and of each the oldest first.
    spans: Vec<Span>,
    /// Goes up with each change of what is read, and with who comes and goes.
    progress: i64,
}

/// How many recipients a message has, and how many of them have read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// The members when it was sent, less the sender.
    pub recipients: i64,
    /// Those of them who have read it.
    pub read: i64,
}

/// A recipient of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    /// Who.
    pub user: UserId,
    /// The member's number in the group.
    pub ordinal: i64,
    /// Whether the membership of that time has ended.
    pub left: bool,
}

/// The bitmaps of a message. Ordinal `i` (from 1) is bit `i - 1`, the lowest bit of each byte first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmaps {
    /// The highest ordinal there was when the message was sent.
    pub max_ordinal: i64,
    /// The recipients who have read it.
    pub read: Vec<u8>,
    /// Those who had left before it was sent.
    pub quit: Vec<u8>,
}

fn set_bit(bits: &mut [u8], ordinal: i64) {
    let Some(bit) = usize::try_from(ordinal).ok().and_then(|ordinal| ordinal.checked_sub(1)) else { return };
    if let Some(byte) = bits.get_mut(bit / 8) {
        *byte |= 1 << (bit % 8);
    }
}

impl Spans {
    /// Of these memberships, in the order of ordinals.
    #[must_use]
    pub fn new(spans: Vec<Span>) -> Self {
        let read = |span: &Span| {
            let left = i64::from(span.to_seq.is_some());
            span.reading.read_seq() + span.reading.extra_len() + span.from_seq + 1 + left
        };
        let progress = spans.iter().map(read).fold(0, i64::saturating_add);
        Self { spans, progress }
    }

    /// Goes up with each change of what is read, and with who comes and goes.
    #[must_use]
    pub fn progress(&self) -> i64 {
        self.progress
    }

    /// Whether a user is a member now.
    #[must_use]
    pub fn is_member(&self, user: UserId) -> bool {
        self.spans.iter().any(|span| span.user == user && span.to_seq.is_none())
    }

    fn covering(&self, seq: i64) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.covers(seq))
    }

    /// The counts of the messages from this one to that one, given who sent each (None: it is not counted). One walk through the memberships.
    #[must_use]
    pub fn counts(&self, from: i64, senders: &[Option<UserId>]) -> Vec<Count> {
        let to = from + i64::try_from(senders.len()).unwrap_or(0) - 1;
        // Steps between neighbours, added up at the end.
        let mut steps = vec![Count::default(); senders.len() + 1];
        let mut add = |first: i64, last: i64, step: Count| {
            let (first, last) = (first.max(from), last.min(to));
            let place = |seq: i64| usize::try_from(seq - from).unwrap_or(0);
            if first <= last {
                for (at, sign) in [(place(first), 1), (place(last) + 1, -1)] {
                    if let Some(count) = steps.get_mut(at) {
                        count.recipients += sign * step.recipients;
                        count.read += sign * step.read;
                    }
                }
            }
        };
        for span in &self.spans {
            let end = span.to_seq.unwrap_or(i64::MAX);
            add(span.from_seq + 1, end, Count { recipients: 1, read: 0 });
            add(span.from_seq + 1, end.min(span.reading.read_seq()), Count { recipients: 0, read: 1 });
            for seq in span.reading.extra_within((span.from_seq + 1).max(from), end.min(to)) {
                add(seq, seq, Count { recipients: 0, read: 1 });
            }
        }
        let mut sum = Count::default();
        let counts = (from..).zip(senders).zip(&steps).map(|((seq, sender), step)| {
            sum = Count { recipients: sum.recipients + step.recipients, read: sum.read + step.read };
            // The sender is no recipient.
            let own = sender.and_then(|sender| self.spans.iter().find(|span| span.user == sender && span.covers(seq)));
            let own_read = own.is_some_and(|span| span.reading.has_read(seq));
            Count { recipients: sum.recipients - i64::from(own.is_some()), read: sum.read - i64::from(own_read) }
        });
        counts.collect()
    }

    /// The recipients of a message who have read it, or those who have not, after an ordinal.
    pub fn recipients(&self, seq: i64, sender: UserId, read: bool, after: i64) -> impl Iterator<Item = Recipient> {
        let these = self.covering(seq).filter(move |span| span.ordinal > after && span.user != sender);
        let these = these.filter(move |span| span.reading.has_read(seq) == read);
        these.map(|span| Recipient { user: span.user, ordinal: span.ordinal, left: span.to_seq.is_some() })
    }

    /// The highest ordinal that there was when a message was sent.
    #[must_use]
    pub fn max_ordinal(&self, seq: i64) -> i64 {
        self.spans.iter().filter(|span| span.from_seq < seq).map(|span| span.ordinal).max().unwrap_or(0)
    }

    /// The bitmaps of a message.
    #[must_use]
    pub fn bitmaps(&self, seq: i64, sender: UserId) -> Bitmaps {
        let max_ordinal = self.max_ordinal(seq);
        let bytes = usize::try_from(max_ordinal).unwrap_or(0).div_ceil(8);
        let (mut read, mut there) = (vec![0; bytes], vec![0; bytes]);
        for span in self.covering(seq) {
            set_bit(&mut there, span.ordinal);
            if span.user != sender && span.reading.has_read(seq) {
                set_bit(&mut read, span.ordinal);
            }
        }
        let mut quit = vec![0; bytes];
        for ordinal in 1..=max_ordinal {
            set_bit(&mut quit, ordinal);
        }
        quit.iter_mut().zip(&there).for_each(|(quit, there)| *quit &= !there);
        Bitmaps { max_ordinal, read, quit }
    }
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
        let seen = self.change == change && self.spans.progress >= least.progress && self.head >= least.seq;
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
        let weigh = |_: &GroupId, read: &Read| u32::try_from(read.spans.spans.len()).unwrap_or(u32::MAX);
        Arc::new(Self {
            db,
            turns,
            kept: Kept::builder().weigher(weigh).max_capacity(MAX_KEPT_SPANS).time_to_live(KEPT).build(),
            changes,
            watched: watch::Watched::default(),
            max_members: config.max_receipt_members,
        })
    }

    /// The memberships of a group: not older than a second, than what this node has written, or than `least`. `head` is how many messages there are by now.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn spans(&self, group: GroupId, least: AtLeast, head: i64) -> Result<Arc<Spans>, Error> {
        let change = self.changes.count(group);
        if let Some(read) = self.kept.get(&group).await.filter(|read| read.is_good(change, least)) {
            return Ok(read.spans);
        }
        // Once for all who ask at the same time.
        let load = async |kept: Option<moka::Entry<GroupId, Read>>| {
            if kept.is_some_and(|kept| kept.value().is_good(change, least)) {
                return Ok(moka::ops::compute::Op::Nop);
            }
            let at = Instant::now();
            let _turn = self.turns.take().await?;
            let read = self.in_time(store::spans(&self.db, group)).await?;
            Ok::<_, Error>(moka::ops::compute::Op::Put(Read { spans: Arc::new(Spans::new(read)), change, head, at }))
        };
        use moka::ops::compute::CompResult;
        match self.kept.entry(group).and_try_compute_with(load).await? {
            CompResult::Inserted(read) | CompResult::ReplacedWith(read) | CompResult::Unchanged(read) | CompResult::Removed(read) => {
                Ok(read.into_value().spans)
            }
            CompResult::StillNone(_) => Err(Fault::Bug("memberships that were loaded are not there".to_owned()).into()),
        }
    }

    async fn in_time<T>(&self, read: impl Future<Output = DbResult<T>>) -> DbResult<T> {
        tokio::time::timeout(MAX_SQL_READ, read).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }
}
