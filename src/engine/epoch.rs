//! The epoch of the installation: which history its database is in. A database that is restored
//! from a backup gives revisions and numbers again that clients have seen with other contents. So a
//! restore must be followed by another epoch, which every entity tag, every unread summary and
//! every answer of an inbox names. It tells clients to drop all they know.
//!
//! Postgres knows its history: which cluster, since which failover or recovery, which database in
//! it. Where that is another than before, a node that starts, or connects again, renews the epoch by
//! itself. A SQLite
//! file does not know; `headmark epoch --renew` does it by hand. Another epoch also ends all
//! entries of the cache, as they may be newer than the restored rows. And it leaves out numbers of
//! events, as those of lost events are known to readers, and to the stream in Redis.
//!
//! Running nodes read the epoch with every look at the shared heads (`crate::engine::heads`). Its
//! table is `inbox_epoch`, as inboxes had it first.

use std::io::Error as IoError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use tokio_util::task::AbortOnDropHandle;

use crate::base::clock::Clock;
use crate::cache::HISTORY_STEP;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type, classify};

static READ: Statement = Statement::new("select epoch, history from inbox_epoch where id = 1", &[]);

static MAKE: Statement = Statement::new(
    "insert into inbox_epoch (id, epoch, history)
    select 1, epoch, history
    from {rows} r
    where true
    on conflict (id) do nothing",
    &[("epoch", Type::Text), ("history", Type::Text)],
);

/// Only from the history that was read: of several nodes that start at once, one renews.
static FOLLOW: Statement = Statement::new(
    "update inbox_epoch
    set epoch = r.epoch, history = r.history
    from {rows} r
    where inbox_epoch.id = 1 and inbox_epoch.history = r.before",
    &[("epoch", Type::Text), ("history", Type::Text), ("before", Type::Text)],
);

static RENEW: Statement = Statement::new(
    "update inbox_epoch
    set epoch = r.epoch
    from {rows} r
    where inbox_epoch.id = 1",
    &[("epoch", Type::Text)],
);

/// All entries of the cache end. By a random step: the restored number may be one that entries of
/// the lost history have.
static END_ENTRIES: Statement = Statement::new(
    "update cache_guard
    set epoch = cache_guard.epoch + r.step
    from {rows} r
    where id = 1",
    &[("step", Type::Int)],
);

/// No event gets a number that a lost one had: a reader that has read the lost one would pass by the other.
static RAISE_EVENTS: Statement = Statement::new(
    "update event_head
    set head = case when event_head.head + r.step > r.at_least then event_head.head + r.step else r.at_least end
    from {rows} r
    where event_head.id = 1",
    &[("step", Type::Int), ("at_least", Type::Int)],
);

/// A row of all types with the last number that was left out. Its one event is passed by, as one that named an erased
/// user. So readers, the stream and the jobs for push devices get beyond the numbers, on nodes of each version.
static MARK_RAISED: Statement = Statement::new(
    "insert into events (size, first_id, last_id, created_at, types, content)
    select 1, h.head, h.head, r.created_at, r.types, '[null]'
    from {rows} r
    join event_head h on h.id = 1",
    &[("created_at", Type::Int), ("types", Type::Int)],
);

/// The cluster by its own number, the timeline that it writes, and the database in it. Each is
/// another after one of the ways to restore.
static HISTORY: Statement = Statement::each(
    "select '' as history",
    "select s.system_identifier::text || '.' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '.' || d.oid::text
    from pg_control_system() s
    join pg_database d on d.datname = current_database()",
    &[],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 8] {
    [&READ, &MAKE, &FOLLOW, &RENEW, &END_ENTRIES, &RAISE_EVENTS, &MARK_RAISED, &HISTORY]
}

/// How many numbers of events each further epoch leaves out at least.
pub const EVENTS_STEP: i64 = 100_000_000;

/// The head after another epoch begins is this times the milliseconds since 1970, if that is more. So each restore of
/// the same backup gives higher numbers than the last one. It is below 2^53 until the year 2109.
const EVENTS_PER_MS: i64 = 2048;

