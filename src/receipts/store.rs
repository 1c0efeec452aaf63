//! What receipts read: the memberships of a group, and who sent a stretch of its messages.

use super::Span;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::groups::Reading;
use crate::ids::{GroupId, UserId};

static SPANS: Statement = Statement::one(
    "select m.ordinal, m.user_id, m.from_seq, m.to_seq, m.read_seq, m.extra
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

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&SPANS, &SENDERS]
}

/// All memberships of a group there ever were, in the order of ordinals.
///
/// # Errors
/// The driver's own.
pub async fn spans(db: &Db, group: GroupId) -> DbResult<Vec<Span>> {
    let rows: Vec<(i64, i64, i64, i64, i64, Vec<u8>)> = db.fetch(&SPANS, &[Column::Int(vec![group.get()])]).await?;
    let span = |(ordinal, user, from_seq, to_seq, read_seq, extra): (i64, i64, i64, i64, i64, Vec<u8>)| {
        let (user, to_seq) = (UserId::try_from(user).ok()?, (to_seq >= 0).then_some(to_seq));
        Some(Span { ordinal, user, from_seq, to_seq, reading: Reading::from_row(read_seq, &extra) })
    };
    Ok(rows.into_iter().filter_map(span).collect())
}

/// Who sent the messages from this one to that one; those that were recalled are left out.
///
/// # Errors
/// The driver's own.
pub async fn senders(db: &Db, group: GroupId, from: i64, to: i64) -> DbResult<Vec<(i64, UserId)>> {
    let columns = [group.get(), from, to].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64, i64)> = db.fetch(&SENDERS, &columns).await?;
    let there = rows.into_iter().filter(|(_, _, recalled)| *recalled == 0);
    Ok(there.filter_map(|(seq, sender, _)| Some((seq, UserId::try_from(sender).ok()?))).collect())
}
