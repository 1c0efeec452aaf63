//! The nodes of a case: in this process, with a clock of the test's own, or as processes, which can
//! be killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headmark::features::relations::mute_http::sweep_mutes;

use crate::support::{Client, Node, Process, Tier, World, ask, connect};

/// How every node is started. Scrubbers look at everybody all the time: what they find is drift.
const ARGS: [&str; 6] = ["--follower-badge", "follow", "--request-badge", "like", "--scrub-users", "200"];

/// How much later it is at each step, where the clock is the test's own.
const STEP_MS: i64 = 1000;

#[derive(Debug)]
enum Running {
    Here(Box<Node>),
    Apart(Box<Process>),
    /// It was killed.
    Dead,
}

/// Nodes that several cases share, each case with users of its own.
#[derive(Debug)]
pub struct Fleet {
    pub world: World,
    /// The time, where the nodes are in this process.
    clock: Option<Arc<AtomicI64>>,
    nodes: Vec<Running>,
    /// How many cases there were.
    pub cases: i64,
}

impl Fleet {
    /// Nodes in this process.
    pub async fn here(tier: Tier) -> Self {
        Self::start(World::new(tier).await, Some(Arc::new(AtomicI64::new(1_800_000_000_000)))).await
    }

    /// The same on a Postgres without partitions.
    pub async fn on_plain_tables() -> Self {
        let world = World::with_partitions(Tier::Server, 1).await;
        Self::start(world, Some(Arc::new(AtomicI64::new(1_800_000_000_000)))).await
    }

    /// Nodes as processes.
    pub async fn apart(tier: Tier) -> Self {
        Self::start(World::new(tier).await, None).await
    }

    async fn start(world: World, clock: Option<Arc<AtomicI64>>) -> Self {
        let tier = world.tier;
        let mut this = Self { world, clock, nodes: Vec::new(), cases: 0 };
        for _ in 0..if tier == Tier::Server { 2 } else { 1 } {
            let node = this.run().await;
            this.nodes.push(node);
        }
        this
    }

    async fn run(&self) -> Running {
        match &self.clock {
            Some(clock) => Running::Here(Box::new(self.world.node_at(clock, &ARGS).await)),
            None => Running::Apart(Box::new(self.world.process(&ARGS, &[]).await)),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn client(&self, node: usize) -> Client {
        match &self.nodes[node % self.nodes.len()] {
            Running::Here(node) => node.client.clone(),
            Running::Apart(process) => process.client.clone(),
            Running::Dead => panic!("node {node} is dead"),
        }
    }

    /// Those that are in this process.
    pub fn here_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter_map(|node| match node {
            Running::Here(node) => Some(&**node),
            Running::Apart(_) | Running::Dead => None,
        })
    }

    /// The time, where it is the test's own.
    pub fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.load(Ordering::Relaxed))
    }

    /// It is so many steps later.
    pub fn pass(&self, steps: usize) {
        if let Some(clock) = &self.clock {
            clock.fetch_add(STEP_MS * i64::try_from(steps).unwrap(), Ordering::Relaxed);
        }
    }

    /// Each node that is in this process hears of all that others did.
    pub async fn catch_up(&self) {
        for node in self.here_nodes() {
            node.app.state().heads.catch_up().await.unwrap();
        }
    }

    /// Ends a node and starts it again: as on SIGTERM where it is in this process, else by SIGKILL.
    pub async fn restart(&mut self, node: usize) {
        let at = node % self.nodes.len();
        match std::mem::replace(&mut self.nodes[at], Running::Dead) {
            Running::Here(node) => node.stop().await,
            Running::Apart(mut process) => process.kill().await,
            Running::Dead => {}
        }
        self.nodes[at] = self.run().await;
    }

    /// Kills a process after a while. [`Fleet::restart`] has another in its place.
    pub async fn kill(&mut self, node: usize, after: Duration) {
        let at = node % self.nodes.len();
        tokio::time::sleep(after).await;
        if let Running::Apart(mut process) = std::mem::replace(&mut self.nodes[at], Running::Dead) {
            process.kill().await;
        }
    }

    /// Takes out of the cache what it holds of one user, or everything.
    pub async fn forget(&self, user: Option<i64>) {
        if self.world.tier == Tier::Embedded {
            return self.here_nodes().for_each(|node| node.app.state().cache.clear());
        }
        let mut redis = connect(&self.world.redis_url).await.unwrap();
        let pattern = format!("{}{{u:{}}}", self.world.prefix, user.map_or("*".to_owned(), |user| user.to_string()));
        let keys: Vec<String> = deadpool_redis::redis::from_redis_value(ask(&mut redis, &["KEYS", &pattern]).await.unwrap()).unwrap();
        for key in keys {
            ask(&mut redis, &["DEL", &key]).await.unwrap();
        }
    }

    /// Nodes in this process remove the mutes that have ended.
    pub async fn sweep_mutes(&self) {
        for node in self.here_nodes() {
            sweep_mutes(&node.app.state().contexts.relations).await.unwrap();
        }
    }

    /// Drops what a node in this process keeps of lists and of what users share.
    pub fn evict(&self, node: usize, heads: bool) {
        if let Running::Here(node) = &self.nodes[node % self.nodes.len()] {
            let state = node.app.state();
            if heads { state.heads.forget_all() } else { state.summaries.parts.feed.feeds.clear() }
        }
    }
}
