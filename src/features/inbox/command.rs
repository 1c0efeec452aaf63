//! What is written to inboxes, direct chats and devices: the commands, and the rule of each over
//! the rows of a batch.

use std::sync::Arc;

use super::device_rules::{delete, forget, put_cursor, put_push};
use super::recalls::recall;
use super::timed::MAX_TIMED_CHATS;
use super::{Direct, DirectSettingsOut, Item, MAX_EMPTY_CHATS, Of, ReadDirectOut, SentOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, UserId};
use crate::engine::events::{DirectMessageEventOut, Event};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::pairs::{Pair, need_named, need_pair_seen};
use crate::features::inbox::changes::{append_inbox, set_direct};
use crate::features::inbox::devices::DeviceRows;
use crate::features::inbox::rows::InboxRows;
use crate::features::level::LevelUntil;
use crate::features::push;

/// A write to inboxes, direct chats or devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxCommand {
    Send {
        /// To whom.
        receiver: UserId,
        /// From whom.
        sender: UserId,
        /// The id that the sender gave it.
        client: ClientId,
        content: Arc<str>,
    },
    /// A user has read a direct chat.
    Read {
        user: UserId,
        /// The other side.
        peer: UserId,
        /// Up to which row of the user's inbox; None: all that is there.
        up_to: Option<i64>,
    },
    /// A user has messages of a direct chat show as unread again.
    Unread {
        user: UserId,
        /// The other side.
        peer: UserId,
        /// From which row of the user's inbox on.
        from: i64,
    },
    /// A user recalls one of its direct messages.
    Recall {
        user: UserId,
        /// The other side.
        peer: UserId,
        /// Its number in the user's inbox.
        seq: i64,
    },
    /// A user decides whether sums count a direct chat.
    SetLevel {
        user: UserId,
        /// The other side.
        peer: UserId,
        level: LevelUntil,
    },
    /// A device has read the inbox up to a row.
    PutCursor {
        /// Whose device.
        user: UserId,
        device: ClientId,
        /// Up to which row.
        seq: i64,
    },
    /// A device wants services to hear of every change of the user's numbers, or no longer.
    PutPush {
        /// Whose device.
        user: UserId,
        device: ClientId,
        push: bool,
    },
    /// A device is gone.
    DeleteDevice {
        /// Whose device.
        user: UserId,
        device: ClientId,
    },
    /// A device goes that was not seen since.
    ForgetDevice {
        /// Whose device.
        user: UserId,
        device: ClientId,
        before: UnixMs,
    },
    /// The oldest rows of an inbox go.
    Expire {
        user: UserId,
        /// Up to which row.
        up_to: i64,
        /// How many rows that is at most.
        rows: u32,
        /// What a device that was seen since then has not read yet stays.
        seen_since: UnixMs,
    },
}

/// What sending looks at.
pub(super) fn needs_of_send(needs: &mut Needs, receiver: UserId, sender: UserId, client: &ClientId) {
    needs.user(receiver);
    needs.user(sender);
    if receiver != sender {
        need_pair_seen(needs, Pair { follower: receiver, followee: sender });
    }
    needs.of::<InboxRows>().directs.extend([(receiver, sender), (sender, receiver)]);
    needs.of::<InboxRows>().sent.extend([(receiver, sender, false, client.clone()), (sender, receiver, true, client.clone())]);
}

