//! The look of a node that knows nothing yet, or nothing any more. Notices are many where channels are
//! full, more than one statement can read in its time. So they are read page by page first, in the order
//! in which they changed. What changes meanwhile changes again behind the place that was reached: at the
//! end, one statement reads it together with everything else. So all is of the moment of that statement.

use std::sync::Arc;

use super::store::{Look, NoticeRow};
use crate::db::{Column, Db, DbResult, Statement, Type, in_time};
use crate::engine::epoch;

/// What is of one moment: see [`Look`]. Of the heads all channels and dots, and the broadcast state
/// itself; of the notices those that changed after a head of the broadcast state.
static FIRST_LOOK: Statement = Statement::one(
    "select cast(0 as bigint) as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version,
        0 as position, 0 as at, '' as mention_all
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0, ''
    from lanes l
    union all
    select 2, h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3, 7)
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0, ''
    from notices n
    where n.changed > $1",
    &[("changed", Type::Int)],
);

/// A page of notices. Each change of one raises the head of the broadcast state, under its lock. So no two
/// have one `changed`, and none that is committed later has a lower one.
static NOTICES: Statement = Statement::one(
    "select n.channel, n.seq, n.position, n.expires_at, n.withdrawn, n.changed
    from notices n
    where n.changed > $1
    order by n.changed
    limit $2",
    &[("changed", Type::Int), ("max_rows", Type::Int)],
);

/// How many notices one page has: far fewer than a statement can read in its time.
const NOTICES_AT_ONCE: usize = 10_000;

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&FIRST_LOOK, &NOTICES]
}

/// What was read ahead of a first look.
#[derive(Debug)]
pub(super) struct ReadAhead {
    epoch: Arc<str>,
    notices: Vec<NoticeRow>,
    /// All notices that changed last at a head up to this one are there.
    up_to: i64,
}

/// A row of [`NOTICES`].
type Row = (String, i64, i64, i64, i64, i64);

impl ReadAhead {
    /// Reads the notices. That takes as long as there are many; the limit is for each page.
    pub(super) async fn read(db: &Db) -> DbResult<Self> {
        let epoch = in_time(epoch::current(db)).await?.unwrap_or_default().into();
        let (mut notices, mut up_to) = (Vec::new(), 0);
        loop {
            let columns = [up_to, i64::try_from(NOTICES_AT_ONCE).unwrap_or(i64::MAX)].map(|value| Column::Int(vec![value]));
            let page: Vec<Row> = in_time(db.fetch(&NOTICES, &columns)).await?;
            let is_last = page.len() < NOTICES_AT_ONCE;
            for (channel, seq, position, expires_at, withdrawn, changed) in page {
                up_to = changed;
                notices.push((channel, seq, position, expires_at, withdrawn));
            }
            if is_last {
                return Ok(Self { epoch, notices, up_to });
            }
        }
    }

    /// The look itself.
    ///
    /// # Errors
    /// The driver's own, and one that may pass where another epoch began meanwhile: what was read ahead may
    /// be of another history.
    pub(super) async fn look(self, db: &Db) -> DbResult<Look> {
        let mut look = in_time(look(db, self.up_to)).await?;
        if look.epoch != self.epoch {
            return Err(sqlx::Error::Protocol("another epoch began meanwhile".to_owned()));
        }
        // In this order: what was read ahead is older.
        let newer = std::mem::replace(&mut look.notices, self.notices);
        look.notices.extend(newer);
        Ok(look)
    }
}

async fn look(db: &Db, after: i64) -> DbResult<Look> {
    Ok(Look::of(db.fetch(&FIRST_LOOK, &[Column::Int(vec![after])]).await?))
}
