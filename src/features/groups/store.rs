//! The rows of groups in a batch. A group's own row, its jobs and its messages are guarded by the
//! lock of the group's head; a membership by the lock of the member's own row in `users`, and its
//! begin and end by the head as well.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join5;

use super::delivery;
use super::import::store as logs;
use super::part::group_part;
use super::{Delivery, Group, GroupMark, Membership, Message, Reading};
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::cache::Parts;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};

static LOAD_GROUPS: Statement = Statement::new(
    "select g.group_id, g.delivery, g.receipts, g.members, g.ordinals, g.jobs, g.created_at
    from {rows} r
    join chat_groups g on g.group_id = r.group_id",
    &[("group_id", Type::Int)],
);

static SAVE_GROUPS: Statement = Statement::new(
    "insert into chat_groups (group_id, delivery, receipts, members, ordinals, jobs, created_at)
    select group_id, delivery, receipts, members, ordinals, jobs, created_at
    from {rows} r
    where true
    on conflict (group_id) do update set
        delivery = excluded.delivery,
        receipts = excluded.receipts,
        members = excluded.members,
        ordinals = excluded.ordinals,
        jobs = excluded.jobs",
    &[
        ("group_id", Type::Int),
        ("delivery", Type::Int),
        ("receipts", Type::Int),
        ("members", Type::Int),
        ("ordinals", Type::Int),
        ("jobs", Type::Int),
        ("created_at", Type::Int),
    ],
);

/// The latest membership of each.
static LOAD_MEMBERS: Statement = Statement::new(
    "select m.group_id, m.user_id, m.span, m.ordinal, m.from_seq, m.to_seq, m.read_seq, m.extra, m.muted, m.joined_at, m.at
    from {rows} r
    join memberships m on m.user_id = r.user_id and m.group_id = r.group_id
    where not exists (select 1 from memberships n where n.user_id = m.user_id and n.group_id = m.group_id and n.span > m.span)",
    &[("group_id", Type::Int), ("user_id", Type::Int)],
);

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
        ("muted", Type::Int),
        ("joined_at", Type::Int),
        ("at", Type::Int),
    ],
);

static UPDATE_MEMBERS: Statement = Statement::new(
    "update memberships
    set to_seq = r.to_seq, read_seq = r.read_seq, extra = r.extra, muted = r.muted, at = r.at
    from {rows} r
    where memberships.user_id = r.user_id and memberships.group_id = r.group_id and memberships.span = r.span",
    &[
        ("group_id", Type::Int),
        ("user_id", Type::Int),
        ("span", Type::Int),
        ("to_seq", Type::Int),
        ("read_seq", Type::Int),
        ("extra", Type::Bytes),
        ("muted", Type::Int),
        ("at", Type::Int),
    ],
);

static LOAD_CLIENTS: Statement = Statement::new(
    "select m.group_id, m.sender_id, m.client_id, m.seq, m.sent_at, m.recalled
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.sender_id = r.sender_id and m.client_id = r.client_id",
    &[("group_id", Type::Int), ("sender_id", Type::Int), ("client_id", Type::Text)],
);

static LOAD_MESSAGES: Statement = Statement::new(
    "select m.group_id, m.seq, m.sender_id, m.client_id, m.content, m.sent_at, m.recalled, m.written
    from {rows} r
    join group_messages m on m.group_id = r.group_id and m.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int)],
);

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
    ],
);

static RECALL: Statement = Statement::new(
    "update group_messages
    set recalled = 1, content = ''
    from {rows} r
    where group_messages.group_id = r.group_id and group_messages.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int)],
);

static INSERT_TASKS: Statement =
    Statement::insert("delivery_jobs", &[("group_id", Type::Int), ("job", Type::Int), ("seq", Type::Int), ("recall", Type::Int)]);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 10] {
    [
        &LOAD_GROUPS,
        &SAVE_GROUPS,
        &LOAD_MEMBERS,
        &INSERT_MEMBERS,
        &UPDATE_MEMBERS,
        &LOAD_CLIENTS,
        &LOAD_MESSAGES,
        &INSERT_MESSAGES,
        &RECALL,
        &INSERT_TASKS,
    ]
}

