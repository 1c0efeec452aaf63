//! The batch of increments: many badges of many users at once.

use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::Client;

const BATCH: &str = "/v1/badges/increment";

/// So many items, each another badge of this user, from `b0` on.
fn badges_of(user: i64, count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"user_id": user, "badge": format!("b{n}"), "by": 1})).collect()
}

async fn total(client: &Client, user: i64) -> i64 {
    client.summary(user).await["total"].as_i64().unwrap()
}

both_tiers! {
    async fn a_batch_answers_each_item_in_order(world: World) {
        let node = world.node().await;
        let items = json!([
            {"user_id": "7", "badge": "mention", "by": 3},
            {"user_id": 8, "badge": "like"},
            {"user_id": "7", "badge": "mention", "by": 2},
            {"user_id": "7", "badge": "like", "by": 1},
        ]);
        let reply = node.client.post(BATCH, &json!({ "items": items })).await;
        insta::assert_snapshot!(reply.text.replace("},{", "},\n{"), @r#"
        {"items":[{"user_id":"7","badge":"mention","unread":3,"head":3,"revision":1},
        {"user_id":"8","badge":"like","unread":1,"head":1,"revision":1},
        {"user_id":"7","badge":"mention","unread":5,"head":5,"revision":1},
        {"user_id":"7","badge":"like","unread":1,"head":1,"revision":1}]}
        "#);
        assert_eq!((total(&node.client, 7).await, total(&node.client, 8).await), (6, 1));
        assert_eq!(node.client.summary(7).await["revision"], 2, "one revision of each user for the whole batch, and the enrolment");
        node.stop().await;
    }

    async fn a_batch_has_1_to_1000_items(world: World) {
        let node = world.node().await;
        let items = |count: i64| (0..count).map(|n| json!({"user_id": 1 + n % 250, "badge": "like", "by": 1})).collect::<Vec<_>>();
        let answer = node.client.post(BATCH, &json!({"items": items(1000)})).await.ok();
        assert_eq!(answer["items"].as_array().unwrap().len(), 1000);
        assert_eq!(answer["items"][999], json!({"user_id": "250", "badge": "like", "unread": 4, "head": 4, "revision": 1}));
        for bad in [items(1001), items(0)] {
            assert_eq!(node.client.post(BATCH, &json!({ "items": bad })).await.pointers(422, "invalid_body"), ["/items"]);
        }
        assert_eq!(total(&node.client, 1).await, 4);
        node.stop().await;
    }

    async fn one_invalid_item_refuses_the_whole_batch_and_is_named(world: World) {
        let node = world.node().await;
        let good = json!({"user_id": 7, "badge": "like", "by": 1});
        for (bad, pointer) in [
            (json!({"user_id": 7, "badge": "like", "by": 0}), "/items/2/by"),
            (json!({"user_id": 7, "badge": "like", "by": 1_000_001}), "/items/2/by"),
            (json!({"user_id": 7, "badge": "like", "by": "1"}), "/items/2/by"),
            (json!({"user_id": 7, "badge": "like", "by": 1.5}), "/items/2/by"),
            (json!({"user_id": 0, "badge": "like"}), "/items/2/user_id"),
            (json!({"user_id": "me", "badge": "like"}), "/items/2/user_id"),
            (json!({"user_id": 7, "badge": "Like"}), "/items/2/badge"),
            (json!({"user_id": 7, "badge": "like", "bye": 1}), "/items/2/bye"),
            (json!({"user_id": 7}), "/items/2/badge"),
            (json!({"badge": "like"}), "/items/2/user_id"),
            (json!(7), "/items/2"),
        ] {
            let reply = node.client.post(BATCH, &json!({"items": [good, good, bad, good]})).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer], "{bad}");
        }
        assert_eq!(node.client.summary(7).await["revision"], 1, "the enrolment");
        node.stop().await;
    }

    async fn a_batch_that_passes_a_limit_changes_nothing_and_names_the_item(world: World) {
        let node = world.node().await;
        node.client.post(BATCH, &json!({"items": badges_of(7, 99)})).await.ok();
        let items = json!([
            {"user_id": 8, "badge": "like", "by": 1},
            {"user_id": 7, "badge": "b5", "by": 1},
            {"user_id": 7, "badge": "the-100th", "by": 1},
            {"user_id": 7, "badge": "the-101st", "by": 1},
            {"user_id": 9, "badge": "like", "by": 1},
        ]);
        let reply = node.client.post(BATCH, &json!({ "items": items })).await;
        assert_eq!(reply.pointers(409, "too_many"), ["/items/3/badge"]);
        let summary = node.client.summary(7).await;
        assert_eq!((&summary["total"], &summary["revision"]), (&json!(99), &json!(2)));
        assert_eq!((total(&node.client, 8).await, total(&node.client, 9).await), (0, 0));
        node.stop().await;
    }

    async fn a_user_has_100_badges_at_most(world: World) {
        let node = world.node().await;
        node.client.post(BATCH, &json!({"items": badges_of(7, 100)})).await.ok();
        node.client.post("/v1/users/7/badges/one-more/increment", &json!({})).await.problem(409, "too_many");
        node.client.post("/v1/users/7/badges/b99/increment", &json!({})).await.ok();
        node.client.post("/v1/users/7/badges/reset", &json!({})).await.ok();
        node.client.post("/v1/users/7/badges/one-more/increment", &json!({})).await.problem(409, "too_many");
        node.client.post("/v1/users/7/badges/one-more/reset", &json!({})).await.ok();
        assert_eq!(node.client.summary(7).await["counters"].as_object().unwrap().len(), 100);
        node.client.post("/v1/users/8/badges/one-more/increment", &json!({})).await.ok();
        node.stop().await;
    }
}
