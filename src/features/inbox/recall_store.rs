//! The statements that only recalls need.

use std::collections::{BTreeSet, HashMap};

use super::needs::{Message, SentKey};
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};

static LOAD_MESSAGES: Statement = Statement::new(
    "select i.user_id, i.seq, i.peer_id, i.own, i.client_id, i.other_seq, i.recalled
    from {rows} r
    join inbox i on i.user_id = r.user_id and i.seq = r.seq
    where i.peer_id > 0 and i.recall = 0",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

static RECALL: Statement = Statement::new(
    "update inbox
    set recalled = 1, content = ''
    from {rows} r
    where inbox.user_id = r.user_id and inbox.seq = r.seq",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
pub(super) fn statements() -> [&'static Statement; 2] {
    [&LOAD_MESSAGES, &RECALL]
}

impl Message {
    /// The message as either side has it.
    pub(super) fn sides(&self, user: UserId) -> [SentKey; 2] {
        [(user, self.peer, self.own, self.client.clone()), (self.peer, user, !self.own, self.client.clone())]
    }
}

/// A row of `inbox` that is a direct message: whose and its number, the other side, whether it is
/// own, the sender's id, the number on the other side, and whether it was recalled.
type MessageRow = (i64, i64, i64, i64, String, i64, i64);

/// Loads messages by their places.
pub(super) async fn load_messages(
    pipeline: &Pipeline,
    messages: &BTreeSet<(UserId, UserId, i64)>,
) -> DbResult<HashMap<(UserId, i64), Message>> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let columns =
        [Column::Int(messages.iter().map(|(user, ..)| user.get()).collect()), Column::Int(messages.iter().map(|(.., seq)| *seq).collect())];
    let rows: Vec<MessageRow> = pipeline.fetch(&LOAD_MESSAGES, columns).await?;
    let message = |(user, seq, peer, own, client, other_seq, recalled): MessageRow| {
        let (peer, client) = (UserId::try_from(peer).ok()?, client.parse().ok()?);
        Some(((UserId::try_from(user).ok()?, seq), Message { peer, own: own == 1, client, other_seq, recalled: recalled == 1 }))
    };
    Ok(rows.into_iter().filter_map(message).collect())
}

/// Takes the content out of rows.
pub(super) async fn save(conn: &mut Conn, rows: &[(UserId, i64)]) -> DbResult<()> {
    let columns = [Column::Int(rows.iter().map(|(user, _)| user.get()).collect()), Column::Int(rows.iter().map(|(_, seq)| *seq).collect())];
    conn.later(&RECALL, &columns).await
}
