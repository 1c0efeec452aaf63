//! The statements by which a batch reads and writes `grouped_notifications` (`rows.rs`): the
//! notifications of entries with a group key, and the open entries that they join.

use std::collections::BTreeSet;

use super::entry::{EntryKey, Grouped, OpenKey};
use super::store::{EntryRow, entry_rows};
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

/// Notifications of users, each with the entry that it is in.
static LOAD_HOLDERS: Statement = Statement::new(
    "select g.user_id, g.notification_id, g.seq, g.actor_id,
        n.notification_id, n.seq, n.type, n.group_key, n.notifications, n.created_at, n.updated_at, n.read_at, n.gone
    from {rows} r
    join grouped_notifications g on g.notification_id = r.notification_id and g.user_id = r.user_id
    join notification_receivers n on n.notification_id = g.entry_id and n.user_id = r.user_id",
    &[("notification_id", Type::Int), ("user_id", Type::Int)],
)
.by("user_id");

/// Row by row, along the index: without statistics of a table that has just grown, Postgres would
/// join all open entries with all that is asked for. The highest are enough, as no batch reads so
/// many.
static LOAD_OPEN: Statement = Statement::each(
    entry_rows!(
        "from {rows} r
    join notification_receivers n on n.user_id = r.user_id and n.type = r.type and n.group_key = r.group_key
        and n.read_at = 0 and n.gone = 0 and n.group_key <> ''"
    ),
    entry_rows!(
        "from {rows} r
    cross join lateral (
        select o.*
        from notification_receivers o
        where o.user_id = r.user_id and o.type = r.type and o.group_key = r.group_key
            and o.read_at = 0 and o.gone = 0 and o.group_key <> ''
        order by o.seq desc
        limit 20001
    ) n"
    ),
    &[("user_id", Type::Int), ("type", Type::Text), ("group_key", Type::Text)],
)
.by("user_id");

static INSERT: Statement = Statement::insert(
    "grouped_notifications",
    &[("user_id", Type::Int), ("entry_id", Type::Int), ("seq", Type::Int), ("notification_id", Type::Int), ("actor_id", Type::Int)],
);

static DELETE: Statement = Statement::new(
    "delete from grouped_notifications
    where (user_id, entry_id, seq) in (select user_id, entry_id, seq from {rows} r)",
    &[("user_id", Type::Int), ("entry_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 4] {
    [&LOAD_HOLDERS, &LOAD_OPEN, &INSERT, &DELETE]
}

/// A notification of a user, and the entry that it is in.
pub(super) type HolderRow = (i64, i64, i64, i64, i64, i64, String, String, i64, i64, i64, i64, i64);

/// The notification with its key, and the row of the entry.
pub(super) fn split(row: HolderRow) -> Option<((EntryKey, Grouped), EntryRow)> {
    let (user, notification, at, actor, id, seq, kind, group_key, notifications, created_at, updated_at, read_at, gone) = row;
    let key = (UserId::try_from(user).ok()?, NotificationId::try_from(notification).ok()?);
    let grouped = Grouped { entry: NotificationId::try_from(id).ok()?, seq: at, actor };
    Some(((key, grouped), (user, id, seq, kind, group_key, notifications, created_at, updated_at, read_at, gone)))
}

pub(super) async fn load_holders(pipeline: &Pipeline, holders: &BTreeSet<(NotificationId, UserId)>) -> DbResult<Vec<HolderRow>> {
    if holders.is_empty() {
        return Ok(Vec::new());
    }
    let notifications = Column::Int(holders.iter().map(|(id, _)| id.get()).collect());
    pipeline.fetch(&LOAD_HOLDERS, [notifications, Column::Int(holders.iter().map(|(_, user)| user.get()).collect())]).await
}

pub(super) async fn load_open(pipeline: &Pipeline, open: &BTreeSet<OpenKey>) -> DbResult<Vec<EntryRow>> {
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(open.iter().map(|(user, ..)| user.get()).collect()),
        Column::Text(open.iter().map(|(_, kind, _)| (**kind).to_owned()).collect()),
        Column::Text(open.iter().map(|(.., group_key)| (**group_key).to_owned()).collect()),
    ];
    pipeline.fetch(&LOAD_OPEN, columns).await
}

/// A notification with its key.
type GroupedOf<'a> = (&'a EntryKey, &'a Grouped);

fn columns(rows: &[GroupedOf<'_>]) -> [Column; 3] {
    [
        Column::Int(rows.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(rows.iter().map(|(_, grouped)| grouped.entry.get()).collect()),
        Column::Int(rows.iter().map(|(_, grouped)| grouped.seq).collect()),
    ]
}

pub(super) async fn insert(conn: &mut Conn, made: &[GroupedOf<'_>]) -> DbResult<()> {
    if made.is_empty() {
        return Ok(());
    }
    let [users, entries, seqs] = columns(made);
    let notifications = Column::Int(made.iter().map(|((_, id), _)| id.get()).collect());
    let actors = Column::Int(made.iter().map(|(_, grouped)| grouped.actor).collect());
    conn.later(&INSERT, &[users, entries, seqs, notifications, actors]).await
}

pub(super) async fn delete(conn: &mut Conn, dropped: &[GroupedOf<'_>]) -> DbResult<()> {
    if dropped.is_empty() { Ok(()) } else { conn.later(&DELETE, &columns(dropped)).await }
}
