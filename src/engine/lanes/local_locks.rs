//! Locks on users among the lanes of a node, ahead of those of the database.
//!
//! Two lanes that write the same row do it one after the other in any case. Where the database has the
//! second one wait, its copy of the row is wrong by then, and its whole batch is done again. Here it waits
//! before its transaction begins, and takes the copies that the first one has left.
//!
//! Nothing depends on these locks: other nodes do not know them, and a lane that has waited too long
//! goes on without.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::base::id_hash::IdHash;
use crate::base::ids::UserId;

/// How long a lane waits at most. With the longest wait for a lock of the database after it, its cache write
/// is still young enough for a commit.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// The users whose rows a lane of this node may be writing.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalLocks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    locked: Mutex<HashSet<UserId, IdHash>>,
    freed: Notify,
    /// Held by the lane that waits, so that lanes are served in the order in which they came: who has just freed
    /// its users would otherwise have the next ones before anybody who waits has woken.
    turn: tokio::sync::Mutex<()>,
}

/// Users who are locked until this is dropped.
#[derive(Debug)]
pub(super) struct LocalLock {
    shared: Arc<Shared>,
    users: Vec<UserId>,
}

impl LocalLocks {
    /// Locks all of these users at once, so that no two lanes can wait for each other; each user is named
    /// once. None where one of them stays locked for so long.
    pub(super) async fn lock(&self, users: &[UserId], wait: Duration) -> Option<LocalLock> {
        let locked = async {
            let _turn = self.0.turn.lock().await;
            loop {
                // Created before the look, so that nothing freed after it is missed.
                let freed = self.0.freed.notified();
                if let Some(lock) = self.try_lock(users) {
                    return lock;
                }
                freed.await;
            }
        };
        let lock = tokio::time::timeout(wait.min(MAX_WAIT), locked).await.ok();
        if lock.is_none() {
            metrics::counter!("headmark_lane_local_lock_timeouts_total").increment(1);
        }
        lock
    }

    fn try_lock(&self, users: &[UserId]) -> Option<LocalLock> {
        let mut locked = self.0.locked();
        if users.iter().any(|user| locked.contains(user)) {
            return None;
        }
        locked.extend(users);
        Some(LocalLock { shared: Arc::clone(&self.0), users: users.to_vec() })
    }
}

impl Shared {
    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn locked(&self) -> MutexGuard<'_, HashSet<UserId, IdHash>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LocalLock {
    fn drop(&mut self) {
        let mut locked = self.shared.locked();
        self.users.iter().for_each(|user| {
            locked.remove(user);
        });
        drop(locked);
        self.shared.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = MAX_WAIT;

    fn users(ids: impl IntoIterator<Item = i64>) -> Vec<UserId> {
        ids.into_iter().map(|id| id.try_into().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_user_is_locked_once_at_a_time() {
        let locks = LocalLocks::default();
        let first = locks.lock(&users([1, 2]), LONG).await.unwrap();
        let apart = locks.lock(&users([3]), LONG).await.unwrap();
        assert!(locks.lock(&users([2, 4]), SHORT).await.is_none(), "2 stays locked");
        let four = locks.lock(&users([4]), SHORT).await;
        assert!(four.is_some(), "who waited in vain has locked nobody");
        drop((first, four));
        assert!(locks.lock(&users([1, 2, 4]), SHORT).await.is_some());
        drop(apart);
        assert!(locks.0.locked().is_empty());
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_all_are_free() {
        let locks = LocalLocks::default();
        let (one, two) = (locks.lock(&users([1]), LONG).await, locks.lock(&users([2]), LONG).await);
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { locks.lock(&users([1, 2]), LONG).await.is_some() }
        });
        drop(one);
        tokio::time::sleep(SHORT).await;
        assert!(!waiting.is_finished());
        drop(two);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn who_came_first_is_first() {
        let locks = LocalLocks::default();
        let held = locks.lock(&users([1]), LONG).await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { locks.lock(&users([1, 2]), LONG).await }
        });
        tokio::task::yield_now().await;
        // A lane with its next batch ready asks again before the waiting one has run.
        drop(held);
        let again = locks.lock(&users([1]), SHORT).await;
        assert!(again.is_none());
        assert!(waiting.await.unwrap().is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nobody_is_left_locked_or_waiting() {
        let locks = LocalLocks::default();
        let lanes: Vec<_> = (0..4)
            .map(|lane| {
                let locks = locks.clone();
                tokio::spawn(async move {
                    for round in 0..500 {
                        let of_round: BTreeSet<_> = (1..4).map(|n| 1 + (lane + round * n) % 7).collect();
                        let lock = locks.lock(&users(of_round), LONG).await;
                        tokio::task::yield_now().await;
                        assert!(lock.is_some());
                    }
                })
            })
            .collect();
        for lane in lanes {
            lane.await.unwrap();
        }
        assert!(locks.0.locked().is_empty());
    }
}
