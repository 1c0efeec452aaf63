//! Old messages of groups go, where a setting says so (`crate::features::old_rows` has the walk).
//!
//! The positions of what went count as taken back, in one run from the first on
//! ([`Stream::expire`](crate::engine::marks::Stream::expire)), in the transaction that removes the
//! rows. So a message that expires is unread for nobody, heads and marks stay, and no member's row
//! is written. What is kept is one run up to the head: a position at or below the head without a
//! row has expired.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::GroupCommand;
use super::http::GroupContext;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::GroupId;
use crate::db::{Column, DbResult, Statement, Type};
use crate::engine::lanes;
pub use crate::features::old_rows::Walk;
use crate::features::old_rows::{OWNER_ROWS, Old, OldRows, PAGE, Page, Sweep};

static OLD: Statement = Statement::one(
    "select m.sent_at, m.group_id
    from group_messages m
    where (m.sent_at, m.group_id) > ($1, $2) and m.sent_at < $3
    order by m.sent_at, m.group_id
    limit $4",
    &[("after_at", Type::Int), ("after_group", Type::Int), ("before", Type::Int), ("max_rows", Type::Int)],
);

/// The first message of each group that is kept, and the group's head.
static BOUNDS: Statement = Statement::new(
    "select r.group_id,
        coalesce((select m.seq from group_messages m where m.group_id = r.group_id order by m.seq limit 1), 0),
        coalesce((select h.head from heads h where h.owner_id = r.group_id and h.kind = 6 and h.name = ''), 0)
    from {rows} r",
    &[("group_id", Type::Int)],
)
.by("group_id");

/// The lowest message of each group within these that is not old; one beyond them where all are.
/// An imported message may be older than one before it, which then keeps it.
static YOUNG: Statement = Statement::new(
    "select r.group_id, r.first_seq, coalesce((
        select m.seq
        from group_messages m
        where m.group_id = r.group_id and m.seq >= r.first_seq and m.seq <= r.last_seq and m.sent_at >= r.before
        order by m.seq
        limit 1
    ), r.last_seq + 1)
    from {rows} r",
    &[("group_id", Type::Int), ("first_seq", Type::Int), ("last_seq", Type::Int), ("before", Type::Int)],
)
.by("group_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&OLD, &BOUNDS, &YOUNG]
}

impl OldRows for GroupContext {
    async fn page(&self, after: Walk, before: UnixMs) -> DbResult<Page> {
        let columns = [after.at, after.owner, before.0, PAGE].map(|value| Column::Int(vec![value]));
        let old: Vec<(i64, i64)> = self.db.fetch(&OLD, &columns).await?;
        let looked_at: Vec<_> = old.into_iter().map(|(at, owner)| Walk { at, owner }).collect();
        Ok(Page::new(looked_at.iter().map(|old| old.owner).collect(), &looked_at))
    }

    async fn find(&self, groups: &BTreeSet<i64>, before: UnixMs) -> DbResult<Vec<Old>> {
        let bounds: Vec<(i64, i64, i64)> = self.db.fetch(&BOUNDS, &[Column::Int(groups.iter().copied().collect())]).await?;
        let within = bounds.into_iter().filter(|(_, first, head)| *first >= 1 && head >= first);
        let within: Vec<_> = within.map(|(group, first, head)| (group, first, head.min(first + OWNER_ROWS - 1))).collect();
        if within.is_empty() {
            return Ok(Vec::new());
        }
        let columns = [
            within.iter().map(|(group, ..)| *group).collect(),
            within.iter().map(|(_, first, _)| *first).collect(),
            within.iter().map(|(.., last)| *last).collect(),
            vec![before.0; within.len()],
        ];
        let young: Vec<(i64, i64, i64)> = self.db.fetch(&YOUNG, &columns.map(Column::Int)).await?;
        let old = young.into_iter().filter(|(_, first, young)| young > first);
        Ok(old.map(|(owner, first, young)| Old { owner, first, last: young - 1 }).collect())
    }

    fn command(&self, old: &Old, _before: UnixMs) -> Option<Arc<dyn lanes::Command>> {
        let (group, rows) = (GroupId::try_from(old.owner).ok()?, u32::try_from(old.rows()).unwrap_or(u32::MAX));
        Some(Arc::new(GroupCommand::Expire { group, up_to: old.last, rows }))
    }
}

/// Removes old messages, in bounded rounds, and goes on from where the walk is. Returns up to how
/// many were removed.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep(state: &GroupContext, walk: &mut Walk) -> Result<u64> {
    match state.config.oldest(state.clock.now()) {
        Some(before) => sweep_before(state, walk, before).await,
        None => Ok(0),
    }
}

/// The same for what was sent before this moment, whatever the setting says.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep_before(state: &GroupContext, walk: &mut Walk, before: UnixMs) -> Result<u64> {
    Sweep { lanes: &state.lanes, draining: &state.polling.draining, before }.run(state, walk).await
}
