//! The statements by which a batch reads and writes `notifications` (`rows.rs`): what was sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Notification;
use super::entry::Held;
use crate::base::clock::UnixMs;
use crate::base::ids::NotificationId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

/// Locks the rows in the order of their ids, and returns what they hold once they are locked. Where
/// nobody has a row in a list, no lock of a user's keeps two changes apart.
static LOCK: Statement = Statement::each(
    "select n.notification_id, n.type, n.content, n.created_at, n.recipients, n.withdrawn
    from {rows} r
    join notifications n on n.notification_id = r.notification_id",
    "select n.notification_id, n.type, n.content, n.created_at, n.recipients, n.withdrawn
    from {rows} r
    join notifications n on n.notification_id = r.notification_id
    order by n.notification_id
    for update of n",
    &[("notification_id", Type::Int)],
)
.by("notification_id");

static INSERT: Statement = Statement::insert(
    "notifications",
    &[
        ("notification_id", Type::Int),
        ("type", Type::Text),
        ("content", Type::Content),
        ("created_at", Type::Int),
        ("recipients", Type::Int),
        ("withdrawn", Type::Int),
    ],
);

static WITHDRAW: Statement = Statement::new(
    "update notifications
    set withdrawn = 1
    where notification_id in (select notification_id from {rows} r)",
    &[("notification_id", Type::Int)],
)
.by("notification_id");

static EDIT: Statement = Statement::new(
    "update notifications
    set content = r.content
    from {rows} r
    where notifications.notification_id = r.notification_id",
    &[("notification_id", Type::Int), ("content", Type::Content)],
)
.by("notification_id");

static DELETE: Statement = Statement::new(
    "delete from notifications
    where notification_id in (select notification_id from {rows} r)",
    &[("notification_id", Type::Int)],
)
.by("notification_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 5] {
    [&LOCK, &INSERT, &WITHDRAW, &EDIT, &DELETE]
}

/// A row of `notifications`.
type NotificationRow = (i64, String, String, i64, i64, i64);

pub(super) fn held_of_row(row: NotificationRow) -> Option<(NotificationId, Option<Held>)> {
    let (id, kind, stored, created_at, recipients, withdrawn) = row;
    let notification = Notification { kind: kind.parse().ok()?, stored, created_at: UnixMs(created_at), recipients };
    Some((NotificationId::try_from(id).ok()?, Some(Held { withdrawn: withdrawn == 1, notification: Arc::new(notification) })))
}

fn ids<T: Copy>(items: &[T], id: fn(T) -> i64) -> Column {
    Column::Int(items.iter().map(|item| id(*item)).collect())
}

pub(super) async fn lock(pipeline: &Pipeline, these: &BTreeSet<NotificationId>) -> DbResult<Vec<NotificationRow>> {
    if these.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOCK, [Column::Int(these.iter().map(|id| id.get()).collect())]).await
}

pub(super) async fn insert(conn: &mut Conn, new: &[(NotificationId, &Held)]) -> DbResult<()> {
    if new.is_empty() {
        return Ok(());
    }
    let numbers = |value: fn(&Held) -> i64| Column::Int(new.iter().map(|(_, held)| value(held)).collect());
    let columns = [
        Column::Int(new.iter().map(|(id, _)| id.get()).collect()),
        Column::Text(new.iter().map(|(_, held)| held.notification.kind.to_string()).collect()),
        Column::Text(new.iter().map(|(_, held)| held.notification.stored.clone()).collect()),
        numbers(|held| held.notification.created_at.0),
        numbers(|held| held.notification.recipients),
        numbers(|held| i64::from(held.withdrawn)),
    ];
    conn.later(&INSERT, &columns).await
}

pub(super) async fn withdraw(conn: &mut Conn, these: &[NotificationId]) -> DbResult<()> {
    if these.is_empty() { Ok(()) } else { conn.later(&WITHDRAW, &[ids(these, NotificationId::get)]).await }
}

pub(super) async fn edit(conn: &mut Conn, edited: &[(NotificationId, &Notification)]) -> DbResult<()> {
    if edited.is_empty() {
        return Ok(());
    }
    let stored = Column::Text(edited.iter().map(|(_, notification)| notification.stored.clone()).collect());
    conn.later(&EDIT, &[Column::Int(edited.iter().map(|(id, _)| id.get()).collect()), stored]).await
}

pub(super) async fn delete(conn: &mut Conn, these: &[NotificationId]) -> DbResult<()> {
    if these.is_empty() { Ok(()) } else { conn.later(&DELETE, &[ids(these, NotificationId::get)]).await }
}
