//! What is read of direct chats outside of batches.

use super::lists::{InboxRow, item_of_row};
use super::{DirectOut, ItemOut};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::features::level::LevelUntil;
use crate::features::silence::{Silence, silence_code};

/// A user's direct chats in an order, of which a page is given by a place in it. The first row (peer
/// 0) has the user's revision.
macro_rules! chats {
    ($column:literal, $which:literal) => {
        concat!(
            "select 0 as peer_id, u.revision as unread, 0 as last_seq, 0 as last_at, 0 as read_seq, 0 as first_unread, 0 as level, 0 as until,
            cast(0 as bigint) as silence, 0 as place
        from users u
        where u.user_id = $1
        union all
        select d.peer_id, d.head - d.mark + d.again - d.recalled, d.last_seq, d.last_at, d.read_seq,
            case when d.head - d.mark + d.again - d.recalled > 0 then coalesce((
                select i.seq
                from inbox i
                where i.user_id = $1 and i.peer_id = d.peer_id and i.peer_id > 0 and i.own = 0 and i.recall = 0 and i.recalled = 0
                    and i.seq > case when d.again > 0 then d.unread_from - 1 else d.read_seq end and i.peer_seq > d.mark - d.again
                order by i.seq
                limit 1
            ), 0) else 0 end,
            d.level, d.level_until, ",
            silence_code!("$1", "d.peer_id"),
            ", 1
        from (
            select n.peer_id, n.head, n.mark, n.again, n.recalled, n.unread_from, n.last_seq, n.last_at, n.read_seq, n.level, n.level_until
            from directs n
            where n.user_id = $1 and ",
            $which,
            " and (n.",
            $column,
            ", n.peer_id) < ($2, $3)
            order by n.",
            $column,
            " desc, n.peer_id desc
            limit $4
        ) d
        order by place, ",
            $column,
            " desc, peer_id desc"
        )
    };
}

/// Chats with a message, the one in which one came last first.
static LIST: Statement = Statement::one(
    chats!("last_seq", "n.last_seq > 0"),
    &[("user_id", Type::Int), ("before_seq", Type::Int), ("before_peer", Type::Int), ("max_rows", Type::Int)],
);

/// Chats with a message, the one whose last message was sent last first.
static BY_ACTIVITY: Statement = Statement::one(
    chats!("last_at", "n.last_seq > 0"),
    &[("user_id", Type::Int), ("before_at", Type::Int), ("before_peer", Type::Int), ("max_rows", Type::Int)],
);

/// Of these, only chats with something unread.
static UNREAD_BY_ACTIVITY: Statement = Statement::one(
    chats!("last_at", "n.last_seq > 0 and n.head - n.mark + n.again - n.recalled > 0"),
    &[("user_id", Type::Int), ("before_at", Type::Int), ("before_peer", Type::Int), ("max_rows", Type::Int)],
);

/// One chat in the same way. There need be no row of it.
static ONE: Statement = Statement::one(
    concat!(
        "select cast($2 as bigint) as peer_id, coalesce(u.revision, 0) as unread, 0 as last_seq, 0 as last_at, 0 as read_seq,
        0 as first_unread, 0 as level, 0 as until, ",
        silence_code!("$1", "$2"),
        " as silence, 0 as place
    from (select 1 as one) o
    left join users u on u.user_id = $1
    union all
    select d.peer_id, d.head - d.mark + d.again - d.recalled, d.last_seq, d.last_at, d.read_seq,
        case when d.head - d.mark + d.again - d.recalled > 0 then coalesce((
            select i.seq
            from inbox i
            where i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.own = 0 and i.recall = 0 and i.recalled = 0
                and i.seq > case when d.again > 0 then d.unread_from - 1 else d.read_seq end and i.peer_seq > d.mark - d.again
            order by i.seq
            limit 1
        ), 0) else 0 end,
        d.level, d.level_until, 0, 1
    from directs d
    where d.user_id = $1 and d.peer_id = $2
    order by place"
    ),
    &[("user_id", Type::Int), ("peer_id", Type::Int)],
);

