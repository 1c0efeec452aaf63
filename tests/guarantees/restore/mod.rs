//! The database is replaced by a backup while clients go on asking. What was written after the backup
//! is lost, as it must be; nobody is shown it as current any more, nor what it is mixed up with.

mod clients;
mod events;

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::clients::{Clients, LOST};
use super::stores::INCREMENT;
use crate::maintenance::import::headmark;
use crate::support::{Client, Hand, Node, Nodes, PostgresServer, Recovery, RedisServer, Tier, World, eventually_within};

/// What the documents promise of a renewal beside running nodes.
const SHOWS_WITHIN: Duration = Duration::from_secs(2);

/// All that is compared in the end.
const SHOWN: [&str; 10] = [
    "/v1/users/1/badges",
    "/v1/users/3/badges",
    "/v1/users/5/badges?views=home:5",
    "/v1/users/9/badges",
    "/v1/users/5/groups",
    "/v1/users/5/chats",
    "/v1/users/1/chats",
    "/v1/users/5/groups/7",
    "/v1/users/1/inbox",
    "/v1/broadcasts/system",
];

/// Nodes under clients.
struct Scene {
    running: Vec<Node>,
    /// The same, as the clients know them.
    nodes: Nodes,
    clients: Clients,
    /// The head of the mention badge that the lost time began with, at most.
    written: i64,
    world: World,
}

async fn send(client: &Client, user: i64, content: &str) {
    let body = json!({"sender_id": 2, "client_id": content, "content": content});
    client.post(&format!("/v1/users/{user}/inbox"), &body).await.ok();
}

async fn group_message(client: &Client, n: usize) {
    let body = json!({"sender_id": 6, "client_id": format!("g{n}"), "content": "Hello"});
    client.post("/v1/groups/7/messages", &body).await.ok();
}

/// What the backup has of users whose numbers nodes keep in memory.
async fn begin(client: &Client) {
    client.put("/v1/groups/7", &json!({})).await.ok();
    for member in [5, 6] {
        client.put(&format!("/v1/groups/7/members/{member}"), &json!({})).await.ok();
    }
    client.summary(5).await;
    for n in 1..=3 {
        group_message(client, n).await;
        client.put(&format!("/v1/views/home/5/items/i{n}"), &json!({})).await.ok();
        if n == 1 {
            client.post("/v1/users/5/groups/7/read", &json!({"up_to": 1})).await.ok();
            client.post("/v1/users/5/views/home/5/access", &json!({})).await.ok();
        }
    }
    for n in 1..=2 {
        client.post("/v1/broadcasts/system", &json!({"title": format!("b{n}"), "body": "Hello"})).await.ok();
        send(client, 3, &format!("kept-{n}")).await;
    }
    client.post_once("/v1/users/4/badges/dm/increment", "kept", &json!({})).await.ok();
}

impl Scene {
    async fn start(world: World, nodes: usize) -> Self {
        let mut running = Vec::new();
        for _ in 0..nodes {
            running.push(world.node().await);
        }
        let known = Nodes::of(running.iter().map(|node| node.client.clone()));
        begin(&running[0].client).await;
        let epoch = running[0].client.summary(1).await["epoch"].as_str().unwrap().to_owned();
        Self { nodes: known.clone(), running, clients: Clients::start(known, &epoch), written: 0, world }
    }

    fn client(&self, at: usize) -> Client {
        self.nodes.up()[at].clone()
    }

    /// Takes a backup under load.
    async fn back_up<T>(&mut self, take: impl Future<Output = T>) -> T {
        let (client, enough) = (self.client(0), CancellationToken::new());
        let load = tokio::spawn({
            let enough = enough.clone();
            async move {
                let mut written = 0;
                while !enough.is_cancelled() {
                    written = client.post(INCREMENT, &json!({})).await.ok()["head"].as_i64().unwrap();
                    if written % 20 == 0 {
                        send(&client, 1, &format!("load-{written}")).await;
                    }
                }
                written
            }
        });
        eventually_within(10, "there is load", async || self.client(0).summary(1).await["counters"]["mention"]["head"].as_i64() > Some(40))
            .await;
        let taken = take.await;
        enough.cancel();
        self.written = load.await.unwrap();
        assert!(self.written < LOST, "the lost time can be told from the load");
        taken
    }

