//! The rules of a user's list, over the rows of a batch: how a notification joins it, is taken out
//! of it, and how an entry is marked, seen or deleted.

use std::sync::Arc;

use super::entry::{Entry, Grouped, MAX_IN_ENTRY};
use super::out::{NotificationOut, ReadNotificationOut, SeenNotificationsOut};
use super::rows::NotificationRows;
use super::{Edit, MAX_TYPES, Notification};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{NotificationId, UserId};
use crate::engine::events::{Event, NotificationChange, NotificationEventOut};
use crate::engine::lanes::Rows;

/// Why there is no row: the entry or notification never was, or, as ids begin with their time, is
/// kept no longer.
pub(super) fn missing(id: NotificationId, kept_from: i64) -> Problem {
    if id.get() < kept_from {
        return Problem::new(Code::Gone, format!("Notification {id} has expired."));
    }
    Problem::new(Code::NotFound, format!("Notification {id} does not exist."))
}

pub(super) fn gone(id: NotificationId) -> Problem {
    Problem::new(Code::Gone, format!("Notification {id} was deleted or withdrawn."))
}

/// When something is read now; 0 means never.
pub(super) fn moment(now: UnixMs) -> UnixMs {
    UnixMs(now.0.max(1))
}

/// Tells the readers of events.
pub(super) fn tell(rows: &mut Rows, id: NotificationId, notification: &Notification, change: NotificationChange, now: UnixMs) {
    let (r#type, actor_id) = (notification.kind.clone(), notification.content().actor_id);
    let event = NotificationEventOut { notification_id: id, r#type, actor_id, recipient_count: notification.recipients, change };
    rows.event(now, &Event::Notification(event));
}

/// A notification that is sent, and by what receivers' lists group it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) id: NotificationId,
    pub(super) kind: &'a Arc<str>,
    /// Empty: it is an entry of its own.
    pub(super) group_key: &'a Arc<str>,
    /// Whose act it tells of.
    pub(super) actor: Option<UserId>,
}

/// A notification for a user. It joins the open entry of its type and key with the highest seq, or
/// begins a new one. Where the user blocks or mutes the actor, a row says that the user is a recipient.
/// Nothing else changes then: not the revision either, from which others could tell.
///
/// # Errors
/// Where it would be of a type too many.
pub(super) fn join(rows: &mut Rows, user: UserId, sent: Sent<'_>, now: UnixMs) -> Result<(), Problem> {
    let of = rows.get::<NotificationRows>();
    // Before the silence. Else a sender of a new type would learn from the missing error that this
    // receiver silences the actor.
    let Some(types) = of.room_for(user, sent.kind) else {
        return Err(Problem::new(Code::TooMany, format!("A recipient has unread notifications of {MAX_TYPES} other types.")));
    };
    if sent.actor.is_some_and(|actor| of.silence(user, actor).holds(now)) {
        rows.get_mut::<NotificationRows>().set_entry(user, sent.id, Some(Entry::silenced(sent.id, sent.kind, now)));
        return Ok(());
    }
    let is_grouped = !sent.group_key.is_empty();
    let open = if is_grouped { of.open(user, sent.kind, sent.group_key) } else { None };
    drop_types(rows, user, &types);
    rows.revise(user, |row| row.notification_seq += 1);
    let seq = rows.user(user).notification_seq;
    let id = match open {
        Some((id, before)) if before.notifications < MAX_IN_ENTRY => {
            let after = Entry { seq, notifications: before.notifications + 1, updated_at: now, ..before.clone() };
            set(rows, user, id, Some(&before), after);
            id
        }
        _ => {
            let (kind, group_key) = (Arc::clone(sent.kind), Arc::clone(sent.group_key));
            let read_at = UnixMs(0);
            let entry = Entry { seq, kind, group_key, notifications: 1, created_at: now, updated_at: now, read_at, gone: false };
            set(rows, user, sent.id, None, entry);
            sent.id
        }
    };
    if is_grouped {
        rows.get_mut::<NotificationRows>().set_grouped(
            user,
            sent.id,
            Some(Grouped { entry: id, seq, actor: sent.actor.map_or(0, UserId::get) }),
        );
    }
    Ok(())
}

/// These types make room for another one. A part of an entry in the cache cannot be taken away, so the entry is read
/// again.
fn drop_types(rows: &mut Rows, user: UserId, types: &[Arc<str>]) {
    for kind in types {
        rows.get_mut::<NotificationRows>().drop_type(user, kind);
        rows.read_entry_again(user);
    }
}

/// Sets an entry, takes the numbers of its type along, and raises the user's revision where the
/// list shows the entry, or did. The same as before changes nothing.
pub(super) fn set(rows: &mut Rows, user: UserId, id: NotificationId, before: Option<&Entry>, after: Entry) {
    if before == Some(&after) {
        return;
    }
    let seen = rows.user(user).notification_seen;
    let (was, is) = (before.map(|before| before.counted(seen)).unwrap_or_default(), after.counted(seen));
    let of = rows.get_mut::<NotificationRows>();
    if was != is || before.is_none() {
        let count = of.count(user, &after.kind).unwrap_or_default().moved(was, is);
        of.set_count(user, &after.kind, count);
    }
    let is_shown = before.is_none_or(|before| !before.gone);
    of.set_entry(user, id, Some(after));
    if is_shown {
        rows.revise(user, |_| {});
    }
}

/// Takes a notification out of a user's list. With the last one its entry goes. The row of an entry
/// whose first notification is kept no longer goes too, as nothing will ever ask for it.
pub(super) fn take_out(rows: &mut Rows, user: UserId, notification: NotificationId, kept_from: i64) {
    let of = rows.get_mut::<NotificationRows>();
    let id = match of.grouped(user, notification) {
        Some(grouped) => {
            of.set_grouped(user, notification, None);
            grouped.entry
        }
        // An entry of its own.
        None if of.entry(user, notification).is_some_and(|entry| entry.group_key.is_empty()) => notification,
        None => return,
    };
    let Some(before) = of.entry(user, id).filter(|entry| entry.notifications > 0) else { return };
    let notifications = before.notifications - 1;
    set(rows, user, id, Some(&before), Entry { notifications, gone: before.gone || notifications == 0, ..before.clone() });
    if notifications == 0 && id.get() < kept_from {
        rows.get_mut::<NotificationRows>().set_entry(user, id, None);
    }
}

/// A notification is kept no longer. The entry that it began goes with it, unless others are in it. So
/// does the row of a receiver who silenced the actor.
pub(super) fn expire(rows: &mut Rows, user: UserId, notification: NotificationId, kept_from: i64) {
    take_out(rows, user, notification, kept_from);
    let of = rows.get_mut::<NotificationRows>();
    if of.entry(user, notification).is_none_or(|entry| entry.notifications == 0) {
        of.set_entry(user, notification, None);
    }
}

/// Whether the user's list shows an entry with this notification in it.
fn shows(rows: &Rows, user: UserId, notification: NotificationId) -> bool {
    holder(rows, user, notification).is_some_and(|entry| !entry.gone)
}

/// The entry that holds a notification.
fn holder(rows: &Rows, user: UserId, notification: NotificationId) -> Option<Entry> {
    let of = rows.get::<NotificationRows>();
    of.entry(user, of.grouped(user, notification).map_or(notification, |grouped| grouped.entry))
}

/// Edits what a notification says. The lists that show it are others from then on, and so are the
/// revisions of their users; no number changes.
///
/// # Errors
/// Where it is not there.
pub(super) fn edit(
    rows: &mut Rows,
    id: NotificationId,
    edit: &Edit,
    (recipients, kept_from): (&[UserId], i64),
    now: UnixMs,
) -> Result<NotificationOut, Problem> {
    let held = rows.get::<NotificationRows>().notification(id).ok_or_else(|| missing(id, kept_from))?;
    if rows.get::<NotificationRows>().is_withdrawn(id) == Some(true) {
        return Err(gone(id));
    }
    let edited = edit.of(&held.content(), now, held.created_at).and_then(|content| content.stored().ok());
    let notification = edited.map_or_else(|| (*held).clone(), |stored| Notification { stored, ..(*held).clone() });
    if notification != *held {
        for user in recipients.iter().filter(|user| shows(rows, **user, id)).copied().collect::<Vec<_>>() {
            rows.revise(user, |_| {});
        }
        rows.get_mut::<NotificationRows>().edit(id, notification.clone());
        tell(rows, id, &notification, NotificationChange::Edited, now);
    }
    let read = recipients.iter().filter(|user| holder(rows, **user, id).is_some_and(|entry| entry.read_at != UnixMs(0))).count();
    Ok(NotificationOut::new(id, &notification, i64::try_from(read).unwrap_or(i64::MAX)))
}

/// Marks an entry. Reading again keeps the time of the first.
///
/// # Errors
/// Where it is not there, or becomes unread and would be of a type too many.
pub(super) fn mark(
    rows: &mut Rows,
    user: UserId,
    id: NotificationId,
    read: bool,
    kept_from: i64,
    now: UnixMs,
) -> Result<ReadNotificationOut, Problem> {
    let before = rows.get::<NotificationRows>().entry(user, id).ok_or_else(|| missing(id, kept_from))?;
    if before.gone {
        return Err(gone(id));
    }
    let read_at = match (read, before.read_at) {
        (true, UnixMs(0)) => moment(now),
        (true, first) => first,
        (false, _) => UnixMs(0),
    };
    if read_at != before.read_at && !read {
        // Its type may have made room for another one since it was read.
        let types = rows.get::<NotificationRows>().room_for(user, &before.kind);
        let full = || Problem::new(Code::TooMany, format!("The user has unread notifications of {MAX_TYPES} other types."));
        drop_types(rows, user, &types.ok_or_else(full)?);
    }
    set(rows, user, id, Some(&before), Entry { read_at, ..before.clone() });
    let count = rows.get::<NotificationRows>().count(user, &before.kind).unwrap_or_default();
    Ok(ReadNotificationOut {
        id,
        read_at: Some(read_at).filter(|at| *at != UnixMs(0)),
        unread: count.unread,
        unseen: count.unseen(),
        revision: rows.revision(user),
    })
}

/// The user has seen the list up to a seq. The mark never goes back.
pub(super) fn see(rows: &mut Rows, user: UserId, up_to: i64) -> SeenNotificationsOut {
    let row = rows.user(user);
    let mark = up_to.min(row.notification_seq);
    if mark > row.notification_seen {
        rows.revise(user, |row| row.notification_seen = mark);
        let of = rows.get_mut::<NotificationRows>();
        for (kind, count) in of.counts_of(user) {
            let seen = of.unread_up_to(user, &kind, up_to).clamp(0, count.unread);
            of.set_count(user, &kind, super::Count { seen, ..count });
        }
    }
    let unseen = rows.get::<NotificationRows>().counts_of(user).into_iter().map(|(_, count)| count.unseen()).sum();
    SeenNotificationsOut { unseen, revision: rows.revision(user) }
}
