//! The node lock: which nodes may use a database together, and that this one still may.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::refused::{ASK_AGAIN, Refusal};
use super::{ASK, Guard, Lock, SEEN, answer_in_time, answer_within, store};
use crate::cache::HISTORY_STEP;
use crate::db::{Conn, DbResult, MAX_FIRST_CONNECT};
use crate::engine::epoch;
use crate::engine::heads::Heads;

/// Whether another node has claimed a database, by the epoch of this one and that of the row. Another
/// history is no claim: this node itself may have noted it, or an operator.
fn is_claimed(own: i64, row: i64) -> bool {
    (row - own) % HISTORY_STEP != 0
}

impl Guard {
    /// For a node alone: fails once another node has claimed the database. Run in every
    /// transaction, it holds a share of the row to the commit, so that a claim waits for the
    /// commits that began before it.
    ///
    /// # Errors
    /// The driver's own; `Ok(false)` when the database is another's.
    pub async fn fence(&self, conn: &mut Conn) -> DbResult<bool> {
        if !self.is_alone() {
            return Ok(true);
        }
        let mine = store::epoch_shared(conn).await? == Some(self.cache.epoch());
        if !mine {
            self.set_lock(Lock::Lost);
        }
        Ok(mine)
    }

    /// At the start the history that was noted with the epoch counts as seen: [`epoch::ensure`] has just looked.
    /// Should the database have failed over since then, the first lane meets another one. What was noted says
    /// nothing where the database does not tell its history any more.
    pub(super) async fn see_first_history(&self) -> DbResult<()> {
        let mut conn = self.lock_conn.lock().await;
        let conn = conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let tells = !answer_in_time(epoch::history(conn)).await?.is_empty();
        let noted = if tells { answer_in_time(epoch::noted(conn)).await?.1 } else { String::new() };
        self.seen_history.set(noted);
        Ok(())
    }

    /// A number that is another one once this node has seen another history: connections of before may be to a
    /// server that is no longer the database.
    #[must_use]
    pub fn history_number(&self) -> u64 {
        self.seen_history.number()
    }

