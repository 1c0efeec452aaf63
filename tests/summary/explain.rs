//! Explain: every number of the unread summary as its terms.

use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::Client;

async fn post(client: &Client, path: &str, body: Value) -> Value {
    client.post(path, &body).await.ok()
}

both_tiers! {
    async fn every_number_of_the_summary_is_the_sum_of_its_terms(world: World) {
        let node = world.node().await;
        let client = &node.client;
        post(client, "/v1/broadcasts/system", json!({"title": "before the user"})).await;
        client.summary(1).await;
        for n in 1..=4 {
            post(client, "/v1/broadcasts/system", json!({"title": format!("notice {n}")})).await;
        }
        post(client, "/v1/users/1/broadcasts/system/read", json!({"up_to": 2})).await;
        client.delete("/v1/broadcasts/system/4").await;
        post(client, "/v1/dots/mall/light", json!({})).await;
        post(client, "/v1/users/1/badges/like/increment", json!({"by": 7})).await;
        post(client, "/v1/users/1/badges/like/reset", json!({"up_to": 3})).await;
        post(client, "/v1/users/1/badges/like/retract", json!({"at": 5})).await;
        for (creator, posts) in [(7, 2), (8, 3)] {
            Client::send(client.request(Method::PUT, &format!("/v1/users/{creator}/posts/old"))).await.ok();
            client.follow(1, creator).await;
            for n in 1..=posts {
                Client::send(client.request(Method::PUT, &format!("/v1/users/{creator}/posts/new-{n}"))).await.ok();
            }
        }
        client.delete("/v1/users/8/posts/new-2").await;
        for (group, level) in [(5, "all"), (6, "none")] {
            crate::features::groups::make(client, group, &[1, 2]).await;
            for n in 1..=4 {
                crate::features::groups::send(client, group, 2, &format!("m{n}")).await.ok();
            }
            client.put(&format!("/v1/users/1/groups/{group}/settings"), &json!({"level": level})).await.ok();
        }
        crate::features::groups::read(client, 1, 5, Some(1)).await.ok();
        crate::features::groups::read_one(client, 1, 5, 3).await.ok();
        for n in 1..=2 {
            post(client, "/v1/users/1/inbox", json!({"sender_id": 3, "client_id": format!("d{n}"), "content": "hello"})).await;
        }
        let (summary, explained) = (client.summary(1).await, client.get("/v1/users/1/badges/explain").await.ok());
        assert_eq!((&explained["revision"], &explained["total"]), (&summary["revision"], &summary["total"]));
        assert_eq!((&explained["enrolment_head"], &explained["broadcast_head"]), (&json!(1), &json!(7)));
        assert_eq!(explained["counters"], json!({"like": {"head": 7, "mark": 3, "retracted": "5", "unread": 3}}));
        assert_eq!(explained["broadcasts"], json!({"system": {"head": 5, "mark": 2, "seq_at_enrolment": 1, "gone": 1, "unread": 2}}));
        let dot = &explained["dots"]["mall"];
        assert_eq!((&dot["head"], &dot["mark"], &dot["after_enrolment"], &dot["lit"]), (&json!(1), &json!(0), &json!(true), &json!(true)));
        assert_eq!(
            explained["feed"]["creators"],
            json!([
                {"user_id": "7", "head": 3, "mark": 1, "gone": 0, "unread": 2},
                {"user_id": "8", "head": 4, "mark": 1, "gone": 1, "unread": 2}
            ])
        );
        assert_eq!(
            explained["chats"],
            json!({
                "unread": 4,
                "groups": [
                    {"group_id": "5", "head": 4, "read_seq": 1, "gone": 1, "unread": 2, "mentions": 0, "level": "all"},
                    {"group_id": "6", "head": 4, "read_seq": 0, "gone": 0, "unread": 4, "mentions": 0, "level": "none"}
                ],
                "directs": [{"peer_id": "3", "head": 2, "mark": 0, "recalled": 0, "unread": 2, "level": "all"}]
            })
        );
        assert_eq!(summary["chats"], json!({"unread": 4, "mentions": 0, "groups": 1, "directs": 1}));
        for (kind, name) in [("counters", "like"), ("broadcasts", "system")] {
            assert_eq!(explained[kind][name]["unread"], summary[kind][name]["unread"], "{kind}");
        }
        assert_eq!(explained["feed"]["unread"], summary["feed"]["unread"]);
        let other = client.get("/v1/users/99/badges/explain").await.ok();
        assert_eq!((&other["total"], &other["counters"], &other["feed"]["creators"]), (&json!(0), &json!({}), &json!([])));
        node.stop().await;
    }
}
