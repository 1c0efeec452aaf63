//! What a batch changed of users' entries in the cache.

use std::collections::{BTreeMap, HashSet};

use crate::base::ids::UserId;
use crate::cache::Parts;
use crate::engine::marks::parts::Part;

/// The changed parts of each user's entry. Those of a user without an entry are not made: most users
/// whom a write reaches have none.
pub struct EntryParts<'a> {
    absent: &'a HashSet<UserId>,
    changed: BTreeMap<UserId, Parts>,
}

impl<'a> EntryParts<'a> {
    pub(super) fn new(absent: &'a HashSet<UserId>) -> Self {
        Self { absent, changed: BTreeMap::new() }
    }

    /// A part that changed, if one did.
    pub fn add(&mut self, user: UserId, part: impl FnOnce() -> Option<Part>) {
        if !self.absent.contains(&user) {
            self.changed.entry(user).or_default().extend(part());
        }
    }

    /// What changed of this user's entry. None if there is no entry.
    pub(super) fn take(&mut self, user: UserId) -> Option<Parts> {
        (!self.absent.contains(&user)).then(|| self.changed.remove(&user).unwrap_or_default())
    }
}
