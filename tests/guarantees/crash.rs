//! What was acknowledged survives the database's own crash recovery.

use serde_json::json;
use sqlx::{Connection as _, PgConnection};

use crate::support::{Client, PostgresServer, Tier, World, eventually_within};

/// The head that a poll shows, degraded or not.
async fn shown(client: &Client) -> i64 {
    client.get("/v1/users/1/badges").await.body["counters"]["dm"]["head"].as_i64().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_crash_of_the_database_loses_nothing_acknowledged() {
    let mut world = World::new(Tier::Server).await;
    let cluster = PostgresServer::start(&world.dir);
    world.database_url = cluster.url();
    let node = world.node().await;
    let client = node.client.clone();
    let load = tokio::spawn(async move {
        let mut acknowledged = Vec::new();
        for n in 0..400 {
            // The same key until it is acknowledged: a crash in between must neither lose it nor
            // count it twice.
            while client.post_once("/v1/users/1/badges/dm/increment", &format!("k{n}"), &json!({})).await.status != 200 {}
            acknowledged.push(n);
        }
        acknowledged.len()
    });
    for crash in 1..=2 {
        eventually_within(20, "some writes went through", async || shown(&node.client).await > crash * 40).await;
        cluster.crash();
        cluster.begin();
    }
    assert_eq!(load.await.unwrap(), 400);
    let mut conn = PgConnection::connect(&cluster.url()).await.unwrap();
    let (marks,): (String,) = sqlx::query_as("select marks from users where user_id = 1").fetch_one(&mut conn).await.unwrap();
    assert_eq!(marks, "c:dm 400 400");
    eventually_within(20, "the node shows it", async || shown(&node.client).await == 400).await;
}
