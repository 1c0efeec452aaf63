//! A Redis Cluster of three masters, each with a replica, under whole nodes. One master is killed, or
//! stands still, and its replica takes over: no poll of any user shows an older state, writes go on,
//! and nothing acknowledged is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::stores::cache_state;
use super::storm::Storm;
use super::truth::{Truth, poll};
use crate::support::{Client, Node, Nodes, RedisCluster, Tier, World, eventually_within};

/// How many users the crowd has: they are in the slots of all masters.
const USERS: i64 = 24;

/// How long writes may stand still after a master is gone.
const WRITES_WITHIN_S: u64 = 15;

/// How long until the cache is used again.
const RECOVERY_S: u64 = 45;

/// Two nodes on a cluster, under load, while `fail` is done to a master and its replica takes over.
/// After `then` it may be waited until the cache is used again.
async fn a_master_fails(fail: impl AsyncFnOnce(&mut RedisCluster), then: impl AsyncFnOnce(&mut RedisCluster) -> bool) {
    let mut world = World::new(Tier::Server).await;
    let mut cluster = RedisCluster::start(&world.dir).await;
    world.redis_url = cluster.urls();
    let nodes = [world.node_with(&["--redis-cluster"]).await, world.node_with(&["--redis-cluster"]).await];
    let mut storm = Storm::new(Nodes::of(nodes.iter().map(|node| node.client.clone())));
    (storm.calm, storm.tags, storm.users, storm.steps) = (false, true, (1..=USERS).collect(), 20);
    let recovered = async || {
        eventually_within(RECOVERY_S, "both nodes use the cache", async || {
            cache_state(&nodes[0]).await == "ok" && cache_state(&nodes[1]).await == "ok"
        })
        .await;
    };
    recovered().await;
    let fail_over = async {
        storm.more(200, WRITES_WITHIN_S).await;
        // What the replica does not hear of, it has outdated when it takes over.
        cluster.cut_off_follower().await;
        storm.more(100, WRITES_WITHIN_S).await;
        fail(&mut cluster).await;
        storm.more(100, WRITES_WITHIN_S).await;
        cluster.taken_over().await;
        if then(&mut cluster).await {
            recovered().await;
        }
        storm.more(200, WRITES_WITHIN_S).await;
    };
    storm.rage_during(fail_over).await;
    storm.settle(&mut Truth::of(&world).await).await;
    Node::stop_all(nodes.into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_master_of_three_is_killed_and_its_replica_takes_over() {
    a_master_fails(async |cluster| cluster.kill_first(), async |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_master_of_three_stands_still_and_comes_back_as_a_replica() {
    a_master_fails(
        async |cluster| cluster.stall_first().await,
        async |cluster| {
            // What is read while two of them take themselves for the master.
            cluster.first_goes_on();
            false
        },
    )
    .await;
}

/// The master does not answer, which no closed connection tells, and nobody asks for its users. Others
/// are asked for all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_a_replica_that_takes_over_unnoticed_shows_nothing_outdated() {
    let mut world = World::new(Tier::Server).await;
    let cluster = RedisCluster::start(&world.dir).await;
    world.redis_url = cluster.urls();
    let nodes = [world.node_with(&["--redis-cluster"]).await, world.node_with(&["--redis-cluster"]).await];
    let (mut of_first, mut others) = (Vec::new(), Vec::new());
    for user in 1..=USERS {
        let users = if cluster.is_of_first(&format!("u:{user}")).await { &mut of_first } else { &mut others };
        users.push(user);
    }
    assert!(of_first.len() > 2 && others.len() > 2, "{of_first:?} {others:?}");
    let raise = async |user: i64| {
        nodes[0].client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await.ok();
        poll(&nodes[1].client, user).await;
    };
    for user in 1..=USERS {
        poll(&nodes[1].client, user).await;
        raise(user).await;
    }
    // Its entries are clean, and are outdated from here on.
    cluster.followed().await;
    cluster.cut_off_follower().await;
    for user in 1..=USERS {
        raise(user).await;
    }
    cluster.stall_first().await;
    let (taken, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let take_over = async {
        cluster.taken_over().await;
        taken.store(true, Ordering::Relaxed);
        // Longer than until the nodes have noticed.
        tokio::time::sleep(Duration::from_secs(3)).await;
        eventually_within(RECOVERY_S, "both nodes use the cache", async || {
            cache_state(&nodes[0]).await == "ok" && cache_state(&nodes[1]).await == "ok"
        })
        .await;
        over.store(true, Ordering::Relaxed);
    };
    let watch = async |client: &Client| {
        let (mut before, mut after) = (0, 0);
        while !over.load(Ordering::Relaxed) {
            let is_taken = taken.load(Ordering::Relaxed);
            let (users, polls) = if is_taken { (&of_first, &mut after) } else { (&others, &mut before) };
            let user = users[*polls % users.len()];
            assert_eq!(poll(client, user).await.head("mention"), 2, "user {user}, taken over: {is_taken}");
            *polls += 1;
        }
        assert!(before > 0 && after >= of_first.len(), "{before} polls before it, {after} after it");
    };
    tokio::join!(take_over, watch(&nodes[0].client), watch(&nodes[1].client));
    Node::stop_all(nodes.into()).await;
}
