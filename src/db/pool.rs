//! Connections for reads, kept open and lent one at a time.
//!
//! sqlx's own pool asks the database a question after each use, to learn whether the connection is
//! still sound; for a read of one short statement that is a second round trip. Here a connection
//! comes back only from a read that went well, and any other is closed.
//!
//! A new connection is opened beside those who wait: they take whichever is there first, the new
//! one or one that somebody gave back. A busy Postgres may take seconds to accept another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use super::conn::Conn;
use super::errors::{DbResult, classify};
use super::postgres::PgConn;

/// How long a connection may have idled before it is tried at its next use.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// How long it may idle before it is closed.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// How long it is used: what the database keeps for a session is to end some time.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// How long it is tried to open one, and the pause between two tries.
const MAX_OPENING: Duration = Duration::from_secs(10);
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How a connection is opened.
#[derive(Debug, Clone)]
pub(super) enum Opener {
    Sqlite(SqliteConnectOptions),
    Postgres(PgConnectOptions),
}

impl Opener {
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
            Self::Postgres(options) => Ok(Conn::Postgres(Box::new(PgConn::new(PgConnection::connect_with(options).await?)))),
        }
    }
}

/// The connections of a node for reads.
#[derive(Debug)]
pub struct Pool {
    opener: Opener,
    /// One for each connection that may still be opened; closed with the pool.
    places: Arc<Semaphore>,
    /// One for each of `idle`: who has a permit may pop. Those who wait are served in turn.
    ready: Semaphore,
    /// The last used is on top, so that those which nobody needs grow old.
    idle: Mutex<Vec<Idle>>,
    acquire_timeout: Duration,
}

#[derive(Debug)]
struct Idle {
    conn: Conn,
    opened: Instant,
    since: Instant,
    place: OwnedSemaphorePermit,
}

impl Idle {
    fn is_trusted(&self) -> bool {
        self.since.elapsed() < TRUSTED_IDLE
    }
}

/// A connection in use. Dropped, it is closed, unless it was given back.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    pub(super) conn: Conn,
    opened: Instant,
    pool: &'a Pool,
    place: OwnedSemaphorePermit,
}

impl Pool {
    /// A pool of so many connections, of which each is opened when it is first needed.
    pub(super) fn new(opener: Opener, connections: u32, acquire_timeout: Duration) -> Self {
        let connections = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(connections));
        Self { opener, places, ready: Semaphore::new(0), idle: Mutex::default(), acquire_timeout }
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection that works.
    ///
    /// # Errors
    /// The driver's own; `PoolTimedOut` if there is none in time.
    pub(super) async fn acquire(self: &Arc<Self>) -> DbResult<Lent<'_>> {
        // The common case needs no timer.
        if self.idle().last().is_some_and(Idle::is_trusted)
            && let Ok(ready) = self.ready.try_acquire()
        {
            ready.forget();
            if let Some((lent, _)) = self.pop() {
                return Ok(lent);
            }
        }
        tokio::time::timeout(self.acquire_timeout, self.wait()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// The connection that was used last, and whether it may be used untried. The caller has used
    /// up a permit of `ready`.
    fn pop(&self) -> Option<(Lent<'_>, bool)> {
        let idle = self.idle().pop()?;
        let is_trusted = idle.is_trusted();
        let Idle { conn, opened, place, .. } = idle;
        Some((Lent { conn, opened, pool: self, place }, is_trusted))
    }

    async fn wait(self: &Arc<Self>) -> DbResult<Lent<'_>> {
        let mut opening = None;
        loop {
            self.until_ready(&mut opening).await?;
            let Some((mut lent, is_trusted)) = self.pop() else { continue };
            if is_trusted || lent.conn.ping().await.is_ok() {
                return Ok(lent);
            }
        }
    }

