//! Entries that this node has read, decoded, with what readers keep with them.
//!
//! Redis is asked at every read all the same, and its whole reply is compared: an entry here only
//! saves reading the same reply again. So nothing here can be outdated.

use std::sync::Arc;

use crate::base::ids::UserId;
use crate::base::recent::Recent;
use crate::cache::{Derived, Entry, KEPT_BYTES, ReadEntry};

/// How many bytes of decoded entries a node keeps.
const MAX_KNOWN_BYTES: usize = 256 << 20;

/// An entry with the reply that it was read from.
#[derive(Debug)]
pub(super) struct KnownEntry {
    /// The epoch in which that was a hit.
    epoch: i64,
    /// None where the connection does not show it.
    reply: Option<Box<[u8]>>,
    pub(super) entry: Arc<ReadEntry>,
}

impl KnownEntry {
    /// How long the reply is, if these bytes begin with it. A reply says where it ends, so it is
    /// whole then.
    pub(super) fn replied(&self, received: &[u8]) -> Option<usize> {
        self.reply.as_ref().filter(|reply| received.starts_with(reply)).map(|reply| reply.len())
    }

    fn weight(&self) -> usize {
        KEPT_BYTES + size_of::<Self>() + self.reply.as_ref().map_or(0, |reply| reply.len()) + self.entry.size_bytes()
    }
}

/// Those of a node.
#[derive(Debug)]
pub(super) struct Known(Recent<Arc<KnownEntry>>);

impl Known {
    pub(super) fn new() -> Self {
        Self(Recent::new(MAX_KNOWN_BYTES))
    }

    /// A user's, if it was a hit in this epoch.
    pub(super) fn get(&self, user: UserId, epoch: i64) -> Option<Arc<KnownEntry>> {
        self.0.get(user).filter(|known| known.epoch == epoch)
    }

    /// Takes in a hit. One that says the same as the entry before is that entry, with all that is
    /// kept with it.
    pub(super) fn take(
        &self,
        user: UserId,
        epoch: i64,
        entry: Entry,
        reply: Option<Box<[u8]>>,
        before: Option<Arc<KnownEntry>>,
    ) -> Arc<ReadEntry> {
        let before = before.filter(|known| **known.entry == entry);
        let entry = before.map_or_else(|| Arc::new(entry.into()), |known| Arc::clone(&known.entry));
        let known = Arc::new(KnownEntry { epoch, reply, entry: Arc::clone(&entry) });
        let weight = known.weight();
        self.0.insert(user, known, weight);
        entry
    }

    /// Keeps what a reader made of an entry that is here.
    pub(super) fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        self.0.weigh_again(user, |known| {
            if Arc::ptr_eq(&known.entry, entry) {
                known.entry.keep(derived);
            }
            known.weight()
        });
    }
}
