//! Connections for reads, kept open and lent one at a time.
//!
//! sqlx's own pool asks the database a question after each use, to learn whether the connection is still sound; for a read of one short statement that is a
//! second round trip. Here a connection comes back only from a read that went well, and any other is closed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::{Conn, DbResult, PgConn, classify};

/// How long a connection may have idled before it is tried at its next use.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// How long it may idle before it is closed.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// How long it is used: what the database keeps for a session is to end some time.
const MAX_AGE: Duration = Duration::from_secs(1800);

/// The pause between two tries to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How a connection is opened.
#[derive(Debug, Clone)]
pub(super) enum Opener {
    Sqlite(SqliteConnectOptions),
    Postgres(PgConnectOptions),
}

impl Opener {
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
    /// One for each connection that may be lent; closed with the pool.
    permits: Semaphore,
    /// The last used is on top, so that those which nobody needs grow old.
    idle: Mutex<Vec<Idle>>,
    acquire_timeout: Duration,
}

#[derive(Debug)]
struct Idle {
    conn: Conn,
    opened: Instant,
    since: Instant,
}

/// A connection in use. Dropped, it is closed, unless it was given back.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    pub(super) conn: Conn,
    opened: Instant,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    /// A pool of so many connections, of which each is opened when it is first needed.
    pub(super) fn new(opener: Opener, connections: u32, acquire_timeout: Duration) -> Self {
        let connections = usize::try_from(connections).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { opener, permits: Semaphore::new(connections), idle: Mutex::default(), acquire_timeout }
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection that works.
    ///
    /// # Errors
    /// The driver's own; `PoolTimedOut` if there is none in time.
    pub(super) async fn acquire(&self) -> DbResult<Lent<'_>> {
        // The common case needs no timer.
        if let Ok(permit) = self.permits.try_acquire()
            && let Some(idle) = self.idle().pop_if(|idle| idle.since.elapsed() < TRUSTED_IDLE)
        {
            return Ok(Lent { conn: idle.conn, opened: idle.opened, pool: self, _permit: permit });
        }
        tokio::time::timeout(self.acquire_timeout, self.wait()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn wait(&self) -> DbResult<Lent<'_>> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        loop {
            let Some(mut idle) = self.idle().pop() else { break };
            if idle.since.elapsed() < TRUSTED_IDLE || idle.conn.ping().await.is_ok() {
                return Ok(Lent { conn: idle.conn, opened: idle.opened, pool: self, _permit: permit });
            }
        }
        loop {
            match self.opener.open().await {
                Ok(conn) => return Ok(Lent { conn, opened: Instant::now(), pool: self, _permit: permit }),
                Err(error) if classify(&error).may_pass() => {
                    tracing::debug!(%error, "cannot connect to the database; trying again");
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes what idles, and lends no more.
    pub(super) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for idle in idle {
            idle.conn.close().await;
        }
    }
}

impl Lent<'_> {
    /// Keeps the connection for others: only where nothing is left under way on it.
    pub(super) fn give_back(self) {
        let Self { conn, opened, pool, .. } = self;
        let since = Instant::now();
        if since.duration_since(opened) > MAX_AGE || pool.permits.is_closed() {
            return;
        }
        let mut idle = pool.idle();
        idle.push(Idle { conn, opened, since });
        let old = idle.first().is_some_and(|oldest| since.duration_since(oldest.since) > MAX_IDLE);
        let old = old.then(|| idle.remove(0));
        // Not under the lock: to close a file takes time.
        drop(idle);
        drop(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(connections: u32) -> Pool {
        let opener = Opener::Sqlite(SqliteConnectOptions::new().in_memory(true));
        Pool::new(opener, connections, Duration::from_millis(50))
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
