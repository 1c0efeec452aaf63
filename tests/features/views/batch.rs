//! The batch of items: many views at once.

use serde_json::{Value, json};

use super::{access, delete, numbers};
use crate::both_tiers;

const BATCH: &str = "/v1/views/items";

both_tiers! {
    async fn a_batch_adds_each_item_once_and_not_for_its_actor(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for (user, view) in [(1, "home/1"), (2, "home/1"), (1, "forum/9")] {
            access(client, user, view, None).await;
        }
        let items = json!([
            {"view": "home", "view_id": "1", "item_id": "a"},
            {"view": "forum", "view_id": "9", "item_id": "a", "actor_id": "2"},
            {"view": "home", "view_id": "1", "item_id": "b", "actor_id": 2},
            {"view": "home", "view_id": "1", "item_id": "a"},
        ]);
        let reply = client.post(BATCH, &json!({ "items": items })).await;
        assert_eq!(reply.status, 200);
        insta::assert_snapshot!(reply.text.replace("},{", "},\n{"), @r#"
        {"items":[{"item_id":"a","view":"home","view_id":"1","head":1},
        {"item_id":"a","view":"forum","view_id":"9","head":1},
        {"item_id":"b","view":"home","view_id":"1","head":2},
        {"item_id":"a","view":"home","view_id":"1","head":2}]}
        "#);
        assert_eq!((numbers(client, 1, "home/1").await, numbers(client, 1, "forum/9").await), ((2, 2), (1, 1)));
        assert_eq!(numbers(client, 2, "home/1").await, (1, 2));
        node.stop().await;
    }

    async fn one_bad_item_refuses_the_whole_batch_and_is_named(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.post(BATCH, &json!({"items": [{"view": "home", "view_id": "1", "item_id": "gone"}]})).await.ok();
        assert_eq!(delete(client, "home/1", "gone").await, 204);
        access(client, 1, "home/1", None).await;
        let good = json!({"view": "home", "view_id": "1", "item_id": "a"});
        for (bad, pointer) in [
            (json!({"view": "Home", "view_id": "1", "item_id": "a"}), "/items/1/view"),
            (json!({"view": "home", "view_id": "a b", "item_id": "a"}), "/items/1/view_id"),
            (json!({"view": "home", "view_id": "1"}), "/items/1/item_id"),
            (json!({"view": "home", "view_id": "1", "item_id": "a", "actor_id": 0}), "/items/1/actor_id"),
            (json!({"view": "home", "view_id": "1", "item_id": "a", "actor_id": null}), "/items/1/actor_id"),
            (json!({"view": "home", "view_id": "1", "item_id": "a", "user_id": 1}), "/items/1/user_id"),
        ] {
            let reply = client.post(BATCH, &json!({"items": [good, bad]})).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer], "{bad}");
        }
        let deleted = json!({"items": [good, {"view": "home", "view_id": "1", "item_id": "gone"}]});
        assert_eq!(client.post(BATCH, &deleted).await.pointers(410, "gone"), ["/items/1/item_id"]);
        for count in [0, 1001] {
            let items: Vec<Value> = (0..count).map(|_| good.clone()).collect();
            assert_eq!(client.post(BATCH, &json!({ "items": items })).await.pointers(422, "invalid_body"), ["/items"]);
        }
        assert_eq!(numbers(client, 1, "home/1").await, (0, 1));
        node.stop().await;
    }

    async fn a_repeat_with_the_same_key_is_replayed(world: World) {
        let node = world.node().await;
        let items: Vec<Value> = (1..=1000).map(|n| json!({"view": "home", "view_id": n.to_string(), "item_id": "a"})).collect();
        let body = json!({ "items": items });
        let first = node.client.post_once(BATCH, "k-1", &body).await;
        let again = node.client.post_once(BATCH, "k-1", &body).await;
        assert_eq!((first.text.as_str(), again.header("idempotent-replayed")), (again.text.as_str(), "true"));
        node.stop().await;
    }
}