/// A message by its sender's own id.
pub type ClientKey = (GroupId, UserId, ClientId);

/// Which of these rows a batch needs. Users' own rows and heads of groups are asked for beside it.
#[derive(Debug, Default)]
pub struct Needs {
    /// Groups.
    pub groups: BTreeSet<GroupId>,
    /// The latest memberships.
    pub members: BTreeSet<(UserId, GroupId)>,
    /// Messages by their senders' own ids.
    pub clients: BTreeSet<ClientKey>,
    /// Messages by their numbers.
    pub messages: BTreeSet<(GroupId, i64)>,
    /// How far logs are taken.
    pub logs: logs::Needs,
}

/// A message that was sent before, under its sender's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub seq: i64,
    pub at: UnixMs,
    /// Whether it was recalled since.
    pub recalled: bool,
}

/// Something that is to be put into the inboxes of a group's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryJob {
    /// About which message.
    pub seq: i64,
    /// Whether it says that the message was recalled.
    pub recall: bool,
}

#[derive(Debug, Default)]
pub struct GroupRows {
    groups: Table<GroupId, Option<Group>>,
    /// By member, group and span.
    members: Table<(UserId, GroupId, i64), Option<Membership>>,
    clients: Table<ClientKey, Option<Sent>>,
    messages: Table<(GroupId, i64), Option<Message>>,
    jobs: Table<(GroupId, i64), Option<DeliveryJob>>,
    /// How far logs are taken.
    pub logs: logs::Tables,
}

/// A row of `memberships`.
type MemberRow = (i64, i64, i64, i64, i64, i64, i64, Vec<u8>, i64, i64, i64);

/// A row of `group_messages`.
pub(super) type MessageRow = (i64, i64, i64, String, String, i64, i64, i64);

/// A row of `chat_groups`.
type GroupRow = (i64, i64, i64, i64, i64, i64, i64);

/// A row that [`LOAD_CLIENTS`] finds.
type SentRow = (i64, i64, String, i64, i64, i64);

async fn load_groups(pipeline: &Pipeline, groups: &BTreeSet<GroupId>) -> DbResult<Vec<GroupRow>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_GROUPS, [Column::Int(groups.iter().map(|group| group.get()).collect())]).await
}

async fn load_members(pipeline: &Pipeline, members: &BTreeSet<(UserId, GroupId)>) -> DbResult<Vec<MemberRow>> {
    if members.is_empty() {
        return Ok(Vec::new());
    }
    let groups = Column::Int(members.iter().map(|(_, group)| group.get()).collect());
    pipeline.fetch(&LOAD_MEMBERS, [groups, Column::Int(members.iter().map(|(user, _)| user.get()).collect())]).await
}

async fn load_clients(pipeline: &Pipeline, clients: &BTreeSet<ClientKey>) -> DbResult<Vec<SentRow>> {
    if clients.is_empty() {
        return Ok(Vec::new());
    }
    let groups = Column::Int(clients.iter().map(|(group, ..)| group.get()).collect());
    let senders = Column::Int(clients.iter().map(|(_, sender, _)| sender.get()).collect());
    pipeline.fetch(&LOAD_CLIENTS, [groups, senders, Column::Text(clients.iter().map(|(.., id)| id.to_string()).collect())]).await
}

async fn load_messages(pipeline: &Pipeline, messages: &BTreeSet<(GroupId, i64)>) -> DbResult<Vec<MessageRow>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let groups = Column::Int(messages.iter().map(|(group, _)| group.get()).collect());
    pipeline.fetch(&LOAD_MESSAGES, [groups, Column::Int(messages.iter().map(|(_, seq)| *seq).collect())]).await
}

