//! The statements over `removals` and `erased_users`.

use super::{NewRemoval, Place, Removal, RemovalKind};
use crate::base::abandoned::AHEAD_MS;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::engine::erased::id_hash;
use crate::features::operations::{OperationConfig, OperationId};

/// How many rows one round of the sweep removes.
const SWEEP_ROWS: i64 = 1000;

static BEGIN: Statement = Statement::new(
    "insert into removals
        (operation_id, kind, subject_id, caller, step, after_id, after_seq, after_name, due_at, created_at, finished_at)
    select operation_id, kind, subject_id, caller, '', 0, 0, '', created_at, created_at, 0
    from {rows} r
    where true",
    &[("operation_id", Type::Text), ("kind", Type::Int), ("subject_id", Type::Int), ("caller", Type::Text), ("created_at", Type::Int)],
);

/// Those that still have a row stay as they are.
static KEEP: Statement = Statement::new(
    "insert into removals
        (operation_id, kind, subject_id, caller, step, after_id, after_seq, after_name, due_at, created_at, finished_at)
    select operation_id, kind, 0, caller, '', 0, 0, '', created_at, created_at, finished_at
    from {rows} r
    where true
    on conflict (operation_id) do nothing",
    &[("operation_id", Type::Text), ("kind", Type::Int), ("caller", Type::Text), ("created_at", Type::Int), ("finished_at", Type::Int)],
);

static REMEMBER: Statement = Statement::new(
    "insert into erased_users (id_hash, operation_id) select id_hash, operation_id from {rows} r where true",
    &[("id_hash", Type::Text), ("operation_id", Type::Text)],
);

/// Those that are due, and those that are so far ahead that a clock was fast: neither takes the room of the others. Nor do
/// those whose kind or step only a newer version knows.
static DUE: Statement = Statement::one(
    "select d.operation_id, d.kind, d.subject_id, d.step, d.after_id, d.after_seq, d.after_name, d.due_at
    from (
        select r.operation_id, r.kind, r.subject_id, r.step, r.after_id, r.after_seq, r.after_name, r.due_at
        from removals r
        where r.finished_at = 0 and r.due_at <= $1 and $4 like '% ' || cast(r.kind as text) || ':' || r.step || ' %'
        order by r.due_at
        limit $3
    ) d
    union all
    select a.operation_id, a.kind, a.subject_id, a.step, a.after_id, a.after_seq, a.after_name, a.due_at
    from (
        select r.operation_id, r.kind, r.subject_id, r.step, r.after_id, r.after_seq, r.after_name, r.due_at
        from removals r
        where r.finished_at = 0 and r.due_at > $2 and $4 like '% ' || cast(r.kind as text) || ':' || r.step || ' %'
        order by r.due_at
        limit $3
    ) a",
    &[("now", Type::Int), ("ahead", Type::Int), ("max_rows", Type::Int), ("known", Type::Text)],
);

/// When the oldest unfinished one began; 0 if there is none.
static OLDEST: Statement = Statement::one("select coalesce(min(r.created_at), 0) from removals r where r.finished_at = 0", &[]);

/// Where the removal is still as it is known: at the same place as well as with the same time, which may be had again.
/// Each of `{rows}` has another time that its row may have.
static MOVE: Statement = Statement::new(
    "update removals
    set step = r.step, after_id = r.after_id, after_seq = r.after_seq, after_name = r.after_name, due_at = r.due_at
    from {rows} r
    where removals.operation_id = r.operation_id and removals.due_at = r.from_due_at and removals.finished_at = 0
        and removals.step = r.from_step and removals.after_id = r.from_id and removals.after_seq = r.from_seq
        and removals.after_name = r.from_name",
    &[
        ("operation_id", Type::Text),
        ("from_due_at", Type::Int),
        ("from_step", Type::Text),
        ("from_id", Type::Int),
        ("from_seq", Type::Int),
        ("from_name", Type::Text),
        ("step", Type::Text),
        ("after_id", Type::Int),
        ("after_seq", Type::Int),
        ("after_name", Type::Text),
        ("due_at", Type::Int),
    ],
);

