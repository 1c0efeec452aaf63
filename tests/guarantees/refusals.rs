//! A Redis that answers and takes no writes: it is full, or a replica.

use serde_json::json;

use super::stores::{INCREMENT, cache_state};
use crate::support::{Node, RedisServer, Tier, World, eventually_within};

/// What the metrics say of the cache.
async fn up(node: &Node) -> f64 {
    node.client.metric("headmark_part_up{part=\"cache\"}").await
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
