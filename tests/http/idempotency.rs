//! Idempotency keys: the same request again replays the first answer and changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headmark::base::clock::{Clock, DAY_MS, UnixMs};
use headmark::engine::idempotency::{self, KEPT_MS};
use reqwest::Method;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, Executor as _};

use crate::both_tiers;
use crate::support::{Client, Node, Reply, Tier, World, eventually};

const INCREMENT: &str = "/v1/users/42/badges/mention/increment";
const RETRACT: &str = "/v1/users/42/badges/mention/retract";
const BATCH: &str = "/v1/badges/increment";
const MINUTE_MS: i64 = 60 * 1000;

fn is_replayed(reply: &Reply) -> bool {
    reply.header("idempotent-replayed") == "true"
}

/// A node on a clock of its own, which is returned too.
async fn node_with_clock(world: &World) -> (Node, Arc<AtomicI64>) {
    let ms = Arc::new(AtomicI64::new(1_769_851_800_000));
    (world.node_at(&ms, &[]).await, ms)
}

both_tiers! {
    async fn the_same_request_again_replays_the_first_answer(world: World) {
        let node = world.node().await;
        let first = node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        assert!(!is_replayed(&first) && first.status == 200, "{}", first.text);
        node.client.post(INCREMENT, &json!({"by": 4})).await.ok();
        let again = node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        assert!(is_replayed(&again));
        assert_eq!((again.status, &again.text), (first.status, &first.text));
        assert_eq!(again.header("content-type"), "application/json");
        let summary = node.client.summary(42).await;
        assert_eq!((&summary["total"], &summary["revision"]), (&json!(7), &json!(3)));
        node.stop().await;
    }

    async fn a_key_belongs_to_its_method_path_and_body(world: World) {
        let node = world.node().await;
        node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await.ok();
        for (path, body) in [
            (INCREMENT, json!({"by": 4})),
            (INCREMENT, json!({})),
            (RETRACT, json!({"by": 3})),
            ("/v1/users/43/badges/mention/increment", json!({"by": 3})),
            ("/v1/users/42/badges/like/increment", json!({"by": 3})),
            (BATCH, json!({"items": [{"user_id": 42, "badge": "mention", "by": 3}]})),
        ] {
            node.client.post_once(path, "k1", &body).await.problem(422, "idempotency_key_reused");
        }
        assert_eq!(node.client.summary(42).await["revision"], 2);
        assert!(is_replayed(&node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await), "the kept answer outlives those");
        assert!(!is_replayed(&node.client.post_once(INCREMENT, "k2", &json!({"by": 3})).await), "another key is another request");
        node.stop().await;
    }

    async fn a_retry_may_write_the_same_json_otherwise(world: World) {
        let node = world.node().await;
        let sent = async |key: &str, path: &str, body: &'static str| {
            let request = node.client.request(Method::POST, path).header("content-type", "application/json");
            Client::send(request.header("idempotency-key", key).body(body)).await
        };
        let first = sent("k1", BATCH, r#"{"items":[{"user_id":"42","badge":"mention","by":3}]}"#).await;
        let again = sent("k1", BATCH, "{ \"items\": [\n {\"by\": 3, \"badge\": \"m\\u0065ntion\", \"user_id\": \"42\"} ] }\n").await;
        assert!(is_replayed(&again) && again.text == first.text, "{}", again.text);
        sent("k1", BATCH, r#"{"items":[{"user_id":42,"badge":"mention","by":3}]}"#).await.problem(422, "idempotency_key_reused");
        // Numbers count as they are written, as `data` keeps them so.
        let path = "/v1/broadcasts/system";
        sent("k2", path, r#"{"title":"t","data":{"a":1,"b":2}}"#).await.ok();
        assert!(is_replayed(&sent("k2", path, r#"{"data":{"b":2,"a":1},"title":"t"}"#).await));
        sent("k2", path, r#"{"title":"t","data":{"a":1.0,"b":2}}"#).await.problem(422, "idempotency_key_reused");
        let summary = node.client.summary(42).await;
        assert_eq!((&summary["total"], &summary["counters"]["mention"]["head"]), (&json!(3), &json!(3)));
        node.stop().await;
    }

    async fn each_named_caller_has_keys_of_its_own(world: World) {
        let node = world.node_with(&["--service-keys", "web:the-old-secret-1,web:the-new-secret-1,worker:the-other-secret"]).await;
        let as_caller = |secret| node.client.with_bearer(secret);
        as_caller("the-old-secret-1").post_once(INCREMENT, "k1", &json!({"by": 3})).await.ok();
        let worker = as_caller("the-other-secret").post_once(INCREMENT, "k1", &json!({"by": 5})).await;
        assert!(!is_replayed(&worker));
        assert_eq!(worker.ok()["unread"], 8);
        let rotated = as_caller("the-new-secret-1").post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        assert!(is_replayed(&rotated), "the same caller after its key was rotated");
        node.stop().await;
    }

    async fn retract_and_the_batch_take_keys_too(world: World) {
        let node = world.node().await;
        let batch = json!({"items": [{"user_id": 42, "badge": "mention", "by": 9}, {"user_id": 43, "badge": "like"}]});
        for (path, body) in [(BATCH, &batch), (RETRACT, &json!({"by": 2}))] {
            let first = node.client.post_once(path, path, body).await;
            let again = node.client.post_once(path, path, body).await;
            assert!(!is_replayed(&first) && is_replayed(&again), "{path}");
            assert_eq!(first.text, again.text);
        }
        assert_eq!((&node.client.summary(42).await["total"], &node.client.summary(43).await["total"]), (&json!(7), &json!(1)));
        node.stop().await;
    }

    async fn a_refusal_decided_by_state_is_kept_as_a_problem(world: World) {
        let node = world.node().await;
        let full: Vec<_> = (0..100).map(|n| json!({"user_id": 42, "badge": format!("b{n}")})).collect();
        node.client.post(BATCH, &json!({ "items": full })).await.ok();
        let batch = json!({"items": [{"user_id": 42, "badge": "b1"}, {"user_id": 42, "badge": "mention"}]});
        for (path, body) in [(INCREMENT, &json!({})), (BATCH, &batch)] {
            let first = node.client.post_once(path, path, body).await;
            let again = node.client.post_once(path, path, body).await;
            assert!(!is_replayed(&first) && is_replayed(&again), "{path}");
            assert_eq!(first.clone().problem(409, "too_many"), again.problem(409, "too_many"));
        }
        node.stop().await;
    }

    async fn answers_not_decided_by_state_are_not_kept(world: World) {
        let node = world.node().await;
        node.client.post_once(RETRACT, "k1", &json!({"at": 2})).await.problem(404, "not_found");
        node.client.post_once(INCREMENT, "k2", &json!({"by": 0})).await.problem(422, "invalid_body");
        let raised = node.client.post_once(INCREMENT, "k2", &json!({"by": 3})).await;
        assert!(!is_replayed(&raised) && raised.status == 200);
        let retracted = node.client.post_once(RETRACT, "k1", &json!({"at": 2})).await;
        assert!(!is_replayed(&retracted));
        assert_eq!(retracted.ok()["unread"], 2);
        assert!(is_replayed(&node.client.post_once(RETRACT, "k1", &json!({"at": 2})).await));
        node.stop().await;
    }

    async fn a_key_survives_a_restart(world: World) {
        let node = world.node().await;
        let first = node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        node.stop().await;
        let node = world.node().await;
        let again = node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        assert!(is_replayed(&again));
        assert_eq!((again.text, node.client.summary(42).await["total"].clone()), (first.text, json!(3)));
        node.stop().await;
    }

    async fn a_key_and_its_write_survive_a_kill(world: World) {
        let mut node = world.process(&[], &[]).await;
        let first = node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        node.kill().await;
        let node = world.node().await;
        assert_eq!(node.client.summary(42).await["total"], 3);
        let again = node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        assert!(is_replayed(&again));
        assert_eq!((again.text, first.status.as_u16()), (first.text, 200));
        node.stop().await;
    }

    async fn many_at_once_on_all_nodes_count_once(world: World) {
        let nodes = world.nodes().await;
        for key in ["k1", "k2", "k3"] {
            let sent: Vec<_> = (0..60)
                .map(|n| {
                    let client = nodes[n % nodes.len()].client.clone();
                    tokio::spawn(async move { client.post_once(INCREMENT, key, &json!({"by": 3})).await })
                })
                .collect();
            let mut replies = Vec::new();
            for reply in sent {
                replies.push(reply.await.unwrap());
            }
            assert_eq!(replies.iter().filter(|reply| !is_replayed(reply)).count(), 1);
            assert!(replies.iter().all(|reply| reply.status == 200 && reply.text == replies[0].text));
        }
        assert_eq!(nodes[0].client.summary(42).await["total"], 9);
        Node::stop_all(nodes).await;
    }

    async fn a_key_is_kept_for_24_hours(world: World) {
        let (node, clock) = node_with_clock(&world).await;
        node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await.ok();
        clock.fetch_add(KEPT_MS - 1, Ordering::Relaxed);
        assert!(is_replayed(&node.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await));
        clock.fetch_add(1, Ordering::Relaxed);
        let again = node.client.post_once(INCREMENT, "k1", &json!({"by": 4})).await;
        assert!(!is_replayed(&again));
        assert_eq!(again.ok()["unread"], 7);
        clock.fetch_add(KEPT_MS - 1, Ordering::Relaxed);
        assert!(is_replayed(&node.client.post_once(INCREMENT, "k1", &json!({"by": 4})).await), "its day began again");
        node.stop().await;
    }

    /// The clock of the node that writes is four minutes behind, and that of the other one four minutes ahead.
    async fn a_key_is_kept_for_24_hours_where_clocks_differ(world: World) {
        let clocks = [-4, 4].map(|minutes| Arc::new(AtomicI64::new(1_769_851_800_000 + minutes * MINUTE_MS)));
        let mut nodes = vec![world.node_at(&clocks[0], &[]).await];
        nodes[0].client.post_once(INCREMENT, "k1", &json!({"by": 3})).await.ok();
        // One of SQLite has the database for itself.
        if world.tier == Tier::Embedded {
            Node::stop_all(std::mem::take(&mut nodes)).await;
        }
        for clock in &clocks {
            clock.fetch_add(DAY_MS - 5 * MINUTE_MS, Ordering::Relaxed);
        }
        nodes.push(world.node_at(&clocks[1], &[]).await);
        let other = nodes.last().unwrap();
        idempotency::sweep(&other.app.state().db, UnixMs(clocks[1].load(Ordering::Relaxed))).await.unwrap();
        let again = other.client.post_once(INCREMENT, "k1", &json!({"by": 3})).await;
        assert!(is_replayed(&again), "{}", again.text);
        assert_eq!(other.client.summary(42).await["total"], 3);
        Node::stop_all(nodes).await;
    }

    async fn outdated_keys_are_swept(world: World) {
        let (node, clock) = node_with_clock(&world).await;
        node.client.post_once(INCREMENT, "old", &json!({})).await.ok();
        clock.fetch_add(DAY_MS / 2, Ordering::Relaxed);
        node.client.post_once(INCREMENT, "young", &json!({})).await.ok();
        clock.fetch_add(KEPT_MS - DAY_MS / 2, Ordering::Relaxed);
        // Kept keys are counted, not swept ones: the node's own sweep as it starts may come first.
        idempotency::sweep(&node.app.state().db, UnixMs(clock.load(Ordering::Relaxed))).await.unwrap();
        assert_eq!(keys_kept(&node).await, 1);
        assert!(is_replayed(&node.client.post_once(INCREMENT, "young", &json!({})).await));
        node.stop().await;
        // A node sweeps by itself as it starts, and every minute.
        let node = world.try_node(&[], Clock::Manual(Arc::new(AtomicI64::new(clock.load(Ordering::Relaxed) + DAY_MS)))).await.unwrap();
        eventually("the node has swept", async || {
            keys_kept(&node).await == 0
        })
        .await;
        node.stop().await;
    }

    async fn a_key_has_1_to_255_visible_characters(world: World) {
        let node = world.node().await;
        let longest = "k".repeat(255);
        for good in ["k", "\"quoted\"", "8e03978e-40d5-43e8-bc93-6894a57f9324", &longest] {
            node.client.post_once(INCREMENT, good, &json!({})).await.ok();
        }
        for bad in ["", "a b", "tab\there", "é", &format!("{longest}k")] {
            let reply = node.client.post_once(INCREMENT, bad, &json!({})).await;
            assert_eq!(reply.pointers(400, "invalid_header"), ["Idempotency-Key"], "{bad}");
        }
        let twice = node.client.request(Method::POST, INCREMENT).header("idempotency-key", "a").header("idempotency-key", "b");
        assert_eq!(Client::send(twice).await.pointers(400, "invalid_header"), ["Idempotency-Key"]);
        assert_eq!(node.client.summary(42).await["total"], 4);
        node.stop().await;
    }
}

/// How many keys the database holds.
async fn keys_kept(node: &Node) -> i64 {
    use headmark::db::{Column, Statement, Type};
    static COUNT: Statement = Statement::new("select cast(count(*) as bigint) from idempotency_keys, {rows} r", &[("one", Type::Int)]);
    let rows: Vec<(i64,)> = node.app.state().db.fetch(&COUNT, &[Column::Int(vec![1])]).await.unwrap();
    rows[0].0
}

/// The advisory lock that a transaction holds while it decides about a key of the open server's
/// caller.
fn lock_of(key: &str) -> i64 {
    let digest = Sha256::new().chain_update("headmark:idempotency:open\0").chain_update(key).finalize();
    i64::from_be_bytes(digest[..8].try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_still_running_elsewhere_is_waited_for() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let mut elsewhere = world.postgres().await;
    let mut transaction = elsewhere.begin().await.unwrap();
    let lock = format!("select pg_advisory_xact_lock({})", lock_of("k1"));
    transaction.execute(sqlx::AssertSqlSafe(lock.clone())).await.unwrap();

    let asked = Instant::now();
    let client = node.client.clone();
    let held = tokio::spawn(async move { client.post_once(INCREMENT, "k1", &json!({"by": 3})).await });
    // Others, of the same user and so of the same lane, are not held up.
    let mut others = 0;
    while !held.is_finished() {
        let began = Instant::now();
        node.client.post(INCREMENT, &json!({})).await.ok();
        node.client.post_once(INCREMENT, &format!("other-{others}"), &json!({})).await.ok();
        others += 1;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert!(asked.elapsed() < Duration::from_secs(10), "it must give up after five seconds");
    }
    held.await.unwrap().problem(409, "idempotency_in_progress");
    assert!((Duration::from_millis(4900)..Duration::from_secs(8)).contains(&asked.elapsed()), "{:?}", asked.elapsed());
    assert!(others > 5, "only {others} others in five seconds");

    // That 409 was not decided by state and is not kept: as soon as the other is done, the request
    // goes through.
    let client = node.client.clone();
    let held = tokio::spawn(async move { client.post_once(INCREMENT, "k1", &json!({"by": 3})).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!held.is_finished());
    transaction.rollback().await.unwrap();
    let done = held.await.unwrap();
    assert!(!is_replayed(&done));
    assert_eq!(done.ok()["unread"], 2 * others + 3);
    node.stop().await;
}
