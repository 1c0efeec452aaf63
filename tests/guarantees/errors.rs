//! What the database says when it refuses, and what callers see of it.

use serde_json::json;

use crate::both_tiers;

both_tiers! {
    async fn a_pause_that_ends_the_transaction_costs_no_write(world: World) {
        // Postgres ends the connection (25P03) in the middle of the work before the commit.
        let pause = ("FAILPOINTS", "lane::after_begin_write=1*sleep(1800)");
        let node = world.process(&["--statement-timeout-ms", "1000"], &[pause]).await;
        // Of so many bytes that they are sent ahead of the commit.
        let first = 4_000_000_000_000_000_000_i64;
        let recipients: Vec<String> = (0..1000).map(|user| (first + user).to_string()).collect();
        let body = json!({"type": "notice", "title": "Hello", "content": "World", "recipients": recipients});
        let sent = node.client.post("/v1/notifications", &body).await;
        assert_eq!(sent.status, 201, "{}", sent.text);
        assert_eq!(node.client.metric("headmark_lane_unknown_commits_total").await, 0.0, "nobody had to ask for the outcome");
        for user in [first, first + 999] {
            let shown = node.client.get(&format!("/v1/users/{user}/badges")).await.ok();
            assert_eq!(shown["notifications"]["notice"]["unread"], 1, "once: {shown}");
        }
    }
}
