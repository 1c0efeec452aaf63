//! Redis with Sentinels: the master is killed, or stands still and comes back when another one has
//! been promoted. No poll shows an older state, with a tag or without, held or not; writes go on; and
//! nothing acknowledged is lost. The same where Sentinels disagree for ever.

use std::time::Duration;

use serde_json::{Value, json};

use super::stores::{INCREMENT, cache_state};
use super::storm::Storm;
use super::truth::{Truth, poll};
use crate::support::{MASTER, Node, Nodes, RedisServer, Sentinels, Tier, World, eventually_within, refusal, run};

/// How long writes may stand still after the master is gone: until the Sentinels have noticed and a
/// node that cannot begin has told the others, with room to spare.
const WRITES_WITHIN_S: u64 = 15;

/// How long until the cache is used again.
const RECOVERY_S: u64 = 45;

/// Two nodes that ask Sentinels, under load.
struct Scene {
    replica: RedisServer,
    sentinels: Sentinels,
    nodes: [Node; 2],
    storm: Storm,
    /// Last, as its folder goes with it.
    world: World,
}

impl Scene {
    /// With the master.
    async fn new() -> (RedisServer, Self) {
        let mut world = World::new(Tier::Server).await;
        let master = RedisServer::start(&world.dir).await;
        let replica = RedisServer::replica_of(&master, &world.dir).await;
        let sentinels = Sentinels::start(&world.dir, 3, &master, 1).await;
        world.redis_url = sentinels.urls();
        let nodes = [node(&world).await, node(&world).await];
        let storm = storm(&nodes);
        (master, Self { replica, sentinels, nodes, storm, world })
    }

    async fn promoted(&self, by: usize) {
        eventually_within(20, "the Sentinels name the replica", async || self.sentinels.naming(&self.replica).await >= by).await;
    }

    /// Waits until both nodes use the cache again.
    async fn recovered(&self) {
        eventually_within(RECOVERY_S, "both nodes use the cache", async || {
            cache_state(&self.nodes[0]).await == "ok" && cache_state(&self.nodes[1]).await == "ok"
        })
        .await;
    }

    /// What is so, what every node shows and what was acknowledged agree.
    async fn settle(self) {
        self.storm.settle(&mut Truth::of(&self.world).await).await;
        Node::stop_all(self.nodes.into()).await;
    }
}

async fn node(world: &World) -> Node {
    world.node_with(&["--redis-sentinel", MASTER]).await
}

fn storm(nodes: &[Node; 2]) -> Storm {
    let mut storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
    (storm.calm, storm.tags) = (false, true);
    storm
}

