//! The rows of `operations`, and what a batch holds of them.

use std::collections::{BTreeSet, HashMap};

use axum::http::StatusCode;

use super::{Operation, OperationConfig, OperationId, Outcome, Preceding};
use crate::base::abandoned::AHEAD_MS;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::engine::lanes::Table;
use crate::engine::pairs::Pair;

/// In a row: accepted and not done, done, refused.
const PENDING: i64 = 0;
const DONE: i64 = 1;
const FAILED: i64 = 2;

/// In place of a number that the database is yet to give.
const NOT_NUMBERED: i64 = i64::MAX;

/// How many operations the worker looks at to find pairs.
const PAIRS_AT_ONCE: i64 = 2000;

/// How many are in sight at once, as the statement has it.
const IN_SIGHT: usize = 10_000;

/// How many rows one round of the sweep removes.
const SWEEP_ROWS: i64 = 1000;

/// In the order of the commands: so are the numbers that the rows get.
static INSERT: Statement = Statement::new(
    "insert into operations (operation_id, low_id, high_id, caller, command, node_id, status, created_at, finished_at, answer_status, answer)
    select operation_id, low_id, high_id, caller, command, node_id, 0, created_at, 0, 0, ''
    from {rows} r
    where true
    order by place",
    &[
        ("operation_id", Type::Text),
        ("low_id", Type::Int),
        ("high_id", Type::Int),
        ("caller", Type::Text),
        ("command", Type::Text),
        ("node_id", Type::Int),
        ("created_at", Type::Int),
        ("place", Type::Int),
    ],
);

static FINISH: Statement = Statement::new(
    "update operations
    set status = r.status, finished_at = r.finished_at, answer_status = r.answer_status, answer = r.answer
    from {rows} r
    where operations.seq = r.seq and operations.status = 0",
    &[("seq", Type::Int), ("status", Type::Int), ("finished_at", Type::Int), ("answer_status", Type::Int), ("answer", Type::Text)],
);

/// An asynchronous write, which is of no kind, or a removal, which has no answer.
static READ: Statement = Statement::one(
    "select o.caller, 0, o.status, o.created_at, o.finished_at, o.answer_status, o.answer
    from operations o
    where o.operation_id = $1
    union all
    select r.caller, r.kind, case when r.finished_at > 0 then 1 else 0 end, r.created_at, r.finished_at, 204, ''
    from removals r
    where r.operation_id = $1",
    &[("operation_id", Type::Text)],
);

/// The pairs of what this node has accepted, and of what others have left for long, the oldest
/// first. A time far ahead is of a node with a fast clock, and says nothing about how long it was left.
static PENDING_PAIRS: Statement = Statement::one(
    "select o.seq, o.low_id, o.high_id
    from operations o
    where o.status = 0 and o.seq > $4 and (o.node_id = $1 or o.created_at < $2 or o.created_at > $3)
    order by o.seq
    limit $5",
    &[("node_id", Type::Int), ("created_before", Type::Int), ("created_after", Type::Int), ("after", Type::Int), ("max_rows", Type::Int)],
);

/// Pair by pair: either dialect is kept from going through all that is pending and comparing it
/// with all pairs.
static PENDING_OF_PAIRS: Statement = Statement::each(
    "select o.seq, o.low_id, o.high_id, o.caller, o.command
    from {rows} r
    cross join operations o
    where o.low_id = r.low_id and o.high_id = r.high_id and o.status = 0
    order by o.seq
    limit 10000",
    "select p.seq, p.low_id, p.high_id, p.caller, p.command
    from {rows} r
    cross join lateral (
        select o.seq, o.low_id, o.high_id, o.caller, o.command
        from operations o
        where o.low_id = r.low_id and o.high_id = r.high_id and o.status = 0
        order by o.low_id, o.high_id, o.seq
        limit 10000
    ) p
    order by p.seq
    limit 10000",
    &[("low_id", Type::Int), ("high_id", Type::Int)],
);

static COUNT: Statement = Statement::one(
    "select pending.caller, count(*)
    from (select o.caller from operations o where o.status = 0 limit $1) pending
    group by pending.caller",
    &[("max_rows", Type::Int)],
);

