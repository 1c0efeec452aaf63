//! The rows of groups in a batch. A group's own row, its jobs and its messages are guarded by the
//! lock of the group's head; a membership by the lock of the member's own row in `users`, and its
//! begin and end by the head as well.

use std::collections::BTreeMap;

use futures_util::future::{try_join3, try_join5};

use super::import::store as logs;
use super::needs::{ClientKey, DeliveryJob, GroupNeeds, Sent};
use super::part::group_part;
use super::{Group, GroupMark, Membership, Mentions, Message, message_changes, message_store, pages, store};
use crate::base::ids::{GroupId, UserId};
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, EntryParts, RowSet, Table};
use crate::engine::marks::{Kind, StreamKey};
use crate::features::operations::OperationId;

#[derive(Debug, Default)]
pub struct GroupRows {
    groups: Table<GroupId, Option<Group>>,
    /// By which operations groups were deleted.
    deleted: Table<GroupId, Option<OperationId>>,
    /// By member, group and span.
    members: Table<(UserId, GroupId, i64), Option<Membership>>,
    clients: Table<ClientKey, Option<Sent>>,
    messages: Table<(GroupId, i64), Option<Message>>,
    jobs: Table<(GroupId, i64), Option<DeliveryJob>>,
    /// Messages of senders that are erased.
    erased_senders: Table<(GroupId, i64), bool>,
    /// Members that are erased.
    forgotten_members: Table<(UserId, GroupId), bool>,
    /// Whom new messages mention.
    mentions: Table<(GroupId, i64), Mentions>,
    /// Messages that members sent (true), or that mention them, as far as they were asked for.
    of_member: BTreeMap<(GroupId, UserId, i64), bool>,
    /// Messages that were recalled, by group and the id of the change.
    changes: Table<(GroupId, i64), Option<i64>>,
    /// Of groups whose messages go: the first that is yet to be put into inboxes.
    waiting: BTreeMap<GroupId, i64>,
    /// Up to where messages went.
    gone: Table<GroupId, i64>,
    /// How far logs are taken.
    pub logs: logs::LogTables,
}

