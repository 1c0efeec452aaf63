//! A node loses its stores while no file descriptor is free to connect to them again: callers hold
//! them all, and more wait for one. It says so, spins nowhere, and has its stores back by itself once
//! there are free ones.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::stores::INCREMENT;
use crate::support::wire::Wire;
use crate::support::{Process, Proxy, Tier, World, eventually_within};

/// How many files the node may open: enough for itself and its stores.
const FILES: usize = 150;

/// How long there are none.
const WITHOUT: Duration = Duration::from_secs(5);

/// How much of that time the node may compute. A loop that spins would take all of it.
const CPU_SECONDS: f64 = 2.5;

/// How often it may try in vain to accept a connection, meanwhile and before.
const MOST_TRIES: usize = 1000;

/// The one connection of a client that is served all the time.
struct Served(Wire);

impl Served {
    async fn get(&mut self, path: &str) -> Value {
        serde_json::from_str(&self.0.get(path, "").await.unwrap().body).unwrap()
    }

    /// Writes under a key; the head where it was acknowledged. A refusal may only be one that is
    /// repeated.
    async fn write(&mut self, key: &str) -> Option<i64> {
        let reply = self.0.post_once(INCREMENT, key, "{}").await.unwrap();
        assert!([200, 503].contains(&reply.status()), "{}{}", reply.head, reply.body);
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        body["head"].as_i64().filter(|_| reply.status() == 200)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_stores_are_lost_while_no_file_is_free() {
    let mut world = World::new(Tier::Server).await;
    let (postgres, database_url) = Proxy::start(&world.database_url).await;
    let (redis, redis_url) = Proxy::start_redis(&world.redis_url).await;
    (world.database_url, world.redis_url) = (database_url, redis_url);
    let log = world.dir.join("log");
    let args: Vec<String> = world.args().into_iter().skip(1).collect();
    let node = Process::start_after(&format!("ulimit -n {FILES}"), &args, &[], &log).await;
    let mut client = Served(Wire::connect(&node.base).await.unwrap());
    let mut acknowledged = Vec::new();
    for n in 0..5 {
        acknowledged.push((format!("before-{n}"), client.write(&format!("before-{n}")).await.unwrap()));
    }
    client.get("/v1/users/1/badges").await;

    // More than fit: the others wait, and take each file that becomes free.
    let address = node.base.strip_prefix("http://").unwrap().to_owned();
    let mut callers = Vec::new();
    for _ in 0..FILES + 64 {
        callers.push(TcpStream::connect(&address).await.unwrap());
    }
    let failed = || std::fs::read_to_string(&log).unwrap().matches("cannot accept a connection").count();
    eventually_within(10, "no file is left", async || failed() > 0).await;
    postgres.leave();
    redis.leave();
    let before = failed();
    eventually_within(10, "callers have taken those of the stores", async || failed() > before + 5).await;
    postgres.come_back().await;
    redis.come_back().await;

    let (began, computed, mut n) = (Instant::now(), node.cpu_seconds(), 0);
    while began.elapsed() < WITHOUT {
        assert_eq!(client.write(&format!("during-{n}")).await, None, "no store can be reached");
        let shown = client.get("/v1/users/1/badges").await;
        assert!(shown["degraded"] == true || shown["counters"]["mention"]["head"] == 5, "nothing came after it: {shown}");
        n += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let computed = node.cpu_seconds() - computed;
    assert!(computed < CPU_SECONDS, "{computed} s of {WITHOUT:?}");
    assert!(failed() < MOST_TRIES, "{} tries", failed());

    drop(callers);
    eventually_within(30, "it has its stores back", async || {
        let ready = client.get("/readyz").await;
        ready["degraded"] == false && ready["cache"] == "ok"
    })
    .await;
    for (key, head) in acknowledged {
        assert_eq!(client.write(&key).await, Some(head), "it counted, and counts once");
    }
    let head = client.write("after").await.unwrap();
    assert!((6..=6 + n).contains(&head), "{head}");
    let shown = client.get("/v1/users/1/badges").await;
    assert_eq!((&shown["degraded"], &shown["counters"]["mention"]["head"]), (&json!(false), &json!(head)), "{shown}");
}