static SWEEP: Statement = Statement::one(
    "delete from operations
    where seq in (
        select o.seq
        from operations o
        where o.status > 0 and o.finished_at < $1
        order by o.finished_at
        limit $2
    )",
    &[("oldest", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 7] {
    [&INSERT, &FINISH, &READ, &PENDING_PAIRS, &PENDING_OF_PAIRS, &COUNT, &SWEEP]
}

/// What a batch holds of operations.
#[derive(Debug, Default)]
pub struct Tables {
    /// Of each pair (the lower id first) with operations that are accepted and not done: a number
    /// below which all are done, and the highest number. Where the first one is known to this
    /// batch, it is that one's.
    pending: Table<Pair, Option<(i64, i64)>>,
    /// What came of those that are done in this batch, by number.
    finished: Table<i64, Option<Outcome>>,
    /// Those that are accepted in this batch, in order.
    accepted: Vec<(Operation, UnixMs)>,
    /// How many of them belong to commands that took effect.
    settled: usize,
}

impl Tables {
    pub(crate) fn insert_pending(&mut self, pair: Pair, first: i64, last: i64) {
        self.pending.insert_loaded([(pair, Some((first, last)))]);
    }

    pub(crate) fn has_pending(&self, pair: Pair, preceding: Preceding) -> bool {
        self.first_pending(pair).is_some_and(|first| match preceding {
            Preceding::All => true,
            Preceding::UpTo(last) => first <= last,
        })
    }

    pub(crate) fn first_pending(&self, pair: Pair) -> Option<i64> {
        self.pending.get(&pair.unordered()).map(|(first, _)| first)
    }

    pub(crate) fn accept(&mut self, operation: &Operation, now: UnixMs) {
        let pair = operation.pair.unordered();
        let first = self.first_pending(pair).unwrap_or(NOT_NUMBERED);
        self.pending.set(&pair, Some((first, NOT_NUMBERED)));
        self.accepted.push((operation.clone(), now));
    }

    /// The first one of a pair is done; `next` is the one after it, where that is known.
    pub(crate) fn finish(&mut self, pair: Pair, seq: i64, next: Option<i64>, outcome: Outcome) {
        let pair = pair.unordered();
        let last = self.pending.get(&pair).map_or(seq, |(_, last)| last);
        // There may be some that came after those that are known: what is to come after all must
        // still wait for them.
        let left = if last > seq { Some((next.unwrap_or(seq + 1), last)) } else { None };
        self.pending.set(&pair, left);
        self.finished.set(&seq, Some(outcome));
    }

    pub(crate) fn settle(&mut self) {
        self.pending.settle();
        self.finished.settle();
        self.settled = self.accepted.len();
    }

    pub(crate) fn undo(&mut self) {
        self.pending.undo();
        self.finished.undo();
        self.accepted.truncate(self.settled);
    }

    pub(crate) async fn save(&self, conn: &mut Conn) -> DbResult<()> {
        if !self.accepted.is_empty() {
            insert(conn, &self.accepted).await?;
        }
        let finished: Vec<_> = self.finished.changed().filter_map(|(seq, outcome)| Some((*seq, outcome.as_ref()?))).collect();
        if finished.is_empty() { Ok(()) } else { finish(conn, &finished).await }
    }
}

async fn insert(conn: &mut Conn, accepted: &[(Operation, UnixMs)]) -> DbResult<()> {
    let int = |value: fn(&Operation) -> i64| Column::Int(accepted.iter().map(|(operation, _)| value(operation)).collect());
    let text = |value: fn(&Operation) -> String| Column::Text(accepted.iter().map(|(operation, _)| value(operation)).collect());
    let columns = [
        text(|operation| operation.id.to_string()),
        int(|operation| operation.pair.unordered().follower.get()),
        int(|operation| operation.pair.unordered().followee.get()),
        text(|operation| operation.caller.clone()),
        // Of plain fields; it cannot fail.
        text(|operation| operation.command.clone()),
        int(|operation| operation.node),
        Column::Int(accepted.iter().map(|(_, at)| at.0).collect()),
        Column::Int((0..).take(accepted.len()).collect()),
    ];
    conn.later(&INSERT, &columns).await
}

async fn finish(conn: &mut Conn, finished: &[(i64, &Outcome)]) -> DbResult<()> {
    let status = |outcome: &Outcome| if outcome.status.is_success() { DONE } else { FAILED };
    let columns = [
        Column::Int(finished.iter().map(|(seq, _)| *seq).collect()),
        Column::Int(finished.iter().map(|(_, outcome)| status(outcome)).collect()),
        Column::Int(finished.iter().map(|(_, outcome)| outcome.at.0).collect()),
        Column::Int(finished.iter().map(|(_, outcome)| i64::from(outcome.status.as_u16())).collect()),
        Column::Text(finished.iter().map(|(_, outcome)| outcome.body.clone()).collect()),
    ];
    conn.later(&FINISH, &columns).await
}

/// An operation as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Who had it accepted.
    pub(crate) caller: String,
    /// Whether it is a removal.
    pub(crate) removes: bool,
    /// When it was accepted.
    pub(crate) created_at: UnixMs,
    /// What came of it, if it is done.
    pub(crate) outcome: Option<Outcome>,
}

pub(crate) async fn read(db: &Db, id: &OperationId) -> DbResult<Option<Kept>> {
    let rows: Vec<(String, i64, i64, i64, i64, i64, String)> = db.fetch(&READ, &[Column::Text(vec![id.to_string()])]).await?;
    Ok(rows.into_iter().next().map(|(caller, kind, status, created_at, finished_at, answer_status, body)| {
        let code = u16::try_from(answer_status).ok().and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or_default();
        let outcome = (status != PENDING).then_some(Outcome { status: code, body, at: UnixMs(finished_at) });
        Kept { caller, removes: kind > 0, created_at: UnixMs(created_at), outcome }
    }))
}

fn pair((low, high): (i64, i64)) -> Option<Pair> {
    Some(Pair { follower: UserId::try_from(low).ok()?, followee: UserId::try_from(high).ok()? })
}

/// Pairs with something pending.
#[derive(Debug)]
pub(crate) struct PendingPairs {
    /// Each once.
    pub(crate) pairs: Vec<Pair>,
    /// After which operation there may be more pairs.
    pub(crate) next: Option<i64>,
}

/// The pairs of what a node has accepted, and of what was accepted so long before now or far after it.
/// Only operations after this one are looked at.
pub(crate) async fn pending_pairs(db: &Db, node: i64, now: UnixMs, left_ms: i64, after: i64) -> DbResult<PendingPairs> {
    let columns = [node, now.0 - left_ms, now.0 + AHEAD_MS, after, PAIRS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64, i64)> = db.fetch(&PENDING_PAIRS, &columns).await?;
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= PAIRS_AT_ONCE;
    let next = rows.last().map(|(seq, ..)| *seq).filter(|_| is_full);
    let pairs: BTreeSet<_> = rows.into_iter().filter_map(|(_, low, high)| pair((low, high))).collect();
    Ok(PendingPairs { pairs: pairs.into_iter().collect(), next })
}

/// One that is pending.
#[derive(Debug)]
pub(crate) struct PendingOperation {
    pub pair: Pair,
    pub seq: i64,
    /// Who had it accepted.
    pub caller: String,
    /// JSON: what is to be done.
    pub command: String,
}

/// What is pending of these pairs, in order.
pub(crate) async fn pending_of(db: &Db, pairs: &[Pair]) -> DbResult<Vec<PendingOperation>> {
    let columns = [
        Column::Int(pairs.iter().map(|pair| pair.follower.get()).collect()),
        Column::Int(pairs.iter().map(|pair| pair.followee.get()).collect()),
    ];
    let rows: Vec<(i64, i64, i64, String, String)> = db.fetch(&PENDING_OF_PAIRS, &columns).await?;
    let found = |(seq, low, high, caller, command)| Some(PendingOperation { pair: pair((low, high))?, seq, caller, command });
    Ok(rows.into_iter().filter_map(found).collect())
}

/// After which of these, all that were in sight, a write comes that was there before the look.
pub(crate) fn preceding(in_sight: &[PendingOperation]) -> Preceding {
    // There may be more.
    if in_sight.len() >= IN_SIGHT {
        return Preceding::All;
    }
    Preceding::UpTo(in_sight.iter().map(|operation| operation.seq).max().unwrap_or_default())
}

/// How many each caller has pending; in all they are counted up to so many.
pub(crate) async fn count(db: &Db, most: u32) -> DbResult<HashMap<String, usize>> {
    let rows: Vec<(String, i64)> = db.fetch(&COUNT, &[Column::Int(vec![i64::from(most)])]).await?;
    Ok(rows.into_iter().map(|(caller, count)| (caller, usize::try_from(count).unwrap_or_default())).collect())
}

/// Removes some operations of which it is no longer kept what came of them; returns how many. Call
/// again while it returns any.
pub async fn sweep(db: &Db, config: &OperationConfig, now: UnixMs) -> DbResult<u64> {
    let oldest = now.0 - config.ttl_ms();
    db.run(&SWEEP, &[Column::Int(vec![oldest]), Column::Int(vec![SWEEP_ROWS])]).await
}
