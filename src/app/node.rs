//! A node, put together from its settings: stores, engines, routes, and the tasks that run beside
//! them.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::application::Application;
use crate::app::clock_check::ClockCheck;
use crate::app::config::Config;
use crate::app::engines::Engines;
use crate::app::readers::Readers;
use crate::app::router::{self, Applications};
use crate::app::serve::Runtimes;
use crate::app::state::AppState;
use crate::app::stores::Stores;
use crate::app::{ROW_SETS, sweeps, telemetry};
use crate::base::clock::Clock;
use crate::db::{PageReads, Replica};
use crate::engine::events::{Bell, Publisher};
use crate::engine::lanes::{self, Lanes};
use crate::features::groups::changes::GroupChanges;
use crate::features::groups::fan_out;
use crate::features::groups::fan_out_queue::FanOut;
use crate::features::receipts::Receipts;
use crate::features::relations;
use crate::features::relations::HotUsers;
use crate::http::auth::Auth;
use crate::http::edge::EdgeConfig;
use crate::http::limit::Limiter;
use crate::http::polling::{Interval, Polling, Waiting};
use crate::http::traces::Traces;
use crate::maintenance::{push, removal, scrub};

/// How often the samples of histograms are folded, so that they do not pile up between scrapes.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// How long a stop waits for each of its steps: a store that hangs must not keep the process alive.
/// Longer than a batch may take, its commit in doubt included.
const MAX_STOP_STEP: Duration = Duration::from_secs(20);

/// A running node, but for the sockets.
#[derive(Debug)]
pub struct App {
    state: AppState,
    applications: Applications,
    tasks: TaskTracker,
    stop: CancellationToken,
    traces: Option<Traces>,
    /// The lock of the data folder, held for as long as the node runs.
    _data_lock: Option<File>,
}

