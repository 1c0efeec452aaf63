//! The items of a batch, and the marks of views that make room for others.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;

use super::store::{self, Item, ItemKey};
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Rows, Table};
use crate::engine::marks::{Mark, MarkKey};

/// The rows of views in a batch.
#[derive(Debug, Default)]
pub struct ViewRows {
    /// Things in views.
    pub items: Table<ItemKey, Option<Item>>,
    /// Marks of views that make room for those that users visit for the first time.
    old_visits: BTreeMap<UserId, Vec<MarkKey>>,
    /// These marks, until the batch has them.
    old_marks: Vec<(MarkKey, Mark)>,
}

/// Which of these rows a batch needs.
#[derive(Debug, Default)]
pub struct ViewNeeds {
    /// Visits of views, and how many views are remembered of a user; with it the marks.
    pub visits: BTreeMap<MarkKey, u32>,
    /// Things in views; with it the heads of the views.
    pub items: BTreeSet<ItemKey>,
}

/// Of the users who visit a view for the first time, loads what that may push out. A mark that
/// this batch asks for is in use, and stays.
async fn load_old_visits(pipeline: &Pipeline, core: &Core, visits: &BTreeMap<MarkKey, u32>) -> DbResult<Vec<(MarkKey, Mark)>> {
    let mut users: BTreeMap<UserId, i64> = BTreeMap::new();
    for (key, keep) in visits.iter().filter(|(key, _)| !core.has_mark(key)) {
        *users.entry(key.user).or_insert(i64::from(*keep)) -= 1;
    }
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let mut old = store::load_old_visits(pipeline, &users).await?;
    old.retain(|(key, _)| !core.has_mark(key));
    Ok(old)
}

/// The user visits a view for the first time: those whose last visit is the longest ago make room.
pub fn forget_old_visits(rows: &mut Rows, user: UserId) {
    for key in rows.get::<ViewRows>().old_visits.get(&user).cloned().unwrap_or_default() {
        rows.set_mark_at(&key, Mark::default());
    }
}

impl RowSet for ViewRows {
    type Needs = ViewNeeds;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, core: &Core, needs: &ViewNeeds) -> DbResult<()> {
        let old = load_old_visits(pipeline, core, &needs.visits);
        (self.old_marks, ()) = try_join(old, store::load(pipeline, &mut self.items, &needs.items)).await?;
        for (key, _) in &self.old_marks {
            self.old_visits.entry(key.user).or_default().push(key.clone());
        }
        Ok(())
    }

    fn take_marks(&mut self) -> Vec<(MarkKey, Mark)> {
        std::mem::take(&mut self.old_marks)
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        store::save(conn, &self.items).await
    }

    fn settle(&mut self) {
        self.items.settle();
    }

    fn undo(&mut self) {
        self.items.undo();
    }
}
