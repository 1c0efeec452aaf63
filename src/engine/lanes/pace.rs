//! How many changes a lane puts into one transaction: fewer after a batch that was too slow, and
//! slowly more again.

use std::time::Duration;

/// A batch that took longer makes the next ones smaller. Well below the age at which a cache write
/// is too old for a commit, so that a database that slows down is noticed before batches fail.
const SLOW: Duration = Duration::from_secs(1);

/// What a batch may take for the next ones to grow.
const QUICK: Duration = Duration::from_millis(500);

/// By which part of it the bound grows.
const GROWTH: u32 = 8;

/// The bound on the weight of a batch.
#[derive(Debug)]
pub(super) struct Pace {
    weight: u32,
    max_weight: u32,
}

impl Pace {
    /// Begins with the highest.
    pub(super) fn new(max_weight: u32) -> Self {
        Self { weight: max_weight.max(1), max_weight: max_weight.max(1) }
    }

    /// What the next batch may weigh.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// A batch of this weight was committed. One that was far from full tells nothing about larger
    /// ones.
    pub(super) fn took(&mut self, weight: u32, time: Duration) {
        if time > SLOW {
            self.was_too_slow(weight);
        } else if time < QUICK && weight >= self.weight / 2 {
            let more = (self.weight / GROWTH).max(1);
            self.weight = self.weight.saturating_add(more).min(self.max_weight);
        }
    }

    /// A batch of this weight was too slow.
    pub(super) fn was_too_slow(&mut self, weight: u32) {
        self.weight = (weight / 2).clamp(1, self.weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_batch_halves_the_next_ones() {
        let mut pace = Pace::new(2000);
        pace.took(260, Duration::from_millis(1001));
        assert_eq!(pace.weight(), 130);
        pace.was_too_slow(130);
        assert_eq!(pace.weight(), 65);
        pace.was_too_slow(1000);
        assert_eq!(pace.weight(), 65, "one larger request says nothing about smaller batches");
        for _ in 0..20 {
            pace.was_too_slow(pace.weight());
        }
        assert_eq!(pace.weight(), 1, "never nothing");
    }

    #[test]
    fn quick_full_batches_let_it_grow_slowly_up_to_the_bound() {
        let mut pace = Pace::new(2000);
        pace.was_too_slow(160);
        pace.took(80, Duration::from_millis(700));
        assert_eq!(pace.weight(), 80, "neither slow nor quick");
        pace.took(10, Duration::from_millis(5));
        assert_eq!(pace.weight(), 80, "too small to tell");
        pace.took(80, Duration::from_millis(5));
        assert_eq!(pace.weight(), 90);
        let mut batches = 0;
        while pace.weight() < 2000 {
            pace.took(pace.weight(), Duration::from_millis(5));
            batches += 1;
        }
        assert!((20..60).contains(&batches), "{batches}");
        pace.took(2000, Duration::from_millis(5));
        assert_eq!(pace.weight(), 2000);
    }
}