impl App {
    /// Opens the stores, migrates, and starts the engines. The runtimes are those that will serve its connections.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn start(config: &Config, runtimes: Runtimes, clock: Clock) -> Result<Self, String> {
        config.check()?;
        let auth = Arc::new(Auth::new(&config.auth.auth(), clock.clone())?);
        let metrics = telemetry::metrics();
        let traces = Traces::start(&config.traces)?;
        let stores = Stores::open(&config.stores, &config.cache, clock.clone()).await?;
        let (db, cache, guard, heads) = (&stores.db, &stores.cache, &stores.guard, &stores.heads);
        let replica = Replica::open(&config.replica, &config.stores, db, clock.clone())?;
        let bell = Bell::default();
        let events = Arc::new(Publisher::new(&config.events, &config.cache.cache_prefix, db.clone(), Arc::clone(cache), bell.clone()));
        let (hot, fan_out) = (Arc::new(HotUsers::new(cache.is_shared())), Arc::<FanOut>::default());
        let engines = lanes::LaneEngines {
            owners: stores.owners.clone(),
            db: db.clone(),
            cache: Arc::clone(cache),
            guard: Arc::clone(guard),
            heads: Arc::clone(heads),
            clock: clock.clone(),
            bell,
            row_sets: ROW_SETS,
            after_commit: Arc::new([Arc::<HotUsers>::clone(&hot), Arc::<FanOut>::clone(&fan_out)]),
        };
        let clocks = ClockCheck::begin(db.clone(), config, clock.clone()).await?;
        let lanes = Lanes::start(&config.lanes, &engines);
        let turns = config.polls.turns(db.read_connections());
        let Readers { entries, last_seen, views, chats, summaries } = Readers::new(config, &stores, &lanes, &turns, &clock);
        let polling = Arc::new(Polling {
            cache: Arc::clone(cache),
            heads: Arc::clone(heads),
            waiting: Waiting::new(config.polls.waiting_polls, config.polls.waiting_shares(auth.is_open())),
            draining: CancellationToken::new(),
            interval: Interval::new(config.polls.poll_interval),
            clock: clock.clone(),
        });
        let group_changes = GroupChanges::new();
        let receipts = Receipts::new(&config.receipts, db.clone(), turns, Arc::clone(&group_changes));
        let pages = PageReads::new(db.clone(), replica.clone());
        let Stores { db, cache, guard, heads, data_lock, .. } = stores;
        let engines = Engines {
            auth,
            lanes,
            entries,
            chats,
            views,
            summaries,
            db,
            pages,
            cache,
            guard,
            heads,
            last_seen,
            clock,
            group_changes,
            receipts,
            fan_out,
            hot,
            events,
            polling,
            metrics,
            runtimes,
        };
        let state = AppState::new(engines, config);
        let edge = EdgeConfig { tracer: traces.as_ref().map(Traces::tracer), ..config.http.edge(state.auth.is_open()) };
        let limiter = edge.limiter.clone();
        let applications = router::build(&state, edge, config.http.admin_listen.is_some());
        let this = Self { state, applications, traces, tasks: TaskTracker::new(), stop: CancellationToken::new(), _data_lock: data_lock };
        this.spawn_tasks(config, clocks, limiter, replica);
        Ok(this)
    }

    pub fn router(&self) -> Router {
        self.applications.main.router().clone()
    }

    /// The same with the shorter way of polls, to be served.
    #[must_use]
    pub fn application(&self) -> Application {
        self.applications.main.clone()
    }

    /// That of operators, where they have a listener of their own.
    #[must_use]
    pub fn admin_application(&self) -> Option<Application> {
        self.applications.admin.clone()
    }

    #[must_use]
    pub fn state(&self) -> &AppState {
        &self.state
    }

    /// Waiting polls are answered and `/readyz` says no from now on.
    pub fn begin_drain(&self) {
        self.state.polling.draining.cancel();
    }

    /// Resolves should this node have to stop because another has taken over what it must hold
    /// alone.
    pub async fn displaced(&self) {
        while !self.state.guard.must_stop() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Finishes the queued writes, stops the tasks and closes the stores. Call it when no more
    /// requests come.
    pub async fn stop(self) {
        self.begin_drain();
        in_time("the days of users to be noted", self.state.last_seen.note_all()).await;
        in_time("the lanes to finish", self.state.lanes.drain()).await;
        self.stop.cancel();
        self.tasks.close();
        in_time("the tasks to end", self.tasks.wait()).await;
        self.state.guard.release().await;
        if let Some(traces) = self.traces {
            in_time("the last spans", traces.stop()).await;
        }
        in_time("the database to close", self.state.db.close()).await;
    }

    fn spawn_tasks(&self, config: &Config, clocks: ClockCheck, limiter: Option<Arc<Limiter>>, replica: Option<Arc<Replica>>) {
        let contexts = &self.state.contexts;
        self.tasks.spawn(Arc::clone(&self.state.guard).run(Arc::clone(&self.state.heads), self.stop.clone()));
        self.tasks.spawn(Arc::clone(&self.state.heads).run(self.stop.clone()));
        self.tasks.spawn(Arc::clone(&self.state.events).run(self.stop.clone()));
        self.tasks.spawn(Arc::clone(&self.state.last_seen).run(self.stop.clone()));
        self.tasks.spawn(Arc::clone(&self.state.entries).let_live_on(self.stop.clone()));
        self.tasks.spawn(relations::worker::run(Arc::clone(&contexts.worker), self.stop.clone()));
        self.tasks.spawn(sweeps::run(self.state.clone(), clocks, self.stop.clone()));
        self.tasks.spawn(Arc::clone(&self.state.auth).follow_keys(self.stop.clone()));
        self.tasks.spawn(fold_metrics(self.state.metrics.clone(), self.stop.clone()));
        if let Some(limiter) = limiter {
            self.tasks.spawn(limiter.run(self.stop.clone()));
        }
        if let Some(replica) = replica {
            self.tasks.spawn(replica.run(self.stop.clone()));
        }
        self.tasks.spawn(fan_out::run(Arc::clone(&contexts.fan_out), self.stop.clone()));
        self.tasks.spawn(push::run(Arc::clone(&contexts.push), self.stop.clone()));
        self.tasks.spawn(removal::run(Arc::clone(&contexts.removal), self.stop.clone()));
        self.tasks.spawn(scrub::run(Arc::clone(&contexts.scrub), config.scrub.clone(), self.stop.clone()));
    }
}

async fn in_time(what: &str, step: impl Future<Output = ()>) {
    if tokio::time::timeout(MAX_STOP_STEP, step).await.is_err() {
        tracing::warn!("stopping without waiting longer for {what}");
    }
}

async fn fold_metrics(metrics: PrometheusHandle, stop: CancellationToken) {
    let mut tick = tokio::time::interval(UPKEEP_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => metrics.run_upkeep(),
        }
    }
}
