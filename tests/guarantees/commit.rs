//! A connection lost in the middle of a write, above all in its commit: each write is counted once,
//! and the caller is told the truth.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::{Executor as _, PgConnection};

use super::truth::{Truth, poll};
use crate::support::{Node, Proxy, Reply, Tier, Trap, World, eventually};

const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

/// A node that reaches Postgres through the proxy, one that does not, and the rows.
struct Scene {
    proxy: Proxy,
    node: Node,
    /// Between that node and Redis.
    redis: Proxy,
    other: Node,
    truth: Truth,
    /// Past the proxy.
    hand: PgConnection,
    _world: World,
}

async fn scene() -> Scene {
    let mut world = World::new(Tier::Server).await;
    let other = world.node().await;
    let truth = Truth::of(&world).await;
    let mut hand = world.postgres().await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let (redis, url) = Proxy::start_redis(&world.redis_url).await;
    world.redis_url = url;
    let node = world.node_with(&["--lanes", "1"]).await;
    // Both have seen the user, and the lane has its connection and the row as it is: so the first commit that meets
    // the trap is one that holds. On a machine with much else to do, a store may seem away for a moment.
    poll(&other.client, 1).await;
    eventually("the poll is written", async || {
        let seen = sqlx::query_scalar("select count(*) from users where user_id = 1 and seen_day > 0");
        seen.fetch_one(&mut hand).await.unwrap_or(0_i64) == 1
    })
    .await;
    eventually("the node writes", async || node.client.post_once(INCREMENT, "first", &json!({})).await.status == 200).await;
    poll(&other.client, 1).await;
    Scene { proxy, node, redis, other, truth, hand, _world: world }
}

impl Scene {
    /// One more increment under this key, while the other node is polled all the time.
    async fn increment(&mut self, key: &str) -> Reply {
        let mut before = 0;
        let body = json!({});
        let write = self.node.client.post_once(INCREMENT, key, &body);
        tokio::pin!(write);
        loop {
            tokio::select! {
                reply = &mut write => return reply,
                (known, shown) = look(&mut self.truth, &self.other) => {
                    assert!(shown >= known && shown >= before, "rows {known}, shown {shown} after {before}");
                    before = shown;
                }
            }
        }
    }

    async fn expect(&mut self, head: i64) {
        let summary = self.truth.summary(1).await;
        assert_eq!(summary.counters["mention"], (head, head));
        assert_eq!(poll(&self.node.client, 1).await, summary);
        assert_eq!(poll(&self.other.client, 1).await, summary);
    }
}

/// The head in the rows, and then the head that the node shows.
async fn look(truth: &mut Truth, node: &Node) -> (i64, i64) {
    let known = truth.summary(1).await.head("mention");
    (known, poll(&node.client, 1).await.head("mention"))
}

