//! The statements by which a batch reads and writes `notification_types` (`rows.rs`): the numbers of each type.

use std::collections::BTreeSet;

use super::entry::{Count, TypeKey};
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

/// With how many types the user has, where this one would be new.
static LOAD: Statement = Statement::new(
    "select r.user_id, r.type, coalesce(t.unread, -1), coalesce(t.seen, 0),
        case when t.user_id is null then (select count(*) from notification_types c where c.user_id = r.user_id) else 0 end
    from {rows} r
    left join notification_types t on t.user_id = r.user_id and t.type = r.type",
    &[("user_id", Type::Int), ("type", Type::Text)],
)
.by("user_id");

static LOAD_OF_USERS: Statement = Statement::new(
    "select t.user_id, t.type, t.unread, t.seen
    from {rows} r
    join notification_types t on t.user_id = r.user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Types of which nothing is unread, so many of each user.
static LOAD_EMPTY: Statement = Statement::new(
    "select e.user_id, e.type, e.unread, e.seen
    from (
        select t.user_id, t.type, t.unread, t.seen, r.max_rows, row_number() over (partition by t.user_id order by t.type) as place
        from {rows} r
        join notification_types t on t.user_id = r.user_id
        where t.unread = 0
    ) e
    where e.place <= e.max_rows",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
)
.by("user_id");

static SAVE: Statement = Statement::new(
    "insert into notification_types (user_id, type, unread, seen)
    select user_id, type, unread, seen
    from {rows} r
    where true
    order by user_id, type
    on conflict (user_id, type) do update set unread = excluded.unread, seen = excluded.seen",
    &[("user_id", Type::Int), ("type", Type::Text), ("unread", Type::Int), ("seen", Type::Int)],
);

static DELETE: Statement = Statement::new(
    "delete from notification_types
    where (user_id, type) in (select user_id, type from {rows} r)",
    &[("user_id", Type::Int), ("type", Type::Text)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 5] {
    [&LOAD, &LOAD_OF_USERS, &LOAD_EMPTY, &SAVE, &DELETE]
}

/// A row of `notification_types`.
pub(super) type TypeRow = (i64, String, i64, i64);

fn keys<'a>(types: impl Iterator<Item = &'a TypeKey> + Clone) -> [Column; 2] {
    [Column::Int(types.clone().map(|(user, _)| user.get()).collect()), Column::Text(types.map(|(_, kind)| (**kind).to_owned()).collect())]
}

/// The numbers of each of these types, and where it would be new -1 and how many types the user
/// has.
pub(super) async fn load(pipeline: &Pipeline, types: &BTreeSet<TypeKey>) -> DbResult<Vec<(i64, String, i64, i64, i64)>> {
    if types.is_empty() { Ok(Vec::new()) } else { pipeline.fetch(&LOAD, keys(types.iter())).await }
}

pub(super) async fn load_of_users(pipeline: &Pipeline, users: &BTreeSet<UserId>) -> DbResult<Vec<TypeRow>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_OF_USERS, [Column::Int(users.iter().map(|user| user.get()).collect())]).await
}

/// Up to so many types of each of these users of which nothing is unread.
pub(super) async fn load_empty(pipeline: &Pipeline, users: &[(UserId, i64)]) -> DbResult<Vec<TypeRow>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Column::Int(users.iter().map(|(user, _)| user.get()).collect());
    pipeline.fetch(&LOAD_EMPTY, [ids, Column::Int(users.iter().map(|(_, rows)| *rows).collect())]).await
}

pub(super) async fn save(conn: &mut Conn, types: &[(&TypeKey, Count)]) -> DbResult<()> {
    if types.is_empty() {
        return Ok(());
    }
    let [users, kinds] = keys(types.iter().map(|(key, _)| *key));
    let unread = Column::Int(types.iter().map(|(_, count)| count.unread).collect());
    conn.later(&SAVE, &[users, kinds, unread, Column::Int(types.iter().map(|(_, count)| count.seen).collect())]).await
}

pub(super) async fn delete(conn: &mut Conn, types: &[&TypeKey]) -> DbResult<()> {
    if types.is_empty() { Ok(()) } else { conn.later(&DELETE, &keys(types.iter().copied())).await }
}
