//! What all nodes must agree on before they trust a cache: who may write, which entries count, and
//! when none does.
//!
//! With Redis, a row in SQL (`cache_guard`) carries an *epoch*: entries of another epoch are
//! misses. Each node refreshes its view every second ([`REFRESH`]) and trusts it for [`FRESH`];
//! after that it answers polls degraded. A node that cannot begin a write in the cache raises the
//! epoch and sets a *bypass*: until its end nobody reads or fills the cache. It then waits
//! [`SEEN`], until every other node has refreshed its view or has stopped trusting it, and commits
//! past the cache for as long as the bypass holds; it is prolonged ahead of time while the cache
//! stays away. Once the cache is back and no bypassing commit is under way, `bypass.rs` ends it.
//! Another run of Redis (a restart, a failover) raises the epoch too, and until then nothing is read
//! from it. Where several runs may be reached at once, all nodes keep to one (`runs.rs`). After a
//! lost connection to the database its history is looked at: that of a replica which took over is
//! another one ([`epoch`]). A lane that meets one which this node has not looked at writes nothing.
//!
//! Postgres without Redis is one node: an advisory lock, held exclusively by a node without Redis
//! and shared by nodes with it, keeps others out. Should the connection that holds it be lost, the
//! node takes it again, once the database has missed it too (`refused.rs`). A successor raises the
//! epoch, waits [`SEEN`] until the predecessor serves nothing from its own cache any more, and only
//! then begins; every commit of a node alone checks that the epoch is still its own
//! ([`Guard::fence`]).

mod bypass;
mod bypassing;
mod node_lock;
mod refused;
mod runs;
mod seen_history;
mod seen_run;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::bypass::{Bypass, ms};
pub use self::bypassing::BypassingCommit;
use self::refused::Refused;
use self::seen_history::SeenHistory;
use self::seen_run::SeenRun;
pub use self::store::statements;

use crate::cache::Cache;
use crate::db::{Conn, Db, DbResult};
use crate::engine::epoch::Following;
use crate::engine::heads::Heads;

/// How often a node refreshes its view.
pub const REFRESH: Duration = Duration::from_secs(1);

/// How long a view is trusted.
pub const FRESH: Duration = Duration::from_millis(2500);

/// How long a node that raised the epoch waits before it commits past the cache: longer than any
/// view is trusted.
pub const SEEN: Duration = Duration::from_millis(3000);

/// How long a bypass lasts unless it is prolonged.
const BYPASS: Duration = Duration::from_secs(15);

/// When less than this is left of a bypass that is still needed, it is prolonged. Two looks longer than a
/// commit needs ([`COMMIT_MARGIN`](bypass::COMMIT_MARGIN)), so that no write has to wait for it.
const PROLONG: Duration = Duration::from_secs(10);

/// How long any single question to the database may take here.
const ASK: Duration = Duration::from_millis(2000);

/// What a poll may do with the cache right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Read and fill it.
    Full,
    /// Somebody commits past it: read SQL, fill nothing.
    Bypass,
    /// The database did not answer recently, so this node cannot know: what the cache shows is the
    /// last known state, and degraded.
    Unsure,
}

/// A node's part in the agreement.
#[derive(Debug)]
pub struct Guard {
    db: Db,
    cache: Arc<Cache>,
    started: Instant,
    /// Milliseconds since `started` at which the view was last asked for.
    viewed_ms: AtomicI64,
    /// This node among those that may be in a bypass: random.
    node: i64,
    /// Milliseconds since `started` until which the bypass of any node holds, as readers must see
    /// it (late).
    bypass_read_ms: AtomicI64,
    /// This node's own bypass.
    bypass: Bypass,
    /// Held while this node enters a bypass, which many lanes may want at once, or ends it.
    entering: Mutex<()>,
    /// See [`Lock`].
    lock: AtomicU8,
    lock_conn: Mutex<Option<Conn>>,
    /// Since when others hold the node lock whenever this node asks for it.
    refused: Refused,
    /// Whether the answer to a claim of this node did not come: the epoch may be one that it knows
    /// nothing of, and its own.
    claim_in_doubt: AtomicBool,
    seen_run: SeenRun,
    seen_history: SeenHistory,
    /// The epoch of the installation that this node is about to begin.
    following: Following,
    /// Whether the cache answered and took a write when it was last asked.
    cache_answers: AtomicBool,
}

/// The state of the node lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// Held, or not needed (SQLite).
    Held = 0,
    /// Held again, but this node may not show yet what is in the database: nothing is written.
    Settling = 1,
    /// The connection that held it was lost; it is being taken again.
    Lost = 2,
    /// Another node has it.
    Taken = 3,
}

