//! How little a Redis that stalls may cost: no bypass for a short stall, and the shortest safe one
//! for a long stall.

use std::sync::Arc;
use std::time::Duration;

use headmark::engine::guard::{Guard, SEEN, Trust};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::stores::{INCREMENT, scene};
use crate::support::{Node, Tier, World, eventually_within};

/// How often nodes of this process entered a bypass.
async fn bypasses(node: &Node) -> f64 {
    let metrics = node.client.get("/metrics").await.text;
    let line = metrics.lines().find_map(|line| line.strip_prefix("headmark_cache_bypasses_total "));
    line.map_or(0.0, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_short_stall_of_redis_costs_no_bypass() {
    let mut scene = scene().await;
    scene.write_and_look(0).await;
    scene.redis.stall().await;
    let client = scene.nodes[0].client.clone();
    let write = tokio::spawn(async move { client.post(INCREMENT, &json!({})).await.ok() });
    tokio::time::sleep(Duration::from_millis(700)).await;
    scene.redis.go_on();
    assert_eq!(write.await.unwrap()["head"], 2);
    assert_eq!(bypasses(&scene.nodes[0]).await, 0.0);
    scene.write_and_look(1).await;
    for node in &scene.nodes {
        assert_eq!(node.app.state().guard.trust(), Trust::Full, "the cache is used on");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_bypass_ends_soon_after_redis_is_back() {
    let mut scene = scene().await;
    scene.write_and_look(0).await;
    let mut hand = scene.world.postgres().await;
    let mut epoch = async || {
        let (epoch,): (i64,) = sqlx::query_as("select epoch from cache_guard").fetch_one(&mut hand).await.unwrap();
        epoch
    };
    let before = epoch().await;
    scene.redis.stall().await;
    // Both nodes enter a bypass of their own.
    let (one, other) = (scene.nodes[0].client.clone(), scene.nodes[1].client.clone());
    let body = json!({});
    let (one, other) = tokio::join!(one.post(INCREMENT, &body), other.post(INCREMENT, &body));
    assert_eq!(one.ok()["head"].as_i64().unwrap() + other.ok()["head"].as_i64().unwrap(), 5);
    assert_eq!(bypasses(&scene.nodes[0]).await, 2.0, "one of each node");
    scene.redis.go_on();
    let back = Instant::now();
    eventually_within(8, "the cache is used again, long before 15 s are over", async || {
        scene.write_and_look(0).await;
        scene.write_and_look(1).await;
        scene.nodes.iter().all(|node| node.app.state().guard.trust() == Trust::Full)
    })
    .await;
    assert!(back.elapsed() < Duration::from_secs(8));
    assert!(epoch().await >= before + 4, "each begin and each end is a new epoch");
    scene.recover().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_bypass_holds_while_a_commit_without_the_cache_may_come() {
    let mut scene = scene().await;
    scene.write_and_look(0).await;
    let guards = scene.nodes.each_ref().map(|node| Arc::clone(&node.app.state().guard));
    // The cache answers all the time; what keeps the bypass up is the commit alone.
    guards[0].enter_bypass().await.unwrap();
    let under_way = guards[0].bypassing_commit().expect("a commit may go on without the cache");
    let hold = async |wait: Duration| {
        let until = Instant::now() + wait;
        while Instant::now() < until {
            assert!(guards.iter().all(|guard| guard.trust() != Trust::Full), "a poll could fill the cache");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    hold(Duration::from_secs(4)).await;
    // Nobody knows whether it took effect.
    drop(under_way);
    hold(Duration::from_secs(4)).await;
    assert!(guards[0].bypassing_commit().is_none(), "the cache is back: no more of them");
    eventually_within(20, "the bypass ends", async || guards.iter().all(|guard| guard.trust() == Trust::Full)).await;
    scene.recover().await;
}

/// The guard of a node that stands still lets a bypass lapse, and does not notice. The next one is no shorter
/// a wait for that: until it is over, others may show what the cache holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bypass_that_lapsed_does_not_shorten_the_wait_of_the_next() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let (db, cache) = (node.app.state().db.clone(), Arc::clone(&node.app.state().cache));
    let guard = Guard::start(db, cache).await.unwrap();
    guard.enter_bypass().await.unwrap();
    assert!(guard.is_bypassing());
    // Longer than it lasts.
    tokio::time::sleep(Duration::from_secs(16)).await;
    let (began, stop) = (Instant::now(), CancellationToken::new());
    // From here on the guard refreshes its view, also while this one waits.
    let running = tokio::spawn(Arc::clone(&guard).run(Arc::clone(&node.app.state().heads), stop.clone()));
    let looks = async {
        while began.elapsed() < SEEN - Duration::from_millis(200) {
            assert!(!guard.is_bypassing(), "after {:?}", began.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (entered, ()) = tokio::join!(guard.enter_bypass(), looks);
    entered.unwrap();
    assert!(began.elapsed() >= SEEN);
    stop.cancel();
    running.await.unwrap();
    node.stop().await;
}
