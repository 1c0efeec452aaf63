//! The rows of `heads`, and what tells a node which of them others changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::distributed;
use super::versions::Batch;
use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};
use crate::engine::marks::{Intervals, Kind, Stream, StreamKey};

const KEY: &[(&str, Type)] = &[("owner_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)];

const READ: &str = "select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
    from {rows} r
    join heads h on h.owner_id = r.owner_id and h.kind = r.kind and h.name = r.name";

static LOAD: Statement = Statement::new(READ, KEY).by("owner_id");

/// Locks the rows in the order of the key, and returns what they hold once they are locked.
static LOCK: Statement = Statement::each(
    READ,
    "select h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
    from {rows} r
    join heads h on h.owner_id = r.owner_id and h.kind = r.kind and h.name = r.name
    order by h.owner_id, h.kind, h.name
    for update of h",
    KEY,
)
.by("owner_id");

/// Makes rows that [`LOCK`] did not find, as the users' rows are made: one that another transaction
/// made meanwhile fails the batch, which finds it when it is tried again.
static MAKE: Statement = Statement::new(
    "insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch)
    select owner_id, kind, name, 0, '', 0, 0, 0, 0, 0, 0
    from {rows} r
    where true
    order by owner_id, kind, name",
    KEY,
);

/// Removes rows that [`MAKE`] made in this transaction and that nothing was written to.
static UNMAKE: Statement = Statement::new(
    "delete from heads
    where (owner_id, kind, name) in (select owner_id, kind, name from {rows} r)",
    KEY,
)
.by("owner_id");

/// Writes rows that are locked. No column that changes is in an index: so on Postgres the new
/// version of a row stays on its page, and no index is touched.
static SAVE: Statement = Statement::new(
    "update heads
    set head = r.head,
        retracted = r.retracted,
        floor = r.floor,
        version = r.version,
        position = r.position,
        at = r.at,
        mention_all = r.mention_all,
        lane_id = r.lane_id,
        batch = r.batch
    from {rows} r
    where heads.owner_id = r.owner_id and heads.kind = r.kind and heads.name = r.name",
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
        ("mention_all", Type::Text),
        ("lane_id", Type::Int),
        ("batch", Type::Int),
    ],
)
.by("owner_id");

/// Which heads the batch has changed.
static LOG: Statement = Statement::each(
    "insert into head_changes (lane_id, batch, streams)
    select r.lane_id, r.batch, json_group_array(json_array(r.owner_id, r.kind, r.name))
    from {rows} r
    group by r.lane_id, r.batch",
    "insert into head_changes (lane_id, batch, owner_ids, kinds, names)
    select r.lane_id, r.batch, array_agg(r.owner_id), array_agg(r.kind), array_agg(r.name)
    from {rows} r
    group by r.lane_id, r.batch",
    &[("lane_id", Type::Int), ("batch", Type::Int), ("owner_id", Type::Int), ("kind", Type::Int), ("name", Type::Text)],
);

/// Removes some of what nobody asks for any more: what is far behind its lane, and what lanes wrote
/// that are gone.
static SWEEP: Statement = Statement::one(
    "delete from head_changes
    where (lane_id, batch) in (
        select c.lane_id, c.batch
        from head_changes c
        left join lanes l on l.lane_id = c.lane_id
        where l.batch is null or c.batch <= l.batch - $1
        limit $2
    )",
    &[("kept", Type::Int), ("max_rows", Type::Int)],
);

/// All that a look finds, in one statement, so that it is of one moment: the epoch (part 0), how
/// far each lane is (part 1), the heads that changed (part 2), the notices that changed (part 3), and of how
/// many heads it is told that they changed (part 4), also of those that are there no more. SQLite's limit is
/// on heads that are there. A row of the parameters is a lane and the last batch that is known of it; lane 0 is the
/// broadcast state, with its head.
///
/// One statement for each engine: on Postgres, only a lateral join with its own limit is sure to go
/// along the index, for each lane and for each head, however many there are.
static LOOK: Statement = Statement::each(
    "select 0 as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version, 0 as position, 0 as at, '' as mention_all
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0, ''
    from lanes l
    union all
    select * from (
        select distinct 2, h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
        from lanes l
        left join {rows} k on k.lane_id = l.lane_id
        cross join head_changes c
        cross join json_each(c.streams) s
        cross join heads h
        where l.batch > coalesce(k.batch, 0) and c.lane_id = l.lane_id and c.batch > coalesce(k.batch, 0)
            and h.owner_id = s.value ->> 0 and h.kind = s.value ->> 1 and h.name = s.value ->> 2
        limit 20001
    )
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0, ''
    from notices n
    where n.changed > (select k.batch from {rows} k where k.lane_id = 0)",
    "with s as materialized (
        select distinct s.owner_id, s.kind, s.name
        from lanes l
        left join {rows} k on k.lane_id = l.lane_id
        cross join lateral (
            select c.owner_ids, c.kinds, c.names
            from head_changes c
            where l.batch > coalesce(k.batch, 0) and c.lane_id = l.lane_id and c.batch > coalesce(k.batch, 0)
            order by c.batch
            limit 20001
        ) c
        cross join lateral unnest(c.owner_ids, c.kinds, c.names) s (owner_id, kind, name)
        limit 20001
    )
    select cast(0 as bigint) as part, 0 as a, 0 as b, e.epoch as name, 0 as head, '' as retracted, 0 as floor, 0 as version, 0 as position, 0 as at, '' as mention_all
    from inbox_epoch e
    where e.id = 1
    union all
    select 1, l.lane_id, l.batch, '', 0, '', 0, 0, 0, 0, ''
    from lanes l
    union all
    select 2, h.owner_id, h.kind, h.name, h.head, h.retracted, h.floor, h.version, h.position, h.at, h.mention_all
    from s
    cross join lateral (
        select *
        from heads h
        where h.owner_id = s.owner_id and h.kind = s.kind and h.name = s.name
        limit 1
    ) h
    union all
    select 3, n.seq, n.withdrawn, n.channel, n.position, '', n.expires_at, 0, 0, 0, ''
    from notices n
    where n.changed > (select k.batch from {rows} k where k.lane_id = 0)
    union all
    select 4, count(*), 0, '', 0, '', 0, 0, 0, 0, ''
    from s",
    &[("lane_id", Type::Int), ("batch", Type::Int)],
).distributed(distributed::LOOK);

