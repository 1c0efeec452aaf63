//! A Redis that answers and takes no writes: it is full, or a replica.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::stores::{INCREMENT, cache_state};
use crate::support::{Node, Proxy, RedisServer, Tier, World, eventually_within};

/// What the metrics say of the cache.
async fn up(node: &Node) -> f64 {
    node.client.metric("headmark_part_up{part=\"cache\"}").await
}

/// A node behind a name or a load balancer. It leads to a master that was demoted; what it is to lead
/// to comes first. Redis closes no connection of a client then.
async fn demoted() -> (World, [Node; 2], Proxy, [RedisServer; 2]) {
    let mut world = World::new(Tier::Server).await;
    let master = RedisServer::start(&world.dir).await;
    let (proxy, url) = Proxy::start_redis(&master.url()).await;
    world.redis_url = url;
    let nodes = [world.node().await, world.node().await];
    for node in &nodes {
        node.client.post(INCREMENT, &json!({})).await.ok();
        node.client.summary(1).await;
    }
    let replica = RedisServer::replica_of(&master, &world.dir).await;
    replica.promote().await;
    master.follow(&replica).await;
    (world, nodes, proxy, [replica, master])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_master_that_is_demoted_is_left_though_its_connections_stay() {
    let (_world, nodes, proxy, [new, _old]) = demoted().await;
    proxy.lead_new_to(&new.url());
    tokio::time::sleep(Duration::from_secs(2)).await;
    for node in &nodes {
        eventually_within(13, "the new master is used", async || cache_state(node).await == "ok").await;
    }
    for node in &nodes {
        let head = node.client.post(INCREMENT, &json!({})).await.ok()["head"].clone();
        for node in &nodes {
            assert_eq!(node.client.summary(1).await["counters"]["mention"]["head"], head);
        }
    }
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_replica_is_away_until_it_takes_writes() {
    let (_world, nodes, proxy, [new, _old]) = demoted().await;
    let cache = &nodes[0].app.state().cache;
    eventually_within(5, "it is noticed", async || cache.is_away()).await;
    let stays_away = async |for_ms: u64, why: &str| {
        let until = Instant::now() + Duration::from_millis(for_ms);
        while Instant::now() < until {
            assert!(cache.is_away(), "{why}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // New connections reach it, too, for a while yet.
    stays_away(1000, "it is back and away in turn").await;
    proxy.lead_new_to(&new.url());
    stays_away(1200, "the other node may not have noticed yet").await;
    eventually_within(15, "the new master is used", async || cache_state(&nodes[0]).await == "ok").await;
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_full_redis_is_away_to_probes_and_metrics_alike() {
    let mut world = World::new(Tier::Server).await;
    let redis = RedisServer::start(&world.dir).await;
    world.redis_url = redis.url();
    let node = world.node().await;
    node.client.post(INCREMENT, &json!({})).await.ok();
    assert_eq!((cache_state(&node).await.as_str(), up(&node).await), ("ok", 1.0));
    redis.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert_eq!(node.client.post(INCREMENT, &json!({})).await.ok()["head"], 2);
    assert_eq!(cache_state(&node).await, "away");
    eventually_within(5, "the metric says so", async || up(&node).await == 0.0).await;
    redis.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    eventually_within(45, "it is back", async || cache_state(&node).await == "ok" && up(&node).await == 1.0).await;
    node.stop().await;
}
