//! The stores of a process that writes, opened in one way: by a node, and by a command that works
//! beside nodes.

use std::fs::File;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::ROW_SETS;
use crate::app::config::CacheArgs;
use crate::base::clock::Clock;
use crate::cache::Cache;
use crate::db::{Db, Owners, StoreConfig};
use crate::engine::epoch;
use crate::engine::events::Bell;
use crate::engine::guard::{Guard, SEEN};
use crate::engine::heads::Heads;
use crate::engine::lanes::{LaneConfig, LaneEngines, Lanes};

/// The truth, the cache, and what all nodes agree on.
#[derive(Debug)]
pub struct Stores {
    pub db: Db,
    pub owners: Owners,
    pub cache: Arc<Cache>,
    /// What all nodes agree on; its [`Guard::run`] is yet to be started.
    pub guard: Arc<Guard>,
    /// The heads of the streams that users share; its [`Heads::run`] is yet to be started.
    pub heads: Arc<Heads>,
    /// The lock of the data folder, to be held for as long as the stores are used.
    pub data_lock: Option<File>,
}

impl Stores {
    /// Opens what the settings name, and brings the schema up to date.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn open(stores: &StoreConfig, cache: &CacheArgs, clock: Clock) -> Result<Self, String> {
        cache.check(stores)?;
        let (db, data_lock) = Db::open(stores).await?;
        let owners = db.prepare(stores).await?;
        epoch::ensure(&db, SEEN).await.map_err(|error| format!("cannot read the epoch of the installation: {error}"))?;
        let cache = match cache.redis() {
            Some(redis) => Cache::redis(cache.cache(), redis).await.map_err(|error| format!("cannot use Redis: {error}"))?,
            None => Cache::memory(cache.cache()),
        };
        let cache = Arc::new(cache);
        let guard = Guard::start(db.clone(), Arc::clone(&cache)).await?;
        let heads = Heads::start(db.clone(), clock).await.map_err(|error| format!("cannot read the heads of shared streams: {error}"))?;
        Ok(Self { db, owners, cache, guard, heads, data_lock })
    }
}

/// The write path without a server: for a command that writes as a node does, so that the caches of
/// running nodes stay right.
#[derive(Debug)]
pub struct Writing {
    lanes: Lanes,
    db: Db,
    guard: Arc<Guard>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _data_lock: Option<File>,
}

impl Writing {
    /// Opens the stores and starts the lanes.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn start(stores: &StoreConfig, cache: &CacheArgs, lanes: &LaneConfig, clock: Clock) -> Result<Self, String> {
        let Stores { db, owners, cache, guard, heads, data_lock } = Stores::open(stores, cache, clock.clone()).await?;
        let engines = LaneEngines {
            owners,
            db: db.clone(),
            cache,
            guard: Arc::clone(&guard),
            heads: Arc::clone(&heads),
            clock,
            bell: Bell::default(),
            row_sets: ROW_SETS,
            after_commit: Arc::new([]),
        };
        let lanes = Lanes::start(lanes, &engines);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(Arc::clone(&guard).run(heads, stop.clone()));
        tasks.close();
        Ok(Self { lanes, db, guard, tasks, stop, _data_lock: data_lock })
    }

    #[must_use]
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The truth, for what is only read.
    #[must_use]
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Finishes what is queued and closes the stores.
    pub async fn finish(self) {
        self.lanes.drain().await;
        self.stop.cancel();
        self.tasks.wait().await;
        self.guard.release().await;
        self.db.close().await;
    }
}
