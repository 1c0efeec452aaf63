//! The rules of the messages of groups, over the rows of a batch: sent, recalled, read.

use std::collections::BTreeSet;

use super::members::{known, member};
use super::needs::DeliveryJob;
use super::rows::GroupRows;
use super::{Delivery, Group, GroupSentOut, Membership, Mentions, Message, NewMessage, ReadStep, TooScattered};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{GroupId, UserId};
use crate::engine::events::{Event, GroupMessageEventOut};
use crate::engine::lanes::{Answer, Rows};
use crate::engine::marks::{Refused, StreamKey};
use crate::features::push::{self, Scope};

pub(super) fn no_message(group: GroupId, seq: i64) -> Problem {
    Problem::new(Code::NotFound, format!("Message {seq} of group {group} does not exist."))
}

/// What is asked for from before the first message that is kept.
pub(crate) fn expired(group: GroupId, earliest: i64) -> Problem {
    Problem::new(Code::CursorExpired, format!("Messages of group {group} before {earliest} have expired.")).kept_from(earliest)
}

/// No message is at this number: it has expired, or there never was one.
pub(super) fn not_there(rows: &Rows, group: GroupId, seq: i64) -> Problem {
    if (1..=rows.head(&StreamKey::group(group)).head).contains(&seq) {
        return Problem::new(Code::Gone, format!("Message {seq} of group {group} has expired."));
    }
    no_message(group, seq)
}

/// What its sender has read of a group once a message is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SenderHasRead {
    /// All that is above it: who writes has seen that.
    All,
    /// The message alone: it was written before what is above it, and is added late.
    Itself,
}

/// A message of a member. Returns it, and whether it is new.
pub(super) fn send(
    rows: &mut Rows,
    id: GroupId,
    sender: UserId,
    new: &NewMessage,
    now: UnixMs,
    has_read: SenderHasRead,
) -> Result<(GroupSentOut, bool), Problem> {
    known(rows, id)?;
    if let Some(sent) = rows.get::<GroupRows>().sent(&(id, sender, new.client_id.clone())) {
        if sent.recalled {
            return Err(Problem::new(Code::Gone, format!("Message {} with this client_id was recalled.", sent.seq)));
        }
        return Ok((GroupSentOut { group_id: id, seq: sent.seq, sent_at: sent.at, revision: rows.revision(sender) }, false));
    }
    let (span, mut of) = member(rows, id, sender)?;
    let named = named_members(rows, id, sender, &new.mentions)?;
    let seq = add_message(rows, id, sender, new, now)?;
    for user in named {
        mention(rows, id, user, seq)?;
    }
    let _changed = match has_read {
        SenderHasRead::All => Ok(of.read_up_to(seq, seq)),
        // Where too much is scattered already, it stays unread: no mark covers what was not read.
        SenderHasRead::Itself => of.read_one(seq, seq),
    };
    of.at = of.at.max(now);
    rows.get_mut::<GroupRows>().set_membership(sender, id, span, of);
    rows.revise(sender, |_| {});
    Ok((GroupSentOut { group_id: id, seq, sent_at: now, revision: rows.revision(sender) }, true))
}

/// The same, and tells the readers of events.
pub(super) fn send_and_tell(rows: &mut Rows, id: GroupId, sender: UserId, new: &NewMessage, now: UnixMs) -> Result<Answer, Problem> {
    let (sent, is_new) = send(rows, id, sender, new, now, SenderHasRead::All)?;
    if !is_new {
        return Ok(Answer::ok(sent));
    }
    tell(rows, now, GroupMessageEventOut { group_id: id, seq: sent.seq, sender_id: Some(sender), recalled: false });
    Ok(Answer::created(sent))
}

fn tell(rows: &mut Rows, now: UnixMs, event: GroupMessageEventOut) {
    rows.event(now, &Event::GroupMessage(event));
}

/// The members whom a message is to mention, without its sender, each once.
fn named_members(rows: &Rows, id: GroupId, sender: UserId, mentions: &[UserId]) -> Result<BTreeSet<UserId>, Problem> {
    for (at, user) in mentions.iter().enumerate() {
        let stranger = |_| Problem::invalid(format!("/mentions/{at}"), "must be a member of the group");
        member(rows, id, *user).map_err(stranger)?;
    }
    Ok(mentions.iter().copied().filter(|user| *user != sender).collect())
}

/// A message mentions this member by name.
fn mention(rows: &mut Rows, id: GroupId, user: UserId, seq: i64) -> Result<(), Problem> {
    let (span, mut of) = member(rows, id, user)?;
    of.mention(seq);
    rows.get_mut::<GroupRows>().set_membership(user, id, span, of);
    rows.revise(user, |_| {});
    Ok(())
}

/// Adds a message, whether its sender is a member or not. Returns its number.
pub(super) fn add_message(rows: &mut Rows, id: GroupId, sender: UserId, new: &NewMessage, now: UnixMs) -> Result<i64, Problem> {
    let mut group = known(rows, id)?;
    let key = StreamKey::group(id);
    let mut stream = rows.head(&key);
    let full = |_: Refused| Problem::new(Code::TooMany, "The group has reached the highest possible head, 2^53-1.");
    let seq = stream.advance(now).map_err(full)?;
    if new.mention_all {
        stream.mention_all(seq);
    }
    rows.set_head(&key, stream);
    let NewMessage { client_id, content, mentions, mention_all } = new.clone();
    let mentions = Mentions { named: mentions.into_iter().filter(|user| *user != sender).collect(), all: mention_all };
    let written = group.delivery == Delivery::Write;
    rows.get_mut::<GroupRows>().add_message(
        id,
        seq,
        Message { sender: Some(sender), client_id, content, sent_at: now, recalled: false, written },
        mentions,
    );
    if written {
        add_job(rows, id, &mut group, DeliveryJob { seq, recall: false });
    }
    Ok(seq)
}

