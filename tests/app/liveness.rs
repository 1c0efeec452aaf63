//! A node that only a restart helps says so, to whatever restarts nodes.

use std::thread::available_parallelism;

use serde_json::json;

use crate::support::{Client, Pause, Tier, World, eventually};

/// A request that does not let go of its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_stuck_thread_says_so_until_it_goes_on() {
    // On one core there is one thread, which answers nobody then.
    if available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return;
    }
    let world = World::new(Tier::Embedded).await;
    let node = world.node().await;
    assert_eq!(node.client.get("/livez").await.ok(), json!({"status": "ok"}));
    let (pause, reader) = (Pause::at("events::searched"), node.client.clone());
    let reading = tokio::spawn(async move { reader.get("/v1/events").await });
    pause.reached().await;
    // Over a connection of its own, which goes to a thread that has less to do.
    let other = Client::new(&node.base);
    let stuck = other.get("/livez").await;
    assert_eq!((stuck.status.as_u16(), &stuck.body, stuck.header("retry-after")), (503, &json!({"status": "failed"}), "1"));
    pause.go_on().await;
    reading.await.unwrap().ok();
    eventually("it lives", async || other.get("/livez").await.status == 200).await;
    node.stop().await;
}
