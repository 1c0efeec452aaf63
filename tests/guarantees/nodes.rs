//! How nodes start beside each other, give way to each other, and keep their writes apart.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use headmark::base::clock::Clock;
use serde_json::{Value, json};
use sqlx::{Executor as _, PgConnection};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::truth::{Truth, poll};
use crate::both_tiers;
use crate::support::Hand;
use crate::support::{Node, Tier, World, eventually};

const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

/// Where a node that starts is about to ask for the node lock.
const BEFORE_FIRST_LOCK: &str = "guard::before_first_lock";

/// "headmark" in ASCII.
const NODE_LOCK: i64 = 0x6865_6164_6d61_726b;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_nodes_start_at_once_on_a_fresh_database() {
    let world = World::new(Tier::Server).await;
    let nodes = join_all((0..10).map(|_| world.node_with(&["--lanes", "1", "--db-connections", "1"]))).await;
    join_all(nodes.iter().map(|node| async { node.client.post(INCREMENT, &json!({})).await.ok() })).await;
    for node in &nodes {
        assert_eq!(poll(&node.client, 1).await.counters["mention"], (10, 10));
    }
    join_all(nodes.into_iter().map(Node::stop)).await;
}

/// The sentence with which a node refuses to start.
async fn refusal(world: &World) -> String {
    world.try_node(&[], Clock::System).await.expect_err("a refusal")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_a_node_is_alone_on_its_postgres() {
    let mut world = World::new(Tier::Server).await;
    let redis = std::mem::take(&mut world.redis_url);
    let alone = world.node().await;
    assert!(refusal(&world).await.contains("without REDIS_URL only one may"));
    world.redis_url.clone_from(&redis);
    assert!(refusal(&world).await.contains("a node without Redis holds this database"));
    alone.client.post(INCREMENT, &json!({})).await.ok();
    // Swept while the lane was idle; the user is known.
    world.postgres().await.execute("delete from lanes").await.unwrap();
    assert_eq!(alone.client.post(INCREMENT, &json!({})).await.ok()["head"], 2);
    assert_eq!(alone.client.post(INCREMENT, &json!({})).await.ok()["head"], 3);
    alone.stop().await;
    let (first, second) = (world.node().await, world.node().await);
    world.redis_url.clear();
    assert!(refusal(&world).await.contains("set REDIS_URL on all of them"));
    first.stop().await;
    assert_eq!(poll(&second.client, 1).await.head("mention"), 3);
    second.stop().await;
    world.node().await.stop().await;
}

/// Ends the connection that holds the node lock.
const FREE_THE_LOCK: &str =
    "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and pid <> pg_backend_pid()
    and database = (select oid from pg_database where datname = current_database())";

/// The same, if it was in use a moment ago.
const FREE_THE_LOCK_JUST_SEEN: &str = "select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where locktype = 'advisory' and granted and l.pid <> pg_backend_pid() and datname = current_database()
    and clock_timestamp() - state_change < interval '20 milliseconds'";

/// Ends the connection that holds the node lock, and takes the lock.
async fn take_over(thief: &mut PgConnection) {
    eventually("the lock is free for a moment", async || {
        thief.execute(FREE_THE_LOCK).await.unwrap();
        let (got,): (bool,) = sqlx::query_as("select pg_try_advisory_lock($1)").bind(NODE_LOCK).fetch_one(&mut *thief).await.unwrap();
        got
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_loses_its_place_stops_writing_until_it_has_it_again() {
    let mut world = World::new(Tier::Server).await;
    world.redis_url.clear();
    let node = world.node().await;
    node.client.post(INCREMENT, &json!({})).await.ok();
    assert_eq!(poll(&node.client, 1).await.head("mention"), 1);
    let mut thief = world.postgres().await;
    take_over(&mut thief).await;
    eventually("writes are refused", async || node.client.post(INCREMENT, &json!({})).await.status == 503).await;
    node.client.post(INCREMENT, &json!({})).await.problem(503, "store_unavailable");
    assert_eq!(node.client.get("/readyz").await.ok()["database"], "away");
    // What the other one writes meanwhile is seen at once.
    let other = "update cache_guard set epoch = epoch + 1; update users set version = version + 1, revision = revision + 1, marks = 'c:mention 6 6'";
    thief.execute(other).await.unwrap();
    let mut truth = Truth::of(&world).await;
    assert_eq!(poll(&node.client, 1).await, truth.summary(1).await);
    thief.execute("select pg_advisory_unlock_all()").await.unwrap();
    eventually("it writes again", async || node.client.post(INCREMENT, &json!({})).await.status == 200).await;
    assert_eq!(poll(&node.client, 1).await, truth.summary(1).await);
}

/// A node alone on its Postgres loses the lock without knowing, and another one comes: no poll of
/// the first is older than what the second acknowledged. With `busy` the first writes meanwhile;
/// else it has nothing but its polls, which are hits.
async fn is_succeeded(mut world: World, redis_of_second: String, busy: bool) {
    world.redis_url.clear();
    let first = world.node().await;
    let mut hand = world.postgres().await;
    let mut acknowledged = 1;
    first.client.post(INCREMENT, &json!({})).await.ok();
    // As the second node is about to ask, and right after the first has looked, so that this notices
    // as late as it can. Should it be quicker even so, it is lost again.
    world.redis_url = redis_of_second;
    let world = Arc::new(world);
    let (reached, asks) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (reaches, waits) = (Arc::clone(&reached), Arc::clone(&asks));
    let hold = move || {
        reaches.add_permits(1);
        Handle::current().block_on(waits.acquire()).unwrap().forget();
    };
    fail::cfg_callback(BEFORE_FIRST_LOCK, hold).unwrap();
    let lose = async {
        loop {
            reached.acquire().await.unwrap().forget();
            eventually("it has just looked", async || hand.execute(FREE_THE_LOCK_JUST_SEEN).await.unwrap().rows_affected() > 0).await;
            asks.add_permits(1);
        }
    };
    let start = async {
        loop {
            let world = Arc::clone(&world);
            if let Ok(second) = tokio::spawn(async move { world.try_node(&[], Clock::System).await }).await.unwrap() {
                return second;
            }
        }
    };
    let start = async {
        tokio::select! {
            second = start => second,
            () = lose => unreachable!("it goes on for as long as nodes start"),
        }
    };
    tokio::pin!(start);
    let body = json!({});
    let second = loop {
        tokio::select! {
            biased;
            second = &mut start => break second,
            reply = first.client.post(INCREMENT, &body), if busy => acknowledged += i64::from(reply.status == 200),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
        let shown = first.client.get("/v1/users/1/badges").await.ok();
        assert!(shown["degraded"] == true || shown["total"].as_i64() >= Some(acknowledged), "{acknowledged} but {shown}");
    };
    fail::remove(BEFORE_FIRST_LOCK);
    for _ in 0..100 {
        acknowledged += 1;
        let head = second.client.post(INCREMENT, &json!({})).await.ok()["head"].as_i64().unwrap();
        assert!(head >= acknowledged, "{acknowledged} but {head}");
        acknowledged = head;
        let shown = first.client.get("/v1/users/1/badges").await.ok();
        assert!(shown["degraded"] == true || shown["total"] == head, "{head} but {shown}");
    }
    first.client.post(INCREMENT, &json!({})).await.problem(503, "store_unavailable");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_gives_way_to_another_one_alone() {
    for busy in [true, false] {
        is_succeeded(World::new(Tier::Server).await, String::new(), busy).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_gives_way_to_one_with_redis() {
    for busy in [true, false] {
        let world = World::new(Tier::Server).await;
        let redis = world.redis_url.clone();
        is_succeeded(world, redis, busy).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_stopped_for_long_wakes_up_fenced_off() {
    let mut world = World::new(Tier::Server).await;
    world.redis_url.clear();
    let sleeper = world.process(&[], &[]).await;
    sleeper.client.post(INCREMENT, &json!({})).await.ok();
    poll(&sleeper.client, 1).await;
    sleeper.stall().await;
    // Its writes are on their way as it wakes, before it looks at anything else.
    let writes: Vec<_> = (0..20)
        .map(|_| {
            let request = sleeper.client.request(reqwest::Method::POST, INCREMENT).json(&json!({}));
            tokio::spawn(async move { crate::support::Client::try_send(request).await.is_ok_and(|reply| reply.status == 200) })
        })
        .collect();
    world.postgres().await.execute(FREE_THE_LOCK).await.unwrap();
    let second = world.node().await;
    second.client.post(INCREMENT, &json!({})).await.ok();
    poll(&second.client, 1).await;
    sleeper.go_on();
    let mut truth = Truth::of(&world).await;
    for write in writes {
        assert!(!write.await.unwrap(), "acknowledged by a node that had lost its place");
    }
    let summary = truth.summary(1).await;
    assert_eq!(summary.head("mention"), 2);
    assert_eq!(poll(&second.client, 1).await, summary);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_displaced_process_ends_by_itself() {
    let mut world = World::new(Tier::Server).await;
    world.redis_url.clear();
    let mut process = world.process(&[], &[]).await;
    let mut thief = world.postgres().await;
    take_over(&mut thief).await;
    assert!(!process.ended().await.success());
}

/// Blocks the lane with a write for user 1, which is returned as it waits.
async fn blocked(node: &Node, hand: &mut Hand) -> tokio::task::JoinHandle<Value> {
    hand.block().await;
    let client = node.client.clone();
    let first = tokio::spawn(async move { client.post(INCREMENT, &json!({})).await.ok() });
    eventually("the lane waits", async || hand.waiting().await > 0).await;
    first
}

both_tiers! {
    async fn a_full_queue_refuses_at_once_and_loses_nothing(world: World) {
        let node = world.node_with(&["--lanes", "1", "--lane-queue", "1000"]).await;
        let mut hand = Hand::on(&world).await;
        hand.block().await;
        // 100 changes each, all waiting for user 1: ten fit.
        let batch = |user: i64| json!({"items": (0..100).map(|n| json!({"user_id": if n == 0 { 1 } else { user }, "badge": "mention"})).collect::<Vec<_>>()});
        let batches = (1001..=1016).map(|user| {
            let client = node.client.clone();
            tokio::spawn(async move { client.post("/v1/badges/increment", &batch(user)).await })
        });
        let batches: Vec<_> = batches.collect();
        let answered = || batches.iter().filter(|batch| batch.is_finished()).count();
        eventually("six are refused", async || answered() == 6).await;
        // The server goes on meanwhile.
        assert_eq!(node.client.get("/livez").await.status, 200);
        assert_eq!(poll(&node.client, 7).await.revision, 0);
        assert_eq!(answered(), 6, "the others wait");
        hand.release().await;
        let (mut taken, mut truth) = (0, Truth::of(&world).await);
        for (user, answered) in (1001..).zip(batches) {
            let reply = answered.await.unwrap();
            let taken_now = reply.status == 200;
            if !taken_now {
                reply.problem(503, "overloaded");
            }
            taken += i64::from(taken_now);
            assert_eq!(truth.summary(user).await.head("mention"), if taken_now { 99 } else { 0 });
        }
        assert_eq!((taken, truth.summary(1).await.head("mention")), (10, 10));
    }

    /// All of the room is never free while others write.
    async fn a_write_that_is_larger_than_the_queue_goes_in_beside_others(world: World) {
        let node = world.node_with(&["--lanes", "1", "--lane-queue", "1000"]).await;
        let mut hand = Hand::on(&world).await;
        let first = blocked(&node, &mut hand).await;
        let large = tokio::spawn({
            let client = node.client.clone();
            let recipients: Vec<_> = (2..=2001).collect();
            async move { client.post("/v1/notifications", &json!({"type": "n", "recipients": recipients})).await }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!large.is_finished(), "it waits");
        hand.release().await;
        first.await.unwrap();
        large.await.unwrap().ok();
        assert_eq!(node.client.summary(2001).await["notifications"]["n"]["unread"], 1);
        node.stop().await;
    }

    async fn a_poisonous_write_fails_alone(world: World) {
        let node = world.node_with(&["--lanes", "1"]).await;
        let mut hand = Hand::on(&world).await;
        match world.tier {
            Tier::Embedded => {
                for (name, event) in [("poison", "insert"), ("poison_known", "update")] {
                    hand.run(&format!("create trigger {name} before {event} on users when new.marks like '%poison%' begin select raise(abort, 'poison'); end")).await;
                }
            }
            Tier::Server => {
                hand.run("create function poison() returns trigger language plpgsql as 'begin raise exception ''poison''; end'").await;
                hand.run("create trigger poison before insert or update on users for each row when (new.marks like '%poison%') execute function poison()").await;
            }
        }
        let first = blocked(&node, &mut hand).await;
        let client = node.client.clone();
        let body = json!({});
        let paths: Vec<String> = (0..30).map(|n| format!("/v1/users/{}/badges/{}/increment", 1 + n % 3, if n % 10 == 4 { "poison" } else { "mention" })).collect();
        let writes = join_all(paths.iter().map(|path| client.post_once(path, path, &body)));
        let (replies, ()) = tokio::join!(writes, async {
            // Enough for all to be in the queue; should some come later, they only make the batch
            // smaller.
            tokio::time::sleep(Duration::from_millis(200)).await;
            hand.release().await;
        });
        first.await.unwrap();
        for (path, reply) in paths.iter().zip(replies) {
            if path.contains("poison") {
                reply.problem(500, "internal_error");
            } else {
                reply.ok();
            }
        }
        let mut truth = Truth::of(&world).await;
        for user in 1..=3 {
            // The poll enrols the user.
            let shown = poll(&node.client, user).await;
            let summary = truth.summary(user).await;
            assert_eq!(summary.counters.keys().collect::<Vec<_>>(), ["mention"]);
            assert_eq!(shown, summary);
        }
        hand.run(if world.tier == Tier::Server { "drop trigger poison on users" } else { "drop trigger poison; drop trigger poison_known" }).await;
        let path = paths.iter().find(|path| path.contains("poison")).unwrap();
        assert_eq!(node.client.post_once(path, path, &body).await.ok()["head"], 1, "a failure is not kept under the key");
    }
}
