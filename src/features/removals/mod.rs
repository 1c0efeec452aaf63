//! Removals: what is removed in the background, because it may be more than one transaction can hold.
//!
//! ```text
//!   DELETE … ─ a command: the mark that refuses later writes, and a row of `removals` ─▶ 202, Location: /v1/operations/{id}
//!                                └─ worker: step after step, one bounded batch at a time ─▶ the operation is done
//! ```
//!
//! The row is both the job and the operation. A node that works on a removal moves its row on with
//! each batch, and renews it during one, so no other one takes it meanwhile; after a crash any node goes
//! on from there. A batch may be done twice, by two nodes or after a crash, so each finds for itself what
//! is left.
//!
//! Features bring the steps ([`Step`]); `crate::maintenance::removal` lists them for each kind and
//! has the worker. To remove something else: a [`RemovalKind`], a command that calls
//! [`rows::begin`], and its steps in that list.

pub mod rows;
mod step;
pub mod store;
pub mod traces;

pub use self::step::{Engines, Place, Progress, Step, delete_own, delete_pages, user_of};
use crate::base::clock::UnixMs;
use crate::features::operations::OperationId;

/// What is removed. Its number stays for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemovalKind {
    /// A user, and all that names it.
    User = 1,
    /// A group, with its members and messages.
    Group = 2,
}

impl RemovalKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::User, Self::Group];

    /// As a row has it.
    #[must_use]
    pub fn code(self) -> i64 {
        self as i64
    }

    /// Of a row; None where a newer version wrote it.
    #[must_use]
    pub fn of_row(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// A removal that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub id: OperationId,
    pub kind: RemovalKind,
    /// The id of what is removed.
    pub subject: i64,
    /// The name of the step that it is at; empty: the first.
    pub step: String,
    /// How far that step is.
    pub place: Place,
    /// Not before this time.
    pub due_at: UnixMs,
    /// Times that its row may have instead: those of renewals that got no answer.
    pub unsure: Vec<UnixMs>,
}

impl Removal {
    /// The times that its row may have.
    fn times(&self) -> impl Iterator<Item = UnixMs> {
        std::iter::once(self.due_at).chain(self.unsure.iter().copied())
    }
}

/// A removal as it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRemoval {
    pub id: OperationId,
    pub kind: RemovalKind,
    /// The id of what is removed.
    pub subject: i64,
    /// Who may read what came of it.
    pub caller: String,
}