/// How many channels and dots there are, and how many there were with those that are deleted; one whose
/// row was only made to be locked is none.
static COUNT_SHARED: Statement = Statement::new(
    "select h.kind, cast(sum(case when h.head > h.floor then 1 else 0 end) as bigint), count(*)
    from heads h
    where h.owner_id = 0 and h.kind in (2, 3) and h.head > 0
    group by h.kind",
    &[],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 9] {
    [&LOAD, &LOCK, &MAKE, &UNMAKE, &SAVE, &LOG, &SWEEP, &LOOK, &COUNT_SHARED]
}

/// More changes than this are not taken in one by one.
const MAX_CHANGES: usize = 20_000;

/// For how many batches of a lane `head_changes` is kept. A node that is further behind reads what
/// it holds again.
const KEPT_BATCHES: i64 = 8192;

/// How many rows of it one sweep removes.
const SWEEP_ROWS: i64 = 5000;

/// A row of `heads` as the statements return it.
type Row = (i64, i64, String, i64, String, i64, i64, i64, i64, String);

fn stream_of_row((owner, kind, name, head, retracted, floor, version, position, at, mention_all): Row) -> Option<(StreamKey, Stream)> {
    let key = StreamKey { owner, kind: Kind::from_code(kind)?, name: name.into() };
    let (retracted, mention_all) = (Intervals::parse(&retracted), Intervals::parse(&mention_all));
    Some((key, Stream { head, retracted, floor, version, position, at: UnixMs(at), mention_all }))
}

fn key_columns(keys: &[StreamKey]) -> [Column; 3] {
    [
        Column::Int(keys.iter().map(|key| key.owner).collect()),
        Column::Int(keys.iter().map(|key| key.kind.code()).collect()),
        Column::Text(keys.iter().map(|key| (*key.name).to_owned()).collect()),
    ]
}

/// What there is of heads that are locked.
#[derive(Debug, Default)]
pub struct Locked {
    pub found: Vec<(StreamKey, Stream)>,
    /// Those that were missing; their rows are made, so that they are locked too.
    pub made: Vec<StreamKey>,
}