fn sent_of_row((group, sender, client, seq, at, recalled): SentRow) -> Option<(ClientKey, Option<Sent>)> {
    let key = (GroupId::try_from(group).ok()?, UserId::try_from(sender).ok()?, client.parse().ok()?);
    Some((key, Some(Sent { seq, at: UnixMs(at), recalled: recalled == 1 })))
}

fn group_of_row((group, delivery, receipts, members, ordinals, jobs, at): GroupRow) -> Option<(GroupId, Option<Group>)> {
    let delivery = if delivery == 1 { Delivery::Write } else { Delivery::Read };
    let row = Group { delivery, receipts: receipts == 1, members, ordinals, jobs, created_at: UnixMs(at) };
    Some((GroupId::try_from(group).ok()?, Some(row)))
}

fn member_of_row(row: MemberRow) -> Option<((UserId, GroupId, i64), Option<Membership>)> {
    let (group, user, span, ordinal, from_seq, to_seq, read_seq, extra, muted, joined_at, at) = row;
    let membership = Membership {
        ordinal,
        from_seq,
        to_seq: (to_seq >= 0).then_some(to_seq),
        reading: Reading::from_row(read_seq, &extra),
        muted: muted == 1,
        joined_at: UnixMs(joined_at),
        at: UnixMs(at),
    };
    Some(((UserId::try_from(user).ok()?, GroupId::try_from(group).ok()?, span), Some(membership)))
}

pub(super) fn message_of_row(
    (group, seq, sender, client, content, at, recalled, written): MessageRow,
) -> Option<((GroupId, i64), Message)> {
    let (sender, client_id) = (UserId::try_from(sender).ok()?, client.parse().ok()?);
    let message = Message { sender, client_id, content, sent_at: UnixMs(at), recalled: recalled == 1, written: written == 1 };
    Some(((GroupId::try_from(group).ok()?, seq), message))
}

fn ints<T>(items: &[T], value: impl Fn(&T) -> i64) -> Column {
    Column::Int(items.iter().map(value).collect())
}

/// A membership with its key.
type MemberOf<'a> = (&'a (UserId, GroupId, i64), &'a Membership);

