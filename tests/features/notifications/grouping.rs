//! Notifications that group: which entry they join, what it shows, and what is left after a
//! withdrawal.

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::{mark, send, seqs};
use crate::both_tiers;
use crate::support::{Client, Node, ShownEntry};

/// A like of a post; returns the notification's id.
pub async fn like(client: &Client, key: &str, actor: Option<i64>, to: &[i64]) -> String {
    let mut body = json!({"type": "like", "recipients": to, "group_key": key});
    if let Some(actor) = actor {
        body["actor_id"] = json!(actor);
    }
    let reply = client.post("/v1/notifications", &body).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.body["notification_id"].as_str().unwrap().to_owned()
}

async fn list(client: &Client, user: i64) -> Vec<ShownEntry> {
    let page = client.get(&format!("/v1/users/{user}/notifications")).await.ok();
    page["items"].as_array().unwrap().iter().map(ShownEntry::of).collect()
}

/// How many actors the first entry has, and the newest of them.
async fn actors(client: &Client, user: i64) -> (usize, Vec<i64>) {
    let first = list(client, user).await.remove(0);
    (first.count, first.actors)
}

async fn unread(client: &Client, user: i64) -> Value {
    client.summary(user).await["notifications"]["like"].clone()
}

both_tiers! {
    async fn likes_of_a_post_are_one_entry(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let sent = client.post("/v1/notifications", &json!({
            "type": "like", "title": "Liked", "content": "c", "data": {"post": "1", "n": 1.50}, "recipients": [1, 2], "group_key": "post:1", "actor_id": 10
        })).await;
        let first = sent.body["notification_id"].as_str().unwrap().to_owned();
        assert_eq!((&sent.body["group_key"], &sent.body["actor_id"], &sent.body["modified_at"]), (&json!("post:1"), &json!("10"), &sent.body["created_at"]));
assert_eq!(sent.body["data"], json!({"post": "1", "n": 1.5}));
        for actor in [11, 12, 13] {
            like(other, "post:1", Some(actor), &[1]).await;
        }
        let last = like(client, "post:1", Some(11), &[1]).await;
        let entry = ShownEntry { id: first.clone(), seq: 5, count: 4, actors: vec![11, 13, 12], newest: last, seen: false, read: false };
        assert_eq!(list(other, 1).await, [entry]);
        assert_eq!(unread(other, 1).await, json!({"unread": 1, "unseen": 1}));
        let page = client.get("/v1/users/2/notifications").await.ok();
        assert_eq!((&page["items"][0]["data"]["post"], &page["items"][0]["group_key"]), (&json!("1"), &json!("post:1")));
        // Of another key, another type, or without a key, they are entries of their own.
        like(client, "post:2", Some(10), &[1]).await;
        send(client, "like", &[1]).await;
        client.post("/v1/notifications", &json!({"type": "reply", "recipients": [1], "group_key": "post:1"})).await.ok();
        assert_eq!((seqs(client, 1, "").await, unread(client, 1).await["unread"].as_i64()), (vec![8, 7, 6, 5], Some(3)));
        // One that is read is joined by none, until it is unread again.
        mark(other, 1, &first, "read").await.ok();
        let second = like(client, "post:1", Some(20), &[1]).await;
        assert_eq!(list(client, 1).await.into_iter().map(|entry| (entry.id, entry.seq)).next(), Some((second.clone(), 9)));
        mark(client, 1, &first, "unread").await.ok();
        like(other, "post:1", Some(21), &[1]).await;
        assert_eq!(actors(client, 1).await, (2, vec![21, 20]), "the one with the highest seq");
        mark(client, 1, &second, "read").await.ok();
        like(other, "post:1", Some(22), &[1]).await;
        let shown = list(client, 1).await.remove(0);
        assert_eq!((shown.id, shown.seq, shown.count, shown.actors), (first, 11, 5, vec![22, 11, 13]));
        Node::stop_all(nodes).await;
    }

    async fn a_withdrawal_leaves_what_was_before(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let withdraw = async |client: &Client, id: &str| assert_eq!(client.delete(&format!("/v1/notifications/{id}")).await.status, 204);
        let mut ids = Vec::new();
        for actor in [10, 11, 10] {
            ids.push(like(client, "post:1", Some(actor), &[1, 2]).await);
        }
        assert_eq!(actors(other, 1).await, (2, vec![10, 11]));
        withdraw(other, &ids[2]).await;
        assert_eq!(actors(client, 1).await, (2, vec![11, 10]), "the earlier act counts again");
        let shown = list(other, 1).await.remove(0);
        assert_eq!((shown.seq, &shown.newest), (3, &ids[1]), "it stays in its place, and shows the newest that is left");
        let again = like(client, "post:1", Some(10), &[1]).await;
        withdraw(other, &ids[0]).await;
        assert_eq!(actors(client, 1).await, (2, vec![10, 11]), "its first is gone, its id stays");
        assert_eq!(list(client, 1).await[0].id, ids[0]);
        assert_eq!(actors(client, 2).await, (1, vec![11]));
        // Nobody's acts count one each.
        let nobodies = [like(client, "post:1", None, &[1]).await, like(client, "post:1", None, &[1]).await];
        assert_eq!(actors(client, 1).await, (4, vec![10, 11]));
        assert_eq!(unread(client, 1).await, json!({"unread": 1, "unseen": 1}));
        for id in [&nobodies[0], &ids[1], &again] {
            withdraw(client, id).await;
        }
        assert_eq!((actors(other, 1).await, list(client, 2).await), ((1, vec![]), vec![]));
        let before = client.summary(1).await;
        withdraw(other, &nobodies[1]).await;
        assert_eq!((unread(client, 1).await, list(client, 1).await), (json!({"unread": 0, "unseen": 0}), vec![]));
        assert_eq!(client.summary(1).await["revision"].as_i64(), before["revision"].as_i64().map(|revision| revision + 1));
        mark(client, 1, &ids[0], "read").await.problem(410, "gone");
        withdraw(client, &nobodies[1]).await;
        // The next one begins a new entry.
        let next = like(client, "post:1", Some(10), &[1]).await;
        assert_eq!(list(client, 1).await.into_iter().map(|entry| (entry.id, entry.count)).collect::<Vec<_>>(), [(next, 1)]);
        Node::stop_all(nodes).await;
    }

    async fn readers_are_those_whose_entry_is_read(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let (first, second) = (like(client, "post:1", Some(10), &[1, 2, 3]).await, like(client, "post:1", Some(11), &[1, 2]).await);
        let counts = async |id: &str| {
            let found = client.get(&format!("/v1/notifications/{id}")).await.ok();
            (found["recipient_count"].as_i64().unwrap(), found["read_count"].as_i64().unwrap())
        };
        mark(client, 1, &first, "read").await.ok();
        assert_eq!((counts(&first).await, counts(&second).await), ((3, 1), (2, 1)));
        client.delete(&format!("/v1/users/1/notifications/{first}")).await.ok();
        client.delete(&format!("/v1/users/2/notifications/{first}")).await.ok();
        assert_eq!((counts(&first).await, counts(&second).await), ((3, 1), (2, 1)), "who deleted it had read it, or not");
        mark(client, 1, &second, "read").await.problem(404, "not_found");
        let third = like(client, "post:1", Some(12), &[1, 2, 3]).await;
        assert_eq!(list(client, 1).await[0].id, third, "a deleted entry is joined by none");
        assert_eq!(counts(&third).await, (3, 0));
        mark(client, 3, &first, "read").await.ok();
        assert_eq!((counts(&first).await, counts(&third).await), ((3, 2), (3, 1)));
        node.stop().await;
    }

    async fn an_entry_holds_a_thousand(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let client = &node.client;
        let likes = (0..1000).map(|n| like(client, "post:1", Some(100 + n % 700), &[1]));
        futures_util::stream::iter(likes).buffer_unordered(64).collect::<Vec<_>>().await;
        let entry = list(client, 1).await.remove(0);
        assert_eq!((entry.seq, entry.count, entry.actors.len()), (1000, 700, 3));
        let next = like(client, "post:1", Some(5), &[1]).await;
        let shown: Vec<_> = list(client, 1).await.into_iter().map(|entry| (entry.id, entry.seq, entry.count)).collect();
        assert_eq!(shown, [(next, 1001, 1), (entry.id.clone(), 1000, 700)]);
        assert_eq!(unread(client, 1).await, json!({"unread": 2, "unseen": 2}));
        node.stop().await;
    }
}
