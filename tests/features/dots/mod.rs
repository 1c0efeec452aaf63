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

    async fn a_retry_lights_a_dot_once(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let (path, user) = ("/v1/dots/mall/light", "/v1/users/1/dots/mall/clear");
        client.summary(1).await;
        let first = client.post_once(path, "k", &json!({})).await;
        client.post(user, &json!({})).await.ok();
        let again = client.post_once(path, "k", &json!({})).await;
        assert_eq!((again.status.as_u16(), &again.text, again.header("idempotent-replayed")), (200, &first.text, "true"));
        assert!(!lit(client, 1, "mall").await, "nobody is told twice");
        assert_eq!(client.post_once(path, "other", &json!({})).await.ok()["head"], 2);
        node.stop().await;
    }

    async fn a_deleted_dot_is_dark_and_continues_its_head(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for user in [1, 2] { client.summary(user).await; }
        let light = async |dot: &str| client.post(&format!("/v1/dots/{dot}/light"), &json!({})).await.ok();
        for _ in 0..2 { light("mall").await; }
        let shop = light("shop").await;
        client.post("/v1/users/2/dots/mall/clear", &json!({})).await.ok();
        for _ in 0..2 {
            let reply = client.delete("/v1/dots/mall").await;
            assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        }
        for user in [1, 2] {
            assert_eq!(client.summary(user).await["dots"], json!({"shop": {"lit": true, "head": 1}}));
            assert_eq!(client.get(&format!("/v1/users/{user}/badges/explain")).await.ok()["dots"].as_object().unwrap().len(), 1);
        }
        assert_eq!(client.get("/v1/dots").await.ok(), json!({"items": [shop], "next_cursor": null}));
        let cleared = client.post("/v1/users/1/dots/mall/clear", &json!({})).await.ok();
        assert_eq!((&cleared["lit"], &cleared["head"]), (&json!(false), &json!(2)));
        assert_eq!(light("mall").await["head"], 3);
        assert!(lit(client, 1, "mall").await && lit(client, 2, "mall").await, "it is lit for everybody");
        let listed = client.walk("/v1/dots", 1).await;
        assert_eq!(listed.iter().map(|item| (item["dot"].as_str().unwrap(), item["head"].as_i64().unwrap())).collect::<Vec<_>>(), [("mall", 3), ("shop", 1)]);
        node.stop().await;
    }
}
