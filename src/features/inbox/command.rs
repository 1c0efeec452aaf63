//! What is written to inboxes, direct chats and devices: the commands, and the rule of each over
//! the rows of a batch.

use std::sync::Arc;

use super::devices::Device;
use super::{CursorOut, Direct, DirectSettingsOut, Item, MAX_DEVICES, MAX_EMPTY_CHATS, MAX_GONE_RUNS, Of, ReadDirectOut, SentOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, UserId};
use crate::engine::lanes::{self, Answer, Needs, Rows};
use crate::engine::pairs::{Pair, need_pair_seen};
use crate::features::inbox::changes::{append_inbox, set_direct};
use crate::features::inbox::devices::DeviceRows;
use crate::features::inbox::rows::InboxRows;

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
    /// A user has a direct chat count in no sum, or count again.
    Mute {
        user: UserId,
        /// The other side.
        peer: UserId,
        /// Whether it is to count in no sum.
        muted: bool,
    },
    /// A device has read the inbox up to a row.
    PutCursor {
        /// Whose device.
        user: UserId,
        device: ClientId,
        /// Up to which row.
        seq: i64,
    },
    /// A device is gone.
    DeleteDevice {
        /// Whose device.
        user: UserId,
        device: ClientId,
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
                needs.of::<InboxRows>().directs.insert((*user, *peer));
                needs.of::<InboxRows>().places.extend(up_to.map(|up_to| (*user, *peer, up_to)));
            }
            Self::Mute { user, peer, .. } => {
                needs.user(*user);
                needs.of::<InboxRows>().directs.insert((*user, *peer));
                needs.of::<InboxRows>().empty_chats.insert(*user);
            }
            Self::PutCursor { user, .. } | Self::DeleteDevice { user, .. } => {
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
            | Self::Mute { user, .. }
            | Self::PutCursor { user, .. }
            | Self::DeleteDevice { user, .. }
            | Self::Expire { user, .. } => user.get(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Send { .. } => 2,
            Self::Expire { rows, .. } => (*rows).max(1),
            Self::Read { .. } | Self::Mute { .. } | Self::PutCursor { .. } | Self::DeleteDevice { .. } => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Send { receiver, sender, client, content } => send(rows, *receiver, *sender, Text { client, content, sent_at: now }, now),
            Self::Read { user, peer, up_to } => Ok(Answer::ok(read(rows, *user, *peer, *up_to))),
            Self::Mute { user, peer, muted } => Ok(Answer::ok(mute(rows, *user, *peer, *muted)?)),
            Self::PutCursor { user, device, seq } => Ok(Answer::ok(put_cursor(rows, *user, device, *seq, now)?)),
            Self::DeleteDevice { user, device } => {
                rows.get::<DeviceRows>().get(*user, device).ok_or_else(|| unknown_device(device))?;
                rows.get_mut::<DeviceRows>().set(*user, device, None);
                Ok(Answer::no_content())
            }
            Self::Expire { user, up_to, seen_since, .. } => {
                expire(rows, *user, *up_to, *seen_since);
                Ok(Answer::no_content())
            }
        }
    }
}

fn unknown_device(device: &ClientId) -> Problem {
    Problem::new(Code::NotFound, format!("Device {device} does not exist."))
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
}

/// A message is found again by its sender's id for as long as its row is kept: then nothing
/// changes, and the answer is the first one's.
pub(super) fn send(rows: &mut Rows, receiver: UserId, sender: UserId, text: Text<'_>, now: UnixMs) -> Result<Answer, Problem> {
    let Text { client, content, sent_at } = text;
    let own = |rows: &Rows| rows.get::<InboxRows>().sent(&(sender, receiver, true, client.clone()));
    let to_oneself = receiver == sender;
    if let Some(sent) = rows.get::<InboxRows>().sent(&(receiver, sender, to_oneself, client.clone())) {
        let own_seq = own(rows).map(|own| own.seq);
        return Ok(Answer::ok(SentOut { seq: sent.seq, own_seq, sent_at: sent.at }));
    }
    refuse_if_blocked(rows, receiver, sender)?;
    let item = |own, peer, peer_seq| {
        let of = Of::Direct { peer, peer_seq, client: client.clone(), content: Arc::clone(content), sent_at };
        Item { sender, own, of }
    };
    let mut direct = rows.get::<InboxRows>().direct(receiver, sender);
    let seq = if to_oneself {
        // One row, which is nobody's to be told of.
        append_inbox(rows, receiver, item(true, sender, 0), now)
    } else {
        direct.head += 1;
        append_inbox(rows, receiver, item(false, sender, direct.head), now)
    };
    set_direct(rows, receiver, sender, Direct { last_seq: seq, last_at: direct.last_at.max(sent_at), ..direct });
    let mut own_seq = seq;
    if !to_oneself {
        let mine = rows.get::<InboxRows>().direct(sender, receiver);
        own_seq = append_inbox(rows, sender, item(true, receiver, mine.head), now);
        set_direct(rows, sender, receiver, Direct { last_seq: own_seq, last_at: mine.last_at.max(sent_at), ..mine });
    }
    Ok(Answer::created(SentOut { seq, own_seq: Some(own_seq), sent_at }))
}

