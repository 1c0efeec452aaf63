//! Connections for reads, kept open and lent one at a time.
//!
//! sqlx's own pool asks the database a question after each use, to learn whether the connection is
//! still sound; for a read of one short statement that is a second round trip. Here a connection
//! comes back only from a read that went well, and any other is closed.
//!
//! A new connection is opened beside those who wait: they take whichever is there first, the new
//! one or one that somebody gave back. A busy Postgres may take seconds to accept another.
//!
//! Everybody gets a connection from home where there is one ([`shelves`]), and those who use many have
//! more of them at home ([`residents`]).

mod residents;
mod shelves;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use tokio::time::Instant;

use self::residents::{Place, Residents};
use self::shelves::{Home, Shelves};
use super::conn::Conn;
use super::errors::{DbResult, classify};
use super::postgres::PgConn;
use super::shards::Shards;

/// How long a connection may have idled before it is tried at its next use.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// How long it may idle before it is closed.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// How long it is used: what the database keeps for a session is to end some time.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// One of so many connections may be lent for what is rare and may take its time.
const SPARE: usize = 4;

/// How long it is tried to open one, and the pause between two tries.
const MAX_OPENING: Duration = Duration::from_secs(10);
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How long Postgres may take to accept each connection that a node needs to start. A busy one is
/// slow, which is no reason not to start.
pub(crate) const MAX_FIRST_CONNECT: Duration = Duration::from_secs(20);

/// How a connection is opened.
#[derive(Debug, Clone)]
pub(super) enum Opener {
    Sqlite(SqliteConnectOptions),
    Postgres(PgConnectOptions, Option<Arc<Shards>>),
}

impl Opener {
    /// Where a connection that is opened now has its home. SQLite's have a thread of their own.
    fn home(&self) -> Home {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(..) => Some(tokio::runtime::Handle::current().id()),
        }
    }

    async fn open_patiently(&self) -> DbResult<Conn> {
        loop {
            match self.open().await {
                Err(error) if classify(&error).may_pass() => {
                    tracing::debug!(%error, "cannot connect to the database; trying again");
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    pub(super) async fn open(&self) -> DbResult<Conn> {
        match self {
            Self::Sqlite(options) => Ok(Conn::Sqlite(Box::new(SqliteConnection::connect_with(options).await?))),
            Self::Postgres(options, shards) => {
                // The driver waits for ever where the way to the database swallows everything.
                let opened = tokio::time::timeout(MAX_FIRST_CONNECT, PgConnection::connect_with(options));
                let conn = opened.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
                Ok(Conn::Postgres(Box::new(PgConn::new(conn, shards.clone()))))
            }
        }
    }
}

/// The connections of a node for reads.
#[derive(Debug)]
pub struct Pool {
    opener: Opener,
    /// How many connections there may be.
    size: usize,
    /// One for each connection that may still be opened; closed with the pool.
    places: Arc<Semaphore>,
    residents: Arc<Residents>,
    shelves: Mutex<Shelves<Idle>>,
    acquire_timeout: Duration,
    /// One for each connection that may be lent for what is rare.
    spare: Semaphore,
    /// How often all connections were given up: see [`Pool::renew`].
    generation: AtomicU64,
}

#[derive(Debug)]
struct Idle {
    conn: Conn,
    opened: Instant,
    /// The pool's when opening it began.
    generation: u64,
    since: Instant,
    place: Place,
}

impl Idle {
    fn new(conn: Conn, place: Place, generation: u64) -> Self {
        let now = Instant::now();
        Self { conn, opened: now, generation, since: now, place }
    }

    fn is_trusted(&self) -> bool {
        self.since.elapsed() < TRUSTED_IDLE
    }
}

/// A connection in use. Dropped, it is closed, unless it was given back.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    pub(super) conn: Conn,
    opened: Instant,
    generation: u64,
    /// From where it is used.
    user: Home,
    pool: &'a Arc<Pool>,
    place: Place,
}

/// Somebody who waits for a connection. Dropped, it hands on what came too late.
struct Waiting<'a> {
    served: oneshot::Receiver<Idle>,
    pool: &'a Pool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.served.close();
        if let Ok(idle) = self.served.try_recv() {
            self.pool.keep(idle);
        }
    }
}

