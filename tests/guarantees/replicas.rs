//! A streaming replica of Postgres answers what may be a moment old. One that stands still or is gone
//! is noticed, and nothing shows later than promised.

use std::time::{Duration, Instant};

use headmark::base::clock::Clock;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::maintenance::import::headmark;
use crate::support::{CREDENTIALS, Client, Node, PostgresServer, Tier, World, eventually_within};

/// In which a change must show on another node, and some time for a busy machine.
const SHOWS_WITHIN: Duration = Duration::from_millis(2000 + 500);

/// A primary, its replica, and two nodes that use both.
struct Scene {
    nodes: [Node; 2],
    replica: PostgresServer,
    _primary: PostgresServer,
    /// Last, as its folder goes with it.
    world: World,
}

impl Scene {
    async fn new() -> Self {
        let mut world = World::new(Tier::Server).await;
        let primary = PostgresServer::start(&world.dir);
        world.database_url = primary.url();
        world.partitions = 1;
        let replica = primary.replica();
        let url = replica.url();
        let args = [&CREDENTIALS[..], &["--replica-url", &url]].concat();
        let nodes = [world.node_with(&args).await, world.node_with(&args).await];
        Self { nodes, replica, _primary: primary, world }
    }

    /// Waits until both nodes say this of the replica.
    async fn until(&self, state: &str) {
        for node in &self.nodes {
            eventually_within(20, &format!("the replica is {state}"), async || ready(node).await["replica"] == state).await;
        }
    }

    async fn replica(&self) -> PgConnection {
        PgConnection::connect(&self.replica.url()).await.unwrap()
    }

    async fn stop(self) {
        Node::stop_all(self.nodes.into()).await;
    }
}

async fn ready(node: &Node) -> Value {
    node.client.get("/readyz").await.ok()
}

