//! Locks that somebody else holds, and a database that has become slow: neither stops the writes
//! that could be done.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::truth::{Truth, poll};
use crate::both_tiers;
use crate::features::erasure;
use crate::support::Hand;
use crate::support::{Client, Node, Reply, Tier, World, eventually};

/// Far less than it takes to wait for the lock with every batch.
const SOON: Duration = Duration::from_secs(6);

async fn increment(client: &Client, user: i64) -> Reply {
    client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await
}

/// Sends so many writes for a user, each when all before it are in the queue and nothing else is.
async fn queue(node: &Node, user: i64, count: usize, writes: &mut Vec<JoinHandle<Reply>>) {
    for _ in 0..count {
        let client = node.client.clone();
        writes.push(tokio::spawn(async move { increment(&client, user).await }));
        let waiting = f64::from(u32::try_from(writes.len()).unwrap());
        eventually("it is in the queue", async || node.client.metric("headmark_lane_waiting").await == waiting).await;
    }
}

/// Writes for these users, all at once.
async fn write_all(client: &Client, users: impl IntoIterator<Item = i64>) {
    for reply in join_all(users.into_iter().map(|user| increment(client, user))).await {
        reply.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_locked_row_holds_up_nobody_else_and_keeps_its_order() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "1"]).await;
    let mut hand = Hand::on(&world).await;
    hand.block().await;
    let mut blocked = Vec::new();
    queue(&node, 1, 3, &mut blocked).await;
    let began = Instant::now();
    for _ in 0..5 {
        write_all(&node.client, 2..=60).await;
        queue(&node, 1, 2, &mut blocked).await;
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(blocked.iter().all(|write| !write.is_finished()), "acknowledged under a lock");
    hand.release().await;
    for (head, write) in (1..).zip(blocked) {
        assert_eq!(write.await.unwrap().ok()["head"], head, "in the order in which they came");
    }
    let shown = poll(&node.client, 1).await;
    assert_eq!(shown.head("mention"), 13);
    assert_eq!(shown, Truth::of(&world).await.summary(1).await);
    eventually("nothing is set aside", async || node.client.metric("headmark_lane_set_aside").await == 0.0).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_locked_rows_hold_up_nobody_else() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "1"]).await;
    write_all(&node.client, 1..=60).await;
    let mut hand = Hand::on(&world).await;
    hand.run("begin").await;
    hand.run("select 1 from users where user_id <= 30 order by user_id for update").await;
    let client = node.client.clone();
    let blocked = tokio::spawn(async move { write_all(&client, 1..=30).await });
    eventually("they wait", async || hand.waiting().await > 0).await;
    let began = Instant::now();
    write_all(&node.client, 31..=60).await;
    write_all(&node.client, 31..=60).await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(!blocked.is_finished());
    hand.release().await;
    blocked.await.unwrap();
    for user in [1, 30, 31, 60] {
        assert_eq!(poll(&node.client, user).await.head("mention"), if user <= 30 { 2 } else { 3 });
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_set_aside_is_bounded() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "1", "--lane-aside", "10"]).await;
    let mut hand = Hand::on(&world).await;
    hand.block().await;
    let client = node.client.clone();
    let writes: Vec<_> = (0..25)
        .map(|_| {
            tokio::spawn({
                let client = client.clone();
                async move { increment(&client, 1).await }
            })
        })
        .collect();
    let answered = || writes.iter().filter(|write| write.is_finished()).count();
    eventually("those beyond the bound are refused", async || answered() == 15).await;
    write_all(&node.client, 2..=30).await;
    hand.release().await;
    let mut taken = 0;
    for write in writes {
        let reply = write.await.unwrap();
        taken += i64::from(reply.status == 200);
        if reply.status != 200 {
            reply.problem(503, "overloaded");
        }
    }
    assert_eq!((taken, poll(&node.client, 1).await.head("mention")), (10, 10));
    node.stop().await;
}

