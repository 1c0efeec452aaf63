//! The rows of `heads`, and what tells a node which of them others changed.

use crate::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::lane::Batch;
use crate::marks::{Intervals, Kind, Stream, StreamKey};

const KEY: &[(&str, Type)] = &[("owner_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)];

/// Makes the rows that are missing and locks all, in the order of the key, as the users' rows are locked.
static LOCK: Statement = Statement::new(
    "insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
    select owner_id, kind, name, 0, '', 0, 0, 0, 0, 0, 0
    from {rows} r
    where true
    order by owner_id, kind, name
    on conflict (owner_id, kind, name) do update set head = heads.head
    where false",
    KEY,
);

static LOAD: Statement = Statement::new(
    "select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at
    from {rows} r
    join heads h on h.owner_id = r.owner_id and h.kind = r.kind and h.name = r.name",
    KEY,
);

static SAVE: Statement = Statement::new(
    "insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
    select owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch
    from {rows} r
    where true
    order by owner_id, kind, name
    on conflict (owner_id, kind, name) do update set
        head = excluded.head,
        retracted = excluded.retracted,
        floor = excluded.floor,
        version = excluded.version,
        position = excluded.position,
        at = excluded.at,
        lane_id = excluded.lane_id,
        batch = excluded.batch",
    &[
        ("owner_id", Type::Int),
        ("kind", Type::Int),
        ("name", Type::Text),
        ("head", Type::Int),
        ("retracted", Type::Text),
        ("floor", Type::Int),
        ("version", Type::Int),
        ("position", Type::Int),
        ("at", Type::Int),
        ("lane_id", Type::Int),
        ("batch", Type::Int),
    ],
);

/// How far each lane is, of this node and of others.
static LANES: Statement = Statement::new("select lane_id, batch from lanes", &[]);

/// What these lanes changed after the batches named, the oldest first, and no more than a node takes in at once.
static CHANGED: Statement = Statement::new(
    "select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at
    from {rows} r
    join heads h on h.lane_id = r.lane_id and h.batch > r.batch
    limit 20001",
    &[("lane_id", Type::Int), ("batch", Type::Int)],
);

/// All channels and dots, and the board itself.
static SHARED: Statement = Statement::new(
    "select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3, 7)",
    &[],
);

/// How many channels and dots there are; one whose row was only made to be locked is none.
static COUNT_SHARED: Statement = Statement::new(
    "select h.kind, count(*)
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3) and h.head > 0
    group by h.kind",
    &[],
);

/// The notices that changed after this head of the board.
static NOTICES: Statement = Statement::one(
    "select n.channel, n.seq, n.position, n.expires_at, n.withdrawn
    from notices n
    where n.changed > $1
    order by n.changed, n.channel, n.seq",
    &[("changed", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 8] {
    [&LOCK, &LOAD, &SAVE, &LANES, &CHANGED, &SHARED, &COUNT_SHARED, &NOTICES]
}

/// More changes than this are not taken in one by one.
pub(super) const MAX_CHANGES: usize = 20_000;

/// A row of `heads` as the statements return it.
type Row = (i64, i64, String, i64, String, i64, i64, i64, i64);

fn stream_of_row((owner, kind, name, head, retracted, floor, version, position, at): Row) -> Option<(StreamKey, Stream)> {
    let key = StreamKey { owner, kind: Kind::from_code(kind)?, name: name.into() };
    Some((key, Stream { head, retracted: Intervals::parse(&retracted), floor, version, position, at: UnixMs(at) }))
}

fn key_columns(keys: &[StreamKey]) -> [Column; 3] {
    [
        Column::Int(keys.iter().map(|key| key.owner).collect()),
        Column::Int(keys.iter().map(|key| key.kind.code()).collect()),
        Column::Text(keys.iter().map(|key| (*key.name).to_owned()).collect()),
    ]
}

/// Locks these heads (sorted, without repeats) and returns them.
///
/// # Errors
/// The driver's own.
pub async fn lock(conn: &mut Conn, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    if conn.locks_rows() {
        conn.run(&LOCK, &key_columns(keys)).await?;
    }
    load(conn, keys).await
}

/// Loads these heads inside a transaction; the missing ones are left out.
///
/// # Errors
/// The driver's own.
pub async fn load(conn: &mut Conn, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(conn.fetch(&LOAD, &key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect())
}

/// How many channels and how many dots there are. Under the lock of the board, without which none is made, that stays so until the commit.
///
/// # Errors
/// The driver's own.
pub async fn count_shared(conn: &mut Conn) -> DbResult<Vec<(Kind, i64)>> {
    let rows: Vec<(i64, i64)> = conn.fetch(&COUNT_SHARED, &[]).await?;
    Ok(rows.into_iter().filter_map(|(kind, count)| Some((Kind::from_code(kind)?, count))).collect())
}

/// Reads these heads as of one moment; the missing ones are left out.
///
/// # Errors
/// The driver's own.
pub async fn read(db: &Db, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(db.fetch(&LOAD, &key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect())
}

/// Writes these heads, as this batch of this lane.
///
/// # Errors
/// The driver's own.
pub async fn save(conn: &mut Conn, heads: &[(&StreamKey, &Stream)], batch: Batch) -> DbResult<()> {
    let column = |value: fn(&Stream) -> i64| Column::Int(heads.iter().map(|(_, stream)| value(stream)).collect());
    let columns = [
        Column::Int(heads.iter().map(|(key, _)| key.owner).collect()),
        Column::Int(heads.iter().map(|(key, _)| key.kind.code()).collect()),
        Column::Text(heads.iter().map(|(key, _)| (*key.name).to_owned()).collect()),
        column(|stream| stream.head),
        Column::Text(heads.iter().map(|(_, stream)| stream.retracted.to_string()).collect()),
        column(|stream| stream.floor),
        column(|stream| stream.version),
        column(|stream| stream.position),
        column(|stream| stream.at.0),
        Column::Int(vec![batch.lane_id; heads.len()]),
        Column::Int(vec![batch.batch; heads.len()]),
    ];
    conn.later(&SAVE, &columns).await
}

/// How far each lane is.
///
/// # Errors
/// The driver's own.
pub(super) async fn lanes(db: &Db) -> DbResult<Vec<(i64, i64)>> {
    db.fetch(&LANES, &[]).await
}

/// The heads that these lanes changed after the batches named, as they are now; one more than [`MAX_CHANGES`] where there are too many.
///
/// # Errors
/// The driver's own.
pub(super) async fn changed(db: &Db, after: &[(i64, i64)]) -> DbResult<Vec<(StreamKey, Stream)>> {
    let columns =
        [Column::Int(after.iter().map(|(lane, _)| *lane).collect()), Column::Int(after.iter().map(|(_, batch)| *batch).collect())];
    Ok(db.fetch(&CHANGED, &columns).await?.into_iter().filter_map(stream_of_row).collect())
}

/// All channels and dots, and the board itself.
///
/// # Errors
/// The driver's own.
pub(super) async fn shared(db: &Db) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(db.fetch(&SHARED, &[]).await?.into_iter().filter_map(stream_of_row).collect())
}

/// A notice as far as counting needs it: channel, seq, position, when it expires (0: never), whether it was withdrawn.
pub type NoticeRow = (String, i64, i64, i64, i64);

/// The notices that changed after this head of the board.
///
/// # Errors
/// The driver's own.
pub(super) async fn notices(db: &Db, after: i64) -> DbResult<Vec<NoticeRow>> {
    db.fetch(&NOTICES, &[Column::Int(vec![after])]).await
}
