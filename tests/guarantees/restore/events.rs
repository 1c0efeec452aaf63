//! Events after a restore get numbers that no lost event had. So a reader that has read what is lost goes on from
//! there, and so does the stream in Redis.

use std::ops::RangeInclusive;
use std::path::Path;

use deadpool_redis::redis::{Value as RedisValue, from_redis_value};
use headmark::engine::epoch::EVENTS_STEP;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::maintenance::import::headmark;
use crate::support::{Client, Hand, Node, Proxy, Tier, World, ask, connect, engine, eventually, eventually_within};

/// One event for each.
async fn follow(client: &Client, followees: RangeInclusive<i64>) {
    for followee in followees {
        client.follow(1, followee).await;
    }
}

/// The numbers of the events after a number, once there are so many.
async fn read_on(client: &Client, from: i64, least: usize) -> Vec<i64> {
    let (mut ids, mut after) = (Vec::new(), from);
    while ids.len() < least {
        let page = client.get(&format!("/v1/events?after={after}&wait=10")).await.ok();
        let items = page["items"].as_array().unwrap();
        assert!(!items.is_empty(), "{} of {least} events came", ids.len());
        ids.extend(items.iter().map(|event| event["id"].as_i64().unwrap()));
        after = page["next_after"].as_i64().unwrap();
        assert!(ids.last() <= Some(&after));
    }
    ids
}

/// What the backup has.
async fn keep(client: &Client) {
    follow(client, 2..=3).await;
    assert_eq!(read_on(client, 0, 2).await, [1, 2]);
}

/// What is written and read after the backup.
async fn lose(client: &Client) {
    follow(client, 4..=6).await;
    assert_eq!(read_on(client, 2, 3).await, [3, 4, 5]);
}

/// The database is restored: what comes is read from the last one on that is lost. Returns its numbers.
async fn go_on(client: &Client, lost: i64) -> Vec<i64> {
    let page = client.get(&format!("/v1/events?after={lost}")).await.ok();
    let base = page["next_after"].as_i64().unwrap();
    assert_eq!(page, json!({"items": [], "next_after": base, "has_more": false}), "nothing is between");
    assert!(base > lost, "{base} after {lost}");
    follow(client, 11..=16).await;
    let expected: Vec<_> = (base + 1..=base + 6).collect();
    assert_eq!(read_on(client, lost, 6).await, expected, "with a step for one restore");
    assert_eq!(read_on(client, 0, 8).await, [[1, 2].as_slice(), expected.as_slice()].concat(), "for one that begins");
    expected
}

/// The file is replaced by a copy, and another epoch begins.
async fn restore(world: &World, copy: &Path) {
    std::fs::copy(copy, world.dir.join("headmark.sqlite")).unwrap();
    for log in ["headmark.sqlite-wal", "headmark.sqlite-shm"] {
        let _gone = std::fs::remove_file(world.dir.join(log));
    }
    let renewed = headmark(world, &["epoch", "--renew"], false, &[], Vec::new()).await;
    assert_eq!(renewed.status, Some(0), "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_ahead_of_a_sqlite_file_that_is_restored_twice_gets_all_that_comes() {
    let world = World::new(Tier::Embedded).await;
    let copy = world.dir.join("copy.sqlite");
    let node = world.node().await;
    keep(&node.client).await;
    let mut hand = Hand::on(&world).await;
    hand.run(&format!("vacuum into '{}'", copy.display())).await;
    drop(hand);
    lose(&node.client).await;
    node.stop().await;
    let mut lost = 5;
    for _ in 0..2 {
        restore(&world, &copy).await;
        let node = world.node().await;
        lost = *go_on(&node.client, lost).await.last().unwrap();
        node.stop().await;
    }
}

/// The numbers of the entries of the stream.
async fn streamed(world: &World) -> Vec<i64> {
    let mut redis = connect(&world.redis_url).await.unwrap();
    let value: RedisValue = ask(&mut redis, &["XRANGE", &world.event_stream(), "-", "+"]).await.unwrap();
    let entries: Vec<(String, Vec<String>)> = from_redis_value(value).unwrap();
    entries.iter().map(|(id, _)| id.strip_suffix("-0").unwrap().parse().unwrap()).collect()
}

/// Two nodes start on a dump that was read back, while Redis still has the stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_and_a_stream_ahead_of_a_restored_postgres_get_all_that_comes() {
    let mut world = World::new(Tier::Server).await;
    let node = world.node().await;
    keep(&node.client).await;
    node.stop().await;
    let name = world.database_url.rsplit_once('/').unwrap().1.to_owned();
    let mut admin = PgConnection::connect(&engine("HEADMARK_TEST_POSTGRES")).await.unwrap();
    eventually_within(10, "nobody is connected", async || {
        admin.execute(AssertSqlSafe(format!("create database {name}_restored template {name}"))).await.is_ok()
    })
    .await;
    let node = world.node().await;
    lose(&node.client).await;
    eventually("they are on the stream", async || streamed(&world).await == [1, 2, 3, 4, 5]).await;
    node.stop().await;
    world.database_url.push_str("_restored");
    let (one, other) = tokio::join!(world.node(), world.node());
    let came = go_on(&one.client, 5).await;
    assert_eq!(read_on(&other.client, 5, 6).await, came);
    let all = [[1, 2, 3, 4, 5].as_slice(), came.as_slice()].concat();
    eventually("they are on the stream, too", async || streamed(&world).await == all).await;
    Node::stop_all(vec![one, other]).await;
}

/// The database that is lost may have numbered it otherwise, and other events under that number were read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_number_at_a_failover_gets_none_of_the_lost_ones() {
    let mut world = World::new(Tier::Server).await;
    let mut hand = Hand::on(&world).await;
    let (proxy, url) = Proxy::start(&world.database_url).await;
    world.database_url = url;
    let node = world.node().await;
    keep(&node.client).await;
    let event = r#"[{"at":"2027-01-15T08:00:00.000Z","type":"relation","data":{}}]"#;
    let row = format!("(1, 0, 0, {}, 1, '{event}')", node.app.state().clock.now().0);
    proxy.leave();
    hand.run("update inbox_epoch set history = 'another'").await;
    hand.run(&format!("insert into events (size, first_id, last_id, created_at, types, content) values {row}")).await;
    proxy.come_back().await;
    let mut last = String::new();
    eventually_within(30, "it is numbered", async || {
        last = hand.text("select cast(last_id as text) from events where types = 1 order by batch_id desc limit 1").await;
        last != "0"
    })
    .await;
    let last: i64 = last.parse().unwrap();
    assert!(last > EVENTS_STEP, "{last}");
    assert_eq!(read_on(&node.client, 2, 1).await, [last]);
    node.stop().await;
}
