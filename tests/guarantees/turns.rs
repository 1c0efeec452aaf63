//! Reads of the database that take long leave room for the others, on a node whose polls and lists wait for a table
//! that is locked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use headmark::base::ids::UserId;
use headmark::db::DbResult;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::both_tiers;
use crate::features::erasure::erase;
use crate::support::{Client, Hand, Node, Reply, Tier, World, eventually};

async fn ask_again(client: Client, path: &'static str) {
    for _ in 0..1000 {
        drop(client.get(path).await);
    }
}

/// So many clients that ask for this again and again.
fn crowd(clients: usize, client: &Client, path: &'static str) -> Vec<AbortOnDropHandle<()>> {
    (0..clients).map(|_| AbortOnDropHandle::new(tokio::spawn(ask_again(client.clone(), path)))).collect()
}

/// The looks at shared heads go over the connections that lists have, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_take_long_leave_connections_to_polls() {
    let world = World::new(Tier::Server).await;
    // A list waits for the lock for longer than what was heard of heads counts as new.
    let node = world
        .node_with(&["--db-connections", "4", "--statement-timeout-ms", "4000", "--db-acquire-timeout-ms", "10000", "--scrub-users", "0"])
        .await;
    let client = &node.client;
    client.summary(42).await;
    client.get("/v1/users/7/following").await.ok();
    let (mut hand, mut other) = (Hand::on(&world).await, Hand::on(&world).await);
    hand.run("begin; lock table following in access exclusive mode").await;
    let began = Instant::now();
    let lists = crowd(24, client, "/v1/users/7/following");
    eventually("lists wait for the table", async || other.waiting().await >= 2).await;
    // As many as may read at once.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(node.app.state().heads.catch_up().await.is_ok(), "a look finds a connection");
    while began.elapsed() < Duration::from_millis(3500) {
        let summary = client.summary(42).await;
        assert_eq!(summary["degraded"], false, "after {:?}: {summary}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(lists);
    hand.release().await;
    node.stop().await;
}

async fn reset(client: Client, body: Value) -> Reply {
    client.post("/v1/users/42/feed/reset", &body).await
}

/// One reset reads whom a user follows, and may look for many posts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_resets_of_one_user_leave_turns_to_others() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(&["--sql-reads", "4", "--scrub-users", "0"]).await;
    let client = &node.client;
    let lists = ["/v1/users/43/notifications", "/v1/users/43/blocks"];
    for path in lists {
        client.get(path).await.ok();
    }
    let token = client.get("/v1/users/42/feed").await.ok()["token"].clone();
    let (mut hand, mut other) = (Hand::on(&world).await, Hand::on(&world).await);
    hand.run("begin; lock table following in access exclusive mode").await;
    let bodies = [json!({}), json!({"up_to": token})];
    let resets: Vec<_> = bodies.iter().cycle().take(10).map(|body| tokio::spawn(reset(client.clone(), body.clone()))).collect();
    eventually("one waits for the table", async || other.waiting().await >= 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // A poll, and a list.
    for path in lists {
        client.get(path).await.ok();
    }
    let mut refused = 0;
    for reset in resets {
        let reply = reset.await.unwrap();
        refused += usize::from(reply.status == 429);
        assert!(reply.status == 429 || reply.body["code"] == "store_unavailable", "{}", reply.text);
    }
    assert!(refused > 0, "none took its turn in time");
    hand.release().await;
    for body in bodies {
        reset(client.clone(), body).await.ok();
    }
    node.stop().await;
}

/// A list that reads until it is told to go on; returns once it has its turn.
async fn long_list(node: &Node) -> oneshot::Sender<()> {
    let (began, has_turn) = oneshot::channel();
    let (go_on, waits) = oneshot::channel::<()>();
    let turns = Arc::clone(&node.app.state().receipts.turns);
    tokio::spawn(async move {
        let until_told = async {
            began.send(()).unwrap();
            waits.await.unwrap();
            DbResult::Ok(())
        };
        turns.read_list(until_told).await
    });
    has_turn.await.unwrap();
    go_on
}

both_tiers! {
    /// Look-ups begin with it, and any user may ask for them.
    async fn a_look_for_erased_users_takes_a_turn_of_look_ups(world: World) {
        let node = world.node_with(&["--sql-reads", "2", "--sql-read-wait-ms", "20000", "--scrub-users", "0"]).await;
        let state = node.app.state();
        let go_on = long_list(&node).await;
        let entries = Arc::clone(&state.contexts.inbox.entries);
        let looking = tokio::spawn(async move { entries.refuse_erased_to_others(UserId::try_from(7).unwrap()).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!looking.is_finished(), "there are two turns, and one of them is for polls");
        assert!(state.receipts.turns.take().await.is_ok());
        go_on.send(()).unwrap();
        looking.await.unwrap().unwrap();
        node.stop().await;
    }

    async fn no_look_up_shows_an_erased_user_where_turns_are_short(world: World) {
        let node = world.node_with(&["--sql-reads", "2", "--sql-read-wait-ms", "100", "--scrub-users", "0"]).await;
        let client = &node.client;
        let look_up = async || {
            let pairs = json!({"pairs": [{"user_id": 7, "target_id": 9}]});
            [client.get("/v1/users/7/relations?ids=9").await, client.post("/v1/relations/query", &pairs).await]
        };
        client.follow(7, 9).await;
        for reply in look_up().await {
            reply.ok();
        }
        erase(client, 9).await;
        let go_on = long_list(&node).await;
        for reply in look_up().await {
            reply.problem(503, "overloaded");
        }
        go_on.send(()).unwrap();
        for reply in look_up().await {
            reply.problem(410, "erased");
        }
        node.stop().await;
    }
}
