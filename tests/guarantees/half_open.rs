//! Postgres without Redis: the path to the database forgets a connection, and the database hears of it
//! later than the node. Meanwhile it keeps what the connection held, such as the node lock.

use std::time::Duration;

use headmark::db::Statement;
use serde_json::json;

use crate::support::{Client, Process, Proxy, Tier, World, eventually_within};

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
