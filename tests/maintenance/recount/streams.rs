//! Streams that users share, and the rows of what is in them.

use serde_json::{Value, json};

use super::{HEALTHY, UNSCRUBBED, damage, differences, recount};
use crate::both_tiers;
use crate::support::{Client, Hand, Node, Tier, World, eventually};

const SUMMARY: &str = "/v1/users/1/badges?views=room:1";

/// User 1 has something unread in a stream of each kind, of which something was taken back.
async fn scene(client: &Client) {
    client.summary(1).await;
    client.follow(1, 2).await;
    client.post("/v1/users/1/views/room/1/access", &json!({})).await.ok();
    crate::features::groups::make(client, 5, &[1, 2]).await;
    for n in 0..4 {
        client.put(&format!("/v1/users/2/posts/p{n}"), &json!({})).await.ok();
        client.put(&format!("/v1/views/room/1/items/i{n}"), &json!({})).await.ok();
        client.post(&format!("/v1/broadcasts/{}", ["news", "system"][n % 2]), &json!({"title": "t"})).await.ok();
        crate::features::groups::send(client, 5, 2, &format!("m{n}")).await.ok();
    }
    client.post("/v1/dots/mall/light", &json!({})).await.ok();
    for path in ["/v1/users/2/posts/p1", "/v1/views/room/1/items/i1", "/v1/broadcasts/news/1", "/v1/groups/5/messages/2"] {
        assert_eq!(client.delete(path).await.status, 204);
    }
}

/// What a poll shows of the shared streams.
async fn shown(client: &Client) -> Value {
    let mut summary = client.get(SUMMARY).await.ok();
    summary["views"]["room:1"].as_object_mut().unwrap().remove("last_access_at");
    json!({"feed": summary["feed"], "chats": summary["chats"], "views": summary["views"], "broadcasts": summary["broadcasts"], "dots": summary["dots"]})
}

/// The heads are too low, or too much or too little is taken back.
const TOO_LOW: &str = "update heads set head = 2, retracted = '', position = 0 where kind = 5 and owner_id = 2;
    update heads set head = 2, retracted = '1' where kind = 4;
    update heads set head = 1 where kind = 2 and name = 'system';
    update heads set head = 1 where kind = 7;
    update heads set retracted = '1-3' where kind = 6";

const FOUND_TOO_LOW: [&str; 7] = [
    "user 2 posts head: stored 2, counted 4",
    "user 2 posts retracted: stored 0, counted 1",
    "user 2 posts gone: stored 0, counted 1",
    "view room:1 head: stored 2, counted 4",
    "channel system head: stored 1, counted 2",
    "broadcast_state head: stored 1, counted 6",
    "group 5 retracted: stored 3, counted 1",
];

