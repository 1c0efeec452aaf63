//! The steps of each kind of removal, in their order.

use std::collections::BTreeMap;

use crate::features::notifications::{self, NotificationConfig};
use crate::features::relations::{self, Badges};
use crate::features::removals::{self, RemovalKind, Step};
use crate::features::{feed, groups, inbox, users, views};

/// The steps of all kinds.
#[derive(Debug)]
pub struct Steps(BTreeMap<RemovalKind, Vec<Step>>);

impl Steps {
    /// Of these kinds.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = (RemovalKind, Vec<Step>)>) -> Self {
        Self(steps.into_iter().collect())
    }

    /// Those of a kind.
    #[must_use]
    pub fn of(&self, kind: RemovalKind) -> &[Step] {
        self.0.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// A step by its name (empty: the first), and the one after it.
    pub(super) fn at(&self, kind: RemovalKind, name: &str) -> Option<(&Step, Option<&Step>)> {
        let steps = self.of(kind);
        let at = if name.is_empty() { 0 } else { steps.iter().position(|step| step.name == name)? };
        Some((steps.get(at)?, steps.get(at + 1)))
    }
}

/// Those of the erasure of a user. Others lose what they have of it first, then its own rows go, and
/// its row in `users` is the last.
#[must_use]
pub fn user_steps(badges: Badges, notifications: &NotificationConfig) -> Vec<Step> {
    let steps = [
        relations::erase::steps(badges),
        feed::erase::steps(),
        groups::erase::steps(),
        inbox::erase::steps(),
        notifications::erase::steps(notifications),
        views::erase::steps(),
        removals::traces::steps(),
        users::erase::steps(),
    ];
    steps.into_iter().flatten().collect()
}
