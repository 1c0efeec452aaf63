//! Mentions: by name and of all, until they are read.

use headmark::maintenance::recount::Recount;
use headmark::maintenance::scrub::scrub;
use serde_json::{Value, json};

use super::again::{numbers, unread};
use super::{chats, join, leave, make, read, read_one, recall, send};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Reply, eventually};

async fn say(client: &Client, group: i64, sender: i64, id: &str, mentions: Value) -> Reply {
    let mut body = json!({"sender_id": sender, "client_id": id, "content": "look"});
    body.as_object_mut().unwrap().extend(mentions.as_object().unwrap().clone());
    client.post(&format!("/v1/groups/{group}/messages"), &body).await
}

/// Unread messages and mentions of a user in a group.
async fn seen(client: &Client, user: i64, group: i64) -> (i64, i64) {
    let item = client.get(&format!("/v1/users/{user}/groups/{group}")).await.ok();
    (item["unread"].as_i64().unwrap(), item["mentions"].as_i64().unwrap())
}

/// Rows, numbers and entries agree.
async fn agree(node: &Node, users: std::ops::RangeInclusive<i64>) {
    let state = node.app.state();
    let mut found = Vec::new();
    Recount { user: None, dry_run: true }.run(&state.db, |difference| found.push(difference.to_string())).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
    let users: Vec<_> = users.map(|user| user.try_into().unwrap()).collect();
    assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 0);
}

