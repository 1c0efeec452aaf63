//! Polls that find nothing in the cache at the same time share statements: each is shown its own user,
//! and nobody depends on who asked first.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::both_tiers;
use crate::support::{Hand, Node, Tier, World, ask, connect, eventually};

const USERS: i64 = 60;

/// A node without entries. Each user has another number unread, and is enrolled.
async fn node_without_entries(world: &World, args: &[&str]) -> Node {
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
    world.node_with(args).await
}

fn likes(summary: &Value) -> &Value {
    assert_eq!(summary["degraded"], false, "{summary}");
    &summary["counters"]["like"]["unread"]
}

both_tiers! {
    async fn each_is_shown_its_own_user(world: World) {
        let node = node_without_entries(&world, &[]).await;
        // Some twice, and one of whom there is nothing.
        let users: Vec<_> = (1..=USERS).chain(1..=10).chain([10_000]).collect();
        let shown = join_all(users.iter().map(|user| node.client.summary(*user))).await;
        let [reads, statements] = reads_and_statements(&node).await;
        assert!(statements < reads, "{statements} statements for {reads} reads");
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

/// A node whose polls wait for long, with nothing else that reads users.
const PATIENT: [&str; 4] = ["--sql-read-wait-ms", "20000", "--scrub-users", "0"];

/// Numbers of a node, since it began.
async fn reads_and_statements(node: &Node) -> [f64; 2] {
    let [reads, statements] = ["headmark_summary_sql_reads_total", "headmark_summary_sql_statements_total"];
    [node.client.metric(reads).await, node.client.metric(statements).await]
}

fn poll(node: &Node, user: i64) -> JoinHandle<Value> {
    let client = node.client.clone();
    tokio::spawn(async move { client.summary(user).await })
}

/// Polls of users 1 and 2 that wait for a lock, and of users 3 to 22, who are then read together.
async fn under_a_lock(world: &World, node: &Node) -> (Vec<JoinHandle<Value>>, Vec<JoinHandle<Value>>) {
    let mut hand = Hand::on(world).await;
    hand.run("begin").await;
    hand.run("lock table users in access exclusive mode").await;
    let first: Vec<_> = [1, 2].map(|user| poll(node, user)).into();
    // One statement may have both.
    eventually("they are being read", async || hand.waiting().await > 0).await;
    let polls = (3..=22).map(|user| poll(node, user)).collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    first.iter().for_each(JoinHandle::abort);
    tokio::time::sleep(Duration::from_millis(100)).await;
    hand.release().await;
    (first, polls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_share_a_statement_whoever_goes() {
    let world = World::new(Tier::Server).await;
    let node = node_without_entries(&world, &PATIENT).await;
    let [reads_before, statements_before] = reads_and_statements(&node).await;
    let (_gone, polls) = under_a_lock(&world, &node).await;
    for (user, poll) in (3..).zip(polls) {
        assert_eq!(*likes(&poll.await.unwrap()), user);
    }
    let [reads, statements] = reads_and_statements(&node).await;
    let (reads, statements) = (reads - reads_before, statements - statements_before);
    assert!(reads >= 20.0, "{reads} reads");
    assert!(statements <= reads / 2.0, "{statements} statements for {reads} reads");
    node.stop().await;
}

/// A user whose row cannot be read.
const BAD: i64 = 7;

both_tiers! {
    async fn one_that_cannot_be_read_is_in_nobodys_way(world: World) {
        let node = node_without_entries(&world, &PATIENT).await;
        let mut hand = Hand::on(&world).await;
        hand.run("alter table notification_types rename to kept_types").await;
        hand.run(&format!("insert into kept_types (user_id, type, unread, seen) values ({BAD}, 'notice', 3, 0)")).await;
        // There is no such number.
        let unread = format!("abs(case when user_id = {BAD} then -9223372036854775807 - 1 else unread end) as unread");
        hand.run(&format!("create view notification_types as select user_id, type, {unread}, seen from kept_types")).await;
        let polls = match world.tier {
            Tier::Server => under_a_lock(&world, &node).await.1,
            Tier::Embedded => (3..=22).map(|user| poll(&node, user)).collect(),
        };
        for (user, poll) in (3..).zip(polls) {
            let summary = poll.await.unwrap();
            if user == BAD {
                assert_eq!(summary["degraded"], true, "{summary}");
            } else {
                assert_eq!(*likes(&summary), user);
            }
        }
        node.stop().await;
    }
}

/// How many statements of this database sleep.
async fn sleeping(world: &World) -> i64 {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
    sqlx::query_scalar(sql).fetch_one(&mut world.postgres().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_take_long_hold_up_nobody() {
    let world = World::new(Tier::Server).await;
    let node = node_without_entries(&world, &[]).await;
    let mut hand = Hand::on(&world).await;
    // Users from 50 on are read for two seconds.
    hand.run("alter table notification_types rename to kept_types").await;
    let sleep = "'begin perform pg_sleep(2); return n; end'";
    hand.run(&format!("create function slowly(n bigint) returns bigint language plpgsql immutable as {sleep}")).await;
    let unread = "case when user_id >= 50 then slowly(unread) else unread end as unread";
    hand.run("insert into kept_types (user_id, type, unread, seen) select u, 'notice', 0, 0 from generate_series(50, 51) u").await;
    hand.run(&format!("create view notification_types as select user_id, type, {unread}, seen from kept_types")).await;
    // One after the other, so that each has a statement.
    let mut slow = Vec::new();
    for user in 50..=51 {
        slow.push(poll(&node, user));
        eventually("it is being read", async || sleeping(&world).await == user - 49).await;
    }
    for user in 3..=22 {
        assert_eq!(*likes(&poll(&node, user).await.unwrap()), user);
    }
    assert!(slow.iter().all(|poll| !poll.is_finished()), "the others were not slow enough");
    for (user, poll) in (50..).zip(slow) {
        assert_eq!(*likes(&poll.await.unwrap()), user);
    }
    node.stop().await;
}