impl Lock {
    fn is_held(self) -> bool {
        matches!(self, Self::Held | Self::Settling)
    }
}

impl Guard {
    /// Takes the node lock and the first view.
    ///
    /// # Errors
    /// A sentence for the operator: why this node may not run beside those that do, or that the
    /// database does not answer.
    pub async fn start(db: Db, cache: Arc<Cache>) -> Result<Arc<Self>, String> {
        let this = Self {
            db,
            cache,
            started: Instant::now(),
            viewed_ms: AtomicI64::new(-1_000_000),
            node: rand::rng().random_range(1..i64::MAX),
            bypass_read_ms: AtomicI64::new(0),
            bypass: Bypass::default(),
            entering: Mutex::new(()),
            lock: AtomicU8::new(Lock::Held as u8),
            lock_conn: Mutex::new(None),
            refused: Refused::default(),
            claim_in_doubt: AtomicBool::new(false),
            seen_run: SeenRun::default(),
            seen_history: SeenHistory::default(),
            following: Following::default(),
            cache_answers: AtomicBool::new(true),
        };
        let failed = |error| format!("cannot take the node lock: {error}");
        if this.db.is_shared() && !this.take_first_lock().await.map_err(failed)? {
            return Err(match this.cache.is_shared() {
                true => "a node without Redis holds this database: stop it, or start it with REDIS_URL too".to_owned(),
                false => "another node uses this database; without REDIS_URL only one may: set REDIS_URL on all of them".to_owned(),
            });
        }
        if this.db.is_shared() {
            this.see_first_history().await.map_err(failed)?;
        }
        if this.is_alone() {
            this.begin_alone().await.map_err(failed)?;
        } else if this.cache.is_shared() {
            this.begin_shared().await.map_err(failed)?;
        }
        Ok(Arc::new(this))
    }

