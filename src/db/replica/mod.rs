//! A streaming replica of Postgres, for pages that may be a moment old: [`PageReads`]. Whether it
//! may be read is in `freshness.rs`; the rows by which that is found out, in `beats.rs`
//! (`docs/adr/0024-replicas.md`).
//!
//! Never read here what fills a cache, what decides a write, or what a user is told of their own.

mod beats;
mod config;
mod freshness;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

pub use self::beats::statements;
pub use self::config::ReplicaConfig;
use self::freshness::Freshness;
pub use self::freshness::ReplicaState;
use super::{Conn, Db, DbFacts, DbResult, ErrorClass, StoreConfig, classify};
use crate::base::clock::Clock;

/// How often a node writes a beat and looks for it.
const BEAT_EVERY: Duration = Duration::from_millis(200);

/// The pauses before the replica is asked for a beat that was just written.
const LOOKS: [Duration; 3] = [Duration::from_millis(2), Duration::from_millis(10), Duration::from_millis(40)];

/// How long a beat may take to be written.
const MAX_BEAT: Duration = Duration::from_secs(1);

/// How long the replica may take to answer; then the primary is asked. With the lag and the second
/// for which first pages are kept in memory, below the 2 s in which a change must show.
const MAX_REPLICA_READ: Duration = Duration::from_millis(300);

/// How long a command waits for the replica to show what was there as the command began.
const MAX_CATCH_UP: Duration = Duration::from_secs(5);

/// How long a replica has to tell of itself.
const MAX_LOOK: Duration = Duration::from_secs(5);

/// The facts of the replica; None if none is configured.
///
/// # Errors
/// A sentence for the operator.
pub async fn look_at_replica(config: &ReplicaConfig, stores: &StoreConfig) -> Result<Option<DbFacts>, String> {
    let Some(url) = &config.replica_url else { return Ok(None) };
    let db = Db::open_replica(stores, url)?;
    let facts = timeout(MAX_LOOK, db.facts()).await;
    db.close().await;
    match facts {
        Ok(facts) => facts.map(Some).map_err(|error| error.to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

/// A replica, and what is known of it.
#[derive(Debug)]
pub struct Replica {
    db: Db,
    primary: Db,
    max_lag: Duration,
    /// This node among those that write beats: random.
    node: i64,
    clock: Clock,
    known: Mutex<Freshness>,
}

impl Replica {
    /// The replica that the settings name. Connections are opened as they are needed, so it need not
    /// be there.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(config: &ReplicaConfig, stores: &StoreConfig, primary: &Db, clock: Clock) -> Result<Option<Arc<Self>>, String> {
        config.check(stores)?;
        let Some(url) = &config.replica_url else { return Ok(None) };
        if primary.is_distributed() {
            return Err("HEADMARK_REPLICA_URL cannot be used with Citus: each worker would have a replica with a lag of its own".to_owned());
        }
        let db = Db::open_replica(stores, url)?;
        let node = rand::rng().random_range(1..i64::MAX);
        let (primary, known) = (primary.clone(), Mutex::default());
        Ok(Some(Arc::new(Self { db, primary, max_lag: config.max_lag(), node, clock, known })))
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn known(&self) -> MutexGuard<'_, Freshness> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may be read now.
    #[must_use]
    pub fn state(&self) -> ReplicaState {
        self.known().state(Instant::now(), self.max_lag)
    }

    /// A read of it has failed with this; None: it took too long. One that was refused, as where it
    /// stood in the way of the replay, says nothing of the next.
    fn fail(&self, error: Option<&sqlx::Error>) {
        tracing::debug!(error = error.map(tracing::field::display), "a read of the replica failed; asking the primary");
        let was_refused = error.is_some_and(|error| matches!(error, sqlx::Error::Database(_)) && classify(error) != ErrorClass::Unknown);
        if !was_refused {
            self.known().shut(Instant::now());
        }
    }

    /// Finds out how far it is behind, again and again, until told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tick = interval(BEAT_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut conn, mut renewals, mut beat, mut told) = (None, self.primary.renewals(), 0, None);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = tick.tick() => {}
            }
            if self.primary.renewals() != renewals {
                (conn, renewals) = (None, self.primary.renewals());
            }
            beat += 1;
            self.beat(&mut conn, beat).await;
            let why = self.look().await.err();
            let state = self.state();
            if told.replace(state) != Some(state) {
                let error = why.map(tracing::field::display);
                match state {
                    ReplicaState::Ok => tracing::info!("the replica is read"),
                    ReplicaState::Away => tracing::warn!(?state, error, "the replica does not answer; pages come from the primary"),
                    ReplicaState::Lagging => tracing::warn!(
                        ?state,
                        "the replica is behind, or HEADMARK_REPLICA_URL names another database; pages come from the primary"
                    ),
                }
            }
            let age = self.known().age(Instant::now());
            metrics::gauge!("headmark_replica_lag_seconds").set(age.map_or(f64::INFINITY, |age| age.as_secs_f64()));
        }
        if let Some(mut conn) = conn
            && let Ok(Err(error)) = timeout(MAX_BEAT, beats::remove(&mut conn, self.node, self.clock.now())).await
        {
            tracing::debug!(%error, "the row of this node's beats stays for a day");
        }
        self.db.close().await;
    }

    /// Writes a beat. One that fails is not missed: what the replica shows gets older.
    async fn beat(&self, conn: &mut Option<Conn>, beat: i64) {
        let sent = Instant::now();
        let written = async {
            let mut conn = match conn.take() {
                Some(conn) => conn,
                None => self.primary.connect().await?,
            };
            beats::beat(&mut conn, self.node, beat, self.clock.now()).await.map(|()| conn)
        };
        match timeout(MAX_BEAT, written).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(written) => {
                *conn = Some(written);
                self.known().send(beat, sent);
            }
            Err(error) => tracing::debug!(%error, "cannot write a beat for the replica"),
        }
    }

    /// Looks for the last beat, some times if need be.
    ///
    /// # Errors
    /// The driver's own, where the replica does not answer.
    async fn look(&self) -> DbResult<()> {
        for pause in LOOKS {
            tokio::time::sleep(pause).await;
            match timeout(MAX_REPLICA_READ, beats::shown(&self.db, self.node)).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                Ok(beat) if self.known().show(beat) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "the replica does not answer");
                    self.known().lose();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// For a command: the replica, once it shows what was there as the command began; None where it
    /// does not in time.
    pub async fn caught_up(&self) -> Option<&Db> {
        let (until, mut conn) = (Instant::now() + MAX_CATCH_UP, None);
        self.beat(&mut conn, 1).await;
        // Without a beat nothing could be shown.
        let mut conn = conn?;
        let shows = loop {
            // Why it does not answer is in the log.
            let _ = self.look().await;
            let shows = self.known().age(Instant::now()).is_some();
            if shows || Instant::now() >= until {
                break shows;
            }
            tokio::time::sleep(BEAT_EVERY).await;
        };
        if let Err(error) = beats::remove(&mut conn, self.node, self.clock.now()).await {
            tracing::debug!(%error, "the row of this command's beat stays for a day");
        }
        shows.then_some(&self.db)
    }
}

