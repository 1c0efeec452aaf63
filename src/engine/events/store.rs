//! The rows of `events` and `event_head`.

use super::kinds::EventTypes;
use crate::base::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};

/// How many rows are numbered in one transaction.
pub(crate) const NUMBERED_AT_ONCE: i64 = 500;

/// How many rows one round of the sweep removes.
const SWEEP_ROWS: i64 = 200;

/// How far after now the time of a row may be and still count. Else a clock was fast that wrote it.
const MAX_AHEAD_MS: i64 = 3_600_000;

/// An event names users, groups and posts, and quotes none of their contents.
static INSERT: Statement = Statement::new(
    "insert into events (size, first_id, last_id, created_at, types, content)
    select size, 0, 0, created_at, types, content
    from {rows} r
    where true",
    &[("size", Type::Int), ("created_at", Type::Int), ("types", Type::Int), ("content", Type::Text)],
);

/// How far events are numbered and streamed, and whether there are some to be numbered. Without a
/// lock.
static PEEK: Statement = Statement::new(
    "select h.head, h.streamed, (select count(*) from (select e.batch_id from events e where e.last_id = 0 limit 1) waiting)
    from event_head h
    where h.id = 1",
    &[],
);

/// The lock of the publisher. Another node that has it does the work.
static LOCK: Statement = Statement::each(
    "select head, streamed from event_head where id = 1",
    "select head, streamed from event_head where id = 1 for update skip locked",
    &[],
);

static UNNUMBERED: Statement = Statement::one(
    "select e.batch_id, e.size, e.types
    from events e
    where e.last_id = 0
    order by e.batch_id
    limit $1",
    &[("max_rows", Type::Int)],
);

static NUMBER: Statement = Statement::new(
    "update events
    set first_id = r.first_id, last_id = r.last_id
    from {rows} r
    where events.batch_id = r.batch_id",
    &[("batch_id", Type::Int), ("first_id", Type::Int), ("last_id", Type::Int)],
);

static SET_HEAD: Statement = Statement::new(
    "update event_head
    set head = r.head, streamed = r.streamed
    from {rows} r
    where event_head.id = 1",
    &[("head", Type::Int), ("streamed", Type::Int)],
);

/// With the contents of rows that have some of these types alone: of the others only how far they
/// go.
static READ: Statement = Statement::one(
    "select e.first_id, e.last_id, case when e.types & $2 = 0 then '' else e.content end
    from events e
    where e.last_id > 0 and e.last_id > $1
    order by e.last_id
    limit $3",
    &[("after", Type::Int), ("types", Type::Int), ("max_rows", Type::Int)],
);

static KEPT: Statement = Statement::new("select floor, head from event_head where id = 1", &[]);

static LOCK_HEAD: Statement =
    Statement::each("select floor from event_head where id = 1", "select floor from event_head where id = 1 for update", &[]);

/// The oldest ones above the floor with a time that can be: how old each is.
static OLDEST: Statement = Statement::one(
    "select e.last_id, e.created_at
    from events e
    where e.last_id > 0 and e.last_id > $1 and e.created_at <= $2
    order by e.last_id
    limit $3",
    &[("floor", Type::Int), ("latest", Type::Int), ("max_rows", Type::Int)],
);

/// Those up to the floor, whatever their time is: nobody can read them any more.
static SWEEP: Statement = Statement::one(
    "delete from events
    where batch_id in (
        select e.batch_id
        from events e
        where e.last_id > 0 and e.last_id <= $1
        order by e.last_id
        limit $2
    )",
    &[("floor", Type::Int), ("max_rows", Type::Int)],
);

static RAISE_FLOOR: Statement = Statement::new(
    "update event_head
    set floor = r.floor
    from {rows} r
    where event_head.id = 1 and event_head.floor < r.floor",
    &[("floor", Type::Int)],
);

