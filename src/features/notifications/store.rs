//! The statements by which a batch reads and writes `notification_receivers` (`rows.rs`). Those of
//! `grouped_notifications` are in `grouped_store.rs`, those of `notifications` in `sent_store.rs`,
//! and those of `notification_types` in `type_store.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Unread;
use super::entry::{Entry, EntryKey};
use crate::base::clock::UnixMs;
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

macro_rules! entry_rows {
    ($from:literal) => {
        concat!(
            "select n.user_id, n.notification_id, n.seq, n.type, n.group_key, n.notifications, n.created_at, n.updated_at, n.read_at, n.gone
    ",
            $from
        )
    };
}
pub(super) use entry_rows;

static LOAD_ENTRIES: Statement = Statement::new(
    entry_rows!(
        "from {rows} r
    join notification_receivers n on n.notification_id = r.notification_id and n.user_id = r.user_id"
    ),
    &[("notification_id", Type::Int), ("user_id", Type::Int)],
)
.by("user_id");

static LOAD_UNREAD: Statement = Statement::one(
    entry_rows!(
        "from notification_receivers n
    where n.user_id = $1 and n.read_at = 0 and n.gone = 0 and n.seq <= $2
    order by n.seq
    limit $3"
    ),
    &[("user_id", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int)],
);

static LOAD_UNREAD_OF_TYPE: Statement = Statement::one(
    entry_rows!(
        "from notification_receivers n
    where n.user_id = $1 and n.read_at = 0 and n.gone = 0 and n.seq <= $2 and n.type = $4
    order by n.seq
    limit $3"
    ),
    &[("user_id", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int), ("type", Type::Text)],
);

