//! One walk along the whole product, as a newcomer takes it.

use serde_json::json;

use crate::both_tiers;

both_tiers! {
    async fn a_badge_is_raised_polled_and_cleared(world: World) {
        let node = world.node().await;
        let raised = node.client.post("/v1/users/42/badges/mention/increment", &json!({"by": 3})).await.ok();
        assert_eq!(raised, json!({"badge": "mention", "unread": 3, "head": 3, "revision": 1}));
        let polled = node.client.get("/v1/users/42/badges").await;
        let etag = polled.header("etag").to_owned();
        assert_eq!(polled.ok()["total"], 3);
        assert_eq!(node.client.get_if_changed("/v1/users/42/badges", &etag).await.status, 304);
        let cleared = node.client.post("/v1/users/42/badges/mention/reset", &json!({"up_to": 2})).await.ok();
        assert_eq!((&cleared["unread"], &cleared["head"]), (&json!(1), &json!(3)));
        assert_eq!(node.client.get_if_changed("/v1/users/42/badges", &etag).await.ok()["total"], 1);
        node.stop().await;
    }
}