both_tiers! {
    async fn a_mention_is_unread_as_long_as_its_message(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        make(client, 9, &[1, 2, 3]).await;
        send(client, 9, 1, "plain").await.ok();
        // Named twice, and oneself: once for 2, never for the sender.
        say(client, 9, 1, "a", json!({"mentions": ["2", 2, 1]})).await.ok();
        say(client, 9, 1, "b", json!({"mention_all": true})).await.ok();
        say(client, 9, 1, "c", json!({"mentions": [2], "mention_all": true})).await.ok();
        for (user, expected) in [(1, (0, 0)), (2, (4, 3)), (3, (4, 2))] {
            eventually(&format!("the mentions of {user}"), async || seen(other, user, 9).await == expected).await;
            assert_eq!(seen(client, user, 9).await, expected, "{user}");
        }
        assert_eq!(numbers(&chats(client, 2).await), [4, 3, 1]);
        let summary = client.get("/v1/users/2/badges?cap=2").await.ok();
        assert_eq!(numbers(&summary["chats"]), [2, 2, 1]);
        read_one(client, 2, 9, 3).await.ok();
        assert_eq!(seen(client, 2, 9).await, (3, 2), "reading one of them takes it out");
        read(client, 2, 9, Some(2)).await.ok();
        assert_eq!(seen(client, 2, 9).await, (1, 1));
        recall(client, 9, 4).await;
        assert_eq!((seen(client, 2, 9).await, seen(client, 3, 9).await), ((0, 0), (3, 1)), "a recall takes it back");
        // The mentions among what is unread again count again.
        assert_eq!(unread(client, 2, 9, 2).await.ok()["unread"], 2);
        assert_eq!(seen(client, 2, 9).await, (2, 2));
        read(client, 2, 9, Some(2)).await.ok();
        assert_eq!(seen(client, 2, 9).await, (1, 1));
        send(client, 9, 3, "answer").await.ok();
        assert_eq!(seen(client, 3, 9).await, (0, 0), "sending reads them");
        agree(&nodes[0], 1..=3).await;
        Node::stop_all(nodes).await;
    }

    async fn a_group_may_count_its_mentions_only(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 1, &[1, 2]).await;
        make(client, 2, &[1, 2]).await;
        for group in [1, 2] {
            client.put(&format!("/v1/users/1/groups/{group}/settings"), &json!({"level": "mentions"})).await.ok();
            send(client, group, 2, "plain").await.ok();
        }
        assert_eq!(numbers(&chats(client, 1).await), [0, 0, 0]);
        let tag = client.get("/v1/users/1/badges").await.header("etag").to_owned();
        say(client, 1, 2, "all", json!({"mention_all": true})).await.ok();
        assert_eq!(client.get_if_changed("/v1/users/1/badges", &tag).await.status, 200);
        say(client, 1, 2, "one", json!({"mentions": [1]})).await.ok();
        assert_eq!(numbers(&chats(client, 1).await), [2, 2, 1]);
        assert_eq!(client.summary(1).await["total"], 2);
        assert_eq!((seen(client, 1, 1).await, seen(client, 1, 2).await), ((3, 2), (1, 0)), "the group keeps its own number");
        let explained = client.get("/v1/users/1/badges/explain").await.ok();
        assert_eq!((&explained["chats"]["unread"], &explained["total"]), (&json!(2), &json!(2)));
        client.put("/v1/users/1/groups/1/settings", &json!({"level": "none"})).await.ok();
        assert_eq!(numbers(&chats(client, 1).await), [0, 0, 0]);
        node.stop().await;
    }

    async fn who_may_be_mentioned(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        let refused = say(client, 9, 1, "a", json!({"mentions": [2, 3, 7]})).await;
        assert_eq!(refused.pointers(422, "invalid_body"), ["/mentions/2"]);
        assert_eq!((seen(client, 2, 9).await, client.get("/v1/groups/9").await.ok()["head"].clone()), ((0, 0), json!(0)), "all or nothing");
        for (body, pointer) in [
            (json!({"mentions": [0]}), "/mentions/0"),
            (json!({"mentions": null}), "/mentions"),
            (json!({"mention_all": "yes"}), "/mention_all"),
            (json!({"mentions": vec![2; 51]}), "/mentions"),
        ] {
            assert_eq!(say(client, 9, 1, "b", body.clone()).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        let sent = say(client, 9, 1, "c", json!({"mentions": [2, 3]})).await;
        assert_eq!(sent.status, 201);
        // Leaving ends a mention, and coming back does not bring it back.
        leave(client, 9, 3).await;
        let again = say(client, 9, 1, "c", json!({"mentions": [2, 3]})).await;
        assert_eq!((again.status.as_u16(), again.text), (200, sent.text), "it keeps answering with the message");
        assert_eq!(seen(client, 2, 9).await, (1, 1), "and mentions nobody twice");
        join(client, 9, 3).await.ok();
        assert_eq!(seen(client, 3, 9).await, (0, 0));
        let message = client.get("/v1/groups/9/messages").await.ok()["items"][0].clone();
        assert!(message.get("mentions").is_none() && message.get("mention_all").is_none(), "{message}");
        agree(&node, 1..=3).await;
        node.stop().await;
    }

    async fn many_mentions_of_all_are_counted_from_the_rows(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 7, &[1, 2]).await;
        for n in 1..=430 {
            say(client, 7, 1, &format!("m{n}"), json!({"mention_all": n % 2 == 0})).await.ok();
        }
        assert_eq!(seen(client, 2, 7).await, (430, 215));
        recall(client, 7, 2).await;
        read_one(client, 2, 7, 4).await.ok();
        assert_eq!(seen(client, 2, 7).await, (428, 213));
        assert_eq!(chats(client, 2).await["mentions"], 213);
        agree(&node, 1..=2).await;
        read(client, 2, 7, Some(429)).await.ok();
        assert_eq!(seen(client, 2, 7).await, (1, 1));
        assert_eq!(unread(client, 2, 7, 1).await.ok()["unread"], 429);
        assert_eq!(seen(client, 2, 7).await, (429, 214));
        node.stop().await;
    }

    async fn members_mention_as_themselves(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (service, one) = (node.service(), node.user(1));
        make(&service, 9, &[1, 2]).await;
        let body = json!({"client_id": "a", "content": "hello", "mentions": ["2"]});
        one.post("/v1/groups/9/messages", &body).await.ok();
        assert_eq!(seen(&node.user(2), 2, 9).await, (1, 1));
        unread(&one, 2, 9, 1).await.problem(403, "forbidden");
        node.stop().await;
    }
}
