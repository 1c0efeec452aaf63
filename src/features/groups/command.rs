//! What is written to groups: the commands, and the rule of each over the rows of a batch.

use serde::Serialize;

use super::store::DeliveryJob;
use super::{
    Delivery, Group, GroupOut, GroupSentOut, MAX_GROUPS, MAX_MEMBERS, MemberOut, MembersOut, Membership, Message, ReadStep, Reading,
    TooScattered,
};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, GroupId, UserId};
use crate::engine::events::{Event, MemberEventOut};
use crate::engine::lanes::{self, Answer, Needs, Rows};
use crate::engine::marks::{Refused, StreamKey};
use crate::features::groups::store::GroupRows;

/// A write to groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Makes a group, or changes it.
    Put {
        group: GroupId,
        /// How its messages reach the members; None: as before, or by reading.
        delivery: Option<Delivery>,
        /// Whether it may be asked who has read what; None: as before, or yes.
        receipts: Option<bool>,
    },
    /// Somebody joins. Answers with the member alone.
    Join { group: GroupId, user: UserId },
    /// Many join together.
    JoinMany {
        group: GroupId,
        /// Who, each once.
        users: Vec<UserId>,
    },
    /// Somebody leaves.
    Leave { group: GroupId, user: UserId },
    /// A member sends a message.
    Send {
        group: GroupId,
        sender: UserId,
        /// The sender's own id for it.
        client_id: ClientId,
        content: String,
    },
    /// A message is taken back.
    Recall {
        group: GroupId,
        seq: i64,
        /// Who asks: only the sender may; None: a service, which may.
        by: Option<UserId>,
    },
    /// A member has read up to a message.
    Read {
        user: UserId,
        group: GroupId,
        /// Up to which; None: up to the head.
        up_to: Option<i64>,
    },
    /// A member has read one message.
    ReadOne {
        user: UserId,
        group: GroupId,
        /// Which.
        seq: i64,
    },
    /// A member says whether the group is to count in its sums.
    Mute {
        user: UserId,
        group: GroupId,
        /// Whether it is not to.
        muted: bool,
    },
}

impl Command {
    pub(super) fn group(&self) -> GroupId {
        match self {
            Self::Put { group, .. }
            | Self::Join { group, .. }
            | Self::JoinMany { group, .. }
            | Self::Leave { group, .. }
            | Self::Send { group, .. }
            | Self::Recall { group, .. }
            | Self::Read { group, .. }
            | Self::ReadOne { group, .. }
            | Self::Mute { group, .. } => *group,
        }
    }

    /// The users whose memberships are looked at.
    fn users(&self) -> &[UserId] {
        match self {
            Self::Put { .. } => &[],
            Self::JoinMany { users, .. } => users,
            Self::Recall { by, .. } => by.as_slice(),
            Self::Join { user, .. }
            | Self::Leave { user, .. }
            | Self::Read { user, .. }
            | Self::ReadOne { user, .. }
            | Self::Mute { user, .. } => std::slice::from_ref(user),
            Self::Send { sender, .. } => std::slice::from_ref(sender),
        }
    }

    /// Whether it changes nothing but the member's own rows: then the group's head is only looked
    /// at, so that many who read at once do not wait for each other.
    fn is_own(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::ReadOne { .. } | Self::Mute { .. })
    }
}

impl lanes::Command for Command {
    fn needs(&self, needs: &mut Needs) {
        let (group, head) = (self.group(), StreamKey::group(self.group()));
        needs.of::<GroupRows>().groups.insert(group);
        if self.is_own() {
            needs.seen_head(head);
        } else {
            needs.head(head);
        }
        for user in self.users() {
            needs.user(*user);
            needs.of::<GroupRows>().members.insert((*user, group));
        }
        match self {
            Self::Send { sender, client_id, .. } => {
                needs.of::<GroupRows>().clients.insert((group, *sender, client_id.clone()));
            }
            Self::Recall { seq, .. } | Self::ReadOne { seq, .. } => {
                needs.of::<GroupRows>().messages.insert((group, *seq));
            }
            _ => {}
        }
    }

