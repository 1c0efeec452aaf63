//! One try at one batch: touch, load, apply, save, commit. What follows is in `finish.rs`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures_util::future::try_join;
use rand::RngExt as _;
use tokio::time::Instant;

use super::finish::Committed;
use super::known_users::{KnownRows, KnownUsers, Split, Trust};
use super::row::{RAISE, REGISTER};
use super::touched::Touched;
use super::{Answer, Job, LaneEngines, MAX_CONNECT, Needs, Rows, Verdict, unavailable, unknown_outcome};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Error, Fault, Problem};
use crate::cache::{CacheError, Writer};
use crate::db::{Column, Conn, ErrorClass, Pipeline, classify};
use crate::engine::heads::Batch;
use crate::engine::idempotency::Keys;
use crate::engine::marks::store::read_users;
use crate::failpoint;

/// How old a touch may be at the commit: well below the lease, so that a commit never outlives it.
const MAX_TOUCH_AGE: Duration = Duration::from_millis(2500);

/// How long a lane's plans are kept: one that was made while a table was empty goes through all of
/// a table that an import has filled since.
const MAX_PLAN_AGE: Duration = Duration::from_secs(5);

/// How long everything before the commit may take; then the connection is dropped, which undoes it.
const MAX_WORK: Duration = Duration::from_secs(4);

/// How long the database may take to answer a commit before its outcome counts as unknown. With
/// [`MAX_TOUCH_AGE`] it stays below the lease: after it the touch is renewed for as long as the
/// outcome is in doubt.
const MAX_COMMIT: Duration = Duration::from_secs(2);

/// Why a batch was not committed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database said no, or is away; nothing was changed.
    Store(sqlx::Error),
    /// It took too long; nothing was changed.
    TooSlow,
    /// The connection was lost in the commit, and the commit turned out not to have happened.
    NotCommitted,
    /// The connection was lost in the commit, and the database could not tell what became of it.
    Unknown,
    /// The cache could not be touched; nothing was changed.
    CacheAway(CacheError),
    /// Another node may hold this database now; nothing was changed.
    NotHolder,
    /// A row was not as this node knew it; nothing was changed.
    Stale,
}

impl Failure {
    /// What the callers of the batch are told.
    pub(super) fn answer(&self) -> Error {
        match self {
            Self::Store(error) if classify(error).may_pass() => unavailable(),
            Self::Store(_) => Fault::Bug(String::from("the database refused a write, see the log")).into(),
            Self::Unknown => unknown_outcome().into(),
            Self::TooSlow | Self::NotCommitted | Self::CacheAway(_) | Self::NotHolder | Self::Stale => unavailable(),
        }
    }
}

/// What became of one job of a committed batch.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It has its answer.
    Answered(Verdict),
    /// A transaction elsewhere holds its idempotency key: to be tried again.
    KeyTaken,
}

/// One lane: a connection, and a number in the database that tells which of its commits took
/// effect.
#[derive(Debug)]
pub(super) struct Lane {
    engines: LaneEngines,
    known: KnownUsers,
    /// Whether it works with what it knows.
    trust: Trust,
    id: i64,
    /// To which slot of counts that are spread out it adds: two lanes of one node never to the
    /// same, those of two nodes seldom.
    slot: i64,
    batch: i64,
    conn: Option<Conn>,
    /// When its statements were planned.
    planned: Instant,
    /// How long it waits for a lock …
    lock_wait: Duration,
    /// … and what its connection was told of that.
    told_lock_wait: Option<Duration>,
}

/// How a batch is tried.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// The cache is not touched: nobody reads it.
    untouched: bool,
    /// With users' rows as this node knows them, instead of locking and reading them.
    knows: bool,
}

impl Way {
    /// Where rows are missing, that is the lane's own, or a user's is another than was known.
    fn failure(self, error: sqlx::Error) -> Failure {
        match error {
            sqlx::Error::RowNotFound if self.knows => Failure::Stale,
            sqlx::Error::RowNotFound => {
                // Swept while this lane was idle: it must register again before it may commit.
                tracing::info!("a lane registers again");
                Failure::NotCommitted
            }
            error => Failure::Store(error),
        }
    }
}

/// A batch that is applied and saved, but not committed.
struct Prepared {
    outcomes: Vec<Outcome>,
    changes: Vec<crate::cache::Change>,
    /// Users' rows once it is committed.
    users: KnownRows,
    rows: Rows,
    /// Until when other nodes may show what was there before, if any may.
    shown_until: Option<Instant>,
}

