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

static SWEEP: Statement =
    Statement::new("delete from lanes where committed_at < (select min(committed_at) from {rows} r)", &[("committed_at", Type::Int)]);

/// How long the row of a lane that ended is kept: other nodes read in it what the lane did last. A
/// living lane that was idle for longer registers again.
const ABANDONED_MS: i64 = crate::base::clock::DAY_MS;

/// Removes the rows of lanes that ended long ago.
pub(crate) async fn sweep(db: &Db, now: UnixMs) -> DbResult<u64> {
    db.connect().await?.run(&SWEEP, &[Column::Int(vec![now.0 - ABANDONED_MS])]).await
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
pub(super) fn statements() -> [&'static Statement; 4] {
    [&REGISTER, &RAISE, &HOLD, &SWEEP]
}
