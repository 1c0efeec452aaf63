//! What a recount compares of notifications: how many of each type a user has not read, and the
//! number of the last one that the user got, against the rows of the receivers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Difference, What};
use crate::db::{Column, Conn, DbResult, Statement, Type};

/// The types of these users of which the number differs, also where it is missing.
static COUNT_TYPES: Statement = Statement::new(
    "select user_id, type, stored, counted
    from (
        select t.user_id, t.type, t.unread as stored, (
            select count(*)
            from notification_receivers n
            where n.user_id = t.user_id and n.type = t.type and n.read_at = 0 and n.gone = 0
        ) as counted
        from {rows} r
        join notification_types t on t.user_id = r.user_id
        union all
        select n.user_id, n.type, 0, count(*)
        from {rows} r
        join notification_receivers n on n.user_id = r.user_id and n.read_at = 0 and n.gone = 0
        where not exists (select 1 from notification_types t where t.user_id = n.user_id and t.type = n.type)
        group by n.user_id, n.type
    ) numbers
    where stored <> counted
    order by user_id, type",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// The last number of these users, where it is below that of the last row. It may be above: old
/// notifications go, where a setting says so.
static COUNT_SEQS: Statement = Statement::new(
    "select user_id, stored, counted
    from (
        select r.user_id,
            coalesce(u.notification_seq, 0) as stored,
            coalesce((
                select n.seq
                from notification_receivers n
                where n.user_id = r.user_id
                order by n.seq desc
                limit 1
            ), 0) as counted
        from {rows} r
        left join users u on u.user_id = r.user_id
    ) numbers
    where stored < counted
    order by user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Polls show what is unread, so the revision is raised.
static ADD_TO_USERS: Statement = Statement::new(
    "insert into users (user_id, version, revision, notification_seq)
    select user_id, 1, 1, notification_seq
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set
        version = users.version + 1,
        revision = users.revision + 1,
        notification_seq = users.notification_seq + excluded.notification_seq",
    &[("user_id", Type::Int), ("notification_seq", Type::Int)],
);

static ADD_TO_TYPES: Statement = Statement::new(
    "insert into notification_types (user_id, type, unread)
    select user_id, type, unread
    from {rows} r
    where true
    order by user_id, type
    on conflict (user_id, type) do update set unread = notification_types.unread + excluded.unread",
    &[("user_id", Type::Int), ("type", Type::Text), ("unread", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 4] {
    [&COUNT_TYPES, &COUNT_SEQS, &ADD_TO_USERS, &ADD_TO_TYPES]
}

/// Compares the numbers of these users.
pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let columns = [Column::Int(users.to_vec())];
    let types: Vec<(i64, String, i64, i64)> = conn.fetch(&COUNT_TYPES, &columns).await?;
    let seqs: Vec<(i64, i64, i64)> = conn.fetch(&COUNT_SEQS, &columns).await?;
    let of_type = |(user, kind, stored, counted): (i64, String, i64, i64)| {
        let name = Some(Arc::from(kind));
        Difference { name, ..Difference::new(user, What::NotificationUnread, stored, counted) }
    };
    let seq = |(user, stored, counted)| Difference::new(user, What::NotificationSeq, stored, counted);
    Ok(types.into_iter().map(of_type).chain(seqs.into_iter().map(seq)).collect())
}

/// Adds what is missing to those numbers that are of this file, inside a transaction: first to the
/// users' own rows, whose locks guard the others.
pub(super) async fn repair_numbers(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let mut users: BTreeMap<i64, i64> = BTreeMap::new();
    let mut types: BTreeMap<(i64, Arc<str>), i64> = BTreeMap::new();
    for difference in found {
        match (difference.what, &difference.name) {
            (What::NotificationSeq, _) => *users.entry(difference.user).or_default() += difference.missing(),
            (What::NotificationUnread, Some(name)) => {
                users.entry(difference.user).or_default();
                *types.entry((difference.user, Arc::clone(name))).or_default() += difference.missing();
            }
            _ => {}
        }
    }
    if users.is_empty() {
        return Ok(());
    }
    conn.run(&ADD_TO_USERS, &[Column::Int(users.keys().copied().collect()), Column::Int(users.values().copied().collect())]).await?;
    if types.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::Int(types.keys().map(|(user, _)| *user).collect()),
        Column::Text(types.keys().map(|(_, kind)| (**kind).to_owned()).collect()),
        Column::Int(types.values().copied().collect()),
    ];
    conn.run(&ADD_TO_TYPES, &columns).await.map(|_| ())
}
