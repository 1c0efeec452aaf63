//! A store is away, comes back, or forgets what it knew: no acknowledged write is lost, and no poll
//! shows an older state.

use std::time::Duration;

use deadpool_redis::redis::from_redis_value;
use futures_util::future::join_all;
use headmark::base::clock::Clock;
use serde_json::{Value, json};
use sqlx::Executor as _;
use tokio::time::Instant;

use super::storm::Storm;
use super::truth::{Summary, Truth, poll};
use crate::support::{Client, Node, Nodes, Proxy, RedisServer, Reply, Tier, World, eventually_within};

pub(super) const INCREMENT: &str = "/v1/users/1/badges/mention/increment";

/// Ends every connection of the nodes.
const END_EVERY_CONNECTION: &str =
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'headmark'";

/// How long until a bypass has ended and the cache is used again, with room to spare.
const RECOVERY_S: u64 = 45;

/// Two nodes on a Redis of their own.
pub(super) struct Scene {
    pub(super) redis: RedisServer,
    pub(super) nodes: [Node; 2],
    truth: Truth,
    pub(super) world: World,
}

pub(super) async fn scene() -> Scene {
    scene_through(async |redis_url| ((), redis_url)).await.1
}

/// The first node reaches Redis by the way given.
async fn scene_through<T>(way: impl AsyncFnOnce(String) -> (T, String)) -> (T, Scene) {
    let mut world = World::new(Tier::Server).await;
    let redis = RedisServer::start(&world.dir).await;
    let (kept, redis_url) = way(redis.url()).await;
    world.redis_url = redis_url;
    let first = world.node().await;
    world.redis_url = redis.url();
    let nodes = [first, world.node().await];
    let truth = Truth::of(&world).await;
    (kept, Scene { redis, nodes, truth, world })
}

impl Scene {
    /// A write at one node shows at once on both.
    pub(super) async fn write_and_look(&mut self, writer: usize) {
        // The first poll enrols the user, which is a write, too.
        poll(&self.nodes[writer].client, 1).await;
        let raised = self.nodes[writer].client.post(INCREMENT, &json!({})).await.ok();
        for node in &self.nodes {
            let shown = poll(&node.client, 1).await;
            assert_eq!(shown.revision, raised["revision"], "{raised} acknowledged, {shown:?} shown");
        }
        assert_eq!(poll(&self.nodes[0].client, 1).await, self.truth.summary(1).await);
    }