/// Where pages are read that may be a moment old: the replica while it is good, else the primary.
#[derive(Debug, Clone)]
pub struct PageReads {
    primary: Db,
    replica: Option<Arc<Replica>>,
}

impl PageReads {
    #[must_use]
    pub fn new(primary: Db, replica: Option<Arc<Replica>>) -> Self {
        Self { primary, replica }
    }

    /// What may be done with the replica; None where there is none.
    #[must_use]
    pub fn replica_state(&self) -> Option<ReplicaState> {
        self.replica.as_ref().map(|replica| replica.state())
    }

    /// Reads from the replica if that may be, or else from the primary.
    ///
    /// # Errors
    /// Those of the primary.
    pub async fn read<'s, T, F>(&'s self, read: impl Fn(&'s Db) -> F) -> DbResult<T>
    where
        F: Future<Output = DbResult<T>>,
    {
        let Some(replica) = &self.replica else { return read(&self.primary).await };
        let outcome = match replica.state() {
            ReplicaState::Ok => match timeout(MAX_REPLICA_READ, read(&replica.db)).await {
                Ok(Ok(value)) => {
                    count("replica");
                    return Ok(value);
                }
                outcome => {
                    replica.fail(outcome.ok().and_then(Result::err).as_ref());
                    "failed"
                }
            },
            ReplicaState::Lagging => "lagging",
            ReplicaState::Away => "away",
        };
        count(outcome);
        read(&self.primary).await
    }
}

/// Of reads that the replica might answer: what became of each.
fn count(outcome: &'static str) {
    metrics::counter!("headmark_replica_reads_total", "outcome" => outcome).increment(1);
}
