//! What is deleted from a list, and what is withdrawn from all.

use reqwest::Method;
use serde_json::json;

use super::{mark, send, seqs, shown};
use crate::both_tiers;
use crate::support::{Client, Hand, Node, Tier, World, eventually};

both_tiers! {
    async fn deleting_keeps_what_was_counted_and_withdrawing_takes_it_from_all(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let (first, second) = (send(client, "notice", &[1, 2, 3]).await, send(client, "notice", &[1, 2, 3]).await);
        mark(client, 1, &first, "read").await.ok();
        // User 1 has also read it.
        for (user, revision) in [(1, 5), (2, 4), (1, 5), (2, 4)] {
            let deleted = client.delete(&format!("/v1/users/{user}/notifications/{first}")).await.ok();
            assert_eq!(deleted, json!({"revision": revision}), "a repeat changes nothing");
        }
        let unread = async |client: &Client| [shown(client, 1).await, shown(client, 2).await, shown(client, 3).await].map(|shown| shown["notice"]["unread"].as_i64().unwrap());
        assert_eq!((unread(client).await, unread(other).await), ([1, 1, 2], [1, 1, 2]));
        assert_eq!((seqs(client, 1, "").await, seqs(client, 3, "").await), (vec![2], vec![2, 1]));
        let notification = other.get(&format!("/v1/notifications/{first}")).await.ok();
        assert_eq!((&notification["read_count"], &notification["recipient_count"]), (&json!(1), &json!(3)), "who deleted it had read it, or not");

        mark(client, 3, &second, "read").await.ok();
        let before = client.summary(3).await["revision"].as_i64().unwrap();
        for node in [client, other] {
            let reply = node.delete(&format!("/v1/notifications/{second}")).await;
            assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        }
        assert_eq!((unread(client).await, unread(other).await), ([0, 0, 1], [0, 0, 1]));
        assert_eq!(client.summary(3).await["revision"], before + 1, "its list is another");
        assert_eq!((seqs(other, 1, "").await, seqs(other, 3, "").await), (vec![], vec![1]));
        for user in [1, 2, 3] {
            mark(client, user, &second, "read").await.problem(410, "gone");
            mark(client, user, &second, "unread").await.problem(410, "gone");
            let revision = client.summary(user).await["revision"].clone();
            assert_eq!(client.delete(&format!("/v1/users/{user}/notifications/{second}")).await.ok(), json!({"revision": revision}));
        }
        mark(client, 1, &first, "read").await.problem(410, "gone");
        client.get(&format!("/v1/notifications/{second}")).await.problem(410, "gone");
        let mixed = client.post("/v1/users/3/notifications/read", &json!({"ids": [first, second]})).await;
        assert_eq!(mixed.pointers(410, "gone"), ["/ids/1"]);
        assert_eq!(unread(client).await, [0, 0, 1], "all or nothing");
        assert_eq!(client.post("/v1/users/3/notifications/read", &json!({"all": true})).await.ok()["changed"], 1);
        Node::stop_all(nodes).await;
    }

    async fn a_waiting_poll_wakes_for_a_notification_and_for_its_withdrawal(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        let mut tag = last.get("/v1/users/2/badges").await.header("etag").to_owned();
        let mut id = String::new();
        for unread in [1, 0] {
            let waiting = last.request(Method::GET, "/v1/users/2/badges?wait=30").header("if-none-match", &tag);
            let poll = tokio::spawn(Client::send(waiting));
            eventually("the poll waits", async || last.metric("headmark_polls_waiting").await == 1.0).await;
            if unread == 1 {
                id = send(first, "notice", &[1, 2]).await;
            } else {
                assert_eq!(first.delete(&format!("/v1/notifications/{id}")).await.status, 204);
            }
            let told = poll.await.unwrap();
            tag = told.header("etag").to_owned();
            assert_eq!(told.ok()["notifications"]["notice"]["unread"], unread);
        }
        Node::stop_all(nodes).await;
    }
}

/// As an erasure on another node does it, where nobody has the notification in a list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_that_waits_for_a_withdrawal_brings_nothing_back() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let id = send(&node.client, "notice", &[1]).await;
    let mut hand = Hand::on(&world).await;
    hand.run("begin").await;
    hand.run(&format!("update notifications set withdrawn = 1, content = '{{}}' where notification_id = {id}")).await;
    let edit = tokio::spawn({
        let (client, path) = (node.client.clone(), format!("/v1/notifications/{id}"));
        async move { client.put(&path, &json!({"content": "later"})).await }
    });
    let mut other = Hand::on(&world).await;
    eventually("the edit waits", async || other.waiting().await > 0).await;
    hand.run("commit").await;
    edit.await.unwrap().problem(410, "gone");
    assert_eq!(other.text("select content from notifications").await, "{}");
    node.stop().await;
}