/// How many events there ever were: those that are numbered, and those that will be soon. As of one
/// moment, as numbering moves them.
static END: Statement = Statement::new(
    "select h.head + coalesce((select cast(sum(e.size) as bigint) from events e where e.last_id = 0), 0)
    from event_head h
    where h.id = 1",
    &[],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 13] {
    [&INSERT, &PEEK, &LOCK, &UNNUMBERED, &NUMBER, &SET_HEAD, &READ, &KEPT, &END, &LOCK_HEAD, &OLDEST, &SWEEP, &RAISE_FLOOR]
}

/// Writes a row of events: how many, of which types, and as a JSON array.
pub async fn insert(conn: &mut Conn, at: UnixMs, size: usize, types: EventTypes, content: &str) -> DbResult<()> {
    let [size, at, types] = [i64::try_from(size).unwrap_or(i64::MAX), at.0, types.bits()].map(|value| Column::Int(vec![value]));
    conn.later(&INSERT, &[size, at, types, Column::Text(vec![content.to_owned()])]).await
}

/// How far events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// The highest number.
    pub(crate) head: i64,
    /// Up to where they are on the stream.
    pub(crate) streamed: i64,
    /// Whether some have no number yet.
    pub(crate) waiting: bool,
}

pub(crate) async fn peek(db: &Db) -> DbResult<Progress> {
    let rows: Vec<(i64, i64, i64)> = db.fetch(&PEEK, &[]).await?;
    Ok(rows.first().map_or_else(Progress::default, |(head, streamed, waiting)| Progress {
        head: *head,
        streamed: *streamed,
        waiting: *waiting > 0,
    }))
}

/// Takes the lock of the publisher in an open transaction. None where another node has it.
pub(crate) async fn lock(conn: &mut Conn) -> DbResult<Option<Progress>> {
    let rows: Vec<(i64, i64)> = conn.fetch(&LOCK, &[]).await?;
    Ok(rows.first().map(|(head, streamed)| Progress { head: *head, streamed: *streamed, waiting: false }))
}

/// A row that has got its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbered {
    /// The number of its last event.
    pub(crate) last: i64,
    pub(crate) types: EventTypes,
}

/// Numbers what is committed and has no number, in the order in which it was written, from the one
/// after `head` on.
pub(crate) async fn number(conn: &mut Conn, head: i64) -> DbResult<Vec<Numbered>> {
    let rows: Vec<(i64, i64, i64)> = conn.fetch(&UNNUMBERED, &[Column::Int(vec![NUMBERED_AT_ONCE])]).await?;
    let mut last = head;
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    let mut numbered = Vec::with_capacity(rows.len());
    for (batch, size, types) in rows {
        let [batches, firsts, lasts] = &mut columns;
        batches.push(batch);
        firsts.push(last + 1);
        last += size;
        lasts.push(last);
        numbered.push(Numbered { last, types: EventTypes::from_bits(types) });
    }
    if !numbered.is_empty() {
        conn.later(&NUMBER, &columns.map(Column::Int)).await?;
    }
    Ok(numbered)
}

pub(crate) async fn set_head(conn: &mut Conn, head: i64, streamed: i64) -> DbResult<()> {
    conn.later(&SET_HEAD, &[Column::Int(vec![head]), Column::Int(vec![streamed])]).await
}

fn ints<const N: usize>(values: [i64; N]) -> [Column; N] {
    values.map(|value| Column::Int(vec![value]))
}

/// A row of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// The number of its first event.
    pub first: i64,
    /// The number of its last one.
    pub last: i64,
    /// All as a JSON array; empty where none is of the types that were asked for.
    pub content: String,
}

fn rows(found: Vec<(i64, i64, String)>) -> Vec<EventRow> {
    found.into_iter().map(|(first, last, content)| EventRow { first, last, content }).collect()
}

/// Rows with events after a number, with contents where there are some of these types.
pub async fn read(db: &Db, after: i64, types: EventTypes, max_rows: i64) -> DbResult<Vec<EventRow>> {
    Ok(rows(db.fetch(&READ, &ints([after, types.bits(), max_rows])).await?))
}

