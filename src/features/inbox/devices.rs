//! The rows of `devices`: how far each device has read its user's inbox, and whether services hear
//! of every change of the user's numbers because of it. They are guarded by the lock of the user's
//! own row.
//!
//! A row without an id, and seen at no time, has the furthest cursor of the user's devices that are
//! gone: what they have fetched stays fetched.

use std::collections::BTreeSet;

use super::{DeviceOut, MAX_DEVICES};
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, RowSet, Table};

static LOAD: Statement = Statement::new(
    "select d.user_id, d.device_id, d.seq, d.seen_at, d.created_at, d.push
    from {rows} r
    join devices d on d.user_id = r.user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

static SAVE: Statement = Statement::new(
    "insert into devices (user_id, device_id, seq, seen_at, created_at, push)
    select user_id, device_id, seq, seen_at, created_at, push
    from {rows} r
    where true
    order by user_id, device_id
    on conflict (user_id, device_id) do update set
        seq = excluded.seq,
        seen_at = excluded.seen_at,
        created_at = excluded.created_at,
        push = excluded.push",
    &[
        ("user_id", Type::Int),
        ("device_id", Type::Text),
        ("seq", Type::Int),
        ("seen_at", Type::Int),
        ("created_at", Type::Int),
        ("push", Type::Int),
    ],
);

static DELETE: Statement = Statement::new(
    "delete from devices
    where (user_id, device_id) in (select user_id, device_id from {rows} r)",
    &[("user_id", Type::Int), ("device_id", Type::Text)],
)
.by("user_id");

/// A user's devices, those that were seen last first; before them the head of the inbox, so that
/// they belong together.
static LIST: Statement = Statement::one(
    "select '' as device_id, u.inbox_seq as seq, 0 as seen_at, 0 as created_at, 0 as push, 0 as place
    from users u
    where u.user_id = $1
    union all
    select d.device_id, d.seq, d.seen_at, d.created_at, d.push, 1
    from devices d
    where d.user_id = $1
    order by place, seen_at desc, device_id",
    &[("user_id", Type::Int)],
);

/// Devices that stayed away for very long.
static OLD: Statement = Statement::one(
    "select d.user_id, d.device_id
    from devices d
    where d.seen_at > 0 and d.seen_at < $1
    order by d.seen_at
    limit $2",
    &[("before", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 5] {
    [&LOAD, &SAVE, &DELETE, &LIST, &OLD]
}

/// The users whose devices a batch needs.
pub type Needs = BTreeSet<UserId>;

/// A device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Up to where it has read the inbox; None: it has never said so.
    pub cursor: Option<i64>,
    /// Whether services hear of every change of the user's numbers.
    pub push: bool,
    /// When it was written last.
    pub seen_at: UnixMs,
    /// When it was written first.
    pub created_at: UnixMs,
}

/// How rows say that a device has never said how far it is.
const NO_CURSOR: i64 = -1;

impl Device {
    fn of_row((seq, seen_at, created_at, push): (i64, i64, i64, i64)) -> Self {
        let cursor = Some(seq).filter(|seq| *seq > NO_CURSOR);
        Self { cursor, push: push == 1, seen_at: UnixMs(seen_at), created_at: UnixMs(created_at) }
    }
}

/// A user and a device; None: all those that are gone.
type Key = (UserId, Option<ClientId>);

/// The devices of a batch.
#[derive(Debug, Default)]
pub struct DeviceRows(Table<Key, Option<Device>>);

impl DeviceRows {
    /// A user's device.
    #[must_use]
    pub fn get(&self, user: UserId, device: &ClientId) -> Option<Device> {
        self.0.get(&(user, Some(device.clone())))
    }

    /// Sets a device.
    pub fn set(&mut self, user: UserId, device: &ClientId, row: Device) {
        self.0.set(&(user, Some(device.clone())), Some(row));
    }

    /// Removes a device, and keeps its cursor where it is the furthest of those that are gone.
    pub fn remove(&mut self, user: UserId, device: &ClientId) {
        let fetched = self.get(user, device).and_then(|row| row.cursor).unwrap_or(0);
        if fetched > self.fetched_by_gone(user) {
            let never = UnixMs(0);
            self.0.set(&(user, None), Some(Device { cursor: Some(fetched), push: false, seen_at: never, created_at: never }));
        }
        self.0.set(&(user, Some(device.clone())), None);
    }

    /// Up to where devices have read the inbox that are gone.
    pub(super) fn fetched_by_gone(&self, user: UserId) -> i64 {
        self.0.get(&(user, None)).and_then(|gone| gone.cursor).unwrap_or(0)
    }

    /// All devices of a user.
    pub fn of_user(&self, user: UserId) -> impl Iterator<Item = Device> + '_ {
        let of_user = self.0.from(&(user, None)).take_while(move |((of, _), _)| *of == user);
        of_user.filter(|((_, id), _)| id.is_some()).filter_map(|(_, device)| *device)
    }

    /// Whether a user may have no more.
    #[must_use]
    pub fn is_full(&self, user: UserId) -> bool {
        self.of_user(user).count() >= MAX_DEVICES
    }
}

/// A user's devices by id, those that were seen last first, and the head of the user's inbox.
pub async fn list(db: &Db, user: UserId) -> DbResult<(i64, Vec<(String, Device)>)> {
    let rows: Vec<(String, i64, i64, i64, i64, i32)> = db.fetch(&LIST, &[Column::Int(vec![user.get()])]).await?;
    let (mut head, mut devices) = (0, Vec::new());
    for (id, seq, seen_at, created_at, push, place) in rows {
        if place == 0 {
            head = seq;
        } else {
            devices.push((id, Device::of_row((seq, seen_at, created_at, push))));
        }
    }
    Ok((head, devices))
}

/// Some devices that were not seen since.
pub(super) async fn old(db: &Db, before: UnixMs, max_rows: i64) -> DbResult<Vec<(UserId, ClientId)>> {
    let rows: Vec<(i64, String)> = db.fetch(&OLD, &[Column::Int(vec![before.0]), Column::Int(vec![max_rows])]).await?;
    Ok(rows.into_iter().filter_map(|(user, device)| Some((user.try_into().ok()?, device.parse().ok()?))).collect())
}

impl RowSet for DeviceRows {
    type Needs = Needs;

    fn statements() -> Vec<&'static Statement> {
        statements().into()
    }

    async fn load(&mut self, pipeline: &Pipeline, _core: &Core, users: &Needs) -> DbResult<()> {
        if users.is_empty() {
            return Ok(());
        }
        let columns = [Column::Int(users.iter().map(|user| user.get()).collect())];
        let rows: Vec<(i64, String, i64, i64, i64, i64)> = pipeline.fetch(&LOAD, columns).await?;
        self.0.insert_loaded(rows.into_iter().filter_map(|(user, device, seq, seen_at, created_at, push)| {
            let row = Device::of_row((seq, seen_at, created_at, push));
            let id = if device.is_empty() { None } else { Some(device.parse().ok()?) };
            Some(((UserId::try_from(user).ok()?, id), Some(row)))
        }));
        Ok(())
    }

    async fn save(&self, conn: &mut Conn, _core: &Core, _batch: Batch) -> DbResult<()> {
        let (made, gone): (Vec<_>, Vec<_>) = self.0.changed().partition(|(_, device)| device.is_some());
        let keys = |rows: &[(&Key, &Option<Device>)]| {
            let users = Column::Int(rows.iter().map(|((user, _), _)| user.get()).collect());
            let id = |id: &Option<ClientId>| id.as_ref().map_or_else(String::new, |id| id.as_str().to_owned());
            [users, Column::Text(rows.iter().map(|((_, device), _)| id(device)).collect())]
        };
        if !gone.is_empty() {
            conn.later(&DELETE, &keys(&gone)).await?;
        }
        if !made.is_empty() {
            let column =
                |value: fn(&Device) -> i64| Column::Int(made.iter().filter_map(|(_, device)| device.as_ref().map(value)).collect());
            let [users, devices] = keys(&made);
            let columns = [
                users,
                devices,
                column(|device| device.cursor.unwrap_or(NO_CURSOR)),
                column(|device| device.seen_at.0),
                column(|device| device.created_at.0),
                column(|device| i64::from(device.push)),
            ];
            conn.later(&SAVE, &columns).await?;
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.0.settle();
    }

    fn undo(&mut self) {
        self.0.undo();
    }
}

impl DeviceOut {
    pub(super) fn new(device: ClientId, row: Device, head: i64) -> Self {
        let lag = row.cursor.map(|cursor| (head - cursor).max(0));
        Self { device_id: device, cursor: row.cursor, lag, push: row.push, last_seen_at: row.seen_at, created_at: row.created_at }
    }
}
