//! The statements by which a batch reads and writes the rows of groups (`rows.rs`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use futures_util::future::try_join;

use super::needs::{ClientKey, DeliveryJob, Sent};
use super::{Delivery, Group, MAX_UNREAD_AGAIN, Membership, Mentions, Message, Reading};
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

/// Tombstones without a sender. Two of them must not share an id that their senders gave them.
static ERASE_SENDERS: Statement = Statement::new(
    "update group_messages
    set sender_id = 0, client_id = cast(group_messages.seq as text), content = '', mentions = '', recalled = 1
    from {rows} r
    where group_messages.group_id = r.group_id and group_messages.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int)],
)
.by("group_id");

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

static LOAD_CLIENTS: Statement = Statement::new(
    "select m.group_id, m.sender_id, m.client_id, m.seq, m.sent_at, m.recalled
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.sender_id = r.sender_id and m.client_id = r.client_id",
    &[("group_id", Type::Int), ("sender_id", Type::Int), ("client_id", Type::Text)],
)
.by("group_id");

pub(super) static LOAD_MESSAGES: Statement = Statement::new(
    "select m.group_id, m.seq, m.sender_id, m.client_id, m.content, m.sent_at, m.recalled, m.written
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int)],
)
.by("group_id");

/// What a member sent in a stretch of a group, and what mentions the member by name.
static LOAD_OF_MEMBER: Statement = Statement::new(
    "select m.group_id, r.user_id, m.seq, cast(case when m.sender_id = r.user_id then 1 else 0 end as bigint)
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.seq >= r.first_seq and m.seq <= r.last_seq
    where m.sender_id = r.user_id or m.mentions like '% ' || cast(r.user_id as text) || ' %'",
    &[("group_id", Type::Int), ("user_id", Type::Int), ("first_seq", Type::Int), ("last_seq", Type::Int)],
)
.by("group_id");

static INSERT_MESSAGES: Statement = Statement::insert(
    "group_messages",
    &[
        ("group_id", Type::Int),
        ("seq", Type::Int),
        ("sender_id", Type::Int),
        ("client_id", Type::Text),
        ("content", Type::Content),
        ("sent_at", Type::Int),
        ("recalled", Type::Int),
        ("written", Type::Int),
        ("mentions", Type::Text),
        ("mention_all", Type::Int),
    ],
);

static RECALL: Statement = Statement::new(
    "update group_messages
    set recalled = 1, content = '', mentions = ''
    from {rows} r
    where group_messages.group_id = r.group_id and group_messages.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int)],
)
.by("group_id");

static DELETE_MESSAGES: Statement = Statement::new(
    "delete from group_messages
    where (group_id, seq) in (
        select m.group_id, m.seq
        from {rows} r
        join group_messages m on m.group_id = r.group_id and m.seq <= r.up_to
    )",
    &[("group_id", Type::Int), ("up_to", Type::Int)],
)
.by("group_id");

/// The first message of each group that is yet to be put into inboxes, or whose recall is.
static LOAD_WAITING: Statement = Statement::new(
    "select t.group_id, min(t.seq)
    from {rows} r
    join delivery_jobs t on t.group_id = r.group_id
    group by t.group_id",
    &[("group_id", Type::Int)],
);

static INSERT_JOBS: Statement =
    Statement::insert("delivery_jobs", &[("group_id", Type::Int), ("job", Type::Int), ("seq", Type::Int), ("recall", Type::Int)]);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 16] {
    [
        &LOAD_GROUPS,
        &SAVE_GROUPS,
        &LOAD_MEMBERS,
        &LOAD_SPANS,
        &DELETE_MEMBERS,
        &ERASE_SENDERS,
        &INSERT_MEMBERS,
        &UPDATE_MEMBERS,
        &LOAD_CLIENTS,
        &LOAD_MESSAGES,
        &LOAD_OF_MEMBER,
        &INSERT_MESSAGES,
        &RECALL,
        &DELETE_MESSAGES,
        &LOAD_WAITING,
        &INSERT_JOBS,
    ]
}

/// A row of `memberships`.
pub(super) type MemberRow = (i64, i64, i64, i64, i64, i64, i64, Vec<u8>, i64, i64, i64, Vec<u8>, String, i64, i64, String);

/// A row of `group_messages`.
pub(super) type MessageRow = (i64, i64, i64, String, String, i64, i64, i64);

/// A row of `chat_groups`.
pub(super) type GroupRow = (i64, i64, i64, i64, i64, i64, i64, i64, String);

/// A row that [`LOAD_CLIENTS`] finds.
pub(super) type SentRow = (i64, i64, String, i64, i64, i64);

/// A row that [`LOAD_OF_MEMBER`] finds.
pub(super) type OfMemberRow = (i64, i64, i64, i64);

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

pub(super) async fn erase_senders(conn: &mut Conn, messages: &[(GroupId, i64)]) -> DbResult<()> {
    conn.later(&ERASE_SENDERS, &[ints(messages, |(group, _)| group.get()), ints(messages, |(_, seq)| *seq)]).await
}