impl Pool {
    /// A pool of so many connections, of which each is opened when it is first needed.
    pub(super) fn new(opener: Opener, connections: u32, acquire_timeout: Duration) -> Self {
        let connections = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(connections));
        let spare = Semaphore::new(connections / SPARE);
        let (residents, shelves, generation) = (Arc::default(), Mutex::default(), AtomicU64::new(0));
        Self { opener, size: connections, places, residents, shelves, acquire_timeout, spare, generation }
    }

    /// How many connections there may be.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether there is a connection to spare for what is rare and may take its time, so that reads need not wait
    /// for it. It is while this is held.
    pub(super) fn spare(&self) -> Option<SemaphorePermit<'_>> {
        self.spare.try_acquire().ok()
    }

    /// Opens the first connection, and keeps it for the first read. SQLite removes its log when the last
    /// connection closes, and another one that opens the file at that moment fails: so one stays open
    /// while a node starts.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) async fn open_first(&self) -> DbResult<()> {
        self.begin_with(self.opener.open().await?);
        Ok(())
    }

    /// Keeps a connection that was opened as this pool's are, if there is a place for it.
    pub(super) fn begin_with(&self, conn: Conn) {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            let place = self.residents.settle(self.opener.home(), permit);
            self.keep(Idle::new(conn, place, self.generation()));
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Lends no connection any more that was opened before now: such a one may be to a server that is no longer the
    /// database.
    pub(super) fn renew(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.close_unused_since(Instant::now());
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn shelves(&self) -> MutexGuard<'_, Shelves<Idle>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection that works.
    ///
    /// # Errors
    /// The driver's own; `PoolTimedOut` if there is none in time.
    pub(super) async fn acquire(self: &Arc<Self>) -> DbResult<Lent<'_>> {
        let home = self.opener.home();
        let kept = self.shelves().take(home);
        match kept {
            // The common case needs no timer.
            Some(idle) if idle.is_trusted() && idle.generation == self.generation() => Ok(self.lend(idle, home)),
            kept => tokio::time::timeout(self.acquire_timeout, self.wait(home, kept)).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)),
        }
    }

    /// Lends a connection. Who gets one from elsewhere has one opened at home, too, if there is a place.
    fn lend(self: &Arc<Self>, idle: Idle, user: Home) -> Lent<'_> {
        let Idle { conn, opened, generation, place, .. } = idle;
        if place.home != user
            && let Ok(permit) = Arc::clone(&self.places).try_acquire_owned()
        {
            drop(self.open(permit));
        }
        Lent { conn, opened, generation, user, pool: self, place }
    }

    async fn wait(self: &Arc<Self>, home: Home, mut kept: Option<Idle>) -> DbResult<Lent<'_>> {
        let mut opening = None;
        loop {
            let idle = match kept.take() {
                Some(idle) => idle,
                None => self.next(home, &mut opening).await?,
            };
            if idle.generation != self.generation() {
                continue;
            }
            let (is_trusted, since) = (idle.is_trusted(), idle.since);
            let mut lent = self.lend(idle, home);
            if is_trusted || matches!(tokio::time::timeout(self.ping_timeout(), lent.conn.ping()).await, Ok(Ok(()))) {
                return Ok(lent);
            }
            // What ended this one ended those that have idled for longer: nobody waits for each of them.
            self.close_unused_since(since);
        }
    }

    /// How long it may take to try a connection. What lies between may forget one without a word to
    /// either end, and the rest of the wait must suffice for another.
    fn ping_timeout(&self) -> Duration {
        self.acquire_timeout / 4
    }

    /// The next that is kept or given back. Where there is a place, a connection is opened meanwhile,
    /// by a task that goes on for others should this caller be served before.
    async fn next(self: &Arc<Self>, home: Home, opening: &mut Option<oneshot::Receiver<sqlx::Error>>) -> DbResult<Idle> {
        let mut waiting = {
            let mut shelves = self.shelves();
            if let Some(idle) = shelves.take(home) {
                return Ok(idle);
            }
            Waiting { served: shelves.wait(home).ok_or(sqlx::Error::PoolClosed)?, pool: self }
        };
        loop {
            tokio::select! {
                biased;
                served = &mut waiting.served => return served.map_err(|_| sqlx::Error::PoolClosed),
                failure = ended(opening), if opening.is_some() => {
                    *opening = None;
                    if let Some(error) = failure {
                        return Err(error);
                    }
                }
                permit = Arc::clone(&self.places).acquire_owned(), if opening.is_none() => {
                    *opening = Some(self.open(permit.map_err(|_| sqlx::Error::PoolClosed)?));
                }
            }
        }
    }

    /// Opens a connection at home, for anyone who is next. Tells only of a failure that lasts.
    fn open(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> oneshot::Receiver<sqlx::Error> {
        let (failed, failure) = oneshot::channel();
        let (pool, place) = (Arc::clone(self), self.residents.settle(self.opener.home(), permit));
        let generation = self.generation();
        tokio::spawn(async move {
            match tokio::time::timeout(MAX_OPENING, pool.opener.open_patiently()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                Ok(conn) => pool.keep(Idle::new(conn, place, generation)),
                Err(error) => {
                    if let Err(error) = failed.send(error) {
                        tracing::debug!(%error, "cannot connect to the database; nobody waits for it any more");
                    }
                }
            }
        });
        failure
    }

    /// Keeps a connection for anyone who is next.
    fn keep(&self, idle: Idle) {
        // Dropped after the lock, if at all: to close a file takes time.
        let refused = self.shelves().put(idle.place.home, idle);
        drop(refused);
    }

    /// Closes connections that nobody has needed for long.
    fn close_old(&self) {
        let oldest = self.shelves().take_oldest_if(|idle| idle.since.elapsed() > MAX_IDLE);
        drop(oldest);
    }

    /// Closes connections that nobody has used after then.
    fn close_unused_since(&self, then: Instant) {
        loop {
            // Dropped after the lock.
            let Some(oldest) = self.shelves().take_oldest_if(|idle| idle.since <= then) else { return };
            drop(oldest);
        }
    }

    /// Closes what idles, and lends no more.
    pub(super) async fn close(&self) {
        self.places.close();
        let idle = self.shelves().close();
        for idle in idle {
            idle.conn.close().await;
        }
    }
}

/// Why opening a connection failed; None: it did not.
async fn ended(opening: &mut Option<oneshot::Receiver<sqlx::Error>>) -> Option<sqlx::Error> {
    opening.as_mut()?.await.ok()
}

impl Lent<'_> {
    /// Keeps the connection for others: only where nothing is left under way on it. One that was used
    /// away from home makes room for one that is opened where it was used, while its home has more.
    pub(super) fn give_back(self) {
        let Self { conn, opened, generation, user, pool, place } = self;
        if place.home != user && pool.places.available_permits() == 0 && pool.residents.has_more(place.home, user) {
            drop(conn);
            place.leave().map(|permit| pool.open(permit));
        } else if opened.elapsed() <= MAX_AGE {
            pool.keep(Idle { conn, opened, generation, since: Instant::now(), place });
            pool.close_old();
        }
    }
}

#[cfg(test)]
mod tests;
