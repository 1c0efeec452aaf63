//! What is seen apart from what is read; polls of the list; edits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::grouping::like;
use super::{mark, send, seqs};
use crate::both_tiers;
use crate::support::{Client, Node};

async fn see(client: &Client, body: Value) -> Value {
    client.post("/v1/users/1/notifications/seen", &body).await.ok()
}

async fn shown(client: &Client) -> Value {
    client.summary(1).await["notifications"].clone()
}

/// A list with its tag.
async fn poll(client: &Client, path: &str) -> (String, Value) {
    let reply = client.get(path).await;
    (reply.header("etag").to_owned(), reply.ok())
}

both_tiers! {
    async fn what_is_seen_stays_unread(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let first = like(client, "post:1", Some(10), &[1]).await;
        send(client, "mail", &[1]).await;
        let last = send(client, "mail", &[1]).await;
        let answer = see(other, json!({"up_to_seq": 2})).await;
        assert_eq!(answer, json!({"unseen": 1, "revision": client.summary(1).await["revision"]}));
        assert_eq!(shown(client).await, json!({"like": {"unread": 1, "unseen": 0}, "mail": {"unread": 2, "unseen": 1}}));
        assert_eq!(client.summary(1).await["total"], 3);
        assert_eq!((seqs(other, 1, "&status=unseen").await, seqs(client, 1, "&status=unread").await), (vec![3], vec![3, 2, 1]));
        assert_eq!(seqs(other, 1, "&status=unseen&type=like").await, Vec::<i64>::new());
        let items = other.get("/v1/users/1/notifications").await.ok()["items"].clone();
        assert_eq!([&items[0]["seen"], &items[1]["seen"], &items[2]["seen"]], [false, true, true]);
        // It never goes back, and never ahead of the list.
        assert_eq!(see(client, json!({"up_to_seq": 1})).await, answer);
        assert_eq!(see(client, json!({"up_to_seq": 9_007_199_254_740_991_i64})).await["unseen"], 0);
        assert_eq!(see(client, json!({})).await["revision"], client.summary(1).await["revision"], "a repeat changes nothing");
        // An entry that a notification joins is unseen again. The unread number stays.
        like(other, "post:1", Some(11), &[1]).await;
        assert_eq!(shown(other).await, json!({"like": {"unread": 1, "unseen": 1}, "mail": {"unread": 2, "unseen": 0}}));
        assert_eq!(seqs(client, 1, "&status=unseen").await, [4]);
        // Those that are read are seen.
        let read = mark(client, 1, &first, "read").await.ok();
        assert_eq!((&read["unread"], &read["unseen"]), (&json!(0), &json!(0)));
        assert_eq!(other.get("/v1/users/1/notifications").await.ok()["items"][0]["seen"], true);
        let unread = mark(client, 1, &first, "unread").await.ok();
        assert_eq!((&unread["unread"], &unread["unseen"]), (&json!(1), &json!(1)), "its place is above the mark");
        mark(client, 1, &last, "read").await.ok();
        let unread = mark(client, 1, &last, "unread").await.ok();
        assert_eq!((&unread["unread"], &unread["unseen"]), (&json!(2), &json!(0)), "its place is below the mark");
        let capped = client.get("/v1/users/1/badges?cap=1&include=notifications").await.ok()["notifications"].clone();
        assert_eq!(capped, json!({"like": {"unread": 1, "unseen": 1, "capped": false}, "mail": {"unread": 1, "unseen": 0, "capped": true}}));
        let terms = client.get("/v1/users/1/badges/explain").await.ok()["notifications"].clone();
        assert_eq!(terms, json!({"like": {"unread": 1, "unseen": 1}, "mail": {"unread": 2, "unseen": 0}}));
        assert_eq!(see(client, json!({})).await["unseen"], 0);
        Node::stop_all(nodes).await;
    }

    async fn a_waiting_list_wakes_for_what_it_shows(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let id = like(client, "post:1", Some(10), &[1, 2]).await;
        let path = "/v1/users/1/notifications";
        let (tag, _) = poll(client, path).await;
        assert_eq!(other.get_if_changed(path, &tag).await.status, 304);
        for other_path in ["/v1/users/1/notifications?status=unread", "/v1/users/2/notifications"] {
            assert_eq!(other.get_if_changed(other_path, &tag).await.status, 200, "a tag of another list");
        }
        let held = tokio::spawn({
            let (other, tag) = (other.clone(), tag.clone());
            async move { (Instant::now(), other.get_if_changed("/v1/users/1/notifications?wait=20", &tag).await) }
        });
        // The tag is of the list without `wait`, as the parameter changes nothing of the answer.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let edited = client.put(&format!("/v1/notifications/{id}"), &json!({"title": "New"})).await.ok();
        assert_eq!((&edited["title"], &edited["actor_id"], &edited["read_count"]), (&json!("New"), &json!("10"), &json!(0)));
        let (began, reply) = held.await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(reply.ok()["items"][0]["title"], "New");
        for change in ["join", "seen", "read", "withdraw"] {
            let (tag, _) = poll(other, path).await;
            match change {
                "join" => drop(like(client, "post:1", Some(11), &[1]).await),
                "seen" => drop(see(client, json!({})).await),
                "read" => drop(mark(client, 1, &id, "read").await.ok()),
                _ => drop(client.delete(&format!("/v1/notifications/{id}")).await),
            }
            assert_eq!(other.get_if_changed(path, &tag).await.status, 200, "{change}");
        }
        Node::stop_all(nodes).await;
    }

    async fn an_edit_changes_what_is_shown_and_no_number(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let body = json!({"type": "notice", "title": "One", "content": "c", "data": {"a": 1}, "recipients": [1, 2, 3]});
        let sent = client.post("/v1/notifications", &body).await.ok();
        let path = format!("/v1/notifications/{}", sent["notification_id"].as_str().unwrap());
        mark(client, 2, sent["notification_id"].as_str().unwrap(), "read").await.ok();
        client.delete(&path.replace("/v1/", "/v1/users/3/")).await.ok();
        let before = [client.summary(1).await, client.summary(3).await];
        let edited = other.put(&path, &json!({"content": "", "data": {"b": 2}})).await.ok();
        assert_eq!((&edited["title"], &edited["content"], &edited["data"], &edited["read_count"]), (&json!("One"), &json!(""), &json!({"b": 2}), &json!(1)));
        assert!(edited["modified_at"].as_str() >= sent["created_at"].as_str() && edited["created_at"] == sent["created_at"]);
        assert_eq!(client.get(&path).await.ok(), edited);
        let after = client.summary(1).await;
        assert_eq!((&after["notifications"], &after["total"]), (&before[0]["notifications"], &before[0]["total"]));
        assert_eq!(after["revision"].as_i64(), before[0]["revision"].as_i64().map(|revision| revision + 1));
        assert_eq!(client.summary(3).await["revision"], before[1]["revision"], "its list does not show it");
        for (user, client) in [(1, client), (2, other)] {
            let item = client.get(&format!("/v1/users/{user}/notifications")).await.ok()["items"][0].clone();
            assert_eq!((&item["content"], &item["data"], &item["seq"]), (&json!(""), &json!({"b": 2}), &json!(1)));
        }
        for same in [json!({}), json!({"title": "One"})] {
            assert_eq!(client.put(&path, &same).await.ok(), edited, "nothing changes");
        }
        assert_eq!(client.summary(1).await["revision"], after["revision"]);
        client.delete(&path).await;
        other.put(&path, &json!({"title": "x"})).await.problem(410, "gone");
        Node::stop_all(nodes).await;
    }
}