    /// What is acknowledged after the backup. Returns the revision of user 5 as all nodes showed it.
    async fn lose(&mut self) -> i64 {
        let client = self.client(0);
        for n in 0..30 {
            client.post(INCREMENT, &json!({"by": LOST})).await.ok();
            send(&client, 1, &format!("lost-{n}")).await;
        }
        client.post_once("/v1/users/4/badges/dm/increment", "lost", &json!({})).await.ok();
        client.post("/v1/users/5/groups/7/read", &json!({"up_to": 3})).await.ok();
        client.post("/v1/users/5/views/home/5/access", &json!({})).await.ok();
        let mut revision = 0;
        for node in self.nodes.up() {
            let shown = node.get("/v1/users/5/badges?views=home:5").await.ok();
            assert_eq!((&shown["chats"]["unread"], unread_view(&shown)), (&json!(0), json!(0)), "{shown}");
            revision = shown["revision"].as_i64().unwrap();
            for path in SHOWN {
                node.get(path).await.ok();
            }
            // Of whom nothing is in the backup.
            node.summary(9).await;
        }
        self.clients.catch_up().await;
        revision
    }

    /// The restore is complete: looks at everything, and at the end at what a new node shows.
    async fn check(mut self, lost_revision: i64) {
        self.clients.complete().await;
        let client = self.client(0);
        // A node alone may have to claim the database again.
        eventually_within(10, "it writes", async || client.post("/v1/users/8/badges/dm/increment", &json!({})).await.status == 200).await;
        let kept = client.summary(1).await["counters"]["mention"]["head"].as_i64().unwrap();
        assert!(40 <= kept && kept <= self.written, "{kept} of {}", self.written);
        for key in ["kept", "lost"] {
            client.post_once("/v1/users/4/badges/dm/increment", key, &json!({})).await.ok();
        }
        assert_eq!(client.summary(4).await["counters"]["dm"]["head"], 2, "what was lost counts when it is sent again");
        for node in self.nodes.up() {
            assert_eq!(node.summary(9).await["broadcasts"]["system"]["unread"].as_i64().unwrap_or(0), 0, "as for a new user");
        }
        client.post("/v1/broadcasts/system", &json!({"title": "b3", "body": "Hello"})).await.ok();
        send(&client, 1, "after").await;
        client.post(INCREMENT, &json!({})).await.ok();
        self.until_it_was_before(lost_revision).await;
        for node in self.nodes.up() {
            let shown = node.get("/v1/users/5/badges?views=home:5").await.ok();
            assert_eq!((&shown["chats"]["unread"], unread_view(&shown)), (&json!(2), json!(2)), "as of the backup: {shown}");
            assert_eq!(node.summary(1).await["counters"]["mention"]["head"], kept + 1);
            // A node hears within a second of what another one broadcasts.
            eventually_within(2, "enrolled again", async || node.summary(9).await["broadcasts"]["system"]["unread"] == 1).await;
        }
        self.clients.finish().await;
        let mut shown = Vec::new();
        for node in self.nodes.up() {
            shown.push(all_of(&node).await);
        }
        Node::stop_all(self.running).await;
        let fresh = self.world.node().await;
        for (node, shown) in shown.iter().enumerate() {
            assert_eq!(*shown, all_of(&fresh.client).await, "node {node} and one without memory");
        }
        fresh.stop().await;
        let ran = headmark(&self.world, &["recount", "--dry-run"], false, &[], Vec::new()).await;
        assert!(ran.out.contains("nothing differs"), "{ran:?}");
    }

    /// Raises user 5's revision to one that it had in the lost time.
    async fn until_it_was_before(&self, lost_revision: i64) {
        let client = self.client(0);
        let mut revision = 0;
        while revision < lost_revision {
            let raised = client.post("/v1/users/5/badges/like/increment", &json!({})).await.ok();
            revision = raised["revision"].as_i64().unwrap();
        }
        assert_eq!(revision, lost_revision);
    }

    async fn renew(&self) {
        let renewed = headmark(&self.world, &["epoch", "--renew"], false, &[], Vec::new()).await;
        assert_eq!(renewed.status, Some(0), "{renewed:?}");
    }

    async fn stop_nodes(&mut self) {
        for at in 0..self.running.len() {
            self.nodes.set(at, None);
        }
        Node::stop_all(std::mem::take(&mut self.running)).await;
    }

