//! The turns of users' own heavy writes: a user has one at a time in the queues, so that none fills them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::base::id_hash::IdHash;
use crate::base::ids::UserId;

/// What weighs more waits for its user's turn.
pub(super) const HEAVY: u32 = 100;

/// How many turns may be remembered before those that nobody holds or waits for are forgotten.
const REMEMBERED: usize = 1024;

/// Each user's turn, where somebody has it or waits for it.
#[derive(Debug, Default)]
pub(super) struct OwnTurns(Mutex<HashMap<UserId, Arc<Semaphore>, IdHash>>);

impl OwnTurns {
    /// Waits for the user's turn, which lasts until what is returned is dropped; None where the time is
    /// over before.
    pub(super) async fn take(&self, user: UserId, give_up: Instant) -> Option<OwnedSemaphorePermit> {
        let turn = self.of(user);
        tokio::time::timeout_at(give_up, turn.acquire_owned()).await.ok()?.ok()
    }

    fn of(&self, user: UserId) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= REMEMBERED {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(turns.entry(user).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_user_has_one_turn_and_others_have_their_own() {
        let turns = OwnTurns::default();
        let user = |id: usize| UserId::try_from(i64::try_from(id).unwrap()).unwrap();
        let soon = || Instant::now() + Duration::from_millis(20);
        let first = turns.take(user(1), soon()).await;
        assert!(first.is_some() && turns.take(user(1), soon()).await.is_none());
        for other in 2..2 * REMEMBERED {
            assert!(turns.take(user(other), soon()).await.is_some());
        }
        assert!(turns.0.lock().unwrap().len() <= REMEMBERED, "what nobody holds is forgotten");
        assert!(turns.take(user(1), soon()).await.is_none(), "what somebody holds is not");
        drop(first);
        assert!(turns.take(user(1), soon()).await.is_some());
    }
}
