//! The query of push senders: the summaries of many users at once.

use serde_json::{Value, json};

use crate::both_tiers;

const BATCH: &str = "/v1/badges/increment";
const QUERY: &str = "/v1/badges/query";

both_tiers! {
    async fn a_query_answers_in_the_order_asked_with_zeros_for_the_unknown(world: World) {
        let node = world.node().await;
        let items = json!([{"user_id": 3, "badge": "like", "by": 3}, {"user_id": 1, "badge": "mention", "by": 1}]);
        node.client.post(BATCH, &json!({ "items": items })).await.ok();
        let reply = node.client.post(QUERY, &json!({"user_ids": [3, "2", 1]})).await;
        insta::assert_snapshot!(reply.without_epoch().replace("},{", "},\n{"), @r#"
        {"items":[{"user_id":"3","epoch":"EPOCH","revision":1,"shared_revision":0,"total":3,"degraded":false,"counters":{"like":{"unread":3,"head":3}},"broadcasts":{},"dots":{},"chats":{"unread":0,"mentions":0,"groups":0,"directs":0},"notifications":{}},
        {"user_id":"2","epoch":"EPOCH","revision":0,"shared_revision":0,"total":0,"degraded":false,"counters":{},"broadcasts":{},"dots":{},"chats":{"unread":0,"mentions":0,"groups":0,"directs":0},"notifications":{}},
        {"user_id":"1","epoch":"EPOCH","revision":1,"shared_revision":0,"total":1,"degraded":false,"counters":{"mention":{"unread":1,"head":1}},"broadcasts":{},"dots":{},"chats":{"unread":0,"mentions":0,"groups":0,"directs":0},"notifications":{}}]}
        "#);
        let again = node.client.post(QUERY, &json!({"user_ids": [3, "2", 1]})).await;
        assert_eq!(again.text, reply.text, "from the cache it is the same");
        node.stop().await;
    }

    async fn a_query_takes_1_to_500_users_each_once(world: World) {
        let node = world.node().await;
        let users = |count: i64| (1..=count).rev().collect::<Vec<_>>();
        let answer = node.client.post(QUERY, &json!({"user_ids": users(500)})).await.ok();
        let ids: Vec<_> = answer["items"].as_array().unwrap().iter().map(|summary| summary["user_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ids, users(500).iter().map(ToString::to_string).collect::<Vec<_>>());
        for bad in [users(501), users(0)] {
            assert_eq!(node.client.post(QUERY, &json!({ "user_ids": bad })).await.pointers(422, "invalid_body"), ["/user_ids"]);
        }
        let repeated = node.client.post(QUERY, &json!({"user_ids": [5, 6, "5"]})).await;
        assert_eq!(repeated.pointers(422, "invalid_body"), ["/user_ids/2"]);
        node.stop().await;
    }

    async fn a_query_takes_include_and_cap_as_a_poll_does(world: World) {
        let node = world.node().await;
        let items = json!([{"user_id": 1, "badge": "like", "by": 70}, {"user_id": 1, "badge": "mention", "by": 70}]);
        node.client.post(BATCH, &json!({ "items": items })).await.ok();
        node.client.summary(1).await;
        let capped = node.client.post(QUERY, &json!({"user_ids": [1], "include": ["counters"], "cap": 99})).await.ok();
        assert_eq!(capped["items"][0], node.client.get("/v1/users/1/badges?include=counters&cap=99").await.ok());
        assert_eq!((&capped["items"][0]["total"], &capped["items"][0]["capped"]), (&Value::Null, &Value::Null), "a total of counters alone would mislead");
        let kinds = ["counters", "broadcasts", "chats", "notifications"];
        let capped = node.client.post(QUERY, &json!({"user_ids": [1], "include": kinds, "cap": 99})).await.ok();
        assert_eq!((&capped["items"][0]["total"], &capped["items"][0]["capped"]), (&json!(99), &json!(true)));
        for (body, pointer) in [
            (json!({"user_ids": [1], "include": ["counters", "nonsense"]}), "/include/1"),
            (json!({"user_ids": [1], "include": ["counters,counters"]}), "/include/0"),
            (json!({"user_ids": [1], "include": "counters"}), "/include"),
            (json!({"user_ids": [1], "cap": 0}), "/cap"),
            (json!({"user_ids": [1], "cap": "99"}), "/cap"),
            (json!({"user_ids": [1], "cap": null}), "/cap"),
            (json!({"user_ids": [1, 0]}), "/user_ids/1"),
            (json!({"user_ids": ["007"]}), "/user_ids/0"),
            (json!({}), "/user_ids"),
        ] {
            assert_eq!(node.client.post(QUERY, &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        node.stop().await;
    }

    async fn a_query_shows_each_write_at_once(world: World) {
        let node = world.node().await;
        for n in 1..=5 {
            let items = json!([{"user_id": 1, "badge": "like"}, {"user_id": 2, "badge": "like"}]);
            node.client.post(BATCH, &json!({ "items": items })).await.ok();
            let answer = node.client.post(QUERY, &json!({"user_ids": [1, 2, 3]})).await.ok();
            let totals: Vec<_> = answer["items"].as_array().unwrap().iter().map(|summary| summary["total"].as_i64().unwrap()).collect();
            assert_eq!(totals, [n, n, 0]);
        }
        node.stop().await;
    }
}
