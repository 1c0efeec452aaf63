//! One try at one batch: begin the cache write, load, apply, save, commit. What follows is in
//! `finish.rs`.

use std::time::Duration;

use futures_util::future::try_join;
use rand::RngExt as _;
use tokio::time::Instant;

use super::apply::apply;
use super::commit::MAX_WRITE_AGE;
use super::failure::{Failure, Outcome, Way};
use super::finish::Committed;
use super::known_users::{KnownRows, KnownUsers};
use super::lane::Lane;
use super::local_locks::LocalLock;
use super::row::{RAISE, hold};
use super::written_entries::WrittenEntries;
use super::{Job, Needs, Rows};
use crate::base::clock::UnixMs;
use crate::cache::{Change, FactsChange, Writer};
use crate::db::{Column, Conn, Pipeline, is_duplicate};
use crate::engine::heads::Batch;
use crate::engine::idempotency::Keys;
use crate::engine::marks::users::read_users;
use crate::failpoint;

/// How long everything before the commit may take; then the connection is dropped, which undoes it.
const MAX_WORK: Duration = Duration::from_secs(4);

/// A batch that is applied and saved, but not committed.
struct Prepared {
    outcomes: Vec<Outcome>,
    changes: Vec<Change>,
    facts: Vec<FactsChange>,
    /// Users' rows once it is committed.
    users: KnownRows,
    rows: Rows,
    /// Keeps the other lanes of this node from these users.
    lock: Option<LocalLock>,
    /// Until when other nodes may show what was there before, if any may.
    shown_until: Option<Instant>,
}

impl Lane {
    /// Tries once. After an error nothing of the batch took effect, except with
    /// [`Failure::Unknown`].
    pub(super) async fn attempt(&mut self, jobs: &[Job]) -> Result<(Vec<Outcome>, Committed), Failure> {
        let bypassing = self.engines.guard.bypassing_commit();
        let mut needs = Needs::default();
        jobs.iter().for_each(|job| job.command.needs(&mut needs));
        let knows = needs.users_alone() && self.trust.take();
        let way = Way { bypasses: bypassing.is_some(), knows, assumes: needs.assumes };
        let mut result = self.attempt_with(jobs, &needs, way).await;
        if let Err(Failure::Stale) = result {
            metrics::counter!("headmark_lane_stale_batches_total").increment(1);
            if knows {
                self.known.forget(needs.users.iter().copied());
                self.trust.failed();
            }
            result = self.attempt_with(jobs, &needs, Way { knows: false, assumes: false, ..way }).await;
        } else if knows && result.is_ok() {
            self.trust.confirmed();
        }
        if let Some(bypassing) = bypassing
            && !matches!(result, Err(Failure::Unknown))
        {
            bypassing.finish();
        }
        if let Err(Failure::Store(error)) = &result
            && is_duplicate(error, "users")
        {
            self.make_ahead(&needs.users.into_iter().collect::<Vec<_>>()).await;
        }
        result
    }

    async fn attempt_with(&mut self, jobs: &[Job], needs: &Needs, way: Way) -> Result<(Vec<Outcome>, Committed), Failure> {
        let began = Instant::now();
        if !self.engines.guard.may_write() {
            return Err(Failure::NotHolder);
        }
        let mut rows = Rows::new(self.engines.row_sets);
        rows.assume(way.assumes);
        let (written, writer) = (WrittenEntries::new(needs, &rows, self.engines.cache.is_shared()), Writer(rand::rng().random()));
        let prepared = self.prepare(jobs, rows, needs, &written, writer, way).await;
        let prepared = match prepared {
            Ok(prepared) if began.elapsed() < MAX_WRITE_AGE => prepared,
            Ok(_) => return Err(self.undo(&written, writer, Failure::TooSlow).await),
            Err(failure) => return Err(self.undo(&written, writer, failure).await),
        };
        failpoint("lane::before_commit");
        let reached = match self.commit(&written, writer, way, began, prepared.shown_until).await {
            Ok(reached) => reached,
            Err(failure) => {
                self.known.forget(needs.users.iter().copied());
                return Err(failure);
            }
        };
        jobs.iter().for_each(|job| job.command.committed());
        failpoint("lane::after_commit");
        let Prepared { outcomes, changes, facts, users, rows, lock, .. } = prepared;
        self.known.learn(users, needs.users_alone());
        // Whoever waits for these users finds the copies.
        drop(lock);
        Ok((outcomes, Committed { written, writer, changes, facts, rows, reached, began }))
    }

