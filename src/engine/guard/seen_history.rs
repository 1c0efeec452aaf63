//! The history of the database that this node has seen.

use std::sync::{Mutex, PoisonError};

/// The history in which this node has last looked at the database; empty where that does not tell.
#[derive(Debug, Default)]
pub(super) struct SeenHistory(Mutex<Seen>);

/// A history, and how often it was another one before.
#[derive(Debug, Default)]
struct Seen {
    history: String,
    number: u64,
}

impl SeenHistory {
    /// Returns whether it was another one before.
    pub(super) fn set(&self, history: String) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = seen.history != history;
        if is_other {
            *seen = Seen { history, number: seen.number + 1 };
        }
        is_other
    }

    pub(super) fn number(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).number
    }

    pub(super) fn history(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).history.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_rises_with_another_history_alone() {
        let seen = SeenHistory::default();
        let number = |history: &str| {
            seen.set(history.to_owned());
            seen.number()
        };
        assert_eq!(["a", "a", "b", "b", "", "b"].map(number), [1, 1, 2, 2, 3, 4]);
    }
}