    fn lane_key(&self) -> i64 {
        // What locks the group's head is kept together, so that it shares a batch and does not wait
        // for another lane.
        if self.is_own() { self.users().first().map_or(0, |user| user.get()) } else { self.group().get() }
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.users().len()).unwrap_or(u32::MAX).max(1)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Put { group, delivery, receipts } => put(rows, *group, *delivery, *receipts, now),
            Self::Join { group, user } => {
                let (member, new) = join(rows, *group, *user, now, "")?;
                tell(rows, now, *group, *user, new.then_some(true));
                if new { Ok(Answer::created(member)) } else { Ok(Answer::ok(member)) }
            }
            Self::JoinMany { group, users } => {
                let pointer = |at: usize| format!("/user_ids/{at}");
                let mut items = Vec::with_capacity(users.len());
                for (at, user) in users.iter().enumerate() {
                    let (member, new) = join(rows, *group, *user, now, &pointer(at))?;
                    tell(rows, now, *group, *user, new.then_some(true));
                    items.push(member);
                }
                Ok(Answer::ok(MembersOut { items }))
            }
            Self::Leave { group, user } => {
                let left = leave(rows, *group, *user, now)?;
                tell(rows, now, *group, *user, left.then_some(false));
                Ok(Answer::no_content())
            }
            Self::Send { group, sender, client_id, content } => send(rows, *group, *sender, client_id, content, now),
            Self::Recall { group, seq, by } => recall(rows, *group, *seq, *by),
            Self::Read { user, group, up_to } => {
                let head = rows.head(&StreamKey::group(*group)).head;
                change(rows, *user, *group, now, |reading| Ok(reading.read_up_to(up_to.unwrap_or(head).min(head))))
            }
            Self::ReadOne { user, group, seq } => read_one(rows, *user, *group, *seq, now),
            Self::Mute { user, group, muted } => mute(rows, *user, *group, *muted),
        }
    }
}

pub(crate) fn unknown(group: GroupId) -> Problem {
    Problem::new(Code::NotFound, format!("Group {group} does not exist."))
}

pub(crate) fn no_member(group: GroupId, user: UserId) -> Problem {
    Problem::new(Code::Forbidden, format!("User {user} is not a member of group {group}."))
}

pub(super) fn no_message(group: GroupId, seq: i64) -> Problem {
    Problem::new(Code::NotFound, format!("Message {seq} of group {group} does not exist."))
}

fn known(rows: &Rows, group: GroupId) -> Result<Group, Problem> {
    rows.get::<GroupRows>().group(group).ok_or_else(|| unknown(group))
}

/// The user's membership now.
fn member(rows: &Rows, group: GroupId, user: UserId) -> Result<(i64, Membership), Problem> {
    known(rows, group)?;
    let latest = rows.get::<GroupRows>().latest(user, group).filter(|(_, of)| of.is_open());
    latest.map(|(span, of)| (span, of.clone())).ok_or_else(|| no_member(group, user))
}

pub(super) fn put(
    rows: &mut Rows,
    id: GroupId,
    delivery: Option<Delivery>,
    receipts: Option<bool>,
    now: UnixMs,
) -> Result<Answer, Problem> {
    let before = rows.get::<GroupRows>().group(id);
    let base = before.unwrap_or(Group { receipts: true, created_at: now, ..Group::default() });
    let group = Group { delivery: delivery.unwrap_or(base.delivery), receipts: receipts.unwrap_or(base.receipts), ..base };
    rows.get_mut::<GroupRows>().set_group(id, group);
    let out = GroupOut::new(id, &group, rows.head(&StreamKey::group(id)).head);
    if before.is_none() { Ok(Answer::created(out)) } else { Ok(Answer::ok(out)) }
}

