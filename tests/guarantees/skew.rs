//! Clocks of nodes that are far apart change no number: order and freshness come from the database,
//! and leases from clocks that only measure how long something takes.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use headmark::base::clock::Clock;

use super::storm::Storm;
use super::truth::Truth;
use crate::support::{Node, Nodes, Tier, World};

const TEN_MINUTES_MS: i64 = 600_000;

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
