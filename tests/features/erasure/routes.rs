//! What an erased user is to every route.

use serde_json::json;

use super::{erase, erased, node};
use crate::both_tiers;

both_tiers! {
    async fn from_the_answer_on_the_user_is_gone_for_every_route(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.follow(1, 2).await;
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
        client.get("/v1/users/2/badges").await.ok();
        let location = erase(client, 2).await;
        client.get("/v1/users/2/badges").await.problem(410, "erased");
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.problem(410, "erased");
        let items = json!({"items": [{"user_id": 1, "badge": "like"}, {"user_id": 2, "badge": "like"}]});
        assert_eq!(client.post("/v1/badges/increment", &items).await.pointers(410, "erased"), ["/items/1/user_id"]);
        let again = erase(client, 2).await;
        assert_eq!(again, location);
        erased(client, &location).await;
        client.get("/v1/users/2/badges").await.problem(410, "erased");
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.problem(410, "erased");
        assert_eq!(client.get("/v1/users/1/relation-counts").await.ok()["following"], 0);
        assert_eq!(erase(client, 2).await, location, "long after, too");
        node.stop().await;
    }

    async fn an_id_that_was_never_seen_can_be_erased(world: World) {
        let node = node(&world).await;
        let location = erase(&node.client, 77).await;
        node.client.get("/v1/users/77/badges").await.problem(410, "erased");
        erased(&node.client, &location).await;
        node.client.put("/v1/users/1/following/77", &json!({})).await.problem(410, "erased");
        node.stop().await;
    }
}
