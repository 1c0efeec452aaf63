//! What is read of groups beside the batches of lanes: who may see one, its members, its messages.

use super::distributed;
use super::history::{FoundMessages, Stretch};
use super::message_store::{LOAD_MESSAGES, MessageRow, message_of_row};
use super::refused::{deleted, unknown};
use super::{Delivery, Group, MemberOut, Message};
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::marks::Intervals;

/// A group with its head, and the seq after which a user is a member; -1: the user is no member. The
/// `+` makes SQLite look that up by the group, instead of reading all groups of the user.
static VIEW: Statement = Statement::one(
    "select g.delivery, g.receipts, g.members, g.ordinals, g.jobs, g.created_at,
        coalesce((select h.head from heads h where h.owner_id = g.group_id and h.kind = 6 and h.name = ''), 0),
        coalesce((select m.from_seq from memberships m where m.user_id = $2 and m.group_id = g.group_id and +m.to_seq < 0), -1),
        g.changes, case when g.deleted_by = '' then 0 else 1 end
    from chat_groups g
    where g.group_id = $1",
    &[("group_id", Type::Int), ("user_id", Type::Int)],
)
.distributed(distributed::VIEW);

static MEMBERS: Statement = Statement::one(
    "select m.user_id, m.ordinal, m.joined_at
    from memberships m
    where m.group_id = $1 and m.ordinal > $2 and m.to_seq < 0
    order by m.group_id, m.ordinal
    limit $3",
    &[("group_id", Type::Int), ("ordinal", Type::Int), ("max_rows", Type::Int)],
);

static MESSAGES: Statement = Statement::one(
    "select m.group_id, m.seq, m.sender_id, m.client_id, m.content, m.sent_at, m.recalled, m.written
    from group_messages m
    where m.group_id = $1 and m.seq > $2 and m.seq <= $3
    order by m.group_id, m.seq
    limit $4",
    &[("group_id", Type::Int), ("after", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int)],
);

/// The same downwards.
static MESSAGES_DOWN: Statement = Statement::one(
    "select m.group_id, m.seq, m.sender_id, m.client_id, m.content, m.sent_at, m.recalled, m.written
    from group_messages m
    where m.group_id = $1 and m.seq > $2 and m.seq <= $3
    order by m.group_id desc, m.seq desc
    limit $4",
    &[("group_id", Type::Int), ("after", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int)],
);

/// What was recalled in a stretch of a group; before it where it begins to be kept, as of the same
/// moment.
static GONE: Statement = Statement::one(
    "select * from (
        select cast(0 as bigint) as recalled, coalesce((select f.seq from group_messages f where f.group_id = $1 order by f.seq limit 1), $3 + 1) as seq
    ) first
    union all
    select * from (
        select m.recalled, m.seq
        from group_messages m
        where m.group_id = $1 and m.seq > $2 and m.seq <= $3 and m.recalled = 1
        order by m.group_id, m.seq
    ) recalled",
    &[("group_id", Type::Int), ("after", Type::Int), ("up_to", Type::Int)],
);

/// What mentions all in a stretch of a group.
static MENTION_ALL: Statement = Statement::one(
    "select m.seq
    from group_messages m
    where m.group_id = $1 and m.seq > $2 and m.seq <= $3 and m.mention_all = 1
    order by m.group_id, m.seq",
    &[("group_id", Type::Int), ("after", Type::Int), ("up_to", Type::Int)],
);

static EARLIEST: Statement = Statement::one(
    "select coalesce(
        (select m.seq from group_messages m where m.group_id = $1 order by m.seq limit 1),
        (select h.head + 1 from heads h where h.owner_id = $1 and h.kind = 6 and h.name = ''),
        1
    )",
    &[("group_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 7] {
    [&VIEW, &MEMBERS, &MESSAGES, &MESSAGES_DOWN, &GONE, &MENTION_ALL, &EARLIEST]
}

/// A group as somebody sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub group: Group,
    /// How many messages there ever were.
    pub head: i64,
    /// The head at which the viewer's membership began; None where there is none.
    pub since: Option<i64>,
}

/// A row of [`VIEW`].
type ViewRow = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i32);

