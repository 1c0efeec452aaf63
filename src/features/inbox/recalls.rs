//! Recalling direct messages: the rule, and the statements that only it needs.
//!
//! A recall takes the content out of both sides' rows, and puts a row into both inboxes that tells
//! the devices. Each side's row names the other's (`other_seq`). A row from before it did is found
//! by the id that the sender gave the message.

use std::collections::{BTreeSet, HashMap};

use super::changes::{append_inbox, set_direct};
use super::needs::Message;
use super::rows::InboxRows;
use super::{Item, Of, SentKey};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::lanes::{Answer, Rows};

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

/// A user recalls one of its messages.
pub(super) fn recall(rows: &mut Rows, user: UserId, peer: UserId, seq: i64, now: UnixMs) -> Result<Answer, Problem> {
    let head = rows.user(user).inbox_seq;
    let Some(message) = rows.get::<InboxRows>().message(user, seq).filter(|message| message.peer == peer) else {
        return Err(not_there(rows, user, peer, seq, head));
    };
    if !message.own {
        return Err(Problem::new(Code::Forbidden, "Only the sender can recall a message."));
    }
    if message.recalled {
        return Ok(Answer::no_content());
    }
    // Found before anything changes: a row without the number of its copy is the last with its id.
    let copy_seq = copy_of(rows, user, seq, &message);
    rows.get_mut::<InboxRows>().recall(user, seq, &message);
    tell(rows, user, user, peer, seq, now);
    if user != peer {
        recall_copy(rows, user, &message, copy_seq, now);
    }
    Ok(Answer::no_content())
}

/// The receiver's row of a message, if it is known and kept, and the number that it has there.
fn copy_of(rows: &Rows, user: UserId, seq: i64, message: &Message) -> (i64, Option<i64>) {
    let inbox = rows.get::<InboxRows>();
    let [own, copy] = message.sides(user).map(|key| inbox.sent(&key));
    let is_last = own.is_some_and(|own| own.seq == seq);
    match copy {
        Some(copy) if message.other_seq == copy.seq || (message.other_seq == 0 && is_last) => (copy.seq, Some(copy.peer_seq)),
        _ => (message.other_seq, None),
    }
}

/// The receiver's side: the message counts no longer.
fn recall_copy(rows: &mut Rows, user: UserId, message: &Message, (seq, peer_seq): (i64, Option<i64>), now: UnixMs) {
    let receiver = message.peer;
    let mut direct = rows.get::<InboxRows>().direct(receiver, user);
    match peer_seq {
        Some(peer_seq) => {
            direct.recall(peer_seq);
            let copy = Message { peer: user, own: false, other_seq: 0, recalled: false, client: message.client.clone() };
            rows.get_mut::<InboxRows>().recall(receiver, seq, &copy);
        }
        None => direct.recall_expired(seq),
    }
    set_direct(rows, receiver, user, direct, now);
    // A device may hold the message also where the row has expired.
    if seq > 0 {
        tell(rows, receiver, user, user, seq, now);
    }
}

/// Puts a row into an inbox that tells the devices of its user.
fn tell(rows: &mut Rows, user: UserId, sender: UserId, peer: UserId, seq: i64, now: UnixMs) {
    let peer_seq = rows.get::<InboxRows>().direct(user, peer).head;
    append_inbox(rows, user, Item { sender, own: user == sender, of: Of::DirectRecall { peer, peer_seq, seq } }, now);
}

fn not_there(rows: &Rows, user: UserId, peer: UserId, seq: i64, head: i64) -> Problem {
    if seq < rows.get::<InboxRows>().earliest(user, head) && seq <= head {
        return Problem::new(Code::Gone, format!("Item {seq} of the inbox has expired."));
    }
    Problem::new(Code::NotFound, format!("Item {seq} of the inbox is not a message of the chat with user {peer}."))
}
