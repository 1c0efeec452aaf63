//! Redis servers of a test's own, which it may stop, stall and flush.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::*;

/// A `redis-server` on a free port, without persistence; killed when dropped.
pub(super) struct Server {
    port: u16,
    dir: PathBuf,
    more: Vec<String>,
    child: Option<Child>,
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::start_with(Vec::new()).await
    }

    pub(super) async fn start_with(more: Vec<String>) -> Self {
        let dir = std::env::temp_dir().join(format!("headmark-test-{:x}", Nonces::new().next()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut server = Self { port: free_port(), dir, more, child: None };
        server.restart().await;
        server
    }

    /// A node of a cluster to be, with a free port for the others too.
    async fn start_node() -> Self {
        let words = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--cluster-port"];
        let mut more: Vec<String> = words.map(str::to_owned).into();
        more.push(free_port().to_string());
        Self::start_with(more).await
    }

    pub(super) async fn restart(&mut self) {
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--save", "", "--appendonly", "no", "--dir"])
            .arg(&self.dir)
            .args(&self.more)
            .stdout(Stdio::null())
            .spawn()
            .expect("these tests start redis-server; install it");
        self.child = Some(child);
        let url = self.url();
        eventually("redis-server answers", || async {
            let client = deadpool_redis::redis::Client::open(&*url).unwrap();
            let Ok(mut connection) = client.get_multiplexed_async_connection().await else { return false };
            deadpool_redis::redis::cmd("PING").exec_async(&mut connection).await.is_ok()
        })
        .await;
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        std::fs::remove_dir_all(&self.dir).ok();
    }
}

/// Three masters that hold all slots between them.
pub(super) async fn cluster() -> Vec<Server> {
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(Server::start_node().await);
    }
    let made = Command::new("redis-cli")
        .args(["--cluster", "create", "--cluster-yes"].into_iter().map(str::to_owned))
        .args(servers.iter().map(|server| format!("127.0.0.1:{}", server.port)))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    for server in &servers {
        let url = server.url();
        eventually("the cluster is up", || async {
            Raw::connect(&url).await.ask::<String>(&["CLUSTER", "INFO"]).await.contains("cluster_state:ok")
        })
        .await;
    }
    servers
}
