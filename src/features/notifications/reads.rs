//! What is read of one notification outside of batches, and of those to whom it was sent.

use super::Notification;
use super::distributed;
use crate::base::clock::UnixMs;
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};

/// Who has read it is counted from the rows, which are the truth: of entries of its own, and of
/// entries that hold it.
static READ_NOTIFICATION: Statement = Statement::one(
    "select n.type, n.content, n.created_at, n.recipients, n.withdrawn,
        (select count(*) from notification_receivers r where r.notification_id = n.notification_id and r.read_at > 0 and r.group_key = '') + (
            select count(*)
            from grouped_notifications g
            join notification_receivers r on r.notification_id = g.entry_id and r.user_id = g.user_id and r.read_at > 0
            where g.notification_id = n.notification_id
        )
    from notifications n
    where n.notification_id = $1",
    &[("notification_id", Type::Int)],
)
.distributed(distributed::READ_NOTIFICATION);

/// Of entries that it began, and of entries that hold it.
static RECIPIENTS: Statement = Statement::one(
    "select r.user_id
    from notification_receivers r
    where r.notification_id = $1
    union
    select g.user_id
    from grouped_notifications g
    where g.notification_id = $1
    order by user_id",
    &[("notification_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&READ_NOTIFICATION, &RECIPIENTS]
}

/// A notification as a service reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What was sent.
    pub notification: Notification,
    /// Whether it was withdrawn.
    pub withdrawn: bool,
    /// How many of the recipients have read it.
    pub read: i64,
}

/// Reads a notification; None where there is none.
pub async fn read(db: &Db, id: NotificationId) -> DbResult<Option<Read>> {
    let rows: Vec<(String, String, i64, i64, i64, i64)> = db.fetch(&READ_NOTIFICATION, &[Column::Int(vec![id.get()])]).await?;
    Ok(rows.into_iter().next().and_then(|(kind, stored, created_at, recipients, withdrawn, read)| {
        let notification = Notification { kind: kind.parse().ok()?, stored, created_at: UnixMs(created_at), recipients };
        Some(Read { notification, withdrawn: withdrawn == 1, read })
    }))
}

/// Whose lists a notification is in, or was, in the order of their ids. They never become more.
pub async fn recipients(db: &Db, id: NotificationId) -> DbResult<Vec<UserId>> {
    let rows: Vec<(i64,)> = db.fetch(&RECIPIENTS, &[Column::Int(vec![id.get()])]).await?;
    Ok(rows.into_iter().filter_map(|(user,)| UserId::try_from(user).ok()).collect())
}
