//! Batches that are written over rows as the node knows them: what others changed meanwhile is never
//! overwritten.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use headmark::engine::epoch;
use serde_json::json;

use super::truth::{Truth, poll};
use crate::both_tiers;
use crate::support::{Hand, Node, Tier, World, eventually};

const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

both_tiers! {
    async fn a_row_that_somebody_changed_is_read_again(world: World) {
        let node = world.node_with(&["--lanes", "1", "--scrub-users", "0"]).await;
        for head in 1..=3 {
            assert_eq!(node.client.post(INCREMENT, &json!({})).await.ok()["head"], head);
        }
        assert_eq!(node.client.metric("headmark_lane_stale_batches_total").await, 0.0);
        let mut hand = Hand::on(&world).await;
        hand.run("update users set version = version + 1, revision = revision + 1, marks = 'b:news 7;c:mention 9 9' where user_id = 1").await;
        let raised = node.client.post(INCREMENT, &json!({})).await.ok();
        assert_eq!((&raised["head"], &raised["revision"]), (&json!(10), &json!(5)));
        assert_eq!(node.client.metric("headmark_lane_stale_batches_total").await, 1.0);
        assert_eq!(hand.text("select marks from users where user_id = 1").await, "b:news 7;c:mention 10 10");
        // Once more it is as the node knows it.
        for head in 11..=15 {
            assert_eq!(node.client.post(INCREMENT, &json!({})).await.ok()["head"], head);
        }
        assert_eq!(node.client.metric("headmark_lane_stale_batches_total").await, 1.0);
        let shown = poll(&node.client, 1).await;
        assert_eq!(shown, Truth::of(&world).await.summary(1).await);
        node.stop().await;
    }

    async fn an_answer_that_changes_nothing_is_no_older_than_what_somebody_changed(world: World) {
        let node = world.node_with(&["--lanes", "1", "--scrub-users", "0"]).await;
        let client = &node.client;
        client.post(INCREMENT, &json!({})).await.ok();
        poll(client, 1).await;
        let mut hand = Hand::on(&world).await;
        hand.run("update users set version = version + 1, revision = 8, marks = 'c:mention 5 5' where user_id = 1").await;
        let same = client.post("/v1/users/1/badges/mention/reset", &json!({"up_to": 0})).await.ok();
        assert_eq!((&same["head"], &same["unread"], &same["revision"]), (&json!(5), &json!(5), &json!(8)));
        hand.run("update users set version = version + 1, revision = 9, marks = 'c:mention 7 7' where user_id = 1").await;
        // The next batch is locked; then the copy is trusted again.
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
        client.post("/v1/users/1/badges/mention/retract", &json!({"at": 7})).await.ok();
        assert_eq!(client.post("/v1/users/1/badges/mention/reset", &json!({"up_to": 0})).await.ok()["unread"], 6);
        node.stop().await;
    }

    /// As `pg_restore --clean` or a table copied back does it, beside nodes that know rows of the
    /// time that is lost.
    async fn rows_of_a_lost_history_are_never_written_over_restored_ones(world: World) {
        let mut nodes = Vec::new();
        for _ in 0..if world.tier == Tier::Server { 2 } else { 1 } {
            nodes.push(world.node_with(&["--lanes", "1", "--scrub-users", "0"]).await);
        }
        let (first, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        assert_eq!(first.post(INCREMENT, &json!({})).await.ok()["head"], 1);
        let mut hand = Hand::on(&world).await;
        hand.run("create table backup as select * from users").await;
        for head in 2..=4 {
            assert_eq!(first.post(INCREMENT, &json!({})).await.ok()["head"], head);
        }
        hand.run("delete from users").await;
        hand.run("insert into users select * from backup").await;
        hand.run("drop table backup").await;
        epoch::renew(&nodes[0].app.state().db, headmark::engine::guard::SEEN).await.unwrap();
        // As many writes as were lost, so that whoever counts them is where the lost row was.
        for head in 2..=4 {
            assert_eq!(last.post(INCREMENT, &json!({"by": 1})).await.ok()["head"], head);
        }
        last.post("/v1/users/1/badges/mention/retract", &json!({"at": 2})).await.ok();
        let raised = first.post(INCREMENT, &json!({})).await.ok();
        assert_eq!((&raised["head"], &raised["unread"]), (&json!(5), &json!(4)));
        for node in &nodes {
            // The first poll has the user seen.
            eventually("polls show the restored history", async || {
                poll(&node.client, 1).await == Truth::of(&world).await.summary(1).await
            })
            .await;
        }
        Node::stop_all(nodes).await;
    }

    async fn a_write_with_a_key_takes_what_the_node_knows_too(world: World) {
        let node = world.node_with(&["--lanes", "1", "--scrub-users", "0"]).await;
        let client = &node.client;
        let stale = async || client.metric("headmark_lane_stale_batches_total").await;
        assert_eq!(client.post_once(INCREMENT, "first", &json!({})).await.ok()["head"], 1);
        let second = client.post_once(INCREMENT, "second", &json!({})).await.ok();
        assert_eq!((&second["head"], stale().await), (&json!(2), 0.0));
        let mut hand = Hand::on(&world).await;
        hand.run("update users set version = version + 1, revision = 8, marks = 'c:mention 9 9' where user_id = 1").await;
        // Nothing of the try with the copy is left: the key can be used, and is.
        let third = client.post_once(INCREMENT, "third", &json!({})).await.ok();
        assert_eq!((&third["head"], &third["revision"], stale().await), (&json!(10), &json!(9), 1.0));
        for (key, answer) in [("second", &second), ("third", &third)] {
            assert_eq!(client.post_once(INCREMENT, key, &json!({})).await.ok(), *answer);
        }
        client.post_once(INCREMENT, "third", &json!({"by": 2})).await.problem(422, "idempotency_key_reused");
        assert_eq!(hand.text("select marks from users where user_id = 1").await, "c:mention 10 10");
        assert_eq!(poll(client, 1).await, Truth::of(&world).await.summary(1).await);
        node.stop().await;
    }

    /// An erasure locks the row, then removes the answers that are kept: it must not pass a transaction that keeps one.
    async fn a_write_with_a_key_keeps_the_row_of_whom_it_names(world: World) {
        let node = world.node_with(&["--lanes", "1", "--scrub-users", "0"]).await;
        let client = &node.client;
        client.post(INCREMENT, &json!({})).await.ok();
        let mut hand = Hand::on(&world).await;
        let mut version = async || hand.text("select cast(version as text) from users where user_id = 1").await;
        let (path, nothing) = ("/v1/users/1/badges/mention/retract", json!({"at": 1}));
        client.post(path, &nothing).await.ok();
        let before = version().await;
        client.post(path, &nothing).await.ok();
        assert_eq!(version().await, before, "nothing is kept");
        let revision = client.post_once(path, "key", &nothing).await.ok()["revision"].clone();
        assert_ne!(version().await, before);
        assert_eq!(revision, 2, "nothing changed");
        assert_eq!(client.post(INCREMENT, &json!({})).await.ok()["head"], 2);
        assert_eq!(client.metric("headmark_lane_stale_batches_total").await, 0.0);
        node.stop().await;
    }

    async fn a_refused_command_leaves_the_known_row(world: World) {
        let node = world.node_with(&["--lanes", "1"]).await;
        let client = &node.client;
        client.post(INCREMENT, &json!({})).await.ok();
        client.post("/v1/users/1/badges/mention/retract", &json!({"at": 5})).await.problem(404, "not_found");
        assert_eq!(client.post(INCREMENT, &json!({})).await.ok()["head"], 2);
        assert_eq!(poll(client, 1).await, Truth::of(&world).await.summary(1).await);
        node.stop().await;
    }
}

/// Two nodes write for the same users at once, with and without keys, alone and in batches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_write_for_the_same_users_lose_nothing() {
    const ROUNDS: i64 = 60;
    let world = World::new(Tier::Server).await;
    let nodes = [world.node().await, world.node().await];
    let write = async |node: &Node, of: i64| {
        for round in 0..ROUNDS {
            let user = round % 3 + 1;
            match round % 4 {
                0 => {
                    let items: Vec<_> = (1..=3).map(|user| json!({"user_id": user.to_string(), "badge": "mention"})).collect();
                    node.client.post("/v1/badges/increment", &json!({"items": items})).await.ok();
                }
                1 => {
                    let path = format!("/v1/users/{user}/badges/mention/increment");
                    node.client.post_once(&path, &format!("{of}-{round}"), &json!({})).await.ok();
                }
                _ => {
                    node.client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await.ok();
                }
            }
        }
    };
    join_all([write(&nodes[0], 0), write(&nodes[0], 1), write(&nodes[1], 2), write(&nodes[1], 3)]).await;
    let mut truth = Truth::of(&world).await;
    let mut total = 0;
    for user in 1..=3 {
        let summary = truth.summary(user).await;
        total += summary.head("mention");
        for node in &nodes {
            assert_eq!(poll(&node.client, user).await.head("mention"), summary.head("mention"));
        }
    }
    // Of each four rounds, one raises three.
    assert_eq!(total, 4 * (ROUNDS + ROUNDS / 4 * 2));
    let mut stale = 0.0;
    for node in &nodes {
        stale += node.client.metric("headmark_lane_stale_batches_total").await;
    }
    assert!(stale > 0.0, "no row was changed behind a node's back");
    Node::stop_all(nodes.into()).await;
}