impl lanes::Command for InboxCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Send { receiver, sender, client, .. } => needs_of_send(needs, *receiver, *sender, client),
            Self::Read { user, peer, up_to } => {
                needs.user(*user);
                need_named(needs, *peer);
                needs.of::<InboxRows>().directs.insert((*user, *peer));
                needs.of::<InboxRows>().places.extend(up_to.map(|up_to| (*user, *peer, up_to)));
            }
            Self::Unread { user, peer, from } => {
                needs.user(*user);
                need_named(needs, *peer);
                let inbox = needs.of::<InboxRows>();
                inbox.directs.insert((*user, *peer));
                inbox.places.insert((*user, *peer, from - 1));
                inbox.earliest.insert(*user);
            }
            Self::Recall { user, peer, seq } => {
                needs.user(*user);
                needs.user(*peer);
                let inbox = needs.of::<InboxRows>();
                inbox.directs.extend([(*user, *peer), (*peer, *user)]);
                inbox.messages.insert((*user, *peer, *seq));
                inbox.earliest.insert(*user);
            }
            Self::SetLevel { user, peer, .. } => {
                needs.user(*user);
                need_named(needs, *peer);
                let inbox = needs.of::<InboxRows>();
                inbox.directs.insert((*user, *peer));
                inbox.empty_chats.insert(*user);
                inbox.timed.insert(*user);
            }
            Self::PutCursor { user, .. }
            | Self::PutPush { user, .. }
            | Self::DeleteDevice { user, .. }
            | Self::ForgetDevice { user, .. } => {
                needs.user(*user);
                needs.of::<DeviceRows>().insert(*user);
            }
            Self::Expire { user, up_to, .. } => {
                needs.user(*user);
                needs.of::<DeviceRows>().insert(*user);
                let most = needs.of::<InboxRows>().oldest.entry(*user).or_default();
                *most = (*most).max(*up_to);
            }
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Send { receiver: user, .. }
            | Self::Read { user, .. }
            | Self::Unread { user, .. }
            | Self::Recall { user, .. }
            | Self::SetLevel { user, .. }
            | Self::PutCursor { user, .. }
            | Self::PutPush { user, .. }
            | Self::DeleteDevice { user, .. }
            | Self::ForgetDevice { user, .. }
            | Self::Expire { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Send { receiver, sender, .. } => vec![in_path(*receiver), (*sender, "/sender_id".to_owned())],
            Self::Read { user, peer, .. }
            | Self::Unread { user, peer, .. }
            | Self::Recall { user, peer, .. }
            | Self::SetLevel { user, peer, .. } => vec![in_path(*user), in_path(*peer)],
            Self::PutCursor { user, .. } | Self::PutPush { user, .. } | Self::DeleteDevice { user, .. } => vec![in_path(*user)],
            Self::ForgetDevice { .. } | Self::Expire { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Send { .. } | Self::Recall { .. } => 2,
            Self::Expire { rows, .. } => (*rows).max(1),
            _ => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Send { receiver, sender, client, content } => {
                let (sent, new) = send(rows, *receiver, *sender, Text { client, content, sent_at: now, is_late: false }, now)?;
                if !new {
                    return Ok(Answer::ok(sent));
                }
                let (seq, own_seq) = (Some(sent.seq), sent.own_seq.unwrap_or_default());
                let event = DirectMessageEventOut { sender_id: *sender, receiver_id: *receiver, seq, own_seq, recalled: false };
                rows.event(now, &Event::DirectMessage(event));
                Ok(Answer::created(sent))
            }
            Self::Read { user, peer, up_to } => Ok(Answer::ok(read(rows, *user, *peer, *up_to, now))),
            Self::Unread { user, peer, from } => Ok(Answer::ok(unread(rows, *user, *peer, *from, now)?)),
            Self::Recall { user, peer, seq } => recall(rows, *user, *peer, *seq, now),
            Self::SetLevel { user, peer, level } => Ok(Answer::ok(set_level(rows, *user, *peer, *level, now)?)),
            Self::PutCursor { user, device, seq } => Ok(Answer::ok(put_cursor(rows, *user, device, *seq, now)?)),
            Self::PutPush { user, device, push } => Ok(Answer::ok(put_push(rows, *user, device, *push, now)?)),
            Self::DeleteDevice { user, device } => {
                delete(rows, *user, device, now)?;
                Ok(Answer::no_content())
            }
            Self::ForgetDevice { user, device, before } => Ok(Answer::ok(forget(rows, *user, device, *before, now))),
            Self::Expire { user, up_to, seen_since, .. } => {
                expire(rows, *user, *up_to, *seen_since);
                Ok(Answer::no_content())
            }
        }
    }
}

