//! The heads that channels and dots had when they were deleted: those that were not made again
//! since. They are kept apart from the others, as they change seldom and no poll looks at them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::marks::Kind;

/// The heads of deleted channels and dots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted(Arc<BTreeMap<Kind, BTreeMap<String, i64>>>);

impl Deleted {
    /// The head that one had when it was deleted; 0 where it was not deleted, or is there again.
    #[must_use]
    pub fn head(&self, kind: Kind, name: &str) -> i64 {
        self.0.get(&kind).and_then(|heads| heads.get(name)).copied().unwrap_or(0)
    }

    /// The heads of a kind.
    pub(super) fn heads(&self, kind: Kind) -> impl Iterator<Item = i64> + '_ {
        self.0.get(&kind).into_iter().flat_map(BTreeMap::values).copied()
    }

    /// Sets the head of one; 0: it is there again.
    pub(super) fn set(&mut self, kind: Kind, name: &str, head: i64) {
        if self.head(kind, name) == head {
            return;
        }
        let heads = Arc::make_mut(&mut self.0).entry(kind).or_default();
        if head > 0 {
            heads.insert(name.to_owned(), head)
        } else {
            heads.remove(name)
        };
    }
}