    /// Waits for a turn to pop. Where there is a place, a connection is opened meanwhile, by a task
    /// that goes on for others should this caller be served before.
    async fn until_ready(self: &Arc<Self>, opening: &mut Option<oneshot::Receiver<sqlx::Error>>) -> DbResult<()> {
        let ready = self.ready.acquire();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                biased;
                ready = &mut ready => {
                    ready.map_err(|_| sqlx::Error::PoolClosed)?.forget();
                    return Ok(());
                }
                failure = ended(opening), if opening.is_some() => {
                    *opening = None;
                    if let Some(error) = failure {
                        return Err(error);
                    }
                }
                place = Arc::clone(&self.places).acquire_owned(), if opening.is_none() => {
                    let place = place.map_err(|_| sqlx::Error::PoolClosed)?;
                    *opening = Some(self.open(place));
                }
            }
        }
    }

    /// Opens a connection for anyone who is next. Tells only of a failure that lasts.
    fn open(self: &Arc<Self>, place: OwnedSemaphorePermit) -> oneshot::Receiver<sqlx::Error> {
        let (failed, failure) = oneshot::channel();
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            match tokio::time::timeout(MAX_OPENING, pool.opener.open_patiently()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                Ok(conn) => {
                    let now = Instant::now();
                    pool.keep(Idle { conn, opened: now, since: now, place });
                }
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
        if self.places.is_closed() {
            return;
        }
        self.idle().push(idle);
        self.ready.add_permits(1);
    }

    /// Closes connections that nobody has needed for long.
    fn close_old(&self) {
        let is_old = |idle: &Idle| idle.since.elapsed() > MAX_IDLE;
        if self.idle().first().is_some_and(is_old)
            && let Ok(ready) = self.ready.try_acquire()
        {
            ready.forget();
            // Dropped after the lock: to close a file takes time.
            let oldest = self.idle().remove(0);
            drop(oldest);
        }
    }

    /// Closes what idles, and lends no more.
    pub(super) async fn close(&self) {
        self.places.close();
        self.ready.close();
        let idle = std::mem::take(&mut *self.idle());
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
    /// Keeps the connection for others: only where nothing is left under way on it.
    pub(super) fn give_back(self) {
        let Self { conn, opened, pool, place } = self;
        if opened.elapsed() <= MAX_AGE {
            pool.keep(Idle { conn, opened, since: Instant::now(), place });
            pool.close_old();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool_of(opener: Opener, connections: u32, acquire_timeout: Duration) -> Arc<Pool> {
        Arc::new(Pool::new(opener, connections, acquire_timeout))
    }

    fn pool(connections: u32) -> Arc<Pool> {
        pool_of(Opener::Sqlite(SqliteConnectOptions::new().in_memory(true)), connections, Duration::from_millis(200))
    }

    /// An idle connection of a database that takes no further ones.
    async fn only_idle(pool: &Pool) -> Idle {
        let conn = Opener::Sqlite(SqliteConnectOptions::new().in_memory(true)).open().await.unwrap();
        let place = Arc::clone(&pool.places).acquire_owned().await.unwrap();
        Idle { conn, opened: Instant::now(), since: Instant::now(), place }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_new_connection_while_another_is_idle() {
        // It takes connections, and never answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(silent.local_addr().unwrap().port());
        let pool = pool_of(Opener::Postgres(options), 2, Duration::from_secs(20));
        let idle = only_idle(&pool).await;
        let waiting = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.acquire().await.map(Lent::give_back) }
        });
        while pool.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        pool.keep(idle);
        waiting.await.unwrap().unwrap();
        assert!(pool.acquire().await.is_ok());
    }

    #[tokio::test]
    async fn no_more_are_lent_than_there_may_be() {
        let pool = pool(2);
        let (first, second) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
        assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolTimedOut)));
        first.give_back();
        let third = pool.acquire().await.unwrap();
        assert!(pool.idle().is_empty(), "the one that was given back is lent again");
        drop(second);
        let fourth = pool.acquire().await.unwrap();
        third.give_back();
        fourth.give_back();
        assert_eq!(pool.idle().len(), 2);
    }

    #[tokio::test]
    async fn what_is_not_given_back_is_lent_to_nobody() {
        let pool = pool(1);
        drop(pool.acquire().await.unwrap());
        assert!(pool.idle().is_empty());
        pool.acquire().await.unwrap().give_back();
        assert_eq!(pool.idle().len(), 1);
    }

    #[tokio::test]
    async fn the_old_are_closed() {
        let pool = pool(2);
        let (first, second) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
        first.give_back();
        second.give_back();
        let long_ago = |age: Duration| Instant::now().checked_sub(age + Duration::from_secs(1)).unwrap();
        for idle in pool.idle().iter_mut() {
            idle.since = long_ago(MAX_IDLE);
        }
        pool.acquire().await.unwrap().give_back();
        assert_eq!(pool.idle().len(), 1, "nobody needed the other");
        pool.idle()[0].opened = long_ago(MAX_AGE);
        pool.acquire().await.unwrap().give_back();
        assert!(pool.idle().is_empty());
    }

    #[tokio::test]
    async fn a_closed_pool_keeps_and_lends_nothing() {
        let pool = pool(2);
        let (lent, idle) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
        idle.give_back();
        pool.close().await;
        lent.give_back();
        assert!(pool.idle().is_empty());
        assert!(matches!(pool.acquire().await, Err(sqlx::Error::PoolClosed)));
    }
}