/// How many reads came to this end.
async fn reads(client: &Client, outcome: &str) -> u64 {
    let name = format!("headmark_replica_reads_total{{outcome=\"{outcome}\"}} ");
    let text = client.get("/metrics").await.text;
    text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

async fn follow(service: &Client, follower: i64, followee: i64) {
    service.put(&format!("/v1/users/{follower}/following/{followee}"), &json!({})).await.ok();
}

/// Whether a stranger sees that somebody follows a user.
async fn is_listed(stranger: &Client, user: i64, follower: i64) -> bool {
    let page = stranger.get(&format!("/v1/users/{user}/followers?limit=1")).await.ok();
    let follower = json!(follower.to_string());
    page["items"].as_array().unwrap().iter().any(|item| item["user_id"] == follower)
}

/// The pages of the contract that may be a moment old, as a user reads them.
async fn pages(client: &Client, follower: i64) -> Vec<(String, Value)> {
    let second = client.get("/v1/users/1/followers?limit=2").await.ok()["next_cursor"].as_str().unwrap().to_owned();
    let older = client.get("/v1/broadcasts/system?limit=2").await.ok()["next_cursor"].as_str().unwrap().to_owned();
    let paths = [
        "/v1/users/1/followers".to_owned(),
        format!("/v1/users/1/followers?limit=2&cursor={second}"),
        format!("/v1/users/{follower}/following"),
        format!("/v1/users/{follower}/mutuals"),
        "/v1/users/1/relation-counts".to_owned(),
        format!("/v1/broadcasts/system?limit=2&cursor={older}"),
        "/v1/groups/7/messages?limit=2".to_owned(),
    ];
    let mut seen = Vec::new();
    for path in paths {
        seen.push((path.clone(), client.get(&path).await.ok()));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_what_may_be_a_moment_old_comes_from_the_replica() {
    let scene = Scene::new().await;
    scene.until("ok").await;
    let [writer, reader] = &scene.nodes;
    let service = writer.service();
    for follower in 2..8 {
        follow(&service, follower, 1).await;
    }
    follow(&service, 1, 2).await;
    for title in 0..5 {
        service.post("/v1/broadcasts/system", &json!({"title": title.to_string(), "body": "b"})).await.ok();
    }
    service.put("/v1/groups/7", &json!({})).await.ok();
    service.post("/v1/groups/7/members", &json!({"user_ids": ["9", "2"]})).await.ok();
    for id in 0..4 {
        let message = json!({"sender_id": "2", "client_id": id.to_string(), "content": "c"});
        service.post("/v1/groups/7/messages", &message).await.ok();
    }
    // Longer than anything is kept or late.
    tokio::time::sleep(SHOWS_WITHIN).await;
    let before = reads(&reader.client, "replica").await;
    let shown = pages(&reader.user(9), 2).await;
    let from_replica = reads(&reader.client, "replica").await - before;
    assert!(from_replica >= u64::try_from(shown.len()).unwrap(), "{from_replica} of {shown:?}");
    assert_eq!(shown[0].1["items"].as_array().unwrap().len(), 6);
    assert!(!scene.replica.log().contains("ERROR"), "{}", scene.replica.log());

    // A service, and a user for their own lists, read the primary, which says the same.
    let before = reads(&reader.client, "replica").await;
    let at_once = pages(&reader.service(), 2).await;
    assert_eq!(shown[5..], at_once[5..]);
    reader.user(1).get("/v1/users/1/followers").await.ok();
    reader.user(1).get("/v1/users/1/relation-counts").await.ok();
    reader.user(1).get("/v1/users/1/broadcasts/system").await.ok();
    assert_eq!(reads(&reader.client, "replica").await, before);
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_replica_that_stands_still_or_is_gone_is_not_read() {
    let scene = Scene::new().await;
    scene.until("ok").await;
    let [writer, reader] = &scene.nodes;
    let (service, here, there) = (writer.service(), writer.user(9), reader.user(9));
    let mut hand = scene.replica().await;
    let mut follower = 100;
    let mut shows = async |what: &str| {
        follower += 1;
        follow(&service, follower, 1).await;
        let acknowledged = Instant::now();
        assert!(is_listed(&here, 1, follower).await, "{what}: it shows at once where it was written");
        while !is_listed(&there, 1, follower).await {
            assert!(acknowledged.elapsed() < SHOWS_WITHIN, "{what}: it shows elsewhere");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    for round in 0..3 {
        shows("the replica follows").await;
        hand.execute("select pg_wal_replay_pause()").await.unwrap();
        shows("the replica has just stopped").await;
        scene.until("lagging").await;
        let before = reads(&reader.client, "lagging").await;
        shows("the replica stands still").await;
        assert!(reads(&reader.client, "lagging").await > before, "round {round}");
        hand.execute("select pg_wal_replay_resume()").await.unwrap();
        shows("the replica catches up").await;
        scene.until("ok").await;
    }
    drop(hand);

    scene.replica.crash();
    shows("the replica is gone").await;
    scene.until("away").await;
    let (ready, before) = (ready(reader).await, reads(&reader.client, "away").await);
    assert!(ready["ready"] == true && ready["degraded"] == false, "{ready}");
    shows("the replica is away").await;
    assert!(reads(&reader.client, "away").await > before);

    scene.replica.begin();
    scene.until("ok").await;
    let before = reads(&reader.client, "replica").await;
    shows("the replica is back").await;
    assert!(reads(&reader.client, "replica").await > before);
    scene.stop().await;
}

/// Who has seen that a message was recalled, through whichever node, does not see it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_recalled_message_does_not_come_back_from_the_replica() {
    let scene = Scene::new().await;
    scene.until("ok").await;
    let [writer, reader] = &scene.nodes;
    let service = writer.service();
    service.put("/v1/groups/7", &json!({})).await.ok();
    service.post("/v1/groups/7/members", &json!({"user_ids": ["9", "2"]})).await.ok();
    for id in 0..4 {
        let message = json!({"sender_id": "2", "client_id": id.to_string(), "content": "c"});
        service.post("/v1/groups/7/messages", &message).await.ok();
    }
    tokio::time::sleep(SHOWS_WITHIN).await;
    let (here, there, path) = (writer.user(9), reader.user(9), "/v1/groups/7/messages?after=1");
    there.get(path).await.ok();
    let mut hand = scene.replica().await;
    hand.execute("select pg_wal_replay_pause()").await.unwrap();
    service.delete("/v1/groups/7/messages/3").await;
    let seen = here.get(path).await;
    let tag = seen.header("etag").to_owned();
    assert_eq!(seen.ok()["items"][1]["recalled"], true);
    let again = there.get_if_changed(path, &tag).await;
    assert_eq!(again.status, 304, "{}", again.text);
    hand.execute("select pg_wal_replay_resume()").await.unwrap();
    drop(hand);
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_an_export_reads_the_replica_once_it_has_everything() {
    let scene = Scene::new().await;
    follow(&scene.nodes[0].service(), 1, 2).await;
    let mut hand = scene.replica().await;
    let url = scene.replica.url();
    let export = async || headmark(&scene.world, &["export", "follows"], false, &[("HEADMARK_REPLICA_URL", &url)], Vec::new()).await;
    let behind = "exporting from DATABASE_URL";

    let done = export().await;
    assert!(done.status == Some(0) && done.out.contains("\n1,2,") && !done.err.contains(behind), "{done:?}");
    hand.execute("select pg_wal_replay_pause()").await.unwrap();
    follow(&scene.nodes[0].service(), 1, 3).await;
    let done = export().await;
    assert!(done.status == Some(0) && done.out.contains("\n1,3,") && done.err.contains(behind), "{done:?}");
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_node_starts_without_its_replica() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--replica-url", "postgres://headmark@127.0.0.1:1/nothing"]).await;
    assert_eq!(ready(&node).await["replica"], "away");
    node.client.get("/v1/users/1/followers").await.ok();
    node.stop().await;
    let embedded = World::new(Tier::Embedded).await;
    let refused = embedded.try_node(&["--replica-url", "postgres://h@127.0.0.1:1/n"], Clock::System).await;
    assert!(refused.unwrap_err().contains("SQLite has no replica"));
}
