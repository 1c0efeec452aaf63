//! A node's own bypass: which commits go past the cache, and when it may end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::bypass::{COMMIT_MARGIN, ms};
use super::{BYPASS, Guard, PROLONG, SEEN, store};
use crate::db::DbResult;

/// The right to one transaction that commits past the cache. Where it is dropped without
/// [`BypassingCommit::finish`], the transaction counts as in doubt.
#[derive(Debug)]
pub struct BypassingCommit {
    guard: Arc<Guard>,
    is_over: bool,
}

impl BypassingCommit {
    /// The transaction was committed or undone, and nothing more of it can come.
    pub fn finish(mut self) {
        self.is_over = true;
    }
}

impl Drop for BypassingCommit {
    fn drop(&mut self) {
        let bypass = &self.guard.bypass;
        if !self.is_over {
            bypass.in_doubt_until_ms.fetch_max(self.guard.now_ms() + ms(COMMIT_MARGIN), Ordering::SeqCst);
        }
        bypass.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Guard {
    /// Whether commits may go past the cache.
    #[must_use]
    pub fn is_bypassing(&self) -> bool {
        self.bypass.allows(self.now_ms())
    }

    /// The right to commit past the cache, if a bypass allows it.
    #[must_use]
    pub fn bypassing_commit(self: &Arc<Self>) -> Option<BypassingCommit> {
        // Counted before it is looked at: anyone who ends the bypass looks at the count last.
        self.bypass.under_way.fetch_add(1, Ordering::SeqCst);
        let right = BypassingCommit { guard: Arc::clone(self), is_over: false };
        if self.is_bypassing() {
            return Some(right);
        }
        right.finish();
        None
    }

    /// While this node commits past the cache, its bypass must not run out. Where the row was raised less than
    /// [`SEEN`] before the end that everybody knows, or nobody can tell when, some node may use the cache
    /// in between: then no commit goes on, and the next write enters again, and waits.
    pub(super) async fn prolong(&self) -> DbResult<()> {
        // Held to the end, so that no refresh tells of the new end before this has looked at the old one.
        let mut conn = self.lock_conn.lock().await;
        let left_ms = || self.bypass.left_ms(self.now_ms());
        if !self.bypass.is_on() || left_ms() >= ms(PROLONG) {
            return Ok(());
        }
        if left_ms() < ms(SEEN) {
            self.bypass.stop();
            return Ok(());
        }
        let conn = conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let raised = super::answer_in_time(store::raise(conn, self.node, ms(BYPASS))).await;
        if raised.is_err() || left_ms() < ms(SEEN) {
            self.bypass.stop();
            return raised;
        }
        self.refresh_on(conn).await
    }

    /// The cache is back: no further commit goes past it, and once the last one is over, the
    /// bypass ends. The epoch rises with it, as a reader may hold a fill token that it was given
    /// meanwhile.
    pub(super) async fn try_to_end_bypass(&self) -> DbResult<()> {
        // Anyone who enters one at this moment needs it.
        let Ok(_entering) = self.entering.try_lock() else { return Ok(()) };
        if self.bypass.stop() {
            tracing::info!("the cache is back");
        }
        let now_ms = self.now_ms();
        let holds = self.bypass.left_ms(now_ms) > 0 && !self.bypass.runs_out.load(Ordering::SeqCst);
        if !holds || !self.bypass.is_over(now_ms) {
            return Ok(());
        }
        let mut conn = self.lock_conn.lock().await;
        let conn = conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        super::answer_in_time(store::end(conn, self.node)).await?;
        self.bypass.ended_ms.store(now_ms, Ordering::SeqCst);
        self.refresh_on(conn).await
    }
}
