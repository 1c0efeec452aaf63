//! Rows in the inboxes of members of groups that deliver by writing.

use serde_json::json;

use super::{HEALTHY, UNSCRUBBED, damage, differences, recount};
use crate::both_tiers;
use crate::features::groups::fan_out::{got, make_writing};
use crate::features::groups::send;
use crate::support::{Client, eventually};

both_tiers! {
    async fn a_recount_compares_inboxes_with_memberships(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        let client = &node.client;
        make_writing(client, 9, &[1, 2, 3, 4, 5]).await;
        for id in ["a", "b", "c", "d"] {
            send(client, 9, 1, id).await.ok();
        }
        client.delete("/v1/groups/9/members/5").await;
        send(client, 9, 1, "e").await.ok();
        client.delete("/v1/groups/9/messages/1").await;
        // Beside it, a group without inboxes.
        client.put("/v1/groups/8", &json!({"delivery": "read"})).await.ok();
        client.put("/v1/groups/8/members/2", &json!({})).await.ok();
        send(client, 8, 2, "f").await.ok();
        for user in [1, 2, 3, 4] {
            eventually("they arrive", async || got(client, user).await == [1, 2, 3, 4, 5, -1]).await;
        }
        eventually("who has left hears of the recall too", async || got(client, 5).await == [1, 2, 3, 4, -1]).await;
        // Not by a poll, which would leave the number in the cache.
        let revision = async |client: &Client| client.post("/v1/users/3/directs/1/read", &json!({})).await.ok()["revision"].as_i64().unwrap();
        let before = revision(client).await;
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));

        // As rows are lost: never written, so the numbers have no gap.
        damage(&world, "delete from inbox where user_id = 2 and seq >= 5; update users set inbox_seq = 4 where user_id = 2").await;
        damage(&world, "delete from inbox where user_id = 3; update users set inbox_seq = 0 where user_id = 3").await;
        // As rows expire: the oldest first, here those of a message of long ago.
        damage(&world, "delete from inbox where user_id in (4, 5) and seq <= 2; update inbox set put_at = put_at + 1 where user_id in (4, 5)").await;
        let all = [
            "user 2 inbox row of group 9 message 5: stored 0, counted 1",
            "user 2 inbox recall of group 9 message 1: stored 0, counted 1",
            "user 3 inbox row of group 9 message 2: stored 0, counted 1",
            "user 3 inbox row of group 9 message 3: stored 0, counted 1",
            "user 3 inbox row of group 9 message 4: stored 0, counted 1",
            "user 3 inbox row of group 9 message 5: stored 0, counted 1",
        ];
        let found = recount(&world, &["--dry-run"]).await;
        assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        let found = recount(&world, &["--dry-run", "--user", "2"]).await;
        assert_eq!(differences(&found), all[..2].iter().copied().collect(), "{found:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), all.into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));

        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(got(&node.client, 2).await, [1, 2, 3, 4, -1, 5]);
        assert_eq!(got(&node.client, 3).await, [2, 3, 4, 5], "of what was recalled there is nothing to tell");
        assert_eq!(revision(&node.client).await, before + 1);
        send(&node.client, 9, 1, "g").await.ok();
        eventually("what comes then comes after it", async || got(&node.client, 3).await == [2, 3, 4, 5, 6]).await;
        node.stop().await;
    }
}
