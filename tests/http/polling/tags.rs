//! A tag belongs to one user, one resource with its query, and one epoch of the installation.

use headmark::engine::epoch;
use serde_json::json;

use super::{SUMMARY, etag, raise};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Node, eventually};

/// The revision in a tag.
pub fn revision(tag: &str) -> i64 {
    tag.split('.').nth(1).unwrap_or_else(|| panic!("{tag}")).parse().unwrap()
}

/// The same tag with another revision.
pub fn at_revision(tag: &str, revision: i64) -> String {
    let mut parts: Vec<_> = tag.split('.').map(str::to_owned).collect();
    parts[1] = revision.to_string();
    parts.join(".")
}

both_tiers! {
    async fn after_an_account_switch_no_answer_of_the_other_account_is_confirmed(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (one, other) = (node.user(42), node.user(43));
        // Both know nothing, so that all but the user is the same.
        for path in ["badges", "feed", "groups", "directs", "following/ids", "blocks/ids", "views/home/1", "inbox?after=0"] {
            let path = format!("/v1/users/me/{path}");
            let seen = one.get(&path).await;
            assert_eq!(seen.status, 200, "{}", seen.text);
            let tag = seen.header("etag");
            assert_eq!(one.get_if_changed(&path, tag).await.status, 304, "{path}");
            assert_eq!(other.get_if_changed(&path, tag).await.status, 200, "{path}: 304 would be somebody else's body");
        }
        node.stop().await;
    }

    async fn a_tag_names_the_resource_and_its_query(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (user, service) = (node.user(42), node.service());
        let tag = user.get(SUMMARY).await.header("etag").to_owned();
        for same in [SUMMARY, "/v1/users/me/badges", "/v1/users/42/badges?wait=0"] {
            assert_eq!(user.get_if_changed(same, &tag).await.status, 304, "{same}");
        }
        assert_eq!(service.get_if_changed(SUMMARY, &tag).await.status, 304, "every token that may see it");
        for other in ["/v1/users/42/badges?cap=9", "/v1/users/42/badges?include=counters", "/v1/users/42/feed", "/v1/users/42/groups"] {
            assert_eq!(user.get_if_changed(other, &tag).await.status, 200, "{other}");
        }
        node.stop().await;
    }

    async fn every_answer_says_that_it_depends_on_the_caller(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (user, stranger) = (node.user(42), node.client.with_bearer("wrong"));
        let tag = user.get(SUMMARY).await.header("etag").to_owned();
        let answers = [
            (200, user.get(SUMMARY).await),
            (304, user.get_if_changed(SUMMARY, &tag).await),
            (200, user.get("/v1/users/7/followers").await),
            (200, user.post("/v1/users/42/badges/a/reset", &json!({})).await),
            (400, user.get(&format!("{SUMMARY}?cap=0")).await),
            (401, stranger.get(SUMMARY).await),
            (403, user.get("/v1/users/7/badges").await),
            (404, user.get("/v1/nothing").await),
        ];
        for (status, answer) in answers {
            // What a 304 confirms may have been compressed.
            let varies = if status == 304 { "accept-encoding, Authorization" } else { "Authorization" };
            assert_eq!((answer.status.as_u16(), answer.header("vary")), (status, varies), "{}", answer.text);
        }
        assert_eq!(node.client.get("/livez").await.header("vary"), "", "the same for everybody");
        node.stop().await;
    }

    async fn after_a_restore_no_answer_from_before_is_confirmed(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        raise(client, 42).await;
        let before = client.get(SUMMARY).await;
        let (tag, inbox) = (before.header("etag"), client.get("/v1/users/42/inbox").await.ok());
        assert_eq!(before.body["epoch"], inbox["epoch"], "the installation has one epoch");
        let renewed = epoch::renew(&nodes[0].app.state().db, headmark::engine::guard::SEEN).await.unwrap();
        for node in &nodes {
            eventually("the node hears of it", async || node.client.get_if_changed(SUMMARY, tag).await.status == 200).await;
            let after = node.client.get(SUMMARY).await;
            assert_eq!((&after.body["epoch"], &after.body["revision"]), (&json!(renewed), &before.body["revision"]));
            assert_eq!(revision(after.header("etag")), revision(tag), "only the epoch tells them apart");
            assert_eq!(node.client.get_if_changed(SUMMARY, after.header("etag")).await.status, 304);
        }
        assert_eq!(etag(&nodes[0].client).await, etag(&nodes.last().unwrap().client).await);
        Node::stop_all(nodes).await;
    }

    async fn the_shared_revision_tells_which_of_two_answers_is_older(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut last = client.summary(42).await;
        crate::features::groups::make(client, 9, &[42, 43]).await;
        for n in 1..=3 {
            for write in 0..3 {
                match write {
                    0 => drop(client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok()),
                    1 => drop(client.post("/v1/dots/mall/light", &json!({})).await.ok()),
                    _ => drop(crate::features::groups::send(client, 9, 43, &format!("m{n}")).await.ok()),
                }
                let next = client.summary(42).await;
                let order = |summary: &serde_json::Value| (summary["revision"].as_i64().unwrap(), summary["shared_revision"].as_i64().unwrap());
                assert!(order(&next) > order(&last), "{last} and then {next}");
                last = next;
            }
        }
        node.stop().await;
    }
}
