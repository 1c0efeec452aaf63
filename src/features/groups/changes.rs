//! The changes that this node makes to groups, for those who show what they have read of them.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::base::ids::GroupId;

/// Groups share so many counters of changes.
const SLOTS: usize = 1024;

/// Counts the changes that this node made, for several groups together.
#[derive(Debug)]
pub struct GroupChanges {
    slots: Vec<(AtomicU64, watch::Sender<()>)>,
    hasher: RandomState,
}

impl GroupChanges {
    /// None so far.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let slots = std::iter::repeat_with(|| (AtomicU64::new(0), watch::Sender::default())).take(SLOTS).collect();
        Arc::new(Self { slots, hasher: RandomState::new() })
    }

    fn slot(&self, group: GroupId) -> Option<&(AtomicU64, watch::Sender<()>)> {
        let hash = usize::try_from(self.hasher.hash_one(group) >> 32).unwrap_or(0);
        self.slots.get(hash % SLOTS)
    }

    /// This node has changed something in a group: what was read before is not shown any more, and
    /// waiting polls look again.
    pub fn tell(&self, group: GroupId) {
        if let Some((count, listeners)) = self.slot(group) {
            count.fetch_add(1, Ordering::AcqRel);
            listeners.send_modify(|()| {});
        }
    }

    /// Goes up with each change of a group.
    #[must_use]
    pub fn count(&self, group: GroupId) -> u64 {
        self.slot(group).map_or(0, |(count, _)| count.load(Ordering::Acquire))
    }

    /// To be told of the changes of a group.
    #[must_use]
    pub fn listen(&self, group: GroupId) -> Option<watch::Receiver<()>> {
        self.slot(group).map(|(_, listeners)| listeners.subscribe())
    }
}