/// Entries are written to that Redis: a begin or a fill came there.
async fn is_written(redis: &RedisServer, world: &World) -> bool {
    let key = format!("{}{{u:1}}", world.prefix);
    format!("{:?}", redis.ask(&["EXISTS", &key]).await) == "int(1)"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_the_master_is_killed_and_sentinels_promote_its_replica() {
    let (mut master, scene) = Scene::new().await;
    scene.recovered().await;
    let fail_over = async {
        scene.storm.more(50, 10).await;
        eventually_within(10, "the cache is in use", async || is_written(&master, &scene.world).await).await;
        // What the replica does not hear of, it has outdated when it is promoted.
        scene.replica.cut_off_from(&master).await;
        scene.storm.more(50, 10).await;
        master.kill();
        scene.storm.more(100, WRITES_WITHIN_S).await;
        scene.promoted(3).await;
        scene.recovered().await;
        scene.replica.ask(&["FLUSHALL"]).await;
        scene.storm.more(100, WRITES_WITHIN_S).await;
        eventually_within(10, "the replica is used", async || is_written(&scene.replica, &scene.world).await).await;
    };
    scene.storm.rage_during(fail_over).await;
    scene.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_the_master_stands_still_and_comes_back_when_its_replica_is_promoted() {
    let (master, scene) = Scene::new().await;
    scene.recovered().await;
    let fail_over = async {
        scene.storm.more(50, 10).await;
        master.stall().await;
        scene.promoted(1).await;
        // It takes itself for the master, and its entries are clean and of old.
        master.go_on();
        scene.storm.more(100, WRITES_WITHIN_S).await;
        scene.recovered().await;
        scene.storm.more(200, WRITES_WITHIN_S).await;
    };
    scene.storm.rage_during(fail_over).await;
    scene.settle().await;
}

/// Two Redis that both take themselves for the master, for as long as it lasts, and each node reaches
/// another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_sentinels_that_disagree_for_ever_show_nothing_outdated() {
    let mut world = World::new(Tier::Server).await;
    let masters = [RedisServer::start(&world.dir).await, RedisServer::start(&world.dir).await];
    let mut nodes = Vec::new();
    let mut kept = Vec::new();
    for master in &masters {
        let sentinels = Sentinels::start(&world.dir, 1, master, 0).await;
        world.redis_url = sentinels.urls();
        nodes.push(node(&world).await);
        kept.push(sentinels);
    }
    let nodes: [Node; 2] = nodes.try_into().unwrap();
    let mut storm = storm(&nodes);
    storm.steps = 60;
    storm.rage(std::future::pending()).await;
    storm.settle(&mut Truth::of(&world).await).await;
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_one_sentinel_of_three_is_enough_to_start_and_a_wrong_name_is_refused() {
    let mut world = World::new(Tier::Server).await;
    let master = RedisServer::start(&world.dir).await;
    let mut sentinels = Sentinels::start(&world.dir, 3, &master, 0).await;
    world.redis_url = sentinels.urls();
    let (url, database) = (world.redis_url.clone(), world.database_url.clone());
    let env = [("REDIS_URL", url.as_str()), ("DATABASE_URL", database.as_str()), ("REDIS_SENTINEL", "nobody")];
    let why = refusal(&["--listen", "127.0.0.1:0"], &env).await;
    assert!(why.contains("the Sentinels know no master of the name in REDIS_SENTINEL"), "{why}");
    sentinels.kill(0);
    sentinels.kill(1);
    let node = node(&world).await;
    // The first poll enrols the user, which is a write, too.
    poll(&node.client, 1).await;
    let raised: Value = node.client.post(INCREMENT, &json!({})).await.ok();
    assert_eq!(poll(&node.client, 1).await.revision, raised["revision"]);
    eventually_within(10, "the cache is used", async || {
        poll(&node.client, 1).await;
        is_written(&master, &world).await
    })
    .await;
    tokio::time::timeout(Duration::from_secs(20), node.stop()).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_sentinels_and_their_master_ask_for_different_passwords() {
    let mut world = World::new(Tier::Server).await;
    let master = RedisServer::start(&world.dir).await;
    let sentinels = Sentinels::start(&world.dir, 3, &master, 0).await;
    for at in 0..3 {
        sentinels.ask(at, &["SENTINEL", "SET", MASTER, "auth-pass", "of-the-master"]).await.unwrap();
        sentinels.ask(at, &["ACL", "SETUSER", "default", "resetpass", ">of-the-sentinels"]).await.unwrap();
    }
    master.ask(&["CONFIG", "SET", "requirepass", "of-the-master"]).await;
    world.redis_url = sentinels.urls().replacen("redis://", "redis://:of-the-master@", 1);
    let (url, database) = (world.redis_url.clone(), world.database_url.clone());
    let mut env = vec![("REDIS_URL", url.as_str()), ("DATABASE_URL", database.as_str()), ("REDIS_SENTINEL", MASTER)];
    let told = run(&["doctor"], &env).await;
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains("FAILURE redis     cannot use it") && text.contains("check REDIS_SENTINEL"), "{text}");
    env.push(("REDIS_SENTINEL_PASSWORD", "of-the-sentinels"));
    let told = run(&["doctor"], &env).await;
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains(&format!("the Sentinels name 127.0.0.1:{} as the master", master.port())), "{text}");
    assert!(!text.contains("of-the-master") && !text.contains("of-the-sentinels"), "{text}");
    let password = ["--redis-sentinel", MASTER, "--redis-sentinel-password", "of-the-sentinels"];
    let node = world.node_with(&password).await;
    node.client.post(INCREMENT, &json!({})).await.ok();
    assert_eq!(poll(&node.client, 1).await.head("mention"), 1);
    assert_eq!(cache_state(&node).await, "ok");
    node.stop().await;
}
