//! Removals that a batch begins. Nothing of these rows is loaded but which users were erased before.

use std::collections::BTreeSet;

use super::{NewRemoval, RemovalKind, store};
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::erased;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Rows, Table};
use crate::features::operations::OperationId;

/// The rows of a batch.
#[derive(Debug, Default)]
pub struct RemovalRows {
    new: Table<OperationId, Option<NewRemoval>>,
    /// By which operations users are erased.
    erased: Table<UserId, Option<OperationId>>,
    /// Those that were begun before and are asked for again.
    repeated: Table<OperationId, Option<NewRemoval>>,
}

/// Begins a removal. What refuses later writes to what is removed is the caller's to set.
pub fn begin(rows: &mut Rows, new: NewRemoval) {
    let set = rows.get_mut::<RemovalRows>();
    if new.kind == RemovalKind::User
        && let Ok(user) = UserId::try_from(new.subject)
    {
        set.erased.set(&user, Some(new.id.clone()));
    }
    set.new.set(&new.id.clone(), Some(new));
}

/// A removal that was begun before is asked for again. Where its row is gone it was done long ago: there is one again
/// that says so, as the answer names the operation of the first time.
pub fn repeat(rows: &mut Rows, removal: NewRemoval) {
    rows.get_mut::<RemovalRows>().repeated.set(&removal.id.clone(), Some(removal));
}

impl RemovalRows {
    /// The operation by which a user is erased; needs the user among those asked for.
    #[must_use]
    pub fn erased_by(&self, user: UserId) -> Option<OperationId> {
        self.erased.get(&user)
    }
}

impl RowSet for RemovalRows {
    /// Users of whom it is asked by which operations they were erased.
    type Needs = BTreeSet<UserId>;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, users: &Self::Needs) -> DbResult<()> {
        let users: Vec<_> = users.iter().copied().collect();
        let found = erased::find(pipeline, &users).await?;
        self.erased.insert_loaded(found.into_iter().filter_map(|(user, operation)| Some((user, Some(operation.parse().ok()?)))));
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, batch: Batch) -> DbResult<()> {
        let new: Vec<_> = self.new.changed().filter_map(|(_, new)| new.as_ref()).collect();
        if !new.is_empty() {
            store::begin(conn, &new, batch.now).await?;
        }
        let erased: Vec<_> = self.erased.changed().filter_map(|(user, operation)| Some((*user, operation.as_ref()?))).collect();
        if !erased.is_empty() {
            store::remember(conn, &erased).await?;
        }
        // After those that begin: one of them may be repeated in the same batch.
        let repeated: Vec<_> = self.repeated.changed().filter_map(|(_, removal)| removal.as_ref()).collect();
        if repeated.is_empty() { Ok(()) } else { store::keep(conn, &repeated, batch.now).await }
    }

    fn settle(&mut self) {
        self.new.settle();
        self.erased.settle();
        self.repeated.settle();
    }

    fn undo(&mut self) {
        self.new.undo();
        self.erased.undo();
        self.repeated.undo();
    }
}
