//! A store fails over to a replica, behind a name or a proxy that follows the primary. What a
//! synchronous replica has is everything; what another one lost is told by the epoch. A Redis that
//! lost writes shows none of them outdated.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::time::Instant;

use super::stores::INCREMENT;
use crate::support::{Client, Node, PostgresServer, Proxy, RedisServer, Tier, World, eventually_within};

/// How long after a failover a node may take to notice that the database has another history.
const NOTICED: Duration = Duration::from_secs(12);

/// Two nodes that reach a Postgres of their own through a proxy.
struct Scene {
    nodes: [Node; 2],
    proxy: Proxy,
    replica: PostgresServer,
    primary: PostgresServer,
    /// Last, as its folder goes with it.
    _world: World,
}

impl Scene {
    async fn new() -> Self {
        let mut world = World::new(Tier::Server).await;
        let primary = PostgresServer::start(&world.dir);
        let (proxy, url) = Proxy::start(&primary.url()).await;
        world.database_url = url;
        world.partitions = 1;
        let nodes = [world.node().await, world.node().await];
        let replica = primary.replica();
        Self { nodes, proxy, replica, primary, _world: world }
    }

    async fn fail_over(&self) {
        self.primary.crash();
        self.replica.promote();
        self.proxy.lead_to(&self.replica.url()).await;
    }

    async fn stop(self) {
        Node::stop_all(self.nodes.into()).await;
    }
}

