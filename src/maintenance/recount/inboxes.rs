//! What a recount compares of groups that deliver by writing: the rows in the inboxes of their
//! members, against the memberships and the messages.
//!
//! Each member of the moment in which such a message was sent has a row of it, and each inbox with
//! a row of a message that was recalled has a row that says so. Left out is what fan-out still has
//! to do, and what may have expired: rows of an inbox go from the oldest on, so nothing is missed
//! that was sent before the first row that is kept. Nothing is missed of a group that is deleted. A
//! row that is missing is appended. A row too many stays: numbers in an inbox have no gaps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::distributed;
use super::living::lock_living;
use super::store::PAGE;
use super::{Difference, What};
use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, DbResult, Statement, Type};

/// How many users are compared by one statement, which looks at all rows of their inboxes.
pub(super) const USERS_AT_ONCE: usize = 50;

/// How far the clocks of two nodes may be apart, so that the age of a message and that of a row can
/// be compared.
const CLOCKS_APART_MS: i64 = 60_000;

/// Rows that these users' inboxes should have and lack, after a place in this order. Nobody's
/// messages are missed where nothing has expired (the first row is kept, or there never was one).
static LOST: Statement = Statement::new(
    "select due.user_id, due.group_id, due.group_seq, due.recall
    from (
        select since.user_id, g.group_id, g.seq as group_seq, g.recalled as recall
        from (
            select r.user_id, coalesce(
                (
                    select case when i.seq = 1 then -1 else i.put_at + r.apart_ms end
                    from inbox i
                    where i.user_id = r.user_id
                    order by i.seq
                    limit 1
                ),
                case when coalesce((select u.inbox_seq from users u where u.user_id = r.user_id), 0) = 0 then -1 else 9223372036854775807 end
            ) as sent_at
            from {rows} r
        ) since
        join memberships m on m.user_id = since.user_id
        join chat_groups c on c.group_id = m.group_id and c.jobs > 0 and c.deleted_by = ''
        join group_messages g on g.group_id = m.group_id and g.seq > m.from_seq and (m.to_seq < 0 or g.seq <= m.to_seq)
        where g.written = 1 and g.recalled = 0 and g.sent_at > since.sent_at
        union all
        select i.user_id, i.group_id, i.group_seq, g.recalled
        from {rows} r
        join inbox i on i.user_id = r.user_id
        join chat_groups c on c.group_id = i.group_id and c.deleted_by = ''
        join group_messages g on g.group_id = i.group_id and g.seq = i.group_seq
        where i.group_id > 0 and i.recall = 0 and g.recalled = 1
    ) due
    where (due.user_id, due.group_id, due.group_seq, due.recall) > (
            select r.after_user, r.after_group, r.after_seq, r.after_recall from {rows} r limit 1
        )
        and not exists (select 1 from delivery_jobs t where t.group_id = due.group_id and t.seq = due.group_seq)
    except
    select i.user_id, i.group_id, i.group_seq, i.recall
    from {rows} r
    join inbox i on i.user_id = r.user_id
    where i.group_id > 0
    order by 1, 2, 3, 4
    limit 1000",
    &[
        ("user_id", Type::Int),
        ("apart_ms", Type::Int),
        ("after_user", Type::Int),
        ("after_group", Type::Int),
        ("after_seq", Type::Int),
        ("after_recall", Type::Int),
    ],
).distributed(distributed::LOST).by("user_id");

/// Appends rows; `place` counts those of one user from 1 on.
static APPEND: Statement = Statement::new(
    "insert into inbox (user_id, seq, sender_id, peer_id, peer_seq, group_id, group_seq, own, recall, client_id, content, put_at, sent_at)
    select r.user_id, u.inbox_seq + r.place, 0, 0, 0, g.group_id, g.seq, case when g.sender_id = r.user_id then 1 else 0 end, r.recall,
        '', '', r.at, 0
    from {rows} r
    join users u on u.user_id = r.user_id
    join group_messages g on g.group_id = r.group_id and g.seq = r.group_seq",
    &[
        ("user_id", Type::Int),
        ("place", Type::Int),
        ("group_id", Type::Int),
        ("group_seq", Type::Int),
        ("recall", Type::Int),
        ("at", Type::Int),
    ],
)
.distributed(distributed::APPEND);

static RAISE: Statement = Statement::new(
    "update users
    set inbox_seq = users.inbox_seq + r.by, version = users.version + 1, revision = users.revision + 1
    from {rows} r
    where users.user_id = r.user_id",
    &[("user_id", Type::Int), ("by", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 3] {
    [&LOST, &APPEND, &RAISE]
}

/// A row of an inbox: user, group, message, and whether it says that the message was recalled.
pub(super) type Row = (i64, i64, i64, i64);

/// Before every row.
pub(super) const FIRST: Row = (0, 0, 0, 0);

/// A page of what the inboxes of these users lack.
pub(super) async fn lost(conn: &mut Conn, users: &[i64], after: Row) -> DbResult<Vec<Row>> {
    let place = [CLOCKS_APART_MS, after.0, after.1, after.2, after.3].map(|value| vec![value; users.len()]);
    let columns: Vec<_> = std::iter::once(users.to_vec()).chain(place).map(Column::Int).collect();
    conn.fetch(&LOST, &columns).await
}

/// Whether there may be more rows than these.
pub(super) fn next_page(rows: &[Row]) -> Option<Row> {
    rows.last().copied().filter(|_| rows.len() == PAGE)
}

pub(super) fn difference(row: &Row) -> Difference {
    let (user, group, seq, recall) = *row;
    let what = if recall == 1 { What::InboxRecall } else { What::InboxMessage };
    Difference { other: Some(seq), name: Some(Arc::from(format!("{group} message"))), ..Difference::new(user, what, 0, 1) }
}

/// Locks the users, looks again, and appends what is still missing, inside a transaction.
pub(super) async fn repair(conn: &mut Conn, rows: &[Row], now: UnixMs) -> DbResult<()> {
    let users: BTreeSet<_> = rows.iter().map(|row| row.0).collect();
    let users = lock_living(conn, &users.into_iter().collect::<Vec<_>>()).await?;
    let (found, mut missing): (BTreeSet<Row>, BTreeSet<Row>) = (rows.iter().copied().collect(), BTreeSet::new());
    let mut after = Some(FIRST);
    while let Some(place) = after {
        let page = lost(conn, &users, place).await?;
        after = next_page(&page);
        missing.extend(page);
    }
    let mut places: BTreeMap<i64, i64> = BTreeMap::new();
    let rows: Vec<_> = missing.intersection(&found).collect();
    let counted = rows.iter().map(|row| {
        let place = places.entry(row.0).or_default();
        *place += 1;
        *place
    });
    let counted: Vec<i64> = counted.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&Row) -> i64| Column::Int(rows.iter().map(|row| value(row)).collect());
    let at = Column::Int(vec![now.0; rows.len()]);
    let columns = [column(|row| row.0), Column::Int(counted), column(|row| row.1), column(|row| row.2), column(|row| row.3), at];
    let appended = conn.run(&APPEND, &columns).await?;
    if appended != u64::try_from(rows.len()).unwrap_or(u64::MAX) {
        // A message went since it was looked for. The numbers after it would have a gap: all is looked for again.
        return Err(sqlx::Error::RowNotFound);
    }
    let by = [places.keys().copied().collect(), places.values().copied().collect()];
    conn.run(&RAISE, &by.map(Column::Int)).await.map(|_| ())
}
