//! Heads and marks: the one rule behind nearly every number of an unread summary.
//!
//! A *head* counts how many things ever happened in a stream; the thing that raised the head to `n`
//! is at position `n`. A *mark* is how far a user has read it. What was taken back above the mark
//! is kept as positions, not as a count: with head 115, four taken back and five more to come,
//! reading up to 115 must leave five, and only positions tell that.
//!
//! A counter badge is a stream of the user's own, so its head lies beside the mark ([`Mark`]). Of a
//! stream that users share the head lies in a row of its own ([`Stream`]), and only the mark with
//! the user. Both are pure. A user's marks of counters, channels and dots are in the user's row
//! ([`UserMarks`]), those of views in rows of their own. The row has the user's settings
//! ([`UserSettings`]), too. `users.rs` and `store.rs` hold them, `parts.rs` is how the cache holds
//! them, `crate::engine::heads` has the streams.
//!
//! To add a kind of stream: a [`Kind`], and the feature's own rules on top of [`Mark`] or
//! [`Stream`].

mod hidden;
mod intervals;
mod kind;
pub mod parts;
mod settings;
pub mod store;
mod stream;
mod user_marks;
pub mod users;

pub use hidden::{Hidden, MAX_HIDDEN_RUNS};
pub use intervals::Intervals;
pub use kind::{Kind, Refused};
pub use settings::{LeftOut, ListVisibility, Switches, UserSettings};
pub use stream::{MAX_MENTION_ALL_RUNS, MAX_SHARED_RUNS, Numbers, Stream, StreamKey, mention_floor, numbers, other_changes, unread};
pub use user_marks::{MAX_DELETED_COUNTERS, PackedMark, SORTS_OF_MARKS, UserMarks, is_own};

use std::sync::Arc;

use crate::base::clock::UnixMs;
use crate::base::ids::{MAX_HEAD, Name, UserId};

/// Which mark. The order is the order in which rows of `marks` are written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkKey {
    /// Whose mark.
    pub user: UserId,
    /// In what sort of stream.
    pub kind: Kind,
    /// In which one of them.
    pub name: Arc<str>,
}

impl MarkKey {
    /// A mark in a stream with a name.
    #[must_use]
    pub fn new(user: UserId, kind: Kind, name: &Name) -> Self {
        Self { user, kind, name: name.shared() }
    }
}

/// The kinds of marks that are forgotten with a user who was not seen for long.
pub const FORGOTTEN: [Kind; 2] = [Kind::Broadcast, Kind::Dot];

/// How many separate runs of positions a stream may have taken back above its mark. Reading clears
/// them.
pub const MAX_RETRACTED_RUNS: usize = 1000;

/// How large a user's marks may be, in bytes of text, for one more run to be added to them: all of it
/// is written with each change.
pub const MAX_MARKS_BYTES: usize = 64 * 1024;

/// How far one user has read one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    head: i64,
    mark: i64,
    retracted: Intervals,
    /// When the user was there last, where that is asked for (views).
    pub at: UnixMs,
}

impl Mark {
    /// A mark as a row holds it, brought into order should the row not be.
    #[must_use]
    pub fn from_row(head: i64, mark: i64, retracted: &str, at: UnixMs) -> Self {
        let head = head.clamp(0, MAX_HEAD);
        let mut this = Self { head, mark: mark.clamp(0, head), retracted: Intervals::parse(retracted), at };
        this.settle();
        this
    }

    /// How many things ever happened.
    #[must_use]
    pub fn head(&self) -> i64 {
        self.head
    }

    /// How far the user has read, 0 to head.
    #[must_use]
    pub fn mark(&self) -> i64 {
        self.mark
    }

    /// The positions above the mark that were taken back.
    #[must_use]
    pub fn retracted(&self) -> &Intervals {
        &self.retracted
    }

    /// What the user has not read: never negative.
    #[must_use]
    pub fn unread(&self) -> i64 {
        (self.head - self.mark - self.retracted.len()).max(0)
    }

