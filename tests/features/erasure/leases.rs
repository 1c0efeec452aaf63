//! A removal stays with its node during a batch that takes longer than a lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headmark::base::clock::UnixMs;
use headmark::features::removals::{Place, Removal, store};
use tokio::time::Instant;

use super::{STEP, begun_by_a_newer_version, erase, erased, node};
use crate::both_tiers;
use crate::support::{Hand, Node, Proxy, Tier, World, eventually, eventually_within};

/// How often the step `events` is begun, the first time for so long.
fn begun(first: Duration) -> Arc<AtomicUsize> {
    let begun = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&begun);
    let begin = move || {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            std::thread::sleep(first);
        }
    };
    fail::cfg_callback("removal::before_events", begin).unwrap();
    begun
}

both_tiers! {
    async fn a_batch_that_takes_longer_than_a_lease_is_done_once(world: World) {
        let mut nodes = vec![node(&world).await];
        if world.tier == Tier::Server {
            nodes.push(node(&world).await);
        }
        let client = nodes[0].client.clone();
        let begun = begun(Duration::from_secs(4));
        let location = erase(&client, 2).await;
        erased(&client, &location).await;
        fail::remove("removal::before_events");
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        Node::stop_all(nodes).await;
    }

    async fn a_renewal_without_an_answer_gives_nothing_up(world: World) {
        let node = node(&world).await;
        let db = &node.app.state().db;
        let begun = begun_by_a_newer_version(&world).await;
        let leased = store::move_on(db, &begun, STEP, Place::id(4), UnixMs(9000)).await.unwrap().unwrap();
        let mut told = leased.clone();
        assert!(store::renew(db, &mut told, UnixMs(10_000)).await.unwrap());
        assert_eq!(told, Removal { due_at: UnixMs(10_000), ..leased.clone() });
        // As a node has it that got no answer to that.
        let mut untold = Removal { unsure: vec![UnixMs(10_000)], ..leased.clone() };
        assert!(store::renew(db, &mut untold, UnixMs(10_000)).await.unwrap());
        assert_eq!(untold, Removal { due_at: UnixMs(10_001), ..leased.clone() }, "another time than any that it may have had");
        assert!(!store::renew(db, &mut told, UnixMs(12_000)).await.unwrap(), "another node has it");
        // This one was not done.
        let undone = Removal { unsure: vec![UnixMs(13_000)], ..untold };
        let moved = store::move_on(db, &undone, STEP, Place::id(5), UnixMs(14_000)).await.unwrap().unwrap();
        assert_eq!(moved, Removal { place: Place::id(5), due_at: UnixMs(14_000), ..leased.clone() });
        assert_eq!(store::move_on(db, &leased, STEP, Place::id(6), UnixMs(15_000)).await.unwrap(), None);
        let untold = Removal { due_at: UnixMs(13_500), unsure: vec![UnixMs(14_000)], ..moved };
        assert!(store::finish(db, &untold, UnixMs(16_000)).await.unwrap());
        node.stop().await;
    }
}

/// The database does what the renewal says, and its answer does not come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_goes_on_while_its_lease_cannot_be_renewed() {
    let mut world = World::new(Tier::Server).await;
    let direct = world.database_url.clone();
    let (proxy, url) = Proxy::start(&direct).await;
    world.database_url = url;
    let first = node(&world).await;
    world.database_url = direct;
    let begun = begun(Duration::from_secs(5));
    erase(&first.client, 2).await;
    eventually("the batch has begun", async || begun.load(Ordering::SeqCst) == 1).await;
    let renewed_again = Instant::now() + Duration::from_millis(1900);
    proxy.pause(true);
    let second = node(&world).await;
    tokio::time::sleep_until(renewed_again).await;
    proxy.pause(false);
    let mut hand = Hand::on(&world).await;
    eventually_within(30, "the last step waits", async || hand.text("select step from removals").await == "caches").await;
    fail::remove("removal::before_events");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    Node::stop_all(vec![first, second]).await;
}