/// Lanes of one node that write for the same users wait for each other ahead of their transactions, so that
/// none of them writes in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_of_a_node_do_not_write_the_same_user_at_once() {
    const USERS: i64 = 40;
    const CALLERS: i64 = 8;
    const ROUNDS: i64 = 15;
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "2", "--scrub-users", "0", "--lock-timeout-ms", "1500"]).await;
    let increment = async |first: i64| {
        // The first user decides the lane.
        let items: Vec<_> = (0..USERS).map(|n| json!({"user_id": (1 + (first + n) % USERS).to_string(), "badge": "mention"})).collect();
        node.client.post("/v1/badges/increment", &json!({"items": items})).await.ok();
    };
    increment(0).await;
    let caller = async |of: i64| {
        for round in 0..ROUNDS {
            increment(of + round).await;
        }
    };
    join_all((0..CALLERS).map(caller)).await;
    let mut truth = Truth::of(&world).await;
    for user in 1..=USERS {
        assert_eq!(truth.summary(user).await.head("mention"), 1 + CALLERS * ROUNDS);
    }
    let [stale, timeouts] = ["headmark_lane_stale_batches_total", "headmark_lane_local_lock_timeouts_total"];
    let (stale, timeouts) = (node.client.metric(stale).await, node.client.metric(timeouts).await);
    assert!(stale <= timeouts, "{stale} batches were done in vain, though a lane went on without its users {timeouts} times");
    node.stop().await;
}

