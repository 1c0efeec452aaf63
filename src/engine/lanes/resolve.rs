//! After a connection was lost during COMMIT: did it take effect?
//!
//! Each transaction of a lane raises that lane's own row, so the row tells. Reading it under a lock
//! waits for the old transaction should its backend still be at work. Where it was not raised, it is
//! raised past it here: what may still be under way to the database then finds a higher number, and
//! fails. (Asking `pg_xact_status` would do the same until Postgres itself crashes: a transaction id
//! that never reached the log may be given out again. See `docs/adr/0003-unknown-commits.md`.)

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::written_entries::WrittenEntries;
use super::{LaneEngines, MAX_CONNECT};
use crate::cache::Writer;
use crate::db::{Column, Statement, Type};
use crate::failpoint;

/// How long the database is asked before the callers are told that the outcome is unknown.
const MAX_RESOLVE: Duration = Duration::from_secs(10);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// How long one try may take; below the lease, so that the writer stays inside meanwhile.
const MAX_ASK: Duration = Duration::from_secs(3);

static BATCH: Statement = Statement::new(
    "select batch
    from lanes
    where lane_id in (select lane_id from {rows} r)
    {for update}",
    &[("lane_id", Type::Int)],
);

static PASS: Statement = Statement::new(
    "update lanes
    set batch = r.batch
    from {rows} r
    where lanes.lane_id = r.lane_id",
    &[("lane_id", Type::Int), ("batch", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 2] {
    [&BATCH, &PASS]
}

/// Finds out whether the lane's transaction with this number took effect; None when the database
/// could not tell. The next number is used up by that.
pub(super) async fn resolve(engines: &LaneEngines, lane: i64, batch: i64, written: &WrittenEntries, writer: Writer) -> Option<bool> {
    let give_up = Instant::now() + MAX_RESOLVE;
    loop {
        renew(engines, written, writer).await;
        match tokio::time::timeout(MAX_ASK, ask(engines, lane, batch)).await {
            Ok(Ok(committed)) => {
                if committed.is_none() {
                    tracing::error!("the row of a running lane does not tell what became of its commit, so that stays unknown");
                }
                return committed;
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot ask for the outcome of a commit yet"),
            Err(_) => tracing::warn!("the database is slow to tell the outcome of a commit"),
        }
        if Instant::now() >= give_up {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Renews the lease: the old transaction may still commit.
async fn renew(engines: &LaneEngines, written: &WrittenEntries, writer: Writer) {
    if let Err(error) = written.begin_write(&engines.cache, writer).await {
        tracing::debug!(%error, "could not renew the lease of a commit in doubt");
    }
}

/// The pause between two tries of a commit that is followed on: with [`MAX_ASK`] below the lease.
const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// How long it is followed. A commit may wait for a standby that is away, which no timeout of
/// Postgres ends.
const MAX_FOLLOW: Duration = Duration::from_secs(3600);

/// How many are followed at once, and how many of those ask the database at once. Of any more the
/// lease ends by itself.
static FOLLOWED: Semaphore = Semaphore::const_new(256);
static ASKING: Semaphore = Semaphore::const_new(2);

/// Goes on after the callers were told that the outcome is unknown: the writer stays inside until
/// the transaction is over, for nothing else would make dirty what a reader fills in before that.
pub(super) fn follow(engines: LaneEngines, lane: i64, batch: i64, written: WrittenEntries, writer: Writer) {
    tokio::spawn(async move {
        let Ok(_followed) = FOLLOWED.try_acquire() else {
            tracing::error!("too many commits are in doubt: what this one wrote may show late");
            return;
        };
        let give_up = Instant::now() + MAX_FOLLOW;
        while Instant::now() < give_up {
            tokio::time::sleep(FOLLOW_PAUSE).await;
            renew(&engines, &written, writer).await;
            let Ok(_asking) = ASKING.try_acquire() else { continue };
            if let Ok(Ok(committed)) = tokio::time::timeout(MAX_ASK, ask(&engines, lane, batch)).await {
                // None where the lane has gone on: then nobody can tell any more, and nobody asks.
                tracing::info!(?committed, "a commit in doubt is over");
                break;
            }
        }
        if let Err(error) = written.abandon_write(&engines.cache, writer).await {
            tracing::debug!(%error, "could not abandon the cache entries of a commit in doubt");
        }
        engines.bell.ring();
    });
}

/// What the lane's row says of a transaction.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Committed,
    /// Not committed, and it never will be.
    Passed,
    /// Not committed yet.
    Open,
    /// The row does not tell.
    Gone,
}

/// What the lane's row says of the transaction with this number: only that transaction writes the
/// number, and only [`PASS`] the next one. The lane had registered, so a row that is missing was
/// removed since then, by hand or with a restore: it says nothing.
fn outcome(found: Option<i64>, batch: i64) -> Outcome {
    match found {
        Some(found) if found < batch => Outcome::Open,
        Some(found) if found == batch => Outcome::Committed,
        Some(found) if found == batch + 1 => Outcome::Passed,
        _ => Outcome::Gone,
    }
}

async fn ask(engines: &LaneEngines, lane: i64, batch: i64) -> Result<Option<bool>, sqlx::Error> {
    let mut conn = tokio::time::timeout(MAX_CONNECT, engines.db.connect()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
    conn.begin().await?;
    let rows: Vec<(i64,)> = conn.fetch(&BATCH, &[Column::Int(vec![lane])]).await?;
    let found = outcome(rows.first().map(|(batch,)| *batch), batch);
    if found == Outcome::Open {
        conn.later_all(&PASS, &[lane, batch + 1].map(|value| Column::Int(vec![value]))).await?;
        failpoint("lane::before_pass");
        conn.commit().await?;
        return Ok(Some(false));
    }
    conn.rollback().await?;
    conn.finish_commits().await?;
    Ok(match found {
        Outcome::Committed => Some(true),
        Outcome::Passed | Outcome::Open => Some(false),
        Outcome::Gone => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_that_is_there_tells() {
        assert_eq!(outcome(Some(7), 7), Outcome::Committed);
        assert_eq!(outcome(Some(6), 7), Outcome::Open, "it may still come");
        assert_eq!(outcome(Some(8), 7), Outcome::Passed);
        assert_eq!(outcome(None, 7), Outcome::Gone, "unknown, not \"no\"");
        assert_eq!(outcome(Some(9), 7), Outcome::Gone, "nobody wrote that");
    }
}
