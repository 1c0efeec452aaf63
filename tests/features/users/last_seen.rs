//! Who was seen, and on which day.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headmark::base::clock::DAY_MS;

use crate::both_tiers;
use crate::features::broadcasts::{send, unread};
use crate::support::{Client, Hand, JWT_SECRET, World, eventually};

const NOW: i64 = 1_790_000_000_000;

/// The day that is noted of user 1.
async fn day(world: &World) -> i64 {
    let mut hand = Hand::on(world).await;
    hand.text("select cast(seen_day as text) from users where user_id = 1").await.parse().unwrap()
}

/// How many batches all lanes have committed.
async fn batches(world: &World) -> String {
    Hand::on(world).await.text("select cast(sum(batch) as text) from lanes").await
}

/// Polls until the day of user 1 is this one.
async fn eventually_day(world: &World, client: &Client, wanted: i64) {
    let last = Instant::now() + Duration::from_secs(20);
    while day(world).await != wanted {
        assert!(Instant::now() < last, "it is noted");
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.summary(1).await;
    }
}

both_tiers! {
    async fn a_new_day_is_noted_behind_the_request(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &[]).await;
        node.client.summary(1).await;
        assert_eq!(day(&world).await, NOW / DAY_MS, "an enrolment has the day");
        at.store(NOW + DAY_MS, Ordering::Relaxed);
        let mut hand = Hand::on(&world).await;
        hand.block().await;
        let begun = Instant::now();
        node.client.summary(1).await;
        assert!(begun.elapsed() < Duration::from_millis(1500), "no poll waits for another writer: {:?}", begun.elapsed());
        hand.release().await;
        eventually_day(&world, &node.client, NOW / DAY_MS + 1).await;
        node.stop().await;
    }

    async fn a_node_that_starts_writes_nothing_of_those_who_were_seen(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &[]).await;
        for user in 1..=20 {
            node.client.summary(user).await;
        }
        node.stop().await;
        let node = world.node_at(&at, &[]).await;
        let last_seen = &node.app.state().last_seen;
        assert_eq!(last_seen.seen_today().len(), 0);
        let before = batches(&world).await;
        for user in 1..=20 {
            node.client.summary(user).await;
        }
        eventually("all are known to be noted", async || last_seen.seen_today().len() == 20).await;
        assert_eq!(batches(&world).await, before, "a look is enough");
        node.client.summary(21).await;
        assert_eq!(last_seen.seen_today().len(), 21, "who is new waits for the enrolment");
        node.stop().await;
    }

    async fn who_asks_for_lists_only_is_seen_too(world: World) {
        let node = world.node_with(&["--jwt-secret", JWT_SECRET]).await;
        let last_seen = &node.app.state().last_seen;
        for (user, path) in [(1, "me/following"), (2, "me/relation-counts"), (3, "1/followers")] {
            node.user(user).get(&format!("/v1/users/{path}")).await.ok();
            assert_eq!(last_seen.seen_today().len(), usize::try_from(user).unwrap(), "{path}");
        }
        node.stop().await;
    }

    async fn a_node_that_stops_notes_who_waits(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &[]).await;
        node.client.summary(1).await;
        at.store(NOW + DAY_MS, Ordering::Relaxed);
        node.client.summary(1).await;
        at.store(NOW + 2 * DAY_MS, Ordering::Relaxed);
        node.stop().await;
        assert_eq!(day(&world).await, NOW / DAY_MS + 1, "the day of the request");
    }

    async fn who_waits_to_be_noted_is_not_forgotten(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &["--forget-after-days", "30"]).await;
        node.client.summary(1).await;
        send(&node.client, "system", "one").await;
        let mut hand = Hand::on(&world).await;
        hand.block().await;
        at.store(NOW + 40 * DAY_MS, Ordering::Relaxed);
        assert_eq!(unread(&node.client, 1, "system").await, 1);
        let absent = &node.app.state().contexts.last_seen;
        assert_eq!(headmark::features::users::forget_the_absent(absent).await.unwrap(), 0);
        hand.release().await;
        eventually_day(&world, &node.client, NOW / DAY_MS + 40).await;
        assert_eq!(headmark::features::users::forget_the_absent(absent).await.unwrap(), 0);
        assert_eq!(unread(&node.client, 1, "system").await, 1);
        node.stop().await;
    }

    async fn nobody_is_forgotten_at_midnight(world: World) {
        let midnight = NOW / DAY_MS * DAY_MS;
        let at = Arc::new(AtomicI64::new(midnight));
        let node = world.node_at(&at, &["--forget-after-days", "30"]).await;
        node.client.summary(1).await;
        let absent = &node.app.state().contexts.last_seen;
        for (later, forgotten) in [(31 * DAY_MS, 0), (31 * DAY_MS + DAY_MS / 2 - 1, 0), (31 * DAY_MS + DAY_MS / 2, 1)] {
            at.store(midnight + later, Ordering::Relaxed);
            assert_eq!(headmark::features::users::forget_the_absent(absent).await.unwrap(), forgotten, "{later}");
        }
        node.stop().await;
    }
}
