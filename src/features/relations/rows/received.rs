//! What those have of a follow or a request who are followed or asked: a row that goes with the row of the other side.
//! One without the other came from somebody's hand or a damaged disk.

use super::super::{request_store, store};
use super::{Received, RelationRows};
use crate::db::{Conn, DbResult};
use crate::engine::lanes::Core;

impl RelationRows {
    /// Removes this row where the other side has none at the end of the batch. Needs the pair, to change it.
    pub(in super::super) fn remove_received(&mut self, row: Received) {
        self.received.set(&row, true);
    }

    /// What there is of a user without a row was not loaded. The batch makes the row, so a later one knows.
    pub(super) async fn delete_received(&self, conn: &mut Conn, core: &Core) -> DbResult<()> {
        let rows: Vec<_> = self.received.changed().map(|(row, _)| *row).filter(|(pair, _)| !core.is_new(pair.follower)).collect();
        let follows: Vec<_> = rows.iter().copied().filter(|(pair, _)| self.follow(*pair).is_none()).collect();
        let requests: Vec<_> = rows.into_iter().filter(|(pair, _)| self.request(*pair).is_none()).collect();
        if !follows.is_empty() {
            store::delete_received(conn, &follows).await?;
        }
        if requests.is_empty() { Ok(()) } else { request_store::delete_received(conn, &requests).await }
    }
}