/// The columns of [`UPDATE_MEMBERS`].
fn member_columns(members: &[MemberOf<'_>]) -> [Column; 8] {
    [
        ints(members, |((_, group, _), _)| group.get()),
        ints(members, |((user, ..), _)| user.get()),
        ints(members, |((.., span), _)| *span),
        ints(members, |(_, row)| row.to_seq.unwrap_or(-1)),
        ints(members, |(_, row)| row.reading.read_seq()),
        Column::Bytes(members.iter().map(|(_, row)| row.reading.extra_data()).collect()),
        ints(members, |(_, row)| i64::from(row.muted)),
        ints(members, |(_, row)| row.at.0),
    ]
}

impl GroupRows {
    async fn save_members(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.members.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            let Some(now) = now else { continue };
            if loaded.is_none() { new.push((key, now)) } else { changed.push((key, now)) }
        }
        if !new.is_empty() {
            let [group, user, span, to_seq, read_seq, extra, muted, at] = member_columns(&new);
            let ordinal = ints(&new, |(_, row)| row.ordinal);
            let (from_seq, joined_at) = (ints(&new, |(_, row)| row.from_seq), ints(&new, |(_, row)| row.joined_at.0));
            let columns = [group, user, span, ordinal, from_seq, to_seq, read_seq, extra, muted, joined_at, at];
            conn.insert(&INSERT_MEMBERS, &columns).await?;
        }
        if !changed.is_empty() {
            conn.later(&UPDATE_MEMBERS, &member_columns(&changed)).await?;
        }
        Ok(())
    }

    async fn save_messages(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut new, mut recalled) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.messages.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            let Some(now) = now else { continue };
            if loaded.is_none() { new.push((*key, now)) } else { recalled.push(*key) }
        }
        if !new.is_empty() {
            let columns = [
                ints(&new, |((group, _), _)| group.get()),
                ints(&new, |((_, seq), _)| *seq),
                ints(&new, |(_, message)| message.sender.get()),
                Column::Text(new.iter().map(|(_, message)| message.client_id.to_string()).collect()),
                Column::Text(new.iter().map(|(_, message)| message.content.clone()).collect()),
                ints(&new, |(_, message)| message.sent_at.0),
                ints(&new, |(_, message)| i64::from(message.recalled)),
                ints(&new, |(_, message)| i64::from(message.written)),
            ];
            conn.insert(&INSERT_MESSAGES, &columns).await?;
        }
        if !recalled.is_empty() {
            conn.later(&RECALL, &[ints(&recalled, |(group, _)| group.get()), ints(&recalled, |(_, seq)| *seq)]).await?;
        }
        Ok(())
    }

    /// A group; None where it was never made.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<Group> {
        self.groups.get(&group)
    }

    /// Writes a group.
    pub fn set_group(&mut self, group: GroupId, row: Group) {
        self.groups.set(&group, Some(row));
    }

    /// The latest membership of a user in a group, and which one that is.
    #[must_use]
    pub fn latest(&self, user: UserId, group: GroupId) -> Option<(i64, &Membership)> {
        let all = self.members.from(&(user, group, 0)).take_while(|((of, at, _), _)| *of == user && *at == group);
        all.filter_map(|((.., span), row)| Some((*span, row.as_ref()?))).last()
    }

    /// Writes a membership.
    pub fn set_membership(&mut self, user: UserId, group: GroupId, span: i64, row: Membership) {
        self.members.set(&(user, group, span), Some(row));
    }

    /// What was sent under this id before.
    #[must_use]
    pub fn sent(&self, key: &ClientKey) -> Option<Sent> {
        self.clients.get(key)
    }

    /// A message.
    #[must_use]
    pub fn message(&self, group: GroupId, seq: i64) -> Option<Message> {
        self.messages.get(&(group, seq))
    }

    /// Adds a message.
    pub fn add_message(&mut self, group: GroupId, seq: i64, message: Message) {
        let sent = Sent { seq, at: message.sent_at, recalled: false };
        self.clients.set(&(group, message.sender, message.client_id.clone()), Some(sent));
        self.messages.set(&(group, seq), Some(message));
    }

    /// Takes a message back: what it said is gone.
    pub fn recall(&mut self, group: GroupId, seq: i64, message: &Message) {
        let sent = Sent { seq, at: message.sent_at, recalled: true };
        self.clients.set(&(group, message.sender, message.client_id.clone()), Some(sent));
        self.messages.set(&(group, seq), Some(Message { recalled: true, content: String::new(), ..message.clone() }));
    }

    /// Adds something that is to be put into inboxes.
    pub fn add_job(&mut self, group: GroupId, number: i64, job: DeliveryJob) {
        self.jobs.set(&(group, number), Some(job));
    }

    /// The groups that have something new to be put into inboxes.
    pub fn with_jobs(&self) -> impl Iterator<Item = GroupId> {
        self.jobs.changed().map(|((group, _), _)| *group)
    }

    /// The memberships that changed: of each user and group the latest one.
    pub fn changed_members(&self) -> impl Iterator<Item = (UserId, GroupId, &Membership)> {
        let changed = self.members.changed().filter_map(|((user, group, span), row)| Some((*user, *group, *span, row.as_ref()?)));
        changed
            .filter(|(user, group, span, _)| self.latest(*user, *group).is_some_and(|(latest, _)| latest == *span))
            .map(|(user, group, _, row)| (user, group, row))
    }

    #[cfg(test)]
    pub(crate) fn all_memberships(&self) -> Vec<(UserId, Membership)> {
        self.members.rows.iter().filter_map(|((user, ..), (_, row))| Some((*user, row.clone()?))).collect()
    }
}

