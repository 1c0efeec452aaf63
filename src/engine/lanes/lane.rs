//! One lane: a connection of its own, and a number by which the database tells which of its commits
//! took effect.

use std::io::Error as IoError;
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::Instant;

use super::known_users::{KnownUsers, Trust};
use super::local_locks::LocalLocks;
use super::log::Log;
use super::row::{REGISTER, retire};
use super::{LaneEngines, MAX_CONNECT};
use crate::base::seldom::Seldom;
use crate::db::{Column, Conn};

/// How long a lane's plans are kept: one that was made while a table was empty goes through all of
/// a table that an import has filled since.
const MAX_PLAN_AGE: Duration = Duration::from_secs(5);

/// How often it is logged that the log cannot be put into the file.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// One lane: a connection, and a number in the database that tells which of its commits took
/// effect.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) engines: LaneEngines,
    pub(super) known: KnownUsers,
    /// Shared with the other lanes of the node; None where there is no other, and for what is set aside.
    pub(super) locks: Option<LocalLocks>,
    /// Whether it works with what it knows.
    pub(super) trust: Trust,
    pub(super) id: i64,
    /// To which slot of counts that are spread out it adds: two lanes of one node never to the
    /// same, those of two nodes seldom.
    pub(super) slot: i64,
    pub(super) batch: i64,
    pub(super) conn: Option<Conn>,
    /// In which of the histories that this node has seen it was opened.
    history: u64,
    /// When its statements were planned.
    planned: Instant,
    /// How long SQLite's log may be.
    log: Log,
    /// Of that, as it is tried again and again.
    log_warnings: Seldom,
    /// How long it waits for a lock …
    lock_wait: Duration,
    /// … and what its connection was told of that.
    told_lock_wait: Option<Duration>,
}

impl Lane {
    pub(super) fn new(engines: LaneEngines, known: KnownUsers, locks: Option<LocalLocks>, slot: i64, lock_wait: Duration) -> Self {
        let id = rand::rng().random_range(1..i64::MAX);
        Self {
            engines,
            known,
            locks,
            trust: Trust::default(),
            id,
            slot,
            batch: 0,
            conn: None,
            history: 0,
            planned: Instant::now(),
            log: Log::default(),
            log_warnings: Seldom::new(WARN_EVERY),
            lock_wait,
            told_lock_wait: None,
        }
    }

    /// Whether jobs that meet a lock are set aside. SQLite has one lock for all: there everybody
    /// waits.
    pub(super) fn sets_aside(&self) -> bool {
        self.engines.db.is_shared()
    }

    pub(super) fn lock_wait(&self) -> Duration {
        self.lock_wait
    }

    /// From now on it waits so long for a lock.
    pub(super) fn wait_for_locks(&mut self, wait: Duration) {
        self.lock_wait = wait;
    }

    /// Closes its connection until the next batch, if there is any.
    pub(super) async fn disconnect(&mut self) {
        let Some(mut conn) = self.conn.take() else { return };
        let retired = retire(&mut conn, self.id, self.engines.clock.now());
        if !matches!(tokio::time::timeout(MAX_CONNECT, retired).await, Ok(Ok(_))) {
            tracing::debug!("the row of a lane stays for a day");
        }
    }

    pub(super) fn engines(&self) -> &LaneEngines {
        &self.engines
    }

    /// Puts SQLite's log into its file when it is long, after a batch of so many changes: a commit that
    /// did it would let its callers wait for it.
    pub(super) async fn shorten_log(&mut self, changes: u32) {
        let (Some(bytes), Some(conn)) = (self.log.look_after(changes), self.conn.as_mut()) else { return };
        let began = Instant::now();
        match conn.shorten_log(bytes).await {
            Ok(moved) => self.log.moved(moved, began.elapsed()),
            Err(error) if self.log_warnings.may() => tracing::warn!(%error, "cannot put the log into the file yet"),
            Err(_) => {}
        }
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
    /// be locked from the first batch on. One from before this node saw another history of the database is closed. So
    /// is a new one to another history than this node has seen: then this node may not write ([`Guard::may_write`](crate::engine::guard::Guard::may_write)).
    pub(super) async fn connected(&mut self) -> Result<&mut Conn, sqlx::Error> {
        let history = self.engines.guard.history_number();
        if self.conn.is_none() || self.history != history {
            self.conn = None;
            let open = async {
                let mut conn = self.engines.db.connect().await?;
                if !self.engines.guard.is_in_seen_history(&mut conn).await? {
                    return Err(sqlx::Error::Io(IoError::other("the database has another history than this node has seen")));
                }
                conn.run(&REGISTER, &self.number(self.batch)).await?;
                Ok::<_, sqlx::Error>(conn)
            };
            let opened = tokio::time::timeout(MAX_CONNECT, open).await;
            self.conn = Some(opened.map_err(|_| sqlx::Error::PoolTimedOut)??);
            self.history = history;
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

    pub(super) fn number(&self, batch: i64) -> [Column; 3] {
        [Column::Int(vec![self.id]), Column::Int(vec![batch]), Column::Int(vec![self.engines.clock.now().0])]
    }

    /// Forgets the plans of a connection that are old.
    pub(super) fn plans_are_old(&mut self) -> bool {
        let old = self.planned.elapsed() >= MAX_PLAN_AGE;
        if old {
            self.planned = Instant::now();
        }
        old
    }
}
