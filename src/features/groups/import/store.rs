//! What imports have taken from logs: the last line of each user in each group, and the groups of
//! channels that have names. Guarded by the locks of the users' own rows and of the groups' heads.

use std::collections::{BTreeMap, BTreeSet};

use super::{LogStep, Trace};
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};
use crate::engine::lanes::Table;

static LOAD_MEMBERS: Statement = Statement::new(
    "select l.user_id, l.group_id, l.at_second, l.events
    from {rows} r
    join group_log_members l on l.user_id = r.user_id and l.group_id = r.group_id",
    &[("user_id", Type::Int), ("group_id", Type::Int)],
)
.by("user_id");

/// The first message of each group that is kept, and when it was sent; where none is, one beyond the
/// last. Of a group that is deleted (its head has a position) nothing has expired.
static LOAD_KEPT: Statement = Statement::new(
    "select r.group_id, coalesce(m.seq, h.head + 1, 1), coalesce(m.sent_at, h.at + 1, 0)
    from {rows} r
    left join heads h on h.owner_id = r.group_id and h.kind = 6 and h.name = '' and h.position = 0
    left join group_messages m on m.group_id = r.group_id
        and m.seq = (select f.seq from group_messages f where f.group_id = r.group_id order by f.seq limit 1)",
    &[("group_id", Type::Int)],
)
.by("group_id");

static SAVE_MEMBERS: Statement = Statement::new(
    "insert into group_log_members (user_id, group_id, at_second, events)
    select user_id, group_id, at_second, events
    from {rows} r
    where true
    order by user_id, group_id
    on conflict (user_id, group_id) do update set
        at_second = excluded.at_second,
        events = excluded.events",
    &[("user_id", Type::Int), ("group_id", Type::Int), ("at_second", Type::Int), ("events", Type::Bytes)],
);

static LOAD_CHANNELS: Statement = Statement::new(
    "select c.group_id, c.channel
    from {rows} r
    join group_channels c on c.group_id = r.group_id",
    &[("group_id", Type::Int)],
);

static SAVE_CHANNELS: Statement = Statement::new(
    "insert into group_channels (group_id, channel)
    select group_id, channel
    from {rows} r
    where true
    order by group_id",
    &[("group_id", Type::Int), ("channel", Type::Text)],
);

static FIND_CHANNEL: Statement = Statement::one(
    "select c.group_id
    from group_channels c
    where c.channel = $1",
    &[("channel", Type::Text)],
);

static NEXT_GROUPS: Statement = Statement::one(
    "select g.group_id
    from chat_groups g
    where g.group_id >= $1
    order by g.group_id
    limit $2",
    &[("from_id", Type::Int), ("max_rows", Type::Int)],
);

static FIND_MESSAGE: Statement = Statement::one(
    "select m.seq
    from group_messages m
    where m.group_id = $1 and m.sender_id = $2 and m.client_id = $3",
    &[("group_id", Type::Int), ("sender_id", Type::Int), ("client_id", Type::Text)],
);

