//! Clocks of nodes that are far apart change no number: order and freshness come from the database,
//! and leases from clocks that only measure how long something takes. Nor does one that is wrong remove
//! what others keep.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use headmark::base::clock::Clock;

use super::storm::Storm;
use super::truth::Truth;
use crate::both_tiers;
use crate::features::operations::outcome;
use crate::support::{Client, Node, Nodes, Tier, World, eventually_within, refusal};

const TEN_MINUTES_MS: i64 = 600_000;
const HOUR_MS: i64 = 3_600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_are_twenty_minutes_apart_change_no_number() {
    let world = World::new(Tier::Server).await;
    let now = Clock::System.now().0;
    let clocks = [now - TEN_MINUTES_MS, now + TEN_MINUTES_MS].map(|at| Arc::new(AtomicI64::new(at)));
    let nodes = [world.node_at(&clocks[0], &[]).await, world.node_at(&clocks[1], &[]).await];
    let mut truth = Truth::of(&world).await;
    let storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
    storm.rage(std::future::pending()).await;
    storm.settle(&mut truth).await;
    Node::stop_all(nodes.into()).await;
}

/// A process whose clock is so far ahead.
fn ahead(ms: i64) -> String {
    format!("clock::ahead_ms=return({ms})")
}

both_tiers! {
    async fn a_node_whose_clock_is_wrong_removes_nothing(world: World) {
        let mut right = world.process(&["--operation-ttl-hours", "1"], &[]).await;
        let follow = right.client.request(reqwest::Method::PUT, "/v1/users/1/following/2").header("prefer", "respond-async");
        let location = Client::send(follow).await.header("location").to_owned();
        outcome(&right.client, &location).await;
        // One of SQLite has the database for itself.
        if world.tier == Tier::Embedded {
            right.kill().await;
        }
        let hours = if world.tier == Tier::Server { 11 } else { 30 };
        let failpoints = ahead(hours * HOUR_MS);
        let mut wrong = world.process(&["--operation-ttl-hours", "1"], &[("FAILPOINTS", &failpoints)]).await;
        if world.tier == Tier::Server {
            let says = async || wrong.client.get("/metrics").await.text.lines().any(|line| line.starts_with("headmark_clock_ahead_seconds 39"));
            eventually_within(20, "it knows", says).await;
        }
        // It sweeps at its start.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(wrong.client.get(&location).await.ok()["status"], "done");
        wrong.kill().await;
        // It has written with the wrong time, and is as wrong when it starts again.
        let mut wrong = world.process(&["--operation-ttl-hours", "1"], &[("FAILPOINTS", &failpoints)]).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(wrong.client.get(&location).await.ok()["status"], "done");
        wrong.kill().await;
        let mut right = world.process(&["--operation-ttl-hours", "1"], &[]).await;
        assert_eq!(right.client.get(&location).await.ok()["status"], "done");
        right.kill().await;
    }
}

#[tokio::test]
async fn a_node_whose_clock_is_very_wrong_does_not_start() {
    let world = World::new(Tier::Server).await;
    world.node().await.stop().await;
    for (ms, way) in [(13 * HOUR_MS, "13 hours ahead of"), (-13 * HOUR_MS, "13 hours behind")] {
        let args = world.args();
        let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
        let told = refusal(&args, &[("FAILPOINTS", &ahead(ms))]).await;
        assert!(told.contains(way), "{told}");
    }
}