    async fn start_nodes(&mut self, count: usize) {
        for at in 0..count {
            let node = self.world.node().await;
            self.nodes.set(at, Some(node.client.clone()));
            self.running.push(node);
        }
    }

    /// Renews the epoch beside running nodes. A read of an inbox that is held meanwhile hears of it,
    /// though nothing of its user has changed.
    async fn renew_beside_nodes(&self) {
        let client = self.client(0);
        let before = client.get("/v1/users/3/inbox").await.ok();
        let path = format!("/v1/users/3/inbox?wait=60&after={}&epoch={}", before["head"], before["epoch"].as_str().unwrap());
        let held = tokio::spawn(async move { client.get(&path).await });
        self.renew().await;
        let held = tokio::time::timeout(SHOWS_WITHIN + SHOWS_WITHIN, held).await.expect("it hears of it");
        held.unwrap().problem(410, "inbox_reset");
        tokio::time::sleep(SHOWS_WITHIN).await;
    }

    /// Waits until the nodes have the database again.
    async fn until_ready(&self) {
        for node in self.nodes.up() {
            eventually_within(20, "it is ready", async || node.get("/readyz").await.body["degraded"] == false).await;
        }
    }
}

fn unread_view(summary: &Value) -> Value {
    summary["views"]["home:5"]["unread"].clone()
}

async fn all_of(client: &Client) -> Vec<Value> {
    let mut all = Vec::new();
    for path in SHOWN {
        eventually_within(5, "a whole answer", async || client.get(path).await.body["degraded"] != true).await;
        all.push(client.get(path).await.ok());
    }
    all
}

/// A world whose Postgres and Redis are the test's own.
async fn own_stores() -> (World, PostgresServer, RedisServer) {
    let mut world = World::new(Tier::Server).await;
    let (postgres, redis) = (PostgresServer::start(&world.dir), RedisServer::start(&world.dir).await);
    (world.database_url, world.redis_url, world.partitions) = (postgres.url(), redis.url(), 1);
    (world, postgres, redis)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_backup_on_another_timeline_is_noticed_by_nodes_that_start() {
    let (world, postgres, redis) = own_stores().await;
    let mut scene = Scene::start(world, 2).await;
    let backup = scene.back_up(async { postgres.back_up() }).await;
    let lost = scene.lose().await;
    scene.stop_nodes().await;
    postgres.restore(&backup, Recovery::FromArchive).await;
    redis.ask(&["FLUSHDB"]).await;
    scene.start_nodes(2).await;
    scene.check(lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_backup_under_running_nodes_needs_another_epoch_by_hand() {
    let (world, postgres, redis) = own_stores().await;
    let mut scene = Scene::start(world, 2).await;
    let backup = scene.back_up(async { postgres.back_up() }).await;
    let lost = scene.lose().await;
    postgres.restore(&backup, Recovery::AsItIs).await;
    redis.ask(&["FLUSHDB"]).await;
    scene.until_ready().await;
    scene.renew_beside_nodes().await;
    scene.check(lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_backup_under_a_node_alone_needs_another_epoch_by_hand() {
    let (mut world, postgres, _redis) = own_stores().await;
    world.redis_url.clear();
    let mut scene = Scene::start(world, 1).await;
    let backup = scene.back_up(async { postgres.back_up() }).await;
    let lost = scene.lose().await;
    postgres.restore(&backup, Recovery::AsItIs).await;
    scene.until_ready().await;
    scene.renew_beside_nodes().await;
    scene.check(lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_the_sqlite_file_is_restored() {
    let world = World::new(Tier::Embedded).await;
    let (file, copy) = (world.dir.join("headmark.sqlite"), world.dir.join("copy.sqlite"));
    let mut scene = Scene::start(world, 1).await;
    let mut hand = Hand::on(&scene.world).await;
    scene.back_up(hand.run(&format!("vacuum into '{}'", copy.display()))).await;
    drop(hand);
    let lost = scene.lose().await;
    scene.stop_nodes().await;
    std::fs::rename(&copy, &file).unwrap();
    for log in ["headmark.sqlite-wal", "headmark.sqlite-shm"] {
        let _gone = std::fs::remove_file(scene.world.dir.join(log));
    }
    scene.renew().await;
    scene.start_nodes(1).await;
    scene.check(lost).await;
}
