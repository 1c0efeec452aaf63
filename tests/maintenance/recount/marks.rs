//! Marks beyond the heads of their streams, and snapshots that cannot be read.

use serde_json::{Value, json};

use super::{HEALTHY, UNSCRUBBED, damage, differences, end_entries, recount};
use crate::both_tiers;
use crate::support::Client;

/// User 1 has read a part of a stream of each kind.
async fn scene(client: &Client) {
    client.summary(1).await;
    client.follow(1, 2).await;
    client.post("/v1/users/1/views/room/1/access", &json!({})).await.ok();
    crate::features::groups::make(client, 5, &[1, 2]).await;
    for n in 0..4 {
        client.post("/v1/users/1/badges/like/increment", &json!({})).await.ok();
        client.put(&format!("/v1/users/2/posts/p{n}"), &json!({})).await.ok();
        client.put(&format!("/v1/views/room/1/items/i{n}"), &json!({})).await.ok();
        client.post("/v1/broadcasts/news", &json!({"title": "t"})).await.ok();
        crate::features::groups::send(client, 5, 2, &format!("m{n}")).await.ok();
        client.post("/v1/dots/mall/light", &json!({})).await.ok();
        if n == 1 {
            client.post("/v1/users/1/badges/like/reset", &json!({})).await.ok();
            client.post("/v1/users/1/views/room/1/access", &json!({})).await.ok();
            client.post("/v1/users/1/broadcasts/news/read", &json!({})).await.ok();
            client.post("/v1/users/1/dots/mall/clear", &json!({})).await.ok();
            client.post("/v1/users/1/feed/reset", &json!({})).await.ok();
            crate::features::groups::read(client, 1, 5, None).await.ok();
        }
    }
}

async fn shown(client: &Client) -> Value {
    let summary = client.get("/v1/users/1/badges?views=room:1").await.ok();
    let unread = |kind: &str, name: &str| summary[kind][name]["unread"].clone();
    json!([
        unread("counters", "like"),
        unread("broadcasts", "news"),
        unread("views", "room:1"),
        summary["dots"]["mall"]["lit"],
        summary["chats"]["unread"],
        summary["feed"]["unread"]
    ])
}

both_tiers! {
    async fn a_recount_lowers_marks_that_are_beyond_their_heads(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        scene(&node.client).await;
        assert_eq!(shown(&node.client).await, json!([2, 2, 2, true, 2, 2]));
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "update marks set mark = 9; update users set marks = 'b:news 9;c:like 4 -5;d:mall 9' where user_id = 1; update memberships set read_seq = 9 where user_id = 1; update following set mark = 9").await;
        let all = [
            "user 1 mark of badge like: stored 9, counted 4",
            "user 1 mark of channel news: stored 9, counted 4",
            "user 1 mark of dot mall: stored 9, counted 4",
            "user 1 mark of view room:1: stored 9, counted 4",
            "user 1 read_seq of group 5: stored 9, counted 4",
            "user 1 mark of creator 2: stored 9, counted 4",
        ];
        for more in [&["--dry-run"][..], &["--dry-run", "--user", "1"]] {
            let found = recount(&world, more).await;
            assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        }
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), all.into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        end_entries(&world).await;
        // What comes next is unread.
        let node = world.node_with(UNSCRUBBED).await;
        let client = &node.client;
        assert_eq!(shown(client).await, json!([0, 0, 0, false, 0, 0]));
        client.post("/v1/users/1/badges/like/increment", &json!({})).await.ok();
        client.put("/v1/users/2/posts/p4", &json!({})).await.ok();
        client.put("/v1/views/room/1/items/i4", &json!({})).await.ok();
        client.post("/v1/broadcasts/news", &json!({"title": "t"})).await.ok();
        crate::features::groups::send(client, 5, 2, "m4").await.ok();
        client.post("/v1/dots/mall/light", &json!({})).await.ok();
        assert_eq!(shown(client).await, json!([1, 1, 1, true, 1, 1]));
        node.stop().await;
    }

    async fn a_head_that_is_too_low_takes_no_mark_down(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        scene(&node.client).await;
        crate::features::groups::read(&node.client, 1, 5, None).await.ok();
        node.client.post("/v1/users/1/broadcasts/news/read", &json!({})).await.ok();
        node.stop().await;
        damage(&world, "update heads set head = 2 where kind in (2, 4, 5, 6)").await;
        let one = recount(&world, &["--user", "1"]).await;
        assert!(!one.out.contains("mark of") && !one.out.contains("read_seq"), "{one:?}");
        let repaired = recount(&world, &[]).await;
        assert!(repaired.status == Some(0) && !repaired.out.contains("mark of") && !repaired.out.contains("read_seq"), "{repaired:?}");
        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(shown(&node.client).await, json!([2, 0, 2, true, 0, 2]));
        node.stop().await;
    }

    async fn a_broken_snapshot_leaves_the_summary_and_a_recount_removes_it(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        scene(&node.client).await;
        node.stop().await;
        damage(&world, if world.tier == crate::support::Tier::Server { "update feed_snapshots set data = '\\x0101'" } else { "update feed_snapshots set data = x'0101'" }).await;
        damage(&world, "update users set feed = revision + 1, revision = revision + 1 where user_id = 1").await;
        let counted = json!([2, 2, 2, true, 2, 4]);
        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(shown(&node.client).await, counted, "the feed counts from the follow on");
        node.stop().await;
        let found = recount(&world, &["--dry-run"]).await;
        let broken = "user 1 unreadable feed snapshot: stored 1, counted 0";
        assert_eq!((found.status, differences(&found)), (Some(3), [broken].into()), "{found:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [broken].into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(shown(&node.client).await, counted);
        node.client.post("/v1/users/1/feed/reset", &json!({})).await.ok();
        assert_eq!(shown(&node.client).await[5], 0);
        node.stop().await;
    }
}
