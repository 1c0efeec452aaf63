//! How many connections have their home where.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

use super::shelves::Home;

/// How many connections each home has; as many entries as there are runtimes.
#[derive(Debug, Default)]
pub(super) struct Residents(Mutex<HashMap<Home, usize>>);

/// The place of one connection among those of the pool and among those of its home.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) home: Home,
    /// None once it has left.
    permit: Option<OwnedSemaphorePermit>,
    residents: Arc<Residents>,
}

impl Residents {
    fn counts(&self) -> MutexGuard<'_, HashMap<Home, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more at this home.
    pub(super) fn settle(self: &Arc<Self>, home: Home, permit: OwnedSemaphorePermit) -> Place {
        *self.counts().entry(home).or_default() += 1;
        Place { home, permit: Some(permit), residents: Arc::clone(self) }
    }

    /// Whether one home would still have no fewer than the other, had one moved.
    pub(super) fn has_more(&self, one: Home, other: Home) -> bool {
        let counts = self.counts();
        let of = |home| counts.get(&home).copied().unwrap_or_default();
        of(one) >= of(other) + 2
    }
}

impl Place {
    /// Gives up the home, and keeps the place in the pool.
    pub(super) fn leave(mut self) -> Option<OwnedSemaphorePermit> {
        self.permit.take()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(count) = self.residents.counts().get_mut(&self.home) {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn a_home_has_more_while_one_could_move_without_making_it_the_smaller() {
        let (residents, places) = (Arc::new(Residents::default()), Arc::new(Semaphore::new(3)));
        let permit = || Arc::clone(&places).try_acquire_owned().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (here, there) = (Some(runtime.handle().id()), None);
        let first = residents.settle(there, permit());
        assert!(!residents.has_more(there, here), "it would have none");
        let second = residents.settle(there, permit());
        assert!(residents.has_more(there, here));
        let moved = residents.settle(here, second.leave().unwrap());
        assert!(!residents.has_more(there, here));
        drop((first, moved));
        assert!(!residents.has_more(there, here));
        assert_eq!(places.available_permits(), 3);
    }
}
