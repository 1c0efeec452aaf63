//! What is written to notifications: the commands, and which rows each needs. `rules.rs` and
//! `many.rs` have the rule of each over these rows.

use std::sync::Arc;

use super::entry::Entry;
use super::many::{Which, mark_many};
use super::out::{DeletedNotificationOut, NotificationOut};
use super::rows::{NotificationNeeds, NotificationRows};
use super::rules::{self, Sent, missing};
use super::{Content, Edit, Notification, Unread};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, NotificationId, UserId};
use crate::engine::events::NotificationChange;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::pairs::need_named;

/// A notification that is to be sent.
#[derive(Debug, Clone)]
pub struct NewNotification {
    /// The ids that it may have.
    pub ids: Vec<NotificationId>,
    pub kind: Name,
    /// What it says.
    pub content: Content,
    /// The same as rows have it.
    pub stored: String,
    /// To whom, each once.
    pub recipients: Vec<UserId>,
}

/// A write to notifications. Of ids lower than `kept_from`, notifications are kept no longer.
#[derive(Debug, Clone)]
pub enum NotificationCommand {
    /// A new notification.
    Send(NewNotification),
    /// A user has read an entry, or wants it to count as unread.
    Mark { user: UserId, id: NotificationId, read: bool, kept_from: i64 },
    /// A user has read many, up to a seq.
    MarkMany { user: UserId, which: Which, up_to: i64, kept_from: i64 },
    /// A user has seen the list up to a seq.
    See { user: UserId, up_to: i64 },
    /// A user deletes an entry from its list.
    Delete { user: UserId, id: NotificationId, kept_from: i64 },
    /// A notification says something else from now on.
    Edit { id: NotificationId, edit: Edit, recipients: Vec<UserId>, kept_from: i64 },
    /// A notification is withdrawn from everybody's list.
    Withdraw { id: NotificationId, recipients: Vec<UserId>, kept_from: i64 },
    /// A notification is kept no longer: it goes, and with it what everybody has of it.
    Expire { id: NotificationId, recipients: Vec<UserId>, kept_from: i64 },
}

impl NotificationCommand {
    /// Whose lists a write to a notification changes.
    fn recipients(&self) -> Option<&[UserId]> {
        match self {
            Self::Send(new) => Some(&new.recipients),
            Self::Edit { recipients, .. } | Self::Withdraw { recipients, .. } | Self::Expire { recipients, .. } => Some(recipients),
            Self::Mark { .. } | Self::MarkMany { .. } | Self::See { .. } | Self::Delete { .. } => None,
        }
    }
}

impl NewNotification {
    fn group_key(&self) -> Arc<str> {
        self.content.group_key.as_ref().map_or_else(|| Arc::from(""), |key| Arc::from(key.as_str()))
    }

    fn needs(&self, needs: &mut NotificationNeeds) {
        needs.notifications.extend(&self.ids);
        let (kind, group_key) = (self.kind.shared(), self.group_key());
        for user in &self.recipients {
            needs.types.insert((*user, Arc::clone(&kind)));
            needs.silences.extend(self.content.actor_id.map(|actor| (*user, actor)));
            if !group_key.is_empty() {
                needs.open.insert((*user, Arc::clone(&kind), Arc::clone(&group_key)));
            }
        }
    }

    fn send(&self, rows: &mut Rows, now: UnixMs) -> Result<NotificationOut, Problem> {
        let free = self.ids.iter().copied().find(|id| rows.get::<NotificationRows>().is_withdrawn(*id).is_none());
        let id = free.ok_or_else(|| Problem::new(Code::Overloaded, "The server found no free id for the notification. Try again."))?;
        let (kind, group_key) = (self.kind.shared(), self.group_key());
        let sent = Sent { id, kind: &kind, group_key: &group_key, actor: self.content.actor_id };
        for (at, user) in self.recipients.iter().enumerate() {
            rules::join(rows, *user, sent, now)
                .map_err(|problem| problem.at(format!("/recipients/{at}"), "exceeds the limit of notification types for this user"))?;
        }
        let recipients = i64::try_from(self.recipients.len()).unwrap_or(i64::MAX);
        let notification = Notification { kind: self.kind.clone(), stored: self.stored.clone(), created_at: now, recipients };
        let out = NotificationOut::new(id, &notification, 0);
        rules::tell(rows, id, &notification, NotificationChange::Sent, now);
        rows.get_mut::<NotificationRows>().make(id, notification);
        Ok(out)
    }
}

