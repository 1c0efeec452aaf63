//! The rows of `notifications`, `notification_receivers` and `notification_types`: what a batch
//! needs of them, holds of them and writes back. What is read of them outside of batches is in
//! `lists.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::{try_join_all, try_join4};

use super::store::{self, ReceiverRow, TypeKey};
use super::{Notification, Receiver, Unread};
use crate::base::ids::{NotificationId, UserId};
use crate::cache::Parts;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};
use crate::engine::marks::parts::Part;

/// Which of these rows a batch needs. The users' own rows are asked for beside it.
#[derive(Debug, Default)]
pub struct NotificationNeeds {
    /// Notifications by id.
    pub notifications: BTreeSet<NotificationId>,
    /// What users have of notifications; with it the numbers of their types.
    pub receivers: BTreeSet<(NotificationId, UserId)>,
    /// Some of what users have not read; with it the numbers of their types.
    pub unread: BTreeSet<Unread>,
    /// Numbers of single types.
    pub types: BTreeSet<TypeKey>,
    /// The numbers of all types.
    pub types_of: BTreeSet<UserId>,
}

/// A notification in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    withdrawn: bool,
    /// For one that the batch makes.
    new: Option<Arc<Notification>>,
}

#[derive(Debug, Default)]
pub struct NotificationRows {
    notifications: Table<NotificationId, Option<Held>>,
    receivers: Table<(UserId, i64), Option<Receiver>>,
    types: Table<TypeKey, Option<i64>>,
    /// How many types a user has, where that matters.
    type_counts: Table<UserId, i64>,
    /// Under which seq a user has a notification. One whose command was undone leads to no row.
    seqs: HashMap<(NotificationId, UserId), i64>,
    /// Those of which there may be more than were loaded.
    unfinished: BTreeSet<Unread>,
}

impl NotificationRows {
    fn take(&mut self, rows: Vec<ReceiverRow>) {
        let rows: Vec<_> = rows.into_iter().filter_map(store::receiver_of_row).collect();
        self.seqs.extend(rows.iter().map(|((user, seq), receiver)| ((receiver.notification, *user), *seq)));
        self.receivers.insert_loaded(rows.into_iter().map(|(key, receiver)| (key, Some(receiver))));
    }

    /// The numbers of the types that are asked for, and of what was loaded of receivers.
    async fn load_types(&mut self, pipeline: &Pipeline, needs: &NotificationNeeds) -> DbResult<()> {
        let mut types = needs.types.clone();
        types.extend(self.receivers.rows.iter().filter_map(|((user, _), (_, now))| Some((*user, Arc::clone(&now.as_ref()?.kind)))));
        for (user, kind, unread, count) in store::load_types(pipeline, &types).await? {
            let Ok(user) = UserId::try_from(user) else { continue };
            if unread < 0 {
                self.type_counts.insert_loaded([(user, count)]);
            } else {
                self.types.insert_loaded([((user, Arc::from(kind)), Some(unread))]);
            }
        }
        Ok(())
    }

    async fn save_notifications(&self, conn: &mut Conn) -> DbResult<()> {
        let new: Vec<_> = self.notifications.changed().filter_map(|(id, held)| Some((*id, held.as_ref()?.new.as_ref()?))).collect();
        if !new.is_empty() {
            store::insert_notifications(conn, &new).await?;
        }
        let withdrawn: Vec<_> =
            self.notifications.changed().filter(|(_, held)| held.as_ref().is_some_and(|held| held.withdrawn)).map(|(id, _)| *id).collect();
        if !withdrawn.is_empty() {
            store::withdraw(conn, &withdrawn).await?;
        }
        let dropped: Vec<_> = self.notifications.changed().filter(|(_, held)| held.is_none()).map(|(id, _)| *id).collect();
        if !dropped.is_empty() {
            store::delete_notifications(conn, &dropped).await?;
        }
        Ok(())
    }

    /// Whether a notification was withdrawn; None where there is none.
    #[must_use]
    pub fn is_withdrawn(&self, id: NotificationId) -> Option<bool> {
        self.notifications.get(&id).map(|held| held.withdrawn)
    }

