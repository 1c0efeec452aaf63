//! A Redis of a test's own, which it may kill, stall and flush.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A `redis-server` on a free port, without persistence. Killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    dir: std::path::PathBuf,
    more: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts one in this folder.
    pub async fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[]).await
    }

    /// The same with further arguments.
    pub async fn start_with(dir: &Path, more: &[&str]) -> Self {
        let more: Vec<_> = more.iter().map(ToString::to_string).collect();
        for _ in 0..5 {
            let mut server = Self { port: free_port(), dir: dir.to_owned(), more: more.clone(), child: None };
            if server.starts().await {
                return server;
            }
            // Somebody has taken the port meanwhile.
        }
        panic!("redis-server {more:?} ends at once");
    }

    /// Starts one that follows another, and waits until it has what that one has.
    pub async fn replica_of(master: &Self, dir: &Path) -> Self {
        let replica = Self::start(dir).await;
        replica.follow(master).await;
        let size = async |server: &Self| format!("{:?}", server.ask(&["DBSIZE"]).await);
        super::eventually("the replica has everything", async || {
            format!("{:?}", replica.ask(&["ROLE"]).await).contains("connected") && size(&replica).await == size(master).await
        })
        .await;
        replica
    }

    /// A replica follows nobody any more: what its master is told from here on, it loses.
    pub async fn promote(&self) {
        self.ask(&["REPLICAOF", "NO", "ONE"]).await;
    }

    /// From here on it is a replica of another one. Clients keep their connections.
    pub async fn follow(&self, master: &Self) {
        self.ask(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]).await;
    }

    /// A replica hears nothing of its master any more: it is thrown out, and shows a password that the
    /// master does not take. (One that stands still finds the rest in its socket later.)
    pub async fn cut_off_from(&self, master: &Self) {
        self.ask(&["CONFIG", "SET", "masterauth", "wrong"]).await;
        master.ask(&["CLIENT", "KILL", "TYPE", "replica"]).await;
        super::eventually("it is cut off", async || {
            let role = format!("{:?}", self.ask(&["ROLE"]).await);
            role.contains("slave") && !role.contains("connected")
        })
        .await;
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it again, empty, at the same address, and waits until it answers.
    pub async fn restart(&mut self) {
        assert!(self.starts().await, "redis-server ends at once");
    }

    /// Whether it answers, and has not ended at once.
    async fn starts(&mut self) -> bool {
        let mut child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--save", "", "--appendonly", "no", "--dir"])
            .arg(&self.dir)
            .args(&self.more)
            .stdout(Stdio::null())
            .spawn()
            .expect("these tests start redis-server; install it");
        let mut has_ended = false;
        super::eventually("redis-server answers", async || {
            has_ended = child.try_wait().unwrap().is_some();
            has_ended || self.try_ask(&["PING"]).await.is_ok()
        })
        .await;
        self.child = Some(child);
        !has_ended
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// It stops answering, and keeps what it has.
    pub async fn stall(&self) {
        super::process::kill("-STOP", self.id());
        super::process::stands_still(self.id()).await;
    }

    /// It goes on.
    pub fn go_on(&self) {
        super::process::kill("-CONT", self.id());
    }

    fn id(&self) -> u32 {
        self.child.as_ref().expect("a running server").id()
    }

    /// Sends one command.
    pub async fn ask(&self, words: &[&str]) -> deadpool_redis::redis::Value {
        self.try_ask(words).await.unwrap()
    }

    async fn try_ask(&self, words: &[&str]) -> deadpool_redis::redis::RedisResult<deadpool_redis::redis::Value> {
        ask(&mut connect(&self.url()).await?, words).await
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Connects for a test's own questions.
pub async fn connect(url: &str) -> deadpool_redis::redis::RedisResult<MultiplexedConnection> {
    let client = deadpool_redis::redis::Client::open(url)?;
    match tokio::time::timeout(Duration::from_secs(1), client.get_multiplexed_async_connection()).await {
        Ok(connected) => connected,
        Err(_) => Err(deadpool_redis::redis::RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut))),
    }
}

/// Sends one command.
pub async fn ask(
    connection: &mut MultiplexedConnection,
    words: &[&str],
) -> deadpool_redis::redis::RedisResult<deadpool_redis::redis::Value> {
    let (name, arguments) = words.split_first().expect("a command");
    deadpool_redis::redis::cmd(name).arg(arguments).query_async(connection).await
}
