//! The history of the database that this node has seen.

use std::sync::{Mutex, PoisonError};

/// The history in which this node has last looked at the database; empty where that does not tell.
#[derive(Debug, Default)]
pub(super) struct SeenHistory(Mutex<String>);

impl SeenHistory {
    pub(super) fn set(&self, history: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = history;
    }

    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
