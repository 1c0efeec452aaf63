//! When the numbers of a user change by themselves, as a batch changes it.

use crate::base::clock::UnixMs;

/// When a user is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Then, or earlier where that was known before.
    AtLatest(UnixMs),
    /// Then alone; None: never.
    Exactly(Option<UnixMs>),
}

/// What a batch changes of a user's row, without a look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Change {
    /// Whether there is one from now on; None: as before.
    pub(super) flag: Option<bool>,
    pub(super) due: Option<Due>,
}

impl Change {
    pub(super) fn with_due(self, due: Due) -> Self {
        let earlier = |at: UnixMs, before: Option<UnixMs>| before.map_or(at, |before| before.min(at));
        let due = match (self.due, due) {
            (Some(Due::AtLatest(before)), Due::AtLatest(at)) => Due::AtLatest(earlier(at, Some(before))),
            (Some(Due::Exactly(before)), Due::AtLatest(at)) => Due::Exactly(Some(earlier(at, before))),
            (_, due) => due,
        };
        Self { due: Some(due), ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a row that is there.
        #[test]
        fn changes_of_a_batch_come_to_what_one_after_the_other_would(
            before in 0..9_i64,
            dues in prop::collection::vec((any::<bool>(), 0..9_i64), 0..6),
        ) {
            let (mut row, mut change) = (before, Change::default());
            for (exactly, at) in dues {
                if exactly {
                    row = at;
                    change = change.with_due(Due::Exactly((at > 0).then_some(UnixMs(at))));
                } else if at > 0 {
                    row = if row == 0 { at } else { row.min(at) };
                    change = change.with_due(Due::AtLatest(UnixMs(at)));
                }
            }
            let after = match change.due {
                None => before,
                Some(Due::Exactly(at)) => at.map_or(0, |at| at.0),
                Some(Due::AtLatest(at)) => if before == 0 { at.0 } else { before.min(at.0) },
            };
            prop_assert_eq!(after, row);
        }
    }
}
