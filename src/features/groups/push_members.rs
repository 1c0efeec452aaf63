//! The members of groups who have a push device, for jobs that tell of changes of their numbers.

use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};

/// The last ordinals that members of groups got that are delivered by reading; -1 for others: what those deliver by
/// writing raises their members' revisions.
static READ: Statement = Statement::new(
    "select r.group_id,
        coalesce((select case when g.delivery = 0 then g.ordinals else -1 end from chat_groups g where g.group_id = r.group_id), -1)
    from {rows} r",
    &[("group_id", Type::Int)],
)
.by("group_id");

static WITH_PUSH: Statement = Statement::new(
    "select distinct m.group_id
    from {rows} r
    join memberships m on m.group_id = r.group_id
    join push_users p on p.user_id = m.user_id
    where m.to_seq < 0",
    &[("group_id", Type::Int)],
);

/// Whom the group counts for in any sum: its level is not 'none' (1), or has ended. Members are
/// looked at in their order, also by SQLite, which heeds `cross join`.
static MEMBERS: Statement = Statement::one(
    "select m.ordinal, m.user_id
    from memberships m
    cross join push_users p
    where m.group_id = $1 and m.ordinal > $2 and m.ordinal <= $3 and m.to_seq < 0 and p.user_id = m.user_id
        and (m.level <> 1 or (m.level_until > 0 and m.level_until <= $4))
    order by m.group_id, m.ordinal
    limit $5",
    &[("group_id", Type::Int), ("ordinal", Type::Int), ("up_to", Type::Int), ("now", Type::Int), ("max_rows", Type::Int)],
);

/// The last ordinal that a member of the group got.
static ORDINALS: Statement = Statement::one("select g.ordinals from chat_groups g where g.group_id = $1", &[("group_id", Type::Int)]);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&READ, &WITH_PUSH, &MEMBERS, &ORDINALS]
}

/// How many ordinals one page looks through at most, so that a large group in which few have a push
/// device takes bounded steps.
const ORDINALS_AT_ONCE: i64 = 5000;

/// Among so many members of all groups together it is looked whether one has a push device. On SQLite nobody writes
/// meanwhile, and on Postgres it must not take too long for a statement.
pub const MAX_LOOKED_AT: i64 = 100_000;

/// Those of these groups whose messages count for members with a push device without a write to their rows. Large
/// groups are among them whether there are such members or not: their pages will find none. So are those beyond
/// what is `left` of [`MAX_LOOKED_AT`].
pub async fn with_push(conn: &mut Conn, groups: &[GroupId], left: &mut i64) -> DbResult<Vec<GroupId>> {
    let ids = Column::Int(groups.iter().map(|group| group.get()).collect());
    let mut read: Vec<(i64, i64)> = conn.fetch(&READ, &[ids]).await?;
    read.retain(|(_, ordinals)| *ordinals >= 0);
    read.sort_unstable_by_key(|(_, ordinals)| *ordinals);
    let (small, large) = read.split_at(small(&read, *left));
    *left -= small.iter().map(|(_, ordinals)| ordinals).sum::<i64>();
    let mut found: Vec<(i64,)> = Vec::new();
    if !small.is_empty() {
        found = conn.fetch(&WITH_PUSH, &[Column::Int(small.iter().map(|(group, _)| *group).collect())]).await?;
    }
    let all = found.into_iter().map(|(group,)| group).chain(large.iter().map(|(group, _)| *group));
    Ok(all.filter_map(|group| GroupId::try_from(group).ok()).collect())
}

/// How many of these groups, the smallest first, are small and have no more than so many members together.
fn small(groups: &[(i64, i64)], most: i64) -> usize {
    let mut looked_at = 0_i64;
    let within = groups.iter().take_while(|(_, ordinals)| {
        looked_at = looked_at.saturating_add(*ordinals);
        *ordinals <= ORDINALS_AT_ONCE && looked_at <= most
    });
    within.count()
}

/// The next members with a push device for whom a group counts, after an ordinal. With them, up to
/// which ordinal that is; None where there are no members beyond.
pub async fn page(db: &Db, group: GroupId, after: i64, now: UnixMs, max_rows: i64) -> DbResult<(Option<i64>, Vec<UserId>)> {
    let ints = |values: &[i64]| values.iter().map(|value| Column::Int(vec![*value])).collect::<Vec<_>>();
    let up_to = after.saturating_add(ORDINALS_AT_ONCE);
    let rows: Vec<(i64, i64)> = db.fetch(&MEMBERS, &ints(&[group.get(), after, up_to, now.0, max_rows])).await?;
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= max_rows;
    let up_to = rows.last().map(|(ordinal, _)| *ordinal).filter(|_| is_full).unwrap_or(up_to);
    let last: Vec<(i64,)> = db.fetch(&ORDINALS, &ints(&[group.get()])).await?;
    let next = last.first().filter(|(last,)| up_to < *last).map(|_| up_to);
    Ok((next, rows.into_iter().filter_map(|(_, user)| UserId::try_from(user).ok()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_looked_at_in_groups_that_have_few_together() {
        let small = |ordinals: &[i64]| small(&ordinals.iter().map(|ordinals| (1, *ordinals)).collect::<Vec<_>>(), 9000);
        assert_eq!([small(&[]), small(&[5, 4000, 4995]), small(&[5, 4000, 4996]), small(&[5000, 5001])], [0, 3, 2, 1]);
    }
}
