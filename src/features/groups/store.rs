//! The statements by which a batch reads and writes the rows of groups (`rows.rs`).

use std::collections::BTreeSet;

use futures_util::future::try_join;

use super::{Delivery, Group, Membership, Reading};
use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::marks::{Hidden, Intervals};
use crate::features::level::LevelUntil;
use crate::features::operations::OperationId;

static LOAD_GROUPS: Statement = Statement::new(
    "select g.group_id, g.delivery, g.receipts, g.members, g.ordinals, g.jobs, g.created_at, g.changes, g.deleted_by
    from {rows} r
    join chat_groups g on g.group_id = r.group_id",
    &[("group_id", Type::Int)],
)
.by("group_id");

static SAVE_GROUPS: Statement = Statement::new(
    "insert into chat_groups (group_id, delivery, receipts, members, ordinals, jobs, created_at, changes, deleted_by)
    select group_id, delivery, receipts, members, ordinals, jobs, created_at, changes, deleted_by
    from {rows} r
    where true
    on conflict (group_id) do update set
        delivery = excluded.delivery,
        receipts = excluded.receipts,
        members = excluded.members,
        ordinals = excluded.ordinals,
        jobs = excluded.jobs,
        changes = excluded.changes,
        deleted_by = excluded.deleted_by",
    &[
        ("group_id", Type::Int),
        ("delivery", Type::Int),
        ("receipts", Type::Int),
        ("members", Type::Int),
        ("ordinals", Type::Int),
        ("jobs", Type::Int),
        ("created_at", Type::Int),
        ("changes", Type::Int),
        ("deleted_by", Type::Text),
    ],
);

/// The latest membership of each.
static LOAD_MEMBERS: Statement = Statement::new(
    "select m.group_id, m.user_id, m.span, m.ordinal, m.from_seq, m.to_seq, m.read_seq, m.extra, m.level, m.level_until,
        m.unread_from, m.again, m.mentions, m.joined_at, m.at, m.hidden
    from {rows} r
    join memberships m on m.user_id = r.user_id and m.group_id = r.group_id and m.span = (
        select max(n.span)
        from memberships n
        where n.user_id = r.user_id and n.group_id = r.group_id
    )",
    &[("group_id", Type::Int), ("user_id", Type::Int)],
)
.by("user_id");

/// All memberships of each.
static LOAD_SPANS: Statement = Statement::new(
    "select m.group_id, m.user_id, m.span, m.ordinal, m.from_seq, m.to_seq, m.read_seq, m.extra, m.level, m.level_until,
        m.unread_from, m.again, m.mentions, m.joined_at, m.at, m.hidden
    from {rows} r
    join memberships m on m.user_id = r.user_id and m.group_id = r.group_id",
    &[("group_id", Type::Int), ("user_id", Type::Int)],
)
.by("user_id");

static DELETE_MEMBERS: Statement = Statement::new(
    "delete from memberships
    where (user_id, group_id) in (select user_id, group_id from {rows} r)",
    &[("group_id", Type::Int), ("user_id", Type::Int)],
)
.by("user_id");

static INSERT_MEMBERS: Statement = Statement::insert(
    "memberships",
    &[
        ("group_id", Type::Int),
        ("user_id", Type::Int),
        ("span", Type::Int),
        ("ordinal", Type::Int),
        ("from_seq", Type::Int),
        ("to_seq", Type::Int),
        ("read_seq", Type::Int),
        ("extra", Type::Bytes),
        ("level", Type::Int),
        ("level_until", Type::Int),
        ("unread_from", Type::Int),
        ("again", Type::Bytes),
        ("mentions", Type::Text),
        ("joined_at", Type::Int),
        ("at", Type::Int),
        ("hidden", Type::Text),
    ],
);