both_tiers! {
    async fn a_recount_compares_shared_streams_with_their_rows(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        scene(&node.client).await;
        let before = shown(&node.client).await;
        assert_eq!(before, json!({
            "feed": {"unread": 3},
            "chats": {"unread": 3, "mentions": 0, "groups": 1, "directs": 0},
            "views": {"room:1": {"unread": 3, "head": 4}},
            "broadcasts": {"news": {"unread": 1, "head": 2}, "system": {"unread": 2, "head": 2}},
            "dots": {"mall": {"lit": true, "head": 1}},
        }));
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, TOO_LOW).await;
        let found = recount(&world, &["--dry-run"]).await;
        assert_eq!((found.status, differences(&found)), (Some(3), FOUND_TOO_LOW.into()), "{found:?}");
        let found = recount(&world, &["--dry-run", "--user", "2"]).await;
        assert_eq!(differences(&found), FOUND_TOO_LOW[..3].iter().copied().collect(), "{found:?}");
        // A node that keeps what rows say sees by this that it must read them again.
        let other_changes = async || Hand::on(&world).await.text("select cast(version - head as text) from heads where kind = 5 and owner_id = 2").await;
        let known = other_changes().await.parse::<i64>().unwrap();
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), FOUND_TOO_LOW.into()), "{repaired:?}");
        assert!(other_changes().await.parse::<i64>().unwrap() > known);
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(shown(&node.client).await, before);
        // What comes next does not lie on what is there.
        assert_eq!(node.client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok()["seq"], 3);
        assert_eq!(node.client.put("/v1/users/2/posts/p4", &json!({})).await.ok(), json!({"post_id": "p4", "posts": 4, "head": 5}));
        assert_eq!(crate::features::groups::send(&node.client, 5, 2, "m4").await.ok()["seq"], 5);
        node.client.put("/v1/views/room/1/items/i4", &json!({})).await.ok();
        node.client.delete("/v1/views/room/1/items/i4").await;
        let after = shown(&node.client).await;
        assert_eq!((&after["feed"]["unread"], &after["chats"]["unread"]), (&json!(4), &json!(4)));
        assert_eq!((&after["broadcasts"]["system"], &after["views"]["room:1"]), (&json!({"unread": 3, "head": 3}), &json!({"unread": 3, "head": 5})));
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
    }

    async fn a_head_that_is_too_high_stays_and_nothing_is_unread_there(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        scene(&node.client).await;
        let before = shown(&node.client).await;
        node.stop().await;
        damage(&world, "update heads set head = head + 5 where kind in (2, 6) and name <> 'news'").await;
        damage(&world, "update heads set retracted = '2-4' where kind = 4; update heads set retracted = '2-3' where kind = 5").await;
        // As a sweep does.
        damage(&world, "delete from view_items where item_id = 'i2'").await;
        let all = [
            "user 2 posts retracted: stored 2, counted 1",
            "view room:1 retracted: stored 3, counted 1",
            "channel system retracted: stored 0, counted 5",
            "group 5 retracted: stored 1, counted 6",
        ];
        let found = recount(&world, &["--dry-run"]).await;
        assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), all.into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        let after = shown(&node.client).await;
        for part in ["feed", "chats", "dots", "views"] {
            assert_eq!(after[part], before[part]);
        }
        assert_eq!(after["broadcasts"], json!({"news": {"unread": 1, "head": 2}, "system": {"unread": 2, "head": 7}}));
        node.client.post("/v1/users/1/broadcasts/system/read", &json!({})).await.ok();
        assert_eq!(node.client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok()["seq"], 8);
        assert_eq!(shown(&node.client).await["broadcasts"]["system"], json!({"unread": 1, "head": 8}));
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
    }

    async fn more_runs_than_a_stream_keeps_are_left_to_the_rows(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        node.client.summary(1).await;
        node.client.follow(1, 2).await;
        for n in 0..430 {
            node.client.put(&format!("/v1/users/2/posts/p{n}"), &json!({})).await.ok();
            if n % 2 == 0 {
                node.client.delete(&format!("/v1/users/2/posts/p{n}")).await;
            }
        }
        node.stop().await;
        damage(&world, "update heads set retracted = '', floor = 0 where kind = 5").await;
        let repaired = recount(&world, &[]).await;
        assert_eq!(differences(&repaired), ["user 2 posts retracted: stored 0, counted 215"].into(), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(node.client.summary(1).await["feed"]["unread"], 215);
        node.client.delete("/v1/users/2/posts/p429").await;
        assert_eq!(node.client.summary(1).await["feed"]["unread"], 214);
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_nodes_hear_of_repaired_streams() {
    let world = World::new(Tier::Server).await;
    let node = world.node_with(UNSCRUBBED).await;
    scene(&node.client).await;
    let before = shown(&node.client).await;
    node.stop().await;
    damage(&world, TOO_LOW).await;
    let nodes = vec![world.node_with(UNSCRUBBED).await, world.node_with(UNSCRUBBED).await];
    for node in &nodes {
        assert_ne!(shown(&node.client).await, before, "it was made from what is damaged");
    }
    let repaired = recount(&world, &[]).await;
    assert_eq!((repaired.status, differences(&repaired)), (Some(0), FOUND_TOO_LOW.into()), "{repaired:?}");
    for node in &nodes {
        eventually("the node has heard of it", async || shown(&node.client).await == before).await;
    }
    Node::stop_all(nodes).await;
}
