//! A held poll that cannot read the database goes on waiting: its client would come again at once, and not be held.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinHandle;

use super::{WOKEN, waiting};
use crate::both_tiers;
use crate::features::erasure::erase;
use crate::support::{Node, Reply};

/// Polls of a node take turns to read the database, and it has one.
const ONE_TURN: [&str; 6] = ["--sql-reads", "1", "--sql-read-wait-ms", "100", "--scrub-users", "0"];

/// One that asks the database after each change of the user.
const VIEW: &str = "/v1/users/42/views/home/1";

/// A poll that waits, with the answer of now.
async fn held(node: &Node, path: &str, wait: u32) -> JoinHandle<Reply> {
    let (client, path) = (node.client.clone(), path.to_owned());
    let tag = client.get(&path).await.header("etag").to_owned();
    let polls = node.app.state().polling.waiting.taken();
    let poll = tokio::spawn(async move { client.get_if_changed(&format!("{path}?wait={wait}"), &tag).await });
    waiting(node, polls + 1).await;
    poll
}

/// A message to the user, by which the revision of the user changes.
async fn send(node: &Node) {
    let message = json!({"sender_id": 7, "client_id": "a", "content": "x"});
    node.client.post("/v1/users/42/inbox", &message).await.ok();
}

both_tiers! {
    async fn polls_of_all_routes_go_on_waiting(world: World) {
        let node = world.node_with(&ONE_TURN).await;
        node.client.summary(42).await;
        let mut polls = Vec::new();
        for route in ["views/home/1", "feed", "chats", "chats/direct/7", "directs", "directs/7", "notifications", "following/ids"] {
            polls.push((route, held(&node, &format!("/v1/users/42/{route}"), 30).await));
        }
        let turn = node.app.state().receipts.turns.take().await.unwrap();
        send(&node).await;
        node.client.follow(42, 44).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (answered, held): (Vec<_>, Vec<_>) = polls.into_iter().partition(|(_, poll)| poll.is_finished());
        for (route, poll) in answered {
            let reply = poll.await.unwrap();
            // What is followed now is known without a turn.
            assert_eq!((route, reply.status.as_u16()), ("feed", 200), "{}", reply.text);
        }
        drop(turn);
        for (route, poll) in held {
            let reply = poll.await.unwrap();
            assert_eq!(reply.status, 200, "{route}: {}", reply.text);
        }
        node.stop().await;
    }

    async fn such_a_poll_ends_with_its_time_or_with_the_node(world: World) {
        let node = world.node_with(&ONE_TURN).await;
        node.client.summary(42).await;
        let long = held(&node, VIEW, 60).await;
        let began = Instant::now();
        let short = held(&node, VIEW, 3).await;
        let turn = node.app.state().receipts.turns.take().await.unwrap();
        send(&node).await;
        short.await.unwrap().problem(503, "store_unavailable");
        assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
        assert!(!long.is_finished());
        let stopping = Instant::now();
        node.app.begin_drain();
        long.await.unwrap().problem(503, "store_unavailable");
        assert!(stopping.elapsed() < WOKEN, "{:?}", stopping.elapsed());
        drop(turn);
        node.stop().await;
    }

    async fn such_a_poll_ends_once_its_user_is_erased(world: World) {
        let node = world.node_with(&ONE_TURN).await;
        node.client.summary(42).await;
        let poll = held(&node, "/v1/users/42/chats", 30).await;
        let turn = node.app.state().receipts.turns.take().await.unwrap();
        send(&node).await;
        erase(&node.client, 42).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(turn);
        poll.await.unwrap().problem(410, "erased");
        node.stop().await;
    }
}
