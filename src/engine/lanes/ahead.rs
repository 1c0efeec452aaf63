//! Users' rows that are made ahead of a batch, in a transaction of their own: where other lanes make
//! rows of the same users, each try of the batch would meet another of them.

use std::collections::HashSet;

use super::lane::Lane;
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline};
use crate::engine::erased;
use crate::engine::marks::users::{make_users, read_users};
use crate::failpoint;

/// How long it takes at most, in waits for a lock. Nothing else of the lane goes on meanwhile.
const LOCK_WAITS: u32 = 2;

impl Lane {
    /// Makes those of these users' rows that are missing. Where this does not succeed, the next try of
    /// the batch is one like any other.
    pub(super) async fn make_ahead(&mut self, users: &[UserId]) {
        let most = LOCK_WAITS * self.lock_wait();
        let made = async { make_missing(self.connected().await?, users).await };
        let failure = match tokio::time::timeout(most, made).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => sqlx::Error::PoolTimedOut,
        };
        tracing::debug!(error = %failure, "could not make the users' rows ahead");
        // Which undoes what is open on it.
        self.conn = None;
    }
}

/// Only rows that are missing, and in the order of their ids: so it waits for nobody but makers of later
/// rows, and nobody waits for it but makers of the same ones. An erased user must stay without a row.
async fn make_missing(conn: &mut Conn, users: &[UserId]) -> DbResult<()> {
    let pipeline = Pipeline::default();
    conn.begin().await?;
    let there: HashSet<_> = pipeline.run(conn, read_users(&pipeline, users)).await?.into_iter().map(|(user, _)| user).collect();
    let mut missing: Vec<_> = users.iter().copied().filter(|user| !there.contains(user)).collect();
    let gone = pipeline.run(conn, erased::find(&pipeline, &missing)).await?;
    missing.retain(|user| gone.iter().all(|(erased, _)| erased != user));
    make_users(conn, &missing).await?;
    // While the insert waited for others, a missing user may have been erased, row and all. From the insert on
    // an erasure waits for the row.
    let gone = pipeline.run(conn, erased::find(&pipeline, &missing)).await?;
    if !gone.is_empty() {
        return conn.rollback().await;
    }
    conn.commit().await?;
    failpoint("lane::after_make_ahead");
    Ok(())
}