/// A lane that cannot have the users of its batch to itself in time does it without copies.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lane_goes_on_though_another_one_keeps_its_users() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "2", "--scrub-users", "0", "--lock-timeout-ms", "100"]).await;
    let increment = async |users: &[i64]| {
        let items: Vec<_> = users.iter().map(|user| json!({"user_id": user.to_string(), "badge": "mention"})).collect();
        node.client.post("/v1/badges/increment", &json!({"items": items})).await.ok();
        Instant::now()
    };
    increment(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
    // The next batch stops when it has its users.
    fail::cfg("lane::after_begin_write", "1*sleep(1500)->off").unwrap();
    let others = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        // The first user decides the lane: some of these go through the other one.
        join_all((2..=8).map(async |first| increment(&[first, 9]).await)).await
    };
    let (stopped, went_on) = tokio::join!(increment(&[1, 9]), others);
    assert!(went_on.into_iter().min().unwrap() < stopped, "all waited for the batch that stopped");
    for metric in ["headmark_lane_local_lock_timeouts_total", "headmark_lane_stale_batches_total"] {
        assert!(node.client.metric(metric).await >= 1.0, "{metric}");
    }
    let mut truth = Truth::of(&world).await;
    for (user, head) in (1..=8).map(|user| (user, 2)).chain([(9, 9)]) {
        assert_eq!(truth.summary(user).await.head("mention"), head, "user {user}");
    }
    node.stop().await;
}
