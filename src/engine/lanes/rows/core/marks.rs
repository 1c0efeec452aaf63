//! What commands read and change of users' marks.

use std::sync::Arc;

use super::Core;
use crate::base::ids::{Name, UserId};
use crate::engine::marks::users::User;
use crate::engine::marks::{Kind, Mark, MarkKey, is_own};

impl Core {
    /// Whether the batch holds this mark.
    #[must_use]
    pub fn has_mark(&self, key: &MarkKey) -> bool {
        self.marks.rows.contains_key(key)
    }

    /// Marks that a feature has loaded.
    pub fn add_marks(&mut self, marks: Vec<(MarkKey, Mark)>) {
        self.marks.insert_loaded(marks);
    }

    /// One mark as it is now.
    #[must_use]
    pub fn mark(&self, user: UserId, kind: Kind, name: &Name) -> Mark {
        self.mark_at(&MarkKey::new(user, kind, name))
    }

    /// One mark by its key, as it is now.
    #[must_use]
    pub fn mark_at(&self, key: &MarkKey) -> Mark {
        if !is_own(key.kind) {
            return self.marks.get(key);
        }
        self.users.look(&key.user).map(|row| row.marks.get(key.kind, &key.name)).unwrap_or_default()
    }

    /// The names of all counters of a user, or of its marks of another kind in its own row.
    #[must_use]
    pub fn names_of(&self, user: UserId, kind: Kind) -> Vec<Arc<str>> {
        self.users.look(&user).into_iter().flat_map(|row| row.marks.of_kind(kind)).map(|mark| mark.name.into()).collect()
    }

    /// Sets a mark and raises the user's revision, once for each command. A mark that is the same
    /// changes nothing.
    pub fn set_mark(&mut self, user: UserId, kind: Kind, name: &Name, mark: Mark) {
        self.set_mark_at(&MarkKey::new(user, kind, name), mark);
    }

    /// The same by the mark's key.
    pub fn set_mark_at(&mut self, key: &MarkKey, mark: Mark) {
        if self.mark_at(key) == mark {
            return;
        }
        if is_own(key.kind) {
            self.revise(key.user, |row| row.marks.set(key.kind, &key.name, &mark));
        } else {
            self.revise(key.user, |_| {});
            self.marks.set(key, mark);
        }
    }

    /// Deletes a counter of the user, whose head is kept.
    pub fn delete_counter(&mut self, user: UserId, name: &Name) {
        if self.has_counter(user, name) {
            self.revise(user, |row| _ = row.marks.delete_counter(name.as_str()));
        }
    }

    /// Whether the user has this counter now.
    #[must_use]
    pub fn has_counter(&self, user: UserId, name: &Name) -> bool {
        self.users.look(&user).is_some_and(|row| row.marks.has(Kind::Counter, name.as_str()))
    }

    /// Where the user has more marks of channels or dots than this, those go that tell nothing any
    /// more: what they cover was deleted. No number changes by it.
    pub fn bound_marks(&mut self, user: UserId, kind: Kind, most: usize, is_over: impl Fn(&str, i64) -> bool) {
        let has_more = |row: &User| row.marks.of_kind(kind).count() > most;
        if self.users.look(&user).is_some_and(has_more) {
            self.revise(user, |row| row.marks.retain(kind, |name, mark| !is_over(name, mark)));
        }
    }

    /// How many counters the user has now.
    #[must_use]
    pub fn counters(&self, user: UserId) -> usize {
        self.users.look(&user).map_or(0, |row| row.marks.of_kind(Kind::Counter).count())
    }

    /// How large the user's marks of counters, channels and dots are, in bytes.
    #[must_use]
    pub fn marks_bytes(&self, user: UserId) -> usize {
        self.users.look(&user).map_or(0, |row| row.marks.as_str().len())
    }
}
