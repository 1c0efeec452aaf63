//! What receipts read: the memberships of a group, and who sent a stretch of its messages.

use super::spans::Span;
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::marks::Hidden;
use crate::features::groups::Reading;

static SPANS: Statement = Statement::one(
    "select m.ordinal, m.user_id, m.from_seq, m.to_seq, m.read_seq, m.extra, m.hidden
    from memberships m
    where m.group_id = $1
    order by m.group_id, m.ordinal, m.span",
    &[("group_id", Type::Int)],
);

static SENDERS: Statement = Statement::one(
    "select m.seq, m.sender_id, m.recalled
    from group_messages m
    where m.group_id = $1 and m.seq >= $2 and m.seq <= $3
    order by m.group_id, m.seq",
    &[("group_id", Type::Int), ("from_seq", Type::Int), ("to_seq", Type::Int)],
);

/// What the answers about a group's messages depend on beside its memberships. A head's version
/// goes up with each message and each recall, and the changes with each recall alone.
static TERMS: Statement = Statement::one(
    "select g.receipts, g.changes,
        coalesce((select h.head from heads h where h.owner_id = g.group_id and h.kind = 6 and h.name = ''), 0),
        coalesce((select h.version from heads h where h.owner_id = g.group_id and h.kind = 6 and h.name = ''), 0),
        case when g.deleted_by = '' then 0 else 1 end
    from chat_groups g
    where g.group_id = $1",
    &[("group_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&SPANS, &SENDERS, &TERMS]
}

/// What the answers about a group's messages depend on beside its memberships.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Whether the group keeps receipts.
    pub receipts: bool,
    /// How many messages were recalled.
    pub recalls: i64,
    /// How many messages there ever were.
    pub head: i64,
    /// How often the group's stream changed.
    pub version: i64,
    /// Whether the group was deleted.
    pub deleted: bool,
}

/// The terms of a group; None where there is no such group.
pub async fn terms(db: &Db, group: GroupId) -> DbResult<Option<Terms>> {
    let rows: Vec<(i64, i64, i64, i64, i32)> = db.fetch(&TERMS, &[Column::Int(vec![group.get()])]).await?;
    Ok(rows.into_iter().next().map(|(receipts, recalls, head, version, deleted)| Terms {
        receipts: receipts == 1,
        recalls,
        head,
        version,
        deleted: deleted == 1,
    }))
}

/// A row of [`SPANS`].
type SpanRow = (i64, i64, i64, i64, i64, Vec<u8>, String);

/// All memberships of a group there ever were, in the order of ordinals.
pub async fn spans(db: &Db, group: GroupId) -> DbResult<Vec<Span>> {
    let rows: Vec<SpanRow> = db.fetch(&SPANS, &[Column::Int(vec![group.get()])]).await?;
    let span = |(ordinal, user, from_seq, to_seq, read_seq, extra, hidden): SpanRow| {
        let (user, to_seq) = (UserId::try_from(user).ok(), (to_seq >= 0).then_some(to_seq));
        Span { ordinal, user, from_seq, to_seq, reading: Reading::from_row(read_seq, &extra), hidden: Hidden::from_row(&hidden) }
    };
    Ok(rows.into_iter().map(span).collect())
}

/// A message: its seq, who sent it (None: a user that was erased), and whether it was recalled.
pub type Sent = (i64, Option<UserId>, bool);

/// Who sent the messages from this one to that one.
pub async fn senders(db: &Db, group: GroupId, from: i64, to: i64) -> DbResult<Vec<Sent>> {
    let columns = [group.get(), from, to].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64, i64)> = db.fetch(&SENDERS, &columns).await?;
    Ok(rows.into_iter().map(|(seq, sender, recalled)| (seq, UserId::try_from(sender).ok(), recalled != 0)).collect())
}
