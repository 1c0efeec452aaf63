//! The table of cached heads, in parts.

use std::collections::HashMap;
use std::sync::Arc;

use super::CachedHead;
use crate::engine::marks::StreamKey;

/// Independent parts of the table of cached heads, each with its own lock.
pub(super) const SHARDS: usize = 64;

/// How many cached heads a node keeps, or twice those that somebody holds, which stay in any case.
pub const MAX_CELLS: usize = 2_000_000;

/// A part of the table of cached heads.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) cached_heads: HashMap<StreamKey, Arc<CachedHead>>,
    /// From how many on it is looked again which nobody holds. Twice what was left the last time: where most are held,
    /// not each new one looks at all.
    look_at: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { cached_heads: HashMap::default(), look_at: MAX_CELLS / SHARDS }
    }
}

impl Shard {
    /// The cached head of a stream, which may have no head yet.
    pub(super) fn of(&mut self, key: &StreamKey) -> Arc<CachedHead> {
        if let Some(cached_head) = self.cached_heads.get(key) {
            return Arc::clone(cached_head);
        }
        if self.cached_heads.len() >= self.look_at {
            // One that nobody holds can go: anyone who wants it next reads it again.
            self.cached_heads.retain(|_, cached_head| Arc::strong_count(cached_head) > 1);
            self.look_at = (2 * self.cached_heads.len()).max(MAX_CELLS / SHARDS);
        }
        let cached_head = Arc::new(CachedHead::default());
        self.cached_heads.insert(key.clone(), Arc::clone(&cached_head));
        cached_head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::UserId;

    #[test]
    fn where_many_are_held_not_each_new_one_looks_at_all() {
        const MOST: usize = MAX_CELLS / SHARDS;
        let mut shard = Shard::default();
        let mut of = |ids: std::ops::Range<usize>| {
            let posts = |id: usize| StreamKey::posts(UserId::try_from(i64::try_from(id).unwrap()).unwrap());
            let held: Vec<_> = ids.map(|id| shard.of(&posts(id))).collect();
            (held, shard.look_at, shard.cached_heads.len())
        };
        let (held, look_at, _) = of(1..MOST + 2);
        assert_eq!(look_at, 2 * MOST, "all were held");
        drop(held);
        let (_, look_at, kept) = of(MOST + 2..2 * MOST + 2);
        assert_eq!((look_at, kept), (2 * MOST - 2, MOST), "those of before are gone");
    }
}
