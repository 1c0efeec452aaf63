//! The rows of `notifications`, `notification_receivers`, `grouped_notifications` and
//! `notification_types`: what a batch needs of them, holds of them and writes back. What is read of
//! them outside of batches is in `lists.rs` and `reads.rs`.

mod types;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::{try_join, try_join_all, try_join4};

use super::entry::{Count, Entry, EntryKey, Grouped, Held, OpenKey, TypeKey};
use super::store::{self, EntryRow};
use super::{Notification, Unread, grouped_store, sent_store, silenced, type_store};
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, EntryParts, RowSet, Table};
use crate::engine::marks::parts::Part;
use crate::features::silence::Silence;

/// Which of these rows a batch needs. The users' own rows are asked for beside it.
#[derive(Debug, Default)]
pub struct NotificationNeeds {
    /// Notifications by id.
    pub notifications: BTreeSet<NotificationId>,
    /// Users' entries by id; with them, as with all entries, the numbers of their types.
    pub entries: BTreeSet<(NotificationId, UserId)>,
    /// The entries that hold these notifications, and what says so.
    pub holders: BTreeSet<(NotificationId, UserId)>,
    /// Open entries. Only marking as unread makes a second one of a key, so they are few.
    pub open: BTreeSet<OpenKey>,
    /// Some of what users have not read.
    pub unread: BTreeSet<Unread>,
    /// Up to which seqs users see their lists: how many unread entries of each type become seen.
    pub seen: BTreeSet<(UserId, i64)>,
    /// Numbers of single types.
    pub types: BTreeSet<TypeKey>,
    /// The numbers of all types.
    pub types_of: BTreeSet<UserId>,
    /// Receivers with the actor of what is sent: whether the one blocks or mutes the other.
    pub silences: BTreeSet<(UserId, UserId)>,
}

#[derive(Debug, Default)]
pub struct NotificationRows {
    notifications: Table<NotificationId, Option<Held>>,
    entries: Table<EntryKey, Option<Entry>>,
    /// By the notification.
    grouped: Table<EntryKey, Option<Grouped>>,
    types: Table<TypeKey, Option<Count>>,
    /// How many types a user has, where that matters.
    type_counts: Table<UserId, i64>,
    /// Who blocks or mutes whom, where that was asked for. The rows of that are written elsewhere.
    silences: Table<(UserId, UserId), Silence>,
    /// Those of which there may be more than were loaded.
    unfinished: BTreeSet<Unread>,
    /// Unread entries of each type above the mark and up to a seq, as loaded, where that is below the end of the list.
    newly_seen: HashMap<(UserId, i64), HashMap<Arc<str>, i64>>,
}

impl NotificationRows {
    fn take(&mut self, rows: Vec<EntryRow>) {
        self.entries.insert_loaded(rows.into_iter().filter_map(store::entry_of_row).map(|(key, entry)| (key, Some(entry))));
    }

