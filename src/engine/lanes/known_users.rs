//! Users' rows as this node last saw them, so that a batch that changes nothing else need not read
//! them: it writes on the condition that they still have the version that is known.
//!
//! Nothing depends on these copies being right. A row that was changed elsewhere has another version,
//! also after a restore, as no two batches give the same one ([`crate::engine::heads::Batch::stamp`]):
//! so the batch fails, forgets what it knew, and is done again with rows that are locked and read.
//! Where that happens often, as with nodes that write for the same users, a lane locks more of its
//! batches at once ([`Trust`]).

use std::sync::Arc;

use crate::base::ids::UserId;
use crate::base::recent::Recent;
use crate::engine::marks::users::User;

/// What a copy takes besides the row's own text, in bytes: the row, the key, and what the cache
/// keeps of it.
const COPY_BYTES: usize = 320;

/// How many batches a lane locks at most before it trusts its copies again.
const MAX_LOCKED: u32 = 64;

/// Users of a batch: the rows that are known, and those that are not.
type Split = (KnownRows, Vec<UserId>);

/// Users' rows.
pub(super) type KnownRows = Vec<(UserId, User)>;

/// The copies, shared by the lanes of a node.
#[derive(Debug, Clone)]
pub(super) struct KnownUsers(Arc<Recent<Arc<User>>>);

impl KnownUsers {
    /// With room for so many bytes; 0: none is kept.
    pub(super) fn new(max_bytes: u64) -> Self {
        Self(Arc::new(Recent::new(usize::try_from(max_bytes).unwrap_or(usize::MAX))))
    }

    /// Splits users into those that are known and those that are not.
    pub(super) fn split(&self, users: impl Iterator<Item = UserId>) -> Split {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for user in users {
            match self.0.get(user) {
                Some(row) => known.push((user, User::clone(&row))),
                None => unknown.push(user),
            }
        }
        (known, unknown)
    }

    /// These rows are committed. `all`: also those that were not known.
    pub(super) fn learn(&self, rows: impl IntoIterator<Item = (UserId, User)>, all: bool) {
        for (user, row) in rows {
            if all || self.0.get(user).is_some() {
                let bytes = COPY_BYTES + row.marks.as_str().len() + row.settings.as_str().len();
                self.0.insert(user, Arc::new(row), bytes);
            }
        }
    }

    /// Nobody knows what these rows hold now.
    pub(super) fn forget(&self, users: impl Iterator<Item = UserId>) {
        users.for_each(|user| self.0.remove(user));
    }
}

/// Whether a lane works with its copies: after each failure twice as many batches without them, after
/// each success half as many.
#[derive(Debug, Default)]
pub(super) struct Trust {
    /// How many batches are still to be locked.
    locked: u32,
    /// How many were, after the last failure.
    last: u32,
}

impl Trust {
    /// Asked once for each batch that could use copies.
    pub(super) fn take(&mut self) -> bool {
        let trusts = self.locked == 0;
        self.locked = self.locked.saturating_sub(1);
        trusts
    }

    /// The copies were right.
    pub(super) fn confirmed(&mut self) {
        self.last /= 2;
    }

    /// A copy was wrong.
    pub(super) fn failed(&mut self) {
        self.last = (self.last * 2).clamp(1, MAX_LOCKED);
        self.locked = self.last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::marks::UserMarks;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    #[test]
    fn copies_are_bounded_by_what_they_take() {
        let known = KnownUsers::new(400 * 1024);
        let row = User { marks: UserMarks::from_row(&"c:like 1;".repeat(100)), ..User::default() };
        known.learn((1..=1000).map(|id| (user(id), row.clone())), true);
        let (kept, _) = known.split((1..=1000).map(user));
        assert!((60..340).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn a_row_that_is_not_known_is_learned_on_demand_only() {
        let known = KnownUsers::new(1 << 20);
        let row = |version| User { version, ..User::default() };
        known.learn([(user(1), row(1))], true);
        known.learn([(user(1), row(2)), (user(2), row(2))], false);
        assert_eq!(known.split([user(1), user(2)].into_iter()), (vec![(user(1), row(2))], vec![user(2)]));
        known.forget([user(1)].into_iter());
        assert_eq!(known.split([user(1)].into_iter()), (vec![], vec![user(1)]));
    }

    #[test]
    fn the_more_failures_the_more_batches_are_locked() {
        let mut trust = Trust::default();
        let locked_after_a_failure = |trust: &mut Trust| {
            assert!(trust.take());
            trust.failed();
            std::iter::from_fn(|| (!trust.take()).then_some(())).count()
        };
        assert_eq!((locked_after_a_failure(&mut trust), locked_after_a_failure(&mut trust)), (1, 2));
        let most = (0..20).map(|_| locked_after_a_failure(&mut trust)).max();
        assert_eq!(most, usize::try_from(MAX_LOCKED).ok());
        trust.confirmed();
        assert_eq!(locked_after_a_failure(&mut trust), usize::try_from(MAX_LOCKED).unwrap(), "half of it, twice");
        (0..10).for_each(|_| trust.confirmed());
        assert_eq!(locked_after_a_failure(&mut trust), 1);
    }
}