static FIRST_MESSAGE: Statement = Statement::one(
    "select m.seq
    from group_messages m
    where m.group_id = $1
    order by m.seq
    limit 1",
    &[("group_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 9] {
    [&LOAD_MEMBERS, &LOAD_KEPT, &SAVE_MEMBERS, &LOAD_CHANNELS, &SAVE_CHANNELS, &FIND_CHANNEL, &NEXT_GROUPS, &FIND_MESSAGE, &FIRST_MESSAGE]
}

/// How many ids of groups are read at once.
const IDS_AT_ONCE: i64 = 1000;

/// How far the lines of one user in one group are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// The second of the last line.
    second: i64,
    /// The joins and leaves of that second, each by its [`LogStep::events`].
    events: Vec<u64>,
}

impl Taken {
    /// Whether a join or leave was taken before, or a line after it.
    pub(super) fn has_event(&self, step: &LogStep) -> bool {
        self.second > step.second() || (self.second == step.second() && self.events.contains(&step.events))
    }

    /// Whether a line was taken that comes after a message.
    pub(super) fn is_after(&self, step: &LogStep) -> bool {
        let last = self.events.last().copied().unwrap_or_default();
        self.second > step.second() || (self.second == step.second() && last != step.events)
    }

    /// Whether this is the last line that was taken, or another of its second.
    fn is_last(&self, line: &Trace) -> bool {
        self.second == line.second && line.events.is_none_or(|events| self.events.contains(&events))
    }

    /// Takes a line.
    pub(super) fn take(&mut self, step: &LogStep, is_event: bool) {
        if step.second() > self.second {
            *self = Self { second: step.second(), events: Vec::new() };
        }
        if is_event && step.second() == self.second {
            self.events.push(step.events);
        }
    }

    fn events_data(&self) -> Vec<u8> {
        self.events.iter().flat_map(|event| event.to_be_bytes()).collect()
    }

    fn of_row(second: i64, events: &[u8]) -> Self {
        let events = events.chunks(8).map(|bytes| bytes.iter().fold(0, |event, byte| event << 8 | u64::from(*byte)));
        Self { second, events: events.collect() }
    }
}

/// Which of these rows a batch needs.
#[derive(Debug, Default)]
pub struct LogNeeds {
    /// Users in groups.
    pub members: BTreeSet<(UserId, GroupId)>,
    /// Groups that channels with names may be.
    pub channels: BTreeSet<GroupId>,
    /// Groups that get messages.
    pub kept: BTreeSet<GroupId>,
}

#[derive(Debug, Default)]
pub struct LogTables {
    members: Table<(UserId, GroupId), Taken>,
    channels: Table<GroupId, Option<String>>,
    /// Of groups of which messages have expired: when the first was sent that is kept.
    kept_from: BTreeMap<GroupId, UnixMs>,
}

impl LogTables {
    /// Loads what is needed.
    pub(crate) async fn load(&mut self, pipeline: &Pipeline, needs: &LogNeeds) -> DbResult<()> {
        if !needs.members.is_empty() {
            let users = needs.members.iter().map(|(user, _)| user.get()).collect();
            let groups = needs.members.iter().map(|(_, group)| group.get()).collect();
            let rows: Vec<MemberRow> = pipeline.fetch(&LOAD_MEMBERS, [Column::Int(users), Column::Int(groups)]).await?;
            self.members.insert_loaded(rows.into_iter().filter_map(member_of_row));
        }
        if !needs.channels.is_empty() {
            let groups = needs.channels.iter().map(|group| group.get()).collect();
            let rows: Vec<(i64, String)> = pipeline.fetch(&LOAD_CHANNELS, [Column::Int(groups)]).await?;
            let row = |(group, channel)| Some((GroupId::try_from(group).ok()?, Some(channel)));
            self.channels.insert_loaded(rows.into_iter().filter_map(row));
        }
        if !needs.kept.is_empty() {
            let groups = needs.kept.iter().map(|group| group.get()).collect();
            let rows: Vec<(i64, i64, i64)> = pipeline.fetch(&LOAD_KEPT, [Column::Int(groups)]).await?;
            self.kept_from = rows.into_iter().filter_map(kept_of_expired).collect();
        }
        Ok(())
    }

    pub(crate) async fn save(&self, conn: &mut Conn) -> DbResult<()> {
        let members: Vec<_> = self.members.changed().collect();
        if !members.is_empty() {
            let columns = [
                Column::Int(members.iter().map(|((user, _), _)| user.get()).collect()),
                Column::Int(members.iter().map(|((_, group), _)| group.get()).collect()),
                Column::Int(members.iter().map(|(_, taken)| taken.second).collect()),
                Column::Bytes(members.iter().map(|(_, taken)| taken.events_data()).collect()),
            ];
            conn.later(&SAVE_MEMBERS, &columns).await?;
        }
        let channels = self.channels.changed().filter_map(|(group, channel)| Some((group.get(), channel.clone()?)));
        let (groups, channels): (Vec<_>, Vec<_>) = channels.unzip();
        if !groups.is_empty() {
            conn.later(&SAVE_CHANNELS, &[Column::Int(groups), Column::Text(channels)]).await?;
        }
        Ok(())
    }

    pub(super) fn taken(&self, user: UserId, group: GroupId) -> Taken {
        self.members.get(&(user, group))
    }

    pub(super) fn set_taken(&mut self, user: UserId, group: GroupId, taken: Taken) {
        self.members.set(&(user, group), taken);
    }

    /// Whether a message of this time, had the group ever had it, would have expired.
    pub(super) fn has_expired(&self, group: GroupId, at: UnixMs) -> bool {
        self.kept_from.get(&group).is_some_and(|from| at < *from)
    }

    /// The name of the channel that a group is.
    pub(super) fn channel(&self, group: GroupId) -> Option<String> {
        self.channels.get(&group)
    }

    pub(super) fn set_channel(&mut self, group: GroupId, channel: &str) {
        self.channels.set(&group, Some(channel.to_owned()));
    }

    /// The command took effect.
    pub(crate) fn settle(&mut self) {
        self.members.settle();
        self.channels.settle();
    }

    /// The command was refused.
    pub(crate) fn undo(&mut self) {
        self.members.undo();
        self.channels.undo();
    }
}

/// A row of [`LOAD_MEMBERS`].
type MemberRow = (i64, i64, i64, Vec<u8>);

fn member_of_row((user, group, second, events): MemberRow) -> Option<((UserId, GroupId), Taken)> {
    let key = (UserId::try_from(user).ok()?, GroupId::try_from(group).ok()?);
    Some((key, Taken::of_row(second, &events)))
}

/// A group of which messages have expired, and when the first was sent that is kept.
fn kept_of_expired((group, seq, at): (i64, i64, i64)) -> Option<(GroupId, UnixMs)> {
    (seq > 1).then_some(())?;
    Some((GroupId::try_from(group).ok()?, UnixMs(at)))
}

/// When the first message of a group was sent that is kept; None where none has expired.
pub(crate) async fn kept_from(db: &Db, group: GroupId) -> DbResult<Option<UnixMs>> {
    let rows: Vec<(i64, i64, i64)> = db.fetch(&LOAD_KEPT, &[Column::Int(vec![group.get()])]).await?;
    Ok(rows.into_iter().find_map(kept_of_expired).map(|(_, at)| at))
}

/// The name of the channel that a group is.
pub(crate) async fn channel_of(db: &Db, group: GroupId) -> DbResult<Option<String>> {
    let rows: Vec<(i64, String)> = db.fetch(&LOAD_CHANNELS, &[Column::Int(vec![group.get()])]).await?;
    Ok(rows.into_iter().next().map(|(_, channel)| channel))
}

/// The group of a channel that was imported before.
pub(crate) async fn find_channel(db: &Db, channel: &str) -> DbResult<Option<GroupId>> {
    let rows: Vec<(i64,)> = db.fetch(&FIND_CHANNEL, &[Column::Text(vec![channel.to_owned()])]).await?;
    Ok(rows.first().and_then(|(group,)| GroupId::try_from(*group).ok()))
}

/// The first id from this one on that no group has; None where there is none.
pub(crate) async fn first_free(db: &Db, mut from: i64) -> DbResult<Option<i64>> {
    loop {
        let rows: Vec<(i64,)> = db.fetch(&NEXT_GROUPS, &[from, IDS_AT_ONCE].map(|value| Column::Int(vec![value]))).await?;
        for (id,) in &rows {
            if *id != from {
                return Ok(Some(from));
            }
            let Some(next) = from.checked_add(1) else { return Ok(None) };
            from = next;
        }
        if rows.len() < usize::try_from(IDS_AT_ONCE).unwrap_or(usize::MAX) {
            return Ok(Some(from));
        }
    }
}

/// Whether a group has this message of a sender.
pub(crate) async fn has_message(db: &Db, group: GroupId, sender: UserId, client: &ClientId) -> DbResult<bool> {
    let ids = [group.get(), sender.get()].map(|id| Column::Int(vec![id]));
    let [group, sender] = ids;
    let rows: Vec<(i64,)> = db.fetch(&FIND_MESSAGE, &[group, sender, Column::Text(vec![client.to_string()])]).await?;
    Ok(!rows.is_empty())
}

/// Whether a group has any message.
pub(crate) async fn has_messages(db: &Db, group: GroupId) -> DbResult<bool> {
    let rows: Vec<(i64,)> = db.fetch(&FIRST_MESSAGE, &[Column::Int(vec![group.get()])]).await?;
    Ok(!rows.is_empty())
}

/// Whether one of these lines is the last one of its user that a group has taken.
pub(crate) async fn has_last_line(db: &Db, group: GroupId, lines: &[Trace]) -> DbResult<bool> {
    let users: BTreeSet<_> = lines.iter().map(|line| line.user).collect();
    if users.is_empty() {
        return Ok(false);
    }
    let columns = [users.iter().map(|user| user.get()).collect(), vec![group.get(); users.len()]].map(Column::Int);
    let rows: Vec<MemberRow> = db.fetch(&LOAD_MEMBERS, &columns).await?;
    let taken: BTreeMap<_, _> = rows.into_iter().filter_map(member_of_row).collect();
    Ok(lines.iter().any(|line| taken.get(&(line.user, group)).is_some_and(|taken| taken.is_last(line))))
}