/// A user's direct chats with something unread.
static UNREAD: Statement = Statement::one(
    concat!(
        "select d.peer_id, d.head, d.mark - d.again, d.recalled, d.level, d.level_until, ",
        silence_code!("d.user_id", "d.peer_id"),
        "
    from directs d
    where d.user_id = $1 and d.head - d.mark + d.again - d.recalled > 0
    order by d.user_id, d.peer_id
    limit $2"
    ),
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// A user's direct chats that are not read to their end, also where what is left was recalled.
static TO_READ: Statement = Statement::one(
    "select d.peer_id
    from directs d
    where d.user_id = $1 and (d.last_seq > d.read_seq or d.again > 0)
    order by d.user_id, d.peer_id
    limit $2",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// The messages of a chat after a place in the user's inbox.
static AFTER: Statement = Statement::one(
    "select i.seq, i.sender_id, i.peer_id, i.group_id, i.group_seq, i.own, i.recall, i.recalled, i.client_id, i.content, i.sent_at
    from inbox i
    where i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.seq > $3 and i.recall = 0
    order by i.seq
    limit $4",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("after", Type::Int), ("max_rows", Type::Int)],
);

/// The messages of a chat before a place in the user's inbox, the last first.
static BEFORE: Statement = Statement::one(
    "select i.seq, i.sender_id, i.peer_id, i.group_id, i.group_seq, i.own, i.recall, i.recalled, i.client_id, i.content, i.sent_at
    from inbox i
    where i.user_id = $1 and i.peer_id = $2 and i.peer_id > 0 and i.seq < $3 and i.recall = 0
    order by i.seq desc
    limit $4",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("before", Type::Int), ("max_rows", Type::Int)],
);

/// Rows of the user's inbox by their numbers.
static MESSAGES_AT: Statement = Statement::new(
    "select i.seq, i.sender_id, i.peer_id, i.group_id, i.group_seq, i.own, i.recall, i.recalled, i.client_id, i.content, i.sent_at
    from {rows} r
    join inbox i on i.user_id = r.user_id and i.seq = r.seq",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

/// The first row of an inbox that is kept, or where it would be, and the head.
static KEPT: Statement = Statement::one(
    "select coalesce((select i.seq from inbox i where i.user_id = u.user_id order by i.seq limit 1), u.inbox_seq + 1), u.inbox_seq
    from users u
    where u.user_id = $1",
    &[("user_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 10] {
    [&LIST, &BY_ACTIVITY, &UNREAD_BY_ACTIVITY, &MESSAGES_AT, &ONE, &UNREAD, &TO_READ, &AFTER, &BEFORE, &KEPT]
}

/// A row of [`LIST`] and [`ONE`].
type ChatRow = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i32);

/// Direct chats of a user as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directs {
    /// The user's revision.
    pub revision: i64,
    pub chats: Vec<DirectOut>,
}

/// A chat without a row has only what a block or a mute makes of it.
fn chat(row: ChatRow, now: UnixMs) -> Option<DirectOut> {
    let (peer, unread, last_seq, last_at, read_seq, first_unread, level, until, silence, _) = row;
    let level = Silence::from_code(silence).over(LevelUntil::from_row(level, until));
    let (level, level_until) = (level.at(now), level.ends_at(now));
    Some(DirectOut {
        peer_id: UserId::try_from(peer).ok()?,
        unread,
        last_seq,
        read_seq,
        first_unread_seq: Some(first_unread).filter(|seq| *seq > 0),
        last_at: Some(UnixMs(last_at)).filter(|_| last_seq > 0),
        level: level.into(),
        level_until,
    })
}

/// Up to `limit` direct chats after this place in the list.
pub async fn list(db: &Db, user: UserId, before: (i64, i64), limit: i64, now: UnixMs) -> DbResult<Directs> {
    chats(db, &LIST, user, before, limit, now).await
}

/// Up to `limit` chats with a message after this time and peer, the latest first.
pub async fn by_activity(db: &Db, user: UserId, before: (i64, i64), limit: i64, now: UnixMs) -> DbResult<Directs> {
    chats(db, &BY_ACTIVITY, user, before, limit, now).await
}

/// The same without chats that have nothing unread.
pub async fn unread_by_activity(db: &Db, user: UserId, before: (i64, i64), limit: i64, now: UnixMs) -> DbResult<Directs> {
    chats(db, &UNREAD_BY_ACTIVITY, user, before, limit, now).await
}

async fn chats(db: &Db, statement: &'static Statement, user: UserId, before: (i64, i64), limit: i64, now: UnixMs) -> DbResult<Directs> {
    let columns = [user.get(), before.0, before.1, limit].map(|value| Column::Int(vec![value]));
    let mut found = Directs::default();
    for row in db.fetch::<ChatRow>(statement, &columns).await? {
        if row.9 == 0 {
            found.revision = row.1;
        } else {
            found.chats.extend(chat(row, now));
        }
    }
    Ok(found)
}

/// One direct chat.
pub async fn one(db: &Db, user: UserId, peer: UserId, now: UnixMs) -> DbResult<Directs> {
    let columns = [user.get(), peer.get()].map(|value| Column::Int(vec![value]));
    let mut rows = db.fetch::<ChatRow>(&ONE, &columns).await?.into_iter();
    let Some(first) = rows.next() else { return Ok(Directs::default()) };
    let (id, silence) = (first.0, first.8);
    let row = rows.next().unwrap_or((id, 0, 0, 0, 0, 0, 0, 0, 0, 1));
    let row = (row.0, row.1, row.2, row.3, row.4, row.5, row.6, row.7, silence, row.9);
    Ok(Directs { revision: first.1, chats: chat(row, now).into_iter().collect() })
}

/// A direct chat with something unread, as its row counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadDirect {
    pub peer: UserId,
    /// How many messages the peer ever sent.
    pub head: i64,
    /// The mark that counts.
    pub mark: i64,
    /// How many messages above it were recalled.
    pub recalled: i64,
    /// The level by which it counts.
    pub level: LevelUntil,
}

/// The direct chats in which something is unread, in the order of the peers.
pub async fn unread(db: &Db, user: UserId, limit: i64) -> DbResult<Vec<UnreadDirect>> {
    let columns = [user.get(), limit].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64, i64, i64, i64, i64, i64)> = db.fetch(&UNREAD, &columns).await?;
    let chat = |(peer, head, mark, recalled, level, until, silence): (i64, i64, i64, i64, i64, i64, i64)| {
        let level = Silence::from_code(silence).over(LevelUntil::from_row(level, until));
        Some(UnreadDirect { peer: UserId::try_from(peer).ok()?, head, mark, recalled, level })
    };
    Ok(rows.into_iter().filter_map(chat).collect())
}

/// The peers of the direct chats that are not read to their end, in their order.
pub async fn to_read(db: &Db, user: UserId, limit: i64) -> DbResult<Vec<UserId>> {
    let rows: Vec<(i64,)> = db.fetch(&TO_READ, &[user.get(), limit].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().filter_map(|(peer,)| UserId::try_from(peer).ok()).collect())
}

async fn messages(db: &Db, statement: &'static Statement, numbers: [i64; 4]) -> DbResult<Vec<ItemOut>> {
    let rows: Vec<InboxRow> = db.fetch(statement, &numbers.map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().filter_map(item_of_row).collect())
}

/// Rows of a user's inbox by their numbers, where they are kept.
pub async fn messages_at(db: &Db, user: UserId, seqs: &[i64]) -> DbResult<Vec<ItemOut>> {
    let columns = [vec![user.get(); seqs.len()], seqs.to_vec()].map(Column::Int);
    let rows: Vec<InboxRow> = db.fetch(&MESSAGES_AT, &columns).await?;
    Ok(rows.into_iter().filter_map(item_of_row).collect())
}

/// Up to so many messages of a chat after a row of the user's inbox.
pub async fn after(db: &Db, user: UserId, peer: UserId, seq: i64, limit: i64) -> DbResult<Vec<ItemOut>> {
    messages(db, &AFTER, [user.get(), peer.get(), seq, limit]).await
}

/// Up to so many messages of a chat before a row of the user's inbox, the last first.
pub async fn before(db: &Db, user: UserId, peer: UserId, seq: i64, limit: i64) -> DbResult<Vec<ItemOut>> {
    messages(db, &BEFORE, [user.get(), peer.get(), seq, limit]).await
}

/// The first row of a user's inbox that is kept, or where it would be, and the head.
pub async fn kept(db: &Db, user: UserId) -> DbResult<(i64, i64)> {
    let rows: Vec<(i64, i64)> = db.fetch(&KEPT, &[Column::Int(vec![user.get()])]).await?;
    Ok(rows.first().copied().unwrap_or((1, 0)))
}