impl RowSet for GroupRows {
    const ENTRY_ROWS: Option<EntryRows> = Some(EntryRows {
        select: "select s.user_id, {kind}, '', s.group_id, s.read_seq, s.muted, s.at, 0, 0, s.extra
    from {rows} r
    join memberships s on s.user_id = r.user_id and s.to_seq < 0",
        part: |row| {
            let [group, read_seq, muted, at, ..] = row.numbers;
            let mark = GroupMark::from_row(read_seq, muted, at, row.data.as_deref());
            Some(group_part(GroupId::try_from(group).ok()?, Some(&mark)))
        },
    });

    type Needs = Needs;

    fn statements() -> Vec<&'static Statement> {
        statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &Needs) -> DbResult<()> {
        let (groups, members, clients, messages, ()) = try_join5(
            load_groups(pipeline, &needs.groups),
            load_members(pipeline, &needs.members),
            load_clients(pipeline, &needs.clients),
            load_messages(pipeline, &needs.messages),
            self.logs.load(pipeline, &needs.logs),
        )
        .await?;
        self.groups.insert_loaded(groups.into_iter().filter_map(group_of_row));
        self.members.insert_loaded(members.into_iter().filter_map(member_of_row));
        self.clients.insert_loaded(clients.into_iter().filter_map(sent_of_row));
        self.messages.insert_loaded(messages.into_iter().filter_map(message_of_row).map(|(key, message)| (key, Some(message))));
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, batch: Batch) -> DbResult<()> {
        let groups: Vec<_> = self.groups.changed().filter_map(|(group, row)| Some((*group, (*row)?))).collect();
        if !groups.is_empty() {
            let columns = [
                ints(&groups, |(group, _)| group.get()),
                ints(&groups, |(_, row)| i64::from(row.delivery == Delivery::Write)),
                ints(&groups, |(_, row)| i64::from(row.receipts)),
                ints(&groups, |(_, row)| row.members),
                ints(&groups, |(_, row)| row.ordinals),
                ints(&groups, |(_, row)| row.jobs),
                ints(&groups, |(_, row)| row.created_at.0),
            ];
            conn.later(&SAVE_GROUPS, &columns).await?;
            let new = self.groups.rows.iter().filter(|(_, (loaded, now))| loaded.is_none() && now.is_some());
            let new: Vec<_> = new.map(|(group, _)| *group).collect();
            if !new.is_empty() {
                delivery::make(conn, &new, batch.now).await?;
            }
        }
        self.save_members(conn).await?;
        self.save_messages(conn).await?;
        let jobs: Vec<_> = self.jobs.changed().filter_map(|(key, job)| Some((*key, (*job)?))).collect();
        if !jobs.is_empty() {
            let columns = [
                ints(&jobs, |((group, _), _)| group.get()),
                ints(&jobs, |((_, number), _)| *number),
                ints(&jobs, |(_, job)| job.seq),
                ints(&jobs, |(_, job)| i64::from(job.recall)),
            ];
            conn.insert(&INSERT_TASKS, &columns).await?;
        }
        self.logs.save(conn).await
    }

    fn settle(&mut self) {
        self.groups.settle();
        self.members.settle();
        self.clients.settle();
        self.messages.settle();
        self.jobs.settle();
        self.logs.settle();
    }

    fn undo(&mut self) {
        self.groups.undo();
        self.members.undo();
        self.clients.undo();
        self.messages.undo();
        self.jobs.undo();
        self.logs.undo();
    }

    fn parts(&self, parts: &mut BTreeMap<UserId, Parts>) {
        for (user, group, membership) in self.changed_members() {
            let mark = membership.is_open().then(|| GroupMark::from(membership));
            parts.entry(user).or_default().extend([group_part(group, mark.as_ref())]);
        }
    }
}
