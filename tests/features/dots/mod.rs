//! Red dots over HTTP, as the contract has them.

use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::Client;

async fn lit(client: &Client, user: i64, dot: &str) -> bool {
    client.summary(user).await["dots"][dot]["lit"].as_bool().unwrap_or(false)
}

both_tiers! {
    async fn a_dot_is_lit_for_everybody_and_cleared_by_each(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for user in [1, 2] { client.summary(user).await; }
        let light = client.post("/v1/dots/mall/light", &json!({})).await.ok();
        assert_eq!((&light["dot"], &light["head"]), (&json!("mall"), &json!(1)));
        assert!(light["lit_at"].as_str().unwrap().ends_with('Z'));
        assert!(lit(client, 1, "mall").await && lit(client, 2, "mall").await);
        assert!(!lit(client, 3, "mall").await, "dark for anyone who comes later");
        client.post("/v1/dots/mall/light", &json!({})).await.ok();
        let clear = async |user: i64, body: Value| client.post(&format!("/v1/users/{user}/dots/mall/clear"), &body).await.ok();
        assert_eq!(clear(1, json!({"up_to": 1})).await["lit"], true, "lit again since it was shown");
        let cleared = clear(1, json!({"up_to": 2})).await;
        assert_eq!((&cleared["lit"], &cleared["head"]), (&json!(false), &json!(2)));
        assert_eq!(clear(1, json!({"up_to": 2})).await, cleared, "a repeat changes nothing");
        assert!(!lit(client, 1, "mall").await && lit(client, 2, "mall").await && lit(client, 3, "mall").await);
        let summary = client.summary(2).await;
        assert_eq!((&summary["dots"], &summary["total"]), (&json!({"mall": {"lit": true, "head": 2}}), &json!(0)), "no part of the total");
        assert_eq!(clear(2, json!({})).await["lit"], false);
        let none = client.post("/v1/users/2/dots/unknown/clear", &json!({})).await.ok();
        assert_eq!((&none["lit"], &none["head"]), (&json!(false), &json!(0)));
        node.stop().await;
    }
}
