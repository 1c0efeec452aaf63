//! How much goes into one transaction: as much as is done within a fraction of a second on this
//! machine.
//!
//! Larger batches are cheaper for each step. But a batch must be over well before the cache write
//! of its cache entries is too old, also on a slow disk, and those who write through running nodes
//! meanwhile wait for it.

use std::time::Duration;

use crate::base::ids::UserId;

/// The bounds of a batch, in steps.
const MIN_STEPS: usize = 100;
const FIRST_STEPS: usize = 2000;
pub(crate) const MAX_STEPS: usize = 10_000;

/// How many users' own rows, and cache entries, a batch touches at most.
const MAX_USERS: usize = 2000;

/// A batch that took longer makes the next ones smaller; one that took less, larger. The time
/// includes the wait for the batch of the other lane.
const SLOW: Duration = Duration::from_millis(600);
const QUICK: Duration = Duration::from_millis(300);

/// The present size of batches.
#[derive(Debug)]
pub(super) struct Pace {
    steps: usize,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { steps: FIRST_STEPS }
    }

    /// How many of these steps, of which those of a user stand together, go into the next batch.
    pub(super) fn cut<T>(&self, steps: &[T], owner: impl Fn(&T) -> UserId) -> usize {
        let mut users = 0;
        let mut before = None;
        for (at, step) in steps.iter().enumerate().take(self.steps) {
            if before != Some(owner(step)) {
                before = Some(owner(step));
                users += 1;
                if users > MAX_USERS {
                    return at;
                }
            }
        }
        steps.len().min(self.steps)
    }

    pub(super) fn done(&mut self, steps: usize, took: Duration) {
        if took > SLOW {
            self.failed();
        } else if took < QUICK && steps >= self.steps {
            self.steps = (self.steps * 5 / 4).min(MAX_STEPS);
        }
    }

    pub(super) fn failed(&mut self) {
        self.steps = (self.steps / 2).max(MIN_STEPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pace: &Pace, count: i64, each: i64) -> usize {
        let owners: Vec<UserId> = (0..count).map(|n| (1 + n / each).try_into().unwrap()).collect();
        pace.cut(&owners, |owner| *owner)
    }

    #[test]
    fn a_batch_has_a_bound_on_steps_and_one_on_users() {
        let pace = Pace { steps: MAX_STEPS };
        assert_eq!(cut(&pace, 20_000, 50), MAX_STEPS);
        assert_eq!(cut(&pace, 20_000, 1), MAX_USERS);
        assert_eq!(cut(&pace, 20_000, 3), 3 * MAX_USERS);
        assert_eq!(cut(&pace, 7, 1), 7);
        assert_eq!(cut(&pace, 0, 1), 0);
    }

    #[test]
    fn batches_shrink_where_they_are_slow() {
        let mut pace = Pace::new();
        for _ in 0..100 {
            pace.done(pace.steps, Duration::from_millis(10));
        }
        assert_eq!(pace.steps, MAX_STEPS);
        pace.done(5, Duration::from_millis(10));
        pace.done(pace.steps, Duration::from_millis(500));
        assert_eq!(pace.steps, MAX_STEPS, "right as it is");
        pace.done(pace.steps, Duration::from_secs(1));
        assert_eq!(pace.steps, MAX_STEPS / 2);
        pace.done(1, Duration::from_millis(10));
        assert_eq!(pace.steps, MAX_STEPS / 2, "a small batch tells nothing");
        for _ in 0..100 {
            pace.failed();
        }
        assert_eq!(pace.steps, MIN_STEPS);
    }
}