/// Returns the member, and whether it is one only now. `pointer` is the place in the request, for
/// what is refused.
pub(super) fn join(rows: &mut Rows, id: GroupId, user: UserId, now: UnixMs, pointer: &str) -> Result<(MemberOut, bool), Problem> {
    let mut group = known(rows, id)?;
    let out = |of: &Membership| MemberOut { user_id: user, ordinal: of.ordinal, joined_at: of.joined_at };
    let (span, before) = match rows.get::<GroupRows>().latest(user, id) {
        Some((_, of)) if of.is_open() => return Ok((out(of), false)),
        Some((span, of)) => (span, Some((of.ordinal, of.muted))),
        None => (0, None),
    };
    let too_many = |detail: String| {
        let problem = Problem::new(Code::TooMany, detail);
        if pointer.is_empty() { problem } else { problem.at(pointer, "cannot join") }
    };
    if group.members >= MAX_MEMBERS {
        return Err(too_many(format!("Group {id} has reached the limit of {MAX_MEMBERS} members.")));
    }
    if rows.user(user).chat_groups >= MAX_GROUPS {
        return Err(too_many(format!("User {user} has reached the limit of {MAX_GROUPS} groups.")));
    }
    let (ordinal, muted) = before.unwrap_or_else(|| {
        group.ordinals += 1;
        (group.ordinals, false)
    });
    group.members += 1;
    rows.get_mut::<GroupRows>().set_group(id, group);
    let from_seq = rows.head(&StreamKey::group(id)).head;
    let of = Membership { ordinal, from_seq, to_seq: None, reading: Reading::from_seq(from_seq), muted, joined_at: now, at: now };
    let member = out(&of);
    rows.get_mut::<GroupRows>().set_membership(user, id, span + 1, of);
    rows.revise(user, |row| row.chat_groups += 1);
    Ok((member, true))
}

/// Returns whether the user was a member.
pub(super) fn leave(rows: &mut Rows, id: GroupId, user: UserId, now: UnixMs) -> Result<bool, Problem> {
    let group = known(rows, id)?;
    let Ok((span, of)) = member(rows, id, user) else { return Ok(false) };
    let to_seq = Some(rows.head(&StreamKey::group(id)).head);
    rows.get_mut::<GroupRows>().set_membership(user, id, span, Membership { to_seq, at: now, ..of });
    rows.get_mut::<GroupRows>().set_group(id, Group { members: group.members - 1, ..group });
    rows.revise(user, |row| row.chat_groups -= 1);
    Ok(true)
}

/// Tells those who read events that somebody is a member from now on, or no longer; None: nothing
/// has changed.
pub(super) fn tell(rows: &mut Rows, now: UnixMs, group_id: GroupId, user_id: UserId, member: Option<bool>) {
    if let Some(member) = member {
        rows.event(now, &Event::Member(MemberEventOut { group_id, user_id, member }));
    }
}

pub(super) fn send(
    rows: &mut Rows,
    id: GroupId,
    sender: UserId,
    client_id: &ClientId,
    content: &str,
    now: UnixMs,
) -> Result<Answer, Problem> {
    known(rows, id)?;
    if let Some(sent) = rows.get::<GroupRows>().sent(&(id, sender, client_id.clone())) {
        if sent.recalled {
            return Err(Problem::new(Code::Gone, format!("Message {} with this client_id was recalled.", sent.seq)));
        }
        return Ok(Answer::ok(GroupSentOut { group_id: id, seq: sent.seq, sent_at: sent.at, revision: rows.revision(sender) }));
    }
    let (span, mut of) = member(rows, id, sender)?;
    let seq = add_message(rows, id, sender, client_id, content, now)?;
    // The sender has read what is above.
    of.reading.read_up_to(seq);
    of.at = of.at.max(now);
    rows.get_mut::<GroupRows>().set_membership(sender, id, span, of);
    rows.revise(sender, |_| {});
    Ok(Answer::created(GroupSentOut { group_id: id, seq, sent_at: now, revision: rows.revision(sender) }))
}

