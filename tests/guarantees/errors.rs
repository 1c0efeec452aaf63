//! What the database says when it refuses, and what callers see of it.

use serde_json::json;

use crate::both_tiers;

both_tiers! {
    async fn a_pause_that_ends_the_transaction_costs_no_write(world: World) {
        // Postgres ends the connection (25P03) in the middle of the work before the commit.
        let pause = ("FAILPOINTS", "lane::after_begin_write=1*sleep(1800)");
        let node = world.process(&["--statement-timeout-ms", "1000"], &[pause]).await;
        // Of so many rows that they are copied, which does not wait for the commit.
        let recipients: Vec<i64> = (1..=600).collect();
        let body = json!({"type": "notice", "title": "Hello", "content": "World", "recipients": recipients});
        let sent = node.client.post("/v1/notifications", &body).await;
        assert_eq!(sent.status, 201, "{}", sent.text);
        for user in [1, 600] {
            let shown = node.client.get(&format!("/v1/users/{user}/badges")).await.ok();
            assert_eq!(shown["notifications"]["notice"]["unread"], 1, "once: {shown}");
        }
    }
}
