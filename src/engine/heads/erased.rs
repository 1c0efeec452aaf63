//! The log of changed heads, once a creator is erased: it names the creator no longer.

use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};

/// The lane after this one; 0: there is none.
static NEXT_LANE: Statement =
    Statement::one("select coalesce((select min(c.lane_id) from head_changes c where c.lane_id > $1), 0)", &[("after", Type::Int)]);

/// In the changes of one lane, of which a bounded number is kept. Nobody has the id 0, so a look passes
/// by it.
static FORGET: Statement = Statement::each(
    "update head_changes
    set streams = replace(head_changes.streams, '[' || r.owner_id || ',5,\"\"]', '[0,5,\"\"]')
    from {rows} r
    where head_changes.lane_id = r.lane_id and head_changes.streams like '%[' || r.owner_id || ',5,\"\"]%'",
    "update head_changes
    set owner_ids = (
        select array_agg(case when s.kind = 5 and s.owner_id = r.owner_id then 0 else s.owner_id end order by s.place)
        from unnest(head_changes.owner_ids, head_changes.kinds) with ordinality s (owner_id, kind, place)
    )
    from {rows} r
    where head_changes.lane_id = r.lane_id and r.owner_id = any(head_changes.owner_ids)",
    &[("lane_id", Type::Int), ("owner_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&NEXT_LANE, &FORGET]
}

/// Forgets a creator in the changes of the lane after this one. That lane; None where there is none.
pub async fn forget_creator(db: &Db, creator: UserId, after: i64) -> DbResult<Option<i64>> {
    let next: Vec<(i64,)> = db.fetch(&NEXT_LANE, &[Column::Int(vec![after])]).await?;
    let Some(lane) = next.first().map(|(lane,)| *lane).filter(|lane| *lane > 0) else { return Ok(None) };
    db.run(&FORGET, &[Column::Int(vec![lane]), Column::Int(vec![creator.get()])]).await?;
    Ok(Some(lane))
}