/// Reads a group for somebody; None where there is no such group.
pub async fn view(db: &Db, group: GroupId, viewer: Option<UserId>) -> DbResult<Option<View>> {
    let columns = Column::one_row(&[group.get(), viewer.map_or(0, UserId::get)]);
    let rows: Vec<ViewRow> = db.fetch(&VIEW, &columns).await?;
    let row = |(delivery, receipts, members, ordinals, jobs, created_at, head, since, changes, deleted): ViewRow| {
        let delivery = if delivery == 1 { Delivery::Write } else { Delivery::Read };
        let group = Group {
            delivery,
            receipts: receipts == 1,
            members,
            ordinals,
            jobs,
            created_at: UnixMs(created_at),
            changes,
            deleted: deleted == 1,
        };
        View { group, head, since: (since >= 0).then_some(since) }
    };
    Ok(rows.into_iter().next().map(row))
}

/// The same of a group that is there.
///
/// # Errors
/// 404 where there is no such group, 410 where it was deleted.
pub async fn view_known(db: &Db, group: GroupId, viewer: Option<UserId>) -> Result<View> {
    let view = view(db, group, viewer).await?.ok_or_else(|| unknown(group))?;
    if view.group.deleted { Err(deleted(group).into()) } else { Ok(view) }
}

/// The members after an ordinal.
pub async fn members(db: &Db, group: GroupId, after: i64, max_rows: i64) -> DbResult<Vec<MemberOut>> {
    let rows: Vec<(i64, i64, i64)> = db.fetch(&MEMBERS, &Column::one_row(&[group.get(), after, max_rows])).await?;
    let row = |(user, ordinal, joined_at): (i64, i64, i64)| {
        Some(MemberOut { user_id: UserId::try_from(user).ok()?, ordinal, joined_at: UnixMs(joined_at) })
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

/// The first messages of a stretch, in their order.
pub async fn messages(db: &Db, group: GroupId, stretch: Stretch) -> DbResult<FoundMessages> {
    read_messages(db, &MESSAGES, group, stretch).await
}

/// The last messages of a stretch, the newest first.
pub async fn messages_down(db: &Db, group: GroupId, stretch: Stretch) -> DbResult<FoundMessages> {
    read_messages(db, &MESSAGES_DOWN, group, stretch).await
}

async fn read_messages(db: &Db, statement: &'static Statement, group: GroupId, stretch: Stretch) -> DbResult<FoundMessages> {
    let columns = Column::one_row(&[group.get(), stretch.above, stretch.up_to, stretch.rows()]);
    let rows: Vec<MessageRow> = db.fetch(statement, &columns).await?;
    Ok(rows.into_iter().filter_map(message_of_row).map(|((_, seq), message)| (seq, message)).collect())
}

/// Messages by their groups and numbers, where they are kept.
pub async fn messages_at(db: &Db, at: &[(GroupId, i64)]) -> DbResult<Vec<(GroupId, i64, Message)>> {
    let columns = [at.iter().map(|(group, _)| group.get()).collect(), at.iter().map(|(_, seq)| *seq).collect()].map(Column::Int);
    let rows: Vec<MessageRow> = db.fetch(&LOAD_MESSAGES, &columns).await?;
    Ok(rows.into_iter().filter_map(message_of_row).map(|((group, seq), message)| (group, seq, message)).collect())
}

/// The positions after a seq and up to another whose messages were recalled or have expired.
pub async fn gone(db: &Db, group: GroupId, after: i64, up_to: i64) -> DbResult<Intervals> {
    let rows: Vec<(i64, i64)> = db.fetch(&GONE, &Column::one_row(&[group.get(), after, up_to])).await?;
    let mut gone = Intervals::default();
    for (recalled, seq) in rows {
        if recalled == 1 { gone.insert(seq, seq) } else { gone.insert(after + 1, up_to.min(seq - 1)) }
    }
    Ok(gone)
}

/// The messages after a seq and up to another that mention all.
pub async fn mention_all(db: &Db, group: GroupId, after: i64, up_to: i64) -> DbResult<Intervals> {
    let rows: Vec<(i64,)> = db.fetch(&MENTION_ALL, &Column::one_row(&[group.get(), after, up_to])).await?;
    let mut all = Intervals::default();
    rows.into_iter().for_each(|(seq,)| all.insert(seq, seq));
    Ok(all)
}

/// The first message of a group that is kept; one beyond the head where none is.
pub async fn earliest(db: &Db, group: GroupId) -> DbResult<i64> {
    let rows: Vec<(i64,)> = db.fetch(&EARLIEST, &Column::one_row(&[group.get()])).await?;
    Ok(rows.first().map_or(1, |(seq,)| *seq))
}
