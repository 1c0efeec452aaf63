//! The heads of shared streams in a batch.

use std::collections::BTreeSet;

use futures_util::future::try_join;

use super::super::super::needs::Needs;
use super::Core;
use crate::db::{DbResult, Pipeline};
use crate::engine::heads;
use crate::engine::heads::store::{Locked, SharedCount};
use crate::engine::marks::{Kind, Stream, StreamKey};

/// What is found of heads.
#[derive(Debug)]
pub(in super::super) struct FoundHeads {
    heads: Vec<(StreamKey, Stream)>,
    made: Vec<StreamKey>,
    shared_counts: Vec<SharedCount>,
}

impl FoundHeads {
    /// Locks the heads that may change, and loads those of `seen` that are not among them.
    pub(in super::super) async fn load(pipeline: &Pipeline, needs: &Needs, seen: &BTreeSet<StreamKey>) -> DbResult<Self> {
        let (own, others): (Vec<_>, Vec<_>) = (needs.heads.iter().cloned().collect(), seen.difference(&needs.heads).cloned().collect());
        let locked = async { if own.is_empty() { Ok(Locked::default()) } else { heads::store::lock(pipeline, &own).await } };
        let seen = async { if others.is_empty() { Ok(Vec::new()) } else { heads::store::load(pipeline, &others).await } };
        let (Locked { found: mut heads, made }, seen) = try_join(locked, seen).await?;
        let is_known = |key: &StreamKey| heads.iter().any(|(found, stream)| found == key && stream.is_alive());
        let may_be_new = |key: &StreamKey| matches!(key.kind, Kind::Broadcast | Kind::Dot) && !is_known(key);
        let shared_counts = if own.iter().any(may_be_new) { heads::store::count_shared(pipeline).await? } else { Vec::new() };
        heads.extend(seen);
        Ok(Self { heads, made, shared_counts })
    }
}

impl Core {
    /// Takes in heads.
    pub(in super::super) fn add_heads(&mut self, found: FoundHeads) {
        self.heads.insert_loaded(found.heads);
        self.made_heads = found.made;
        self.shared_counts = found.shared_counts;
    }

    /// Heads whose rows were made to be locked, and that no command has set.
    pub(in super::super) fn unset_heads(&self) -> impl Iterator<Item = StreamKey> + '_ {
        let is_unset = |key: &&StreamKey| self.heads.look(key).is_none_or(|stream| *stream == Stream::default());
        self.made_heads.iter().filter(is_unset).cloned()
    }

    /// The head of a shared stream as it is now.
    #[must_use]
    pub fn head(&self, key: &StreamKey) -> Stream {
        self.heads.get(key)
    }

    /// How many channels, or dots, there are now. Known where a head that was asked for would be a
    /// new one's.
    #[must_use]
    pub fn shared_count(&self, kind: Kind) -> i64 {
        self.count_of(kind, |count| count.there, Stream::is_alive)
    }

    /// How many names of channels, or of dots, were ever used; known as [`Self::shared_count`] is.
    #[must_use]
    pub fn shared_names(&self, kind: Kind) -> i64 {
        self.count_of(kind, |count| count.names, |stream| stream.head > 0)
    }

    fn count_of(&self, kind: Kind, before: fn(&SharedCount) -> i64, counts: fn(&Stream) -> bool) -> i64 {
        let before: i64 = self.shared_counts.iter().filter(|count| count.kind == kind).map(before).sum();
        let change = |(_, (loaded, now)): (&StreamKey, &(Stream, Stream))| i64::from(counts(now)) - i64::from(counts(loaded));
        let of_kind = self.heads.rows.iter().filter(|(key, _)| key.kind == kind);
        before.saturating_add(of_kind.map(change).sum())
    }

    /// Sets the head of a shared stream. No user's revision changes.
    pub fn set_head(&mut self, key: &StreamKey, stream: Stream) {
        self.heads.set(key, stream);
    }
}
