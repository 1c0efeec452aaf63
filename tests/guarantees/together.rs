//! Polls that find nothing in the cache at the same time share statements: each is shown its own user,
//! and nobody depends on who asked first.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Hand, Node, Tier, World, ask, connect, eventually};

const USERS: i64 = 60;

/// A node without entries. Each user has another number unread, and is enrolled.
async fn node_without_entries(world: &World) -> Node {
    let node = world.node().await;
    let begin = async |user| {
        let path = format!("/v1/users/{user}/badges/like/increment");
        node.client.post(&path, &json!({"by": user})).await.ok();
        node.client.summary(user).await;
    };
    join_all((1..=USERS).map(begin)).await;
    node.stop().await;
    if world.tier == Tier::Server {
        let mut redis = connect(&world.redis_url).await.unwrap();
        for user in 1..=USERS {
            ask(&mut redis, &["DEL", &format!("{}{{u:{user}}}", world.prefix)]).await.unwrap();
        }
    }
    world.node().await
}

fn likes(summary: &Value) -> &Value {
    assert_eq!(summary["degraded"], false, "{summary}");
    &summary["counters"]["like"]["unread"]
}

both_tiers! {
    async fn each_is_shown_its_own_user(world: World) {
        let node = node_without_entries(&world).await;
        // Some twice, and one of whom there is nothing.
        let users: Vec<_> = (1..=USERS).chain(1..=10).chain([10_000]).collect();
        let shown = join_all(users.iter().map(|user| node.client.summary(*user))).await;
        for (user, summary) in users.into_iter().zip(shown) {
            if user <= USERS {
                assert_eq!(*likes(&summary), user);
            } else {
                assert_eq!(summary["counters"], json!({}), "{summary}");
            }
        }
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_share_a_statement_whoever_goes() {
    let world = World::new(Tier::Server).await;
    let node = node_without_entries(&world).await;
    let statements = async || node.client.metric("headmark_summary_sql_statements_total").await;
    let reads = async || node.client.metric("headmark_summary_sql_reads_total").await;
    let (statements_before, reads_before) = (statements().await, reads().await);
    let mut hand = Hand::on(&world).await;
    hand.run("begin").await;
    hand.run("lock table users in access exclusive mode").await;
    let poll = |user| {
        let client = node.client.clone();
        tokio::spawn(async move { client.summary(user).await })
    };
    let gone: Vec<_> = [1, 2].map(poll).into();
    eventually("two statements are on their way", async || hand.waiting().await == 2).await;
    let polls: Vec<_> = (3..=22).map(poll).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    gone.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(Duration::from_millis(100)).await;
    hand.release().await;
    for (user, poll) in (3..).zip(polls) {
        assert_eq!(*likes(&poll.await.unwrap()), user);
    }
    let (statements, reads) = (statements().await - statements_before, reads().await - reads_before);
    assert!(reads >= 20.0, "{reads} reads");
    assert!(statements <= 6.0, "{statements} statements for {reads} reads");
    node.stop().await;
}
