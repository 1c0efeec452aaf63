//! Answers to idempotency keys that name an erased user, and that no value can hold.

use serde_json::json;

use super::{erase, node};
use crate::both_tiers;
use crate::support::{Hand, eventually_within};

both_tiers! {
    async fn an_answer_that_no_value_can_hold_is_refused_from_then_on(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        let mut hand = Hand::on(&world).await;
        let body = json!({"type": "like", "recipients": ["1"], "actor_id": "42", "data": {"x": "REPLACED"}});
        for (key, data) in [("a", r#""said""#), ("b", "1e999"), ("c", r#""\ud800""#)] {
            assert_eq!(client.post_once("/v1/notifications", key, &body).await.status, 201);
            // As earlier versions took it.
            let replaced = format!("replace(body, '\"REPLACED\"', '{data}')");
            hand.run(&format!("update idempotency_keys set body = {replaced} where key = '{key}'")).await;
            assert!(hand.text(&format!("select body from idempotency_keys where key = '{key}'")).await.contains(data));
        }
        let other = json!({"type": "like", "recipients": ["1"], "actor_id": "43"});
        client.post_once("/v1/notifications", "d", &other).await.ok();
        erase(client, 42).await;
        let named = "select cast(count(*) as text) from idempotency_keys where status <> 410 or body like '%\"42\"%'";
        eventually_within(30, "the answer that names another user is left", async || hand.text(named).await == "1").await;
        client.post_once("/v1/notifications", "b", &body).await.problem(410, "erased");
        assert_eq!(client.post_once("/v1/notifications", "d", &other).await.header("idempotent-replayed"), "true");
        node.stop().await;
    }
}
