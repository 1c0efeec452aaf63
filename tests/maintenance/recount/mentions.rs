//! What mentions all, and the messages that do.

use serde_json::json;

use super::{HEALTHY, UNSCRUBBED, damage, differences, recount};
use crate::both_tiers;

both_tiers! {
    async fn a_recount_compares_mentions_by_name_with_the_messages(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        crate::features::groups::make(&node.client, 5, &[1, 2, 3]).await;
        for n in 1..=5 {
            let body = json!({"sender_id": 1, "client_id": format!("m{n}"), "content": "hello", "mentions": [2, 3]});
            node.client.post("/v1/groups/5/messages", &body).await.ok();
        }
        crate::features::groups::read(&node.client, 2, 5, Some(1)).await.ok();
        assert_eq!(node.client.delete("/v1/groups/5/messages/4").await.status, 204);
        crate::features::groups::send(&node.client, 5, 1, "plain").await.ok();
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        // Of what was recalled, nothing is said.
        damage(&world, "update memberships set mentions = '3 6' where user_id = 2; update memberships set mentions = '' where user_id = 3").await;
        let found = recount(&world, &["--dry-run"]).await;
        let missing = [(2, 2), (2, 5), (3, 1), (3, 2), (3, 3), (3, 5)].map(|(user, seq)| format!("user {user} mention in group 5 {seq}: stored 0, counted 1"));
        let extra = "user 2 mention in group 5 6: stored 1, counted 0";
        let all = missing.iter().map(String::as_str).chain([extra]).collect();
        assert_eq!((found.status, differences(&found)), (Some(3), all), "{found:?}");
        recount(&world, &[]).await;
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        for (user, mentions) in [(2, 3), (3, 4)] {
            let shown = node.client.get(&format!("/v1/users/{user}/groups/5")).await.ok();
            assert_eq!(shown["mentions"], mentions, "{user}");
        }
        node.stop().await;
    }

    async fn a_recount_compares_what_mentions_all_with_the_messages(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        crate::features::groups::make(&node.client, 5, &[1, 2]).await;
        for n in 1..=6 {
            let body = json!({"sender_id": 1, "client_id": format!("m{n}"), "content": "hello", "mention_all": n % 3 != 0});
            node.client.post("/v1/groups/5/messages", &body).await.ok();
        }
        assert_eq!(node.client.delete("/v1/groups/5/messages/4").await.status, 204);
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "update heads set mention_all = '3 6' where owner_id = 5 and kind = 6").await;
        let found = recount(&world, &["--dry-run"]).await;
        let all = ["group 5 mention_all: stored 2, counted 4"];
        assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), all.into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        let shown = node.client.get("/v1/users/2/groups/5").await.ok();
        assert_eq!((&shown["unread"], &shown["mentions"]), (&json!(5), &json!(3)));
        node.stop().await;
    }
}
