//! Old things in views go, where a setting says so: the row that makes an id count once. No number
//! changes: what is unread is counted from head and mark.
//!
//! Two sorts of rows are needed for counting and stay: of what was deleted, and of what a user made
//! itself and has not passed with its mark, which is then not to count for that user. The latter go
//! when their maker has been there again. A sweep walks the old rows in the order of their age and
//! passes by those that stay; it goes on in the next sweep where the last one stopped, so that they
//! cannot keep it from the others.

use super::distributed;
use super::http::ViewContext;
use crate::base::clock::{DAY_MS, UnixMs};
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::features::rounds::Rounds;

/// How many old rows one round of a sweep looks at.
const ROUND_ROWS: i64 = 1000;

/// With whether it may go: its maker, if one is named, has passed it, or was never there and will
/// begin after it. Marks never go back, so that stays so.
static OLD: Statement = Statement::one(
    "select i.created_at, i.stream, i.item_id,
        cast(case when i.actor_id = 0 then 1
            when exists (select 1 from marks m where m.user_id = i.actor_id and m.kind = 4 and m.name = i.stream and m.mark < i.seq) then 0
            else 1
        end as bigint)
    from view_items i
    where i.gone = 0 and (i.created_at, i.stream, i.item_id) > ($1, $2, $3) and i.created_at < $4
    order by i.created_at, i.stream, i.item_id
    limit $5",
    &[("after_at", Type::Int), ("after_stream", Type::Text), ("after_item", Type::Text), ("before", Type::Int), ("max_rows", Type::Int)],
)
.distributed(distributed::OLD);

/// Looked at again whether it was deleted meanwhile, as then its row is needed; and whether it is
/// still the same: another sweep may have removed it, and the id have been put again.
static REMOVE: Statement = Statement::new(
    "delete from view_items
    where (stream, item_id, created_at) in (select stream, item_id, created_at from {rows} r) and gone = 0",
    &[("stream", Type::Text), ("item_id", Type::Text), ("created_at", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&OLD, &REMOVE]
}

/// Where a walk through the old rows is: the last one that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    at: i64,
    stream: String,
    item: String,
}

impl Default for Walk {
    fn default() -> Self {
        Self { at: i64::MIN, stream: String::new(), item: String::new() }
    }
}

/// Removes old rows, in bounded rounds, and goes on from where the walk is; at the end it begins
/// again. Returns how many rows were removed.
pub async fn sweep(state: &ViewContext, walk: &mut Walk) -> DbResult<u64> {
    let days = i64::from(state.config.view_item_ttl_days);
    if days == 0 {
        return Ok(0);
    }
    let before = UnixMs(state.clock.now().0 - days * DAY_MS);
    let (mut removed, mut rounds) = (0, Rounds::new(&state.polling.draining));
    while rounds.next().await {
        let old = look(&state.db, walk, before).await?;
        removed += remove(&state.db, &old).await?;
        match old.into_iter().next_back() {
            Some((at, stream, item, _)) => *walk = Walk { at, stream, item },
            None => {
                *walk = Walk::default();
                break;
            }
        }
    }
    Ok(removed)
}

/// A row that is old: when it was made, stream, id, and 1 where it may go.
pub type Old = (i64, String, String, i64);

/// The next old rows of a walk.
pub async fn look(db: &Db, walk: &Walk, before: UnixMs) -> DbResult<Vec<Old>> {
    let columns = [
        Column::Int(vec![walk.at]),
        Column::Text(vec![walk.stream.clone()]),
        Column::Text(vec![walk.item.clone()]),
        Column::Int(vec![before.0]),
        Column::Int(vec![ROUND_ROWS]),
    ];
    db.fetch(&OLD, &columns).await
}

/// Removes those that may go and are still the same. Returns how many.
pub async fn remove(db: &Db, old: &[Old]) -> DbResult<u64> {
    let go = || old.iter().filter(|(.., may_go)| *may_go == 1);
    if go().next().is_none() {
        return Ok(0);
    }
    let columns = [
        Column::Text(go().map(|(_, stream, ..)| stream.clone()).collect()),
        Column::Text(go().map(|(_, _, item, _)| item.clone()).collect()),
        Column::Int(go().map(|(at, ..)| *at).collect()),
    ];
    db.run(&REMOVE, &columns).await
}