both_tiers! {
    async fn a_lock_that_is_not_freed_refuses_the_write_in_time(world: World) {
        let node = world.node_with(&["--lanes", "1", "--write-timeout-ms", "9000", "--db-acquire-timeout-ms", "300"]).await;
        let mut hand = Hand::on(&world).await;
        hand.block().await;
        // Before the time of a caller is over, and so with an answer that is sure.
        increment(&node.client, 1).await.problem(503, "store_unavailable");
        hand.release().await;
        eventually("it writes again", async || increment(&node.client, 1).await.status == 200).await;
        assert_eq!(poll(&node.client, 1).await.head("mention"), 1, "the refused one changed nothing");
        node.stop().await;
    }

    async fn a_slow_database_gets_smaller_batches(world: World) {
        let node = world.node_with(&["--lanes", "1", "--write-timeout-ms", "100000"]).await;
        let mut hand = Hand::on(&world).await;
        increment(&node.client, 1000).await.ok();
        make_batches_slow(&mut hand).await;
        let before = node.client.metric("headmark_lane_batch_seconds_count").await;
        // More than it can take in the time of a transaction: 300 new rows. The lane pauses with a
        // quick one in hand until they all wait: otherwise it would learn from smaller batches how
        // slow they are.
        fail::cfg("lane::outside_of_a_batch", "pause").unwrap();
        let waiting = async |count| eventually("they wait", async || node.app.state().lanes.waiting() == count).await;
        let quick = tokio::spawn({ let client = node.client.clone(); async move { increment(&client, 1000).await } });
        waiting(1).await;
        let release = async { waiting(301).await; fail::remove("lane::outside_of_a_batch") };
        tokio::join!(write_all(&node.client, 1..=300), release);
        quick.await.unwrap().ok();
        assert!(node.client.metric("headmark_lane_slow_batches_total").await > 0.0, "the first was not too large");
        let batches = node.client.metric("headmark_lane_batch_seconds_count").await - before;
        assert!(batches >= 4.0, "the quick one, and the others in {} batches", batches - 1.0);
        let mut truth = Truth::of(&world).await;
        for user in [1, 100, 300] {
            assert_eq!(truth.summary(user).await.head("mention"), 1, "each once");
        }
        node.stop().await;
    }
}

/// From here on a batch of hundreds of users takes longer than a transaction may.
async fn make_batches_slow(hand: &mut Hand) {
    if let Hand::Sqlite(_) = hand {
        // SQLite has no statement that sleeps, and one that works takes as long as the machine
        // likes. So this says it of the batches instead: the quick one, then three that are too
        // large, then those that are not.
        fail::cfg("lane::after_begin_write", "1*off->3*sleep(3000)->off").unwrap();
        return;
    }
    hand.run("create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.02); return new; end'").await;
    hand.run("create trigger slow before insert or update on users for each row execute function slow()").await;
}

/// A transaction that makes a user, and is not committed.
async fn maker(world: &World, user: i64) -> Hand {
    let mut maker = Hand::on(world).await;
    maker.run("begin").await;
    maker.run(&format!("insert into users (user_id, revision) values ({user}, 0)")).await;
    maker
}

/// What tells whether somebody waits for this transaction.
async fn waits_for(maker: &mut Hand) -> String {
    let pid = maker.text("select pg_backend_pid()::text").await;
    format!("select exists (select 1 from pg_stat_activity where {pid} = any(pg_blocking_pids(pid)))::text")
}