    /// Begins the cache write while the rows are locked and loaded, then applies and saves.
    async fn prepare(
        &mut self,
        jobs: &[Job],
        mut rows: Rows,
        needs: &Needs,
        written: &WrittenEntries,
        writer: Writer,
        way: Way,
    ) -> Result<Prepared, Failure> {
        let (engines, id, slot, batch) = (self.engines.clone(), self.id, self.slot, self.batch + 1);
        let now = engines.clock.now();
        let signed = Batch { lane_id: id, batch, slot, now };
        let number = self.number(batch);
        let begun = async { if way.bypasses { Ok(None) } else { written.begin_write(&engines.cache, writer).await } };
        let outdated = self.plans_are_old();
        let (known, locks, lock_wait) = (self.known.clone(), self.locks.clone(), self.lock_wait());
        let conn = self.connected().await.map_err(Failure::Store)?;
        let work = async {
            if outdated {
                conn.forget_plans().await.map_err(Failure::Store)?;
            }
            let loaded = async {
                let lock = match &locks {
                    Some(locks) => locks.lock(&written.users, lock_wait).await,
                    None => None,
                };
                // Another lane may be writing what is known of users who are not locked.
                let known = (way.knows && (locks.is_none() || lock.is_some())).then_some(&known);
                load(conn, jobs, &mut rows, needs, known, &number, now).await.map(|keys| (keys, lock))
            };
            let (begun, loaded) = tokio::join!(begun, loaded);
            let shown_until = begun.map_err(Failure::CacheAway)?;
            let (mut keys, lock) = loaded.map_err(|error| way.failure(error))?;
            if !engines.guard.fence(conn).await.map_err(|error| way.failure(error))? {
                return Err(Failure::NotHolder);
            }
            failpoint("lane::after_begin_write");
            let outcomes = apply(jobs, &mut rows, &mut keys, now);
            rows.save(conn, signed).await.map_err(|error| way.failure(error))?;
            keys.save(conn, now).await.map_err(|error| way.failure(error))?;
            conn.send_much().await.map_err(|error| way.failure(error))?;
            let (changes, facts, users) = (rows.changes(needs), rows.facts_changes(needs, &written.facts), rows.users_after(signed));
            Ok(Prepared { outcomes, changes, facts, users, rows, lock, shown_until })
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
}

/// Raises the lane's number before it waits for any row, so that anyone who asks for the outcome of
/// the commit waits until the transaction has ended.
async fn load(
    conn: &mut Conn,
    jobs: &[Job],
    rows: &mut Rows,
    needs: &Needs,
    known: Option<&KnownUsers>,
    number: &[Column; 3],
    now: UnixMs,
) -> Result<Keys, sqlx::Error> {
    let pipeline = Pipeline::default();
    conn.begin().await?;
    let [lane, ..] = number;
    hold(conn, lane).await?;
    let sent: Vec<_> = jobs.iter().filter_map(|job| job.key.as_ref()).collect();
    let keys = Keys::load(&pipeline, &sent, now);
    let Some(known) = known else {
        rows.lock(conn, needs).await?;
        conn.later_all(&RAISE, number).await?;
        let (keys, ()) = pipeline.run(conn, try_join(keys, rows.load(&pipeline, needs))).await?;
        return Ok(keys);
    };
    let (mut users, unknown) = known.split(needs.users.iter().copied());
    conn.later_all(&RAISE, number).await?;
    let read = async { if unknown.is_empty() { Ok(Vec::new()) } else { read_users(&pipeline, &unknown).await } };
    let (keys, read) = pipeline.run(conn, try_join(keys, read)).await?;
    if read.len() == unknown.len() {
        users.extend(read);
        pipeline.run(conn, rows.load_known(&pipeline, needs, users)).await?;
    } else {
        // Rows are made under the locks of those that are there.
        pipeline.run(conn, rows.load(&pipeline, needs)).await?;
    }
    Ok(keys)
}
