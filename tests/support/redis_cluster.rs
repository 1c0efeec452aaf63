//! A Redis Cluster of a test's own: three masters, each with a replica.

use std::path::Path;
use std::process::Command;

use deadpool_redis::redis::from_redis_value;

use super::RedisServer;
use super::redis::free_port;

/// How long a master may be silent before the others call it down, in milliseconds.
const NODE_TIMEOUT_MS: u32 = 3000;

const MASTERS: usize = 3;

/// Of a cluster. The first master has the lowest.
const SLOTS: usize = 16_384;

/// Three masters that hold all slots between them, and behind them their replicas.
#[derive(Debug)]
pub struct RedisCluster {
    servers: Vec<RedisServer>,
    /// Which of them follows the first.
    follower: usize,
}

impl RedisCluster {
    pub async fn start(dir: &Path) -> Self {
        let mut servers = Vec::new();
        for at in 0..2 * MASTERS {
            let dir = dir.join(format!("cluster-{at}"));
            std::fs::create_dir(&dir).unwrap();
            let (timeout, bus) = (NODE_TIMEOUT_MS.to_string(), free_port().to_string());
            let more = ["--cluster-enabled", "yes", "--cluster-node-timeout", &timeout, "--cluster-port", &bus];
            servers.push(RedisServer::start_with(&dir, &more).await);
        }
        let made = Command::new("redis-cli")
            .args(["--cluster", "create", "--cluster-yes", "--cluster-replicas", "1"].map(str::to_owned))
            .args(servers.iter().map(|server| format!("127.0.0.1:{}", server.port())))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        let mut cluster = Self { servers, follower: 0 };
        for server in &cluster.servers {
            super::eventually_within(20, "the cluster is up", async || {
                format!("{:?}", server.ask(&["CLUSTER", "INFO"]).await).contains("cluster_state:ok")
                    && format!("{:?}", server.ask(&["CLUSTER", "NODES"]).await).matches("slave ").count() == MASTERS
            })
            .await;
        }
        super::eventually_within(20, "the replicas follow", async || {
            let mut following = 0;
            for server in &cluster.servers {
                following += usize::from(format!("{:?}", server.ask(&["ROLE"]).await).contains("connected"));
            }
            following == MASTERS
        })
        .await;
        let first = format!("int({})", cluster.servers[0].port());
        for at in MASTERS..2 * MASTERS {
            if format!("{:?}", cluster.servers[at].ask(&["ROLE"]).await).contains(&first) {
                cluster.follower = at;
            }
        }
        assert!(cluster.follower > 0, "none follows the first");
        cluster
    }

    /// The replica of the first master hears nothing more of it.
    pub async fn cut_off_follower(&self) {
        self.servers[self.follower].cut_off_from(&self.servers[0]).await;
    }

    /// What REDIS_URL names.
    pub fn urls(&self) -> String {
        self.servers.iter().map(RedisServer::url).collect::<Vec<_>>().join(",")
    }

    /// Whether a key with this in braces is the first master's.
    pub async fn is_of_first(&self, tag: &str) -> bool {
        let slot: u16 = from_redis_value(self.servers[0].ask(&["CLUSTER", "KEYSLOT", tag]).await).unwrap();
        usize::from(slot) < SLOTS / MASTERS
    }

    /// Waits until the replica of the first master has all that it has.
    pub async fn followed(&self) {
        let offset = async |server: &RedisServer| {
            let info: String = from_redis_value(server.ask(&["INFO", "replication"]).await).unwrap();
            info.lines().find_map(|line| line.strip_prefix("master_repl_offset:").map(str::to_owned)).unwrap()
        };
        super::eventually("it has all", async || offset(&self.servers[0]).await == offset(&self.servers[self.follower]).await).await;
    }

    /// SIGKILL to the first master.
    pub fn kill_first(&mut self) {
        self.servers[0].kill();
    }

    /// The first master stops answering.
    pub async fn stall_first(&self) {
        self.servers[0].stall().await;
    }

    pub fn first_goes_on(&self) {
        self.servers[0].go_on();
    }

    /// Waits until a replica has taken over from the first master.
    pub async fn taken_over(&self) {
        super::eventually_within(20, "a replica takes over", async || {
            let mut masters = 0;
            for server in &self.servers[1..] {
                masters += usize::from(format!("{:?}", server.ask(&["ROLE"]).await).contains("master\""));
            }
            masters == MASTERS
        })
        .await;
    }
}