/// By how many times [`HISTORY_STEP`] the cache's epoch goes up at most. Small enough for a million
/// restores.
const MAX_STEPS: i64 = 1 << 20;

/// The pause before a node tries again to begin another epoch.
const FOLLOW_AGAIN: Duration = Duration::from_secs(1);

fn text(value: &str) -> Column {
    Column::Text(vec![value.to_owned()])
}

fn new_epoch() -> String {
    format!("{:016x}", rand::rng().random::<u64>())
}

/// The database has another history than before, and no entry of the cache counts any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHistory {
    before: String,
    now: String,
}

/// What [`look`] has found.
#[derive(Debug)]
pub struct Looked {
    /// In which history the database is; empty where it does not tell.
    pub history: String,
    /// Where that is another than before.
    pub other: Option<OtherHistory>,
}

/// Makes the epoch if there is none. Looks whether the database was restored, or is a replica that
/// took over; then it ends all entries of the cache.
pub async fn look(db: &Db) -> DbResult<Looked> {
    let mut conn = db.connect().await?;
    let now = history(&mut conn).await?;
    conn.run(&MAKE, &[text(&new_epoch()), text(&now)]).await?;
    let (epoch, before) = noted(&mut conn).await?;
    if is_other(&before, &now) {
        // First: a node that dies here leaves it to the next one to begin again.
        end_entries(&mut conn).await?;
        return Ok(Looked { history: now.clone(), other: Some(OtherHistory { before, now }) });
    }
    if before.is_empty() && !now.is_empty() {
        conn.run(&FOLLOW, &[text(&epoch), text(&now), text(&before)]).await?;
    }
    Ok(Looked { history: now, other: None })
}

/// Whether the database has another history than the one that was noted. Where one of them is not known, nothing
/// tells that they differ.
fn is_other(before: &str, now: &str) -> bool {
    !before.is_empty() && !now.is_empty() && now != before
}

/// Whether a connection leads to the history that was noted with the epoch. In another one, events that are lost here
/// may have had the numbers after the head, until another epoch begins.
///
/// # Errors
/// As [`history`].
pub async fn is_in_noted_history(conn: &mut Conn) -> DbResult<bool> {
    let now = history(conn).await?;
    Ok(now.is_empty() || !is_other(&noted(conn).await?.1, &now))
}

/// The same for a connection of the pool.
///
/// # Errors
/// As [`history`].
pub async fn reads_noted_history(db: &Db) -> DbResult<bool> {
    if !db.is_shared() {
        return Ok(true);
    }
    let mut conn = db.borrow().await?;
    let is_noted = is_in_noted_history(&mut conn).await;
    conn.give_back_after(&is_noted);
    is_noted
}

/// Begins another epoch after [`look`], and after a wait in which every node has heard that no entry
/// counts any more: else one could show what was lost as of the new epoch.
async fn follow(db: &Db, other: &OtherHistory, wait: Duration) -> DbResult<()> {
    tokio::time::sleep(wait).await;
    try_to_follow(db, other).await
}

async fn try_to_follow(db: &Db, OtherHistory { before, now }: &OtherHistory) -> DbResult<()> {
    let mut conn = db.connect().await?;
    conn.begin().await?;
    if conn.run(&FOLLOW, &[text(&new_epoch()), text(now), text(before)]).await? == 0 {
        // Another node has done it.
        return conn.rollback().await;
    }
    raise_events(&mut conn).await?;
    conn.commit().await?;
    tracing::warn!(before, now, "the database has another history than before: the installation begins another epoch");
    Ok(())
}

/// In the transaction of another epoch, so that each raises them once. It waits for a publisher that is at work.
async fn raise_events(conn: &mut Conn) -> DbResult<()> {
    let now = Clock::System.now().0;
    conn.run(&RAISE_EVENTS, &[EVENTS_STEP, now.saturating_mul(EVENTS_PER_MS)].map(|value| Column::Int(vec![value]))).await?;
    conn.run(&MARK_RAISED, &[now, i64::MAX].map(|value| Column::Int(vec![value]))).await.map(drop)
}

