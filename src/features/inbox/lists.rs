//! What is read of inboxes and direct chats outside of batches.

use super::distributed;
use super::{Direct, DirectOut, ItemOut};
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};

/// What comes after a place in a user's inbox. The first row (seq 0) has the head, the user's
/// revision, the first row that is kept (or where it would be) and the epoch: one statement, one
/// moment, so that no row at or below the head can be missing. A group's messages say there what
/// they say.
static READ_INBOX: Statement = Statement::one(
    "select 0 as seq, coalesce(u.inbox_seq, 0) as sender_id, coalesce(u.revision, 0) as peer_id,
        coalesce((select f.seq from inbox f where f.user_id = u.user_id order by f.seq limit 1), u.inbox_seq + 1, 1) as group_id,
        0 as group_seq, 0 as own, 0 as recall, 0 as recalled, e.epoch as client_id, '' as content, 0 as sent_at
    from inbox_epoch e
    left join users u on u.user_id = $1
    where e.id = 1
    union all
    select i.seq, i.sender_id, i.peer_id, i.group_id, i.group_seq, i.own, i.recall,
        case when i.group_id > 0 then coalesce(g.recalled, 1) else 0 end,
        i.client_id, coalesce(g.content, i.content), case when i.sent_at > 0 then i.sent_at when i.recall = 1 then i.put_at else coalesce(g.sent_at, i.put_at) end
    from (
        select n.seq, n.sender_id, n.peer_id, n.group_id, n.group_seq, n.own, n.recall, n.client_id, n.content, n.put_at, n.sent_at
        from inbox n
        where n.user_id = $1 and n.seq > $2
        order by n.seq
        limit $3
    ) i
    left join group_messages g on g.group_id = i.group_id and g.seq = i.group_seq
    order by 1",
    &[("user_id", Type::Int), ("after", Type::Int), ("max_rows", Type::Int)],
).distributed(distributed::READ_INBOX);

/// A user's direct chats, the one in which something came last first. The first row (peer 0) has
/// the user's revision.
static LIST_DIRECTS: Statement = Statement::one(
    "select 0 as peer_id, u.revision as head, 0 as mark, 0 as last_seq, 0 as last_at, 0 as muted, 0 as place
    from users u
    where u.user_id = $1
    union all
    select d.peer_id, d.head, d.mark, d.last_seq, d.last_at,
        d.muted + (select count(*) from blocks b where b.user_id = $1 and b.target_id = d.peer_id), 1
    from (
        select n.peer_id, n.head, n.mark, n.last_seq, n.last_at, n.muted
        from directs n
        where n.user_id = $1 and (n.last_seq, n.peer_id) < ($2, $3)
        order by n.last_seq desc, n.peer_id desc
        limit $4
    ) d
    order by place, last_seq desc, peer_id desc",
    &[("user_id", Type::Int), ("before_seq", Type::Int), ("before_peer", Type::Int), ("max_rows", Type::Int)],
);

/// A user's direct chats with something unread.
static UNREAD: Statement = Statement::one(
    "select d.peer_id, d.head, d.mark,
        d.muted + (select count(*) from blocks b where b.user_id = d.user_id and b.target_id = d.peer_id)
    from directs d
    where d.user_id = $1 and d.head > d.mark
    order by d.user_id, d.peer_id
    limit $2",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&READ_INBOX, &LIST_DIRECTS, &UNREAD]
}

/// Some of an inbox, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Which numbering it is in.
    pub epoch: String,
    /// The number of the last row.
    pub head: i64,
    pub revision: i64,
    /// The first row that is kept; one beyond the head where none is.
    pub earliest: i64,
    /// What comes after the place that was asked for.
    pub items: Vec<ItemOut>,
}

/// A row of [`READ_INBOX`].
type InboxRow = (i64, i64, i64, i64, i64, i64, i64, i64, String, String, i64);

/// Reads up to `limit` rows after this seq; None where the database has no epoch, which every node
/// makes as it starts.
pub async fn read(db: &Db, user: UserId, after: i64, limit: i64) -> DbResult<Option<Read>> {
    let columns = [user.get(), after, limit].map(|value| Column::Int(vec![value]));
    let mut rows = db.fetch::<InboxRow>(&READ_INBOX, &columns).await?.into_iter();
    let Some((0, head, revision, earliest, .., epoch, _, _)) = rows.next() else { return Ok(None) };
    Ok(Some(Read { epoch, head, revision, earliest, items: rows.filter_map(item_of_row).collect() }))
}

fn item_of_row(row: InboxRow) -> Option<ItemOut> {
    let (seq, sender, peer, group, group_seq, own, recall, recalled, client, content, sent_at) = row;
    let (own, is_recall) = (own == 1, recall == 1);
    // What is not there any more is as good as recalled.
    let recalled = recalled == 1 && !is_recall;
    Some(ItemOut {
        seq,
        sender_id: UserId::try_from(sender).ok()?,
        peer_id: UserId::try_from(peer).ok(),
        group_id: GroupId::try_from(group).ok(),
        group_seq: Some(group_seq).filter(|_| group > 0 && !is_recall),
        own,
        client_id: client.parse::<ClientId>().ok().filter(|_| own),
        recall: is_recall.then_some(group_seq),
        recalled,
        content: Some(content).filter(|_| !recalled && !is_recall),
        sent_at: UnixMs(sent_at),
    })
}

/// The direct chats in which something is unread, in the order of the peers: peer, how many
/// messages the peer ever sent, how many of them are read, and whether the chat counts in no sum.
pub async fn unread(db: &Db, user: UserId, limit: i64) -> DbResult<Vec<(UserId, i64, i64, bool)>> {
    let rows: Vec<(i64, i64, i64, i64)> = db.fetch(&UNREAD, &[user.get(), limit].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().filter_map(|(peer, head, mark, muted)| Some((UserId::try_from(peer).ok()?, head, mark, muted > 0))).collect())
}

/// Direct chats of a user as of one moment: the user's revision, and the chats.
pub type Directs = (i64, Vec<DirectOut>);

/// Up to `limit` direct chats after this place in the list.
pub async fn directs(db: &Db, user: UserId, before: (i64, i64), limit: i64) -> DbResult<Directs> {
    let columns = [user.get(), before.0, before.1, limit].map(|value| Column::Int(vec![value]));
    let (mut revision, mut chats) = (0, Vec::new());
    for (peer, head, mark, last_seq, last_at, muted, place) in
        db.fetch::<(i64, i64, i64, i64, i64, i64, i32)>(&LIST_DIRECTS, &columns).await?
    {
        if place == 0 {
            revision = head;
        } else if let Ok(peer) = UserId::try_from(peer) {
            let direct = Direct { head, mark, last_seq, last_at: UnixMs(last_at), muted: muted > 0, ..Direct::default() };
            chats.push(DirectOut::new(peer, &direct));
        }
    }
    Ok((revision, chats))
}