/// How many of the peer's messages are at or before this row of the user's inbox. Of what has
/// expired it is known where that was which had not been read.
fn place(rows: &Rows, user: UserId, peer: UserId, direct: &Direct, up_to: i64) -> i64 {
    if up_to >= rows.user(user).inbox_seq {
        return direct.head;
    }
    rows.get::<InboxRows>().place(user, peer, up_to).unwrap_or_else(|| direct.gone - direct.gone_seqs.count_within(up_to, i64::MAX))
}

fn read(rows: &mut Rows, user: UserId, peer: UserId, up_to: Option<i64>) -> ReadDirectOut {
    let mut direct = rows.get::<InboxRows>().direct(user, peer);
    let place = up_to.map_or(direct.head, |up_to| place(rows, user, peer, &direct, up_to));
    if place > direct.mark {
        direct.mark = place.min(direct.head);
        if direct.mark >= direct.gone {
            direct.gone_seqs = crate::engine::marks::Intervals::default();
        } else if let Some(up_to) = up_to {
            direct.gone_seqs.drop_up_to(up_to);
        }
        set_direct(rows, user, peer, direct.clone());
    }
    ReadDirectOut { peer_id: peer, unread: direct.unread(), head: direct.last_seq, revision: rows.revision(user) }
}

fn mute(rows: &mut Rows, user: UserId, peer: UserId, muted: bool) -> Result<DirectSettingsOut, Problem> {
    let direct = rows.get::<InboxRows>().direct(user, peer);
    // A row without a message is one that only the setting has made, and goes with it.
    if muted != direct.muted && direct.last_seq == 0 {
        if muted && rows.get::<InboxRows>().empty_chats(user) >= MAX_EMPTY_CHATS {
            let detail = format!("The user has reached the limit of {MAX_EMPTY_CHATS} muted chats without messages. Unmute one first.");
            return Err(Problem::new(Code::TooMany, detail));
        }
        rows.get_mut::<InboxRows>().add_empty_chats(user, if muted { 1 } else { -1 });
    }
    set_direct(rows, user, peer, Direct { muted, ..direct.clone() });
    let muted = rows.get::<InboxRows>().is_silent(user, peer);
    Ok(DirectSettingsOut { peer_id: peer, muted, unread: direct.unread(), head: direct.last_seq, revision: rows.revision(user) })
}

fn put_cursor(rows: &mut Rows, user: UserId, device: &ClientId, seq: i64, now: UnixMs) -> Result<CursorOut, Problem> {
    let head = rows.user(user).inbox_seq;
    let before = rows.get::<DeviceRows>().get(user, device);
    if before.is_none() && rows.get::<DeviceRows>().is_full(user) {
        let detail = format!("The user has reached the limit of {MAX_DEVICES} devices. Delete one first.");
        return Err(Problem::new(Code::TooMany, detail));
    }
    let (kept, created_at) = before.map_or((0, now), |device| (device.cursor, device.created_at));
    let seen_at = before.map_or(now, |device| device.seen_at.max(now));
    let row = Device { cursor: seq.min(head).max(kept), seen_at, created_at };
    rows.get_mut::<DeviceRows>().set(user, device, Some(row));
    Ok(CursorOut::new(device.clone(), row, head))
}

fn expire(rows: &mut Rows, user: UserId, up_to: i64, seen_since: UnixMs) {
    let fetching = rows.get::<DeviceRows>().of_user(user).filter(|device| device.seen_at >= seen_since).map(|device| device.cursor).min();
    let up_to = fetching.map_or(up_to, |cursor| cursor.min(up_to));
    if up_to < 1 {
        return;
    }
    let oldest: Vec<_> = rows.get::<InboxRows>().oldest(user).iter().take_while(|row| row.seq <= up_to).copied().collect();
    for row in oldest {
        let before = rows.get::<InboxRows>().direct(user, row.peer);
        let mut direct = before.clone();
        direct.gone = direct.gone.max(row.peer_seq);
        if !row.own && row.peer_seq > direct.mark {
            direct.gone_seqs.insert(row.seq, row.seq);
            // Of those that are left out it is known only that they are the lowest.
            while direct.gone_seqs.runs() > MAX_GONE_RUNS {
                direct.gone_seqs.drop_first();
            }
        }
        // Where rows went is nobody's to be told of: no number changes, and no revision.
        if direct != before {
            rows.get_mut::<InboxRows>().set_direct(user, row.peer, direct);
        }
    }
    rows.get_mut::<InboxRows>().remove(user, up_to);
}
