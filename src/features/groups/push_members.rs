//! The members of groups who have a push device, for jobs that tell of changes of their numbers.

use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};

/// How groups deliver; -1: there is none.
static DELIVERY: Statement = Statement::new(
    "select r.group_id, coalesce((select g.delivery from chat_groups g where g.group_id = r.group_id), -1)
    from {rows} r",
    &[("group_id", Type::Int)],
)
.by("group_id");

static WITH_PUSH: Statement = Statement::new(
    "select distinct m.group_id
    from {rows} r
    join memberships m on m.group_id = r.group_id
    join push_users p on p.user_id = m.user_id
    where m.to_seq < 0",
    &[("group_id", Type::Int)],
);

/// Whom the group counts for in any sum: its level is not 'none' (1), or has ended. Members are
/// looked at in their order, also by SQLite, which heeds `cross join`.
static MEMBERS: Statement = Statement::one(
    "select m.ordinal, m.user_id
    from memberships m
    cross join push_users p
    where m.group_id = $1 and m.ordinal > $2 and m.to_seq < 0 and p.user_id = m.user_id
        and (m.level <> 1 or (m.level_until > 0 and m.level_until <= $3))
    order by m.group_id, m.ordinal
    limit $4",
    &[("group_id", Type::Int), ("ordinal", Type::Int), ("now", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&DELIVERY, &WITH_PUSH, &MEMBERS]
}

/// Those of these groups whose messages count for members with a push device without a write to
/// their rows.
pub async fn with_push(conn: &mut Conn, groups: &[GroupId]) -> DbResult<Vec<GroupId>> {
    let ids = Column::Int(groups.iter().map(|group| group.get()).collect());
    let delivery: Vec<(i64, i64)> = conn.fetch(&DELIVERY, &[ids]).await?;
    // What others deliver by writing raises their members' revisions.
    let read: Vec<_> = delivery.into_iter().filter(|(_, delivery)| *delivery == 0).map(|(group, _)| group).collect();
    if read.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(i64,)> = conn.fetch(&WITH_PUSH, &[Column::Int(read)]).await?;
    Ok(rows.into_iter().filter_map(|(group,)| GroupId::try_from(group).ok()).collect())
}

/// The members with a push device for whom a group counts, after an ordinal and in their order.
pub async fn page(db: &Db, group: GroupId, after: i64, now: UnixMs, max_rows: i64) -> DbResult<Vec<(i64, UserId)>> {
    let rows: Vec<(i64, i64)> = db.fetch(&MEMBERS, &[group.get(), after, now.0, max_rows].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().filter_map(|(ordinal, user)| Some((ordinal, UserId::try_from(user).ok()?))).collect())
}
