//! The statements by which a batch reads and writes `notifications`, `notification_receivers` and
//! `notification_types` (`rows.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Notification, Receiver, Unread};
use crate::base::clock::UnixMs;
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

static LOAD_NOTIFICATIONS: Statement = Statement::new(
    "select n.notification_id, n.withdrawn
    from {rows} r
    join notifications n on n.notification_id = r.notification_id",
    &[("notification_id", Type::Int)],
)
.by("notification_id");

static INSERT_NOTIFICATIONS: Statement = Statement::insert(
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

static LOAD_RECEIVERS: Statement = Statement::new(
    "select n.user_id, n.seq, n.notification_id, n.type, n.read_at, n.gone
    from {rows} r
    join notification_receivers n on n.notification_id = r.notification_id and n.user_id = r.user_id",
    &[("notification_id", Type::Int), ("user_id", Type::Int)],
)
.by("user_id");

static LOAD_UNREAD: Statement = Statement::one(
    "select n.user_id, n.seq, n.notification_id, n.type, n.read_at, n.gone
    from notification_receivers n
    where n.user_id = $1 and n.read_at = 0 and n.gone = 0 and n.seq <= $2
    order by n.seq
    limit $3",
    &[("user_id", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int)],
);

static LOAD_UNREAD_OF_TYPE: Statement = Statement::one(
    "select n.user_id, n.seq, n.notification_id, n.type, n.read_at, n.gone
    from notification_receivers n
    where n.user_id = $1 and n.read_at = 0 and n.gone = 0 and n.seq <= $2 and n.type = $4
    order by n.seq
    limit $3",
    &[("user_id", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int), ("type", Type::Text)],
);

static INSERT_RECEIVERS: Statement = Statement::insert(
    "notification_receivers",
    &[
        ("user_id", Type::Int),
        ("seq", Type::Int),
        ("notification_id", Type::Int),
        ("type", Type::Text),
        ("read_at", Type::Int),
        ("gone", Type::Int),
    ],
);

static UPDATE_RECEIVERS: Statement = Statement::new(
    "update notification_receivers
    set read_at = r.read_at, gone = r.gone
    from {rows} r
    where notification_receivers.user_id = r.user_id and notification_receivers.seq = r.seq",
    &[("user_id", Type::Int), ("seq", Type::Int), ("read_at", Type::Int), ("gone", Type::Int)],
)
.by("user_id");

static DELETE_RECEIVERS: Statement = Statement::new(
    "delete from notification_receivers
    where (user_id, seq) in (select user_id, seq from {rows} r)",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

static DELETE_NOTIFICATIONS: Statement = Statement::new(
    "delete from notifications
    where notification_id in (select notification_id from {rows} r)",
    &[("notification_id", Type::Int)],
)
.by("notification_id");

/// With how many types the user has, where this one would be new.
static LOAD_TYPES: Statement = Statement::new(
    "select r.user_id, r.type, coalesce(t.unread, -1),
        case when t.user_id is null then (select count(*) from notification_types c where c.user_id = r.user_id) else 0 end
    from {rows} r
    left join notification_types t on t.user_id = r.user_id and t.type = r.type",
    &[("user_id", Type::Int), ("type", Type::Text)],
)
.by("user_id");

static LOAD_TYPES_OF_USERS: Statement = Statement::new(
    "select t.user_id, t.type, t.unread
    from {rows} r
    join notification_types t on t.user_id = r.user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

static SAVE_TYPES: Statement = Statement::new(
    "insert into notification_types (user_id, type, unread)
    select user_id, type, unread
    from {rows} r
    where true
    order by user_id, type
    on conflict (user_id, type) do update set unread = excluded.unread",
    &[("user_id", Type::Int), ("type", Type::Text), ("unread", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 13] {
    [
        &LOAD_NOTIFICATIONS,
        &INSERT_NOTIFICATIONS,
        &WITHDRAW,
        &LOAD_RECEIVERS,
        &LOAD_UNREAD,
        &LOAD_UNREAD_OF_TYPE,
        &INSERT_RECEIVERS,
        &UPDATE_RECEIVERS,
        &DELETE_RECEIVERS,
        &DELETE_NOTIFICATIONS,
        &LOAD_TYPES,
        &LOAD_TYPES_OF_USERS,
        &SAVE_TYPES,
    ]
}

/// The number of unread notifications of a type: whose, and which type.
pub(super) type TypeKey = (UserId, Arc<str>);

/// A row of `notification_receivers`.
pub(super) type ReceiverRow = (i64, i64, i64, String, i64, i64);

pub(super) fn receiver_of_row((user, seq, notification, kind, read_at, gone): ReceiverRow) -> Option<((UserId, i64), Receiver)> {
    let notification = NotificationId::try_from(notification).ok()?;
    Some(((UserId::try_from(user).ok()?, seq), Receiver { notification, kind: kind.into(), read_at: UnixMs(read_at), gone: gone == 1 }))
}

fn ids<T: Copy>(items: &[T], id: fn(T) -> i64) -> Column {
    Column::Int(items.iter().map(|item| id(*item)).collect())
}

pub(super) async fn load_notifications(pipeline: &Pipeline, notifications: &BTreeSet<NotificationId>) -> DbResult<Vec<(i64, i64)>> {
    if notifications.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_NOTIFICATIONS, [Column::Int(notifications.iter().map(|id| id.get()).collect())]).await
}

pub(super) async fn load_receivers(pipeline: &Pipeline, receivers: &BTreeSet<(NotificationId, UserId)>) -> DbResult<Vec<ReceiverRow>> {
    if receivers.is_empty() {
        return Ok(Vec::new());
    }
    let notifications = Column::Int(receivers.iter().map(|(notification, _)| notification.get()).collect());
    pipeline.fetch(&LOAD_RECEIVERS, [notifications, Column::Int(receivers.iter().map(|(_, user)| user.get()).collect())]).await
}

pub(super) async fn load_unread(pipeline: &Pipeline, unread: &Unread) -> DbResult<Vec<ReceiverRow>> {
    let mut columns: Vec<_> = [unread.user.get(), unread.up_to, unread.rows].map(|value| Column::Int(vec![value])).into();
    let Some(kind) = &unread.kind else { return pipeline.fetch(&LOAD_UNREAD, columns).await };
    columns.push(Column::Text(vec![kind.to_string()]));
    pipeline.fetch(&LOAD_UNREAD_OF_TYPE, columns).await
}

pub(super) async fn load_types_of(pipeline: &Pipeline, users: &BTreeSet<UserId>) -> DbResult<Vec<(i64, String, i64)>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_TYPES_OF_USERS, [Column::Int(users.iter().map(|user| user.get()).collect())]).await
}

/// What a user has of a notification, with its key.
type ReceiverOf<'a> = (&'a (UserId, i64), &'a Receiver);

fn receiver_columns(rows: &[ReceiverOf<'_>]) -> [Column; 4] {
    [
        Column::Int(rows.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(rows.iter().map(|((_, seq), _)| *seq).collect()),
        Column::Int(rows.iter().map(|(_, receiver)| receiver.read_at.0).collect()),
        Column::Int(rows.iter().map(|(_, receiver)| i64::from(receiver.gone)).collect()),
    ]
}

/// The number of each of these types, and where it would be new -1 and how many types the user has.
pub(super) async fn load_types(pipeline: &Pipeline, types: &BTreeSet<TypeKey>) -> DbResult<Vec<(i64, String, i64, i64)>> {
    if types.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        Column::Int(types.iter().map(|(user, _)| user.get()).collect()),
        Column::Text(types.iter().map(|(_, kind)| (**kind).to_owned()).collect()),
    ];
    pipeline.fetch(&LOAD_TYPES, columns).await
}

pub(super) async fn insert_notifications(conn: &mut Conn, new: &[(NotificationId, &Arc<Notification>)]) -> DbResult<()> {
    let columns = [
        Column::Int(new.iter().map(|(id, _)| id.get()).collect()),
        Column::Text(new.iter().map(|(_, notification)| notification.kind.to_string()).collect()),
        Column::Text(new.iter().map(|(_, notification)| notification.stored.clone()).collect()),
        Column::Int(new.iter().map(|(_, notification)| notification.created_at.0).collect()),
        Column::Int(new.iter().map(|(_, notification)| notification.recipients).collect()),
        Column::Int(vec![0; new.len()]),
    ];
    conn.insert(&INSERT_NOTIFICATIONS, &columns).await
}

pub(super) async fn withdraw(conn: &mut Conn, notifications: &[NotificationId]) -> DbResult<()> {
    conn.later(&WITHDRAW, &[ids(notifications, NotificationId::get)]).await
}

pub(super) async fn delete_notifications(conn: &mut Conn, notifications: &[NotificationId]) -> DbResult<()> {
    conn.later(&DELETE_NOTIFICATIONS, &[ids(notifications, NotificationId::get)]).await
}

pub(super) async fn insert_receivers(conn: &mut Conn, made: &[ReceiverOf<'_>]) -> DbResult<()> {
    let [users, seqs, read, gone] = receiver_columns(made);
    let notifications = Column::Int(made.iter().map(|(_, receiver)| receiver.notification.get()).collect());
    let kinds = Column::Text(made.iter().map(|(_, receiver)| (*receiver.kind).to_owned()).collect());
    conn.insert(&INSERT_RECEIVERS, &[users, seqs, notifications, kinds, read, gone]).await
}

pub(super) async fn update_receivers(conn: &mut Conn, changed: &[ReceiverOf<'_>]) -> DbResult<()> {
    conn.later(&UPDATE_RECEIVERS, &receiver_columns(changed)).await
}

pub(super) async fn delete_receivers(conn: &mut Conn, keys: &[&(UserId, i64)]) -> DbResult<()> {
    let [users, seqs] = [|(user, _): &(UserId, i64)| user.get(), |(_, seq): &(UserId, i64)| *seq];
    let columns = [users, seqs].map(|value| Column::Int(keys.iter().map(|key| value(key)).collect()));
    conn.later(&DELETE_RECEIVERS, &columns).await
}

pub(super) async fn save_types(conn: &mut Conn, types: &[(&TypeKey, i64)]) -> DbResult<()> {
    let columns = [
        Column::Int(types.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Text(types.iter().map(|((_, kind), _)| (**kind).to_owned()).collect()),
        Column::Int(types.iter().map(|(_, unread)| *unread).collect()),
    ];
    conn.later(&SAVE_TYPES, &columns).await
}