/// What was removed is not named any more.
static FINISH: Statement = Statement::new(
    "update removals
    set subject_id = 0, step = '', after_id = 0, after_seq = 0, after_name = '', finished_at = r.finished_at
    from {rows} r
    where removals.operation_id = r.operation_id and removals.due_at = r.from_due_at and removals.finished_at = 0",
    &[("operation_id", Type::Text), ("from_due_at", Type::Int), ("finished_at", Type::Int)],
);

static SWEEP: Statement = Statement::one(
    "delete from removals
    where operation_id in (
        select r.operation_id
        from removals r
        where r.finished_at > 0 and r.finished_at < $1
        order by r.finished_at
        limit $2
    )",
    &[("oldest", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 8] {
    [&BEGIN, &KEEP, &REMEMBER, &DUE, &OLDEST, &MOVE, &FINISH, &SWEEP]
}

fn int(value: i64) -> Column {
    Column::Int(vec![value])
}

fn text(value: &str) -> Column {
    Column::Text(vec![value.to_owned()])
}

/// Writes new removals.
pub(super) async fn begin(conn: &mut Conn, new: &[&NewRemoval], now: UnixMs) -> DbResult<()> {
    let column = |value: fn(&NewRemoval) -> i64| Column::Int(new.iter().map(|new| value(new)).collect());
    let columns = [
        Column::Text(new.iter().map(|new| new.id.to_string()).collect()),
        column(|new| new.kind.code()),
        column(|new| new.subject),
        Column::Text(new.iter().map(|new| new.caller.clone()).collect()),
        Column::Int(vec![now.0; new.len()]),
    ];
    conn.later(&BEGIN, &columns).await
}

/// Writes once more that removals are done, where their rows are gone.
pub(super) async fn keep(conn: &mut Conn, repeated: &[&NewRemoval], now: UnixMs) -> DbResult<()> {
    let columns = [
        Column::Text(repeated.iter().map(|removal| removal.id.to_string()).collect()),
        Column::Int(repeated.iter().map(|removal| removal.kind.code()).collect()),
        Column::Text(repeated.iter().map(|removal| removal.caller.clone()).collect()),
        Column::Int(repeated.iter().map(|removal| removal.id.time().0).collect()),
        Column::Int(vec![now.0.max(1); repeated.len()]),
    ];
    conn.later(&KEEP, &columns).await
}

/// Writes by which operations these users are erased.
pub(super) async fn remember(conn: &mut Conn, erased: &[(UserId, &OperationId)]) -> DbResult<()> {
    let columns = [
        Column::Text(erased.iter().map(|(user, _)| id_hash(*user)).collect()),
        Column::Text(erased.iter().map(|(_, operation)| operation.to_string()).collect()),
    ];
    conn.later(&REMEMBER, &columns).await
}

/// A row of [`DUE`].
type DueRow = (String, i64, i64, String, i64, i64, String, i64);

/// The kinds and names of steps that this version knows, as [`due`] takes them.
#[derive(Debug, Clone)]
pub struct Known(String);

impl Known {
    /// These.
    #[must_use]
    pub fn new<'a>(steps: impl IntoIterator<Item = (RemovalKind, &'a str)>) -> Self {
        let each = steps.into_iter().map(|(kind, step)| format!(" {}:{step}", kind.code()));
        Self(each.chain([" ".to_owned()]).collect())
    }
}