    /// Whether a new connection leads to the history of the database that this node has seen. In another one, what
    /// the cache and this node's memory hold may be lost; and a failover may be over before this node misses
    /// the connection with its lock. So the lock counts as lost then, and nothing is written until this node has
    /// looked. It costs a question, unless the database does not tell its history.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn is_in_seen_history(&self, conn: &mut Conn) -> DbResult<bool> {
        if self.seen_history.history().is_empty() {
            return Ok(true);
        }
        let history = epoch::history(conn).await?;
        // Looked at afterwards, as this node may have looked meanwhile.
        let is_seen = history == self.seen_history.history();
        if !is_seen {
            tracing::warn!(history, "a lane meets another history of the database; writes are refused");
            self.set_lock(Lock::Lost);
        }
        Ok(is_seen)
    }

    /// Tells a successor that nothing is served from here any more, so that it need not wait.
    pub async fn release(&self) {
        let mut conn = self.lock_conn.lock().await;
        if self.is_alone()
            && let Some(held) = conn.as_mut()
            && let Err(error) = answer_in_time(store::claim(held, store::RELEASED)).await
        {
            tracing::debug!(%error, "could not release the database; the next node waits a little");
        }
        *conn = None;
    }

    /// Opens the connection that holds the node lock for as long as it lives. Returns what was seen
    /// where the lock was refused.
    async fn take_lock(&self, max_connect: Duration) -> DbResult<Option<Refusal>> {
        let mut conn = answer_within(max_connect, self.db.connect_watched()).await?;
        if !answer_in_time(store::try_lock(&mut conn, self.cache.is_shared())).await? {
            let row = answer_in_time(store::view(&mut conn, self.node)).await?;
            let is_claimed = match self.is_alone() {
                true => is_claimed(self.cache.epoch(), row.epoch) && !self.claim_in_doubt.load(Ordering::Acquire),
                false => row.run_id == store::CLAIMED,
            };
            let seen_ms = answer_in_time(store::lock_seen(&mut conn)).await.unwrap_or_else(|error| {
                // Then time decides.
                tracing::debug!(%error, "cannot see what has the node lock");
                None
            });
            return Ok(Some(Refusal { is_claimed, seen_ms }));
        }
        *self.lock_conn.lock().await = Some(conn);
        self.refused.end();
        Ok(None)
    }

    /// The same at the start. Waits for a lock that may be held for nobody. Returns whether it got
    /// the lock.
    pub(super) async fn take_first_lock(&self) -> DbResult<bool> {
        let mut waits = false;
        crate::failpoint("guard::before_first_lock");
        while let Some(refusal) = self.take_lock(MAX_FIRST_CONNECT).await? {
            if self.refused.keeps_out(refusal, Instant::now()) {
                return Ok(false);
            }
            if !waits {
                waits = true;
                tracing::info!("the node lock is taken; waiting to see whether anybody is there");
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
        Ok(true)
    }

    /// Takes the lock again where it was lost. Nothing is written until `heads` know which epoch it is.
    pub(super) async fn keep_lock(&self, heads: &Arc<Heads>) {
        if !self.ping_lock().await {
            self.take_lock_again().await;
        }
        if self.lock() == Lock::Settling
            && let Err(error) = self.settle(heads).await
        {
            tracing::warn!(%error, "cannot look at the epoch of the installation yet; writes are refused");
        }
    }

    async fn take_lock_again(&self) {
        *self.lock_conn.lock().await = None;
        self.set_lock(Lock::Lost);
        // Before anything of the cache is trusted again.
        match answer_in_time(epoch::look(&self.db)).await {
            Ok(looked) => {
                if self.seen_history.set(looked.history) {
                    self.db.renew_connections();
                }
                // Beside the loop, which tells this node meanwhile that no entry counts.
                self.following.hear(&self.db, looked.other, SEEN);
            }
            Err(error) => {
                self.refused.end();
                tracing::warn!(%error, "cannot look at the history of the database yet; writes are refused");
                return;
            }
        }
        let refusal = match self.take_lock(ASK).await {
            Ok(None) if self.is_alone() => self.begin_alone().await.map(|()| None),
            // What this node knows of the epoch, and of its bypass, may be of a history that is lost.
            Ok(None) => self.refresh().await.map(|()| None),
            taken => taken,
        };
        match refusal {
            Ok(None) => {
                self.set_lock(Lock::Settling);
                tracing::info!("took the node lock again");
            }
            Ok(Some(refusal)) if self.refused.displaces(refusal, Instant::now()) => {
                tracing::error!("another node has taken the node lock; this one must stop");
                self.set_lock(Lock::Taken);
            }
            Ok(Some(_)) => tracing::warn!("the node lock is taken, perhaps by a lost connection of this node; writes are refused"),
            Err(error) => {
                self.refused.end();
                tracing::warn!(%error, "cannot take the node lock yet; writes are refused");
            }
        }
    }

    /// The lock is held again. What this node keeps and shows, and every tag that a client has, may be of a history
    /// that is lost: with the old epoch a write of this one could pass for what they know. So nothing is written
    /// before the new epoch has begun, and this node shows it. All of it is asked over the connection with the lock,
    /// which may be to another server than the one that was looked at.
    async fn settle(&self, heads: &Arc<Heads>) -> DbResult<()> {
        let (now, epoch, noted) = {
            let mut conn = self.lock_conn.lock().await;
            let conn = conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
            let now = answer_in_time(epoch::history(conn)).await?;
            let (epoch, noted) = answer_in_time(epoch::noted(conn)).await?;
            (now, epoch, noted)
        };
        if now != self.seen_history.history() {
            self.set_lock(Lock::Lost);
            return Ok(());
        }
        if !now.is_empty() && now != noted {
            return Ok(());
        }
        if *heads.epoch() != *epoch {
            heads.catch_up().await?;
        }
        if *heads.epoch() == *epoch && self.settled() {
            tracing::info!("this node may write again");
        }
        Ok(())
    }

    /// Whether the lock is held: the connection that took it lives, and no commit was fenced off.
    async fn ping_lock(&self) -> bool {
        let asked = self.now_ms();
        let mut conn = self.lock_conn.lock().await;
        let Some(held) = conn.as_mut() else { return false };
        if !self.is_alone() {
            return answer_in_time(held.ping()).await.is_ok() && self.lock().is_held();
        }
        // Another epoch than its own ends its entries, also where it does not write: an operator has
        // restored the database.
        let view = answer_in_time(store::view(held, self.node)).await;
        let is_held = view.is_ok_and(|view| view.epoch == self.cache.epoch()) && self.lock().is_held();
        if is_held {
            self.viewed_ms.store(asked, Ordering::Release);
        }
        is_held
    }

    pub(super) fn lock(&self) -> Lock {
        match self.lock.load(Ordering::Acquire) {
            0 => Lock::Held,
            1 => Lock::Settling,
            2 => Lock::Lost,
            _ => Lock::Taken,
        }
    }

    /// Unless a lane has met yet another history meanwhile.
    fn settled(&self) -> bool {
        let (settling, held) = (Lock::Settling as u8, Lock::Held as u8);
        self.lock.compare_exchange(settling, held, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn set_lock(&self, lock: Lock) {
        self.lock.store(lock as u8, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_history_is_no_claim() {
        assert!(!is_claimed(7, 7) && !is_claimed(7, 7 + 3 * HISTORY_STEP));
        assert!(is_claimed(7, 8) && is_claimed(7, 8 + 3 * HISTORY_STEP));
    }
}
