//! What callers of a cache say and hear: who writes, what a reader finds, what a commit changed.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{FactsChange, Parts, ReadEntry, Revision};
use crate::base::ids::UserId;

/// A writer's own mark on the entries that its transaction may change. Unique among all writers of
/// all nodes (random).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Writer(pub u64);

/// The right to fill an entry, given to a reader that found it dirty or missing; dies with the next
/// write that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FillToken(pub u64);

/// What a reader finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// Clean: as new as the last acknowledged write.
    Hit(Arc<ReadEntry>),
    /// Dirty or missing: read SQL. With a token the result may be filled in. `last_known` is the
    /// dirty entry's content, for a degraded answer when SQL is away.
    Miss {
        /// None while a writer is in the entry.
        fill: Option<FillToken>,
        /// What the entry last showed, if it ever was filled.
        last_known: Option<Arc<ReadEntry>>,
    },
}

/// What one committed batch did to one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Whose entry.
    pub user: UserId,
    /// The revision that the transaction found.
    pub before: Revision,
    /// The revision after it; equal to `before` where nothing changed.
    pub after: Revision,
    /// The parts that changed, with their new values: none without a new revision. None where the writer's
    /// begin found no entry.
    pub parts: Option<Parts>,
}

/// What a writer's begin finds.
#[derive(Debug, Clone, Default)]
pub struct Begun {
    /// Until when other nodes may show copies of what the entries said, if any may.
    pub shown_until: Option<Instant>,
    /// The users without an entry. Nothing needs to be applied to those.
    pub absent_users: HashSet<UserId>,
    /// The same of facts.
    pub absent_facts: HashSet<UserId>,
}

/// What a transaction may change: entries of users, and facts of users.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    pub users: &'a [UserId],
    pub facts: &'a [UserId],
}

impl<'a, T: AsRef<[UserId]> + ?Sized> From<&'a T> for Written<'a> {
    fn from(users: &'a T) -> Self {
        Self { users: users.as_ref(), facts: &[] }
    }
}

/// What one committed batch did to entries, and to facts.
#[derive(Debug, Clone, Copy)]
pub struct Changes<'a> {
    pub entries: &'a [Change],
    pub facts: &'a [FactsChange],
}

impl<'a, T: AsRef<[Change]> + ?Sized> From<&'a T> for Changes<'a> {
    fn from(entries: &'a T) -> Self {
        Self { entries: entries.as_ref(), facts: &[] }
    }
}

/// How long a node may answer polls from copies after it last asked for word of changes. A writer
/// waits for that long, from its begin on, before it answers. So all nodes must agree: it is no
/// setting.
pub const READ_LEASE: Duration = Duration::from_millis(5);

/// The run of Redis that all nodes agree on, where several may be reached at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRun {
    pub id: String,
    /// From when on no node reads another one.
    pub written_from: Instant,
    /// Until when no node reads another one, should they agree on one.
    pub known_until: Instant,
}

/// Why an operation on the cache did not come off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheError {
    /// Redis is not reachable, did not answer in time, refused, or the breaker is open. What was
    /// asked may or may not have happened.
    Away(String),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(reason) => write!(f, "the cache is away: {reason}"),
        }
    }
}

impl std::error::Error for CacheError {}

/// A stream of numbered entries.
#[derive(Debug, Clone)]
pub struct RedisStream {
    /// Its key.
    pub key: String,
    /// About how many entries are kept.
    pub max_entries: u64,
    /// How long it lives after the last entry.
    pub ttl: Duration,
}
