//! What is written to notifications: the commands, and the rule of each over the rows of a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DeletedNotificationOut, MAX_TYPES, Notification, NotificationOut, ReadNotificationOut, Receiver, Unread};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, NotificationId, UserId};
use crate::engine::lanes::{self, Answer, Needs, Rows};
use crate::features::notifications::rows::NotificationRows;

/// What one transaction of marking many answers inside; the route answers with the sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) changed: i64,
    pub(super) revision: i64,
    pub(super) unread: BTreeMap<String, i64>,
    /// Up to which seq to go on, where there may be more.
    pub(super) more_up_to: Option<i64>,
}

/// Which notifications are marked as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These.
    Named(Vec<NotificationId>),
    /// So many of those that are unread, the oldest first, of a type or of all.
    Oldest(Option<Name>, i64),
}

/// A write to notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotificationCommand {
    /// A new notification.
    Send {
        /// The ids that it may have.
        ids: Vec<NotificationId>,
        /// Its type.
        kind: Name,
        /// Title and content, as one JSON object.
        stored: String,
        /// To whom, each once.
        recipients: Vec<UserId>,
    },
    /// A user has read a notification, or wants it to count as unread.
    Mark {
        user: UserId,
        id: NotificationId,
        /// Whether it is read.
        read: bool,
        /// Of lower ids notifications are kept no longer.
        kept_from: i64,
    },
    /// A user has read many.
    MarkMany {
        user: UserId,
        which: Which,
        /// Only up to this seq.
        up_to: i64,
        /// Of lower ids notifications are kept no longer.
        kept_from: i64,
    },
    /// A user deletes a notification from its list.
    Delete {
        user: UserId,
        id: NotificationId,
        /// Of lower ids notifications are kept no longer.
        kept_from: i64,
    },
    /// A notification is withdrawn from everybody's list.
    Withdraw {
        id: NotificationId,
        /// To whom it was sent.
        recipients: Vec<UserId>,
    },
    /// A notification is kept no longer: it goes, and with it what everybody has of it.
    Expire {
        id: NotificationId,
        /// To whom it was sent.
        recipients: Vec<UserId>,
    },
}

impl lanes::Command for NotificationCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Send { ids, kind, recipients, .. } => {
                needs.of::<NotificationRows>().notifications.extend(ids);
                let kind = kind.shared();
                for user in recipients {
                    needs.user(*user);
                    needs.of::<NotificationRows>().types.insert((*user, Arc::clone(&kind)));
                }
            }
            Self::Mark { user, id, .. } | Self::Delete { user, id, .. } => {
                needs.user(*user);
                needs.of::<NotificationRows>().receivers.insert((*id, *user));
            }
            Self::MarkMany { user, which, up_to, .. } => {
                needs.user(*user);
                needs.of::<NotificationRows>().types_of.insert(*user);
                match which {
                    Which::Named(ids) => needs.of::<NotificationRows>().receivers.extend(ids.iter().map(|id| (*id, *user))),
                    Which::Oldest(kind, rows) => {
                        needs.of::<NotificationRows>().unread.insert(Unread {
                            user: *user,
                            kind: kind.clone(),
                            up_to: *up_to,
                            rows: *rows,
                        });
                    }
                }
            }
            Self::Withdraw { id, recipients } | Self::Expire { id, recipients } => {
                needs.of::<NotificationRows>().notifications.insert(*id);
                for user in recipients {
                    needs.user(*user);
                    needs.of::<NotificationRows>().receivers.insert((*id, *user));
                }
            }
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Send { recipients, .. } | Self::Withdraw { recipients, .. } | Self::Expire { recipients, .. } => {
                recipients.first().map_or(0, |user| user.get())
            }
            Self::Mark { user, .. } | Self::MarkMany { user, .. } | Self::Delete { user, .. } => user.get(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Send { recipients, .. } | Self::Withdraw { recipients, .. } | Self::Expire { recipients, .. } => {
                u32::try_from(recipients.len()).unwrap_or(u32::MAX)
            }
            Self::MarkMany { which: Which::Named(ids), .. } => u32::try_from(ids.len()).unwrap_or(u32::MAX),
            Self::MarkMany { which: Which::Oldest(_, rows), .. } => u32::try_from(*rows).unwrap_or(u32::MAX),
            Self::Mark { .. } | Self::Delete { .. } => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Send { ids, kind, stored, recipients } => {
                let count = i64::try_from(recipients.len()).unwrap_or(i64::MAX);
                let notification = Notification { kind: kind.clone(), stored: stored.clone(), created_at: now, recipients: count };
                Ok(Answer::created(send(rows, ids, notification, recipients)?))
            }
            Self::Mark { user, id, read, kept_from } => Ok(Answer::ok(mark(rows, *user, *id, *read, *kept_from, now)?)),
            Self::MarkMany { user, which, up_to, kept_from } => Ok(Answer::ok(mark_many(rows, *user, which, *up_to, *kept_from, now)?)),
            Self::Delete { user, id, kept_from } => {
                let (seq, before) = rows.get::<NotificationRows>().receiver(*user, *id).ok_or_else(|| missing(*id, *kept_from))?;
                set(rows, *user, seq, &before, Receiver { gone: true, ..before.clone() });
                Ok(Answer::ok(DeletedNotificationOut { revision: rows.revision(*user) }))
            }
            Self::Withdraw { id, recipients } => {
                if rows.get::<NotificationRows>().is_withdrawn(*id) == Some(false) {
                    rows.get_mut::<NotificationRows>().withdraw(*id);
                    for user in recipients {
                        if let Some((seq, before)) = rows.get::<NotificationRows>().receiver(*user, *id) {
                            set(rows, *user, seq, &before, Receiver { gone: true, ..before.clone() });
                        }
                    }
                }
                Ok(Answer::no_content())
            }
            Self::Expire { id, recipients } => {
                expire(rows, *id, recipients);
                Ok(Answer::no_content())
            }
        }
    }
}

