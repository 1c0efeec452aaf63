//! Recalling direct messages: the rule. `recall_store.rs` has the statements.
//!
//! A recall takes the content out of both sides' rows, and puts a row into both inboxes that tells
//! the devices. Each side's row names the other's (`other_seq`). A row from before it did is found
//! by the id that the sender gave the message.

use super::changes::{append_inbox, set_direct};
use super::needs::Message;
use super::rows::InboxRows;
use super::{Item, Of};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;
use crate::engine::events::{DirectMessageEventOut, Event};
use crate::engine::lanes::{Answer, Rows};

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
    let receiver_seq = if user == peer { seq } else { copy_seq.0 };
    if user != peer {
        recall_copy(rows, user, &message, copy_seq, now);
    }
    let receiver_seq = Some(receiver_seq).filter(|seq| *seq > 0);
    let event = DirectMessageEventOut { sender_id: user, receiver_id: peer, seq: receiver_seq, own_seq: seq, recalled: true };
    rows.event(now, &Event::DirectMessage(event));
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
    append_inbox(rows, user, Item { own: user == sender, of: Of::DirectRecall { peer, peer_seq, seq } }, now);
}

fn not_there(rows: &Rows, user: UserId, peer: UserId, seq: i64, head: i64) -> Problem {
    if seq < rows.get::<InboxRows>().earliest(user, head) && seq <= head {
        return Problem::new(Code::Gone, format!("Item {seq} of the inbox has expired."));
    }
    Problem::new(Code::NotFound, format!("Item {seq} of the inbox is not a message of the chat with user {peer}."))
}