/// Locks these heads (sorted, without repeats) and returns them; missing ones are made.
pub async fn lock(pipeline: &Pipeline, keys: &[StreamKey]) -> DbResult<Locked> {
    let found: Vec<_> = pipeline.fetch(&LOCK, key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect();
    let mut made = Vec::new();
    if found.len() < keys.len() {
        let there: HashSet<_> = found.iter().map(|(key, _)| key).collect();
        made.extend(keys.iter().filter(|key| !there.contains(key)).cloned());
        pipeline.later(&MAKE, key_columns(&made));
    }
    Ok(Locked { found, made })
}

/// Removes these heads, which this transaction made and wrote nothing to: what is refused must leave
/// nothing, least of all the id of a user who was erased.
pub async fn unmake(conn: &mut Conn, keys: &[StreamKey]) -> DbResult<()> {
    conn.later(&UNMAKE, &key_columns(keys)).await
}

/// Loads these heads inside a transaction; the missing ones are left out.
pub async fn load(pipeline: &Pipeline, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(pipeline.fetch(&LOAD, key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect())
}

/// How many channels, or dots, there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCount {
    pub kind: Kind,
    /// Those that are not deleted.
    pub there: i64,
    /// Every name that was ever used.
    pub names: i64,
}

/// How many channels and how many dots there are. Under the lock of the broadcast state, without
/// which none is made or deleted, that stays so until the commit.
pub async fn count_shared(pipeline: &Pipeline) -> DbResult<Vec<SharedCount>> {
    let rows: Vec<(i64, i64, i64)> = pipeline.fetch(&COUNT_SHARED, []).await?;
    Ok(rows.into_iter().filter_map(|(kind, there, names)| Some(SharedCount { kind: Kind::from_code(kind)?, there, names })).collect())
}

/// Reads these heads as of one moment; the missing ones are left out.
pub async fn read(db: &Db, keys: &[StreamKey]) -> DbResult<Vec<(StreamKey, Stream)>> {
    Ok(db.fetch(&LOAD, &key_columns(keys)).await?.into_iter().filter_map(stream_of_row).collect())
}

/// Writes these heads, which are locked, as this batch of this lane: at most once for each batch.
pub async fn save(conn: &mut Conn, heads: &[(&StreamKey, &Stream)], batch: Batch) -> DbResult<()> {
    let column = |value: fn(&Stream) -> i64| Column::Int(heads.iter().map(|(_, stream)| value(stream)).collect());
    let owner = Column::Int(heads.iter().map(|(key, _)| key.owner).collect());
    let kind = Column::Int(heads.iter().map(|(key, _)| key.kind.code()).collect());
    let name = Column::Text(heads.iter().map(|(key, _)| (*key.name).to_owned()).collect());
    let lane_id = Column::Int(vec![batch.lane_id; heads.len()]);
    let number = Column::Int(vec![batch.batch; heads.len()]);
    conn.later(&LOG, &[lane_id.clone(), number.clone(), owner.clone(), kind.clone(), name.clone()]).await?;
    let columns = [
        owner,
        kind,
        name,
        column(|stream| stream.head),
        Column::Text(heads.iter().map(|(_, stream)| stream.retracted.to_string()).collect()),
        column(|stream| stream.floor),
        column(|stream| stream.version),
        column(|stream| stream.position),
        column(|stream| stream.at.0),
        Column::Text(heads.iter().map(|(_, stream)| stream.mention_all.to_string()).collect()),
        lane_id,
        number,
    ];
    conn.later(&SAVE, &columns).await
}

/// Removes some of what no node needs to ask for; returns how much. Call again while it returns any.
pub async fn sweep(db: &Db) -> DbResult<u64> {
    db.run(&SWEEP, &[Column::Int(vec![KEPT_BATCHES]), Column::Int(vec![SWEEP_ROWS])]).await
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
    /// Of how many heads the lanes say that they changed; some may be there no more.
    keys: usize,
}

/// A row of [`LOOK`], and of a first look.
type LookRow = (i64, i64, i64, String, i64, String, i64, i64, i64, i64, String);

impl Look {
    /// Whether changes may be missing for a node that knew the lanes to be so far: some that it asks
    /// for may have been swept, or there are too many.
    pub(super) fn is_partial(&self, known: &HashMap<i64, i64>) -> bool {
        let is_far = |(lane, batch): (&i64, &i64)| batch - known.get(lane).unwrap_or(&0) > KEPT_BATCHES;
        self.heads.len().max(self.keys) > MAX_CHANGES || self.lanes.iter().any(is_far)
    }

    pub(super) fn of(rows: Vec<LookRow>) -> Self {
        let mut look = Self::default();
        for (part, a, b, name, head, retracted, floor, version, position, at, mention_all) in rows {
            match part {
                0 => look.epoch = name.into(),
                1 => drop(look.lanes.insert(a, b)),
                2 => look.heads.extend(stream_of_row((a, b, name, head, retracted, floor, version, position, at, mention_all))),
                4 => look.keys = usize::try_from(a).unwrap_or(usize::MAX),
                // The position and the time of the expiry stand where a head has its head and its
                // floor.
                _ => look.notices.push((name, a, head, floor, b)),
            }
        }
        look
    }
}

/// What changed after these batches of these lanes, and on the broadcast state after this head of
/// it.
pub(super) async fn look(db: &Db, lanes: &HashMap<i64, i64>, broadcast_state: i64) -> DbResult<Look> {
    let known = || std::iter::once((&0, &broadcast_state)).chain(lanes);
    let columns = [Column::Int(known().map(|(lane, _)| *lane).collect()), Column::Int(known().map(|(_, batch)| *batch).collect())];
    Ok(Look::of(db.fetch(&LOOK, &columns).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_cut_is_partial_also_where_heads_are_there_no_more() {
        let row = |part, a| (part, a, 5, String::new(), 1, String::new(), 0, 1, 0, 0, String::new());
        let (known, most) = (HashMap::new(), i64::try_from(MAX_CHANGES).unwrap());
        let look = |heads: i64, told: i64| Look::of((1..=heads).map(|owner| row(2, owner)).chain([row(4, told)]).collect());
        assert!(!look(most, most).is_partial(&known));
        assert!(look(most + 1, most + 1).is_partial(&known));
        assert!(look(most, most + 1).is_partial(&known), "one was of an erased creator");
    }
}
