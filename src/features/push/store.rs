//! The statements over `push_users`, `unread_jobs` and `unread_progress`.

use std::collections::BTreeSet;

use super::due::{Change, Due};
use super::job::{Job, Scope};
use crate::base::abandoned::AHEAD_MS;
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};

static FLAG: Statement = Statement::new(
    "insert into push_users (user_id, due_at)
    select user_id, due_at
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set due_at = excluded.due_at",
    &[("user_id", Type::Int), ("due_at", Type::Int)],
);

static UNFLAG: Statement = Statement::new(
    "delete from push_users
    where user_id in (select user_id from {rows} r)",
    &[("user_id", Type::Int)],
)
.by("user_id");

static SET_DUE: Statement = Statement::new(
    "update push_users
    set due_at = r.due_at
    from {rows} r
    where push_users.user_id = r.user_id",
    &[("user_id", Type::Int), ("due_at", Type::Int)],
)
.by("user_id");

/// Where nothing earlier is known.
static HASTEN: Statement = Statement::new(
    "update push_users
    set due_at = r.due_at
    from {rows} r
    where push_users.user_id = r.user_id and (push_users.due_at = 0 or push_users.due_at > r.due_at)",
    &[("user_id", Type::Int), ("due_at", Type::Int)],
)
.by("user_id");

static LOCK_JOBS: Statement = Statement::each(
    "select j.scope_id, j.due_at, j.next_at, j.after_id
    from {rows} r
    join unread_jobs j on j.scope_id = r.scope_id",
    "select j.scope_id, j.due_at, j.next_at, j.after_id
    from {rows} r
    join unread_jobs j on j.scope_id = r.scope_id
    order by j.scope_id
    for update of j",
    &[("scope_id", Type::Int)],
);

static MOVE_JOBS: Statement = Statement::new(
    "update unread_jobs
    set due_at = r.due_at, next_at = r.next_at, after_id = r.after_id
    from {rows} r
    where unread_jobs.scope_id = r.scope_id",
    &[("scope_id", Type::Int), ("due_at", Type::Int), ("next_at", Type::Int), ("after_id", Type::Int)],
);

static END_JOBS: Statement = Statement::new(
    "delete from unread_jobs
    where scope_id in (select scope_id from {rows} r)",
    &[("scope_id", Type::Int)],
);

/// A job that has not begun covers what is due no later. Else it is done once more: a pass that is
/// under way may be past some users, and one that begins before `due_at` may tell a node of a change
/// that another does not show yet. An earlier one goes first, and the other is the next.
static ADD_JOBS: Statement = Statement::new(
    "insert into unread_jobs (scope_id, due_at, next_at, after_id)
    select scope_id, due_at, 0, 0
    from {rows} r
    where true
    order by scope_id
    on conflict (scope_id) do update set
        due_at = case
            when unread_jobs.after_id = 0 and excluded.due_at < unread_jobs.due_at then excluded.due_at
            else unread_jobs.due_at end,
        next_at = case
            when unread_jobs.after_id = 0 and excluded.due_at = unread_jobs.due_at then unread_jobs.next_at
            when unread_jobs.after_id = 0 and excluded.due_at < unread_jobs.due_at and unread_jobs.next_at < unread_jobs.due_at
                then unread_jobs.due_at
            when unread_jobs.next_at < excluded.due_at then excluded.due_at
            else unread_jobs.next_at end",
    &[("scope_id", Type::Int), ("due_at", Type::Int)],
);

/// Those that are due, and those that are so far ahead that a clock was fast.
static DUE_JOBS: Statement = Statement::one(
    "select d.scope_id, d.due_at, d.next_at, d.after_id
    from (
        select j.scope_id, j.due_at, j.next_at, j.after_id
        from unread_jobs j
        where j.due_at <= $1
        order by j.due_at, j.scope_id
        limit $3
    ) d
    union all
    select a.scope_id, a.due_at, a.next_at, a.after_id
    from (
        select j.scope_id, j.due_at, j.next_at, j.after_id
        from unread_jobs j
        where j.due_at > $2
        order by j.due_at, j.scope_id
        limit $3
    ) a",
    &[("now", Type::Int), ("ahead", Type::Int), ("max_rows", Type::Int)],
);