    /// Whether this node is the only one that may use its database: Postgres without Redis.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.db.is_shared() && !self.cache.is_shared()
    }

    /// What a poll may do with the cache right now.
    #[must_use]
    pub fn trust(&self) -> Trust {
        if !self.db.is_shared() {
            return Trust::Full;
        }
        if !self.lock().is_held() && self.is_alone() {
            return Trust::Unsure;
        }
        let now = self.now_ms();
        if now - self.viewed_ms.load(Ordering::Acquire) > ms(FRESH) {
            Trust::Unsure
        } else if now < self.bypass_read_ms.load(Ordering::Acquire) {
            Trust::Bypass
        } else {
            Trust::Full
        }
    }

    /// Whether this node may commit at all.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.lock() == Lock::Held
    }

    /// Whether another node has taken over what this one must hold alone: then it must stop.
    #[must_use]
    pub fn must_stop(&self) -> bool {
        self.lock() == Lock::Taken
    }

    /// Whether the cache answered and took a write when this node last looked, each second.
    #[must_use]
    pub fn cache_answers(&self) -> bool {
        self.cache_answers.load(Ordering::Acquire)
    }

    /// After a cache write could not begin: returns when commits may go on without it.
    ///
    /// # Errors
    /// The driver's own: then nothing may be committed.
    pub async fn enter_bypass(&self) -> DbResult<()> {
        let _entering = self.entering.lock().await;
        // One that everybody still sees is prolonged, and nobody waits.
        if !self.is_bypassing() {
            self.prolong().await?;
        }
        if self.is_bypassing() {
            return Ok(());
        }
        // An earlier one may have lapsed with nobody there to notice. With it on, the first refresh after the
        // row is raised would let commits go on before the wait is over.
        self.bypass.stop();
        tracing::warn!("the cache is away: raising the epoch, polls go to the database");
        metrics::counter!("headmark_cache_bypasses_total").increment(1);
        self.raise().await?;
        tokio::time::sleep(SEEN).await;
        self.refresh().await?;
        self.bypass.entered(self.now_ms());
        Ok(())
    }

    /// Keeps the view fresh, the bypass alive while it is needed, and the node lock held. Runs
    /// until told to stop. `heads` are those by which this node knows the epoch of the installation.
    pub async fn run(self: Arc<Self>, heads: Arc<Heads>, stop: CancellationToken) {
        if !self.db.is_shared() {
            return;
        }
        let mut tick = tokio::time::interval(REFRESH);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            if self.cache.is_shared() {
                if let Err(error) = self.tick().await {
                    tracing::warn!(%error, "cannot refresh the view of the cache's epoch");
                }
                metrics::gauge!("headmark_cache_bypassing").set(f64::from(u8::from(self.is_bypassing())));
            }
            self.keep_lock(&heads).await;
        }
    }

    /// Claims the database for this node alone. A predecessor that did not release it may serve
    /// from its own cache for a while yet.
    async fn begin_alone(&self) -> DbResult<()> {
        let mut guard = self.lock_conn.lock().await;
        let conn = guard.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let asked_ms = self.now_ms();
        let before = answer_in_time(store::view(conn, self.node)).await?;
        if before.run_id == store::CLAIMED && before.epoch == self.cache.epoch() {
            // Still ours: nobody was here in between, and a claim that was in doubt did not take place.
            self.claim_in_doubt.store(false, Ordering::Release);
            self.viewed_ms.store(asked_ms, Ordering::Release);
            return Ok(());
        }
        if before.epoch != self.cache.epoch() {
            // What is here may be of a lost history. It is not shown as last known either.
            self.cache.clear();
        }
        self.claim_in_doubt.store(true, Ordering::Release);
        answer_in_time(store::claim(conn, store::CLAIMED)).await?;
        if before.run_id != store::RELEASED {
            tracing::info!("the last node did not release the database; waiting until it serves nothing any more");
            tokio::time::sleep(SEEN).await;
        }
        self.cache.clear();
        self.refresh_on(conn).await?;
        self.claim_in_doubt.store(false, Ordering::Release);
        Ok(())
    }

    /// Joins the nodes with Redis. A node that had the database for itself and did not release it
    /// may serve from its own cache for a while yet.
    async fn begin_shared(&self) -> DbResult<()> {
        let fenced_off = {
            let mut guard = self.lock_conn.lock().await;
            let conn = guard.as_mut().ok_or(sqlx::Error::PoolClosed)?;
            let run_id = answer_in_time(store::view(conn, self.node)).await?.run_id;
            // Redis may be away now, and come back as a replica that lost writes.
            self.cache.expect_run(&run_id);
            let claimed = run_id == store::CLAIMED;
            if claimed {
                answer_in_time(store::claim(conn, store::RELEASED)).await?;
            }
            claimed
        };
        if fenced_off {
            tracing::info!("the last node, without Redis, did not release the database; waiting until it serves nothing any more");
            tokio::time::sleep(SEEN).await;
        }
        if self.cache.runs_overlap() {
            self.refresh().await?;
        }
        self.check_run().await?;
        self.refresh().await
    }

    async fn tick(&self) -> DbResult<()> {
        if let Err(error) = self.refresh().await {
            // The cache may be read while the database is away.
            let _ = tokio::time::timeout(REFRESH, self.keep_run()).await;
            return Err(error);
        }
        // Beside the refresh, never before it: a slow cache must not make the view stale.
        match tokio::time::timeout(REFRESH, self.check_run()).await {
            Ok(Ok(true)) => self.try_to_end_bypass().await,
            Ok(Ok(false)) | Err(_) => self.prolong().await,
            Ok(Err(error)) => Err(error),
        }
    }

    async fn raise(&self) -> DbResult<()> {
        let mut conn = self.lock_conn.lock().await;
        let conn = conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        answer_in_time(store::raise(conn, self.node, ms(BYPASS))).await
    }

    async fn refresh(&self) -> DbResult<()> {
        let mut conn = self.lock_conn.lock().await;
        let conn = conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        self.refresh_on(conn).await
    }

    async fn refresh_on(&self, conn: &mut Conn) -> DbResult<()> {
        let asked = self.now_ms();
        let view = answer_in_time(store::view(conn, self.node)).await?;
        // Readers err to the late side, writers to the early one.
        let until = if view.bypass_left_ms > 0 { self.now_ms() + view.bypass_left_ms } else { 0 };
        self.bypass.holds_until(if view.own_left_ms > 0 { asked + view.own_left_ms } else { 0 });
        // A bypass is seen before its epoch, and its end after the next one: so nothing that was
        // read during a bypass is ever filled in.
        self.bypass_read_ms.fetch_max(until, Ordering::AcqRel);
        self.see_run(&view, self.started + Duration::from_millis(u64::try_from(asked).unwrap_or_default()));
        self.cache.set_epoch(view.epoch);
        self.bypass_read_ms.store(until, Ordering::Release);
        self.viewed_ms.store(asked, Ordering::Release);
        Ok(())
    }

    fn now_ms(&self) -> i64 {
        ms(self.started.elapsed())
    }
}

async fn answer_in_time<T>(question: impl Future<Output = DbResult<T>>) -> DbResult<T> {
    answer_within(ASK, question).await
}

async fn answer_within<T>(limit: Duration, question: impl Future<Output = DbResult<T>>) -> DbResult<T> {
    tokio::time::timeout(limit, question).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}
