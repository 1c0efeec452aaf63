//! A lane's own row: its number is raised with every batch, and tells afterwards whether the batch
//! took effect (`resolve.rs`).

use rand::RngExt as _;

use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::engine::heads::Batch;

pub(super) static REGISTER: Statement = Statement::new(
    "insert into lanes (lane_id, batch, committed_at)
    select lane_id, batch, committed_at
    from {rows} r
    where true
    on conflict (lane_id) do nothing",
    &[("lane_id", Type::Int), ("batch", Type::Int), ("committed_at", Type::Int)],
);

/// A number that was raised further meanwhile, by who asked for the outcome of this commit, is not
/// raised: what comes too late over a connection that was given up must not commit.
pub(super) static RAISE: Statement = Statement::new(
    "update lanes
    set batch = r.batch, committed_at = r.committed_at
    from {rows} r
    where lanes.lane_id = r.lane_id and lanes.batch < r.batch",
    &[("lane_id", Type::Int), ("batch", Type::Int), ("committed_at", Type::Int)],
);

/// Held until the commit is whole, where it happens in several databases: the coordinator shows the
/// number of a batch before the workers show its rows. Who goes by the number waits for it
/// (`engine/heads/store.rs`). Nothing of the batch is locked before it, so nobody waits in a circle.
static HOLD: Statement = Statement::each(
    "select lane_id from {rows} r where lane_id < 0",
    "select pg_advisory_xact_lock(lane_id) from {rows} r",
    &[("lane_id", Type::Int)],
);

/// Takes the lock of a lane's commit, on a distributed database.
pub(super) async fn hold(conn: &mut Conn, lane_id: &Column) -> DbResult<()> {
    if conn.is_distributed() {
        conn.later(&HOLD, std::slice::from_ref(lane_id)).await?;
    }
    Ok(())
}

/// A lane has ended well: its row has minus the time of that, by the clock of the database where
/// nodes share one.
static RETIRE: Statement = Statement::each(
    "update lanes
    set committed_at = -r.now
    from {rows} r
    where lanes.lane_id = r.lane_id",
    "update lanes
    set committed_at = -cast(extract(epoch from clock_timestamp()) * 1000 as bigint)
    from {rows} r
    where lanes.lane_id = r.lane_id",
    &[("lane_id", Type::Int), ("now", Type::Int)],
);

static SWEEP: Statement = Statement::each(
    "delete from lanes
    where lane_id in (
        select l.lane_id
        from {rows} r
        join lanes l on (l.committed_at >= 0 and l.committed_at < r.now - r.abandoned)
            or (l.committed_at < 0 and -l.committed_at < r.now - r.retired)
    )",
    "delete from lanes
    where lane_id in (
        select l.lane_id
        from {rows} r
        join lanes l on (l.committed_at >= 0 and l.committed_at < r.now - r.abandoned)
            or (l.committed_at < 0 and -l.committed_at < cast(extract(epoch from clock_timestamp()) * 1000 as bigint) - r.retired)
    )",
    &[("now", Type::Int), ("abandoned", Type::Int), ("retired", Type::Int)],
);

/// What time it is by the clock of the database where nodes share one; else when something was last written, up to
/// now, 1 where that is not known, and 0 where nothing was.
static TIME: Statement = Statement::each(
    "select coalesce(
        (select max(abs(l.committed_at)) from {rows} r join lanes l on abs(l.committed_at) <= r.now),
        (select 1 from users u limit 1),
        0
    )",
    "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint) from {rows} r where r.now is not null",
    &[("now", Type::Int)],
);

/// How long the row of a lane is kept whose node died: other nodes read in it what the lane did last.
/// A living lane that was idle for longer registers again.
const ABANDONED_MS: i64 = crate::base::clock::DAY_MS;

/// For how long the row of a lane that has ended well is kept. Tokens of the feed tell by it what a lane
/// wrote that they do not name (`features/feed/horizon.rs`).
pub const RETIRED_MS: i64 = crate::base::clock::DAY_MS / 24;

/// Has the row of a lane swept before long that has nothing under way, and may register again. Nodes
/// that come and go would otherwise leave their lanes to each look for a day.
pub(super) async fn retire(conn: &mut Conn, lane_id: i64, now: UnixMs) -> DbResult<u64> {
    conn.run(&RETIRE, &[lane_id, now.0].map(|value| Column::Int(vec![value]))).await
}

/// What [`time_of`] says where nothing was written, and where what was written has no time.
pub(crate) const NOTHING_WRITTEN: i64 = 0;
pub(crate) const NOT_KNOWN: i64 = 1;

/// The time that the database knows, in Unix milliseconds, by a node for which it is `now`: that of the last write, on
/// SQLite.
pub(crate) async fn time_of(db: &Db, now: UnixMs) -> DbResult<i64> {
    let rows: Vec<(i64,)> = db.fetch(&TIME, &[Column::Int(vec![now.0])]).await?;
    Ok(rows.first().map_or(0, |(at,)| *at))
}

/// Removes the rows of lanes that ended long ago.
pub(crate) async fn sweep(db: &Db, now: UnixMs) -> DbResult<u64> {
    db.run(&SWEEP, &[now.0, ABANDONED_MS, RETIRED_MS].map(|value| Column::Int(vec![value]))).await
}

/// Registers, inside a transaction, a lane that writes nothing but this one batch: what is not
/// written by a lane of a node signs with it, so that nodes hear of it.
pub(crate) async fn announce(conn: &mut Conn, now: UnixMs) -> DbResult<Batch> {
    let batch = Batch { lane_id: rand::rng().random_range(1..i64::MAX), batch: 1, slot: 0, now };
    hold(conn, &Column::Int(vec![batch.lane_id])).await?;
    conn.run(&REGISTER, &[batch.lane_id, batch.batch, now.0].map(|value| Column::Int(vec![value]))).await?;
    Ok(batch)
}

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 6] {
    [&REGISTER, &RAISE, &HOLD, &RETIRE, &TIME, &SWEEP]
}