impl lanes::Command for NotificationCommand {
    fn needs(&self, needs: &mut Needs) {
        self.recipients().into_iter().flatten().for_each(|user| needs.user(*user));
        match self {
            Self::Send(new) => {
                new.needs(needs.of::<NotificationRows>());
                new.content.actor_id.into_iter().for_each(|actor| need_named(needs, actor));
            }
            Self::Mark { user, id, .. } | Self::Delete { user, id, .. } => {
                needs.user(*user);
                needs.of::<NotificationRows>().entries.insert((*id, *user));
            }
            Self::MarkMany { user, which, up_to, .. } => {
                needs.user(*user);
                let of = needs.of::<NotificationRows>();
                of.types_of.insert(*user);
                match which {
                    Which::Named(ids) => of.entries.extend(ids.iter().map(|id| (*id, *user))),
                    Which::Oldest(kind, rows) => {
                        of.unread.insert(Unread { user: *user, kind: kind.clone(), up_to: *up_to, rows: *rows });
                    }
                }
            }
            Self::See { user, up_to } => {
                needs.user(*user);
                let of = needs.of::<NotificationRows>();
                of.types_of.insert(*user);
                of.seen.insert((*user, *up_to));
            }
            Self::Edit { id, recipients, .. } | Self::Withdraw { id, recipients, .. } | Self::Expire { id, recipients, .. } => {
                let of = needs.of::<NotificationRows>();
                of.notifications.insert(*id);
                of.holders.extend(recipients.iter().map(|user| (*id, *user)));
            }
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Mark { user, .. } | Self::MarkMany { user, .. } | Self::See { user, .. } | Self::Delete { user, .. } => user.get(),
            _ => self.recipients().and_then(<[UserId]>::first).map_or(0, |user| user.get()),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Send(new) => {
                let recipients = new.recipients.iter().enumerate().map(|(at, user)| (*user, format!("/recipients/{at}")));
                recipients.chain(new.content.actor_id.map(|actor| (actor, "/actor_id".to_owned()))).collect()
            }
            Self::Mark { user, .. } | Self::MarkMany { user, .. } | Self::See { user, .. } | Self::Delete { user, .. } => {
                vec![in_path(*user)]
            }
            Self::Edit { .. } | Self::Withdraw { .. } | Self::Expire { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::MarkMany { which: Which::Named(ids), .. } => u32::try_from(ids.len()).unwrap_or(u32::MAX),
            Self::MarkMany { which: Which::Oldest(_, rows), .. } => u32::try_from(*rows).unwrap_or(u32::MAX),
            _ => self.recipients().map_or(1, |users| u32::try_from(users.len()).unwrap_or(u32::MAX)),
        }
    }

    fn by_user(&self) -> Option<UserId> {
        match self {
            Self::MarkMany { user, .. } => Some(*user),
            _ => None,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Send(new) => Ok(Answer::created(new.send(rows, now)?)),
            Self::Mark { user, id, read, kept_from } => Ok(Answer::ok(rules::mark(rows, *user, *id, *read, *kept_from, now)?)),
            Self::MarkMany { user, which, up_to, kept_from } => Ok(Answer::ok(mark_many(rows, *user, which, *up_to, *kept_from, now)?)),
            Self::See { user, up_to } => Ok(Answer::ok(rules::see(rows, *user, *up_to))),
            Self::Delete { user, id, kept_from } => {
                let before = rows.get::<NotificationRows>().entry(*user, *id).ok_or_else(|| missing(*id, *kept_from))?;
                rules::set(rows, *user, *id, Some(&before), Entry { gone: true, ..before.clone() });
                Ok(Answer::ok(DeletedNotificationOut { revision: rows.revision(*user) }))
            }
            Self::Edit { id, edit, recipients, kept_from } => {
                Ok(Answer::ok(rules::edit(rows, *id, edit, (recipients.as_slice(), *kept_from), now)?))
            }
            Self::Withdraw { id, recipients, kept_from } => {
                if rows.get::<NotificationRows>().is_withdrawn(*id) == Some(false) {
                    if let Some(held) = rows.get::<NotificationRows>().notification(*id) {
                        rules::tell(rows, *id, &held, NotificationChange::Withdrawn, now);
                    }
                    rows.get_mut::<NotificationRows>().withdraw(*id);
                    recipients.iter().for_each(|user| rules::take_out(rows, *user, *id, *kept_from));
                }
                Ok(Answer::no_content())
            }
            Self::Expire { id, recipients, kept_from } => {
                recipients.iter().for_each(|user| rules::expire(rows, *user, *id, *kept_from));
                rows.get_mut::<NotificationRows>().drop_notification(*id);
                Ok(Answer::no_content())
            }
        }
    }
}