    async fn save_notifications(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut made, mut withdrawn, mut edited, mut dropped) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (id, (loaded, now)) in self.notifications.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            match (loaded, now) {
                (_, None) => dropped.push(*id),
                (None, Some(now)) => made.push((*id, now)),
                (Some(loaded), Some(now)) => {
                    if now.withdrawn && !loaded.withdrawn {
                        withdrawn.push(*id);
                    }
                    if now.notification != loaded.notification {
                        edited.push((*id, &*now.notification));
                    }
                }
            }
        }
        sent_store::insert(conn, &made).await?;
        sent_store::withdraw(conn, &withdrawn).await?;
        sent_store::edit(conn, &edited).await?;
        sent_store::delete(conn, &dropped).await
    }

    async fn save_entries(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut made, mut changed, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.entries.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            match now {
                None => dropped.push(key),
                Some(now) if loaded.is_none() => made.push((key, now)),
                Some(now) => changed.push((key, now)),
            }
        }
        store::delete_entries(conn, &dropped).await?;
        store::insert_entries(conn, &made).await?;
        store::update_entries(conn, &changed).await
    }

    async fn save_grouped(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut made, mut dropped) = (Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.grouped.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            match (loaded, now) {
                (_, Some(now)) => made.push((key, now)),
                (Some(loaded), None) => dropped.push((key, loaded)),
                (None, None) => {}
            }
        }
        grouped_store::delete(conn, &dropped).await?;
        grouped_store::insert(conn, &made).await
    }

    /// Whether a user blocks or mutes an actor, where that was asked for.
    #[must_use]
    pub(super) fn silence(&self, user: UserId, actor: UserId) -> Silence {
        self.silences.get(&(user, actor))
    }

    /// A user blocks or mutes another one otherwise than before: what the rest of the batch sends goes
    /// by that.
    pub fn set_silence(&mut self, user: UserId, actor: UserId, change: impl Fn(&mut Silence)) {
        let mut silence = self.silence(user, actor);
        change(&mut silence);
        self.silences.set(&(user, actor), silence);
    }

    /// A notification that is there.
    #[must_use]
    pub fn notification(&self, id: NotificationId) -> Option<Arc<Notification>> {
        self.notifications.get(&id).map(|held| held.notification)
    }

    /// Whether a notification was withdrawn; None where there is none.
    #[must_use]
    pub fn is_withdrawn(&self, id: NotificationId) -> Option<bool> {
        self.notifications.get(&id).map(|held| held.withdrawn)
    }

    /// Makes a notification.
    pub fn make(&mut self, id: NotificationId, notification: Notification) {
        self.notifications.set(&id, Some(Held { withdrawn: false, notification: Arc::new(notification) }));
    }

    /// A notification that is there says something else.
    pub fn edit(&mut self, id: NotificationId, notification: Notification) {
        if let Some(held) = self.notifications.get(&id) {
            self.notifications.set(&id, Some(Held { notification: Arc::new(notification), ..held }));
        }
    }

    /// Withdraws a notification that is there.
    pub fn withdraw(&mut self, id: NotificationId) {
        if let Some(held) = self.notifications.get(&id) {
            self.notifications.set(&id, Some(Held { withdrawn: true, ..held }));
        }
    }

    /// Drops a notification; what its receivers have of it is dropped beside it.
    pub fn drop_notification(&mut self, id: NotificationId) {
        self.notifications.set(&id, None);
    }

    /// An entry of a user's list, also where it is gone. None of a receiver who silenced the actor.
    #[must_use]
    pub fn entry(&self, user: UserId, id: NotificationId) -> Option<Entry> {
        self.entries.get(&(user, id)).filter(|entry| !entry.is_silenced())
    }

    /// Sets an entry; None drops it.
    pub fn set_entry(&mut self, user: UserId, id: NotificationId, entry: Option<Entry>) {
        self.entries.set(&(user, id), entry);
    }

    /// Which entry of a user a notification with a group key is in.
    #[must_use]
    pub fn grouped(&self, user: UserId, notification: NotificationId) -> Option<Grouped> {
        self.grouped.get(&(user, notification))
    }

    /// Sets that; None takes it out.
    pub fn set_grouped(&mut self, user: UserId, notification: NotificationId, grouped: Option<Grouped>) {
        self.grouped.set(&(user, notification), grouped);
    }

    /// The entry with the highest seq that a notification of this type and group key joins, where
    /// those were asked for.
    #[must_use]
    pub fn open(&self, user: UserId, kind: &str, group_key: &str) -> Option<(NotificationId, Entry)> {
        let open = self.of_user(user).filter(|(_, entry)| entry.is_open_for(kind, group_key));
        open.max_by_key(|(_, entry)| entry.seq).map(|(id, entry)| (id, entry.clone()))
    }

    /// What is here of a user's entries.
    pub fn of_user(&self, user: UserId) -> impl Iterator<Item = (NotificationId, &Entry)> {
        let mine = self.entries.rows.range((user, NotificationId::MIN)..).take_while(move |((of, _), _)| *of == user);
        mine.filter_map(|((_, id), (_, now))| Some((*id, now.as_ref()?)))
    }

    /// Whether the user may have more of those than are here.
    #[must_use]
    pub fn is_unfinished(&self, unread: &Unread) -> bool {
        self.unfinished.contains(unread)
    }

    /// How many unread entries of a type a user has up to a seq that was asked for, and that is above the
    /// mark: as loaded, and what the batch has changed since.
    #[must_use]
    pub fn unread_up_to(&self, user: UserId, kind: &Arc<str>, seq: i64) -> i64 {
        let loaded = self.types.rows.get(&(user, Arc::clone(kind))).and_then(|(loaded, _)| *loaded).unwrap_or_default();
        let unread = match self.newly_seen.get(&(user, seq)) {
            Some(of_types) => loaded.seen + of_types.get(kind).copied().unwrap_or(0),
            // The list ended there, or below.
            None => loaded.unread,
        };
        let counts = |entry: &Option<Entry>| {
            let is_meant = |entry: &Entry| entry.is_unread() && entry.seq <= seq && entry.kind == *kind;
            i64::from(entry.as_ref().is_some_and(is_meant))
        };
        let mine = self.entries.rows.range((user, NotificationId::MIN)..).take_while(|((of, _), _)| *of == user);
        let since: i64 = mine.map(|(_, (loaded, now))| counts(now) - counts(loaded)).sum();
        unread + since
    }
}

/// The numbers of a type, as a part: how many are unread, and where that is another number how many
/// of these are unseen.
#[must_use]
pub fn notification_part(kind: &str, count: Count) -> Part {
    let numbers = if count.unseen() == count.unread { count.unread.to_string() } else { format!("{} {}", count.unread, count.unseen()) };
    (format!("m:{kind}").into(), numbers.into())
}

impl RowSet for NotificationRows {
    const ENTRY_ROWS: Option<EntryRows> = Some(EntryRows {
        select: "select t.user_id, {kind}, t.type, t.unread, t.seen, 0, 0, 0, 0, cast(null as bytea)
    from {rows} r
    join notification_types t on t.user_id = r.user_id",
        part: |row| Some(notification_part(&row.text, Count { unread: row.numbers[0], seen: row.numbers[1] })),
    });