static UPDATE_MEMBERS: Statement = Statement::new(
    "update memberships
    set to_seq = r.to_seq,
        read_seq = r.read_seq,
        extra = r.extra,
        level = r.level,
        level_until = r.level_until,
        unread_from = r.unread_from,
        again = r.again,
        mentions = r.mentions,
        at = r.at,
        hidden = r.hidden
    from {rows} r
    where memberships.user_id = r.user_id and memberships.group_id = r.group_id and memberships.span = r.span",
    &[
        ("group_id", Type::Int),
        ("user_id", Type::Int),
        ("span", Type::Int),
        ("to_seq", Type::Int),
        ("read_seq", Type::Int),
        ("extra", Type::Bytes),
        ("level", Type::Int),
        ("level_until", Type::Int),
        ("unread_from", Type::Int),
        ("again", Type::Bytes),
        ("mentions", Type::Text),
        ("at", Type::Int),
        ("hidden", Type::Text),
    ],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 7] {
    [&LOAD_GROUPS, &SAVE_GROUPS, &LOAD_MEMBERS, &LOAD_SPANS, &DELETE_MEMBERS, &INSERT_MEMBERS, &UPDATE_MEMBERS]
}

/// A row of `memberships`.
pub(super) type MemberRow = (i64, i64, i64, i64, i64, i64, i64, Vec<u8>, i64, i64, i64, Vec<u8>, String, i64, i64, String);

/// A row of `chat_groups`.
pub(super) type GroupRow = (i64, i64, i64, i64, i64, i64, i64, i64, String);

pub(super) async fn load_groups(pipeline: &Pipeline, groups: &BTreeSet<GroupId>) -> DbResult<Vec<GroupRow>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_GROUPS, [Column::Int(groups.iter().map(|group| group.get()).collect())]).await
}

fn member_keys(members: &BTreeSet<(UserId, GroupId)>) -> [Column; 2] {
    let groups = Column::Int(members.iter().map(|(_, group)| group.get()).collect());
    [groups, Column::Int(members.iter().map(|(user, _)| user.get()).collect())]
}

/// The latest memberships of `members`, and all of `spans`.
pub(super) async fn load_members(
    pipeline: &Pipeline,
    members: &BTreeSet<(UserId, GroupId)>,
    spans: &BTreeSet<(UserId, GroupId)>,
) -> DbResult<Vec<MemberRow>> {
    let latest = async { if members.is_empty() { Ok(Vec::new()) } else { pipeline.fetch(&LOAD_MEMBERS, member_keys(members)).await } };
    let all = async { if spans.is_empty() { Ok(Vec::new()) } else { pipeline.fetch(&LOAD_SPANS, member_keys(spans)).await } };
    let (mut found, all): (Vec<MemberRow>, Vec<MemberRow>) = try_join(latest, all).await?;
    found.extend(all);
    Ok(found)
}

/// Removes all memberships of these.
pub(super) async fn delete_members(conn: &mut Conn, members: &[(UserId, GroupId)]) -> DbResult<()> {
    conn.later(&DELETE_MEMBERS, &member_keys(&members.iter().copied().collect())).await
}

pub(super) fn group_of_row(
    (group, delivery, receipts, members, ordinals, jobs, at, changes, deleted_by): GroupRow,
) -> Option<(GroupId, Group, Option<OperationId>)> {
    let delivery = if delivery == 1 { Delivery::Write } else { Delivery::Read };
    let deleted = !deleted_by.is_empty();
    let row = Group { delivery, receipts: receipts == 1, members, ordinals, jobs, created_at: UnixMs(at), changes, deleted };
    Some((GroupId::try_from(group).ok()?, row, deleted_by.parse().ok()))
}

