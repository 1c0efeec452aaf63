//! The rows of `heads`, and what tells a node which of them others changed.

use std::collections::HashMap;
use std::sync::Arc;

use super::versions::Batch;
use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::engine::marks::{Intervals, Kind, Stream, StreamKey};

const KEY: &[(&str, Type)] = &[("owner_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)];

/// Makes the rows that are missing and locks all, in the order of the key, as the users' rows are
/// locked.
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

/// All that a look finds, in one statement, so that it is of one moment: the epoch (part 0), how
/// far each lane is (part 1), the heads that changed (part 2), and the notices that changed (part
/// 3). A row of the parameters is a lane and the last batch that is known of it; lane 0 is the
/// broadcast state, with its head.
///
/// One statement for each engine: on Postgres, only a lateral join with its own order and limit is
/// sure to go along the index for each lane, however many heads there are.
static LOOK: Statement = Statement::each(
    "select 0 as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version, 0 as position, 0 as at
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0
    from lanes l
    union all
    select * from (
        select 2, h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at
        from lanes l
        left join {rows} k on k.lane_id = l.lane_id
        cross join heads h
        where l.batch > coalesce(k.batch, 0) and h.lane_id = l.lane_id and h.batch > coalesce(k.batch, 0)
        limit 20001
    )
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0
    from notices n
    where n.changed > (select k.batch from {rows} k where k.lane_id = 0)",
    "select cast(0 as bigint) as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version, 0 as position, 0 as at
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0
    from lanes l
    union all
    select * from (
        select 2, c.owner_id, c.kind, c.name, c.head, c.retracted, c.floor, c.version, c.position, c.at
        from lanes l
        left join {rows} k on k.lane_id = l.lane_id
        cross join lateral (
            select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at
            from heads h
            where l.batch > coalesce(k.batch, 0) and h.lane_id = l.lane_id and h.batch > coalesce(k.batch, 0)
            order by h.batch
            limit 20001
        ) c
        limit 20001
    ) changed
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0
    from notices n
    where n.changed > (select k.batch from {rows} k where k.lane_id = 0)",
    &[("lane_id", Type::Int), ("batch", Type::Int)],
);

/// The same for a node that knows nothing yet: of the heads all channels and dots, and the
/// broadcast state itself.
static FIRST_LOOK: Statement = Statement::new(
    "select cast(0 as bigint) as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version,
        0 as position, 0 as at
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0
    from lanes l
    union all
    select 2, h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3, 7)
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0
    from notices n",
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

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 6] {
    [&LOCK, &LOAD, &SAVE, &LOOK, &FIRST_LOOK, &COUNT_SHARED]
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
pub async fn lock(conn: &mut Conn, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    if conn.locks_rows() {
        conn.run(&LOCK, &key_columns(keys)).await?;
    }
    load(conn, keys).await
}

/// Loads these heads inside a transaction; the missing ones are left out.
pub async fn load(conn: &mut Conn, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(conn.fetch(&LOAD, &key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect())
}

/// How many channels and how many dots there are. Under the lock of the broadcast state, without
/// which none is made, that stays so until the commit.
pub async fn count_shared(conn: &mut Conn) -> DbResult<Vec<(Kind, i64)>> {
    let rows: Vec<(i64, i64)> = conn.fetch(&COUNT_SHARED, &[]).await?;
    Ok(rows.into_iter().filter_map(|(kind, count)| Some((Kind::from_code(kind)?, count))).collect())
}

/// Reads these heads as of one moment; the missing ones are left out.
pub async fn read(db: &Db, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(db.fetch(&LOAD, &key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect())
}

/// Writes these heads, as this batch of this lane.
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

/// A notice as far as counting needs it: channel, seq, position, when it expires (0: never),
/// whether it was withdrawn.
pub type NoticeRow = (String, i64, i64, i64, i64);

/// What a look finds, all of one moment.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The epoch of the installation.
    pub(super) epoch: Arc<str>,
    /// How far each lane is.
    pub(super) lanes: HashMap<i64, i64>,
    /// Heads; one more than [`MAX_CHANGES`] at least where there are too many.
    pub(super) heads: Vec<(StreamKey, Stream)>,
    /// Notices.
    pub(super) notices: Vec<NoticeRow>,
}

/// A row of [`LOOK`].
type LookRow = (i64, i64, i64, String, i64, String, i64, i64, i64, i64);

impl Look {
    fn of(rows: Vec<LookRow>) -> Self {
        let mut look = Self::default();
        for (part, a, b, name, head, retracted, floor, version, position, at) in rows {
            match part {
                0 => look.epoch = name.into(),
                1 => drop(look.lanes.insert(a, b)),
                2 => look.heads.extend(stream_of_row((a, b, name, head, retracted, floor, version, position, at))),
                // The position and the time of the expiry stand where a head has its head and its
                // floor.
                _ => look.notices.push((name, a, head, floor, b)),
            }
        }
        look
    }
}

/// What a node that knows nothing yet begins with: all channels and dots, and how far each lane is.
pub(super) async fn first_look(db: &Db) -> DbResult<Look> {
    Ok(Look::of(db.fetch(&FIRST_LOOK, &[]).await?))
}

/// What changed after these batches of these lanes, and on the broadcast state after this head of
/// it.
pub(super) async fn look(db: &Db, lanes: &HashMap<i64, i64>, broadcast_state: i64) -> DbResult<Look> {
    let known = || std::iter::once((&0, &broadcast_state)).chain(lanes);
    let columns = [Column::Int(known().map(|(lane, _)| *lane).collect()), Column::Int(known().map(|(_, batch)| *batch).collect())];
    Ok(Look::of(db.fetch(&LOOK, &columns).await?))
}
