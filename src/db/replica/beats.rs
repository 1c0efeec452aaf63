//! The rows by which nodes find out how far a replica is behind: one for each node, in the primary.

use std::time::Duration;

use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};

/// Of nodes that ended without removing theirs.
const MAX_AGE: Duration = Duration::from_hours(24);

static BEAT: Statement = Statement::new(
    "insert into replica_beats (node_id, beat, beaten_at)
    select node_id, beat, beaten_at
    from {rows} r
    where true
    on conflict (node_id) do update
    set beat = excluded.beat, beaten_at = excluded.beaten_at",
    &[("node_id", Type::Int), ("beat", Type::Int), ("beaten_at", Type::Int)],
);

static SHOWN: Statement = Statement::one("select b.beat from replica_beats b where b.node_id = $1", &[("node_id", Type::Int)]);

static REMOVE: Statement = Statement::new(
    "delete from replica_beats
    where node_id in (select node_id from {rows} r) or beaten_at < (select min(beaten_at) from {rows} r)",
    &[("node_id", Type::Int), ("beaten_at", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&BEAT, &SHOWN, &REMOVE]
}

fn int(value: i64) -> Column {
    Column::Int(vec![value])
}

/// Writes a node's beat to the primary.
pub(super) async fn beat(conn: &mut Conn, node: i64, beat: i64, now: UnixMs) -> DbResult<()> {
    conn.run(&BEAT, &[int(node), int(beat), int(now.0)]).await.map(|_| ())
}

/// The last beat of a node that is shown here; 0 before the first.
pub(super) async fn shown(db: &Db, node: i64) -> DbResult<i64> {
    let rows: Vec<(i64,)> = db.fetch(&SHOWN, &[int(node)]).await?;
    Ok(rows.first().map_or(0, |(beat,)| *beat))
}

/// Removes a node's row, and those of nodes that are long gone.
pub(super) async fn remove(conn: &mut Conn, node: i64, now: UnixMs) -> DbResult<()> {
    let oldest = now.0.saturating_sub(i64::try_from(MAX_AGE.as_millis()).unwrap_or(i64::MAX));
    conn.run(&REMOVE, &[int(node), int(oldest)]).await.map(|_| ())
}