/// Removals that may go on now, those that are due longest first, and then those that a node may have left. One of a
/// kind, or at a step, that only a newer version knows is left to it.
pub async fn due(db: &Db, known: &Known, now: UnixMs, max_rows: i64) -> DbResult<Vec<Removal>> {
    let rows: Vec<DueRow> = db.fetch(&DUE, &[int(now.0), int(now.0 + AHEAD_MS), int(max_rows), text(&known.0)]).await?;
    let removal = |(id, kind, subject, step, after_id, after_seq, after_name, due_at): DueRow| {
        let place = Place { id: after_id, seq: after_seq, name: after_name };
        Some(Removal {
            id: id.parse().ok()?,
            kind: RemovalKind::of_row(kind)?,
            subject,
            step,
            place,
            due_at: UnixMs(due_at),
            unsure: Vec::new(),
        })
    };
    Ok(rows.into_iter().filter_map(removal).collect())
}

/// When the oldest removal began that is not finished.
pub async fn oldest(db: &Db) -> DbResult<Option<UnixMs>> {
    let rows: Vec<(i64,)> = db.fetch(&OLDEST, &[]).await?;
    Ok(rows.first().map(|(at,)| UnixMs(*at)).filter(|at| at.0 > 0))
}

/// Moves a removal on, if it is still as it is known. None: another node has it.
pub async fn move_on(db: &Db, from: &Removal, step: &str, place: Place, due_at: UnixMs) -> DbResult<Option<Removal>> {
    let due_at = if (step, &place) == (from.step.as_str(), &from.place) { another_time(from, due_at) } else { due_at };
    let is_moved = set(db, from, step, &place, due_at).await?;
    Ok(is_moved.then(|| Removal { step: step.to_owned(), place, due_at, unsure: Vec::new(), ..from.clone() }))
}

/// Leaves a removal to its node until this time, at the same place. False: another node has it. A renewal without an
/// answer may have been done: what follows goes by both times.
pub async fn renew(db: &Db, held: &mut Removal, due_at: UnixMs) -> DbResult<bool> {
    let from = held.clone();
    let due_at = another_time(&from, due_at);
    held.unsure.push(due_at);
    let is_renewed = set(db, &from, &from.step, &from.place, due_at).await?;
    if is_renewed {
        (held.due_at, held.unsure) = (due_at, Vec::new());
    }
    Ok(is_renewed)
}

/// This time, or the next one that the row of a removal cannot have. Else another node that knows the row as it was
/// would take it, too.
fn another_time(from: &Removal, due_at: UnixMs) -> UnixMs {
    let mut other = due_at;
    while from.times().any(|time| time == other) {
        other.0 += 1;
    }
    other
}

/// Whether the row was as it is known, and is changed.
async fn set(db: &Db, from: &Removal, step: &str, place: &Place, due_at: UnixMs) -> DbResult<bool> {
    let times: Vec<i64> = from.times().map(|time| time.0).collect();
    let rows = times.len();
    let int = |value: i64| Column::Int(vec![value; rows]);
    let text = |value: &str| Column::Text(vec![value.to_owned(); rows]);
    let columns = [
        text(from.id.as_str()),
        Column::Int(times),
        text(&from.step),
        int(from.place.id),
        int(from.place.seq),
        text(&from.place.name),
        text(step),
        int(place.id),
        int(place.seq),
        text(&place.name),
        int(due_at.0),
    ];
    Ok(db.run(&MOVE, &columns).await? > 0)
}

/// All is removed. Whether it was still as it is known.
pub async fn finish(db: &Db, from: &Removal, now: UnixMs) -> DbResult<bool> {
    let times: Vec<i64> = from.times().map(|time| time.0).collect();
    let rows = times.len();
    let columns = [Column::Text(vec![from.id.to_string(); rows]), Column::Int(times), Column::Int(vec![now.0.max(1); rows])];
    Ok(db.run(&FINISH, &columns).await? > 0)
}

/// Removes some removals of which it is no longer kept that they were done; returns how many. Call
/// again while it returns any.
pub async fn sweep(db: &Db, config: &OperationConfig, now: UnixMs) -> DbResult<u64> {
    db.run(&SWEEP, &[int(config.kept_since(now).0), int(SWEEP_ROWS)]).await
}
