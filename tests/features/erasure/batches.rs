//! A batch of an erasure is bounded by what the rows hold that it looks at, not only by how many they are.

use std::sync::Arc;

use deadpool_redis::redis::from_redis_value;
use headmark::features::removals::{Place, Progress, RemovalKind};

use super::{erase, node};
use crate::both_tiers;
use crate::support::{Hand, Node, Proxy, Tier, World, ask, connect, eventually_within};

/// The most events that a row has.
const ROW_EVENTS: usize = 500;

/// So many rows full of events that name user 2, which wait for their numbers.
async fn fill(node: &Node, hand: &mut Hand, rows: usize) {
    let event = r#"{"at":"2027-01-15T08:00:00.000Z","type":"post","data":{"user_id":"2","post_id":"p","deleted":false}}"#;
    let content = vec![event; ROW_EVENTS].join(",");
    let row = format!("({ROW_EVENTS}, 0, 0, {}, 1, '[{content}]')", node.app.state().clock.now().0);
    let rows = vec![row; rows].join(", ");
    hand.run(&format!("insert into events (size, first_id, last_id, created_at, types, content) values {rows}")).await;
}

both_tiers! {
    async fn events_are_forgotten_some_thousand_at_once(world: World) {
        const LEFT: &str = r#"select cast(count(*) as text) from events where content like '%"2"%'"#;
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        fill(&node, &mut hand, 12).await;
        let events = &node.app.state().contexts.removal.engines.events;
        let tenth = events.forget_user("2", 0).await.unwrap();
        assert_eq!(hand.text(LEFT).await, "2");
        let place = hand.text("select cast(batch_id as text) from events e order by e.batch_id limit 1 offset 9").await;
        assert_eq!(tenth.map(|batch| batch.to_string()), Some(place));
        assert_eq!(events.forget_user("2", tenth.unwrap()).await.unwrap(), None);
        assert_eq!(hand.text(LEFT).await, "0");
        node.stop().await;
    }

    /// Between them are many rows that do not name the user.
    async fn no_event_is_passed_by(world: World) {
        const OTHERS: usize = 1200;
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        let row = format!("(1, 0, 0, {}, 1, '[{{\"data\":{{\"user_id\":\"3\"}}}}]')", node.app.state().clock.now().0);
        for _ in 0..2 {
            let rows = vec![row.as_str(); OTHERS].join(", ");
            hand.run(&format!("insert into events (size, first_id, last_id, created_at, types, content) values {rows}")).await;
            fill(&node, &mut hand, 1).await;
        }
        let events = &node.app.state().contexts.removal.engines.events;
        let (mut place, mut batches) = (Some(0), 0);
        while let Some(after) = place {
            place = events.forget_user("2", after).await.unwrap();
            batches += 1;
        }
        assert_eq!(hand.text(r#"select cast(count(*) as text) from events where content like '%"2"%'"#).await, "0");
        assert!(batches < 10, "{batches}");
        node.stop().await;
    }

    async fn large_answers_are_forgotten_a_few_at_once(world: World) {
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        let body = format!(r#"{{"user_id":"2","padding":"{}"}}"#, "x".repeat(3_000_000));
        for key in ["a", "b", "c"] {
            let now = node.app.state().clock.now().0;
            let row = format!("('open', '{key}', '', 200, '{body}', {now})");
            hand.run(&format!("insert into idempotency_keys (caller, key, digest, status, body, created_at) values {row}")).await;
        }
        let removal = &node.app.state().contexts.removal;
        let step = removal.steps.of(RemovalKind::User).iter().find(|step| step.name == "answers").unwrap();
        let mut batch = async |place: Place| {
            let progress = step.batch(Arc::clone(&removal.engines), 2, place).await.unwrap();
            (progress, hand.text("select cast(count(*) as text) from idempotency_keys where status = 410").await)
        };
        let (Progress::More(second), refused) = batch(Place::default()).await else { panic!("all at once") };
        assert_eq!(refused, "2");
        let (Progress::More(third), refused) = batch(second).await else { panic!("it cannot know yet that there are no more") };
        assert_eq!(refused, "3");
        assert_eq!(batch(third).await, (Progress::Done, "3".to_owned()));
        node.stop().await;
    }
}

/// Over its line all numbers together take some seconds, and an operation may take one and a half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_leave_a_stream_behind_a_slow_line() {
    const ROWS: usize = 20;
    let mut world = World::new(Tier::Server).await;
    let mut redis = connect(&world.redis_url).await.unwrap();
    let (proxy, redis_url) = Proxy::start_redis(&world.redis_url).await;
    world.redis_url = redis_url;
    let node = node(&world).await;
    let mut hand = Hand::on(&world).await;
    fill(&node, &mut hand, ROWS).await;
    let all = (ROWS * ROW_EVENTS).to_string();
    let streamed = "select cast(streamed as text) from event_head";
    eventually_within(30, "all are on the stream", async || hand.text(streamed).await == all).await;
    proxy.narrow(30_000);
    erase(&node.client, 2).await;
    let stream = world.event_stream();
    eventually_within(60, "the event of the erasure is alone there", async || {
        let length: i64 = from_redis_value(ask(&mut redis, &["XLEN", &stream]).await.unwrap()).unwrap();
        length == 1
    })
    .await;
    proxy.narrow(0);
    node.stop().await;
}