fn add_job(rows: &mut Rows, id: GroupId, group: &mut Group, job: DeliveryJob) {
    group.jobs += 1;
    rows.get_mut::<GroupRows>().add_job(id, group.jobs, job);
    rows.get_mut::<GroupRows>().set_group(id, *group);
}

/// Notes that a message was recalled, for those who read changes. The group's head is locked.
fn add_change(rows: &mut Rows, id: GroupId, group: &mut Group, seq: i64) {
    group.changes += 1;
    rows.get_mut::<GroupRows>().add_change(id, group.changes, seq);
    rows.get_mut::<GroupRows>().set_group(id, *group);
}

pub(super) fn recall(rows: &mut Rows, id: GroupId, seq: i64, by: Option<UserId>, now: UnixMs) -> Result<Answer, Problem> {
    known(rows, id)?;
    let found = rows.get::<GroupRows>().message(id, seq);
    // To a stranger, what is there and what is not look alike. A sender who has left may still
    // recall.
    if let Some(by) = by.filter(|by| found.as_ref().is_none_or(|message| Some(*by) != message.sender)) {
        member(rows, id, by)?;
    }
    let Some(message) = found else { return Err(not_there(rows, id, seq)) };
    if by.is_some_and(|by| Some(by) != message.sender) {
        return Err(Problem::new(Code::Forbidden, "Only the sender of a message and services can recall it."));
    }
    if message.recalled {
        return Ok(Answer::no_content());
    }
    take_back(rows, id, seq, &message, now)?;
    Ok(Answer::no_content())
}

/// Takes back a message that is there. It is unread for nobody from then on.
pub(super) fn take_back(rows: &mut Rows, id: GroupId, seq: i64, message: &Message, now: UnixMs) -> Result<(), Problem> {
    let mut group = known(rows, id)?;
    let key = StreamKey::group(id);
    let mut stream = rows.head(&key);
    stream.retract(seq);
    rows.set_head(&key, stream);
    rows.get_mut::<GroupRows>().recall(id, seq, message);
    add_change(rows, id, &mut group, seq);
    // Devices that hold the message must hear of it, also after the delivery was switched.
    if message.written || group.delivery == Delivery::Write {
        add_job(rows, id, &mut group, DeliveryJob { seq, recall: true });
    }
    tell(rows, now, GroupMessageEventOut { group_id: id, seq, sender_id: message.sender, recalled: true });
    Ok(())
}

/// The messages up to this one go, but not those that are yet to be put into inboxes: a recall must
/// reach the devices that hold its message.
pub(super) fn expire(rows: &mut Rows, id: GroupId, up_to: i64, now: UnixMs) -> Answer {
    let waiting = rows.get::<GroupRows>().first_waiting(id);
    let up_to = waiting.map_or(up_to, |waiting| up_to.min(waiting - 1));
    let key = StreamKey::group(id);
    let mut stream = rows.head(&key);
    let is_less = stream.expire(up_to);
    // Lists of chats show the last message, also one that was recalled and counts for nobody.
    let is_last = up_to > 0 && up_to >= stream.head;
    if is_last && !is_less {
        stream.version += 1;
    }
    if is_last || is_less {
        rows.set_head(&key, stream);
    }
    if is_less {
        push::numbers_changed(rows, Scope::Group(id), now);
    }
    rows.get_mut::<GroupRows>().remove_messages(id, up_to);
    Answer::no_content()
}

/// What a read answers. The number may only be known to the rows, where what was recalled lies far
/// back.
pub(super) fn step(rows: &Rows, id: GroupId, user: UserId, of: &Membership) -> ReadStep {
    let stream = rows.head(&StreamKey::group(id));
    let unread = stream.unread(of.shown().read_seq(), &of.shown().extra_runs());
    ReadStep { unread, read_seq: of.reading.read_seq(), head: stream.head, revision: rows.revision(user) }
}

pub(super) fn scattered(_: TooScattered) -> Problem {
    let detail = "The reads of single messages are too scattered. Mark messages as read up to a seq instead.";
    Problem::new(Code::TooMany, detail)
}

/// Changes how far a member has read. What changes nothing raises nothing.
pub(super) fn change(
    rows: &mut Rows,
    user: UserId,
    id: GroupId,
    now: UnixMs,
    read: impl FnOnce(&mut Membership) -> Result<bool, TooScattered>,
) -> Result<Answer, Problem> {
    let (span, mut of) = member(rows, id, user)?;
    if read(&mut of).map_err(scattered)? {
        of.at = now;
        rows.get_mut::<GroupRows>().set_membership(user, id, span, of.clone());
        rows.revise(user, |_| {});
    }
    Ok(Answer::ok(step(rows, id, user, &of)))
}

pub(super) fn read_one(rows: &mut Rows, user: UserId, id: GroupId, seq: i64, now: UnixMs) -> Result<Answer, Problem> {
    let (_, of) = member(rows, id, user)?;
    if seq <= of.from_seq {
        return Err(no_message(id, seq));
    }
    let message = rows.get::<GroupRows>().message(id, seq).ok_or_else(|| not_there(rows, id, seq))?;
    if message.recalled {
        return Err(Problem::new(Code::Gone, format!("Message {seq} of group {id} was recalled.")));
    }
    let head = rows.head(&StreamKey::group(id)).head;
    change(rows, user, id, now, |of| of.read_one(seq, head))
}