/// Adds a message, whether its sender is a member or not. Returns its number.
pub(super) fn add_message(
    rows: &mut Rows,
    id: GroupId,
    sender: UserId,
    client_id: &ClientId,
    content: &str,
    now: UnixMs,
) -> Result<i64, Problem> {
    let mut group = known(rows, id)?;
    let key = StreamKey::group(id);
    let mut stream = rows.head(&key);
    let full = |_: Refused| Problem::new(Code::TooMany, "The group has reached the highest possible head, 2^53-1.");
    let seq = stream.advance(now).map_err(full)?;
    rows.set_head(&key, stream);
    let (client_id, content) = (client_id.clone(), content.to_owned());
    let written = group.delivery == Delivery::Write;
    rows.get_mut::<GroupRows>().add_message(id, seq, Message { sender, client_id, content, sent_at: now, recalled: false, written });
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

fn recall(rows: &mut Rows, id: GroupId, seq: i64, by: Option<UserId>) -> Result<Answer, Problem> {
    let mut group = known(rows, id)?;
    let found = rows.get::<GroupRows>().message(id, seq);
    // To a stranger, what is there and what is not look alike. A sender who has left may still
    // recall.
    if let Some(by) = by.filter(|by| found.as_ref().is_none_or(|message| *by != message.sender)) {
        member(rows, id, by)?;
    }
    let Some(message) = found else { return Err(no_message(id, seq)) };
    if by.is_some_and(|by| by != message.sender) {
        return Err(Problem::new(Code::Forbidden, "Only the sender of a message and services can recall it."));
    }
    if message.recalled {
        return Ok(Answer::no_content());
    }
    let key = StreamKey::group(id);
    let mut stream = rows.head(&key);
    stream.retract(seq);
    rows.set_head(&key, stream);
    rows.get_mut::<GroupRows>().recall(id, seq, &message);
    // Devices that hold the message must hear of it, also after the delivery was switched.
    if message.written || group.delivery == Delivery::Write {
        add_job(rows, id, &mut group, DeliveryJob { seq, recall: true });
    }
    Ok(Answer::no_content())
}

/// What a read answers. The number may only be known to the rows, where what was recalled lies far
/// back.
fn step(rows: &Rows, id: GroupId, user: UserId, of: &Membership) -> ReadStep {
    let stream = rows.head(&StreamKey::group(id));
    let unread = stream.unread(of.reading.read_seq(), &of.reading.extra_runs());
    ReadStep { unread, read_seq: of.reading.read_seq(), head: stream.head, revision: rows.revision(user) }
}

/// Changes how far a member has read. What changes nothing raises nothing.
fn change(
    rows: &mut Rows,
    user: UserId,
    id: GroupId,
    now: UnixMs,
    read: impl FnOnce(&mut Reading) -> Result<bool, TooScattered>,
) -> Result<Answer, Problem> {
    let (span, mut of) = member(rows, id, user)?;
    let scattered = |_| {
        let detail = "The reads of single messages are too scattered. Mark messages as read up to a seq instead.";
        Problem::new(Code::TooMany, detail)
    };
    if read(&mut of.reading).map_err(scattered)? {
        of.at = now;
        rows.get_mut::<GroupRows>().set_membership(user, id, span, of.clone());
        rows.revise(user, |_| {});
    }
    Ok(Answer::ok(step(rows, id, user, &of)))
}

fn read_one(rows: &mut Rows, user: UserId, id: GroupId, seq: i64, now: UnixMs) -> Result<Answer, Problem> {
    let (_, of) = member(rows, id, user)?;
    let message = rows.get::<GroupRows>().message(id, seq).filter(|_| seq > of.from_seq).ok_or_else(|| no_message(id, seq))?;
    if message.recalled {
        return Err(Problem::new(Code::Gone, format!("Message {seq} of group {id} was recalled.")));
    }
    change(rows, user, id, now, |reading| reading.read_one(seq))
}

/// A member's settings of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct GroupSettingsOut {
    /// The group.
    pub group_id: GroupId,
    /// Whether `chats` and `total` exclude the group.
    pub muted: bool,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

fn mute(rows: &mut Rows, user: UserId, id: GroupId, muted: bool) -> Result<Answer, Problem> {
    let (span, of) = member(rows, id, user)?;
    if of.muted != muted {
        rows.get_mut::<GroupRows>().set_membership(user, id, span, Membership { muted, ..of });
        rows.revise(user, |_| {});
    }
    Ok(Answer::ok(GroupSettingsOut { group_id: id, muted, revision: rows.revision(user) }))
}
