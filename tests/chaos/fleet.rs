//! The nodes of a run, as processes, and stores of their own.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Run;
use super::findings::Findings;
use crate::support::{Nodes, PostgresServer, Process, RedisServer, Tier, World};

/// How every node is started. The scrubber looks at everybody all the time: what it finds is drift.
const ARGS: [&str; 4] = ["--follower-badge", "follow", "--scrub-users", "50"];

/// The stores and the nodes. All of them end when this is dropped, in the order of the fields: the
/// world comes last, as its folder holds the data of the stores.
#[derive(Debug)]
pub struct Fleet {
    pub processes: Vec<Process>,
    nodes: Nodes,
    pub redis: Option<RedisServer>,
    pub postgres: Option<PostgresServer>,
    pub world: World,
    /// What each node is told beside [`ARGS`].
    more: Vec<String>,
}

impl Fleet {
    /// Two nodes on the server tier, the one on the embedded tier.
    pub async fn start(tier: Tier) -> Self {
        Self::start_with(tier, Vec::new()).await
    }

    /// The same with further arguments.
    pub async fn start_with(tier: Tier, more: Vec<String>) -> Self {
        let mut world = World::new(tier).await;
        let (mut postgres, mut redis) = (None, None);
        if tier == Tier::Server {
            let server = PostgresServer::start(&world.dir);
            world.database_url = server.url();
            postgres = Some(server);
            let server = RedisServer::start(&world.dir).await;
            world.redis_url = server.url();
            redis = Some(server);
        }
        let mut this = Self { processes: Vec::new(), nodes: Nodes::default(), redis, postgres, world, more };
        for at in 0..if tier == Tier::Server { 2 } else { 1 } {
            let process = this.process().await;
            this.nodes.set(at, Some(process.client.clone()));
            this.processes.push(process);
        }
        this
    }

    /// What the tasks of a run on this fleet share.
    pub fn run(&self) -> Run {
        Run {
            ledger: Arc::default(),
            findings: Findings::new(),
            nodes: self.nodes.clone(),
            pace: Arc::default(),
            latencies: Arc::default(),
            over: CancellationToken::new(),
        }
    }

    async fn process(&self) -> Process {
        let args: Vec<&str> = ARGS.into_iter().chain(self.more.iter().map(String::as_str)).collect();
        self.world.process(&args, &[]).await
    }

    /// SIGKILL, and another in its place.
    pub async fn kill(&mut self, at: usize) {
        self.nodes.set(at, None);
        self.processes[at].kill().await;
        self.replace(at).await;
    }

    /// SIGTERM under load; whether it ended well. Another takes its place.
    pub async fn drain(&mut self, at: usize) -> bool {
        self.processes[at].terminate();
        let ended = self.processes[at].ended().await;
        self.nodes.set(at, None);
        self.replace(at).await;
        ended.success()
    }

    async fn replace(&mut self, at: usize) {
        self.processes[at] = self.process().await;
        self.nodes.set(at, Some(self.processes[at].client.clone()));
    }
}