    type Needs = NotificationNeeds;

    fn statements() -> Vec<&'static Statement> {
        let of_entries = [store::statements().as_slice(), &sent_store::statements(), &grouped_store::statements()].concat();
        [of_entries.as_slice(), &type_store::statements(), &silenced::statements()].concat()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &NotificationNeeds) -> DbResult<()> {
        let unread = try_join_all(needs.unread.iter().map(|unread| store::load_unread(pipeline, unread)));
        let by_id: BTreeSet<_> = needs.entries.union(&needs.holders).copied().collect();
        let ((notifications, entries, unread, types), (holders, open, newly_seen, silences)) = try_join(
            try_join4(
                sent_store::lock(pipeline, &needs.notifications),
                store::load_entries(pipeline, &by_id),
                unread,
                type_store::load_of_users(pipeline, &needs.types_of),
            ),
            try_join4(
                grouped_store::load_holders(pipeline, &needs.holders),
                grouped_store::load_open(pipeline, &needs.open),
                store::load_newly_seen(pipeline, &needs.seen),
                silenced::load(pipeline, &needs.silences),
            ),
        )
        .await?;
        self.notifications.insert_loaded(notifications.into_iter().filter_map(sent_store::held_of_row));
        self.silences.insert_loaded(silences);
        self.take(entries);
        self.take(open);
        let (grouped, held): (Vec<_>, Vec<_>) = holders.into_iter().filter_map(grouped_store::split).unzip();
        self.grouped.insert_loaded(grouped.into_iter().map(|(key, grouped)| (key, Some(grouped))));
        self.take(held);
        for (asked, rows) in needs.unread.iter().zip(unread) {
            if i64::try_from(rows.len()).unwrap_or(i64::MAX) >= asked.rows {
                self.unfinished.insert(asked.clone());
            }
            self.take(rows);
        }
        for (user, seq, kind, unread) in newly_seen {
            if let Ok(user) = UserId::try_from(user) {
                self.newly_seen.entry((user, seq)).or_default().insert(kind.into(), unread);
            }
        }
        self.take_types(types);
        self.load_types(pipeline, needs).await
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        self.save_notifications(conn).await?;
        self.save_entries(conn).await?;
        self.save_grouped(conn).await?;
        self.save_types(conn).await
    }

    fn settle(&mut self) {
        self.notifications.settle();
        self.entries.settle();
        self.grouped.settle();
        self.types.settle();
        self.type_counts.settle();
        self.silences.settle();
    }

    fn undo(&mut self) {
        self.notifications.undo();
        self.entries.undo();
        self.grouped.undo();
        self.types.undo();
        self.type_counts.undo();
        self.silences.undo();
    }

    fn parts(&self, parts: &mut EntryParts<'_>) {
        for ((user, kind), count) in self.types.changed() {
            parts.add(*user, || count.map(|count| notification_part(kind, count)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::UnixMs;

    #[test]
    fn what_is_unread_up_to_a_seq_is_as_loaded_and_as_changed_since() {
        let (user, kind) = (UserId::try_from(1).unwrap(), Arc::<str>::from("like"));
        let id = |at: i64| NotificationId::try_from(at).unwrap();
        let entry = |seq: i64, read_at: i64| {
            let (kind, group_key, at) = (Arc::clone(&kind), Arc::from(""), UnixMs(1));
            Some(Entry { seq, kind, group_key, notifications: 1, created_at: at, updated_at: at, read_at: UnixMs(read_at), gone: false })
        };
        // The user has seen the list up to 10. It ends at 30.
        let mut rows = NotificationRows::default();
        rows.types.insert_loaded([((user, Arc::clone(&kind)), Some(Count { unread: 6, seen: 3 }))]);
        rows.newly_seen.insert((user, 20), HashMap::from([(Arc::clone(&kind), 2)]));
        rows.newly_seen.insert((user, 11), HashMap::from([(Arc::from(""), 0)]));
        rows.entries.insert_loaded([((user, id(1)), entry(15, 0))]);
        let numbers = |rows: &NotificationRows| [11, 20, 30, 40].map(|seq| rows.unread_up_to(user, &kind, seq));
        assert_eq!(numbers(&rows), [3, 5, 6, 6]);
        rows.set_entry(user, id(1), entry(15, 9));
        assert_eq!(numbers(&rows), [3, 4, 5, 5], "it is read");
        rows.set_entry(user, id(1), entry(31, 0));
        assert_eq!(numbers(&rows), [3, 4, 5, 6], "it moved above what was the end");
        rows.set_entry(user, id(2), entry(32, 0));
        assert_eq!(numbers(&rows), [3, 4, 5, 7], "another one is new");
        rows.set_count(user, &kind, Count { unread: 7, seen: 4 });
        assert_eq!(numbers(&rows), [3, 4, 5, 7], "what the batch has counted is in its entries");
    }
}