/// The other epoch that a node which runs is about to begin. It is abandoned when this is dropped.
#[derive(Debug, Default)]
pub struct Following(Mutex<Option<(OtherHistory, AbortOnDropHandle<()>)>>);

impl Following {
    /// What [`look`] has found: the same as [`follow`], beside its caller, and again until it succeeds. The
    /// database may take no work for a while after a failover, and nobody else may look. To write only from
    /// the history that was read makes it safe to repeat.
    pub fn hear(&self, db: &Db, found: Option<OtherHistory>, wait: Duration) {
        // Every change is made in one step, so a poisoned lock guards whole data.
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(other) = found else {
            *under_way = None;
            return;
        };
        if under_way.as_ref().is_some_and(|(of, task)| *of == other && !task.is_finished()) {
            return;
        }
        let (db, of) = (db.clone(), other.clone());
        let task = tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            while let Err(error) = try_to_follow(&db, &of).await {
                tracing::warn!(%error, "cannot begin another epoch of the installation yet; trying again");
                tokio::time::sleep(FOLLOW_AGAIN).await;
            }
        });
        *under_way = Some((other, AbortOnDropHandle::new(task)));
    }
}

/// Makes the epoch if there is none, and renews it if the database tells that it was restored. `wait`
/// is how long other nodes may take to hear of it.
pub async fn ensure(db: &Db, wait: Duration) -> DbResult<()> {
    match look(db).await?.other {
        Some(other) => follow(db, &other, wait).await,
        None => Ok(()),
    }
}

/// Renews the epoch: every client drops what it knows.
pub async fn renew(db: &Db, wait: Duration) -> DbResult<String> {
    ensure(db, wait).await?;
    let mut conn = db.connect().await?;
    end_entries(&mut conn).await?;
    if db.is_shared() {
        tokio::time::sleep(wait).await;
    }
    conn.begin().await?;
    conn.run(&RENEW, &[text(&new_epoch())]).await?;
    raise_events(&mut conn).await?;
    conn.commit().await?;
    Ok(noted(&mut conn).await?.0)
}

/// The epoch; None where there is none yet.
pub async fn current(db: &Db) -> DbResult<Option<String>> {
    let rows: Vec<(String, String)> = db.fetch(&READ, &[]).await?;
    Ok(rows.into_iter().next().map(|(epoch, _)| epoch))
}

async fn end_entries(conn: &mut Conn) -> DbResult<()> {
    let step = HISTORY_STEP * rand::rng().random_range(1..MAX_STEPS);
    conn.run(&END_ENTRIES, &[Column::Int(vec![step])]).await.map(drop)
}

/// The epoch, which [`ensure`] has made, and the history that was noted with it.
pub async fn noted(conn: &mut Conn) -> DbResult<(String, String)> {
    conn.fetch(&READ, &[]).await?.into_iter().next().ok_or(sqlx::Error::RowNotFound)
}

/// What Postgres says where its state does not allow what is asked. A standby writes no log, so it is in no history
/// of its own yet.
const NOT_NOW: &str = "55000";

/// In which history the database is; empty where it does not tell.
///
/// # Errors
/// The driver's own, and one for a standby.
pub async fn history(conn: &mut Conn) -> DbResult<String> {
    match conn.fetch::<(String,)>(&HISTORY, &[]).await {
        Ok(rows) => Ok(rows.into_iter().next().map(|(history,)| history).unwrap_or_default()),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(NOT_NOW) => {
            Err(sqlx::Error::Io(IoError::other("the database is a standby, which takes no writes")))
        }
        // Some services keep these functions to themselves: then a restore is to be told by hand.
        Err(error @ sqlx::Error::Database(_)) if !classify(&error).may_pass() => {
            tracing::info!(%error, "the database does not tell its history: after a restore run `headmark epoch --renew`");
            Ok(String::new())
        }
        Err(error) => Err(error),
    }
}
