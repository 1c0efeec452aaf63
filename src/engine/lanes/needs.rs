//! Which rows the commands of a batch need: said before any is looked at, so that they can be
//! locked in one order and loaded together.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;

use crate::base::ids::{Name, UserId};
use crate::engine::marks::{Kind, MarkKey, StreamKey, is_own};

/// Which rows the commands of a batch need.
#[derive(Debug, Default)]
pub struct Needs {
    pub(super) users: BTreeSet<UserId>,
    /// Those of them for whom no row is made where nothing of it changes.
    pub(super) if_changed: BTreeSet<UserId>,
    /// Marks that are rows of their own.
    pub(super) marks: BTreeSet<MarkKey>,
    /// Heads that may be changed.
    pub(super) heads: BTreeSet<StreamKey>,
    /// Heads that are only looked at.
    pub(super) seen_heads: BTreeSet<StreamKey>,
    /// Users whom commands name without a look at their rows: of these it is asked whether they were
    /// erased.
    named: BTreeSet<UserId>,
    /// Users who may be enrolled.
    enrolling: BTreeSet<UserId>,
    /// Whether a command takes rows as it says, without a look.
    pub(super) assumes: bool,
    /// What is needed of the features' sets.
    sets: Vec<Box<dyn AnyNeeds>>,
}

/// The needs of any set.
trait AnyNeeds: Any + fmt::Debug + Send + Sync {}

impl<N: Any + fmt::Debug + Send + Sync> AnyNeeds for N {}

impl Needs {
    /// What is needed of a set, to add to it; the type stands for the set.
    pub(super) fn set<S: Default + fmt::Debug + Send + Sync + 'static>(&mut self) -> &mut S {
        let found = self.sets.iter().position(|needs| (&**needs as &dyn Any).is::<S>());
        let at = found.unwrap_or_else(|| {
            self.sets.push(Box::new(S::default()));
            self.sets.len() - 1
        });
        let needs = self.sets.get_mut(at).and_then(|needs| (&mut **needs as &mut dyn Any).downcast_mut::<S>());
        needs.unwrap_or_else(|| unreachable!("it was found or added above"))
    }

    /// What is needed of a set, if anything.
    pub(super) fn find_set<S: 'static>(&self) -> Option<&S> {
        self.sets.iter().find_map(|needs| (&**needs as &dyn Any).downcast_ref::<S>())
    }

    /// A user's own row. The batch makes it if it is missing.
    pub fn user(&mut self, user: UserId) {
        self.users.insert(user);
        self.if_changed.remove(&user);
    }

    /// A user's own row, of which none is made where nothing of it changes. Another lock keeps out a batch that
    /// found none either.
    pub fn user_if_changed(&mut self, user: UserId) {
        if self.users.insert(user) {
            self.if_changed.insert(user);
        }
    }

    /// One mark, and with it the user's own row.
    pub fn mark(&mut self, user: UserId, kind: Kind, name: &Name) {
        self.mark_at(MarkKey::new(user, kind, name));
    }

    /// One mark by its key, and with it the user's own row.
    pub fn mark_at(&mut self, key: MarkKey) {
        self.user(key.user);
        if !is_own(key.kind) {
            self.marks.insert(key);
        }
    }

    /// The head of a shared stream, to change it: locked until the commit, so that its numbers are
    /// in the order of commits.
    pub fn head(&mut self, key: StreamKey) {
        self.heads.insert(key);
    }

    /// The head of a shared stream, only to look at it.
    pub fn seen_head(&mut self, key: StreamKey) {
        self.seen_heads.insert(key);
    }

    /// A user's own row and what an enrolment looks at.
    pub fn enrolment(&mut self, user: UserId) {
        self.user(user);
        self.enrolling.insert(user);
        self.seen_heads.insert(StreamKey::broadcast_state());
    }

    /// The command takes rows of a set to be as it says, and the set writes them on the condition that they
    /// are. Where they are not, the batch is applied again with rows that are locked and read
    /// ([`super::Core::assumes`]).
    pub fn assume(&mut self) {
        self.assumes = true;
    }

    /// A user whose own row is not asked for, only whether it was erased. `pairs::need_named` takes
    /// the lock with it, without which that may change.
    pub(in crate::engine) fn named(&mut self, user: UserId) {
        self.named.insert(user);
    }

    /// The users who are named, and whose rows are not asked for.
    pub(super) fn named_alone(&self) -> impl Iterator<Item = UserId> + '_ {
        self.named.difference(&self.users).copied()
    }

    /// Whether users' own rows are all that may change.
    pub(super) fn users_alone(&self) -> bool {
        self.named.is_empty() && self.marks.is_empty() && self.heads.is_empty() && self.sets.is_empty()
    }

    /// Whether the user's own row is asked for.
    #[must_use]
    pub fn has_user(&self, user: UserId) -> bool {
        self.users.contains(&user)
    }

    /// Whether the user may be enrolled.
    #[must_use]
    pub fn may_enrol(&self, user: UserId) -> bool {
        self.enrolling.contains(&user)
    }

    /// The users whose own rows may change: those whose cache entries the batch writes.
    #[must_use]
    pub fn users(&self) -> Vec<UserId> {
        self.users.iter().copied().collect()
    }
}
