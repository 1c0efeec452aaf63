//! Which numbering it is: made once, renewed by hand, and on Postgres by a node that finds its
//! database restored. And a database that is away.

use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::{inbox, send, seqs};
use crate::both_tiers;
use crate::maintenance::import::headmark;
use crate::support::{Client, Hand, Node, Proxy, Tier, World, engine, eventually_within};

async fn epoch(node: &Node) -> String {
    inbox(&node.client, 1, "").await["epoch"].as_str().unwrap().to_owned()
}

both_tiers! {
    async fn the_command_shows_and_renews_it(world: World) {
        let node = world.node().await;
        let first = epoch(&node).await;
        send(&node.client, 1, 2, "a").await;
        let shown = headmark(&world, &["epoch"], false, &[], Vec::new()).await;
        assert_eq!((shown.status, shown.out.trim()), (Some(0), first.as_str()), "also beside a server");
        if world.tier == Tier::Embedded {
            let refused = headmark(&world, &["epoch", "--renew"], false, &[], Vec::new()).await;
            assert!(refused.status == Some(1) && refused.err.contains("another headmark is using the data folder"), "{refused:?}");
            node.stop().await;
            let renewed = headmark(&world, &["epoch", "--renew"], false, &[], Vec::new()).await;
            let node = world.node().await;
            assert_eq!((renewed.status, renewed.out.trim()), (Some(0), epoch(&node).await.as_str()));
            assert_ne!(renewed.out.trim(), first);
            node.stop().await;
            return;
        }
        let renewed = headmark(&world, &["epoch", "--renew"], false, &[], Vec::new()).await;
        assert_eq!((renewed.status, renewed.out.trim()), (Some(0), epoch(&node).await.as_str()), "a server that runs shows it at once");
        assert_ne!(renewed.out.trim(), first);
        node.client.get(&format!("/v1/users/2/inbox?after=1&epoch={first}")).await.problem(410, "inbox_reset");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_restored_is_noticed_at_the_start() {
    let mut world = World::new(Tier::Server).await;
    let node = world.node().await;
    let first = epoch(&node).await;
    send(&node.client, 1, 2, "a").await;
    node.stop().await;
    // As a dump that is read back makes it: the same rows in another database.
    let name = world.database_url.rsplit_once('/').unwrap().1.to_owned();
    let mut admin = PgConnection::connect(&engine("HEADMARK_TEST_POSTGRES")).await.unwrap();
    eventually_within(10, "nobody is connected", async || {
        admin.execute(sqlx::AssertSqlSafe(format!("create database {name}_restored template {name}"))).await.is_ok()
    })
    .await;
    world.database_url.push_str("_restored");
    let nodes = [world.node().await, world.node().await];
    let second = epoch(&nodes[0]).await;
    assert_ne!(second, first);
    assert_eq!(epoch(&nodes[1]).await, second, "renewed once");
    nodes[0].client.get(&format!("/v1/users/2/inbox?after=1&epoch={first}")).await.problem(410, "inbox_reset");
    assert_eq!(seqs(&inbox(&nodes[1].client, 2, "").await), [1]);
    for node in nodes {
        node.stop().await;
    }
    // One of which nothing was known is no other than before.
    world.postgres().await.execute("update inbox_epoch set history = ''").await.unwrap();
    let node = world.node().await;
    assert_eq!(epoch(&node).await, second);
    node.stop().await;
    world.postgres().await.execute("update inbox_epoch set history = 'another'").await.unwrap();
    let node = world.node().await;
    assert_ne!(epoch(&node).await, second);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_node_without_its_database_says_so() {
    let mut world = World::new(Tier::Server).await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let node = world.node().await;
    send(&node.client, 1, 2, "a").await;
    inbox(&node.client, 2, "").await;
    let waits = tokio::spawn(Client::send(node.client.request(reqwest::Method::GET, "/v1/users/2/inbox?after=1&wait=60")));
    eventually_within(5, "it waits", async || node.app.state().polling.waiting.taken() == 1).await;
    proxy.leave();
    for path in ["inbox", "directs", "devices"] {
        node.client.get(&format!("/v1/users/2/{path}")).await.problem(503, "store_unavailable");
    }
    waits.await.unwrap().problem(503, "store_unavailable");
    node.client.post("/v1/users/2/inbox", &super::message(1, "b", "b")).await.problem(503, "store_unavailable");
    proxy.come_back().await;
    eventually_within(20, "it is back", async || node.client.get("/v1/users/2/inbox").await.status == 200).await;
    eventually_within(20, "it writes", async || node.client.post("/v1/users/2/inbox", &super::message(1, "b", "b")).await.status == 201)
        .await;
    assert_eq!(seqs(&inbox(&node.client, 2, "").await), [1, 2]);
}

/// Right after a failover the database may take no work for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_another_epoch_begins_although_the_first_try_fails() {
    let mut world = World::new(Tier::Server).await;
    let (mut hand, mut other_hand) = (Hand::on(&world).await, Hand::on(&world).await);
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let node = world.node().await;
    let first = epoch(&node).await;
    hand.run("update inbox_epoch set history = 'another'").await;
    let entries = hand.text("select cast(epoch as text) from cache_guard").await;
    proxy.forget(Duration::ZERO);
    eventually_within(10, "it has looked at the history", async || {
        hand.text("select cast(epoch as text) from cache_guard").await != entries
    })
    .await;
    other_hand.run("begin; select from inbox_epoch for update").await;
    eventually_within(10, "it waits for the row", async || hand.waiting().await > 0).await;
    eventually_within(10, "it has given up", async || hand.waiting().await == 0).await;
    other_hand.release().await;
    eventually_within(10, "it tries again", async || epoch(&node).await != first).await;
    node.stop().await;
}
