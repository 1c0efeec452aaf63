//! Turns that each user has for itself: of each user only so much is under way at a time, so that none takes all
//! of what users share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::base::id_hash::IdHash;
use crate::base::ids::UserId;

/// How many turns may at least be remembered before those that nobody holds or waits for are forgotten.
const REMEMBERED: usize = 1024;

/// Each user's places, where somebody has any or waits for some.
#[derive(Debug)]
pub(super) struct OwnTurns {
    /// How many a user has.
    places: u32,
    users: Mutex<Users>,
}

#[derive(Debug)]
struct Users {
    turns: HashMap<UserId, Arc<Semaphore>, IdHash>,
    /// From how many on it is looked again which nobody holds. Twice what was left the last time: where most are held, not
    /// each call looks at all.
    look_at: usize,
}

impl OwnTurns {
    /// So many places for each user.
    pub(super) fn new(places: u32) -> Self {
        Self { places, users: Mutex::new(Users { turns: HashMap::default(), look_at: REMEMBERED }) }
    }

    /// Waits for so many places of a user, or for all where that are more. They are kept until what is
    /// returned is dropped. None where the time is over before.
    pub(super) async fn take(&self, user: UserId, places: u32, give_up: Instant) -> Option<OwnedSemaphorePermit> {
        let turn = self.of(user);
        tokio::time::timeout_at(give_up, turn.acquire_many_owned(places.min(self.places))).await.ok()?.ok()
    }

    fn of(&self, user: UserId) -> Arc<Semaphore> {
        let Users { turns, look_at } = &mut *self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= *look_at {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            *look_at = (2 * turns.len()).max(REMEMBERED);
        }
        Arc::clone(turns.entry(user).or_insert_with(|| Arc::new(Semaphore::new(usize::try_from(self.places).unwrap_or(1)))))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_user_has_so_many_places_and_others_have_their_own() {
        let turns = OwnTurns::new(20);
        let user = |id: usize| UserId::try_from(i64::try_from(id).unwrap()).unwrap();
        let soon = || Instant::now() + Duration::from_millis(20);
        let first = turns.take(user(1), 15, soon()).await;
        assert!(first.is_some() && turns.take(user(1), 6, soon()).await.is_none());
        assert!(turns.take(user(1), 5, soon()).await.is_some(), "many small ones have places too");
        assert!(turns.take(user(1), 1000, soon()).await.is_none() && turns.take(user(2), 1000, soon()).await.is_some());
        for other in 2..2 * REMEMBERED {
            assert!(turns.take(user(other), 20, soon()).await.is_some());
        }
        assert!(turns.users.lock().unwrap().turns.len() <= REMEMBERED, "what nobody holds is forgotten");
        assert!(turns.take(user(1), 6, soon()).await.is_none(), "what somebody holds is not");
        drop(first);
        assert!(turns.take(user(1), 20, soon()).await.is_some());
    }

    #[tokio::test]
    async fn where_many_hold_turns_not_each_call_looks_at_all() {
        let turns = OwnTurns::new(20);
        let of = |ids: std::ops::Range<usize>| ids.map(|id| turns.of(UserId::try_from(i64::try_from(id).unwrap()).unwrap()));
        let look_at = || turns.users.lock().unwrap().look_at;
        let held: Vec<_> = of(1..2 * REMEMBERED + 1).collect();
        assert_eq!(look_at(), 2 * REMEMBERED, "all were held");
        drop(held);
        let _ = of(1..4 * REMEMBERED).count();
        assert_eq!(look_at(), REMEMBERED, "none was held");
        assert!(turns.users.lock().unwrap().turns.len() <= REMEMBERED);
    }
}
