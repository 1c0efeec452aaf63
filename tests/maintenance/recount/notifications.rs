//! Notifications, and the rows of their receivers.

use serde_json::json;

use super::{HEALTHY, UNSCRUBBED, damage, differences, end_entries, recount};
use crate::both_tiers;
use crate::support::Client;

async fn send(client: &Client, kind: &str, recipients: &[i64]) -> String {
    let body = json!({"type": kind, "title": "t", "content": "c", "recipients": recipients});
    client.post("/v1/notifications", &body).await.ok()["notification_id"].as_str().unwrap().to_owned()
}

both_tiers! {
    async fn a_recount_compares_notifications_with_their_receivers(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        let first = send(&node.client, "notice", &[8, 9]).await;
        for kind in ["mail", "notice", "notice"] {
            send(&node.client, kind, &[9]).await;
        }
        let read = node.client.post(&format!("/v1/users/9/notifications/{first}/read"), &json!({})).await.ok();
        let last = node.client.get("/v1/users/9/notifications?limit=1").await.ok()["items"][0]["notification_id"].as_str().unwrap().to_owned();
        node.client.delete(&format!("/v1/users/9/notifications/{last}")).await;
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "update notification_types set unread = 7 where user_id = 9 and type = 'notice'; delete from notification_types where type = 'mail'").await;
        damage(&world, "update users set notification_seq = 1 where user_id = 9; update notification_types set unread = -2 where user_id = 8").await;
        let all = [
            "user 8 unread notifications notice: stored -2, counted 1",
            "user 9 unread notifications mail: stored 0, counted 1",
            "user 9 unread notifications notice: stored 7, counted 1",
            "user 9 notification_seq: stored 1, counted 4",
        ];
        let found = recount(&world, &["--dry-run"]).await;
        assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        let found = recount(&world, &["--dry-run", "--user", "9"]).await;
        assert_eq!(differences(&found), all[1..].iter().copied().collect(), "{found:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), all.into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        end_entries(&world).await;
        let node = world.node_with(UNSCRUBBED).await;
        let summary = node.client.summary(9).await;
        assert_eq!((&summary["notifications"], &summary["total"]), (&json!({"mail": {"unread": 1, "unseen": 1}, "notice": {"unread": 1, "unseen": 1}}), &json!(2)));
        assert!(summary["revision"].as_i64().unwrap() > read["revision"].as_i64().unwrap() + 1, "a poll with an older tag is told: {summary}");
        assert_eq!(node.client.summary(8).await["notifications"], json!({"notice": {"unread": 1, "unseen": 1}}));
        send(&node.client, "mail", &[9]).await;
        assert_eq!(node.client.get("/v1/users/9/notifications?limit=1").await.ok()["items"][0]["seq"], 5);
        assert_eq!(node.client.summary(9).await["notifications"]["mail"]["unread"], 2);
        node.stop().await;
    }

    async fn a_recount_compares_entries_with_what_is_in_them(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        let client = &node.client;
        let mut ids = Vec::new();
        for actor in [10, 11] {
            let body = json!({"type": "like", "recipients": [9], "group_key": "post:1", "actor_id": actor});
            ids.push(client.post("/v1/notifications", &body).await.ok()["notification_id"].as_str().unwrap().to_owned());
        }
        send(client, "like", &[9]).await;
        client.post("/v1/users/9/notifications/seen", &json!({"up_to_seq": 2})).await.ok();
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "update notification_types set seen = 2 where user_id = 9; update notification_receivers set notifications = 5 where seq = 2").await;
        let entry = format!("user 9 notifications in entry {}: stored 5, counted 2", ids[0]);
        let all = ["user 9 seen notifications like: stored 2, counted 1", entry.as_str()];
        let found = recount(&world, &["--dry-run"]).await;
        assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        assert_eq!(differences(&recount(&world, &[]).await), all.into());
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        assert_eq!(node.client.summary(9).await["notifications"], json!({"like": {"unread": 2, "unseen": 1}}));
        for id in &ids {
            node.client.delete(&format!("/v1/notifications/{id}")).await;
        }
        assert_eq!(node.client.summary(9).await["notifications"], json!({"like": {"unread": 1, "unseen": 1}}), "the entry goes with its last one");
        node.stop().await;
    }
}
