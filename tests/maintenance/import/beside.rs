//! Imports beside running nodes, and through an outage.

use std::time::Duration;

use reqwest::Method;

use super::{Edges, assert_degrees, edges, import};
use crate::support::{Client, Tier, World, eventually};

/// Follows and unfollows through a node until told to stop; what is left in the end.
async fn follow_along(client: Client, done: tokio_util::sync::CancellationToken) -> Edges {
    let mut left = Edges::new();
    for n in 0_i64.. {
        if done.is_cancelled() {
            break;
        }
        // Within the file's followers and followees, so that both sides meet on pairs, counts and
        // rows.
        let (follower, followee) = (1 + n % 7, 2000 + n % 50);
        if n % 5 == 4 {
            client.unfollow(followee, follower).await;
            left.remove(&(followee, follower));
        } else {
            client.follow(follower, followee).await;
            client.follow(followee, follower).await;
            left.extend([(follower, followee), (followee, follower)]);
        }
    }
    left
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_works_beside_a_running_node() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let text = format!(
        "follower,followee\n{}",
        (1..=40).flat_map(|follower| (1900..2100).map(move |followee| format!("{follower},{followee}\n"))).collect::<String>()
    );
    node.client.follow(5, 1).await;
    let poll = node.client.get("/v1/users/5/badges").await;
    assert_eq!(poll.body["revision"], 2);
    let done = tokio_util::sync::CancellationToken::new();
    let beside = tokio::spawn(follow_along(node.client.clone(), done.clone()));
    let waiting = node.client.request(Method::GET, "/v1/users/40/badges?wait=60");
    let tag = node.client.get("/v1/users/40/badges").await.header("etag").to_owned();
    let waiting = tokio::spawn(Client::send(waiting.header("if-none-match", tag)));
    let ran = import(&world, &text, &[]).await;
    done.cancel();
    let mut expected = beside.await.unwrap();
    assert_eq!((ran.status, ran.told("followed") + ran.told("known already")), (Some(0), 8000), "{ran:?}");
    let woken = waiting.await.unwrap().ok();
    // A user's follows may be cut into two batches, and the second may be over when the poll looks.
    assert!(matches!(woken["revision"].as_i64(), Some(2 | 3)), "a poll that waited is told at once: {woken}");
    let polled = node.client.get_if_changed("/v1/users/5/badges", poll.header("etag")).await.ok();
    assert!(polled["revision"].as_i64() > Some(2), "what was in the cache is not shown any more: {polled}");
    // What the node's side took back again is of the other direction only.
    expected.extend(edges(&text));
    expected.insert((5, 1));
    assert_degrees(&node.client, &expected).await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_refuses_to_write_beside_a_node_that_must_be_alone() {
    const TEXT: &str = "follower,followee\n1,2\n";
    let world = World::new(Tier::Embedded).await;
    let node = world.node().await;
    let ran = import(&world, TEXT, &[]).await;
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("another headmark is using the data folder"), "{}", ran.err);
    node.stop().await;
    assert_eq!(import(&world, TEXT, &[]).await.status, Some(0));

    let mut world = World::new(Tier::Server).await;
    world.redis_url.clear();
    let node = world.node().await;
    let ran = import(&world, TEXT, &[]).await;
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("another node uses this database"), "{}", ran.err);
    node.stop().await;
    assert_eq!(import(&world, TEXT, &[]).await.status, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_goes_on_after_a_short_outage() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    // Holds every pair lock, so that the import's batches fail for as long as this lasts.
    let mut hand = world.postgres().await;
    sqlx::query("select pg_advisory_lock(1885432178, pair_lock) from generate_series(0, 1023) pair_lock").execute(&mut hand).await.unwrap();
    let done = tokio_util::sync::CancellationToken::new();
    let release = async {
        eventually("the import waits", async || {
            let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                and database = (select oid from pg_database where datname = current_database())";
            let (waiting,): (i64,) = sqlx::query_as(waits).fetch_one(&mut hand).await.unwrap();
            waiting > 0
        })
        .await;
        // Longer than a batch may be set aside, which is two thirds of an import's write timeout.
        tokio::time::sleep(Duration::from_secs(22)).await;
        sqlx::query("select pg_advisory_unlock_all()").execute(&mut hand).await.unwrap();
        done.cancel();
    };
    let text = "follower,followee\n1,2\n2,1\n3,1\n";
    let (ran, ()) = tokio::join!(import(&world, text, &[]), release);
    assert_eq!((ran.status, ran.counts()), (Some(0), [3, 0, 0, 0, 0]), "{ran:?}");
    assert!(ran.err.contains("a batch failed; trying again"), "{}", ran.err);
    assert_degrees(&node.client, &edges(text)).await;
    node.stop().await;
}
