//! What is written to groups: the commands. `members.rs` and `messages.rs` have the rule of each.

use super::again::unread_again;
use super::members::{join, leave, put, set_level, tell};
use super::messages::{change, expire, read_one, recall, send_and_tell};
use super::rows::GroupRows;
use super::{Delivery, MAX_UNREAD_AGAIN, MembersOut, NewMessage};
use crate::base::clock::UnixMs;
use crate::base::error::Problem;
use crate::base::ids::{GroupId, UserId};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::StreamKey;
use crate::features::level::LevelUntil;

/// To look at so many messages costs as much as a change.
const READ_FOR_A_CHANGE: i64 = 100;

/// A write to groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupCommand {
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
    Send { group: GroupId, sender: UserId, message: NewMessage },
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
    /// Messages show as unread again to a member.
    Unread {
        user: UserId,
        group: GroupId,
        /// From which on.
        from: i64,
    },
    /// A member says what of the group counts in its sums.
    SetLevel { user: UserId, group: GroupId, level: LevelUntil },
    /// The oldest messages go.
    Expire {
        group: GroupId,
        /// Up to which.
        up_to: i64,
        /// How many that is at most.
        rows: u32,
    },
}

impl GroupCommand {
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
            | Self::Unread { group, .. }
            | Self::SetLevel { group, .. }
            | Self::Expire { group, .. } => *group,
        }
    }

    /// The users whose memberships are looked at.
    fn users(&self) -> impl Iterator<Item = &UserId> {
        let (one, more): (Option<&UserId>, &[UserId]) = match self {
            Self::Put { .. } | Self::Expire { .. } => (None, &[]),
            Self::JoinMany { users, .. } => (None, users),
            Self::Recall { by, .. } => (by.as_ref(), &[]),
            Self::Join { user, .. }
            | Self::Leave { user, .. }
            | Self::Read { user, .. }
            | Self::ReadOne { user, .. }
            | Self::Unread { user, .. }
            | Self::SetLevel { user, .. } => (Some(user), &[]),
            Self::Send { sender, message, .. } => (Some(sender), &message.mentions),
        };
        one.into_iter().chain(more)
    }

    /// Whether it changes nothing but the member's own rows: then the group's head is only looked
    /// at, so that many who read at once do not wait for each other.
    fn is_own(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::ReadOne { .. } | Self::Unread { .. } | Self::SetLevel { .. })
    }
}

impl lanes::Command for GroupCommand {
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
            Self::Send { sender, message, .. } => {
                needs.of::<GroupRows>().clients.insert((group, *sender, message.client_id.clone()));
            }
            Self::Recall { seq, .. } | Self::ReadOne { seq, .. } => {
                needs.of::<GroupRows>().messages.insert((group, *seq));
            }
            Self::Unread { user, from, .. } => {
                needs.of::<GroupRows>().messages.insert((group, *from));
                needs.of::<GroupRows>().again.insert((group, *user, *from));
            }
            Self::Expire { .. } => drop(needs.of::<GroupRows>().jobs.insert(group)),
            _ => {}
        }
    }

    fn lane_key(&self) -> i64 {
        // What locks the group's head is kept together, so that it shares a batch and does not wait
        // for another lane.
        if self.is_own() { self.users().next().map_or(0, |user| user.get()) } else { self.group().get() }
    }

    fn names(&self) -> Names {
        match self {
            Self::JoinMany { users, .. } => users.iter().enumerate().map(|(at, user)| (*user, format!("/user_ids/{at}"))).collect(),
            Self::Send { sender, message, .. } => {
                let mentions = message.mentions.iter().enumerate().map(|(at, user)| (*user, format!("/mentions/{at}")));
                [(*sender, "/sender_id".to_owned())].into_iter().chain(mentions).collect()
            }
            _ => self.users().map(|user| in_path(*user)).collect(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Expire { rows, .. } => (*rows).max(1),
            // It reads up to this many messages. That costs as much as so many changes.
            Self::Unread { .. } => u32::try_from(MAX_UNREAD_AGAIN / READ_FOR_A_CHANGE).unwrap_or(u32::MAX),
            _ => u32::try_from(self.users().count()).unwrap_or(u32::MAX).max(1),
        }
    }

    fn by_user(&self) -> Option<UserId> {
        match self {
            Self::Unread { user, .. } => Some(*user),
            _ => None,
        }
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
            Self::Send { group, sender, message } => send_and_tell(rows, *group, *sender, message, now),
            Self::Recall { group, seq, by } => recall(rows, *group, *seq, *by, now),
            Self::Read { user, group, up_to } => {
                let head = rows.head(&StreamKey::group(*group)).head;
                change(rows, *user, *group, now, |of| Ok(of.read_up_to(up_to.unwrap_or(head).min(head), head)))
            }
            Self::ReadOne { user, group, seq } => read_one(rows, *user, *group, *seq, now),
            Self::Unread { user, group, from } => unread_again(rows, *user, *group, *from),
            Self::SetLevel { user, group, level } => set_level(rows, *user, *group, *level),
            Self::Expire { group, up_to, .. } => Ok(expire(rows, *group, *up_to, now)),
        }
    }
}
