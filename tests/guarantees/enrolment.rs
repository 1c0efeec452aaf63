//! No poll shows a state from before an enrolment: it is a change like any other, also where the
//! cache never heard of it.

use headmark::cache::Lookup;
use serde_json::json;

use super::truth::poll;
use crate::both_tiers;
use crate::support::{JWT_SECRET, Node, eventually};

const QUERY: &str = "/v1/badges/query";

/// The user's entry in the cache: whether it is clean, and whether a reader may fill it.
async fn entry(node: &Node) -> (bool, bool) {
    match node.app.state().cache.get(1.try_into().unwrap()).await.unwrap() {
        Lookup::Hit(_) => (true, false),
        Lookup::Miss { fill, .. } => (false, fill.is_some()),
    }
}

async fn increment(node: &Node) {
    node.client.post("/v1/users/1/badges/like/increment", &json!({})).await.ok();
}

/// The user has an entry, filled by a service, which enrols nobody.
async fn filled(node: &Node) {
    increment(node).await;
    eventually("the entry is clean", async || {
        node.client.post(QUERY, &json!({"user_ids": ["1"]})).await.ok();
        entry(node).await.0
    })
    .await;
}

/// What comes after the enrolment counts, and nothing else is shown a moment later.
async fn counts_from_here_on(node: &Node) {
    increment(node).await;
    node.client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok();
    for _ in 0..3 {
        let summary = node.client.summary(1).await;
        assert_eq!(summary["broadcasts"]["system"]["unread"], 1, "{summary}");
        assert_eq!(summary["counters"]["like"]["unread"], 2, "{summary}");
    }
    let user = 1.try_into().unwrap();
    assert_eq!(headmark::maintenance::scrub::scrub(&node.app.state().contexts.scrub, &[user]).await.unwrap(), 0, "no drift");
}

both_tiers! {
    async fn an_enrolment_that_was_never_published_is_not_left_out(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        filled(&node).await;
        // The lane dies between the commit and the publish of the enrolment.
        fail::cfg("lane::after_commit", "1*panic").unwrap();
        node.client.summary(1).await;
        assert_eq!(entry(&node).await, (false, false), "the dead writer's lease holds");
        eventually("the lease has ended", async || entry(&node).await == (false, true)).await;
        counts_from_here_on(&node).await;
        node.stop().await;
    }

    async fn an_enrolment_that_could_not_be_applied_is_not_left_out(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        filled(&node).await;
        let (users, writer) = ([1.try_into().unwrap()], headmark::cache::Writer(7));
        node.app.state().cache.begin_write(&users, writer).await.unwrap();
        node.client.summary(1).await;
        node.app.state().cache.abandon_write(&users, writer).await.unwrap();
        counts_from_here_on(&node).await;
        node.stop().await;
    }

    async fn an_enrolment_is_one_revision(world: World) {
        let node = world.node().await;
        filled(&node).await;
        assert_eq!(poll(&node.client, 1).await.revision, 2, "the increment and the enrolment");
        assert_eq!(poll(&node.client, 1).await.revision, 2, "one enrolment");
        node.stop().await;
    }
}

both_tiers! {
    async fn who_reads_and_writes_in_groups_alone_is_seen(world: World) {
        let node = world.node_with(&["--jwt-secret", JWT_SECRET, "--service-keys", "web:s3cret-of-the-suite"]).await;
        let service = node.service();
        service.put("/v1/groups/9", &json!({})).await.ok();
        service.post("/v1/groups/9/members", &json!({"user_ids": [1, 2, 3]})).await.ok();
        let says = json!({"sender_id": 1, "client_id": "a", "content": "hello"});
        node.user(1).post("/v1/groups/9/messages", &says).await.ok();
        node.user(2).get("/v1/groups/9").await.ok();
        service.post("/v1/broadcasts/news", &json!({"title": "t"})).await.ok();
        for (user, unread) in [(1, 1), (2, 1), (3, 0)] {
            let summary = node.user(user).get(&format!("/v1/users/{user}/badges?include=broadcasts")).await.ok();
            assert_eq!(summary["broadcasts"]["news"]["unread"].as_i64().unwrap_or_default(), unread, "user {user}: {summary}");
        }
        node.stop().await;
    }
}
