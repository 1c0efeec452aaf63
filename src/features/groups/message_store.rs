//! The statements by which a batch reads and writes messages of groups (`rows.rs`), and the jobs that put
//! them into inboxes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::needs::{ClientKey, DeliveryJob, Sent};
use super::store::ints;
use super::{MAX_UNREAD_AGAIN, Mentions, Message};
use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

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
pub(super) static LOAD_WAITING: Statement = Statement::new(
    "select t.group_id, min(t.seq)
    from {rows} r
    join delivery_jobs t on t.group_id = r.group_id
    group by t.group_id",
    &[("group_id", Type::Int)],
);

static INSERT_JOBS: Statement =
    Statement::insert("delivery_jobs", &[("group_id", Type::Int), ("job", Type::Int), ("seq", Type::Int), ("recall", Type::Int)]);

/// Tombstones without a sender. Two of them must not share an id that their senders gave them.
static ERASE_SENDERS: Statement = Statement::new(
    "update group_messages
    set sender_id = 0, client_id = cast(group_messages.seq as text), content = '', mentions = '', recalled = 1
    from {rows} r
    where group_messages.group_id = r.group_id and group_messages.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int)],
)
.by("group_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 9] {
    [
        &LOAD_CLIENTS,
        &LOAD_MESSAGES,
        &LOAD_OF_MEMBER,
        &INSERT_MESSAGES,
        &RECALL,
        &DELETE_MESSAGES,
        &LOAD_WAITING,
        &INSERT_JOBS,
        &ERASE_SENDERS,
    ]
}

/// A row of `group_messages`.
pub(super) type MessageRow = (i64, i64, i64, String, String, i64, i64, i64);

/// A row that [`LOAD_CLIENTS`] finds.
pub(super) type SentRow = (i64, i64, String, i64, i64, i64);

/// A row that [`LOAD_OF_MEMBER`] finds.
pub(super) type OfMemberRow = (i64, i64, i64, i64);

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

pub(super) fn message_of_row(
    (group, seq, sender, client, content, at, recalled, written): MessageRow,
) -> Option<((GroupId, i64), Message)> {
    let (sender, client_id) = (UserId::try_from(sender).ok(), client.parse().ok()?);
    let message = Message { sender, client_id, content, sent_at: UnixMs(at), recalled: recalled == 1, written: written == 1 };
    Some(((GroupId::try_from(group).ok()?, seq), message))
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