/// Why there is no row: the notification never was, or, as ids begin with their time, is kept no
/// longer.
pub(super) fn missing(id: NotificationId, kept_from: i64) -> Problem {
    if id.get() < kept_from {
        return Problem::new(Code::Gone, format!("Notification {id} has expired."));
    }
    Problem::new(Code::NotFound, format!("Notification {id} does not exist."))
}

pub(super) fn gone(id: NotificationId) -> Problem {
    Problem::new(Code::Gone, format!("Notification {id} was deleted or withdrawn."))
}

fn send(rows: &mut Rows, ids: &[NotificationId], notification: Notification, recipients: &[UserId]) -> Result<NotificationOut, Problem> {
    let free = ids.iter().copied().find(|id| rows.get::<NotificationRows>().is_withdrawn(*id).is_none());
    let id = free.ok_or_else(|| Problem::new(Code::Overloaded, "The server found no free id for the notification. Try again."))?;
    let kind = notification.kind.shared();
    for (at, user) in recipients.iter().enumerate() {
        let unread = rows.get::<NotificationRows>().unread(*user, &kind);
        if unread.is_none() && rows.get::<NotificationRows>().type_count(*user) >= MAX_TYPES {
            let detail = format!("User {user} has reached the limit of {MAX_TYPES} notification types.");
            return Err(Problem::new(Code::TooMany, detail)
                .at(format!("/recipients/{at}"), "exceeds the limit of notification types for this user"));
        }
        rows.revise(*user, |row| row.notification_seq += 1);
        let seq = rows.user(*user).notification_seq;
        rows.get_mut::<NotificationRows>().set_unread(*user, &kind, unread.unwrap_or(0) + 1);
        rows.get_mut::<NotificationRows>().set_receiver(
            *user,
            seq,
            Receiver { notification: id, kind: Arc::clone(&kind), read_at: UnixMs(0), gone: false },
        );
    }
    let out = NotificationOut::new(id, &notification, 0);
    rows.get_mut::<NotificationRows>().make(id, notification);
    Ok(out)
}

/// Sets what a user has of a notification, takes the number of its type along, and raises the
/// user's revision. The same as before changes nothing.
fn set(rows: &mut Rows, user: UserId, seq: i64, before: &Receiver, after: Receiver) {
    if *before == after {
        return;
    }
    let step = i64::from(after.is_unread()) - i64::from(before.is_unread());
    if step != 0 {
        let unread = rows.get::<NotificationRows>().unread(user, &after.kind).unwrap_or(0);
        rows.get_mut::<NotificationRows>().set_unread(user, &after.kind, (unread + step).max(0));
    }
    rows.get_mut::<NotificationRows>().set_receiver(user, seq, after);
    rows.revise(user, |_| {});
}