/// The write succeeds although the trap springs, and the next one too.
async fn survives(trap: Trap) {
    let mut scene = scene().await;
    scene.proxy.arm(trap);
    let raised = scene.increment("a").await.ok();
    assert_eq!(scene.proxy.sprung(), 1, "the trap was passed by");
    assert_eq!(raised["head"], 2);
    scene.expect(2).await;
    let again = scene.node.client.post_once(INCREMENT, "a", &json!({})).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    // And where no key would tell a repeat.
    scene.proxy.arm(trap);
    assert_eq!(scene.node.client.post(INCREMENT, &json!({})).await.ok()["head"], 3);
    scene.node.client.post(INCREMENT, &json!({})).await.ok();
    scene.expect(4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_before_the_commit_is_tried_again() {
    survives(Trap::BeforeCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_after_the_commit_is_found_out() {
    survives(Trap::AfterCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_answer_is_waited_for() {
    survives(Trap::SlowAnswer(Duration::from_secs(1))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_too_slow_is_found_out() {
    survives(Trap::SlowAnswer(Duration::from_secs(6))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_between_the_statements_is_tried_again() {
    // All that is loaded, and the kept answer's contents; the rest goes with the commit.
    for statements in 1..=2 {
        survives(Trap::AfterStatements(statements)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_into_a_group_takes_four_round_trips() {
    let scene = scene().await;
    let client = &scene.node.client;
    client.put("/v1/groups/5", &json!({})).await.ok();
    client.put("/v1/groups/5/members/1", &json!({})).await.ok();
    let mut sent = 0;
    let mut send = async || {
        sent += 1;
        let message = json!({"sender_id": 1, "client_id": format!("m{sent}"), "content": "hello"});
        assert_eq!(client.post("/v1/groups/5/messages", &message).await.ok()["seq"], sent);
    };
    send().await;
    // Of several, as a machine that is busy may make the node try one again.
    let mut takes_more_than = async |trips| {
        for _ in 0..5 {
            let sprung = scene.proxy.sprung();
            scene.proxy.arm(Trap::AfterStatements(trips));
            send().await;
            if scene.proxy.sprung() == sprung {
                return false;
            }
        }
        true
    };
    // Users; what belongs to groups; contents; the rest with the commit.
    assert!(!takes_more_than(4).await, "a fifth");
    assert!(takes_more_than(3).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_arrives_too_late_takes_no_effect() {
    const LATE: Duration = Duration::from_millis(1500);
    let mut scene = scene().await;
    // Without a key, and of a user who is known: all of it goes in one message.
    scene.node.client.post(INCREMENT, &json!({})).await.ok();
    scene.proxy.arm(Trap::LateCommit(LATE));
    assert_eq!(scene.node.client.post(INCREMENT, &json!({})).await.ok()["head"], 3);
    assert_eq!(scene.proxy.sprung(), 1, "the trap was passed by");
    scene.expect(3).await;
    let mut raised = 3;
    let end = tokio::time::Instant::now() + 2 * LATE;
    while tokio::time::Instant::now() < end {
        scene.node.client.post(INCREMENT, &json!({})).await.ok();
        raised += 1;
        scene.expect(raised).await;
    }
}

/// The database is away for a while after the cut.
async fn waits_for_the_database(trap: Trap) {
    let mut scene = scene().await;
    scene.proxy.arm_and_leave(trap);
    let client = scene.node.client.clone();
    let write = tokio::spawn(async move { client.post_once(INCREMENT, "a", &json!({})).await });
    eventually("the trap springs", async || scene.proxy.sprung() == 1).await;
    // Long enough for several vain questions.
    for _ in 0..20 {
        let (known, shown) = look(&mut scene.truth, &scene.other).await;
        assert!(shown >= known, "rows {known}, shown {shown}");
        tokio::time::sleep(Duration::from_millis(75)).await;
    }
    assert!(!write.is_finished(), "nothing can be known yet");
    scene.proxy.come_back().await;
    assert_eq!(write.await.unwrap().ok()["head"], 2);
    scene.expect(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_after_the_commit_and_away_for_a_while() {
    waits_for_the_database(Trap::AfterCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_before_the_commit_and_away_for_a_while() {
    let mut scene = scene().await;
    scene.proxy.arm_and_leave(Trap::BeforeCommit);
    let client = scene.node.client.clone();
    let write = tokio::spawn(async move { client.post_once(INCREMENT, "a", &json!({})).await });
    eventually("the trap springs", async || scene.proxy.sprung() == 1).await;
    assert_eq!(look(&mut scene.truth, &scene.other).await, (1, 1));
    scene.proxy.come_back().await;
    insist(&scene, write.await.unwrap()).await;
    scene.expect(2).await;
}

/// Of the node that renews its lease after the old one has ended, nothing is applied: the other one has written
/// meanwhile, and was the last one inside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_node_wrote_while_a_commit_was_in_doubt_shows() {
    let mut scene = scene().await;
    scene.proxy.arm_and_leave(Trap::AfterCommit);
    let client = scene.node.client.clone();
    let write = tokio::spawn(async move { client.post_once(INCREMENT, "a", &json!({})).await });
    eventually("the trap springs", async || scene.proxy.sprung() == 1).await;
    scene.redis.leave();
    let other = scene.other.client.post(INCREMENT, &json!({})).await.ok();
    assert_eq!(other["head"], 3);
    // Longer than the lease, and nobody polls.
    tokio::time::sleep(Duration::from_millis(5500)).await;
    scene.redis.come_back().await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    scene.proxy.come_back().await;
    assert_eq!(write.await.unwrap().ok()["head"], 2);
    scene.expect(3).await;
}

/// The answer, or that of further tries where nothing was changed.
async fn insist(scene: &Scene, mut reply: Reply) -> Value {
    while reply.status == 503 {
        assert_eq!(reply.body["code"], "store_unavailable");
        tokio::time::sleep(Duration::from_millis(50)).await;
        reply = scene.node.client.post_once(INCREMENT, "a", &json!({})).await;
    }
    reply.ok()
}

/// The database stays away: the caller is told that nobody knows, and the same key finds it out
/// later.
async fn stays_unknown(trap: Trap) {
    let mut scene = scene().await;
    scene.proxy.arm_and_leave(trap);
    let reply = scene.increment("a").await;
    reply.problem(503, "outcome_unknown");
    scene.node.client.post(INCREMENT, &json!({})).await.problem(503, "store_unavailable");
    scene.proxy.come_back().await;
    eventually("the node has its database again", async || scene.node.client.post_once(INCREMENT, "a", &json!({})).await.status == 200)
        .await;
    assert_eq!(scene.node.client.post_once(INCREMENT, "a", &json!({})).await.ok()["head"], 2);
    scene.expect(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_commit_that_took_effect_counts_once() {
    stays_unknown(Trap::AfterCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_commit_that_did_not_take_effect_counts_once() {
    stays_unknown(Trap::BeforeCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_whose_row_is_gone_does_not_take_that_for_no() {
    let mut scene = scene().await;
    scene.proxy.arm_and_leave(Trap::AfterCommit);
    let client = scene.node.client.clone();
    let write = tokio::spawn(async move { client.post_once(INCREMENT, "a", &json!({})).await });
    eventually("the commit is in the rows", async || scene.truth.summary(1).await.head("mention") == 2).await;
    scene.hand.execute("delete from lanes").await.unwrap();
    scene.proxy.come_back().await;
    write.await.unwrap().problem(503, "outcome_unknown");
    assert_eq!(scene.node.client.post_once(INCREMENT, "a", &json!({})).await.ok()["head"], 2, "the key tells");
    assert_eq!(scene.node.client.post(INCREMENT, &json!({})).await.ok()["head"], 3, "the lane goes on");
    scene.expect(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_of_one_lost_commit_are_each_counted_once() {
    for trap in [Trap::BeforeCommit, Trap::AfterCommit] {
        let mut scene = scene().await;
        scene.proxy.arm(trap);
        let client = scene.node.client.clone();
        let body = json!({});
        let replies = join_all((0..60).map(|_| client.post(INCREMENT, &body))).await;
        let mut heads: Vec<i64> = replies.into_iter().map(|reply| reply.ok()["head"].as_i64().unwrap()).collect();
        heads.sort_unstable();
        assert_eq!(heads, (2..=61).collect::<Vec<_>>());
        scene.expect(61).await;
    }
}
