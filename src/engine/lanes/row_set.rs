//! What a feature adds to a batch: its rows, and how they are locked, loaded and written.
//!
//! To add a table: a [`RowSet`] in the feature's `rows.rs` or `store.rs`, and a line in the list in
//! `app`. That list is the order in which the sets are locked, loaded and written, and each set
//! takes its rows in the order of their keys: the one lock order of the program.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;

use futures_util::future::BoxFuture;

use super::entry_parts::EntryParts;
use super::needs::Needs;
use super::rows::Core;
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::entries::EntryRows;
use crate::engine::heads::{Batch, NoticeRow};
use crate::engine::marks::{Mark, MarkKey, StreamKey};

/// The rows of a feature in a batch.
pub trait RowSet: Default + fmt::Debug + Send + Sync + 'static {
    /// The rows of this set that a user's entry shows, if any.
    const ENTRY_ROWS: Option<EntryRows> = None;

    /// Which of these rows a batch needs.
    type Needs: Default + fmt::Debug + Send + Sync + 'static;

    /// Every statement of the set, for the suite that runs each on both engines.
    fn statements() -> Vec<&'static Statement>;

    /// Takes locks that must come before everything else of a transaction.
    fn lock(_conn: &mut Conn, _needs: &Self::Needs) -> impl Future<Output = DbResult<()>> + Send {
        async { Ok(()) }
    }

    /// Loads what is needed, once users and marks are locked and loaded, and behind the locks of
    /// heads. It goes to the database together with the other sets: what it asks for before it
    /// first waits, and whatever it joins, is one round trip for all. Called where any command asked
    /// for rows of this set.
    fn load(&mut self, pipeline: &Pipeline, core: &Core, needs: &Self::Needs) -> impl Future<Output = DbResult<()>> + Send;

    /// Marks that were loaded beside those that the commands asked for. Taken once.
    fn take_marks(&mut self) -> Vec<(MarkKey, Mark)> {
        Vec::new()
    }

    /// Heads that the commands look at beside those that they asked for.
    fn seen_heads(_needs: &Needs, _core: &Core, _heads: &mut BTreeSet<StreamKey>) {}

    /// Whether rows of this set, as the batch leaves them, are under the lock of a head. Then its row stays, also where
    /// nothing was set in it: without it there would be no lock for the next one who changes them.
    fn are_under(&self, _head: &StreamKey) -> bool {
        false
    }

    fn save(&self, conn: &mut Conn, core: &Core, batch: Batch) -> impl Future<Output = DbResult<()>> + Send;

    /// The command took effect: what it did stays.
    fn settle(&mut self);

    /// The command was refused: everything is as before it.
    fn undo(&mut self);

    /// What changed of users' entries in the cache.
    fn parts(&self, _parts: &mut EntryParts<'_>) {}

    /// What changed of the notices that every node holds in memory.
    fn notices(&self) -> Vec<NoticeRow> {
        Vec::new()
    }

    /// The users whose facts in the cache the batch may change.
    fn facts(_needs: &Self::Needs) -> Vec<UserId> {
        Vec::new()
    }

    /// What those of them are now that the batch may have changed: a user, another, and the number
    /// for the two. Also where nothing changed: the node that made a change may have ended before
    /// it told the cache, so a command that finds it made brings it.
    fn facts_now(&self, _needs: &Self::Needs) -> Vec<(UserId, UserId, u8)> {
        Vec::new()
    }
}

/// The needs of set R. A type of its own, because two sets may use the same `Needs` type.
#[derive(Debug)]
struct NeedsOf<R: RowSet>(R::Needs);

impl<R: RowSet> Default for NeedsOf<R> {
    fn default() -> Self {
        Self(R::Needs::default())
    }
}

impl Needs {
    /// What is needed of a feature's set, to add to it.
    pub fn of<R: RowSet>(&mut self) -> &mut R::Needs {
        &mut self.set::<NeedsOf<R>>().0
    }

    /// What is needed of a feature's set, if anything.
    #[must_use]
    pub fn find<R: RowSet>(&self) -> Option<&R::Needs> {
        self.find_set::<NeedsOf<R>>().map(|needs| &needs.0)
    }
}

