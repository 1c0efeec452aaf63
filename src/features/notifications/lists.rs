//! What is read of notifications outside of batches: one notification, to whom it was sent, and
//! users' lists.

use crate::base::clock::UnixMs;
use crate::base::ids::{Name, NotificationId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};

use super::distributed;
use super::{Listed, Notification, Status};

/// Who has read it is counted from the rows, which are the truth.
static READ_NOTIFICATION: Statement = Statement::one(
    "select n.type, n.content, n.created_at, n.recipients, n.withdrawn,
        (select count(*) from notification_receivers r where r.notification_id = n.notification_id and r.read_at > 0)
    from notifications n
    where n.notification_id = $1",
    &[("notification_id", Type::Int)],
)
.distributed(distributed::READ_NOTIFICATION);

static RECIPIENTS: Statement = Statement::one(
    "select r.user_id
    from notification_receivers r
    where r.notification_id = $1
    order by r.user_id",
    &[("notification_id", Type::Int)],
);

const PAGE: &[(&str, Type)] = &[("user_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int), ("type", Type::Text)];

/// All, or with $5 = 1 those that were read.
static LIST: Statement = Statement::one(
    "select r.notification_id, r.seq, r.type, n.content, n.created_at, r.read_at
    from notification_receivers r
    join notifications n on n.notification_id = r.notification_id
    where r.user_id = $1 and r.seq < $2 and r.gone = 0 and r.read_at >= $5 and ($4 = '' or r.type = $4)
    order by r.seq desc
    limit $3",
    &[("user_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int), ("type", Type::Text), ("read_from", Type::Int)],
)
.distributed(distributed::LIST);

static LIST_UNREAD: Statement = Statement::one(
    "select r.notification_id, r.seq, r.type, n.content, n.created_at, r.read_at
    from notification_receivers r
    join notifications n on n.notification_id = r.notification_id
    where r.user_id = $1 and r.seq < $2 and r.gone = 0 and r.read_at = 0
    order by r.seq desc
    limit $3",
    &[("user_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int)],
)
.distributed(distributed::LIST_UNREAD);

static LIST_UNREAD_OF_TYPE: Statement = Statement::one(
    "select r.notification_id, r.seq, r.type, n.content, n.created_at, r.read_at
    from notification_receivers r
    join notifications n on n.notification_id = r.notification_id
    where r.user_id = $1 and r.seq < $2 and r.gone = 0 and r.read_at = 0 and r.type = $4
    order by r.seq desc
    limit $3",
    PAGE,
)
.distributed(distributed::LIST_UNREAD_OF_TYPE);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 5] {
    [&READ_NOTIFICATION, &RECIPIENTS, &LIST, &LIST_UNREAD, &LIST_UNREAD_OF_TYPE]
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

/// To whom a notification was sent, in the order of their ids. That never changes.
pub async fn recipients(db: &Db, id: NotificationId) -> DbResult<Vec<UserId>> {
    let rows: Vec<(i64,)> = db.fetch(&RECIPIENTS, &[Column::Int(vec![id.get()])]).await?;
    Ok(rows.into_iter().filter_map(|(user,)| UserId::try_from(user).ok()).collect())
}

/// Up to `limit` entries of a user's list before this seq, newest first.
pub async fn page(db: &Db, user: UserId, status: Status, kind: Option<&Name>, before: i64, limit: i64) -> DbResult<Vec<Listed>> {
    let mut columns: Vec<_> = [user.get(), before, limit].map(|value| Column::Int(vec![value])).into();
    let text = || Column::Text(vec![kind.map_or(String::new(), Name::to_string)]);
    let statement = match (status, kind) {
        (Status::Unread, None) => &LIST_UNREAD,
        (Status::Unread, Some(_)) => {
            columns.push(text());
            &LIST_UNREAD_OF_TYPE
        }
        (Status::All | Status::Read, _) => {
            columns.extend([text(), Column::Int(vec![i64::from(status == Status::Read)])]);
            &LIST
        }
    };
    let rows: Vec<(i64, i64, String, String, i64, i64)> = db.fetch(statement, &columns).await?;
    let listed = |(id, seq, kind, stored, created_at, read_at): (i64, i64, String, String, i64, i64)| {
        let notification = Notification { kind: kind.parse().ok()?, stored, created_at: UnixMs(created_at), recipients: 0 };
        Some(Listed { id: NotificationId::try_from(id).ok()?, seq, notification, read_at: UnixMs(read_at) })
    };
    Ok(rows.into_iter().filter_map(listed).collect())
}
