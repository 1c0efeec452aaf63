//! Runs of Redis. What was written in another run than the one that counts is dropped.
//!
//! Some overlap. With Sentinels, a master that was away and comes back takes itself for
//! the master for some seconds, and one node may still be connected to it while others follow the
//! new one.
//!
//! So all nodes read and write the run that the row names, and no other. A node that is connected to
//! another one asks the Sentinels again. Only if they still name that one, it takes it over: it raises
//! the epoch, and nobody reads or writes the cache for [`SEEN`] from when it has heard of that. By then
//! every node knows of it, or trusts its view no longer. The row says so for longer, for nodes that
//! start: it counts from the statement, and the commit may take up to [`ASK`]. A writer tells the cache
//! of its commit only while its own view is fresh.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::bypass::ms;
use super::store::{RELEASED, View};
use super::{ASK, FRESH, Guard, SEEN, answer_in_time, store};
use crate::cache::SharedRun;
use crate::db::DbResult;

/// A question to the cache. Its outcome is noted also where the answer is not waited for any longer.
struct Asked<'a> {
    noted: &'a AtomicBool,
    answers: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.noted.store(self.answers, Ordering::Release);
    }
}

impl Guard {
    /// Raises the epoch when Redis is another run than the one that the entries were made in.
    /// Returns whether the cache answered.
    pub(super) async fn check_run(&self) -> DbResult<bool> {
        if self.cache.runs_overlap() {
            return self.check_overlapping_run().await;
        }
        let asked = Instant::now();
        let Some(run_id) = self.ask_run().await else { return Ok(false) };
        let mut conn = self.lock_conn.lock().await;
        let Some(conn) = conn.as_mut() else { return Ok(true) };
        let raised = answer_in_time(store::new_run(conn, &run_id)).await?;
        if raised {
            tracing::info!("Redis is another run than before: all cache entries are dropped");
        }
        // Another node may have raised it after this one's last refresh.
        if raised || !self.cache.is_trusted_run(&run_id) {
            self.refresh_on(conn).await?;
        }
        self.cache.trust_run(&run_id, asked);
        Ok(true)
    }

    /// Asks the cache which run it is, and notes whether it answers and takes writes.
    async fn ask_run(&self) -> Option<String> {
        let mut asked = Asked { noted: &self.cache_answers, answers: false };
        let run_id = self.cache.run_id().await.ok()?;
        asked.answers = true;
        Some(run_id)
    }

    /// Looks whether the cache is the run that is trusted, and says so to it, without the database.
    pub(super) async fn keep_run(&self) {
        let asked = Instant::now();
        if !self.cache.runs_overlap()
            && let Some(run_id) = self.ask_run().await
            && self.cache.is_trusted_run(&run_id)
        {
            self.cache.trust_run(&run_id, asked);
        }
    }

    /// What the row says, asked for at that time. To be told before its epoch is entered.
    pub(super) fn see_run(&self, view: &View, asked: Instant) {
        if !self.cache.runs_overlap() {
            return;
        }
        let left = u64::try_from(view.takeover_left_ms).unwrap_or_default();
        let written_from = self.seen_run.set(&view.run_id, Instant::now() + Duration::from_millis(left), SEEN);
        self.cache.share_run(SharedRun { id: view.run_id.clone(), written_from, known_until: asked + FRESH });
    }

    /// Brings this node and the others to one run. Whether the cache answered, and may be written.
    pub(super) async fn check_overlapping_run(&self) -> DbResult<bool> {
        let seen = self.seen_run.get();
        let is_first = seen.id == RELEASED;
        // Before what is connected is asked itself: it may not answer.
        if !is_first && self.cache.is_behind(&seen.id, seen.since) {
            self.cache.ask_again();
            return Ok(false);
        }
        let Some(found) = self.ask_run().await else { return Ok(false) };
        if found == seen.id {
            return Ok(self.seen_run.may_be_written());
        }
        let mut conn = self.lock_conn.lock().await;
        let Some(conn) = conn.as_mut() else { return Ok(false) };
        // Nobody has read any run before the first one.
        let bypass_ms = if is_first { 0 } else { ms(SEEN + ASK) };
        if answer_in_time(store::take_over(conn, &seen.id, &found, bypass_ms)).await? {
            tracing::info!("another Redis is the master: all cache entries are dropped");
        }
        self.refresh_on(conn).await?;
        // Another node may have taken over a third one.
        Ok(self.seen_run.get().id == found && self.seen_run.may_be_written())
    }
}