/// The one place where it is asked whether a receiver has blocked a sender. The pair is locked for
/// others who change it, so a block that was acknowledged is seen.
fn refuse_if_blocked(rows: &Rows, receiver: UserId, sender: UserId) -> Result<(), Problem> {
    if rows.get::<InboxRows>().is_blocked(receiver, sender) {
        return Err(Problem::new(Code::Blocked, "The receiver does not accept messages from this sender."));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    /// The id that its sender gave it.
    pub(super) client: &'a ClientId,
    pub(super) content: &'a Arc<str>,
    /// When it was sent.
    pub(super) sent_at: UnixMs,
    /// Whether it was written before what the chat already has, and is added late: then its sender has
    /// read nothing by it.
    pub(super) is_late: bool,
}

/// A message is found again by its sender's id for as long as its row is kept: then nothing
/// changes, and the answer is the first one's. Returns it, and whether the message is new.
pub(super) fn send(rows: &mut Rows, receiver: UserId, sender: UserId, text: Text<'_>, now: UnixMs) -> Result<(SentOut, bool), Problem> {
    let Text { client, content, sent_at, is_late } = text;
    let own = |rows: &Rows| rows.get::<InboxRows>().sent(&(sender, receiver, true, client.clone()));
    let to_oneself = receiver == sender;
    if let Some(sent) = rows.get::<InboxRows>().sent(&(receiver, sender, to_oneself, client.clone())) {
        if sent.recalled {
            return Err(Problem::new(Code::Gone, "The message with this client_id was recalled."));
        }
        let own_seq = own(rows).map(|own| own.seq);
        return Ok((SentOut { seq: sent.seq, own_seq, sent_at: sent.at, revision: rows.revision(sender) }, false));
    }
    refuse_if_blocked(rows, receiver, sender)?;
    let [seq, own_seq] = [receiver, sender].map(|user| rows.user(user).inbox_seq + 1);
    let item = |peer, peer_seq, own, other_seq| {
        let (client, content) = (client.clone(), Arc::clone(content));
        Item { own, of: Of::Direct { peer, peer_seq, client, content, sent_at, other_seq, recalled: false } }
    };
    if !to_oneself {
        let theirs = rows.get::<InboxRows>().direct(receiver, sender);
        let head = theirs.head + 1;
        append_inbox(rows, receiver, item(sender, head, false, own_seq), now);
        let last_at = theirs.last_at.max(sent_at);
        set_direct(rows, receiver, sender, Direct { head, last_seq: seq, last_at, ..theirs }, now);
    }
    // To oneself there is one row, which is nobody's to be told of.
    let mut mine = rows.get::<InboxRows>().direct(sender, receiver);
    append_inbox(rows, sender, item(receiver, mine.head, true, if to_oneself { 0 } else { seq }), now);
    (mine.last_seq, mine.last_at) = (own_seq, mine.last_at.max(sent_at));
    // A sender has read what came before.
    if !is_late {
        mine.read(mine.end(), own_seq);
    }
    set_direct(rows, sender, receiver, mine, now);
    Ok((SentOut { seq, own_seq: Some(own_seq), sent_at, revision: rows.revision(sender) }, true))
}

fn read(rows: &mut Rows, user: UserId, peer: UserId, up_to: Option<i64>, now: UnixMs) -> ReadDirectOut {
    let mut direct = rows.get::<InboxRows>().direct(user, peer);
    let head = rows.user(user).inbox_seq;
    let up_to = up_to.map_or(head, |up_to| up_to.min(head));
    let place = if up_to == head { direct.end() } else { rows.get::<InboxRows>().place(user, peer, up_to) };
    direct.read(place, up_to);
    set_direct(rows, user, peer, direct, now);
    shown(rows, user, peer)
}

/// Unread again: marks and receipts stay as they are.
fn unread(rows: &mut Rows, user: UserId, peer: UserId, from: i64, now: UnixMs) -> Result<ReadDirectOut, Problem> {
    let mut direct = rows.get::<InboxRows>().direct(user, peer);
    let head = rows.user(user).inbox_seq;
    if from > head || direct.last_seq == 0 {
        return Err(Problem::new(Code::NotFound, format!("Item {from} of the inbox does not exist in the chat with user {peer}.")));
    }
    let earliest = rows.get::<InboxRows>().earliest(user, head);
    if from < earliest {
        let detail = format!("Inbox items before {earliest} have expired.");
        return Err(Problem::new(Code::CursorExpired, detail).kept_from(earliest));
    }
    direct.unread_again(rows.get::<InboxRows>().place(user, peer, from - 1), from);
    set_direct(rows, user, peer, direct, now);
    Ok(shown(rows, user, peer))
}

fn shown(rows: &Rows, user: UserId, peer: UserId) -> ReadDirectOut {
    let direct = rows.get::<InboxRows>().direct(user, peer);
    let Direct { last_seq, read_seq, .. } = direct;
    ReadDirectOut { peer_id: peer, unread: direct.unread(), last_seq, read_seq, revision: rows.revision(user) }
}

/// The level of a chat. Those of the user's other chats that have ended are counted in the sums from
/// now on, which makes room.
fn set_level(rows: &mut Rows, user: UserId, peer: UserId, level: LevelUntil, now: UnixMs) -> Result<DirectSettingsOut, Problem> {
    for other in rows.get::<InboxRows>().timed(user) {
        let direct = rows.get::<InboxRows>().direct(user, other);
        if direct.level.has_ended(now) {
            put_level(rows, user, other, LevelUntil::default(), now)?;
        }
    }
    let timed = rows.get::<InboxRows>().timed(user);
    if level.until().is_some() && !timed.contains(&peer) && timed.len() >= MAX_TIMED_CHATS {
        let detail = format!("The user has reached the limit of {MAX_TIMED_CHATS} direct chats with a level that ends.");
        return Err(Problem::new(Code::TooMany, detail));
    }
    put_level(rows, user, peer, level, now)?;
    let direct = rows.get::<InboxRows>().direct(user, peer);
    let (level, level_until) = rows.get::<InboxRows>().level(user, peer, now);
    push::ends_at(rows, user, level_until);
    let (unread, last_seq, revision) = (direct.unread(), direct.last_seq, rows.revision(user));
    Ok(DirectSettingsOut { peer_id: peer, level: level.into(), level_until, unread, last_seq, revision })
}

/// A row without a message is one that only the setting has made, and goes with it.
fn put_level(rows: &mut Rows, user: UserId, peer: UserId, level: LevelUntil, now: UnixMs) -> Result<(), Problem> {
    let direct = rows.get::<InboxRows>().direct(user, peer);
    let is_set = |level: LevelUntil| level != LevelUntil::default();
    if is_set(level) != is_set(direct.level) && direct.last_seq == 0 {
        if is_set(level) && rows.get::<InboxRows>().empty_chats(user) >= MAX_EMPTY_CHATS {
            let detail = format!("The user has reached the limit of {MAX_EMPTY_CHATS} silenced chats without messages.");
            return Err(Problem::new(Code::TooMany, detail));
        }
        rows.get_mut::<InboxRows>().add_empty_chats(user, if is_set(level) { 1 } else { -1 });
    }
    set_direct(rows, user, peer, Direct { level, ..direct }, now);
    Ok(())
}

fn expire(rows: &mut Rows, user: UserId, up_to: i64, seen_since: UnixMs) {
    let fetching =
        rows.get::<DeviceRows>().of_user(user).filter(|device| device.seen_at >= seen_since).filter_map(|device| device.cursor).min();
    let up_to = fetching.map_or(up_to, |cursor| cursor.min(up_to));
    if up_to < 1 {
        return;
    }
    // The chats of an erased user go with its inbox, and one that has gone must not come back.
    let oldest = if rows.is_erased(user) { Vec::new() } else { rows.get::<InboxRows>().oldest(user) };
    let mut is_shown = false;
    for row in oldest.iter().take_while(|row| row.seq <= up_to) {
        let before = rows.get::<InboxRows>().direct(user, row.peer);
        let mut direct = before.clone();
        direct.expire(row);
        is_shown |= before.shows(row);
        // No number changes.
        if direct != before {
            rows.get_mut::<InboxRows>().set_direct(user, row.peer, direct);
        }
    }
    if is_shown {
        rows.revise(user, |_| {});
    }
    rows.get_mut::<InboxRows>().remove(user, up_to);
}
