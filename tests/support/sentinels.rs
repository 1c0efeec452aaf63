//! Sentinels of a test's own, which fail over for real.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use deadpool_redis::redis::{RedisResult, from_redis_value};

use super::RedisServer;
use super::redis::{ask, connect, free_port};

/// The name of the master that they watch.
pub const MASTER: &str = "headmark";

/// How long a master may be silent before they call it down, in milliseconds.
const DOWN_AFTER_MS: u32 = 500;

/// `redis-server --sentinel` processes that watch one master. Killed when dropped.
#[derive(Debug)]
pub struct Sentinels(Vec<(u16, Child)>);

impl Sentinels {
    /// Starts so many, of which most must agree, and waits until they know each other and the replicas.
    pub async fn start(dir: &Path, count: usize, master: &RedisServer, replicas: usize) -> Self {
        let quorum = count / 2 + 1;
        let started = (0..count).map(|_| {
            let port = free_port();
            let file = dir.join(format!("sentinel-{port}.conf"));
            let settings = format!(
                "bind 127.0.0.1\nport {port}\nsentinel monitor {MASTER} 127.0.0.1 {} {quorum}\n\
                 sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\nsentinel failover-timeout {MASTER} 10000\n",
                master.port()
            );
            std::fs::write(&file, settings).unwrap();
            let mut command = Command::new("redis-server");
            command.arg(&file).arg("--sentinel").current_dir(dir).stdout(Stdio::null());
            (port, command.spawn().expect("these tests start redis-server; install it"))
        });
        let sentinels = Self(started.collect());
        for at in 0..count {
            let expected = [("num-slaves", replicas), ("num-other-sentinels", count - 1)];
            super::eventually_within(20, "the Sentinels know each other", async || {
                let Ok(about) = sentinels.ask(at, &["SENTINEL", "MASTER", MASTER]).await else { return false };
                let about: std::collections::HashMap<String, String> = from_redis_value(about).unwrap();
                expected.iter().all(|(name, count)| about.get(*name) == Some(&count.to_string())) && about["flags"] == "master"
            })
            .await;
        }
        sentinels
    }

    /// What REDIS_URL names.
    pub fn urls(&self) -> String {
        (0..self.0.len()).map(|at| self.url(at)).collect::<Vec<_>>().join(",")
    }

    fn url(&self, at: usize) -> String {
        format!("redis://127.0.0.1:{}", self.0[at].0)
    }

    /// How many name this Redis as the master.
    pub async fn naming(&self, server: &RedisServer) -> usize {
        let mut naming = 0;
        for at in 0..self.0.len() {
            let named = self.ask(at, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).await;
            let named = named.and_then(|named| Ok(from_redis_value::<(String, u16)>(named)?));
            naming += usize::from(named.is_ok_and(|(_, port)| port == server.port()));
        }
        naming
    }

    /// SIGKILL to one of them.
    pub fn kill(&mut self, at: usize) {
        self.0[at].1.kill().unwrap();
        self.0[at].1.wait().unwrap();
    }

    pub async fn ask(&self, at: usize, words: &[&str]) -> RedisResult<deadpool_redis::redis::Value> {
        ask(&mut connect(&self.url(at)).await?, words).await
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for at in 0..self.0.len() {
            self.kill(at);
        }
    }
}
