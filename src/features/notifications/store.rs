//! The rows of `notifications`, `notification_receivers` and `notification_types`: what a batch
//! needs of them, holds of them and writes back. What is read of them outside of batches is in
//! `lists.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::{try_join_all, try_join4};

use crate::base::clock::UnixMs;
use crate::base::ids::{NotificationId, UserId};
use crate::cache::Parts;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};
use crate::engine::marks::parts::Part;

use super::{Notification, Receiver, Unread};

static LOAD_NOTIFICATIONS: Statement = Statement::new(
    "select n.notification_id, n.withdrawn
    from {rows} r
    join notifications n on n.notification_id = r.notification_id",
    &[("notification_id", Type::Int)],
);

static INSERT_NOTIFICATIONS: Statement = Statement::insert(
    "notifications",
    &[
        ("notification_id", Type::Int),
        ("type", Type::Text),
        ("content", Type::Content),
        ("created_at", Type::Int),
        ("recipients", Type::Int),
        ("withdrawn", Type::Int),
    ],
);

static WITHDRAW: Statement = Statement::new(
    "update notifications
    set withdrawn = 1
    where notification_id in (select notification_id from {rows} r)",
    &[("notification_id", Type::Int)],
);

static LOAD_RECEIVERS: Statement = Statement::new(
    "select n.user_id, n.seq, n.notification_id, n.type, n.read_at, n.gone
    from {rows} r
    join notification_receivers n on n.notification_id = r.notification_id and n.user_id = r.user_id",
    &[("notification_id", Type::Int), ("user_id", Type::Int)],
);

static LOAD_UNREAD: Statement = Statement::one(
    "select n.user_id, n.seq, n.notification_id, n.type, n.read_at, n.gone
    from notification_receivers n
    where n.user_id = $1 and n.read_at = 0 and n.gone = 0 and n.seq <= $2
    order by n.seq
    limit $3",
    &[("user_id", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int)],
);

static LOAD_UNREAD_OF_TYPE: Statement = Statement::one(
    "select n.user_id, n.seq, n.notification_id, n.type, n.read_at, n.gone
    from notification_receivers n
    where n.user_id = $1 and n.read_at = 0 and n.gone = 0 and n.seq <= $2 and n.type = $4
    order by n.seq
    limit $3",
    &[("user_id", Type::Int), ("up_to", Type::Int), ("max_rows", Type::Int), ("type", Type::Text)],
);

static INSERT_RECEIVERS: Statement = Statement::insert(
    "notification_receivers",
    &[
        ("user_id", Type::Int),
        ("seq", Type::Int),
        ("notification_id", Type::Int),
        ("type", Type::Text),
        ("read_at", Type::Int),
        ("gone", Type::Int),
    ],
);

static UPDATE_RECEIVERS: Statement = Statement::new(
    "update notification_receivers
    set read_at = r.read_at, gone = r.gone
    from {rows} r
    where notification_receivers.user_id = r.user_id and notification_receivers.seq = r.seq",
    &[("user_id", Type::Int), ("seq", Type::Int), ("read_at", Type::Int), ("gone", Type::Int)],
);

static DELETE_RECEIVERS: Statement = Statement::new(
    "delete from notification_receivers
    where (user_id, seq) in (select user_id, seq from {rows} r)",
    &[("user_id", Type::Int), ("seq", Type::Int)],
);

static DELETE_NOTIFICATIONS: Statement = Statement::new(
    "delete from notifications
    where notification_id in (select notification_id from {rows} r)",
    &[("notification_id", Type::Int)],
);

/// With how many types the user has, where this one would be new.
static LOAD_TYPES: Statement = Statement::new(
    "select r.user_id, r.type, coalesce(t.unread, -1),
        case when t.user_id is null then (select count(*) from notification_types c where c.user_id = r.user_id) else 0 end
    from {rows} r
    left join notification_types t on t.user_id = r.user_id and t.type = r.type",
    &[("user_id", Type::Int), ("type", Type::Text)],
);

static LOAD_TYPES_OF_USERS: Statement = Statement::new(
    "select t.user_id, t.type, t.unread
    from {rows} r
    join notification_types t on t.user_id = r.user_id",
    &[("user_id", Type::Int)],
);

