//! A node's own bypass: which commits go on untouched, and when it may end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use super::{COMMIT_MARGIN, Guard, PROLONG, SEEN, ms, store};
use crate::db::DbResult;

/// A bypass that begins so soon after the last one ended is left to run out: a cache that comes and
/// goes would cost more waits of [`SEEN`] than it saves reads.
const CALM: Duration = Duration::from_secs(60);

/// The state of a node's own bypass. Times are milliseconds since the start of the guard.
#[derive(Debug)]
pub(super) struct Bypass {
    /// Whether this node commits untouched.
    on: AtomicBool,
    /// Until when it holds, as writers must see it (early).
    until_ms: AtomicI64,
    /// Untouched transactions that are under way.
    under_way: AtomicUsize,
    /// Until when an untouched transaction may still commit whose outcome nobody knows.
    in_doubt_until_ms: AtomicI64,
    /// When the last one was ended ahead of its time.
    ended_ms: AtomicI64,
    /// Whether this one is left to run out.
    runs_out: AtomicBool,
}

impl Default for Bypass {
    fn default() -> Self {
        Self {
            on: AtomicBool::new(false),
            until_ms: AtomicI64::new(0),
            under_way: AtomicUsize::new(0),
            in_doubt_until_ms: AtomicI64::new(0),
            ended_ms: AtomicI64::new(-ms(CALM)),
            runs_out: AtomicBool::new(false),
        }
    }
}

impl Bypass {
    /// From now on this node commits untouched.
    pub(super) fn entered(&self, now_ms: i64) {
        self.runs_out.store(now_ms - self.ended_ms.load(Ordering::SeqCst) < ms(CALM), Ordering::SeqCst);
        self.on.store(true, Ordering::SeqCst);
    }

    /// What the row says.
    pub(super) fn holds_until(&self, until_ms: i64) {
        self.until_ms.store(until_ms, Ordering::SeqCst);
    }

    fn left_ms(&self, now_ms: i64) -> i64 {
        self.until_ms.load(Ordering::SeqCst) - now_ms
    }

    /// Whether an untouched commit may begin now.
    fn allows(&self, now_ms: i64) -> bool {
        self.on.load(Ordering::SeqCst) && self.left_ms(now_ms) > ms(COMMIT_MARGIN)
    }

    /// Whether no untouched commit can come any more, once no further one begins.
    fn is_over(&self, now_ms: i64) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0 && now_ms >= self.in_doubt_until_ms.load(Ordering::SeqCst)
    }
}

/// The right to one transaction that commits without touching the cache. Where it is dropped without
/// [`Untouched::is_over`], the transaction counts as in doubt.
#[derive(Debug)]
pub struct Untouched {
    guard: Arc<Guard>,
    is_over: bool,
}

impl Untouched {
    /// The transaction was committed or undone, and nothing more of it can come.
    pub fn is_over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        let bypass = &self.guard.bypass;
        if !self.is_over {
            bypass.in_doubt_until_ms.fetch_max(self.guard.now_ms() + ms(COMMIT_MARGIN), Ordering::SeqCst);
        }
        bypass.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Guard {
    /// Whether commits may go on without touching the cache.
    #[must_use]
    pub fn is_bypassing(&self) -> bool {
        self.bypass.allows(self.now_ms())
    }

    /// The right to go on without touching the cache, if a bypass allows it.
    #[must_use]
    pub fn untouched(self: &Arc<Self>) -> Option<Untouched> {
        // Counted before it is looked at: whoever ends the bypass looks at the count last.
        self.bypass.under_way.fetch_add(1, Ordering::SeqCst);
        let right = Untouched { guard: Arc::clone(self), is_over: false };
        if self.is_bypassing() {
            return Some(right);
        }
        right.is_over();
        None
    }

    /// While this node commits untouched, its bypass must not run out.
    pub(super) async fn prolong(&self) -> DbResult<()> {
        let left = self.bypass.left_ms(self.now_ms());
        if self.bypass.on.load(Ordering::SeqCst) && left < ms(PROLONG) {
            if left < ms(SEEN) {
                // Too late to prolong unseen: the next write enters again, and waits.
                self.bypass.on.store(false, Ordering::SeqCst);
                return Ok(());
            }
            self.raise().await?;
            self.refresh().await?;
        }
        Ok(())
    }

    /// The cache is back: no further commit goes untouched, and once the last one is over, the bypass
    /// ends. The epoch rises with it, as a reader may hold a fill token that it was given meanwhile.
    pub(super) async fn try_to_end_bypass(&self) -> DbResult<()> {
        // Whoever enters one at this moment needs it.
        let Ok(_entering) = self.entering.try_lock() else { return Ok(()) };
        if self.bypass.on.swap(false, Ordering::SeqCst) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_nothing_is_under_way_or_in_doubt() {
        let bypass = Bypass::default();
        assert!(!bypass.allows(0) && bypass.is_over(0));
        bypass.holds_until(15_000);
        bypass.entered(3000);
        assert!(bypass.allows(6999) && !bypass.allows(7000), "a commit that begins later may outlive it");
        bypass.under_way.store(1, Ordering::SeqCst);
        assert!(!bypass.is_over(4000));
        bypass.under_way.store(0, Ordering::SeqCst);
        bypass.in_doubt_until_ms.store(9000, Ordering::SeqCst);
        assert!(!bypass.is_over(8999) && bypass.is_over(9000));
    }

    #[test]
    fn the_second_one_within_a_minute_runs_out() {
        let bypass = Bypass::default();
        bypass.entered(0);
        assert!(!bypass.runs_out.load(Ordering::SeqCst), "the first one after the start");
        bypass.ended_ms.store(10_000, Ordering::SeqCst);
        bypass.entered(69_999);
        assert!(bypass.runs_out.load(Ordering::SeqCst));
        bypass.entered(70_000);
        assert!(!bypass.runs_out.load(Ordering::SeqCst));
    }
}
