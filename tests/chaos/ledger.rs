//! What was acknowledged, and when. Each user is owned by one writer, who alone acts as that user;
//! what users share may be written by everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub const WRITERS: usize = 8;
const USERS: i64 = 24;
pub const BADGES: [&str; 3] = ["like", "mention", "comment"];
pub const CHANNELS: [&str; 2] = ["system", "news"];
pub const DOTS: [&str; 2] = ["mall", "shop"];
/// Groups whose members never change. The first delivers by reading, the second by writing.
pub const STEADY_GROUPS: [i64; 2] = [1, 2];
/// Groups whose members come and go, of both deliveries.
pub const BUSY_GROUPS: [i64; 2] = [3, 4];
/// A group that delivers by writing to so many that one page does not take them. They never act.
pub const LARGE_GROUP: i64 = 5;
const LISTENERS: i64 = 2500;

/// Who only receives, beside the users.
pub fn listeners() -> impl DoubleEndedIterator<Item = i64> {
    100_001..=100_000 + LISTENERS
}

pub fn users() -> impl Iterator<Item = i64> {
    1..=USERS
}

/// The users whom this writer acts as.
pub fn owned_by(writer: usize) -> Vec<i64> {
    users().filter(|user| usize::try_from(*user).unwrap() % WRITERS == writer).collect()
}

/// What was acknowledged of one counter.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// The sum of the increments.
    pub added: i64,
    /// The highest head that an increment returned.
    pub head: i64,
    /// The heads returned, which may be retracted.
    pub positions: Vec<i64>,
    pub up_to: i64,
    pub retracted: BTreeSet<i64>,
}

/// The heads that were acknowledged of one thing, and when.
#[derive(Debug, Default)]
pub struct Heads(Vec<(i64, Instant)>);

impl Heads {
    /// Acknowledged now.
    pub fn push(&mut self, head: i64) {
        let newest = self.0.last().map_or(head, |(before, _)| head.max(*before));
        self.0.push((newest, Instant::now()));
    }

    /// The highest that was acknowledged up to this moment. Quick after hours, too: what looks at
    /// the nodes must not slow down by itself.
    pub fn before(&self, moment: Instant) -> i64 {
        let at = self.0.partition_point(|(_, when)| *when <= moment);
        at.checked_sub(1).map_or(0, |last| self.0[last].0)
    }
}

/// A message that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub sender: i64,
    pub content: String,
}

#[derive(Debug, Default)]
pub struct Noted {
    pub counters: BTreeMap<(i64, &'static str), Tally>,
    pub revisions: BTreeMap<i64, i64>,
    /// Channels (`c:`) and dots (`d:`).
    pub shared: BTreeMap<String, Heads>,
    pub messages: BTreeMap<(i64, i64), Sent>,
    pub group_heads: BTreeMap<i64, Heads>,
    /// By receiver and seq.
    pub directs: BTreeMap<(i64, i64), Sent>,
    pub posts: BTreeMap<i64, i64>,
    /// Events that must come, and those that came.
    pub events: BTreeSet<String>,
    pub events_seen: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct Ledger {
    noted: Mutex<Noted>,
    keys: AtomicU64,
    pub writes: AtomicU64,
    pub retries: AtomicU64,
    pub polls: AtomicU64,
    pub degraded: AtomicU64,
    pub rows: AtomicU64,
}

impl Ledger {
    pub fn note<T>(&self, change: impl FnOnce(&mut Noted) -> T) -> T {
        change(&mut self.noted.lock().unwrap())
    }

    /// A key that no other request has.
    pub fn key(&self) -> String {
        format!("chaos-{}", self.keys.fetch_add(1, Ordering::Relaxed))
    }

    pub fn revision(&self, user: i64, revision: Option<i64>) {
        if let Some(revision) = revision {
            self.note(|noted| {
                let newest = noted.revisions.entry(user).or_default();
                *newest = revision.max(*newest);
            });
        }
    }

    pub fn summary(&self) -> String {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        format!(
            "{} writes acknowledged, {} tried again, {} polls, {} degraded, {} inbox rows and events read",
            read(&self.writes),
            read(&self.retries),
            read(&self.polls),
            read(&self.degraded),
            read(&self.rows)
        )
    }
}
