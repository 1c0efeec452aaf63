//! The batch of retractions: many badges of many users at once.

use serde_json::{Value, json};

use crate::both_tiers;

const BATCH: &str = "/v1/badges/retract";

both_tiers! {
    async fn a_batch_answers_each_item_in_order(world: World) {
        let node = world.node().await;
        let raise = json!({"items": [{"user_id": 7, "badge": "like", "by": 5}, {"user_id": 8, "badge": "mention", "by": 2}]});
        node.client.post("/v1/badges/increment", &raise).await.ok();
        let items = json!([
            {"user_id": "7", "badge": "like", "at": 2},
            {"user_id": 8, "badge": "mention"},
            {"user_id": 7, "badge": "like", "by": 2},
            {"user_id": 7, "badge": "like", "at": 2},
        ]);
        let reply = node.client.post(BATCH, &json!({ "items": items })).await;
        assert_eq!(reply.status, 200);
        insta::assert_snapshot!(reply.text.replace("},{", "},\n{"), @r#"
        {"items":[{"user_id":"7","badge":"like","unread":4,"head":5,"revision":2},
        {"user_id":"8","badge":"mention","unread":1,"head":2,"revision":2},
        {"user_id":"7","badge":"like","unread":2,"head":5,"revision":2},
        {"user_id":"7","badge":"like","unread":2,"head":5,"revision":2}]}
        "#);
        assert_eq!(node.client.summary(7).await["counters"]["like"]["unread"], 2, "a position is retracted once");
        assert_eq!(node.client.summary(8).await["counters"]["mention"]["unread"], 1);
        node.stop().await;
    }

    async fn all_items_of_a_user_show_the_revision_after_the_batch(world: World) {
        let node = world.node().await;
        node.client.post("/v1/users/7/badges/like/increment", &json!({"by": 5})).await.ok();
        node.client.post("/v1/users/7/badges/like/retract", &json!({"at": 2})).await.ok();
        let items = json!([{"user_id": 7, "badge": "like", "at": 2}, {"user_id": 7, "badge": "like", "at": 4}]);
        let reply = node.client.post(BATCH, &json!({ "items": items })).await.ok();
        let shown = [&reply["items"][0]["revision"], &reply["items"][1]["revision"]];
        assert_eq!(shown, [&json!(3); 2], "the first item changes nothing");
        node.stop().await;
    }

    async fn one_invalid_item_refuses_the_whole_batch_and_is_named(world: World) {
        let node = world.node().await;
        node.client.post("/v1/users/7/badges/like/increment", &json!({"by": 9})).await.ok();
        let good = json!({"user_id": 7, "badge": "like", "at": 3});
        for (bad, pointer) in [
            (json!({"user_id": 7, "badge": "like", "at": 0}), "/items/1/at"),
            (json!({"user_id": 7, "badge": "like", "by": 0}), "/items/1/by"),
            (json!({"user_id": 7, "badge": "like", "by": 1_000_001}), "/items/1/by"),
            (json!({"user_id": 7, "badge": "like", "at": 3, "by": 1}), "/items/1/by"),
            (json!({"user_id": 7, "badge": "like", "at": null}), "/items/1/at"),
            (json!({"user_id": 0, "badge": "like"}), "/items/1/user_id"),
            (json!({"user_id": 7, "badge": "Like"}), "/items/1/badge"),
            (json!({"user_id": 7, "badge": "like", "up_to": 1}), "/items/1/up_to"),
        ] {
            let reply = node.client.post(BATCH, &json!({"items": [good, bad]})).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer], "{bad}");
        }
        let unknown = json!({"items": [good, {"user_id": 7, "badge": "like", "at": 10}]});
        assert_eq!(node.client.post(BATCH, &unknown).await.pointers(404, "not_found"), ["/items/1/at"]);
        for count in [0, 1001] {
            let items: Vec<Value> = (0..count).map(|_| good.clone()).collect();
            assert_eq!(node.client.post(BATCH, &json!({ "items": items })).await.pointers(422, "invalid_body"), ["/items"]);
        }
        assert_eq!(node.client.summary(7).await["counters"]["like"]["unread"], 9);
        node.stop().await;
    }

    async fn a_repeat_with_the_same_key_retracts_once(world: World) {
        let node = world.node().await;
        node.client.post("/v1/users/7/badges/like/increment", &json!({"by": 9})).await.ok();
        let body = json!({"items": [{"user_id": 7, "badge": "like", "by": 2}]});
        let first = node.client.post_once(BATCH, "k-1", &body).await;
        let again = node.client.post_once(BATCH, "k-1", &body).await;
        assert_eq!((first.text.as_str(), again.header("idempotent-replayed")), (again.text.as_str(), "true"));
        assert_eq!(node.client.summary(7).await["counters"]["like"]["unread"], 7);
        node.stop().await;
    }
}
