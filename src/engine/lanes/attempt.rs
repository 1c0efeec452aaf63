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
use crate::base::ids::UserId;
use crate::cache::{Begun, CacheError, Change, FactsChange, Writer};
use crate::db::{Column, Conn, Pipeline, is_duplicate};
use crate::engine::heads::Batch;
use crate::engine::idempotency::Keys;
use crate::engine::marks::users::read_users;
use crate::failpoint;

/// How long everything before the commit may take; then the connection is dropped, which undoes it.
const MAX_WORK: Duration = Duration::from_secs(4);

/// One try at a batch.
#[derive(Clone, Copy)]
struct Try<'a> {
    jobs: &'a [Job],
    needs: &'a Needs,
    written: &'a WrittenEntries,
    writer: Writer,
    /// How it is to be done.
    way: Way,
}

/// A batch that is applied and saved, but not committed.
struct Prepared {
    outcomes: Vec<Outcome>,
    changes: Vec<Change>,
    facts: Vec<FactsChange>,
    /// Users' rows once it is committed.
    users: KnownRows,
    rows: Rows,
    /// How it was done.
    way: Way,
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
        let mut made = Vec::new();
        let mut result = self.attempt_with(jobs, &needs, way, &mut made).await;
        if let Err(Failure::Stale) = result {
            metrics::counter!("headmark_lane_stale_batches_total").increment(1);
            if knows {
                self.trust.failed();
            }
            result = if way.bypasses && !self.engines.guard.is_bypassing() {
                // What was left of the bypass was enough for the first transaction, not for another one.
                Err(too_little_left())
            } else {
                self.attempt_with(jobs, &needs, Way { knows: false, assumes: false, ..way }, &mut made).await
            };
        }
        if let Some(bypassing) = bypassing
            && !matches!(result, Err(Failure::Unknown))
        {
            bypassing.finish();
        }
        if let Err(Failure::Store(error)) = &result
            && is_duplicate(error, "users")
        {
            self.make_ahead(&made).await;
        }
        result
    }

    /// `made` gets the users whose rows it makes.
    async fn attempt_with(
        &mut self,
        jobs: &[Job],
        needs: &Needs,
        way: Way,
        made: &mut Vec<UserId>,
    ) -> Result<(Vec<Outcome>, Committed), Failure> {
        let began = Instant::now();
        if !self.engines.guard.may_write() {
            return Err(Failure::NotHolder);
        }
        let mut rows = Rows::new(self.engines.row_sets);
        rows.assume(way.assumes);
        let (written, writer) = (WrittenEntries::new(needs, &rows, self.engines.cache.is_shared()), Writer(rand::rng().random()));
        // Other lanes of this node that wait for these users find the copies that this one leaves.
        let mut lock = None;
        let prepared = self.prepare(Try { jobs, needs, written: &written, writer, way }, rows, (&mut lock, made)).await;
        let prepared = match prepared {
            Ok(prepared) if began.elapsed() < MAX_WRITE_AGE => prepared,
            Ok(_) => return Err(self.undo(&written, writer, Failure::TooSlow).await),
            Err(failure) => {
                self.forget_wrong(needs, &failure);
                return Err(self.undo(&written, writer, failure).await);
            }
        };
        failpoint("lane::before_commit");
        let reached = match self.commit(&written, writer, prepared.way, began, prepared.shown_until).await {
            Ok(reached) => reached,
            Err(failure) => {
                self.known.forget(needs.users.iter().copied());
                return Err(failure);
            }
        };
        jobs.iter().for_each(|job| job.command.committed());
        failpoint("lane::after_commit");
        let Prepared { outcomes, changes, facts, users, rows, way, .. } = prepared;
        self.known.learn(users, needs.users_alone());
        drop(lock);
        if way.knows {
            self.trust.confirmed();
        }
        Ok((outcomes, Committed { written, writer, changes, facts, rows, reached, began }))
    }

    /// Before anybody who waits for these users takes the same copies.
    fn forget_wrong(&self, needs: &Needs, failure: &Failure) {
        if matches!(failure, Failure::Stale) {
            self.known.forget(needs.users.iter().copied());
        }
    }

    /// Begins the cache write while the rows are locked and loaded, then applies and saves.
    async fn prepare(
        &mut self,
        this: Try<'_>,
        mut rows: Rows,
        (lock, made): (&mut Option<LocalLock>, &mut Vec<UserId>),
    ) -> Result<Prepared, Failure> {
        let Try { jobs, needs, written, writer, way } = this;
        let (engines, id, slot, batch) = (self.engines.clone(), self.id, self.slot, self.batch + 1);
        let now = engines.clock.now();
        let signed = Batch { lane_id: id, batch, slot, now };
        let number = self.number(batch);
        let begun = async { if way.bypasses { Ok(Begun::default()) } else { written.begin_write(&engines.cache, writer).await } };
        let outdated = self.plans_are_old();
        let (known, locks, lock_wait) = (self.known.clone(), self.locks.clone(), self.lock_wait());
        // A new connection may be to another history of the database.
        let refused = |error| if engines.guard.may_write() { Failure::Store(error) } else { Failure::NotHolder };
        let conn = self.connected().await.map_err(refused)?;
        // The guard may have lost its lock, or its bypass, while the connection was opened.
        if !engines.guard.may_write() {
            return Err(Failure::NotHolder);
        }
        if way.bypasses && !engines.guard.is_bypassing() {
            return Err(too_little_left());
        }
        let work = async {
            if outdated {
                conn.forget_plans().await.map_err(Failure::Store)?;
            }
            let loaded = async {
                if let Some(locks) = &locks {
                    *lock = locks.lock(&written.users, lock_wait).await;
                }
                // Without its lock another lane may be changing these rows, so the copies are not to be trusted.
                let way = Way { knows: way.knows && (locks.is_none() || lock.is_some()), ..way };
                let known = way.knows.then_some(&known);
                let keys = load(conn, jobs, &mut rows, needs, known, &number, now).await.map_err(|error| way.failure(error))?;
                Ok((keys, way))
            };
            let (begun, loaded) = tokio::join!(begun, loaded);
            let begun = begun.map_err(Failure::CacheAway)?;
            let (mut keys, way) = loaded?;
            if !engines.guard.fence(conn).await.map_err(|error| way.failure(error))? {
                return Err(Failure::NotHolder);
            }
            failpoint("lane::after_begin_write");
            let outcomes = apply(jobs, &mut rows, &mut keys, now);
            *made = rows.made_users();
            rows.save(conn, signed).await.map_err(|error| way.failure(error))?;
            keys.save(conn, now).await.map_err(|error| way.failure(error))?;
            conn.send_much().await.map_err(|error| way.failure(error))?;
            let (changes, facts) =
                (rows.changes(needs, &begun.absent_users), rows.facts_changes(needs, &written.facts, &begun.absent_facts));
            let (users, shown_until) = (rows.users_after(signed), begun.shown_until);
            Ok(Prepared { outcomes, changes, facts, users, rows, way, shown_until })
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

fn too_little_left() -> Failure {
    Failure::CacheAway(CacheError::Away("too little is left of the bypass".to_owned()))
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
        // An erasure removes the kept answers that name the user: so it has to wait for this transaction.
        let write_all = !sent.is_empty();
        pipeline.run(conn, rows.load_known(&pipeline, needs, users, write_all)).await?;
    } else {
        // Rows are made under the locks of those that are there.
        pipeline.run(conn, rows.load(&pipeline, needs)).await?;
    }
    Ok(keys)
}