/// Nothing of a seq that the user has seen already, as the mark stays where it is. Nothing of one at which the
/// list ends either: all that is unread is up to there. Of the others a row without a type, and one for each type
/// of which something becomes seen.
static LOAD_NEWLY_SEEN: Statement = Statement::new(
    "select r.user_id, r.seq, '', 0
    from {rows} r
    join users u on u.user_id = r.user_id and u.notification_seen < r.seq and u.notification_seq > r.seq
    union all
    select r.user_id, r.seq, n.type, count(*)
    from {rows} r
    join users u on u.user_id = r.user_id and u.notification_seen < r.seq and u.notification_seq > r.seq
    join notification_receivers n
        on n.user_id = r.user_id and n.seq > u.notification_seen and n.seq <= r.seq and n.read_at = 0 and n.gone = 0
    group by r.user_id, r.seq, n.type",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

static INSERT_ENTRIES: Statement = Statement::insert(
    "notification_receivers",
    &[
        ("user_id", Type::Int),
        ("notification_id", Type::Int),
        ("seq", Type::Int),
        ("type", Type::Text),
        ("group_key", Type::Text),
        ("notifications", Type::Int),
        ("created_at", Type::Int),
        ("updated_at", Type::Int),
        ("read_at", Type::Int),
        ("gone", Type::Int),
    ],
);

static UPDATE_ENTRIES: Statement = Statement::new(
    "update notification_receivers
    set seq = r.seq, notifications = r.notifications, updated_at = r.updated_at, read_at = r.read_at, gone = r.gone
    from {rows} r
    where notification_receivers.user_id = r.user_id and notification_receivers.notification_id = r.notification_id",
    &[
        ("user_id", Type::Int),
        ("notification_id", Type::Int),
        ("seq", Type::Int),
        ("notifications", Type::Int),
        ("updated_at", Type::Int),
        ("read_at", Type::Int),
        ("gone", Type::Int),
    ],
)
.by("user_id");

static DELETE_ENTRIES: Statement = Statement::new(
    "delete from notification_receivers
    where (user_id, notification_id) in (select user_id, notification_id from {rows} r)",
    &[("user_id", Type::Int), ("notification_id", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 7] {
    [&LOAD_ENTRIES, &LOAD_UNREAD, &LOAD_UNREAD_OF_TYPE, &LOAD_NEWLY_SEEN, &INSERT_ENTRIES, &UPDATE_ENTRIES, &DELETE_ENTRIES]
}

/// A row of `notification_receivers`.
pub(super) type EntryRow = (i64, i64, i64, String, String, i64, i64, i64, i64, i64);

pub(super) fn entry_of_row(row: EntryRow) -> Option<(EntryKey, Entry)> {
    let (user, id, seq, kind, group_key, notifications, created_at, updated_at, read_at, gone) = row;
    let [created_at, updated_at, read_at] = [created_at, updated_at, read_at].map(UnixMs);
    let key = (UserId::try_from(user).ok()?, NotificationId::try_from(id).ok()?);
    let (kind, group_key) = (kind.into(), group_key.into());
    Some((key, Entry { seq, kind, group_key, notifications, created_at, updated_at, read_at, gone: gone == 1 }))
}

pub(super) async fn load_entries(pipeline: &Pipeline, entries: &BTreeSet<(NotificationId, UserId)>) -> DbResult<Vec<EntryRow>> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Column::Int(entries.iter().map(|(id, _)| id.get()).collect());
    pipeline.fetch(&LOAD_ENTRIES, [ids, Column::Int(entries.iter().map(|(_, user)| user.get()).collect())]).await
}

pub(super) async fn load_unread(pipeline: &Pipeline, unread: &Unread) -> DbResult<Vec<EntryRow>> {
    let mut columns: Vec<_> = [unread.user.get(), unread.up_to, unread.rows].map(|value| Column::Int(vec![value])).into();
    let Some(kind) = &unread.kind else { return pipeline.fetch(&LOAD_UNREAD, columns).await };
    columns.push(Column::Text(vec![kind.to_string()]));
    pipeline.fetch(&LOAD_UNREAD_OF_TYPE, columns).await
}

/// Of each user and seq above the mark and below the end of the list: a type, and how many of its unread entries become
/// seen.
pub(super) async fn load_newly_seen(pipeline: &Pipeline, seen: &BTreeSet<(UserId, i64)>) -> DbResult<Vec<(i64, i64, String, i64)>> {
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let users = Column::Int(seen.iter().map(|(user, _)| user.get()).collect());
    pipeline.fetch(&LOAD_NEWLY_SEEN, [users, Column::Int(seen.iter().map(|(_, seq)| *seq).collect())]).await
}

/// An entry with its key.
type EntryOf<'a> = (&'a EntryKey, &'a Entry);

fn keys<'a>(keys: impl Iterator<Item = &'a EntryKey> + Clone) -> [Column; 2] {
    [Column::Int(keys.clone().map(|(user, _)| user.get()).collect()), Column::Int(keys.map(|(_, id)| id.get()).collect())]
}

fn numbers(rows: &[EntryOf<'_>], value: fn(&Entry) -> i64) -> Column {
    Column::Int(rows.iter().map(|(_, entry)| value(entry)).collect())
}

pub(super) async fn insert_entries(conn: &mut Conn, made: &[EntryOf<'_>]) -> DbResult<()> {
    if made.is_empty() {
        return Ok(());
    }
    let text = |value: fn(&Entry) -> &Arc<str>| Column::Text(made.iter().map(|(_, entry)| (**value(entry)).to_owned()).collect());
    let [users, ids] = keys(made.iter().map(|(key, _)| *key));
    let columns = [
        users,
        ids,
        numbers(made, |entry| entry.seq),
        text(|entry| &entry.kind),
        text(|entry| &entry.group_key),
        numbers(made, |entry| entry.notifications),
        numbers(made, |entry| entry.created_at.0),
        numbers(made, |entry| entry.updated_at.0),
        numbers(made, |entry| entry.read_at.0),
        numbers(made, |entry| i64::from(entry.gone)),
    ];
    conn.later(&INSERT_ENTRIES, &columns).await
}

pub(super) async fn update_entries(conn: &mut Conn, changed: &[EntryOf<'_>]) -> DbResult<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let [users, ids] = keys(changed.iter().map(|(key, _)| *key));
    let columns = [
        users,
        ids,
        numbers(changed, |entry| entry.seq),
        numbers(changed, |entry| entry.notifications),
        numbers(changed, |entry| entry.updated_at.0),
        numbers(changed, |entry| entry.read_at.0),
        numbers(changed, |entry| i64::from(entry.gone)),
    ];
    conn.later(&UPDATE_ENTRIES, &columns).await
}

pub(super) async fn delete_entries(conn: &mut Conn, dropped: &[&EntryKey]) -> DbResult<()> {
    if dropped.is_empty() { Ok(()) } else { conn.later(&DELETE_ENTRIES, &keys(dropped.iter().copied())).await }
}
