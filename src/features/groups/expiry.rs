//! Old messages of groups go, where a setting says so (`crate::features::old_rows` has the walk).
//!
//! The positions of what went count as taken back, in one run from the first on
//! ([`Stream::expire`](crate::engine::marks::Stream::expire)), in the transaction that removes the
//! rows. So a message that expires is unread for nobody, heads and marks stay, and no member's row
//! is written. What is kept is one run up to the head: a position at or below the head without a
//! row has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::GroupCommand;
use super::http::GroupContext;
use super::message_store::LOAD_WAITING;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::GroupId;
use crate::db::{Column, DbResult, Statement, Type};
use crate::engine::lanes;
pub use crate::features::old_rows::Walk;
use crate::features::old_rows::{OWNER_ROWS, Old, OldRows, PAGE, Page, Sweep, old_within};

static OLD: Statement = Statement::one(
    "select m.sent_at, m.group_id
    from group_messages m
    where (m.sent_at, m.group_id) > ($1, $2) and m.sent_at < $3
    order by m.sent_at, m.group_id
    limit $4",
    &[("after_at", Type::Int), ("after_group", Type::Int), ("before", Type::Int), ("max_rows", Type::Int)],
);

/// The first message of each group that is kept, and the group's head; 0: there is none.
static BOUNDS: Statement = Statement::new(
    "select r.group_id,
        coalesce((select m.seq from group_messages m where m.group_id = r.group_id order by m.seq limit 1), 0),
        coalesce((select h.head from heads h where h.owner_id = r.group_id and h.kind = 6 and h.name = ''), 0)
    from {rows} r",
    &[("group_id", Type::Int)],
)
.by("group_id");

/// The lowest message of each group within these that is not old; one beyond them where all are.
/// An imported message may be older than one before it, which then keeps it. One so far ahead that a
/// clock was fast keeps nothing: it goes with an old one behind it.
static YOUNG: Statement = Statement::new(
    "select r.group_id, r.first_seq, coalesce((
        select m.seq
        from group_messages m
        where m.group_id = r.group_id and m.seq >= r.first_seq and m.seq <= r.last_seq and m.sent_at >= r.before
        and (m.sent_at <= r.ahead or coalesce((
            select n.sent_at
            from group_messages n
            where n.group_id = r.group_id and n.seq > m.seq and n.sent_at <= r.ahead
            order by n.seq
            limit 1
        ), r.before) >= r.before)
        order by m.seq
        limit 1
    ), r.last_seq + 1)
    from {rows} r",
    &[("group_id", Type::Int), ("first_seq", Type::Int), ("last_seq", Type::Int), ("before", Type::Int), ("ahead", Type::Int)],
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
        let groups = [Column::Int(groups.iter().copied().collect())];
        let bounds: Vec<(i64, i64, i64)> = self.db.fetch(&BOUNDS, &groups).await?;
        // By a statement of its own: a distributed database keeps the jobs on the coordinator, beside no shard. What a
        // job names that comes later, the command leaves.
        let waiting: Vec<(i64, i64)> = self.db.fetch(&LOAD_WAITING, &groups).await?;
        let waiting: BTreeMap<i64, i64> = waiting.into_iter().collect();
        let within = |(group, first, head): (i64, i64, i64)| {
            let last = head.min(first + OWNER_ROWS - 1);
            let last = waiting.get(&group).map_or(last, |waiting| last.min(waiting - 1));
            (first >= 1 && last >= first).then_some(Old { owner: group, first, last })
        };
        let within = bounds.into_iter().filter_map(within).collect();
        old_within(&self.db, &YOUNG, within, before, &self.clock).await
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
    let sweep = Sweep { lanes: &state.lanes, draining: &state.polling.draining, before };
    Ok(sweep.run(state, walk).await?.removed)
}
