//! The entries of who polls live on without SQL, and one that is outdated still ends in time.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Client, Hand, Node, Tier, World};

/// The shortest life that can be set.
const TTL: Duration = Duration::from_secs(10);

async fn two_nodes(world: &World) -> [Node; 2] {
    let ttl = TTL.as_secs().to_string();
    // The scrubber would find what a hand has changed.
    let args = ["--cache-ttl-s", ttl.as_str(), "--scrub-users", "0"];
    [world.node_with(&args).await, world.node_with(&args).await]
}

/// Polls both nodes by turns for so long, and at most until they show something else than before. For how long that took.
async fn poll(nodes: &[Node; 2], before: &Value, most: Duration) -> Duration {
    let begun = Instant::now();
    while begun.elapsed() < most {
        for node in nodes {
            if node.client.summary(1).await != *before {
                return begun.elapsed();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    most
}

/// How often an entry has lived on, on either node.
async fn lived_on(client: &Client) -> f64 {
    let metrics = client.get("/metrics").await.text;
    let line = metrics.lines().find_map(|line| line.strip_prefix("headmark_cache_extended_total "));
    line.map_or(0.0, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_polls_again_and_again_does_not_read_sql_again() {
    let world = World::new(Tier::Server).await;
    let nodes = two_nodes(&world).await;
    let client = &nodes[0].client;
    client.follow(2, 1).await;
    let summary = client.summary(1).await;
    poll(&nodes, &summary, Duration::from_millis(500)).await;
    let sql_reads = async || client.metric("headmark_summary_sql_reads_total").await;
    let before = sql_reads().await;
    let long = TTL * 5 / 2;
    assert_eq!(poll(&nodes, &summary, long).await, long);
    assert_eq!(sql_reads().await, before, "its entry has lived on");
    let lived_on = lived_on(client).await;
    assert!((2.0..20.0).contains(&lived_on), "{lived_on}");
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outdated_entry_ends_though_it_is_polled() {
    let world = World::new(Tier::Server).await;
    let nodes = two_nodes(&world).await;
    let before = nodes[0].client.summary(1).await;
    while lived_on(&nodes[0].client).await < 1.0 {
        assert_eq!(poll(&nodes, &before, TTL / 10).await, TTL / 10);
    }
    // As if a failover had lost the begin of a write that was committed.
    let mut hand = Hand::on(&world).await;
    hand.run("update users set revision = revision + 1, direct_unread = 3, direct_chats = 1 where user_id = 1").await;
    assert_eq!(nodes[1].client.summary(1).await, before, "nobody was told");
    let most = TTL + Duration::from_secs(10);
    let shown = poll(&nodes, &before, most).await;
    assert!((TTL / 2..=TTL + Duration::from_secs(2)).contains(&shown), "neither told of nor let live on: {shown:?}");
    Node::stop_all(nodes.into()).await;
}
