//! The settings themselves, and what the total leaves out.

use serde_json::json;

use super::patch;
use crate::both_tiers;
use crate::features::groups::{make, send};
use crate::support::{CREDENTIALS, Node, eventually};

both_tiers! {
    async fn a_patch_changes_what_it_names(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        client.summary(1).await;
        insta::assert_snapshot!(client.get("/v1/users/1/settings").await.text, @r#"{"not_in_total":[],"share_receipts":true,"approve_follows":false,"lists":"all","revision":1}"#);
        let changed = patch(client, 1, &json!({"not_in_total": ["counters.like", "broadcasts.system"]})).await;
        insta::assert_snapshot!(changed.text, @r#"{"not_in_total":["broadcasts.system","counters.like"],"share_receipts":true,"approve_follows":false,"lists":"all","revision":2}"#);
        assert_eq!(other.get("/v1/users/1/settings").await.text, changed.text, "at once on every node");
        insta::assert_snapshot!(patch(other, 1, &json!({"share_receipts": false})).await.text, @r#"{"not_in_total":["broadcasts.system","counters.like"],"share_receipts":false,"approve_follows":false,"lists":"all","revision":3}"#);
        assert_eq!(patch(client, 1, &json!({})).await.ok()["revision"], 3, "nothing is named");
        assert_eq!(patch(client, 1, &json!({"share_receipts": false})).await.ok()["revision"], 3, "a repeat changes nothing");
        insta::assert_snapshot!(patch(client, 1, &json!({"not_in_total": []})).await.text, @r#"{"not_in_total":[],"share_receipts":false,"approve_follows":false,"lists":"all","revision":4}"#);
        insta::assert_snapshot!(patch(client, 1, &json!({"share_receipts": true})).await.text, @r#"{"not_in_total":[],"share_receipts":true,"approve_follows":false,"lists":"all","revision":5}"#);
        insta::assert_snapshot!(patch(client, 1, &json!({"approve_follows": true, "lists": "followers"})).await.text, @r#"{"not_in_total":[],"share_receipts":true,"approve_follows":true,"lists":"followers","revision":6}"#);
        insta::assert_snapshot!(other.get("/v1/users/1/settings").await.text, @r#"{"not_in_total":[],"share_receipts":true,"approve_follows":true,"lists":"followers","revision":6}"#);
        insta::assert_snapshot!(patch(other, 1, &json!({"lists": "self", "approve_follows": false})).await.text, @r#"{"not_in_total":[],"share_receipts":true,"approve_follows":false,"lists":"self","revision":7}"#);
        Node::stop_all(nodes).await;
        let node = world.node().await;
        patch(&node.client, 2, &json!({"not_in_total": ["notifications.x"]})).await.ok();
        node.stop().await;
        let node = world.node().await;
        assert_eq!(node.client.get("/v1/users/2/settings").await.ok()["not_in_total"], json!(["notifications.x"]), "they are there after a restart");
        node.stop().await;
    }

    async fn what_is_wrong_is_refused(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let user = node.user(1);
        for (body, pointer) in [
            (json!({"not_in_total": ["counters.like", "chats"]}), "/not_in_total/1"),
            (json!({"not_in_total": ["dots.mall"]}), "/not_in_total/0"),
            (json!({"not_in_total": ["counters.Like"]}), "/not_in_total/0"),
            (json!({"not_in_total": ["counters.a", "counters.b", "counters.a"]}), "/not_in_total/2"),
            (json!({"not_in_total": (0..101).map(|n| format!("counters.c{n}")).collect::<Vec<_>>()}), "/not_in_total"),
            (json!({"not_in_total": null}), "/not_in_total"),
            (json!({"share_receipts": "no"}), "/share_receipts"),
            (json!({"lists": "none"}), "/lists"),
            (json!({"lists": null}), "/lists"),
            (json!({"approve_follows": 1}), "/approve_follows"),
            (json!({"aprove_follows": true}), "/aprove_follows"),
        ] {
            assert_eq!(patch(&user, 1, &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        let most = json!({"not_in_total": (0..100).map(|n| format!("counters.c{n}")).collect::<Vec<_>>()});
        assert_eq!(patch(&user, 1, &most).await.status, 200);
        patch(&user, 2, &json!({})).await.problem(403, "forbidden");
        user.get("/v1/users/2/settings").await.problem(403, "forbidden");
        assert_eq!(patch(&node.service(), 2, &json!({"share_receipts": true})).await.status, 200);
        node.client.get("/v1/users/1/settings").await.problem(401, "unauthorized");
        node.stop().await;
    }

    async fn the_total_leaves_out_what_the_user_says(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        client.summary(1).await;
        for (badge, by) in [("like", 5), ("mention", 3)] {
            client.post(&format!("/v1/users/1/badges/{badge}/increment"), &json!({"by": by})).await.ok();
        }
        client.post("/v1/broadcasts/system", &json!({"title": "x"})).await.ok();
        client.post("/v1/notifications", &json!({"type": "promo", "title": "x", "content": "y", "recipients": [1]})).await.ok();
        make(client, 9, &[1, 2]).await;
        send(client, 9, 2, "a").await.ok();
        let whole = client.get("/v1/users/1/badges").await;
        let tag = whole.header("etag").to_owned();
        assert_eq!(whole.clone().ok()["total"], 11);
        let parts = json!(["counters.like", "broadcasts.system", "notifications.promo", "counters.unheard-of"]);
        patch(client, 1, &json!({"not_in_total": parts})).await.ok();
        let less = client.get_if_changed("/v1/users/1/badges", &tag).await.ok();
        assert_eq!(less["total"], 4);
        for part in ["counters", "broadcasts", "notifications", "chats"] {
            assert_eq!(less[part], whole.body[part], "the parts keep their own numbers");
        }
        eventually("other nodes show it", async || other.summary(1).await == less).await;
        let capped = client.get("/v1/users/1/badges?cap=4").await.ok();
        assert_eq!((&capped["total"], &capped["capped"], &capped["counters"]["like"]["capped"]), (&json!(4), &json!(false), &json!(true)));
        let query = client.post("/v1/badges/query", &json!({"user_ids": [1]})).await.ok();
        assert_eq!(query["items"][0]["total"], 4);
        let terms = client.get("/v1/users/1/badges/explain").await.ok();
        assert_eq!((&terms["total"], &terms["counters"]["like"]["unread"]), (&json!(4), &json!(5)));
        assert_eq!(terms["not_in_total"], json!(["broadcasts.system", "counters.like", "counters.unheard-of", "notifications.promo"]));
        client.post("/v1/users/1/badges/like/increment", &json!({})).await.ok();
        assert_eq!(client.summary(1).await["total"], 4);
        patch(client, 1, &json!({"not_in_total": []})).await.ok();
        assert_eq!(client.summary(1).await["total"], 12);
        let state = nodes[0].app.state();
        assert_eq!(headmark::maintenance::scrub::scrub(&state.contexts.scrub, &[1.try_into().unwrap()]).await.unwrap(), 0);
        Node::stop_all(nodes).await;
    }
}