/// Anyone who has not read it has one less; for the others no number changes, and so no revision.
fn expire(rows: &mut Rows, id: NotificationId, recipients: &[UserId]) {
    for user in recipients {
        let Some((seq, before)) = rows.get::<NotificationRows>().receiver(*user, id) else { continue };
        if before.is_unread() {
            set(rows, *user, seq, &before, Receiver { gone: true, ..before.clone() });
        }
        rows.get_mut::<NotificationRows>().drop_receiver(*user, seq);
    }
    rows.get_mut::<NotificationRows>().drop_notification(id);
}

/// When something is read now; 0 means never.
fn moment(now: UnixMs) -> UnixMs {
    UnixMs(now.0.max(1))
}

/// Reading again keeps the time of the first.
fn read_at(before: &Receiver, read: bool, now: UnixMs) -> UnixMs {
    match (read, before.read_at) {
        (true, UnixMs(0)) => moment(now),
        (true, first) => first,
        (false, _) => UnixMs(0),
    }
}

fn mark(
    rows: &mut Rows,
    user: UserId,
    id: NotificationId,
    read: bool,
    kept_from: i64,
    now: UnixMs,
) -> Result<ReadNotificationOut, Problem> {
    let (seq, before) = rows.get::<NotificationRows>().receiver(user, id).ok_or_else(|| missing(id, kept_from))?;
    if before.gone {
        return Err(gone(id));
    }
    let after = Receiver { read_at: read_at(&before, read, now), ..before.clone() };
    set(rows, user, seq, &before, after.clone());
    Ok(ReadNotificationOut {
        notification_id: id,
        read_at: Some(after.read_at).filter(|at| *at != UnixMs(0)),
        unread: rows.get::<NotificationRows>().unread(user, &after.kind).unwrap_or(0),
        revision: rows.revision(user),
    })
}

fn mark_many(rows: &mut Rows, user: UserId, which: &Which, up_to: i64, kept_from: i64, now: UnixMs) -> Result<Step, Problem> {
    let (these, more) = match which {
        Which::Named(ids) => (named(rows, user, ids, kept_from)?, false),
        Which::Oldest(kind, limit) => {
            let asked = Unread { user, kind: kind.clone(), up_to, rows: *limit };
            let is_meant = |receiver: &Receiver| kind.as_ref().is_none_or(|kind| kind.as_str() == &*receiver.kind);
            let mine = rows.get::<NotificationRows>().of_user(user).filter(|(_, receiver)| receiver.is_unread() && is_meant(receiver));
            (mine.map(|(seq, receiver)| (seq, receiver.clone())).collect(), rows.get::<NotificationRows>().is_unfinished(&asked))
        }
    };
    // Seqs that are given later are not meant by this request, which would else have no end.
    let up_to = up_to.min(rows.user(user).notification_seq);
    let mut changed = 0;
    for (seq, before) in these.into_iter().filter(|(seq, before)| *seq <= up_to && before.is_unread()) {
        set(rows, user, seq, &before, Receiver { read_at: moment(now), ..before.clone() });
        changed += 1;
    }
    let unread = rows.get::<NotificationRows>().types_of(user).map(|(kind, unread)| ((**kind).to_owned(), unread)).collect();
    Ok(Step { changed, revision: rows.revision(user), unread, more_up_to: more.then_some(up_to) })
}

/// What a user has of these notifications; a problem names each that the user does not have.
fn named(rows: &Rows, user: UserId, ids: &[NotificationId], kept_from: i64) -> Result<Vec<(i64, Receiver)>, Problem> {
    let (mut found, mut missing, mut deleted) = (Vec::with_capacity(ids.len()), Vec::new(), Vec::new());
    for (at, id) in ids.iter().enumerate() {
        match rows.get::<NotificationRows>().receiver(user, *id) {
            None if id.get() < kept_from => deleted.push(at),
            None => missing.push(at),
            Some((_, receiver)) if receiver.gone => deleted.push(at),
            Some(receiver) => found.push(receiver),
        }
    }
    let named = |code, faults: &[usize], detail: &'static str| {
        faults.iter().fold(Problem::new(code, "One or more notifications are unavailable. See errors."), |problem, at| {
            problem.at(format!("/ids/{at}"), detail)
        })
    };
    if !missing.is_empty() {
        return Err(named(Code::NotFound, &missing, "does not exist for this user"));
    }
    if !deleted.is_empty() {
        return Err(named(Code::Gone, &deleted, "was deleted or withdrawn, or has expired"));
    }
    Ok(found)
}
