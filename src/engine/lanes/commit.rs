//! The commit of a batch, and the way back from one that fails.

use std::time::Duration;

use tokio::time::Instant;

use super::MAX_CONNECT;
use super::failure::{Failure, Way};
use super::lane::Lane;
use super::written_entries::WrittenEntries;
use crate::cache::Writer;
use crate::db::{ErrorClass, classify};

/// How old a cache write may be at the commit: well below the lease, so that a commit never
/// outlives it.
pub(super) const MAX_WRITE_AGE: Duration = Duration::from_millis(2500);

/// How long the database may take to answer a commit before its outcome counts as unknown. With
/// [`MAX_WRITE_AGE`] it stays below the lease: after it the lease is renewed for as long as the
/// outcome is in doubt.
const MAX_COMMIT: Duration = Duration::from_secs(2);

/// How a commit took effect.
pub(super) struct Reached {
    /// Whether it was answered within the lease that the begin of the cache write gave. If not, others may have been
    /// inside the cache entries since, and have committed: nothing is to be applied.
    pub(super) in_time: bool,
    pub(super) shown_until: Option<Instant>,
}

impl Lane {
    /// Commits, and finds out what became of it should the connection be lost meanwhile.
    pub(super) async fn commit(
        &mut self,
        written: &WrittenEntries,
        writer: Writer,
        way: Way,
        began: Instant,
        shown_until: Option<Instant>,
    ) -> Result<Reached, Failure> {
        let Some(conn) = self.conn.as_mut() else { return Err(Failure::NotCommitted) };
        let committed = tokio::time::timeout(MAX_COMMIT, conn.commit()).await;
        self.batch += 1;
        let is_slow = committed.is_err();
        let error = match committed {
            Ok(Ok(())) => {
                // Not if the process stood still in between: then the lease may have ended before the commit.
                return Ok(Reached { in_time: began.elapsed() < MAX_WRITE_AGE + MAX_COMMIT, shown_until });
            }
            // What went along with the commit was refused.
            Ok(Err(error)) if classify(&error) != ErrorClass::Unknown => {
                return Err(self.undo(written, writer, way.failure(error)).await);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => String::from("no answer in time"),
        };
        tracing::warn!(error, "the outcome of a commit is unknown; asking the database");
        metrics::counter!("headmark_lane_unknown_commits_total").increment(1);
        self.conn = None;
        let committed = super::resolve::resolve(&self.engines, self.id, self.batch, written, writer).await;
        // The number after this one was used up by that.
        self.batch += 1;
        match committed {
            Some(true) => Ok(Reached { in_time: false, shown_until }),
            Some(false) => {
                let failure = if is_slow { Failure::TooSlow } else { Failure::NotCommitted };
                Err(self.undo(written, writer, failure).await)
            }
            None => {
                super::resolve::follow(self.engines.clone(), self.id, self.batch - 1, written.clone(), writer);
                Err(Failure::Unknown)
            }
        }
    }

    /// Undoes the transaction and abandons the cache entries, which stay dirty.
    pub(super) async fn undo(&mut self, written: &WrittenEntries, writer: Writer, failure: Failure) -> Failure {
        let keeps = match &failure {
            Failure::Store(error) => !matches!(classify(error), ErrorClass::Unknown | ErrorClass::Outage),
            Failure::CacheAway(_) | Failure::Stale => true,
            _ => false,
        };
        // Closing the connection undoes what is open on it.
        if let Some(mut conn) = self.conn.take()
            && keeps
            && matches!(tokio::time::timeout(MAX_CONNECT, conn.rollback()).await, Ok(Ok(())))
        {
            self.conn = Some(conn);
        }
        if let Err(error) = written.abandon_write(&self.engines.cache, writer).await {
            tracing::debug!(%error, "could not abandon the cache entries; the lease ends by itself");
        }
        failure
    }
}
