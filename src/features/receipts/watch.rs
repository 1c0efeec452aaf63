//! Whom to tell of receipts: the groups of which polls wait for them, and what the last look at
//! each found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::store::Terms;
use crate::base::ids::GroupId;

/// The groups that are looked at, each as long as somebody waits. At most as many as there are
/// polls that wait.
#[derive(Debug, Default)]
pub(super) struct Watched(Mutex<HashMap<GroupId, Arc<Seen>>>);

/// What the last look found, and who is to be told when the next one finds something else.
#[derive(Debug, Default)]
pub(super) struct Seen {
    last: Mutex<Option<Look>>,
    pub(super) changes: watch::Sender<()>,
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) terms: Terms,
    pub(super) progress: i64,
}

/// Tells of the changes in one group.
#[derive(Debug)]
pub struct Watch {
    pub(super) seen: Arc<Seen>,
    /// Counts the changes.
    pub changes: watch::Receiver<()>,
}

impl Seen {
    pub(super) fn last(&self) -> MutexGuard<'_, Option<Look>> {
        // Every change is one step, so a poisoned lock guards whole data.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(self: &Arc<Self>) -> Watch {
        Watch { seen: Arc::clone(self), changes: self.changes.subscribe() }
    }
}

impl Watched {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<GroupId, Arc<Seen>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
