//! The number of recipients of a notification falls with each of them who is erased, whatever the user had silenced.

use serde_json::{Value, json};

use super::{erase, node};
use crate::both_tiers;
use crate::support::eventually_within;

both_tiers! {
    async fn recipients_who_silenced_the_actor_are_fewer_too(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.put("/v1/users/2/mutes/9", &json!({})).await.ok();
        client.put("/v1/users/3/blocks/9", &json!({})).await.ok();
        let numbers = async || [client.summary(2).await, client.summary(3).await];
        numbers().await;
        let before = numbers().await;
        let mut paths = Vec::new();
        for key in [Value::Null, json!("post:1"), json!("post:1")] {
            let mut body = json!({"type": "like", "actor_id": "9", "recipients": [1, 2, 3, 4]});
            if !key.is_null() {
                body["group_key"] = key;
            }
            let sent = client.post("/v1/notifications", &body).await.ok();
            paths.push(format!("/v1/notifications/{}", sent["notification_id"].as_str().unwrap()));
        }
        assert_eq!(numbers().await, before, "nothing shows it, and the revision is the same");
        for user in [2, 3] {
            for path in &paths {
                let entry = path.replace("/v1/", &format!("/v1/users/{user}/"));
                client.post(&format!("{entry}/read"), &json!({})).await.problem(404, "not_found");
                client.delete(&entry).await.problem(404, "not_found");
            }
            assert_eq!(client.get(&format!("/v1/users/{user}/notifications")).await.ok()["items"], json!([]));
        }
        client.post("/v1/users/1/notifications/read", &json!({"all": true})).await.ok();
        for (user, recipients, readers) in [(2, 3, 1), (3, 2, 1), (1, 1, 0)] {
            erase(client, user).await;
            for path in &paths {
                eventually_within(30, "there is one recipient less", async || {
                    let shown = client.get(path).await.ok();
                    (&shown["recipient_count"], &shown["read_count"]) == (&json!(recipients), &json!(readers))
                })
                .await;
            }
        }
        node.stop().await;
    }
}