pub(super) async fn load_clients(pipeline: &Pipeline, clients: &BTreeSet<ClientKey>) -> DbResult<Vec<SentRow>> {
    if clients.is_empty() {
        return Ok(Vec::new());
    }
    let groups = Column::Int(clients.iter().map(|(group, ..)| group.get()).collect());
    let senders = Column::Int(clients.iter().map(|(_, sender, _)| sender.get()).collect());
    pipeline.fetch(&LOAD_CLIENTS, [groups, senders, Column::Text(clients.iter().map(|(.., id)| id.to_string()).collect())]).await
}

pub(super) async fn load_messages(pipeline: &Pipeline, messages: &BTreeSet<(GroupId, i64)>) -> DbResult<Vec<MessageRow>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let groups = Column::Int(messages.iter().map(|(group, _)| group.get()).collect());
    pipeline.fetch(&LOAD_MESSAGES, [groups, Column::Int(messages.iter().map(|(_, seq)| *seq).collect())]).await
}

/// What members sent from a message on, and what mentions them there.
pub(super) async fn load_of_member(pipeline: &Pipeline, again: &BTreeSet<(GroupId, UserId, i64)>) -> DbResult<Vec<OfMemberRow>> {
    if again.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        again.iter().map(|(group, ..)| group.get()).collect(),
        again.iter().map(|(_, user, _)| user.get()).collect(),
        again.iter().map(|(.., from)| *from).collect(),
        again.iter().map(|(.., from)| from.saturating_add(MAX_UNREAD_AGAIN - 1)).collect(),
    ];
    pipeline.fetch(&LOAD_OF_MEMBER, columns.map(Column::Int)).await
}

pub(super) async fn load_waiting(pipeline: &Pipeline, groups: &BTreeSet<GroupId>) -> DbResult<Vec<(i64, i64)>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_WAITING, [Column::Int(groups.iter().map(|group| group.get()).collect())]).await
}

pub(super) fn of_member_of_row((group, user, seq, own): OfMemberRow) -> Option<((GroupId, UserId, i64), bool)> {
    Some(((GroupId::try_from(group).ok()?, UserId::try_from(user).ok()?, seq), own == 1))
}

pub(super) fn sent_of_row((group, sender, client, seq, at, recalled): SentRow) -> Option<(ClientKey, Option<Sent>)> {
    let key = (GroupId::try_from(group).ok()?, UserId::try_from(sender).ok()?, client.parse().ok()?);
    Some((key, Some(Sent { seq, at: UnixMs(at), recalled: recalled == 1 })))
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

pub(super) fn message_of_row(
    (group, seq, sender, client, content, at, recalled, written): MessageRow,
) -> Option<((GroupId, i64), Message)> {
    let (sender, client_id) = (UserId::try_from(sender).ok(), client.parse().ok()?);
    let message = Message { sender, client_id, content, sent_at: UnixMs(at), recalled: recalled == 1, written: written == 1 };
    Some(((GroupId::try_from(group).ok()?, seq), message))
}

fn ints<T>(items: &[T], value: impl Fn(&T) -> i64) -> Column {
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

/// Ids between spaces, so that one is found by the spaces around it.
fn named(mentions: &Mentions) -> String {
    let mut text = String::new();
    for user in &mentions.named {
        // Writing to a String cannot fail.
        let _ = write!(text, " {user}");
    }
    if !text.is_empty() {
        text.push(' ');
    }
    text
}

pub(super) async fn insert_messages(conn: &mut Conn, messages: &[((GroupId, i64), &Message, Mentions)]) -> DbResult<()> {
    let columns = [
        ints(messages, |((group, _), ..)| group.get()),
        ints(messages, |((_, seq), ..)| *seq),
        ints(messages, |(_, message, _)| message.sender.map_or(0, UserId::get)),
        Column::Text(messages.iter().map(|(_, message, _)| message.client_id.to_string()).collect()),
        Column::Text(messages.iter().map(|(_, message, _)| message.content.clone()).collect()),
        ints(messages, |(_, message, _)| message.sent_at.0),
        ints(messages, |(_, message, _)| i64::from(message.recalled)),
        ints(messages, |(_, message, _)| i64::from(message.written)),
        Column::Text(messages.iter().map(|(.., mentions)| named(mentions)).collect()),
        ints(messages, |(.., mentions)| i64::from(mentions.all)),
    ];
    conn.later(&INSERT_MESSAGES, &columns).await
}

pub(super) async fn recall_messages(conn: &mut Conn, messages: &[(GroupId, i64)]) -> DbResult<()> {
    conn.later(&RECALL, &[ints(messages, |(group, _)| group.get()), ints(messages, |(_, seq)| *seq)]).await
}

pub(super) async fn delete_messages(conn: &mut Conn, gone: &[(&GroupId, &i64)]) -> DbResult<()> {
    conn.later(&DELETE_MESSAGES, &[ints(gone, |(group, _)| group.get()), ints(gone, |(_, up_to)| **up_to)]).await
}

pub(super) async fn insert_jobs(conn: &mut Conn, jobs: &[((GroupId, i64), DeliveryJob)]) -> DbResult<()> {
    let columns = [
        ints(jobs, |((group, _), _)| group.get()),
        ints(jobs, |((_, number), _)| *number),
        ints(jobs, |(_, job)| job.seq),
        ints(jobs, |(_, job)| i64::from(job.recall)),
    ];
    conn.later(&INSERT_JOBS, &columns).await
}
