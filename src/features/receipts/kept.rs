//! What a node keeps of the groups whose receipts are asked for.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::time::Instant;

use super::answers::{Age, Claim};
use super::store::{self, Sent, Terms};
use super::{ReceiptConfig, Spans, watch};
use crate::base::error::Result;
use crate::base::ids::{GroupId, UserId};
use crate::base::lately::Lately;
use crate::db::{Db, DbResult, in_time};
use crate::engine::get_or_read::get_or_read;
use crate::engine::turns::Turns;
use crate::failpoint;
use crate::features::groups::changes::GroupChanges;
use crate::features::groups::{deleted, unknown};

/// For how long rows that were read are kept, and how many memberships and messages in all.
const KEPT: Duration = Duration::from_secs(1);
const MAX_KEPT_SPANS: u64 = 1_000_000;
const MAX_KEPT_MESSAGES: u64 = 1_000_000;

/// The senders of so many messages are read together.
const STRETCH: i64 = 64;

/// What the receipts of a group follow from.
#[derive(Debug)]
pub struct Known {
    pub terms: Terms,
    pub spans: Spans,
}

/// What was read, and before which change.
#[derive(Debug)]
struct Read<T> {
    what: Arc<T>,
    change: u64,
    /// How many messages there were, and how often the group's stream had changed, at least.
    head: i64,
    version: i64,
    at: Instant,
}

impl<T> Clone for Read<T> {
    fn clone(&self) -> Self {
        Self { what: Arc::clone(&self.what), ..*self }
    }
}

/// What must not be shown any older.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtLeast {
    /// How often the group's stream has changed.
    pub version: i64,
    /// The message that is asked about: its recipients are the members when it was sent.
    pub seq: i64,
    /// This moment.
    pub at: Option<Instant>,
}

impl<T> Read<T> {
    /// Whether it serves a request that came then. A read that began later does, however long it took.
    fn is_good(&self, asked: Instant, change: u64, least: AtLeast) -> bool {
        let seen = self.change >= change && self.head >= least.seq && self.version >= least.version;
        seen && least.at.is_none_or(|at| self.at >= at) && (self.at >= asked || self.at.elapsed() < KEPT)
    }
}

/// The groups whose receipts are asked for.
#[derive(Debug)]
pub struct Receipts {
    pub(super) db: Db,
    /// Those of polls to read the database.
    pub turns: Arc<Turns>,
    groups: Cache<GroupId, Read<Known>>,
    /// Who sent a stretch of a group's messages, by its place.
    senders: Cache<(GroupId, i64), Read<Vec<Sent>>>,
    /// The changes that this node made.
    pub(super) changes: Arc<GroupChanges>,
    /// Users for whose claims to have seen more all memberships of a group were read: which claims, of which group.
    doubted: Lately<(UserId, GroupId, Claim)>,
    /// The groups of which polls wait for receipts.
    pub(super) watched: watch::Watched,
    /// How many ordinals a bitmap may have.
    pub max_members: i64,
}

