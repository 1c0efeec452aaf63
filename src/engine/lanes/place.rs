//! The room for jobs that are set aside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is set aside and not answered yet.
pub(super) struct Held {
    max_weight: u32,
    now: Mutex<Holding>,
}

#[derive(Default)]
pub(super) struct Holding {
    weight: u32,
    /// How many jobs of each key.
    pub(super) keys: HashMap<i64, usize>,
}

/// A job's place among those that are set aside, given back when the job is answered.
pub(super) struct Place {
    held: Arc<Held>,
    key: i64,
    weight: u32,
}

impl Held {
    /// Nothing is set aside yet.
    pub(super) fn new(max_weight: u32) -> Self {
        Self { max_weight, now: Mutex::default() }
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    pub(super) fn now(&self) -> MutexGuard<'_, Holding> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, if there is room. One job alone always has room, however much it weighs.
    pub(super) fn place(self: &Arc<Self>, key: i64, weight: u32) -> Option<Place> {
        let mut now = self.now();
        if now.weight > 0 && now.weight.saturating_add(weight) > self.max_weight {
            return None;
        }
        now.weight = now.weight.saturating_add(weight);
        *now.keys.entry(key).or_default() += 1;
        drop(now);
        metrics::counter!("headmark_lane_set_aside_total").increment(1);
        metrics::gauge!("headmark_lane_set_aside").increment(1.0);
        Some(Place { held: Arc::clone(self), key, weight })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut now = self.held.now();
        now.weight = now.weight.saturating_sub(self.weight);
        if let Some(jobs) = now.keys.get_mut(&self.key) {
            *jobs -= 1;
            if *jobs == 0 {
                now.keys.remove(&self.key);
            }
        }
        metrics::gauge!("headmark_lane_set_aside").decrement(1.0);
    }
}
