//! The rows of `marks` (of views) that lanes load and write under the locks of their users.

use super::{Kind, Mark, MarkKey};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};

const MARK: &[(&str, Type)] = &[
    ("user_id", Type::Int),
    ("kind", Type::Int),
    ("name", Type::Text),
    ("head", Type::Int),
    ("mark", Type::Int),
    ("retracted", Type::Text),
    ("at", Type::Int),
];

static LOAD_MARKS: Statement = Statement::new(
    "select m.user_id, m.kind, m.name, m.head, m.mark, m.retracted, m.at
    from {rows} r
    join marks m on m.user_id = r.user_id and m.kind = r.kind and m.name = r.name",
    &[("user_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)],
)
.by("user_id");

/// For marks that were loaded, so that they are there: an update costs less than an insert that
/// meets a row.
static UPDATE_MARKS: Statement = Statement::new(
    "update marks
    set head = r.head, mark = r.mark, retracted = r.retracted, at = r.at
    from {rows} r
    where marks.user_id = r.user_id and marks.kind = r.kind and marks.name = r.name",
    MARK,
)
.by("user_id");

/// For marks that were not there, or that the same transaction has removed.
static INSERT_MARKS: Statement = Statement::new(
    "insert into marks (user_id, kind, name, head, mark, retracted, at)
    select user_id, kind, name, head, mark, retracted, at
    from {rows} r
    where true
    on conflict (user_id, kind, name) do update set
        head = excluded.head,
        mark = excluded.mark,
        retracted = excluded.retracted,
        at = excluded.at",
    MARK,
);

static DELETE_MARKS: Statement = Statement::new(
    "delete from marks
    where (user_id, kind, name) in (select user_id, kind, name from {rows} r)",
    &[("user_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&LOAD_MARKS, &UPDATE_MARKS, &INSERT_MARKS, &DELETE_MARKS]
}

/// A row of `marks` as the statements return it.
pub(crate) type MarkRow = (i64, i64, String, i64, i64, String, i64);

/// Loads these marks, whose rows the locks of their users protect; the missing ones are left out.
pub async fn load_marks(pipeline: &Pipeline, keys: &[MarkKey]) -> DbResult<Vec<(MarkKey, Mark)>> {
    Ok(pipeline.fetch(&LOAD_MARKS, mark_key_columns(keys)).await?.into_iter().filter_map(mark_of_row).collect())
}

fn mark_key_columns(keys: &[MarkKey]) -> [Column; 3] {
    [
        Column::Int(keys.iter().map(|key| key.user.get()).collect()),
        Column::Int(keys.iter().map(|key| key.kind.code()).collect()),
        Column::Text(keys.iter().map(|key| (*key.name).to_owned()).collect()),
    ]
}

/// Writes these marks, which were loaded.
pub async fn update_marks(conn: &mut Conn, marks: &[(&MarkKey, &Mark)]) -> DbResult<()> {
    conn.later(&UPDATE_MARKS, &mark_columns(marks)).await
}

/// Writes these marks, which are new.
pub async fn insert_marks(conn: &mut Conn, marks: &[(&MarkKey, &Mark)]) -> DbResult<()> {
    conn.later(&INSERT_MARKS, &mark_columns(marks)).await
}

fn mark_columns(marks: &[(&MarkKey, &Mark)]) -> [Column; 7] {
    [
        Column::Int(marks.iter().map(|(key, _)| key.user.get()).collect()),
        Column::Int(marks.iter().map(|(key, _)| key.kind.code()).collect()),
        Column::Text(marks.iter().map(|(key, _)| (*key.name).to_owned()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.head()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.mark()).collect()),
        Column::Text(marks.iter().map(|(_, mark)| mark.retracted().to_string()).collect()),
        Column::Int(marks.iter().map(|(_, mark)| mark.at.0).collect()),
    ]
}

/// Removes these marks.
pub async fn delete_marks(conn: &mut Conn, keys: &[MarkKey]) -> DbResult<()> {
    conn.later(&DELETE_MARKS, &mark_key_columns(keys)).await
}

/// Reads these marks as of one moment; the missing ones are left out.
pub async fn read_marks(db: &Db, keys: &[MarkKey]) -> DbResult<Vec<(MarkKey, Mark)>> {
    Ok(db.fetch(&LOAD_MARKS, &mark_key_columns(keys)).await?.into_iter().filter_map(mark_of_row).collect())
}

/// A row of a kind that this version does not know (written by a newer one) is passed over.
pub(crate) fn mark_of_row((user, kind, name, head, mark, retracted, at): MarkRow) -> Option<(MarkKey, Mark)> {
    let key = MarkKey { user: UserId::try_from(user).ok()?, kind: Kind::from_code(kind)?, name: name.into() };
    Some((key, Mark::from_row(head, mark, &retracted, UnixMs(at))))
}