impl Receipts {
    /// Over this database.
    #[must_use]
    pub fn new(config: &ReceiptConfig, db: Db, turns: Arc<Turns>, changes: Arc<GroupChanges>) -> Arc<Self> {
        let weigh = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).saturating_add(1);
        let weigh_group = move |_: &GroupId, read: &Read<Known>| weigh(read.what.spans.weight());
        let weigh_senders = move |_: &(GroupId, i64), read: &Read<Vec<Sent>>| weigh(read.what.len());
        Arc::new(Self {
            db,
            turns,
            groups: Cache::builder().weigher(weigh_group).max_capacity(MAX_KEPT_SPANS).time_to_live(KEPT).build(),
            senders: Cache::builder().weigher(weigh_senders).max_capacity(MAX_KEPT_MESSAGES).time_to_live(KEPT).build(),
            changes,
            doubted: Lately::default(),
            watched: watch::Watched::default(),
            max_members: config.max_receipt_members,
        })
    }

    /// What the receipts of a group follow from: not older than a second, than what this node has
    /// written, or than `least`.
    ///
    /// # Errors
    /// 404 where there is no such group, 410 where it was deleted.
    pub async fn group(&self, group: GroupId, mut least: AtLeast) -> Result<Arc<Known>> {
        let (asked, change) = (Instant::now(), self.changes.count(group));
        // The memberships are many rows: asking for a message that never was must not read them again.
        if self.groups.get(&group).await.is_some_and(|kept| kept.head < least.seq) {
            let terms = self.turns.read(store::terms(&self.db, group)).await?;
            least.seq = least.seq.min(known_terms(group, terms)?.head);
        }
        let read = || async move {
            let _turn = self.turns.take().await?;
            // The count of now: so this serves all requests that came before it.
            let (change, at) = (self.changes.count(group), Instant::now());
            let (terms, spans) = in_time(self.terms_and_spans(group)).await?;
            let terms = known_terms(group, terms)?;
            Ok(Read { what: Arc::new(Known { terms, spans }), change, head: terms.head, version: terms.version, at })
        };
        Ok(get_or_read(&self.groups, group, |read| read.is_good(asked, change, least), read).await?.what)
    }

    /// The terms come first, so that the memberships are not older.
    async fn terms_and_spans(&self, group: GroupId) -> DbResult<(Option<Terms>, Spans)> {
        let terms = store::terms(&self.db, group).await?;
        failpoint("receipts::before_spans");
        let spans = if terms.is_some_and(|terms| !terms.deleted) { store::spans(&self.db, group).await? } else { Vec::new() };
        Ok((terms, Spans::new(spans)))
    }

    /// Whether the memberships of a group need not be read.
    #[must_use]
    pub fn has(&self, group: GroupId) -> bool {
        self.groups.contains_key(&group)
    }

    /// A user, or a service, asks about a message and has seen an answer of this revision.
    pub fn asked(&self, group: GroupId, by: Option<UserId>, seq: i64, seen: i64) -> Asking<'_> {
        Asking { receipts: self, group, by, least: AtLeast { seq, ..AtLeast::default() }, seen, at: Instant::now() }
    }

    /// Who sent the messages from this one to that one, which are at most a screenful; as new as
    /// `known` and as what this node has written.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn senders(&self, group: GroupId, known: &Known, from: i64, to: i64) -> Result<Vec<Sent>> {
        let (asked, change) = (Instant::now(), self.changes.count(group));
        let Terms { head, version, .. } = known.terms;
        let least = AtLeast { seq: to.min(head), version, ..AtLeast::default() };
        let mut senders = Vec::new();
        for place in from / STRETCH..=to.min(head) / STRETCH {
            let first = place * STRETCH;
            let read = || async move {
                let _turn = self.turns.take().await?;
                let (change, at) = (self.changes.count(group), Instant::now());
                let what = Arc::new(in_time(store::senders(&self.db, group, first, first + STRETCH - 1)).await?);
                Ok(Read { what, change, head, version, at })
            };
            let read = get_or_read(&self.senders, (group, place), |read| read.is_good(asked, change, least), read).await?;
            senders.extend(read.what.iter().filter(|(seq, ..)| (from..=to).contains(seq)));
        }
        Ok(senders)
    }
}

fn known_terms(group: GroupId, terms: Option<Terms>) -> Result<Terms> {
    let terms = terms.ok_or_else(|| unknown(group))?;
    if terms.deleted { Err(deleted(group).into()) } else { Ok(terms) }
}

/// A request, which may come from a client that has seen more than this node.
#[derive(Debug)]
pub struct Asking<'r> {
    receipts: &'r Receipts,
    group: GroupId,
    by: Option<UserId>,
    least: AtLeast,
    seen: i64,
    at: Instant,
}

impl Asking<'_> {
    /// What its answer follows from.
    ///
    /// # Errors
    /// As [`Receipts::group`].
    pub async fn known(&self) -> Result<Arc<Known>> {
        self.receipts.group(self.group, self.least).await
    }

    /// Whether an answer will do. If it is older than what the client has seen, [`Self::known`] is read again as of
    /// now, unless it cannot be that new: then the tag is of another version, or made up. A user who has claimed to
    /// have seen what is not so is not believed for some seconds: each such claim costs a read of all memberships.
    pub(super) fn will_do(&mut self, age: Age) -> bool {
        let Some(claim) = age.claim(self.seen) else { return true };
        let (doubted, by) = (&self.receipts.doubted, self.by.map(|user| (user, self.group, claim)));
        if by.is_some_and(|by| doubted.has(&by)) {
            return true;
        }
        if self.least.at.replace(self.at).is_some() {
            by.into_iter().for_each(|by| doubted.changed(by));
            return true;
        }
        false
    }
}
