//! The batch of posts: many creators at once.

use serde_json::{Value, json};

use super::{count, delete, feed};
use crate::both_tiers;
use crate::support::eventually;

const BATCH: &str = "/v1/posts";

both_tiers! {
    async fn a_batch_registers_each_post_once_and_in_order(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.put("/v1/users/1/following/7", &json!({})).await;
        let items = json!([
            {"user_id": "7", "post_id": "p-1"},
            {"user_id": 8, "post_id": "p-1"},
            {"user_id": 7, "post_id": "p-2"},
            {"user_id": 7, "post_id": "p-1"},
        ]);
        let reply = client.post(BATCH, &json!({ "items": items })).await;
        assert_eq!(reply.status, 200);
        insta::assert_snapshot!(reply.text.replace("},{", "},\n{"), @r#"
        {"items":[{"user_id":"7","post_id":"p-1","posts":1,"head":1},
        {"user_id":"8","post_id":"p-1","posts":1,"head":1},
        {"user_id":"7","post_id":"p-2","posts":2,"head":2},
        {"user_id":"7","post_id":"p-1","posts":2,"head":2}]}
        "#);
        assert_eq!((count(client, 7).await, count(client, 8).await), ((2, 2), (1, 1)));
        assert_eq!(feed(client, 1).await, (2, 1));
        eventually("a post that is known is no event", async || {
            let events = client.get("/v1/events").await.ok();
            events["items"].as_array().unwrap().iter().filter(|event| event["type"] == "post").count() == 3
        })
        .await;
        node.stop().await;
    }

    async fn one_bad_item_refuses_the_whole_batch_and_is_named(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.post(BATCH, &json!({"items": [{"user_id": 7, "post_id": "gone"}]})).await.ok();
        delete(client, 7, "gone").await;
        let good = json!({"user_id": 7, "post_id": "p-1"});
        for (bad, pointer) in [
            (json!({"user_id": 0, "post_id": "p"}), "/items/1/user_id"),
            (json!({"user_id": 7, "post_id": "a b"}), "/items/1/post_id"),
            (json!({"user_id": 7}), "/items/1/post_id"),
            (json!({"user_id": 7, "post_id": "p", "at": 1}), "/items/1/at"),
        ] {
            let reply = client.post(BATCH, &json!({"items": [good, bad]})).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer], "{bad}");
        }
        let deleted = json!({"items": [good, {"user_id": 7, "post_id": "gone"}]});
        assert_eq!(client.post(BATCH, &deleted).await.pointers(410, "gone"), ["/items/1/post_id"]);
        for count in [0, 1001] {
            let items: Vec<Value> = (0..count).map(|_| good.clone()).collect();
            assert_eq!(client.post(BATCH, &json!({ "items": items })).await.pointers(422, "invalid_body"), ["/items"]);
        }
        assert_eq!(count(client, 7).await, (0, 1));
        node.stop().await;
    }

    async fn a_thousand_creators_post_at_once_and_a_repeat_is_replayed(world: World) {
        let node = world.node().await;
        let items: Vec<Value> = (1..=1000).map(|user| json!({"user_id": user, "post_id": "p"})).collect();
        let body = json!({ "items": items });
        let first = node.client.post_once(BATCH, "k-1", &body).await;
        let again = node.client.post_once(BATCH, "k-1", &body).await;
        assert_eq!((first.text.as_str(), again.header("idempotent-replayed")), (again.text.as_str(), "true"));
        assert_eq!(count(&node.client, 1000).await, (1, 1));
        node.stop().await;
    }
}