static USERS: Statement = Statement::one(
    "select p.user_id
    from push_users p
    where p.user_id > $1
    order by p.user_id
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int)],
);

static DUE_USERS: Statement = Statement::one(
    "select p.due_at, p.user_id
    from push_users p
    where p.due_at > 0 and p.due_at <= $1 and (p.due_at, p.user_id) > ($2, $3)
    order by p.due_at, p.user_id
    limit $4",
    &[("now", Type::Int), ("after_at", Type::Int), ("after_user", Type::Int), ("max_rows", Type::Int)],
);

/// The time at which the first job is due, or 0 without any job.
static FIRST_JOB: Statement = Statement::one("select coalesce(min(j.due_at), 0) from unread_jobs j", &[]);

/// When something ends first for a user; 0 if nothing does.
static FIRST_USER: Statement = Statement::one(
    "select coalesce(min(p.due_at), 0)
    from push_users p
    where p.due_at > 0",
    &[],
);

/// Another node that holds it does the work.
static LOCK_PROGRESS: Statement = Statement::each(
    "select event_id, expired_at from unread_progress where id = 1",
    "select event_id, expired_at from unread_progress where id = 1 for update skip locked",
    &[],
);

static SAVE_PROGRESS: Statement = Statement::new(
    "update unread_progress
    set event_id = r.event_id, expired_at = r.expired_at
    from {rows} r
    where unread_progress.id = 1",
    &[("event_id", Type::Int), ("expired_at", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 15] {
    [
        &FLAG,
        &UNFLAG,
        &SET_DUE,
        &HASTEN,
        &LOCK_JOBS,
        &MOVE_JOBS,
        &END_JOBS,
        &ADD_JOBS,
        &DUE_JOBS,
        &USERS,
        &DUE_USERS,
        &FIRST_JOB,
        &FIRST_USER,
        &LOCK_PROGRESS,
        &SAVE_PROGRESS,
    ]
}

fn time(at: Option<UnixMs>) -> i64 {
    at.map_or(0, |at| at.0)
}

fn pairs(rows: &[(i64, i64)]) -> [Column; 2] {
    let (left, right) = rows.iter().copied().unzip();
    [Column::Int(left), Column::Int(right)]
}

/// Writes what changed of users with a push device.
pub(super) async fn save_users(conn: &mut Conn, changes: impl Iterator<Item = (&UserId, &Change)>) -> DbResult<()> {
    let (mut gone, mut flagged, mut exact, mut hastened) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (user, change) in changes {
        let user = user.get();
        match (change.flag, change.due) {
            (Some(false), _) => gone.push(user),
            (Some(true), Some(Due::Exactly(at))) => flagged.push((user, time(at))),
            (Some(true), Some(Due::AtLatest(at))) => flagged.push((user, at.0)),
            (Some(true), None) => flagged.push((user, 0)),
            (None, Some(Due::Exactly(at))) => exact.push((user, time(at))),
            (None, Some(Due::AtLatest(at))) => hastened.push((user, at.0)),
            (None, None) => {}
        }
    }
    if !gone.is_empty() {
        conn.later(&UNFLAG, &[Column::Int(gone)]).await?;
    }
    for (statement, rows) in [(&FLAG, flagged), (&SET_DUE, exact), (&HASTEN, hastened)] {
        if !rows.is_empty() {
            conn.later(statement, &pairs(&rows)).await?;
        }
    }
    Ok(())
}

type JobRow = (i64, i64, i64, i64);

fn jobs(rows: Vec<JobRow>) -> Vec<(Scope, Job)> {
    let job = |(scope, due_at, next_at, after): JobRow| {
        (Scope::of_row(scope), Job { due_at: UnixMs(due_at), next_at: (next_at > 0).then_some(UnixMs(next_at)), after })
    };
    rows.into_iter().map(job).collect()
}

pub(super) async fn lock_jobs(pipeline: &Pipeline, scopes: &BTreeSet<Scope>) -> DbResult<Vec<(Scope, Job)>> {
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    Ok(jobs(pipeline.fetch(&LOCK_JOBS, [Column::Int(scopes.iter().map(|scope| scope.id()).collect())]).await?))
}

/// Writes how far jobs are, and ends those that are done.
pub(super) async fn save_jobs(conn: &mut Conn, changed: impl Iterator<Item = (&Scope, &Option<Job>)>) -> DbResult<()> {
    let (mut done, mut moved) = (Vec::new(), Vec::new());
    for (scope, job) in changed {
        match job {
            None => done.push(scope.id()),
            Some(job) => moved.push((scope.id(), *job)),
        }
    }
    if !done.is_empty() {
        conn.later(&END_JOBS, &[Column::Int(done)]).await?;
    }
    if !moved.is_empty() {
        let column = |value: fn(&(i64, Job)) -> i64| Column::Int(moved.iter().map(value).collect());
        let columns = [column(|(scope, _)| *scope), column(|(_, job)| job.due_at.0), column(|(_, job)| time(job.next_at))];
        conn.later(&MOVE_JOBS, &[columns.as_slice(), &[column(|(_, job)| job.after)]].concat()).await?;
    }
    Ok(())
}

/// These jobs are to be done, not before these times. Each scope once.
pub async fn add_jobs(conn: &mut Conn, causes: &[(Scope, UnixMs)]) -> DbResult<()> {
    if causes.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = causes.iter().map(|(scope, due_at)| (scope.id(), due_at.0)).collect();
    conn.later(&ADD_JOBS, &pairs(&rows)).await
}

/// The jobs that may go on now, and those that a node may have left: so many of both at most.
pub async fn due_jobs(db: &Db, now: UnixMs, max_rows: i64) -> DbResult<Vec<(Scope, Job)>> {
    Ok(jobs(db.fetch(&DUE_JOBS, &[now.0, now.0 + AHEAD_MS, max_rows].map(|value| Column::Int(vec![value]))).await?))
}

fn users(rows: Vec<(i64,)>) -> Vec<UserId> {
    rows.into_iter().filter_map(|(user,)| UserId::try_from(user).ok()).collect()
}

/// Users with a push device after this one, in the order of their ids.
pub async fn users_after(db: &Db, after: i64, max_rows: i64) -> DbResult<Vec<UserId>> {
    Ok(users(db.fetch(&USERS, &[after, max_rows].map(|value| Column::Int(vec![value]))).await?))
}

/// Where a user stands among those for whom something has ended: by when it did, then by id.
pub type DuePlace = (i64, i64);

/// Users for whom something has ended by this time, after a place and in that order.
pub async fn due_users(db: &Db, now: UnixMs, after: DuePlace, max_rows: i64) -> DbResult<Vec<(DuePlace, UserId)>> {
    let columns = [now.0, after.0, after.1, max_rows].map(|value| Column::Int(vec![value]));
    let rows: Vec<DuePlace> = db.fetch(&DUE_USERS, &columns).await?;
    Ok(rows.into_iter().filter_map(|place| Some((place, UserId::try_from(place.1).ok()?))).collect())
}

/// When the first job, or the first user for whom something ends, is due.
pub async fn first_due(db: &Db) -> DbResult<Option<UnixMs>> {
    let jobs: Vec<(i64,)> = db.fetch(&FIRST_JOB, &[]).await?;
    let users: Vec<(i64,)> = db.fetch(&FIRST_USER, &[]).await?;
    Ok(jobs.into_iter().chain(users).map(|(at,)| UnixMs(at)).filter(|at| at.0 > 0).min())
}

/// Up to where causes have become jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The last event that was looked at.
    pub event_id: i64,
    /// Up to when broadcasts that have expired were.
    pub expired_at: UnixMs,
}

/// Takes the lock of the progress in an open transaction. None where another node has it.
pub async fn lock_progress(conn: &mut Conn) -> DbResult<Option<Progress>> {
    let rows: Vec<(i64, i64)> = conn.fetch(&LOCK_PROGRESS, &[]).await?;
    Ok(rows.first().map(|(event_id, expired_at)| Progress { event_id: *event_id, expired_at: UnixMs(*expired_at) }))
}

pub async fn save_progress(conn: &mut Conn, progress: Progress) -> DbResult<()> {
    conn.later(&SAVE_PROGRESS, &[progress.event_id, progress.expired_at.0].map(|value| Column::Int(vec![value]))).await
}