/// The same in an open transaction.
pub async fn read_in(conn: &mut Conn, after: i64, types: EventTypes, max_rows: i64) -> DbResult<Vec<EventRow>> {
    Ok(rows(conn.fetch(&READ, &ints([after, types.bits(), max_rows])).await?))
}

/// Which events can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Up to which number they are kept no longer.
    pub floor: i64,
    /// The number of the last one that has a number.
    pub head: i64,
}

fn kept_of(rows: &[(i64, i64)]) -> Kept {
    rows.first().map_or_else(Kept::default, |(floor, head)| Kept { floor: *floor, head: *head })
}

/// Which events can be read now.
pub async fn kept(db: &Db) -> DbResult<Kept> {
    Ok(kept_of(&db.fetch(&KEPT, &[]).await?))
}

/// The same in an open transaction. What is read before it and lies above its floor had no gap.
pub async fn kept_in(conn: &mut Conn) -> DbResult<Kept> {
    Ok(kept_of(&conn.fetch(&KEPT, &[]).await?))
}

/// The number that the last event has, or will have once all that is committed is numbered.
pub(crate) async fn end(db: &Db) -> DbResult<i64> {
    let rows: Vec<(i64,)> = db.fetch(&END, &[]).await?;
    Ok(rows.first().map_or(0, |(end,)| *end))
}

/// Takes the lock of the publisher in an open transaction, and waits for it. Returns the floor.
pub(super) async fn lock_head(conn: &mut Conn) -> DbResult<i64> {
    let rows: Vec<(i64,)> = conn.fetch(&LOCK_HEAD, &[]).await?;
    Ok(rows.first().map_or(0, |(floor,)| *floor))
}

/// Removes some rows that were written before this time, of which it is now this time; returns how many.
pub(crate) async fn sweep(db: &Db, oldest: UnixMs, now: UnixMs) -> DbResult<u64> {
    let mut conn = db.borrow().await?;
    let gone = sweep_over(&mut conn, oldest, now).await;
    conn.give_back_after(&gone);
    gone
}

async fn sweep_over(conn: &mut Conn, oldest: UnixMs, now: UnixMs) -> DbResult<u64> {
    conn.begin().await?;
    let floor = lock_head(conn).await?;
    let mut gone = conn.run(&SWEEP, &ints([floor, SWEEP_ROWS])).await?;
    if gone == 0 {
        let rows: Vec<(i64, i64)> = conn.fetch(&OLDEST, &ints([floor, now.0 + MAX_AHEAD_MS, SWEEP_ROWS])).await?;
        if let Some(raised) = passed(&rows, oldest) {
            conn.later(&RAISE_FLOOR, &ints([raised])).await?;
            gone = conn.run(&SWEEP, &ints([raised, SWEEP_ROWS])).await?;
        }
    }
    let ended = if gone == 0 { conn.rollback().await } else { conn.commit().await };
    ended.map(|()| gone)
}

/// Up to which number rows are old: those before the first that is not. A clock that was slow writes rows that
/// look old among young ones, and what has a lower number than those must stay readable. Rows of a clock that was
/// fast keep those after them for as long as it was ahead, unless their time is still to come: these are not looked
/// at, and go with the others.
fn passed(rows: &[(i64, i64)], oldest: UnixMs) -> Option<i64> {
    rows.iter().take_while(|(_, at)| *at < oldest.0).last().map(|(last, _)| *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_clock_wrote_takes_no_younger_events_with_it() {
        let passed = |times: &[i64]| passed(&(1..).zip(times.iter().copied()).collect::<Vec<_>>(), UnixMs(100));
        assert_eq!([passed(&[]), passed(&[100]), passed(&[98, 99]), passed(&[98, 120])], [None, None, Some(2), Some(1)]);
        assert_eq!([passed(&[98, 120, 40, 121]), passed(&[120, 40])], [Some(1), None]);
    }
}
