//! The path to the database forgets a connection.
//!
//! Postgres without Redis: the database hears of it later than the node. Meanwhile it keeps what the
//! connection held, such as the node lock. With Redis too: the node never hears of it.

use std::time::Duration;

use headmark::db::Statement;
use reqwest::Method;
use serde_json::json;

use crate::support::{Client, Hand, Process, Proxy, Tier, World, eventually_within};

const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

/// How much later the database hears of it.
const NOTICE: Duration = Duration::from_secs(5);

/// A node alone, and the path to its database.
async fn scene() -> (World, Proxy, Process) {
    let mut world = World::new(Tier::Server).await;
    world.redis_url.clear();
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let node = world.process(&[], &[]).await;
    assert_eq!(node.client.post(INCREMENT, &json!({})).await.ok()["head"], 1);
    (world, proxy, node)
}

/// Whether a node that runs takes a write.
async fn writes(client: &Client) -> bool {
    let request = client.request(reqwest::Method::POST, INCREMENT).json(&json!({}));
    Client::try_send(request).await.expect("the process runs on").status == 200
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_runs_on_while_the_database_keeps_its_lost_connection() {
    let (_world, proxy, node) = scene().await;
    proxy.forget(NOTICE);
    eventually_within(5, "it has lost the lock", async || !writes(&node.client).await).await;
    eventually_within(20, "it writes again", async || writes(&node.client).await).await;
    // It would have ended by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(writes(&node.client).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_a_node_alone_starts_while_the_database_keeps_its_lost_connection() {
    let (world, proxy, mut node) = scene().await;
    proxy.forget(NOTICE);
    node.kill().await;
    let next = world.process(&[], &[]).await;
    assert_eq!(next.client.post(INCREMENT, &json!({})).await.ok()["head"], 2);
}

/// Postgres looks after the session with the lock by itself: by default that would take it two hours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_asks_soon_whether_the_holder_of_the_lock_is_there() {
    static SETTING: Statement = Statement::one("select current_setting('tcp_keepalives_idle')", &[]);
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let mut watched = node.app.state().db.connect_watched().await.unwrap();
    let idle: Vec<(String,)> = watched.fetch(&SETTING, &[]).await.unwrap();
    assert_eq!(idle, [("4".to_owned(),)]);
    node.stop().await;
}

/// By how much answers come later, so that the test can act while one is under way.
const SLOW: Duration = Duration::from_millis(600);

/// Whether something is accepted, and the worker has just asked what is pending.
const IS_READING: &str = "select cast(count(*) > 0 as text) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query like '%select o.seq, o.low_id, o.high_id' || chr(10) || '%'
        and clock_timestamp() - query_start < interval '250 ms' and exists (select from operations where status = 0)";

/// The driver would wait for ever for the answers that are under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_is_done_although_the_path_swallows_connections_without_a_word() {
    let mut world = World::new(Tier::Server).await;
    let mut hand = Hand::on(&world).await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let node = world.node().await;
    proxy.slow(SLOW);
    let client = node.client.clone();
    let follow = move |fan: i64| {
        Client::send(client.request(Method::PUT, &format!("/v1/users/{fan}/following/1")).header("prefer", "respond-async"))
    };
    let accepted = tokio::spawn(futures_util::future::join_all((2..12).map(follow)));
    eventually_within(20, "the worker reads what is pending", async || hand.text(IS_READING).await == "true").await;
    proxy.swallow(NOTICE);
    proxy.slow(Duration::ZERO);
    let accepted: Vec<_> = accepted.await.unwrap().into_iter().filter(|reply| reply.status == 202).collect();
    assert!(!accepted.is_empty(), "one rings for the worker");
    eventually_within(30, "all are done", async || {
        hand.text("select cast(count(*) as text) from operations where status = 0").await == "0"
    })
    .await;
    let follows: usize = hand.text("select cast(count(*) as text) from followers where followee_id = 1").await.parse().unwrap();
    assert!(follows >= accepted.len());
}