/// One increment for each of these users, in one request.
fn increments(users: impl IntoIterator<Item = i64>) -> Value {
    let items: Vec<_> = users.into_iter().map(|user| json!({"user_id": user, "badge": "mention"})).collect();
    json!({"items": items})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_whom_others_make_one_after_the_other_hold_up_no_batch() {
    // On SQLite nobody makes rows while a batch runs.
    const MADE: i64 = 7;
    const OTHER: i64 = 50;
    const ERASED: i64 = 99;
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&[&erasure::ARGS[..], &["--lanes", "1", "--lock-timeout-ms", "1500"]].concat()).await;
    increment(&node.client, ERASED).await.ok();
    let location = erasure::erase(&node.client, ERASED).await;
    erasure::erased(&node.client, &location).await;

    // The lane waits for the row of another user, so that the two writes after that are one batch.
    let mut makers = Vec::new();
    for user in 1..=MADE {
        makers.push(maker(&world, user).await);
    }
    let mut other = maker(&world, OTHER).await;
    let mut looks = Hand::on(&world).await;
    let mut writes = Vec::new();
    queue(&node, OTHER, 1, &mut writes).await;
    eventually("the lane waits", async || looks.waiting().await == 1).await;
    queue(&node, ERASED, 1, &mut writes).await;
    let client = node.client.clone();
    let batch = tokio::spawn(async move { client.post("/v1/badges/increment", &increments(1..=MADE)).await });
    eventually("it is in the queue", async || node.client.metric("headmark_lane_waiting").await > 2.0).await;
    other.release().await;
    for mut maker in makers {
        let waits = waits_for(&mut maker).await;
        // It has found no row of this user, and meets this one.
        eventually("the lane waits for this user", async || batch.is_finished() || looks.text(&waits).await == "true").await;
        maker.run("commit").await;
    }
    batch.await.unwrap().ok();
    for user in 1..=MADE {
        assert_eq!(poll(&node.client, user).await.head("mention"), 1);
    }
    assert!(node.client.metric("headmark_lane_retries_total").await <= 2.0);
    writes.remove(1).await.unwrap().problem(410, "erased");
    let rows = format!("select count(*)::text from users where user_id = {ERASED}");
    assert_eq!(looks.text(&rows).await, "0", "who is erased gets no row");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_erased_while_rows_are_made_ahead_gets_none() {
    const ERASED: i64 = 99;
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "1", "--lock-timeout-ms", "1500"]).await;
    let other = world.node_with(&erasure::ARGS).await;
    let [mut first, mut second] = [maker(&world, 1).await, maker(&world, 2).await];
    let client = node.client.clone();
    let batch = tokio::spawn(async move { client.post("/v1/badges/increment", &increments([1, 2, ERASED])).await });
    let mut looks = Hand::on(&world).await;
    eventually("the lane waits for the first user", async || looks.waiting().await == 1).await;
    // It makes rows ahead, then, and waits for the second one.
    let waits = waits_for(&mut second).await;
    first.run("commit").await;
    eventually("the lane waits for the second user", async || looks.text(&waits).await == "true").await;
    erasure::erase(&other.client, ERASED).await;
    let rows = format!("select count(*)::text from users where user_id = {ERASED}");
    eventually("its row is gone", async || looks.text(&rows).await == "0").await;
    assert_eq!(looks.text("select count(*)::text from erased_users").await, "1");
    assert_eq!(looks.text(&waits).await, "true", "the lane waits still");
    second.run("commit").await;
    batch.await.unwrap().problem(410, "erased");
    assert_eq!(looks.text(&rows).await, "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_after_users_were_made_ahead() {
    let world = World::new(Tier::Server).await;
    let survivor = world.node().await;
    let mut doomed = world.process(&["--lanes", "1"], &[("FAILPOINTS", "lane::after_make_ahead=return")]).await;
    let mut maker = maker(&world, 1).await;
    let batch = increments(1..=3);
    let client = doomed.client.clone();
    let request = client.request(Method::POST, "/v1/badges/increment").header("idempotency-key", "a").json(&batch);
    let lost = tokio::spawn(Client::try_send(request));
    let mut looks = Hand::on(&world).await;
    eventually("the lane waits for the first user", async || looks.waiting().await == 1).await;
    maker.run("commit").await;
    assert!(!doomed.ended().await.success());
    assert!(lost.await.unwrap().is_err());
    assert_eq!(looks.text("select string_agg(user_id || ':' || revision, ' ' order by user_id) from users").await, "1:0 2:0 3:0");
    for user in 1..=3 {
        assert_eq!(poll(&survivor.client, user).await.head("mention"), 0);
    }
    for _ in 0..2 {
        survivor.client.post_once("/v1/badges/increment", "a", &batch).await.ok();
    }
    for user in 1..=3 {
        assert_eq!(poll(&survivor.client, user).await.head("mention"), 1);
    }
}

/// Their rows are made only where something of them changes, as it does for who follows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_whom_others_make_one_after_the_other_hold_up_no_batch() {
    const MADE: i64 = 5;
    const OTHER: i64 = 50;
    const FOLLOWED: i64 = 60;
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--lanes", "1", "--lock-timeout-ms", "1500"]).await;
    let mut makers = Vec::new();
    for user in 1..=MADE {
        makers.push(maker(&world, user).await);
    }
    // The lane waits for the row of another user, so that the follows after that are one batch.
    let mut other = maker(&world, OTHER).await;
    let (mut looks, mut writes) = (Hand::on(&world).await, Vec::new());
    queue(&node, OTHER, 1, &mut writes).await;
    eventually("the lane waits", async || looks.waiting().await == 1).await;
    let client = node.client.clone();
    let follows = tokio::spawn(async move { join_all((1..=MADE).map(|user| client.follow(user, FOLLOWED))).await });
    eventually("they are in the queue", async || node.client.metric("headmark_lane_waiting").await > 5.0).await;
    other.release().await;
    for mut maker in makers {
        let waits = waits_for(&mut maker).await;
        eventually("the lane waits for this user", async || follows.is_finished() || looks.text(&waits).await == "true").await;
        maker.run("commit").await;
    }
    assert_eq!(follows.await.unwrap().len(), 5);
    assert_eq!(looks.text(&format!("select sum(following)::text from users where user_id <= {MADE}")).await, "5");
    assert!(node.client.metric("headmark_lane_retries_total").await <= 2.0);
    node.stop().await;
}
