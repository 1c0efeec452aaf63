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

/// What is left of rows of a chat with a peer that is erased: their numbers, and whether they are the
/// user's own. A row that told of a recall still does.
static FORGET_PEERS: Statement = Statement::new(
    "update inbox
    set sender_id = case when inbox.own = 1 then inbox.user_id else 0 end,
        peer_id = 0,
        peer_seq = 0,
        client_id = '',
        content = '',
        other_seq = 0,
        recalled = 1 - inbox.recall
    from {rows} r
    where inbox.user_id = r.user_id and inbox.peer_id = r.peer_id and inbox.peer_id > 0 and inbox.seq <= r.up_to",
    &[("user_id", Type::Int), ("peer_id", Type::Int), ("up_to", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
pub(super) fn statements() -> [&'static Statement; 3] {
    [&LOAD_MESSAGES, &RECALL, &FORGET_PEERS]
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

/// Makes tombstones of rows of chats: whose, with whom, and up to which seq.
pub(super) async fn forget_peers(conn: &mut Conn, chats: &[(UserId, UserId, i64)]) -> DbResult<()> {
    let column = |value: fn(&(UserId, UserId, i64)) -> i64| Column::Int(chats.iter().map(value).collect());
    conn.later(&FORGET_PEERS, &[column(|(user, ..)| user.get()), column(|(_, peer, _)| peer.get()), column(|(.., up_to)| *up_to)]).await
}
