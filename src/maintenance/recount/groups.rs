//! What a recount compares of groups: how many a user is in, and, for each group, how many members
//! there are and how many ordinals were given, against the memberships; and the id of the last change
//! of a message, against the changes that are kept. It may be higher than those.

use std::collections::BTreeMap;

use super::distributed;
use super::doubt::{doubted, retain_lasting};
use super::{Difference, What};
use crate::base::ids::GroupId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::heads;
use crate::engine::marks::StreamKey;

/// How many groups each of these users is in, where that differs from what is stored.
static COUNT: Statement = Statement::new(
    "select user_id, stored, counted
    from (
        select r.user_id,
            coalesce(u.chat_groups, 0) as stored,
            (select count(*) from memberships m where m.user_id = r.user_id and m.to_seq < 0) as counted
        from {rows} r
        left join users u on u.user_id = r.user_id
    ) numbers
    where stored <> counted
    order by user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

static ADD_TO_USERS: Statement = Statement::new(
    "insert into users (user_id, version, revision, chat_groups)
    select user_id, 1, 0, chat_groups
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set version = users.version + 1, chat_groups = users.chat_groups + excluded.chat_groups",
    &[("user_id", Type::Int), ("chat_groups", Type::Int)],
);

static NEXT_GROUPS: Statement = Statement::one(
    "select g.group_id
    from chat_groups g
    where g.group_id > $1
    order by g.group_id
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int)],
);

/// These groups, where a number differs. One statement, and so of one moment. Of one that is deleted, the
/// rows go one after the other.
static COUNT_GROUPS: Statement = Statement::new(
    "select group_id, members, members_counted, ordinals, ordinals_counted, changes, changes_counted
    from (
        select g.group_id, g.members, g.ordinals, g.changes,
            (select count(*) from memberships m where m.group_id = g.group_id and m.to_seq < 0) as members_counted,
            coalesce((select max(m.ordinal) from memberships m where m.group_id = g.group_id), 0) as ordinals_counted,
            coalesce((select max(c.id) from group_changes c where c.group_id = g.group_id), 0) as changes_counted
        from {rows} r
        join chat_groups g on g.group_id = r.group_id and g.deleted_by = ''
    ) numbers
    where members <> members_counted or ordinals <> ordinals_counted or changes < changes_counted
    order by group_id",
    &[("group_id", Type::Int)],
)
.distributed(distributed::COUNT_GROUPS)
.by("group_id");

static ADD_TO_GROUPS: Statement = Statement::new(
    "update chat_groups
    set members = chat_groups.members + r.members, ordinals = chat_groups.ordinals + r.ordinals,
        changes = chat_groups.changes + r.changes
    from {rows} r
    where chat_groups.group_id = r.group_id",
    &[("group_id", Type::Int), ("members", Type::Int), ("ordinals", Type::Int), ("changes", Type::Int)],
)
.by("group_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 5] {
    [&COUNT, &ADD_TO_USERS, &NEXT_GROUPS, &COUNT_GROUPS, &ADD_TO_GROUPS]
}

/// How many groups each of these users is in, where that differs.
pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let rows: Vec<(i64, i64, i64)> = conn.fetch(&COUNT, &[Column::Int(users.to_vec())]).await?;
    let difference = |(user, stored, counted): (i64, i64, i64)| Difference::new(user, What::Groups, stored, counted);
    Ok(rows.into_iter().map(difference).collect())
}

/// Adds what is missing to those numbers that are of this file, inside a transaction.
pub(super) async fn repair_numbers(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let found: Vec<_> = found.iter().filter(|found| found.what == What::Groups).collect();
    if found.is_empty() {
        return Ok(());
    }
    let users = found.iter().map(|found| found.user).collect();
    let by = found.iter().map(|found| found.missing()).collect();
    conn.run(&ADD_TO_USERS, &[Column::Int(users), Column::Int(by)]).await.map(|_| ())
}

/// The next groups after an id.
pub(super) async fn next_groups(conn: &mut Conn, after: i64, max_rows: i64) -> DbResult<Vec<i64>> {
    let rows: Vec<(i64,)> = conn.fetch(&NEXT_GROUPS, &[after, max_rows].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().map(|(group,)| group).collect())
}

/// Compares these groups. In a difference the group stands instead of the user.
pub(super) async fn count_groups(conn: &mut Conn, groups: &[i64]) -> DbResult<Vec<Difference>> {
    let rows: Vec<(i64, i64, i64, i64, i64, i64, i64)> = conn.fetch(&COUNT_GROUPS, &[Column::Int(groups.to_vec())]).await?;
    let differences = |(group, members, members_counted, ordinals, ordinals_counted, changes, changes_counted)| {
        let difference = |what, stored, counted| Difference::new(group, what, stored, counted);
        [
            difference(What::GroupMembers, members, members_counted),
            difference(What::GroupOrdinals, ordinals, ordinals_counted),
            difference(What::GroupChanges, changes, changes.max(changes_counted)),
        ]
    };
    Ok(rows.into_iter().flat_map(differences).filter(|found| found.stored != found.counted).collect())
}

/// Compares these groups again, inside a transaction, under the locks of their heads, which guard
/// them, and adds what is missing.
pub(super) async fn repair_groups(conn: &mut Conn, groups: &[i64]) -> DbResult<Vec<Difference>> {
    let keys: Vec<_> = groups.iter().filter_map(|group| GroupId::try_from(*group).ok()).map(StreamKey::group).collect();
    let pipeline = Pipeline::default();
    pipeline.run(conn, heads::store::lock(&pipeline, &keys)).await?;
    let mut found = count_groups(conn, groups).await?;
    if let Some(owners) = doubted(conn, &found) {
        retain_lasting(&mut found, &count_groups(conn, &owners).await?);
    }
    let mut groups: BTreeMap<i64, [i64; 3]> = BTreeMap::new();
    for difference in &found {
        let [members, ordinals, changes] = groups.entry(difference.user).or_default();
        let number = match difference.what {
            What::GroupMembers => members,
            What::GroupOrdinals => ordinals,
            _ => changes,
        };
        *number += difference.missing();
    }
    if groups.is_empty() {
        return Ok(found);
    }
    let columns: [Vec<i64>; 4] = [
        groups.keys().copied().collect(),
        groups.values().map(|[members, ..]| *members).collect(),
        groups.values().map(|[_, ordinals, _]| *ordinals).collect(),
        groups.values().map(|[.., changes]| *changes).collect(),
    ];
    conn.run(&ADD_TO_GROUPS, &columns.map(Column::Int)).await?;
    Ok(found)
}