    /// `by` more things happened.
    ///
    /// # Errors
    /// [`Refused::HeadFull`].
    pub fn advance(&mut self, by: i64) -> Result<(), Refused> {
        let head = self.head.saturating_add(by.max(0));
        if head > MAX_HEAD {
            return Err(Refused::HeadFull);
        }
        self.head = head;
        Ok(())
    }

    /// The user has read up to this position, or up to the head. Marks never move backwards; a
    /// position beyond the head is clamped to it. Returns whether anything changed.
    pub fn read(&mut self, up_to: Option<i64>) -> bool {
        let to = up_to.unwrap_or(self.head).min(self.head);
        if to <= self.mark {
            return false;
        }
        self.mark = to;
        self.settle();
        true
    }

    /// Of a shared stream, whose head is not in this row: the user has read up to this position.
    /// Marks never move backwards. Returns whether anything changed.
    pub fn read_shared(&mut self, up_to: i64) -> bool {
        self.head = self.head.max(up_to);
        self.read(Some(up_to))
    }

    /// Of a shared stream: the thing at this position does not count for this user, such as what it
    /// made itself. Where there are more runs than [`MAX_RETRACTED_RUNS`], the lowest are left to
    /// the rows of the things themselves (see [`Mark::untold`]). Returns whether anything changed.
    pub fn pass_over(&mut self, at: i64) -> bool {
        if at <= self.mark || self.retracted.contains(at) {
            return false;
        }
        self.head = self.head.max(at);
        self.retracted.insert(at, at);
        while self.retracted.runs() > MAX_RETRACTED_RUNS {
            self.retracted.drop_first();
        }
        self.settle();
        true
    }

    /// Of a shared stream: up to which position above the mark only the rows tell what does not
    /// count for this user; 0 where the mark tells it all.
    ///
    /// Runs are only ever left out while there are as many as there may be. Reading takes away runs
    /// from below, and with the first of them all that was left out.
    #[must_use]
    pub fn untold(&self) -> i64 {
        let full = self.retracted.runs() >= MAX_RETRACTED_RUNS;
        self.retracted.first().filter(|_| full).map_or(0, |first| first - 1)
    }

    /// The thing at this position is gone: one less if it was unread, no change if it was read or
    /// taken back before. Returns whether anything changed.
    ///
    /// # Errors
    /// [`Refused::UnknownPosition`] for a position that was never reached,
    /// [`Refused::TooManyRuns`].
    pub fn retract_at(&mut self, at: i64) -> Result<bool, Refused> {
        if at < 1 || at > self.head {
            return Err(Refused::UnknownPosition);
        }
        if at <= self.mark || self.retracted.contains(at) {
            return Ok(false);
        }
        self.take_back(at, at)?;
        Ok(true)
    }

    /// The newest `n` unread things are gone; fewer where fewer are unread. Returns how many went.
    ///
    /// # Errors
    /// [`Refused::TooManyRuns`].
    pub fn retract_newest(&mut self, n: i64) -> Result<i64, Refused> {
        let go = n.clamp(0, self.unread());
        // What lies above the answer is, together with what was taken back there before, one run up
        // to the head.
        if go > 0 {
            let from = self.retracted.nth_free_below(self.head, go).max(self.mark + 1);
            self.take_back(from, self.head)?;
        }
        Ok(go)
    }

    fn take_back(&mut self, from: i64, to: i64) -> Result<(), Refused> {
        let mut retracted = self.retracted.clone();
        retracted.insert(from, to);
        let mut after = Self { head: self.head, mark: self.mark, retracted, at: self.at };
        after.settle();
        if after.retracted.runs() > MAX_RETRACTED_RUNS {
            return Err(Refused::TooManyRuns);
        }
        *self = after;
        Ok(())
    }

    /// Forgets what the mark has passed, and moves the mark over what was taken back right above
    /// it: nothing there is left to read.
    fn settle(&mut self) {
        self.retracted.drop_up_to(self.mark);
        self.retracted.drop_above(self.head);
        if let Some(end) = self.retracted.take_run_at(self.mark + 1) {
            self.mark = end;
        }
    }
}

#[cfg(test)]
mod tests;
