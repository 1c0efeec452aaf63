//! The notices of a batch.

use std::collections::BTreeSet;

use super::{Notice, NoticeKey, store};
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::heads::{Batch, NoticeRow};
use crate::engine::lanes::{Core, RowSet, Table};

/// The notices of a batch. The lock of the broadcast state guards them.
#[derive(Debug, Default)]
pub struct NoticeRows(Table<NoticeKey, Option<Notice>>);

impl NoticeRows {
    /// A notice as it is now.
    #[must_use]
    pub fn notice(&self, key: &NoticeKey) -> Option<Notice> {
        self.0.get(key)
    }

    /// Writes a notice.
    pub fn set(&mut self, key: &NoticeKey, notice: Notice) {
        self.0.set(key, Some(notice));
    }
}

impl RowSet for NoticeRows {
    type Needs = BTreeSet<NoticeKey>;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &Self::Needs) -> DbResult<()> {
        let keys: Vec<_> = needs.iter().cloned().collect();
        self.0.insert_loaded(store::load(pipeline, &keys).await?);
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        let notices: Vec<_> = self.0.changed().filter_map(|(key, notice)| Some((key, notice.as_ref()?))).collect();
        if notices.is_empty() { Ok(()) } else { store::save(conn, &notices).await }
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn undo(&mut self) {
        self.0.undo();
    }

    fn notices(&self) -> Vec<NoticeRow> {
        let row = |(key, notice): (&NoticeKey, &Option<Notice>)| {
            let Notice { position, expires_at, withdrawn, .. } = notice.as_ref()?;
            Some(((*key.channel).to_owned(), key.seq, *position, expires_at.0, i64::from(*withdrawn)))
        };
        self.0.changed().filter_map(row).collect()
    }
}
