//! What a recount compares of notifications: how many entries of each type a user has not read, how
//! many of these the user has seen, and the seq of the last one, against the entries; and how many
//! notifications an unread entry holds, against those.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Difference, What};
use crate::db::{Column, Conn, DbResult, Statement, Type};

/// The types of these users of which a number differs, also where it is missing.
static COUNT_TYPES: Statement = Statement::new(
    "select user_id, type, stored, counted, seen, seen_counted
    from (
        select t.user_id, t.type, t.unread as stored, (
            select count(*)
            from notification_receivers n
            where n.user_id = t.user_id and n.type = t.type and n.read_at = 0 and n.gone = 0
        ) as counted, t.seen, (
            select count(*)
            from notification_receivers n
            join users u on u.user_id = n.user_id and u.notification_seen >= n.seq
            where n.user_id = t.user_id and n.type = t.type and n.read_at = 0 and n.gone = 0
        ) as seen_counted
        from {rows} r
        join notification_types t on t.user_id = r.user_id
        union all
        select n.user_id, n.type, 0, count(*), 0, sum(case when n.seq <= coalesce(u.notification_seen, 0) then 1 else 0 end)
        from {rows} r
        join notification_receivers n on n.user_id = r.user_id and n.read_at = 0 and n.gone = 0
        left join users u on u.user_id = n.user_id
        where not exists (select 1 from notification_types t where t.user_id = n.user_id and t.type = n.type)
        group by n.user_id, n.type
    ) numbers
    where stored <> counted or seen <> seen_counted
    order by user_id, type",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// The unread entries of these users that do not say how many notifications they hold.
static COUNT_GROUPED: Statement = Statement::new(
    "select user_id, notification_id, stored, counted
    from (
        select n.user_id, n.notification_id, n.notifications as stored, (
            select count(*)
            from grouped_notifications g
            where g.user_id = n.user_id and g.entry_id = n.notification_id
        ) as counted
        from {rows} r
        join notification_receivers n on n.user_id = r.user_id and n.read_at = 0 and n.gone = 0 and n.group_key <> ''
    ) numbers
    where stored <> counted
    order by user_id, notification_id",
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
    "insert into notification_types (user_id, type, unread, seen)
    select user_id, type, unread, seen
    from {rows} r
    where true
    order by user_id, type
    on conflict (user_id, type) do update set
        unread = notification_types.unread + excluded.unread,
        seen = notification_types.seen + excluded.seen",
    &[("user_id", Type::Int), ("type", Type::Text), ("unread", Type::Int), ("seen", Type::Int)],
);

static ADD_TO_ENTRIES: Statement = Statement::new(
    "update notification_receivers
    set notifications = notifications + r.added
    from {rows} r
    where notification_receivers.user_id = r.user_id and notification_receivers.notification_id = r.notification_id",
    &[("user_id", Type::Int), ("notification_id", Type::Int), ("added", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 6] {
    [&COUNT_TYPES, &COUNT_GROUPED, &COUNT_SEQS, &ADD_TO_USERS, &ADD_TO_TYPES, &ADD_TO_ENTRIES]
}

/// Compares the numbers of these users.
pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let columns = [Column::Int(users.to_vec())];
    let types: Vec<(i64, String, i64, i64, i64, i64)> = conn.fetch(&COUNT_TYPES, &columns).await?;
    let grouped: Vec<(i64, i64, i64, i64)> = conn.fetch(&COUNT_GROUPED, &columns).await?;
    let seqs: Vec<(i64, i64, i64)> = conn.fetch(&COUNT_SEQS, &columns).await?;
    let of_type = |(user, kind, stored, counted, seen, seen_counted): (i64, String, i64, i64, i64, i64)| {
        let name = Some(Arc::from(kind));
        let unread = Difference { name: name.clone(), ..Difference::new(user, What::NotificationUnread, stored, counted) };
        [unread, Difference { name, ..Difference::new(user, What::NotificationSeen, seen, seen_counted) }]
    };
    let of_entry =
        |(user, id, stored, counted)| Difference { other: Some(id), ..Difference::new(user, What::NotificationsGrouped, stored, counted) };
    let seq = |(user, stored, counted)| Difference::new(user, What::NotificationSeq, stored, counted);
    let found = types.into_iter().flat_map(of_type).filter(|found| found.missing() != 0);
    Ok(found.chain(grouped.into_iter().map(of_entry)).chain(seqs.into_iter().map(seq)).collect())
}

/// Adds what is missing to those numbers that are of this file, inside a transaction: first to the
/// users' own rows, whose locks guard the others.
pub(super) async fn repair_numbers(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let mut users: BTreeMap<i64, i64> = BTreeMap::new();
    let mut types: BTreeMap<(i64, Arc<str>), (i64, i64)> = BTreeMap::new();
    let mut entries: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for difference in found {
        let (user, by) = (difference.user, difference.missing());
        match (difference.what, &difference.name, difference.other) {
            (What::NotificationSeq, ..) => *users.entry(user).or_default() += by,
            (What::NotificationUnread, Some(name), _) => types.entry((user, Arc::clone(name))).or_default().0 += by,
            (What::NotificationSeen, Some(name), _) => types.entry((user, Arc::clone(name))).or_default().1 += by,
            (What::NotificationsGrouped, _, Some(id)) => *entries.entry((user, id)).or_default() += by,
            _ => {}
        }
    }
    for user in types.keys().map(|(user, _)| user).chain(entries.keys().map(|(user, _)| user)) {
        users.entry(*user).or_default();
    }
    if users.is_empty() {
        return Ok(());
    }
    let column = |values: Vec<i64>| Column::Int(values);
    conn.run(&ADD_TO_USERS, &[column(users.keys().copied().collect()), column(users.values().copied().collect())]).await?;
    if !types.is_empty() {
        let columns = [
            column(types.keys().map(|(user, _)| *user).collect()),
            Column::Text(types.keys().map(|(_, kind)| (**kind).to_owned()).collect()),
            column(types.values().map(|(unread, _)| *unread).collect()),
            column(types.values().map(|(_, seen)| *seen).collect()),
        ];
        conn.run(&ADD_TO_TYPES, &columns).await?;
    }
    if !entries.is_empty() {
        let columns = [
            column(entries.keys().map(|(user, _)| *user).collect()),
            column(entries.keys().map(|(_, id)| *id).collect()),
            column(entries.values().copied().collect()),
        ];
        conn.run(&ADD_TO_ENTRIES, &columns).await?;
    }
    Ok(())
}
