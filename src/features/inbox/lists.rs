//! What is read of inboxes outside of batches. `direct_lists.rs` has the direct chats.

use super::ItemOut;
use super::distributed;
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};

/// What comes after a place in a user's inbox. The first row (seq 0) has the head, the user's
/// revision, the first row that is kept (or where it would be) and the epoch: one statement, one
/// moment, so that no row at or below the head can be missing. A group's messages say there who
/// sent them, and what they say.
static READ_INBOX: Statement = Statement::one(
    "select 0 as seq, coalesce(u.inbox_seq, 0) as sender_id, coalesce(u.revision, 0) as peer_id,
        coalesce((select f.seq from inbox f where f.user_id = u.user_id order by f.seq limit 1), u.inbox_seq + 1, 1) as group_id,
        0 as group_seq, 0 as own, 0 as recall, 0 as recalled, e.epoch as client_id, '' as content, 0 as sent_at
    from inbox_epoch e
    left join users u on u.user_id = $1
    where e.id = 1
    union all
    select i.seq, case when i.own = 1 then $1 when i.group_id > 0 then coalesce(g.sender_id, 0) else i.sender_id end,
        coalesce(i.peer_id, 0), i.group_id, i.group_seq, i.own, i.recall,
        case when i.group_id > 0 then coalesce(g.recalled, 1) else i.recalled end,
        coalesce(i.client_id, ''), coalesce(g.content, i.content, ''), case when i.sent_at > 0 then i.sent_at when i.recall = 1 then i.put_at else coalesce(g.sent_at, i.put_at) end
    from (
        select n.seq, n.sender_id, n.peer_id, n.group_id, n.group_seq, n.own, n.recall, n.client_id, n.content, n.put_at, n.sent_at, n.recalled
        from inbox n
        where n.user_id = $1 and n.seq > $2
        order by n.seq
        limit $3
    ) i
    left join group_messages g on g.group_id = i.group_id and g.seq = i.group_seq
    order by 1",
    &[("user_id", Type::Int), ("after", Type::Int), ("max_rows", Type::Int)],
).distributed(distributed::READ_INBOX);

/// How far a device has read; no row for one that has never said so.
static CURSOR: Statement = Statement::one(
    "select d.seq
    from devices d
    where d.user_id = $1 and d.device_id = $2 and d.seq >= 0",
    &[("user_id", Type::Int), ("device_id", Type::Text)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&READ_INBOX, &CURSOR]
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
pub(super) type InboxRow = (i64, i64, i64, i64, i64, i64, i64, i64, String, String, i64);

/// Reads up to `limit` rows after this seq; None where the database has no epoch, which every node
/// makes as it starts.
pub async fn read(db: &Db, user: UserId, after: i64, limit: i64) -> DbResult<Option<Read>> {
    let columns = [user.get(), after, limit].map(|value| Column::Int(vec![value]));
    let mut rows = db.fetch::<InboxRow>(&READ_INBOX, &columns).await?.into_iter();
    let Some((0, head, revision, earliest, .., epoch, _, _)) = rows.next() else { return Ok(None) };
    Ok(Some(Read { epoch, head, revision, earliest, items: rows.filter_map(item_of_row).collect() }))
}

pub(super) fn item_of_row(row: InboxRow) -> Option<ItemOut> {
    let (seq, sender, peer, group, group_seq, own, recall, recalled, client, content, sent_at) = row;
    let (own, is_recall) = (own == 1, recall == 1);
    // What is not there any more is as good as recalled.
    let recalled = recalled == 1 && !is_recall;
    Some(ItemOut {
        seq,
        sender_id: UserId::try_from(sender).ok(),
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

/// How far a device has read the inbox; None for one that is not known.
pub async fn cursor(db: &Db, user: UserId, device: &ClientId) -> DbResult<Option<i64>> {
    let columns = [Column::Int(vec![user.get()]), Column::Text(vec![device.as_str().to_owned()])];
    let rows: Vec<(i64,)> = db.fetch(&CURSOR, &columns).await?;
    Ok(rows.first().map(|(seq,)| *seq))
}