/// How a commit took effect.
struct Reached {
    /// Whether the writer was inside the cache entries all the time.
    was_inside: bool,
    shown_until: Option<Instant>,
}

impl Lane {
    pub(super) fn new(engines: LaneEngines, known: KnownUsers, slot: i64, lock_wait: Duration) -> Self {
        let id = rand::rng().random_range(1..i64::MAX);
        Self {
            engines,
            known,
            trust: Trust::default(),
            id,
            slot,
            batch: 0,
            conn: None,
            planned: Instant::now(),
            lock_wait,
            told_lock_wait: None,
        }
    }

    /// Whether jobs that meet a lock are set aside. SQLite has one lock for all: there everybody
    /// waits.
    pub(super) fn sets_aside(&self) -> bool {
        self.engines.db.is_shared()
    }

    /// From now on it waits so long for a lock.
    pub(super) fn wait_for_locks(&mut self, wait: Duration) {
        self.lock_wait = wait;
    }

    /// Closes its connection until the next batch.
    pub(super) fn disconnect(&mut self) {
        self.conn = None;
    }

    pub(super) fn engines(&self) -> &LaneEngines {
        &self.engines
    }

    /// After a panic nobody knows what is open on the connection: closing it undoes that. The
    /// number is passed over, as it may have been used.
    pub(super) fn reset(&mut self) {
        self.conn = None;
        self.batch += 1;
    }

    pub(super) async fn warm_up(&mut self) {
        if let Err(error) = self.connected().await {
            tracing::warn!(%error, "a lane cannot open its connection yet");
        }
    }

    /// The lane's connection, opened if need be. A new one registers the lane, so that its row can
    /// be locked from the first batch on.
    pub(super) async fn connected(&mut self) -> Result<&mut Conn, sqlx::Error> {
        if self.conn.is_none() {
            let open = async {
                let mut conn = self.engines.db.connect().await?;
                conn.run(&REGISTER, &self.number(self.batch)).await?;
                Ok::<_, sqlx::Error>(conn)
            };
            let opened = tokio::time::timeout(MAX_CONNECT, open).await;
            self.conn = Some(opened.map_err(|_| sqlx::Error::PoolTimedOut)??);
            self.told_lock_wait = None;
        }
        let conn = self.conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        if self.told_lock_wait != Some(self.lock_wait) {
            let told = tokio::time::timeout(MAX_CONNECT, conn.set_lock_timeout(self.lock_wait)).await;
            told.map_err(|_| sqlx::Error::PoolTimedOut)??;
            self.told_lock_wait = Some(self.lock_wait);
        }
        Ok(conn)
    }

    fn number(&self, batch: i64) -> [Column; 3] {
        [Column::Int(vec![self.id]), Column::Int(vec![batch]), Column::Int(vec![self.engines.clock.now().0])]
    }

    /// Tries once. After an error nothing of the batch took effect, except with
    /// [`Failure::Unknown`].
    pub(super) async fn attempt(&mut self, jobs: &[Job]) -> Result<(Vec<Outcome>, Committed), Failure> {
        let untouched = self.engines.guard.untouched();
        let mut needs = Needs::default();
        jobs.iter().for_each(|job| job.command.needs(&mut needs));
        let knows = needs.users_alone() && jobs.iter().all(|job| job.key.is_none()) && self.trust.take();
        let way = Way { untouched: untouched.is_some(), knows };
        let mut result = self.attempt_with(jobs, &needs, way).await;
        if let Err(Failure::Stale) = result {
            metrics::counter!("headmark_lane_stale_batches_total").increment(1);
            self.known.forget(needs.users.iter().copied());
            self.trust.failed();
            result = self.attempt_with(jobs, &needs, Way { knows: false, ..way }).await;
        } else if knows && result.is_ok() {
            self.trust.confirmed();
        }
        if let Some(untouched) = untouched
            && !matches!(result, Err(Failure::Unknown))
        {
            untouched.finish();
        }
        result
    }