/// A set in the list of all.
#[derive(Debug, Clone, Copy)]
pub struct NewRowSet {
    make: fn() -> Box<dyn AnyRowSet>,
    /// The rows that a user's entry shows.
    pub entry_rows: Option<EntryRows>,
    statements: fn() -> Vec<&'static Statement>,
}

impl NewRowSet {
    /// This one.
    #[must_use]
    pub const fn of<R: RowSet>() -> Self {
        Self { make: || Box::new(R::default()), entry_rows: R::ENTRY_ROWS, statements: R::statements }
    }

    pub(super) fn make(self) -> Box<dyn AnyRowSet> {
        (self.make)()
    }

    /// [`RowSet::statements`].
    #[must_use]
    pub fn statements(self) -> Vec<&'static Statement> {
        (self.statements)()
    }
}

/// A [`RowSet`] of any feature, for the batch.
pub(super) trait AnyRowSet: Any + fmt::Debug + Send + Sync {
    fn lock<'a>(&'a self, conn: &'a mut Conn, needs: &'a Needs) -> Option<BoxFuture<'a, DbResult<()>>>;
    fn load<'a>(&'a mut self, pipeline: &'a Pipeline, core: &'a Core, needs: &'a Needs) -> Option<BoxFuture<'a, DbResult<()>>>;
    fn take_marks(&mut self) -> Vec<(MarkKey, Mark)>;
    fn seen_heads(&self, needs: &Needs, core: &Core, heads: &mut BTreeSet<StreamKey>);
    fn are_under(&self, head: &StreamKey) -> bool;
    fn save<'a>(&'a self, conn: &'a mut Conn, core: &'a Core, batch: Batch) -> BoxFuture<'a, DbResult<()>>;
    fn settle(&mut self);
    fn undo(&mut self);
    fn parts(&self, parts: &mut EntryParts<'_>);
    fn notices(&self) -> Vec<NoticeRow>;
    fn facts(&self, needs: &Needs) -> Vec<UserId>;
    fn facts_now(&self, needs: &Needs) -> Vec<(UserId, UserId, u8)>;
}

impl<R: RowSet> AnyRowSet for R {
    fn lock<'a>(&'a self, conn: &'a mut Conn, needs: &'a Needs) -> Option<BoxFuture<'a, DbResult<()>>> {
        Some(Box::pin(R::lock(conn, needs.find::<R>()?)))
    }

    fn load<'a>(&'a mut self, pipeline: &'a Pipeline, core: &'a Core, needs: &'a Needs) -> Option<BoxFuture<'a, DbResult<()>>> {
        Some(Box::pin(RowSet::load(self, pipeline, core, needs.find::<R>()?)))
    }

    fn take_marks(&mut self) -> Vec<(MarkKey, Mark)> {
        RowSet::take_marks(self)
    }

    fn seen_heads(&self, needs: &Needs, core: &Core, heads: &mut BTreeSet<StreamKey>) {
        R::seen_heads(needs, core, heads);
    }

    fn are_under(&self, head: &StreamKey) -> bool {
        RowSet::are_under(self, head)
    }

    fn save<'a>(&'a self, conn: &'a mut Conn, core: &'a Core, batch: Batch) -> BoxFuture<'a, DbResult<()>> {
        Box::pin(RowSet::save(self, conn, core, batch))
    }

    fn settle(&mut self) {
        RowSet::settle(self);
    }

    fn undo(&mut self) {
        RowSet::undo(self);
    }

    fn parts(&self, parts: &mut EntryParts<'_>) {
        RowSet::parts(self, parts);
    }

    fn notices(&self) -> Vec<NoticeRow> {
        RowSet::notices(self)
    }

    fn facts(&self, needs: &Needs) -> Vec<UserId> {
        needs.find::<R>().map(R::facts).unwrap_or_default()
    }

    fn facts_now(&self, needs: &Needs) -> Vec<(UserId, UserId, u8)> {
        needs.find::<R>().map(|needs| RowSet::facts_now(self, needs)).unwrap_or_default()
    }
}