impl GroupRows {
    async fn save_members(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.members.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            let Some(now) = now else { continue };
            if self.forgotten_members.get(&(key.0, key.1)) {
                continue;
            }
            let row = ((key.0.get(), key.1, key.2), now);
            if loaded.is_none() { new.push(row) } else { changed.push(row) }
        }
        self.save_forgotten(conn, &mut new).await?;
        if !new.is_empty() {
            store::insert_members(conn, &new).await?;
        }
        if !changed.is_empty() {
            store::update_members(conn, &changed).await?;
        }
        Ok(())
    }

    /// The memberships of members that are erased go, and come again with the ordinal in place of the
    /// user. Not so in a group that is deleted: it has no receipts any more, and its removal would
    /// pass by what comes while it looks.
    async fn save_forgotten<'a>(&'a self, conn: &mut Conn, new: &mut Vec<store::MemberOf<'a>>) -> DbResult<()> {
        let forgotten: Vec<_> = self.forgotten_members.changed().map(|(key, _)| *key).collect();
        if !forgotten.is_empty() {
            store::delete_members(conn, &forgotten).await?;
        }
        for (user, group) in forgotten {
            if self.group(group).is_some_and(|group| group.deleted) {
                continue;
            }
            let all = self.members.from(&(user, group, 0)).take_while(|((of, at, _), _)| *of == user && *at == group);
            new.extend(all.filter_map(|((.., span), row)| row.as_ref().map(|row| ((-row.ordinal, group, *span), row))));
        }
        Ok(())
    }

    async fn save_messages(&self, conn: &mut Conn) -> DbResult<()> {
        let gone: Vec<_> = self.gone.changed().collect();
        if !gone.is_empty() {
            message_store::delete_messages(conn, &gone).await?;
            message_changes::forget(conn, &gone).await?;
        }
        let (mut new, mut recalled) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.messages.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            let Some(now) = now else { continue };
            if loaded.is_none() { new.push((*key, now, self.mentions.get(key))) } else { recalled.push(*key) }
        }
        if !new.is_empty() {
            message_store::insert_messages(conn, &new).await?;
        }
        if !recalled.is_empty() {
            message_store::recall_messages(conn, &recalled).await?;
        }
        let erased: Vec<_> = self.erased_senders.changed().map(|(key, _)| *key).collect();
        if !erased.is_empty() {
            message_store::erase_senders(conn, &erased).await?;
        }
        let gone = |group: &GroupId| self.gone.get(group);
        let changes = self.changes.changed().filter_map(|((group, id), seq)| Some((*group, *id, (*seq)?)));
        let changes: Vec<_> = changes.filter(|(group, _, seq)| *seq > gone(group)).collect();
        if !changes.is_empty() {
            message_changes::save(conn, &changes).await?;
        }
        Ok(())
    }

    /// A group; None where it was never made.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<Group> {
        self.groups.get(&group)
    }

    /// The operation by which a group was deleted.
    #[must_use]
    pub fn deleted_by(&self, group: GroupId) -> Option<OperationId> {
        self.deleted.get(&group)
    }

    /// Writes by which operation a group is deleted.
    pub fn set_deleted_by(&mut self, group: GroupId, operation: OperationId) {
        self.deleted.set(&group, Some(operation));
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
        self.clients.get(key).filter(|sent| sent.seq > self.gone.get(&key.0))
    }

    /// A message.
    #[must_use]
    pub fn message(&self, group: GroupId, seq: i64) -> Option<Message> {
        self.messages.get(&(group, seq)).filter(|_| seq > self.gone.get(&group))
    }

    /// What a user sent from this message on.
    pub fn own_from(&self, group: GroupId, user: UserId, from: i64) -> impl Iterator<Item = i64> {
        let loaded = self.of_member(group, user, from, true);
        let new = self.messages.from(&(group, from)).take_while(move |((of, _), _)| *of == group);
        let new = new.filter(move |(_, message)| message.as_ref().is_some_and(|message| message.sender == Some(user)));
        loaded.chain(new.map(|((_, seq), _)| *seq))
    }

    /// The messages from this one on that mention a user by name.
    pub fn naming_from(&self, group: GroupId, user: UserId, from: i64) -> impl Iterator<Item = i64> {
        let new = self.mentions.from(&(group, from)).take_while(move |((of, _), _)| *of == group);
        let new = new.filter(move |(_, mentions)| mentions.named.contains(&user));
        self.of_member(group, user, from, false).chain(new.map(|((_, seq), _)| *seq))
    }

    fn of_member(&self, group: GroupId, user: UserId, from: i64, own: bool) -> impl Iterator<Item = i64> {
        let all = self.of_member.range((group, user, from)..=(group, user, i64::MAX));
        all.filter(move |(_, is_own)| **is_own == own).map(|((.., seq), _)| *seq)
    }

    /// The first message of a group that is yet to be put into inboxes, or whose recall is.
    #[must_use]
    pub fn first_waiting(&self, group: GroupId) -> Option<i64> {
        let new = self.jobs.from(&(group, 0)).take_while(|((of, _), _)| *of == group).filter_map(|(_, job)| Some((*job)?.seq));
        new.chain(self.waiting.get(&group).copied()).min()
    }

    /// The messages of a group up to this one go.
    pub fn remove_messages(&mut self, group: GroupId, up_to: i64) {
        self.gone.set(&group, up_to.max(self.gone.get(&group)));
    }

    /// Adds a message.
    pub fn add_message(&mut self, group: GroupId, seq: i64, message: Message, mentions: Mentions) {
        self.mentions.set(&(group, seq), mentions);
        if let Some(sender) = message.sender {
            let sent = Sent { seq, at: message.sent_at, recalled: false };
            self.clients.set(&(group, sender, message.client_id.clone()), Some(sent));
        }
        self.messages.set(&(group, seq), Some(message));
    }

    /// Takes a message back: what it said is gone.
    pub fn recall(&mut self, group: GroupId, seq: i64, message: &Message) {
        // One that was sent in this batch is not to keep whom it named.
        let all = self.mentions.get(&(group, seq)).all;
        self.mentions.set(&(group, seq), Mentions { all, ..Mentions::default() });
        if let Some(sender) = message.sender {
            let sent = Sent { seq, at: message.sent_at, recalled: true };
            self.clients.set(&(group, sender, message.client_id.clone()), Some(sent));
        }
        self.messages.set(&(group, seq), Some(Message { recalled: true, content: String::new(), ..message.clone() }));
    }

    /// The sender of a message is erased: what is left of it is a tombstone.
    pub(super) fn erase_sender(&mut self, group: GroupId, seq: i64) {
        self.erased_senders.set(&(group, seq), true);
    }

    /// A member is erased: its memberships, all of which were asked for, lose its id.
    pub(super) fn forget_member(&mut self, user: UserId, group: GroupId) {
        self.forgotten_members.set(&(user, group), true);
    }

    /// Adds a change of a message, under the next id of the group.
    pub fn add_change(&mut self, group: GroupId, id: i64, seq: i64) {
        self.changes.set(&(group, id), Some(seq));
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
        select: "select s.user_id, {kind}, s.mentions, s.group_id, s.read_seq,
        s.level + case when s.read_seq = s.from_seq then 8 else 0 end, s.at, s.level_until, s.unread_from,
        case when s.unread_from > 0 then s.again else s.extra end
    from {rows} r
    join memberships s on s.user_id = r.user_id and s.to_seq < 0",
        part: |row| {
            let [group, mark @ ..] = row.numbers;
            let mark = GroupMark::from_row(mark, row.data.as_deref().unwrap_or_default(), &row.text);
            Some(group_part(GroupId::try_from(group).ok()?, Some(&mark)))
        },
    });

    type Needs = GroupNeeds;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into_iter().chain(message_store::statements()).chain(message_changes::statements()).collect()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &GroupNeeds) -> DbResult<()> {
        let waiting = message_store::load_waiting(pipeline, &needs.jobs);
        let (groups, members, clients, messages, ((), waiting, of_member)) = try_join5(
            store::load_groups(pipeline, &needs.groups),
            store::load_members(pipeline, &needs.members, &needs.spans),
            message_store::load_clients(pipeline, &needs.clients),
            message_store::load_messages(pipeline, &needs.messages),
            try_join3(self.logs.load(pipeline, &needs.logs), waiting, message_store::load_of_member(pipeline, &needs.again)),
        )
        .await?;
        self.waiting = waiting.into_iter().filter_map(|(group, seq)| Some((GroupId::try_from(group).ok()?, seq))).collect();
        self.of_member = of_member.into_iter().filter_map(message_store::of_member_of_row).collect();
        for (group, row, deleted_by) in groups.into_iter().filter_map(store::group_of_row) {
            self.groups.insert_loaded([(group, Some(row))]);
            self.deleted.insert_loaded([(group, deleted_by)]);
        }
        self.members.insert_loaded(members.into_iter().filter_map(store::member_of_row));
        self.clients.insert_loaded(clients.into_iter().filter_map(message_store::sent_of_row));
        self.messages
            .insert_loaded(messages.into_iter().filter_map(message_store::message_of_row).map(|(key, message)| (key, Some(message))));
        Ok(())
    }

    /// A group is under its head from its making on, long before its first message.
    fn are_under(&self, head: &StreamKey) -> bool {
        head.kind == Kind::Group && GroupId::try_from(head.owner).is_ok_and(|group| self.group(group).is_some())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, batch: Batch) -> DbResult<()> {
        let groups: Vec<_> = self.groups.changed().filter_map(|(group, row)| Some((*group, (*row)?, self.deleted_by(*group)))).collect();
        if !groups.is_empty() {
            store::save_groups(conn, &groups).await?;
            let new = self.groups.rows.iter().filter(|(_, (loaded, now))| loaded.is_none() && now.is_some());
            let new: Vec<_> = new.map(|(group, _)| *group).collect();
            if !new.is_empty() {
                pages::make(conn, &new, batch.now).await?;
            }
        }
        self.save_members(conn).await?;
        self.save_messages(conn).await?;
        let jobs: Vec<_> = self.jobs.changed().filter_map(|(key, job)| Some((*key, (*job)?))).collect();
        if !jobs.is_empty() {
            message_store::insert_jobs(conn, &jobs).await?;
        }
        self.logs.save(conn).await
    }

    fn settle(&mut self) {
        self.groups.settle();
        self.deleted.settle();
        self.members.settle();
        self.clients.settle();
        self.messages.settle();
        self.erased_senders.settle();
        self.forgotten_members.settle();
        self.mentions.settle();
        self.jobs.settle();
        self.changes.settle();
        self.gone.settle();
        self.logs.settle();
    }

    fn undo(&mut self) {
        self.groups.undo();
        self.deleted.undo();
        self.members.undo();
        self.clients.undo();
        self.messages.undo();
        self.erased_senders.undo();
        self.forgotten_members.undo();
        self.mentions.undo();
        self.jobs.undo();
        self.changes.undo();
        self.gone.undo();
        self.logs.undo();
    }

    fn parts(&self, parts: &mut EntryParts<'_>) {
        for (user, group, membership) in self.changed_members() {
            let mark = || membership.is_open().then(|| GroupMark::from(membership));
            parts.add(user, || Some(group_part(group, mark().as_ref())));
        }
    }
}