/// The epoch, the head and the revision that a poll shows; None where it is degraded or refused.
async fn shown(client: &Client) -> Option<(String, i64, i64)> {
    let body = client.get("/v1/users/1/badges").await.body;
    let head = body["counters"]["mention"]["head"].as_i64().unwrap_or(0);
    Some((body["epoch"].as_str()?.to_owned(), head, body["revision"].as_i64()?)).filter(|_| body["degraded"] == false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_failover_to_a_synchronous_replica_loses_nothing_acknowledged() {
    let scene = Scene::new().await;
    let mut hand = PgConnection::connect(&scene.primary.url()).await.unwrap();
    hand.execute("alter system set synchronous_standby_names = '*'").await.unwrap();
    hand.execute("select pg_reload_conf()").await.unwrap();
    let in_step = "select count(*) from pg_stat_replication where sync_state = 'sync'";
    eventually_within(10, "the replica is synchronous", async || {
        sqlx::query_scalar::<_, i64>(in_step).fetch_one(&mut hand).await.unwrap() == 1
    })
    .await;
    drop(hand);
    let clients = scene.nodes.each_ref().map(|node| node.client.clone());
    let load = clients.clone().map(|client| {
        tokio::spawn(async move {
            for n in 0..100 {
                let key = format!("{}-{n}", client.base);
                while client.post_once(INCREMENT, &key, &json!({})).await.status != 200 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        })
    });
    eventually_within(20, "some writes went through", async || shown(&clients[0]).await.is_some_and(|(_, head, _)| head > 40)).await;
    scene.fail_over().await;
    for writer in load {
        writer.await.unwrap();
    }
    for client in &clients {
        eventually_within(10, "each acknowledged write is there once", async || {
            shown(client).await.is_some_and(|(_, head, _)| head == 200)
        })
        .await;
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_failover_that_loses_writes_begins_another_epoch() {
    let scene = Scene::new().await;
    let clients = scene.nodes.each_ref().map(|node| node.client.clone());
    clients[0].post(INCREMENT, &json!({"by": 8})).await.ok();
    clients[0].post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": "kept", "content": "c"})).await.ok();
    let (first, head, _) = shown(&clients[1]).await.unwrap();
    assert_eq!(head, 8);
    // From here on the replica hears of nothing.
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.replica.crash();
    clients[0].post(INCREMENT, &json!({"by": 5})).await.ok();
    clients[0].post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": "lost", "content": "c"})).await.ok();
    let (_, head, lost) = shown(&clients[1]).await.unwrap();
    assert_eq!(head, 13);
    scene.primary.crash();
    scene.replica.begin();
    scene.replica.promote();
    scene.proxy.lead_to(&scene.replica.url()).await;
    let failed_over = Instant::now();
    for client in &clients {
        eventually_within(20, "every node shows what is left, in another epoch", async || {
            let Some((epoch, head, revision)) = shown(client).await else { return false };
            if epoch == first {
                assert!(failed_over.elapsed() < NOTICED, "still the epoch of what was lost");
                return false;
            }
            assert!(head == 8 && revision < lost, "{head} at {revision}");
            true
        })
        .await;
    }
    let second = shown(&clients[0]).await.unwrap().0;
    assert_eq!(shown(&clients[1]).await.unwrap().0, second, "renewed once");
    clients[0].get(&format!("/v1/users/1/inbox?after=1&epoch={first}")).await.problem(410, "inbox_reset");
    // What both nodes write from here on counts from what is left, whatever they kept in memory.
    for (at, client) in clients.iter().enumerate() {
        let raised = send(client, INCREMENT, &format!("left-{at}"), &json!({})).await;
        assert_eq!(raised["head"], 9 + i64::try_from(at).unwrap());
        for client in &clients {
            assert_eq!(shown(client).await.map(|(_, head, _)| head), raised["head"].as_i64());
        }
    }
    scene.stop().await;
}

/// A reader of events that has read what is lost, and goes on with its position meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_reader_of_lost_events_gets_all_that_come_after_a_failover() {
    let scene = Scene::new().await;
    let clients = scene.nodes.each_ref().map(|node| node.client.clone());
    let page = async |after: i64| clients[1].get(&format!("/v1/events?after={after}")).await.ok();
    for target in 2..=3 {
        clients[0].follow(1, target).await;
    }
    eventually_within(5, "they are numbered", async || page(0).await["next_after"] == 2).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    // From here on it follows nobody, and what the primary writes is lost with it.
    scene.replica.promote();
    for target in 4..=6 {
        clients[0].follow(1, target).await;
    }
    eventually_within(5, "they are read", async || page(0).await["next_after"] == 5).await;
    let client = clients[1].clone();
    let reader = tokio::spawn(async move {
        let (mut after, mut read) = (5, Vec::new());
        while read.len() < 6 {
            let reply = client.get(&format!("/v1/events?after={after}")).await;
            if reply.status != 503 {
                let page = reply.ok();
                read.extend(page["items"].as_array().unwrap().iter().map(|event| event["data"]["target_id"].clone()));
                after = page["next_after"].as_i64().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        read
    });
    scene.proxy.lead_to(&scene.replica.url()).await;
    for target in 11..=16 {
        let path = format!("/v1/users/1/following/{target}");
        while !clients[0].put(&path, &json!({})).await.status.is_success() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let read = tokio::time::timeout(Duration::from_secs(20), reader).await.expect("all are read").unwrap();
    assert_eq!(json!(read), json!(["11", "12", "13", "14", "15", "16"]));
    scene.stop().await;
}

/// The unread broadcasts of channel `news` that a poll shows; None where it is degraded or refused.
async fn news(client: &Client) -> Option<i64> {
    let body = client.get("/v1/users/1/badges").await.body;
    (body["degraded"] == false).then(|| body["broadcasts"]["news"]["unread"].as_i64().unwrap_or(0))
}

/// Sends until the node takes writes again, under one idempotency key.
async fn send(client: &Client, path: &str, key: &str, body: &Value) -> Value {
    loop {
        let reply = client.post_once(path, key, body).await;
        if reply.status.is_success() {
            return reply.body;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A failover that is over before a node misses its connections. Whoever is told of a write after it sees that
/// write at once on every node, though the cache shows later revisions, which are lost, and the client's tag names
/// one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_write_just_after_a_failover_that_loses_writes_shows_at_once() {
    const NEWS: &str = "/v1/broadcasts/news";
    let scene = Scene::new().await;
    let clients = scene.nodes.each_ref().map(|node| node.client.clone());
    clients[0].post(INCREMENT, &json!({"by": 8})).await.ok();
    clients[0].post(NEWS, &json!({"title": "kept"})).await.ok();
    for client in &clients {
        assert_eq!(shown(client).await.map(|(_, head, _)| head), Some(8));
        eventually_within(5, "the broadcast shows", async || news(client).await == Some(0)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    // From here on it follows nobody, and what the primary writes is lost with it.
    scene.replica.promote();
    clients[0].post(INCREMENT, &json!({"by": 5})).await.ok();
    for lost in ["a", "b", "c"] {
        clients[0].post(NEWS, &json!({"title": lost})).await.ok();
    }
    for client in &clients {
        assert_eq!(shown(client).await.map(|(_, head, _)| head), Some(13));
        eventually_within(5, "the broadcasts show", async || news(client).await == Some(3)).await;
    }
    let lost = clients[0].get("/v1/users/1/badges").await.header("etag").to_owned();
    scene.proxy.lead_to(&scene.replica.url()).await;
    for (client, head) in clients.iter().zip(9..) {
        let written = send(client, INCREMENT, &format!("after-{head}"), &json!({})).await;
        assert_eq!(written["head"], head);
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            for client in &clients {
                let shown = shown(client).await.map(|(_, head, _)| head);
                assert!(shown.is_none() || shown == Some(head), "{shown:?} after {head} was acknowledged");
                let reply = client.get_if_changed("/v1/users/1/badges", &lost).await;
                assert!(reply.status != 304, "a lost state passes for the newest one after {head} was acknowledged");
            }
        }
        send(client, NEWS, &format!("news-{head}"), &json!({"title": "after"})).await;
        let unread = news(client).await;
        assert!(unread.is_none() || unread == Some(head - 8), "{unread:?} broadcasts after {} were acknowledged", head - 8);
    }
    scene.stop().await;
}

/// The name of the database leads to another server while the former one is still there, and with it the connections
/// that are open. One of them is lost, that of the node lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_connections_to_a_former_primary_are_used_no_more() {
    let scene = Scene::new().await;
    let clients = scene.nodes.each_ref().map(|node| node.client.clone());
    clients[0].post(INCREMENT, &json!({"by": 8})).await.ok();
    for (client, other) in clients.iter().zip(2..) {
        assert_eq!(shown(client).await.map(|(_, head, _)| head), Some(8));
        client.put(&format!("/v1/users/1/following/{other}"), &json!({})).await.ok();
    }
    eventually_within(5, "a node has numbered the events", async || !clients[0].get("/v1/events").await.body["items"][1].is_null()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    scene.replica.promote();
    clients[0].post(INCREMENT, &json!({"by": 5})).await.ok();
    scene.proxy.lead_new_to(&scene.replica.url());
    let mut former = PgConnection::connect(&scene.primary.url()).await.unwrap();
    let locks = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()";
    former.execute(locks).await.unwrap();
    // Until a node has noticed, its lanes write to the former primary, as those of one that was cut off would.
    for client in &clients {
        eventually_within(5, "it is noticed", async || client.get("/readyz").await.body["database"] == "away").await;
    }
    for (client, head) in clients.iter().zip(9..) {
        let written = async { send(client, INCREMENT, &format!("after-{head}"), &json!({})).await };
        let written = tokio::time::timeout(Duration::from_secs(30), written).await.expect("it is written");
        assert_eq!(written["head"], head);
        for client in &clients {
            eventually_within(2, "it shows", async || shown(client).await.is_some_and(|(_, shown, _)| shown == head)).await;
        }
    }
    // Each node has a lane that nobody has used since. It would look before it did anything.
    eventually_within(10, "the former primary has no other connection of a node", async || {
        let open = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
        sqlx::query_scalar::<_, i64>(open).fetch_one(&mut former).await.unwrap() <= 2
    })
    .await;
    drop(former);
    scene.stop().await;
}

/// A replica that lost writes, among them the begins that made entries dirty, takes over. What it
/// has looks clean and is outdated; no poll shows it, with a tag or without one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_replica_of_redis_that_lost_writes_shows_none_of_them_outdated() {
    let mut world = World::new(Tier::Server).await;
    let mut master = RedisServer::start(&world.dir).await;
    let (proxy, url) = Proxy::start_redis(&master.url()).await;
    world.redis_url = url;
    let nodes = [world.node().await, world.node().await];
    let clients = nodes.each_ref().map(|node| node.client.clone());
    for round in 0..2 {
        for client in &clients {
            client.post(INCREMENT, &json!({})).await.ok();
        }
        for client in &clients {
            client.summary(1).await;
        }
        let replica = RedisServer::replica_of(&master, &world.dir).await;
        replica.promote().await;
        let mut last = 0;
        for client in &clients {
            last = client.post(INCREMENT, &json!({})).await.ok()["head"].as_i64().unwrap();
        }
        let tag = clients[0].get("/v1/users/1/badges").await.header("etag").to_owned();
        proxy.lead_to(&replica.url()).await;
        master.kill();
        // Longer than until the nodes have noticed.
        let until = Instant::now() + Duration::from_millis(2500);
        let (mut polls, mut whole) = (0, 0);
        while Instant::now() < until {
            for client in &clients {
                let reply = client.get("/v1/users/1/badges").await;
                let body = reply.ok();
                let head = body["counters"]["mention"]["head"].as_i64().unwrap_or(0);
                assert!(body["degraded"] == true || head == last, "round {round}: {head} after {last}: {body}");
                let reply = client.get_if_changed("/v1/users/1/badges", &tag).await;
                assert!(reply.status == 304 || reply.body["degraded"] == true, "round {round}: {}", reply.text);
                polls += 1;
                whole += i32::from(body["degraded"] == false);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(polls > 20 && whole > polls / 2, "{whole} of {polls} polls were not degraded");
        for client in &clients {
            last = client.post(INCREMENT, &json!({})).await.ok()["head"].as_i64().unwrap();
            for client in &clients {
                assert_eq!(client.summary(1).await["counters"]["mention"]["head"], last);
            }
        }
        master = replica;
    }
    Node::stop_all(nodes.into()).await;
}

/// The same for a node that starts while Redis is away, and so has met no run of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_node_that_starts_before_a_replica_takes_over_shows_nothing_outdated() {
    let mut world = World::new(Tier::Server).await;
    let mut master = RedisServer::start(&world.dir).await;
    let (proxy, url) = Proxy::start_redis(&master.url()).await;
    world.redis_url = url;
    // When the node finds Redis again and when its guard looks are not in phase.
    for round in 0..4 {
        let node = world.node().await;
        node.client.post(INCREMENT, &json!({})).await.ok();
        node.client.summary(1).await;
        let replica = RedisServer::replica_of(&master, &world.dir).await;
        replica.promote().await;
        let last = node.client.post(INCREMENT, &json!({})).await.ok()["head"].as_i64().unwrap();
        node.stop().await;
        proxy.leave();
        master.kill();
        let node = world.node().await;
        tokio::time::sleep(Duration::from_millis(230 * round)).await;
        proxy.lead_to(&replica.url()).await;
        let until = Instant::now() + Duration::from_millis(2500);
        let (mut polls, mut whole) = (0, 0);
        while Instant::now() < until {
            let body = node.client.get("/v1/users/1/badges").await.ok();
            let head = body["counters"]["mention"]["head"].as_i64().unwrap_or(0);
            assert!(body["degraded"] == true || head == last, "round {round}: {head} after {last}: {body}");
            polls += 1;
            whole += i32::from(body["degraded"] == false);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(polls > 20 && whole > 0, "{whole} of {polls} polls were not degraded");
        node.stop().await;
        master = replica;
    }
}
