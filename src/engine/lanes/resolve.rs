//! After a connection was lost during COMMIT: did it take effect?
//!
//! Each transaction of a lane raises that lane's own row by one, so the row tells. Reading it under
//! a lock waits for the old transaction should its backend still be at work. (Asking
//! `pg_xact_status` would do the same until Postgres itself crashes: a transaction id that never
//! reached the log may be given out again. See `docs/adr/0003-unknown-commits.md`.)

use std::time::Duration;

use tokio::time::Instant;

use super::touched::Touched;
use super::{LaneEngines, MAX_CONNECT};
use crate::cache::Writer;
use crate::db::{Column, Statement, Type};

/// How long the database is asked before the callers are told that the outcome is unknown.
const MAX_RESOLVE: Duration = Duration::from_secs(10);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// How long one try may take; below the lease, so that the entries stay touched meanwhile.
const MAX_ASK: Duration = Duration::from_secs(3);

static BATCH: Statement = Statement::new(
    "select batch
    from lanes
    where lane_id in (select lane_id from {rows} r)
    {for update}",
    &[("lane_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 1] {
    [&BATCH]
}

/// What became of a commit in doubt.
pub(super) struct Resolved {
    /// Whether the transaction took effect; None when the database could not tell.
    pub(super) committed: Option<bool>,
    /// Whether the writer was inside the cache entries all the time. If not, a reader may have
    /// filled in what was there before the commit.
    pub(super) was_inside: bool,
}

/// Finds out whether the lane's transaction with this number took effect.
pub(super) async fn resolve(engines: &LaneEngines, lane: i64, batch: i64, touched: &Touched, writer: Writer) -> Resolved {
    let give_up = Instant::now() + MAX_RESOLVE;
    let mut was_inside = true;
    loop {
        // Renews the lease: the old transaction may still commit.
        if let Err(error) = touched.touch(&engines.cache, writer).await {
            tracing::debug!(%error, "could not renew the touch of a commit in doubt");
            was_inside = false;
        }
        match tokio::time::timeout(MAX_ASK, ask(engines, lane)).await {
            Ok(Ok(found)) => return Resolved { committed: took_effect(found, batch), was_inside },
            Ok(Err(error)) => tracing::warn!(%error, "cannot ask for the outcome of a commit yet"),
            Err(_) => tracing::warn!("the database is slow to tell the outcome of a commit"),
        }
        if Instant::now() >= give_up {
            return Resolved { committed: None, was_inside };
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What the lane's row says of the transaction with this number. The transaction had found the row,
/// so one that is missing was removed since then, by hand or with a restore: it says nothing.
fn took_effect(found: Option<i64>, batch: i64) -> Option<bool> {
    if found.is_none() {
        tracing::error!("the row of a running lane is gone, so the outcome of its commit stays unknown");
    }
    Some(found? >= batch)
}

async fn ask(engines: &LaneEngines, lane: i64) -> Result<Option<i64>, sqlx::Error> {
    let mut conn = tokio::time::timeout(MAX_CONNECT, engines.db.connect()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
    conn.begin().await?;
    let rows: Vec<(i64,)> = conn.fetch(&BATCH, &[Column::Int(vec![lane])]).await?;
    conn.rollback().await?;
    Ok(rows.first().map(|(batch,)| *batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_that_is_there_tells() {
        assert_eq!(took_effect(Some(7), 7), Some(true));
        assert_eq!(took_effect(Some(6), 7), Some(false));
        assert_eq!(took_effect(None, 7), None, "unknown, not \"no\"");
    }
}
