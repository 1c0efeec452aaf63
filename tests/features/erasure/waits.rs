//! An erasure that waits until caches are empty.

use super::{erase, erased, node};
use crate::support::{Hand, Tier, World, eventually_within};

/// In process nothing is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_looks_at_an_erasure_before_what_it_waits_for_is_over() {
    let world = World::new(Tier::Server).await;
    let node = node(&world).await;
    let client = &node.client;
    client.get("/v1/users/2/badges").await.ok();
    let mut hand = Hand::on(&world).await;
    let location = erase(client, 2).await;
    // The place of this step is the time at which it is over.
    let rests = "select cast(count(*) as text) from removals where step = 'caches' and after_id > 0 and due_at = after_id";
    eventually_within(30, "it is due when that is over", async || hand.text(rests).await == "1").await;
    let over_at = hand.text("select cast(after_id as text) from removals").await;
    erased(client, &location).await;
    let late = hand.text(&format!("select cast(finished_at - {over_at} as text) from removals")).await;
    assert!((0..10_000).contains(&late.parse::<i64>().unwrap()), "done {late} ms after that");
    node.stop().await;
}