    /// Makes a notification.
    pub fn make(&mut self, id: NotificationId, notification: Notification) {
        self.notifications.set(&id, Some(Held { withdrawn: false, new: Some(Arc::new(notification)) }));
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

    /// What a user has of a notification, and under which seq.
    #[must_use]
    pub fn receiver(&self, user: UserId, id: NotificationId) -> Option<(i64, Receiver)> {
        let seq = *self.seqs.get(&(id, user))?;
        Some((seq, self.receivers.get(&(user, seq))?))
    }

    /// Sets what a user has of a notification.
    pub fn set_receiver(&mut self, user: UserId, seq: i64, receiver: Receiver) {
        self.seqs.insert((receiver.notification, user), seq);
        self.receivers.set(&(user, seq), Some(receiver));
    }

    /// Drops what a user has of a notification.
    pub fn drop_receiver(&mut self, user: UserId, seq: i64) {
        self.receivers.set(&(user, seq), None);
    }

    /// What is here of a user's notifications, in the order of seq.
    pub fn of_user(&self, user: UserId) -> impl Iterator<Item = (i64, &Receiver)> {
        let mine = self.receivers.from(&(user, 0)).take_while(move |((of, _), _)| *of == user);
        mine.filter_map(|((_, seq), receiver)| Some((*seq, receiver.as_ref()?)))
    }

    /// Whether the user may have more of those than are here.
    #[must_use]
    pub fn is_unfinished(&self, unread: &Unread) -> bool {
        self.unfinished.contains(unread)
    }

    /// How many of a type a user has not read; None where the user never had any of it.
    #[must_use]
    pub fn unread(&self, user: UserId, kind: &Arc<str>) -> Option<i64> {
        self.types.get(&(user, Arc::clone(kind)))
    }

    /// Sets that number.
    pub fn set_unread(&mut self, user: UserId, kind: &Arc<str>, unread: i64) {
        let key = (user, Arc::clone(kind));
        if self.types.get(&key).is_none() {
            let count = self.type_count(user);
            self.type_counts.set(&user, count + 1);
        }
        self.types.set(&key, Some(unread));
    }

    /// How many types a user has; known where one that was asked for would be new.
    #[must_use]
    pub fn type_count(&self, user: UserId) -> i64 {
        self.type_counts.get(&user)
    }

    /// The numbers of a user's types that are here.
    pub fn types_of(&self, user: UserId) -> impl Iterator<Item = (&Arc<str>, i64)> {
        let mine = self.types.from(&(user, Arc::from(""))).take_while(move |((of, _), _)| *of == user);
        mine.filter_map(|((_, kind), unread)| Some((kind, (*unread)?)))
    }

    /// The numbers that changed.
    pub fn changed_types(&self) -> impl Iterator<Item = (UserId, &str, i64)> {
        self.types.changed().filter_map(|((user, kind), unread)| Some((*user, &**kind, (*unread)?)))
    }
}

/// How many notifications of a type are unread, as a part.
#[must_use]
pub fn notification_part(kind: &str, unread: i64) -> Part {
    (format!("m:{kind}").into(), unread.to_string().into())
}

impl RowSet for NotificationRows {
    const ENTRY_ROWS: Option<EntryRows> = Some(EntryRows {
        select: "select t.user_id, {kind}, t.type, t.unread, 0, 0, 0, 0, 0, cast(null as bytea)
    from {rows} r
    join notification_types t on t.user_id = r.user_id",
        part: |row| Some(notification_part(&row.text, row.numbers[0])),
    });

    type Needs = NotificationNeeds;

    fn statements() -> Vec<&'static Statement> {
        store::statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &NotificationNeeds) -> DbResult<()> {
        let unread = try_join_all(needs.unread.iter().map(|unread| store::load_unread(pipeline, unread)));
        let (notifications, receivers, unread, types) = try_join4(
            store::load_notifications(pipeline, &needs.notifications),
            store::load_receivers(pipeline, &needs.receivers),
            unread,
            store::load_types_of(pipeline, &needs.types_of),
        )
        .await?;
        let held =
            |(id, withdrawn): (i64, i64)| Some((NotificationId::try_from(id).ok()?, Some(Held { withdrawn: withdrawn == 1, new: None })));
        self.notifications.insert_loaded(notifications.into_iter().filter_map(held));
        self.take(receivers);
        for (asked, rows) in needs.unread.iter().zip(unread) {
            if i64::try_from(rows.len()).unwrap_or(i64::MAX) >= asked.rows {
                self.unfinished.insert(asked.clone());
            }
            self.take(rows);
        }
        let kind = |(user, kind, unread): (i64, String, i64)| Some(((UserId::try_from(user).ok()?, Arc::from(kind)), Some(unread)));
        self.types.insert_loaded(types.into_iter().filter_map(kind));
        self.load_types(pipeline, needs).await
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        self.save_notifications(conn).await?;
        let (mut made, mut changed, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for (key, (loaded, now)) in self.receivers.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            match now {
                None => dropped.push(key),
                Some(now) if loaded.is_none() => made.push((key, now)),
                Some(now) => changed.push((key, now)),
            }
        }
        if !dropped.is_empty() {
            store::delete_receivers(conn, &dropped).await?;
        }
        if !made.is_empty() {
            store::insert_receivers(conn, &made).await?;
        }
        if !changed.is_empty() {
            store::update_receivers(conn, &changed).await?;
        }
        let types: Vec<_> = self.types.changed().filter_map(|(key, unread)| Some((key, (*unread)?))).collect();
        if !types.is_empty() {
            store::save_types(conn, &types).await?;
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.notifications.settle();
        self.receivers.settle();
        self.types.settle();
        self.type_counts.settle();
    }

    fn undo(&mut self) {
        self.notifications.undo();
        self.receivers.undo();
        self.types.undo();
        self.type_counts.undo();
    }

    fn parts(&self, parts: &mut BTreeMap<UserId, Parts>) {
        for (user, kind, unread) in self.changed_types() {
            parts.entry(user).or_default().extend([notification_part(kind, unread)]);
        }
    }
}