pub(super) fn member_of_row(row: MemberRow) -> Option<((UserId, GroupId, i64), Option<Membership>)> {
    let (group, user, span, ordinal, from_seq, to_seq, read_seq, extra, level, until, unread_from, again, mentions, joined_at, at, hidden) =
        row;
    let membership = Membership {
        ordinal,
        from_seq,
        to_seq: (to_seq >= 0).then_some(to_seq),
        reading: Reading::from_row(read_seq, &extra),
        again: (unread_from > 0).then(|| Reading::from_row(unread_from - 1, &again)),
        mentions: Intervals::parse(&mentions),
        level: LevelUntil::from_row(level, until),
        joined_at: UnixMs(joined_at),
        at: UnixMs(at),
        hidden: Hidden::from_row(&hidden),
    };
    Some(((UserId::try_from(user).ok()?, GroupId::try_from(group).ok()?, span), Some(membership)))
}

pub(super) fn ints<T>(items: &[T], value: impl Fn(&T) -> i64) -> Column {
    Column::Int(items.iter().map(value).collect())
}

/// A membership with its key: the user, or for one that is erased the ordinal below 0; group and span.
pub(super) type MemberOf<'a> = ((i64, GroupId, i64), &'a Membership);

/// The columns of [`UPDATE_MEMBERS`].
fn member_columns(members: &[MemberOf<'_>]) -> [Column; 13] {
    [
        ints(members, |((_, group, _), _)| group.get()),
        ints(members, |((user, ..), _)| *user),
        ints(members, |((.., span), _)| *span),
        ints(members, |(_, row)| row.to_seq.unwrap_or(-1)),
        ints(members, |(_, row)| row.reading.read_seq()),
        Column::Bytes(members.iter().map(|(_, row)| row.reading.extra_data()).collect()),
        ints(members, |(_, row)| row.level.row().0),
        ints(members, |(_, row)| row.level.row().1),
        ints(members, |(_, row)| row.again.as_ref().map_or(0, |again| again.read_seq() + 1)),
        Column::Bytes(members.iter().map(|(_, row)| row.again.as_ref().map(Reading::extra_data).unwrap_or_default()).collect()),
        Column::Text(members.iter().map(|(_, row)| row.mentions.to_string()).collect()),
        ints(members, |(_, row)| row.at.0),
        Column::Text(members.iter().map(|(_, row)| row.hidden.to_row()).collect()),
    ]
}

pub(super) async fn save_groups(conn: &mut Conn, groups: &[(GroupId, Group, Option<OperationId>)]) -> DbResult<()> {
    let columns = [
        ints(groups, |(group, ..)| group.get()),
        ints(groups, |(_, row, _)| i64::from(row.delivery == Delivery::Write)),
        ints(groups, |(_, row, _)| i64::from(row.receipts)),
        ints(groups, |(_, row, _)| row.members),
        ints(groups, |(_, row, _)| row.ordinals),
        ints(groups, |(_, row, _)| row.jobs),
        ints(groups, |(_, row, _)| row.created_at.0),
        ints(groups, |(_, row, _)| row.changes),
        Column::Text(groups.iter().map(|(.., by)| by.as_ref().map_or_else(String::new, OperationId::to_string)).collect()),
    ];
    conn.later(&SAVE_GROUPS, &columns).await
}

pub(super) async fn insert_members(conn: &mut Conn, members: &[MemberOf<'_>]) -> DbResult<()> {
    let [group, user, span, to_seq, read_seq, extra, level, until, unread_from, again, mentions, at, hidden] = member_columns(members);
    let ordinal = ints(members, |(_, row)| row.ordinal);
    let (from_seq, joined_at) = (ints(members, |(_, row)| row.from_seq), ints(members, |(_, row)| row.joined_at.0));
    let columns =
        [group, user, span, ordinal, from_seq, to_seq, read_seq, extra, level, until, unread_from, again, mentions, joined_at, at, hidden];
    conn.later(&INSERT_MEMBERS, &columns).await
}

pub(super) async fn update_members(conn: &mut Conn, members: &[MemberOf<'_>]) -> DbResult<()> {
    conn.later(&UPDATE_MEMBERS, &member_columns(members)).await
}