    async fn attempt_with(&mut self, jobs: &[Job], needs: &Needs, way: Way) -> Result<(Vec<Outcome>, Committed), Failure> {
        let began = Instant::now();
        if !self.engines.guard.may_write() {
            return Err(Failure::NotHolder);
        }
        let rows = Rows::new(self.engines.row_sets);
        let (touched, writer) = (Touched::new(needs, &rows, self.engines.cache.is_shared()), Writer(rand::rng().random()));
        let prepared = self.prepare(jobs, rows, needs, &touched, writer, way).await;
        let prepared = match prepared {
            Ok(prepared) if began.elapsed() < MAX_TOUCH_AGE => prepared,
            Ok(_) => return Err(self.abandon(&touched, writer, Failure::TooSlow).await),
            Err(failure) => return Err(self.abandon(&touched, writer, failure).await),
        };
        failpoint("lane::before_commit");
        let reached = match self.commit(&touched, writer, way, prepared.shown_until).await {
            Ok(reached) => reached,
            Err(failure) => {
                self.known.forget(needs.users.iter().copied());
                return Err(failure);
            }
        };
        failpoint("lane::after_commit");
        self.known.learn(prepared.users, needs.users_alone());
        let Prepared { outcomes, changes, rows, .. } = prepared;
        let Reached { was_inside, shown_until } = reached;
        Ok((outcomes, Committed { touched, writer, changes, rows, was_inside, shown_until, began }))
    }

    /// Touches the cache while the rows are locked and loaded, then applies and saves.
    async fn prepare(
        &mut self,
        jobs: &[Job],
        mut rows: Rows,
        needs: &Needs,
        touched: &Touched,
        writer: Writer,
        way: Way,
    ) -> Result<Prepared, Failure> {
        let (engines, id, slot, batch) = (self.engines.clone(), self.id, self.slot, self.batch + 1);
        let now = engines.clock.now();
        let signed = Batch { lane_id: id, batch, slot, now };
        let number = self.number(batch);
        let touch = async { if way.untouched { Ok(None) } else { touched.touch(&engines.cache, writer).await } };
        let outdated = self.planned.elapsed() >= MAX_PLAN_AGE;
        if outdated {
            self.planned = Instant::now();
        }
        let known = if way.knows { Some(self.known.split(needs.users.iter().copied())) } else { None };
        let conn = self.connected().await.map_err(Failure::Store)?;
        let work = async {
            if outdated {
                conn.forget_plans().await.map_err(Failure::Store)?;
            }
            let (touch, loaded) = tokio::join!(touch, load(conn, jobs, &mut rows, needs, known, &number, now));
            let shown_until = touch.map_err(Failure::CacheAway)?;
            let mut keys = loaded.map_err(|error| way.failure(error))?;
            if !engines.guard.fence(conn).await.map_err(|error| way.failure(error))? {
                return Err(Failure::NotHolder);
            }
            failpoint("lane::after_touch");
            let outcomes = apply(jobs, &mut rows, &mut keys, now);
            rows.save(conn, signed).await.map_err(|error| way.failure(error))?;
            keys.save(conn, now).await.map_err(|error| way.failure(error))?;
            Ok(Prepared { outcomes, changes: rows.changes(needs), users: rows.users_after(signed), rows, shown_until })
        };
        if !engines.db.is_shared() {
            // SQLite goes on with a statement whose connection is dropped, and keeps its one lock:
            // so the work is waited for, and undone afterwards if it took too long.
            return work.await;
        }
        match tokio::time::timeout(MAX_WORK, work).await {
            Ok(prepared) => prepared,
            Err(_) => Err(Failure::TooSlow),
        }
    }

