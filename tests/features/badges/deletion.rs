//! Badges that are deleted, and raised again.

use futures_util::future::join_all;
use headmark::engine::marks::MAX_DELETED_COUNTERS;
use headmark::features::badges::MAX_BADGES;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Node};

async fn raise(client: &Client, badge: &str, by: i64) -> Value {
    let mut body = client.post(&format!("/v1/users/7/badges/{badge}/increment"), &json!({ "by": by })).await.ok();
    body.as_object_mut().unwrap().remove("revision");
    body
}

async fn delete(client: &Client, badge: &str) -> i64 {
    let body = client.delete(&format!("/v1/users/7/badges/{badge}")).await.ok();
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    body["revision"].as_i64().unwrap()
}

async fn retract_at(client: &Client, badge: &str, at: i64) -> Value {
    let mut body = client.post(&format!("/v1/users/7/badges/{badge}/retract"), &json!({ "at": at })).await.ok();
    body.as_object_mut().unwrap().remove("revision");
    body
}

both_tiers! {
    async fn a_deleted_badge_is_gone_and_continues_its_head(world: World) {
        let node = world.node().await;
        let client = &node.client;
        raise(client, "like", 5).await;
        raise(client, "mention", 2).await;
        let before = client.summary(7).await;
        assert_eq!(before["total"], 7);
        let revision = delete(client, "like").await;
        let after = client.summary(7).await;
        assert_eq!((&after["total"], &after["counters"]), (&json!(2), &json!({"mention": {"unread": 2, "head": 2}})));
        assert!(before["revision"].as_i64().unwrap() < revision && after["revision"] == revision, "{before} {after}");
        assert_eq!(client.get("/v1/users/7/badges/explain").await.ok()["counters"].as_object().unwrap().len(), 1);
        assert_eq!(delete(client, "like").await, revision, "a repeat changes nothing");
        assert_eq!(delete(client, "never").await, revision, "one that never was, neither");

        let gone = json!({"badge": "like", "unread": 0, "head": 5});
        assert_eq!(retract_at(client, "like", 5).await, gone, "what was before the deletion is read");
        client.post("/v1/users/7/badges/like/retract", &json!({"at": 6})).await.problem(404, "not_found");
        client.post("/v1/users/7/badges/like/retract", &json!({"by": 3})).await.ok();
        client.post("/v1/users/7/badges/like/reset", &json!({"up_to": 3})).await.ok();
        client.post("/v1/users/7/badges/reset", &json!({"up_to": {"like": 9}})).await.ok();
        assert_eq!(client.summary(7).await["counters"].as_object().unwrap().len(), 1, "none of it brings it back");

        assert_eq!(raise(client, "like", 2).await, json!({"badge": "like", "unread": 2, "head": 7}));
        assert_eq!(retract_at(client, "like", 4).await, json!({"badge": "like", "unread": 2, "head": 7}));
        assert_eq!(retract_at(client, "like", 6).await, json!({"badge": "like", "unread": 1, "head": 7}));
        assert_eq!(client.summary(7).await["total"], 3);
        node.stop().await;
    }

    async fn a_badge_goes_whatever_its_name(world: World) {
        let node = world.node().await;
        for badge in ["reset", "explain", "increment", "query"] {
            raise(&node.client, badge, 1).await;
            delete(&node.client, badge).await;
            assert_eq!(node.client.summary(7).await["counters"], json!({}), "{badge}");
        }
        node.client.delete("/v1/users/7/badges/Like").await.problem(400, "invalid_path");
        node.client.delete("/v1/users/0/badges/like").await.problem(400, "invalid_path");
        node.client.delete("/v1/users/7/badges/like?up_to=1").await.problem(400, "invalid_query");
        node.stop().await;
    }

    async fn a_request_of_before_the_deletion_is_answered_as_it_was(world: World) {
        let node = world.node().await;
        let path = "/v1/users/7/badges/like/increment";
        let first = node.client.post_once(path, "k", &json!({"by": 3})).await;
        delete(&node.client, "like").await;
        let again = node.client.post_once(path, "k", &json!({"by": 3})).await;
        assert_eq!((again.text.as_str(), again.header("idempotent-replayed")), (first.text.as_str(), "true"));
        assert_eq!(node.client.summary(7).await["counters"], json!({}));
        node.stop().await;
    }

    async fn deleting_makes_room_and_what_is_kept_is_bounded(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        for round in 0..3 {
            let names: Vec<_> = (0..MAX_BADGES).map(|n| format!("b{round}-{n}")).collect();
            join_all(names.iter().enumerate().map(|(n, name)| raise(client, name, i64::try_from(n).unwrap() + 1))).await;
            client.post("/v1/users/7/badges/another/increment", &json!({})).await.problem(409, "too_many");
            join_all(names.iter().map(|name| delete(client, name))).await;
        }
        // Of 300 heads, each from 1 to 100 three times, the highest 100 are kept.
        assert_eq!(MAX_DELETED_COUNTERS, 100);
        assert_eq!(raise(client, "b1-99", 1).await["head"], 101);
        let forgotten = raise(&nodes[nodes.len() - 1].client, "b2-0", 1).await;
        assert_eq!((&forgotten["unread"], forgotten["head"].as_i64().unwrap() > 60), (&json!(1), true), "it begins above all that are forgotten: {forgotten}");
        Node::stop_all(nodes).await;
    }
}