    /// Writes at both nodes in turn until every node says that the cache is in use; what is shown
    /// must be exact all the while.
    pub(super) async fn recover(&mut self) {
        let give_up = Instant::now() + Duration::from_secs(RECOVERY_S);
        loop {
            self.write_and_look(0).await;
            self.write_and_look(1).await;
            let states = [cache_state(&self.nodes[0]).await, cache_state(&self.nodes[1]).await];
            if states == ["ok", "ok"] {
                break;
            }
            assert!(Instant::now() < give_up, "the cache is still not used: {states:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for user in 1..=3 {
            // The first poll of a user is an enrolment, which raises the revision.
            poll(&self.nodes[0].client, user).await;
            let summary = self.truth.summary(user).await;
            for node in &self.nodes {
                assert_eq!(poll(&node.client, user).await, summary);
            }
        }
        self.write_and_look(0).await;
        // Writes that Redis began after it was back keep their writers inside for a lease.
        eventually_within(10, "the poll filled it", async || {
            poll(&self.nodes[0].client, 1).await;
            !self.is_dirty().await
        })
        .await;
    }

    async fn is_dirty(&self) -> bool {
        let key = format!("{}{{u:1}}", self.world.prefix);
        let found: (bool, bool) = (
            from_redis_value(self.redis.ask(&["EXISTS", &key]).await).unwrap(),
            from_redis_value(self.redis.ask(&["HEXISTS", &key, "!d"]).await).unwrap(),
        );
        found != (true, false)
    }

    fn storm(&self) -> Storm {
        let mut storm = Storm::new(Nodes::of(self.nodes.iter().map(|node| node.client.clone())));
        storm.calm = false;
        storm
    }
}

pub(super) async fn cache_state(node: &Node) -> String {
    let ready = node.client.get("/readyz").await;
    assert_eq!(ready.status, 200, "{}", ready.text);
    ready.body["cache"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_redis_dies_and_returns() {
    let mut scene = scene().await;
    scene.write_and_look(0).await;
    scene.redis.kill();
    // Polls go on at once.
    assert_eq!(poll(&scene.nodes[1].client, 1).await.head("mention"), 1);
    let began = Instant::now();
    scene.write_and_look(0).await;
    assert!(began.elapsed() > Duration::from_secs(2), "the other node must have had the time to see the new epoch");
    for _ in 0..20 {
        scene.write_and_look(0).await;
    }
    scene.write_and_look(1).await;
    assert_eq!(cache_state(&scene.nodes[0]).await, "away");
    assert_eq!(cache_state(&scene.nodes[1]).await, "away");
    scene.redis.restart().await;
    scene.recover().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_node_starts_while_redis_is_away_but_not_where_it_is_refused() {
    let mut scene = scene().await;
    scene.write_and_look(0).await;
    scene.redis.ask(&["CONFIG", "SET", "requirepass", "secret"]).await;
    let refusal = scene.world.try_node(&[], Clock::System).await.expect_err("a refusal");
    assert!(refusal.starts_with("cannot use Redis: "), "{refusal}");
    scene.redis.kill();
    let started = scene.world.node().await;
    std::mem::replace(&mut scene.nodes[1], started).stop().await;
    assert_eq!(cache_state(&scene.nodes[1]).await, "away");
    scene.write_and_look(1).await;
    scene.write_and_look(0).await;
    scene.redis.restart().await;
    scene.recover().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_redis_stalls_and_remembers_what_is_outdated_since() {
    let mut scene = scene().await;
    for user in 1..=3 {
        let path = format!("/v1/users/{user}/badges/mention/increment");
        scene.nodes[0].client.post(&path, &json!({})).await.ok();
        poll(&scene.nodes[1].client, user).await;
    }
    scene.redis.stall().await;
    for user in 1..=3 {
        scene.nodes[0].client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await.ok();
    }
    for _ in 0..5 {
        scene.write_and_look(0).await;
    }
    // It answers again, with clean entries of old.
    scene.redis.go_on();
    for user in 1..=3 {
        for node in &scene.nodes {
            assert_eq!(poll(&node.client, user).await, scene.truth.summary(user).await);
        }
    }
    scene.recover().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_redis_is_away_for_one_node_only() {
    let (proxy, mut scene) = scene_through(async |url| Proxy::start_redis(&url).await).await;
    scene.write_and_look(0).await;
    scene.write_and_look(1).await;
    proxy.leave();
    // The other one has it, with clean entries that nobody makes dirty.
    let (first, second) = (scene.nodes[0].client.clone(), scene.nodes[1].client.clone());
    let body = json!({});
    let write = first.post(INCREMENT, &body);
    tokio::pin!(write);
    let acknowledged = loop {
        tokio::select! {
            reply = &mut write => break reply.ok(),
            shown = poll(&second, 1) => assert!(shown.head("mention") >= 2),
        }
    };
    assert_eq!(poll(&second, 1).await.revision, acknowledged["revision"]);
    for _ in 0..30 {
        scene.write_and_look(0).await;
        scene.write_and_look(1).await;
    }
    proxy.come_back().await;
    scene.recover().await;
}

/// As a machine that is paused does it: the lease ends before the commit, another node fills in what
/// was there before, and then Redis does not hear of the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_node_stands_still_before_its_commit_and_redis_is_away_after_it() {
    let mut world = World::new(Tier::Server).await;
    let redis = RedisServer::start(&world.dir).await;
    let (proxy, through) = Proxy::start_redis(&redis.url()).await;
    world.redis_url = through;
    let mut still = world.process(&[], &[("FAILPOINTS", "lane::before_commit=1*off->1*sleep(6000)->off")]).await;
    world.redis_url = redis.url();
    let other = world.node().await;
    // The first poll enrols the user, which is a write.
    poll(&other.client, 1).await;
    // From then on the node knows the user's row, and sends a batch in one message with its commit.
    still.client.post(INCREMENT, &json!({})).await.ok();
    let client = still.client.clone();
    let write = tokio::spawn(async move { client.post(INCREMENT, &json!({})).await });
    tokio::time::sleep(Duration::from_millis(5300)).await;
    assert_eq!(poll(&other.client, 1).await.head("mention"), 1, "not committed yet");
    proxy.leave();
    let answered = write.await.unwrap();
    if answered.status == 200 {
        assert_eq!(poll(&other.client, 1).await.head("mention"), 2, "it is acknowledged");
    } else {
        answered.problem(503, "outcome_unknown");
    }
    still.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_redis_is_flushed_under_load() {
    let mut scene = scene().await;
    let storm = scene.storm();
    let flush = async {
        loop {
            scene.redis.ask(&["FLUSHALL"]).await;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    storm.rage(flush).await;
    storm.settle(&mut scene.truth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_redis_is_away_under_load() {
    let Scene { mut redis, nodes, mut truth, world: _world } = scene().await;
    let mut storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
    storm.calm = false;
    storm.steps = 150;
    let outage = async {
        while storm.acknowledged() < 50 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        redis.kill();
        let during = storm.acknowledged() + 100;
        while storm.acknowledged() < during {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        redis.restart().await;
    };
    storm.rage(outage).await;
    storm.settle(&mut truth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_postgres_ends_every_connection_under_load() {
    let world = World::new(Tier::Server).await;
    let nodes = [world.node().await, world.node().await];
    let mut storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
    storm.calm = false;
    let mut admin = world.postgres().await;
    let terminate = async {
        let mut enough = 50;
        loop {
            while storm.acknowledged() < enough {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            admin.execute(END_EVERY_CONNECTION).await.unwrap();
            enough += 60;
        }
    };
    storm.rage(terminate).await;
    let mut truth = Truth::of(&world).await;
    for node in &nodes {
        recovered(&node.client).await;
    }
    storm.settle(&mut truth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_read_passes_over_connections_that_postgres_has_ended() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let mut admin = world.postgres().await;
    for round in 0..5 {
        // Many at once, so that the pool holds more than one connection; of other users each time,
        // whom the cache does not know.
        let queries = async |from: i64| {
            let query = async |user: i64| node.client.post("/v1/badges/query", &json!({"user_ids": [user]})).await;
            join_all((from..from + 20).map(query)).await.into_iter().map(Reply::ok).count()
        };
        queries(100 * round + 1).await;
        admin.execute(END_EVERY_CONNECTION).await.unwrap();
        queries(100 * round + 51).await;
    }
    node.stop().await;
}

/// Waits until a node has its database again.
async fn recovered(client: &Client) {
    eventually_within(20, "the node is ready and polls are full", async || {
        let summary = client.get("/v1/users/1/badges").await;
        client.get("/readyz").await.body["degraded"] == false && summary.body["degraded"] == false
    })
    .await;
}

/// All that an unread summary shows.
const KINDS: [&str; 6] = ["counters", "broadcasts", "dots", "feed", "chats", "notifications"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_postgres_is_away() {
    let mut world = World::new(Tier::Server).await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let nodes = [world.node().await, world.node().await];
    let (first, second) = (&nodes[0].client, &nodes[1].client);
    for n in 1..=3 {
        assert_eq!(first.post(INCREMENT, &json!({})).await.ok()["head"], n);
    }
    let known = poll(second, 1).await;
    proxy.leave();
    first.post_once(INCREMENT, "away", &json!({})).await.problem(503, "store_unavailable");
    first.post("/v1/badges/query", &json!({"user_ids": [2]})).await.problem(503, "store_unavailable");
    eventually_within(10, "the view is no longer fresh", async || second.get("/v1/users/1/badges").await.body["degraded"] == true).await;
    let stale = second.get("/v1/users/1/badges").await;
    assert_eq!((stale.header("etag"), &stale.body["stale"]), ("", &json!(KINDS)));
    assert!(stale.body.get("missing").is_none());
    assert_eq!(last_known(stale.ok()), known);
    let unknown = second.get("/v1/users/99/badges").await;
    assert_eq!((unknown.header("etag"), &unknown.body["missing"]), ("", &json!(KINDS)));
    assert_eq!(["counters", "total", "revision"].map(|part| unknown.body.get(part)), [None, None, None], "never invented");
    second.post("/v1/badges/query", &json!({"user_ids": [1, 2]})).await.problem(503, "store_unavailable");
    let ready = second.get("/readyz").await.ok();
    assert_eq!((&ready["degraded"], &ready["database"]), (&json!(true), &json!("away")));
    assert_eq!(second.get("/livez").await.status, 200);
    proxy.come_back().await;
    recovered(first).await;
    recovered(second).await;
    assert_eq!(poll(second, 1).await, known, "nothing was written");
    assert_eq!(first.post_once(INCREMENT, "away", &json!({})).await.ok()["head"], 4);
    assert_eq!(poll(second, 1).await.counters["mention"], (4, 4));
}

/// A degraded unread summary's content.
fn last_known(mut body: Value) -> Summary {
    body["degraded"] = false.into();
    Summary::shown(&body)
}