    /// Commits, and finds out what became of it should the connection be lost meanwhile.
    async fn commit(&mut self, touched: &Touched, writer: Writer, way: Way, shown_until: Option<Instant>) -> Result<Reached, Failure> {
        let Some(conn) = self.conn.as_mut() else { return Err(Failure::NotCommitted) };
        let committed = tokio::time::timeout(MAX_COMMIT, conn.commit()).await;
        self.batch += 1;
        let is_slow = committed.is_err();
        let error = match committed {
            Ok(Ok(())) => return Ok(Reached { was_inside: true, shown_until }),
            // What went along with the commit was refused.
            Ok(Err(error)) if classify(&error) != ErrorClass::Unknown => {
                return Err(self.abandon(touched, writer, way.failure(error)).await);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => String::from("no answer in time"),
        };
        tracing::warn!(error, "the outcome of a commit is unknown; asking the database");
        metrics::counter!("headmark_lane_unknown_commits_total").increment(1);
        self.conn = None;
        let resolved = super::resolve::resolve(&self.engines, self.id, self.batch, touched, writer).await;
        // The number after this one was used up by that.
        self.batch += 1;
        match resolved.committed {
            Some(true) => Ok(Reached { was_inside: resolved.was_inside, shown_until: resolved.shown_until }),
            Some(false) => {
                let failure = if is_slow { Failure::TooSlow } else { Failure::NotCommitted };
                Err(self.abandon(touched, writer, failure).await)
            }
            // The touch is left to its lease.
            None => Err(Failure::Unknown),
        }
    }

    /// Undoes the transaction and leaves the cache entries, which stay dirty.
    async fn abandon(&mut self, touched: &Touched, writer: Writer, failure: Failure) -> Failure {
        let keeps = match &failure {
            Failure::Store(error) => !matches!(classify(error), ErrorClass::Unknown | ErrorClass::Outage),
            Failure::CacheAway(_) | Failure::Stale => true,
            _ => false,
        };
        // Closing the connection undoes what is open on it.
        if let Some(mut conn) = self.conn.take()
            && keeps
            && matches!(tokio::time::timeout(MAX_CONNECT, conn.rollback()).await, Ok(Ok(())))
        {
            self.conn = Some(conn);
        }
        if let Err(error) = touched.leave(&self.engines.cache, writer).await {
            tracing::debug!(%error, "could not leave the cache entries; the lease ends by itself");
        }
        failure
    }
}

/// Raises the lane's number before it waits for any row, so that anyone who asks for the outcome of
/// the commit waits until the transaction has ended.
async fn load(
    conn: &mut Conn,
    jobs: &[Job],
    rows: &mut Rows,
    needs: &Needs,
    known: Option<Split>,
    number: &[Column; 3],
    now: UnixMs,
) -> Result<Keys, sqlx::Error> {
    let pipeline = Pipeline::default();
    conn.begin().await?;
    if let Some((mut users, unknown)) = known {
        conn.later_all(&RAISE, number).await?;
        let read = if unknown.is_empty() { Vec::new() } else { pipeline.run(conn, read_users(&pipeline, &unknown)).await? };
        if read.len() == unknown.len() {
            users.extend(read);
            pipeline.run(conn, rows.load_known(&pipeline, needs, users)).await?;
        } else {
            // Rows are made under the locks of those that are there.
            pipeline.run(conn, rows.load(&pipeline, needs)).await?;
        }
        return Ok(Keys::default());
    }
    rows.lock(conn, needs).await?;
    conn.later_all(&RAISE, number).await?;
    let keys: Vec<_> = jobs.iter().filter_map(|job| job.key.as_ref()).collect();
    let (keys, ()) = pipeline.run(conn, try_join(Keys::load(&pipeline, &keys, now), rows.load(&pipeline, needs))).await?;
    Ok(keys)
}

/// Applies every job in order. A refused one leaves no trace; a panicking rule is a refused one.
fn apply(jobs: &[Job], rows: &mut Rows, keys: &mut Keys, now: UnixMs) -> Vec<Outcome> {
    jobs.iter()
        .map(|job| {
            if let Some(key) = &job.key {
                if let Some(kept) = keys.kept(key) {
                    return Outcome::Answered(replay(key, kept));
                }
                if !keys.holds(key) {
                    return Outcome::KeyTaken;
                }
            }
            let applied = catch_unwind(AssertUnwindSafe(|| job.command.apply(rows, now)));
            let result = applied.unwrap_or_else(|_| Err(Fault::Bug(String::new()).problem()));
            match &result {
                Ok(_) => rows.settle(),
                Err(_) => rows.undo(),
            }
            if let Some(key) = &job.key {
                keep(keys, key, &result);
            }
            Outcome::Answered(result.map_err(Error::from))
        })
        .collect()
}

/// Keeps an answer that was decided by state: success, 403 and 409.
fn keep(keys: &mut Keys, key: &crate::engine::idempotency::Key, result: &Result<Answer, Problem>) {
    let kept = match result {
        Ok(answer) => answer.json().map(|body| (answer.status(), body)),
        Err(problem) if matches!(problem.code.status().as_u16(), 403 | 409) => {
            Ok((problem.code.status().as_u16(), serde_json::to_string(&problem.body()).unwrap_or_default()))
        }
        Err(_) => return,
    };
    if let Ok((status, body)) = kept {
        keys.keep(key, status, &body);
    }
}

fn replay(key: &crate::engine::idempotency::Key, kept: &crate::engine::idempotency::Kept) -> Verdict {
    if kept.digest != key.digest {
        let detail = "Another request used this Idempotency-Key with a different method, path or body in the last 24 hours.";
        return Err(Problem::new(Code::IdempotencyKeyReused, detail).into());
    }
    Ok(Answer::kept(kept.status, kept.body.clone()))
}
