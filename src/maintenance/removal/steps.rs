//! The steps of each kind of removal, in their order.

use std::collections::BTreeMap;

use crate::features::notifications::{self, NotificationConfig};
use crate::features::relations::{self, Badges};
use crate::features::removals::store::Known;
use crate::features::removals::{self, RemovalKind, Step};
use crate::features::{feed, groups, inbox, users, views};

/// What a new removal has in place of the name of a step: its first is yet to begin.
const FIRST: &str = "";

/// The steps of all kinds.
#[derive(Debug)]
pub struct Steps {
    of: BTreeMap<RemovalKind, Vec<Step>>,
    /// Their names.
    pub(super) known: Known,
}

impl Steps {
    /// Of these kinds.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = (RemovalKind, Vec<Step>)>) -> Self {
        let of: BTreeMap<RemovalKind, Vec<Step>> = steps.into_iter().collect();
        let names = of.iter().flat_map(|(kind, steps)| steps.iter().map(|step| step.name).chain([FIRST]).map(|name| (*kind, name)));
        let known = Known::new(names);
        Self { of, known }
    }

    /// Those of a kind.
    #[must_use]
    pub fn of(&self, kind: RemovalKind) -> &[Step] {
        self.of.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// A step by its name, and the one after it.
    pub(super) fn at(&self, kind: RemovalKind, name: &str) -> Option<(&Step, Option<&Step>)> {
        let steps = self.of(kind);
        let at = if name == FIRST { 0 } else { steps.iter().position(|step| step.name == name)? };
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
