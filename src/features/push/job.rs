//! Jobs: whose numbers changed without a write, and when that is told.

use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;

/// How long after the rules of a batch its commit may come: longer than a lane lets it take.
const LONGEST_COMMIT_MS: i64 = 5000;

/// How long after a commit every node shows it, where several share a database; and by how much the
/// clocks of nodes may differ. Only then is an event of it written: whoever reads the event and asks
/// any node for the numbers gets those that it is about.
pub const SHOWN_EVERYWHERE_MS: i64 = 2000;

/// Whose numbers a job is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All users with a push device.
    All,
    /// Those of them who are members of a group.
    Group(GroupId),
}

impl Scope {
    /// As a row has it.
    #[must_use]
    pub fn id(self) -> i64 {
        match self {
            Self::All => 0,
            Self::Group(group) => group.get(),
        }
    }

    /// Of a row.
    #[must_use]
    pub fn of_row(id: i64) -> Self {
        GroupId::try_from(id).map_or(Self::All, Self::Group)
    }
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Not before this time; with each page it moves on, so that no other node takes the job meanwhile.
    pub due_at: UnixMs,
    /// When it is to begin once more, as something changed that this pass may have missed.
    pub next_at: Option<UnixMs>,
    /// Up to where this pass is: a user, or an ordinal of the group. 0: it has not begun.
    pub after: i64,
}

/// From when on every node shows what a transaction changes whose rules are applied now.
#[must_use]
pub fn shown_everywhere(now: UnixMs) -> UnixMs {
    UnixMs(now.0 + LONGEST_COMMIT_MS + SHOWN_EVERYWHERE_MS)
}