static SAVE_TYPES: Statement = Statement::new(
    "insert into notification_types (user_id, type, unread)
    select user_id, type, unread
    from {rows} r
    where true
    order by user_id, type
    on conflict (user_id, type) do update set unread = excluded.unread",
    &[("user_id", Type::Int), ("type", Type::Text), ("unread", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 13] {
    [
        &LOAD_NOTIFICATIONS,
        &INSERT_NOTIFICATIONS,
        &WITHDRAW,
        &LOAD_RECEIVERS,
        &LOAD_UNREAD,
        &LOAD_UNREAD_OF_TYPE,
        &INSERT_RECEIVERS,
        &UPDATE_RECEIVERS,
        &DELETE_RECEIVERS,
        &DELETE_NOTIFICATIONS,
        &LOAD_TYPES,
        &LOAD_TYPES_OF_USERS,
        &SAVE_TYPES,
    ]
}

/// The number of unread notifications of a type: whose, and which type.
type TypeKey = (UserId, Arc<str>);

/// Which of these rows a batch needs. The users' own rows are asked for beside it.
#[derive(Debug, Default)]
pub struct Needs {
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

/// A row of `notification_receivers`.
type ReceiverRow = (i64, i64, i64, String, i64, i64);

fn receiver_of_row((user, seq, notification, kind, read_at, gone): ReceiverRow) -> Option<((UserId, i64), Receiver)> {
    let notification = NotificationId::try_from(notification).ok()?;
    Some(((UserId::try_from(user).ok()?, seq), Receiver { notification, kind: kind.into(), read_at: UnixMs(read_at), gone: gone == 1 }))
}

fn ids<T: Copy>(items: &[T], id: fn(T) -> i64) -> Column {
    Column::Int(items.iter().map(|item| id(*item)).collect())
}

async fn load_notifications(pipeline: &Pipeline, notifications: &BTreeSet<NotificationId>) -> DbResult<Vec<(i64, i64)>> {
    if notifications.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_NOTIFICATIONS, [Column::Int(notifications.iter().map(|id| id.get()).collect())]).await
}

async fn load_receivers(pipeline: &Pipeline, receivers: &BTreeSet<(NotificationId, UserId)>) -> DbResult<Vec<ReceiverRow>> {
    if receivers.is_empty() {
        return Ok(Vec::new());
    }
    let notifications = Column::Int(receivers.iter().map(|(notification, _)| notification.get()).collect());
    pipeline.fetch(&LOAD_RECEIVERS, [notifications, Column::Int(receivers.iter().map(|(_, user)| user.get()).collect())]).await
}

async fn load_unread(pipeline: &Pipeline, unread: &Unread) -> DbResult<Vec<ReceiverRow>> {
    let mut columns: Vec<_> = [unread.user.get(), unread.up_to, unread.rows].map(|value| Column::Int(vec![value])).into();
    let Some(kind) = &unread.kind else { return pipeline.fetch(&LOAD_UNREAD, columns).await };
    columns.push(Column::Text(vec![kind.to_string()]));
    pipeline.fetch(&LOAD_UNREAD_OF_TYPE, columns).await
}

async fn load_types_of(pipeline: &Pipeline, users: &BTreeSet<UserId>) -> DbResult<Vec<(i64, String, i64)>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    pipeline.fetch(&LOAD_TYPES_OF_USERS, [Column::Int(users.iter().map(|user| user.get()).collect())]).await
}

impl NotificationRows {
    fn take(&mut self, rows: Vec<ReceiverRow>) {
        let rows: Vec<_> = rows.into_iter().filter_map(receiver_of_row).collect();
        self.seqs.extend(rows.iter().map(|((user, seq), receiver)| ((receiver.notification, *user), *seq)));
        self.receivers.insert_loaded(rows.into_iter().map(|(key, receiver)| (key, Some(receiver))));
    }

    /// The numbers of the types that are asked for, and of what was loaded of receivers.
    async fn load_types(&mut self, pipeline: &Pipeline, needs: &Needs) -> DbResult<()> {
        let mut types = needs.types.clone();
        types.extend(self.receivers.rows.iter().filter_map(|((user, _), (_, now))| Some((*user, Arc::clone(&now.as_ref()?.kind)))));
        if !types.is_empty() {
            let columns = [
                Column::Int(types.iter().map(|(user, _)| user.get()).collect()),
                Column::Text(types.iter().map(|(_, kind)| (**kind).to_owned()).collect()),
            ];
            for (user, kind, unread, count) in pipeline.fetch::<(i64, String, i64, i64)>(&LOAD_TYPES, columns).await? {
                let Ok(user) = UserId::try_from(user) else { continue };
                if unread < 0 {
                    self.type_counts.insert_loaded([(user, count)]);
                } else {
                    self.types.insert_loaded([((user, Arc::from(kind)), Some(unread))]);
                }
            }
        }
        Ok(())
    }

    async fn save_notifications(&self, conn: &mut Conn) -> DbResult<()> {
        let new: Vec<_> = self.notifications.changed().filter_map(|(id, held)| Some((*id, held.as_ref()?.new.as_ref()?))).collect();
        if !new.is_empty() {
            let columns = [
                Column::Int(new.iter().map(|(id, _)| id.get()).collect()),
                Column::Text(new.iter().map(|(_, notification)| notification.kind.to_string()).collect()),
                Column::Text(new.iter().map(|(_, notification)| notification.stored.clone()).collect()),
                Column::Int(new.iter().map(|(_, notification)| notification.created_at.0).collect()),
                Column::Int(new.iter().map(|(_, notification)| notification.recipients).collect()),
                Column::Int(vec![0; new.len()]),
            ];
            conn.insert(&INSERT_NOTIFICATIONS, &columns).await?;
        }
        let withdrawn: Vec<_> =
            self.notifications.changed().filter(|(_, held)| held.as_ref().is_some_and(|held| held.withdrawn)).map(|(id, _)| *id).collect();
        if !withdrawn.is_empty() {
            conn.later(&WITHDRAW, &[ids(&withdrawn, NotificationId::get)]).await?;
        }
        let dropped: Vec<_> = self.notifications.changed().filter(|(_, held)| held.is_none()).map(|(id, _)| *id).collect();
        if !dropped.is_empty() {
            conn.later(&DELETE_NOTIFICATIONS, &[ids(&dropped, NotificationId::get)]).await?;
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

fn receiver_columns(rows: &[(&(UserId, i64), &Receiver)]) -> [Column; 4] {
    [
        Column::Int(rows.iter().map(|((user, _), _)| user.get()).collect()),
        Column::Int(rows.iter().map(|((_, seq), _)| *seq).collect()),
        Column::Int(rows.iter().map(|(_, receiver)| receiver.read_at.0).collect()),
        Column::Int(rows.iter().map(|(_, receiver)| i64::from(receiver.gone)).collect()),
    ]
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

    type Needs = Needs;

    fn statements() -> Vec<&'static Statement> {
        statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, needs: &Needs) -> DbResult<()> {
        let unread = try_join_all(needs.unread.iter().map(|unread| load_unread(pipeline, unread)));
        let (notifications, receivers, unread, types) = try_join4(
            load_notifications(pipeline, &needs.notifications),
            load_receivers(pipeline, &needs.receivers),
            unread,
            load_types_of(pipeline, &needs.types_of),
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
            let [users, seqs] = [|(user, _): &(UserId, i64)| user.get(), |(_, seq): &(UserId, i64)| *seq];
            let columns = [users, seqs].map(|value| Column::Int(dropped.iter().map(|key| value(key)).collect()));
            conn.later(&DELETE_RECEIVERS, &columns).await?;
        }
        if !made.is_empty() {
            let [users, seqs, read, gone] = receiver_columns(&made);
            let notifications = Column::Int(made.iter().map(|(_, receiver)| receiver.notification.get()).collect());
            let kinds = Column::Text(made.iter().map(|(_, receiver)| (*receiver.kind).to_owned()).collect());
            conn.insert(&INSERT_RECEIVERS, &[users, seqs, notifications, kinds, read, gone]).await?;
        }
        if !changed.is_empty() {
            conn.later(&UPDATE_RECEIVERS, &receiver_columns(&changed)).await?;
        }
        let types: Vec<_> = self.types.changed().filter_map(|(key, unread)| Some((key, (*unread)?))).collect();
        if !types.is_empty() {
            let columns = [
                Column::Int(types.iter().map(|((user, _), _)| user.get()).collect()),
                Column::Text(types.iter().map(|((_, kind), _)| (**kind).to_owned()).collect()),
                Column::Int(types.iter().map(|(_, unread)| *unread).collect()),
            ];
            conn.later(&SAVE_TYPES, &columns).await?;
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
