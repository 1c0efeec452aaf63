//! How a batch is tried, and how that may end.

use std::fmt;
use std::time::Duration;

use super::{Verdict, unavailable, unknown_outcome};
use crate::base::error::{Error, Fault, WithoutRow};
use crate::cache::CacheError;
use crate::db::classify;

/// How long a cache that does not answer is tried again before the epoch is raised, which costs all
/// nodes the cache for some seconds: a stall shorter than this costs its own time only.
pub(super) const CACHE_PATIENCE: Duration = Duration::from_millis(1500);

/// The pause between two of these tries.
pub(super) const CACHE_PAUSE: Duration = Duration::from_millis(100);

/// Why a batch was not committed.
pub(super) enum Failure {
    /// The database said no, or is away; nothing was changed.
    Store(sqlx::Error),
    /// It took too long; nothing was changed.
    TooSlow,
    /// The connection was lost in the commit, and the commit turned out not to have happened.
    NotCommitted,
    /// The connection was lost in the commit, and the database could not tell what became of it.
    Unknown,
    /// The cache write could not begin; nothing was changed.
    CacheAway(CacheError),
    /// Another node may hold this database now; nothing was changed.
    NotHolder,
    /// A row was not as this node knew it; nothing was changed.
    Stale,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => f.debug_tuple("Store").field(&WithoutRow(error)).finish(),
            Self::CacheAway(error) => f.debug_tuple("CacheAway").field(error).finish(),
            Self::TooSlow => f.write_str("TooSlow"),
            Self::NotCommitted => f.write_str("NotCommitted"),
            Self::Unknown => f.write_str("Unknown"),
            Self::NotHolder => f.write_str("NotHolder"),
            Self::Stale => f.write_str("Stale"),
        }
    }
}

impl Failure {
    /// What the callers of the batch are told.
    pub(super) fn answer(&self) -> Error {
        match self {
            Self::Store(error) if classify(error).may_pass() => unavailable(),
            Self::Store(_) => Fault::Bug(String::from("the database refused a write, see the log")).into(),
            Self::Unknown => unknown_outcome().into(),
            Self::TooSlow | Self::NotCommitted | Self::CacheAway(_) | Self::NotHolder | Self::Stale => unavailable(),
        }
    }
}

/// What became of one job of a committed batch.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It has its answer.
    Answered(Verdict),
    /// A transaction elsewhere holds its idempotency key: to be tried again.
    KeyTaken,
}

/// How a batch is tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// Past the cache: nobody reads it.
    pub(super) bypasses: bool,
    /// With users' rows as this node knows them, instead of locking and reading them.
    pub(super) knows: bool,
    /// With other rows as commands say that they are.
    pub(super) assumes: bool,
}

impl Way {
    /// Where rows are missing, that is the lane's own, or one is another than was known.
    pub(super) fn failure(self, error: sqlx::Error) -> Failure {
        match error {
            sqlx::Error::RowNotFound if self.knows || self.assumes => Failure::Stale,
            sqlx::Error::RowNotFound => {
                // Swept while this lane was idle: it must register again before it may commit.
                tracing::info!("a lane registers again");
                Failure::NotCommitted
            }
            error => Failure::Store(error),
        }
    }
}
