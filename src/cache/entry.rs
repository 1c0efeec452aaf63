//! The protocol as a pure state machine: what one entry of the in-process cache is, and what each
//! operation does to it.
//!
//! `scripts/*.lua` do the same to a hash in Redis; a test drives both with the same operations and
//! compares. Time comes as an argument, in milliseconds of any clock that does not go back; an
//! absent entry and one that expired are the table's business (`memory.rs`).

use std::sync::Arc;

use super::{Change, Derived, Entry, FillToken, Lookup, ReadEntry, Writer};

/// One user's entry.
#[derive(Debug, Default)]
pub(super) struct EntryState {
    /// What it shows; None until the first fill.
    shown: Option<Arc<ReadEntry>>,
    /// The epoch in which that was filled.
    epoch: i64,
    /// Whether a commit may have gone past what it shows.
    dirty: bool,
    /// The right to fill it, with the epoch of the reader that holds it: one who read before the
    /// epoch rose may have read before a commit that bypassed the cache.
    fill: Option<(FillToken, i64)>,
    /// Writers inside, with the time at which each one's lease ends.
    writers: Vec<(Writer, u64)>,
    /// Whether one abandoned the entry, or died, while others were inside. It may have committed
    /// after any of those, so that none of them knows the newest state: they leave it to the next
    /// fill. Over once they are gone, for anyone who enters later commits later.
    tainted: bool,
}

/// What [`EntryState::drop_writer`] found.
struct Dropped {
    /// The writer was inside, with an unexpired lease.
    inside: bool,
    /// Another one's lease had ended.
    died: bool,
}

impl EntryState {
    /// Whether a writer with an unexpired lease is inside.
    pub(super) fn has_writers(&self, now_ms: u64) -> bool {
        self.writers.iter().any(|&(_, expiry_ms)| expiry_ms > now_ms)
    }

    /// How much memory it holds besides itself, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        let shown = self.shown.as_ref().map_or(0, |entry| entry.size_bytes());
        shown + self.writers.capacity() * size_of::<(Writer, u64)>()
    }

    /// Whether it shows anything, be it outdated.
    #[cfg(test)]
    pub(super) fn shows(&self) -> bool {
        self.shown.is_some()
    }

    /// The content, if it is as new as the last acknowledged write.
    pub(super) fn clean(&self, epoch: i64) -> Option<&Arc<ReadEntry>> {
        self.shown.as_ref().filter(|_| !self.dirty && self.epoch == epoch)
    }

    /// A writer enters or renews its lease: dirty from here on, and fill tokens given out earlier
    /// die.
    pub(super) fn begin_write(&mut self, writer: Writer, lease_ms: u64, now_ms: u64) {
        let Dropped { inside, died } = self.drop_writer(writer, now_ms);
        let company = inside || !self.writers.is_empty();
        self.tainted = company && (self.tainted || died);
        self.writers.push((writer, now_ms.saturating_add(lease_ms)));
        self.dirty = true;
        self.fill = None;
    }

    /// A reader looks. On a miss it gets the fill token, the one already out or else `nonce`,
    /// unless a writer is inside.
    pub(super) fn get(&mut self, nonce: FillToken, epoch: i64, now_ms: u64) -> Lookup {
        if let Some(entry) = self.clean(epoch) {
            return Lookup::Hit(Arc::clone(entry));
        }
        self.dirty = true;
        let fill = if self.has_writers(now_ms) {
            None
        } else {
            let token = self.fill.filter(|&(_, theirs)| theirs == epoch).map_or(nonce, |(token, _)| token);
            self.fill = Some((token, epoch));
            Some(token)
        };
        Lookup::Miss { fill, last_known: self.shown.clone() }
    }

    /// A reader brings what SQL said. Whether it was kept.
    pub(super) fn fill(&mut self, token: FillToken, epoch: i64, entry: &Entry, now_ms: u64) -> bool {
        let newer_is_known = self.epoch == epoch && self.shown.as_ref().is_some_and(|shown| shown.revision > entry.revision);
        if self.fill != Some((token, epoch)) || self.has_writers(now_ms) || newer_is_known {
            return false;
        }
        *self = Self { shown: Some(Arc::new(entry.clone().into())), epoch, ..Self::default() };
        true
    }

    /// A writer brings what it committed. Whether the entry is clean then. If the change does
    /// not fit, the writer abandons the entry.
    ///
    /// `before` was read under the row lock, or compared with the row while the writer was inside, so
    /// an entry at that revision shows what this transaction found, whatever made it dirty. What others
    /// committed after this transaction they applied, and were here at the time: they are inside still,
    /// or they tainted it. So where nothing changed, an entry at a later revision shows what they
    /// committed. Where something did, it may show what a failover of the database has lost, so it shows
    /// nothing more: else a later change could fit by chance.
    pub(super) fn apply_write(&mut self, writer: Writer, epoch: i64, change: &Change, now_ms: u64) -> bool {
        let Dropped { inside, died } = self.drop_writer(writer, now_ms);
        let sound = inside && !died && !self.tainted && self.epoch == epoch;
        let changes = change.before != change.after;
        if inside && self.epoch == epoch && changes && self.shown.as_ref().is_some_and(|shown| shown.revision > change.before) {
            self.shown = None;
        }
        let fits = |shown: &&mut Arc<ReadEntry>| shown.revision == change.before || (!changes && shown.revision > change.before);
        let shown = self.shown.as_mut().filter(|shown| sound && fits(shown));
        let (Some(shown), Some(parts)) = (shown, &change.parts) else {
            self.taint();
            return false;
        };
        if changes {
            ReadEntry::change(shown, |entry| {
                entry.revision = change.after;
                parts.iter().for_each(|(field, value)| entry.parts.insert(field, value));
            });
        }
        self.dirty = !self.writers.is_empty();
        self.fill = None;
        !self.dirty
    }

    /// A reader keeps what it made of the entry that it was shown.
    pub(super) fn keep(&self, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        if let Some(shown) = self.shown.as_ref().filter(|shown| Arc::ptr_eq(shown, entry)) {
            shown.keep(derived);
        }
    }

    /// A writer goes without having applied anything.
    pub(super) fn abandon_write(&mut self, writer: Writer, now_ms: u64) {
        self.drop_writer(writer, now_ms);
        self.taint();
    }

    /// One went without applying; anyone who holds a fill token may have read too early.
    fn taint(&mut self) {
        self.dirty = true;
        self.fill = None;
        self.tainted = !self.writers.is_empty();
    }

    /// Forgets the content and keeps the writers.
    pub(super) fn forget(&mut self) {
        self.shown = None;
        self.dirty = true;
        self.fill = None;
    }

    /// Takes out this writer and all whose leases have ended.
    fn drop_writer(&mut self, writer: Writer, now_ms: u64) -> Dropped {
        let mut dropped = Dropped { inside: false, died: false };
        self.writers.retain(|&(other, expiry_ms)| {
            let alive = expiry_ms > now_ms;
            dropped.inside |= alive && other == writer;
            dropped.died |= !alive && other != writer;
            alive && other != writer
        });
        dropped
    }
}
