//! The scrubber: what somebody's hand has changed is found, counted and repaired; what nodes do is
//! no drift.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use headmark::db::{Column, Statement, Type};
use headmark::maintenance::scrub::scrub;
use serde_json::json;

use crate::both_tiers;
use crate::support::Node;

static RAISE_HEAD: Statement =
    Statement::new("update users set marks = 'c:like 8 8' where user_id in (select user_id from {rows} r)", &[("user_id", Type::Int)]);
static RAISE_COUNT: Statement =
    Statement::new("update users set following = following + 1 where user_id in (select user_id from {rows} r)", &[("user_id", Type::Int)]);

static RAISE_DIRECTS: Statement = Statement::new(
    "update users set direct_unread = direct_unread + 4 where user_id in (select user_id from {rows} r)",
    &[("user_id", Type::Int)],
);

static RAISE_NOTIFICATIONS: Statement = Statement::new(
    "update notification_types set unread = unread + 4 where user_id in (select user_id from {rows} r)",
    &[("user_id", Type::Int)],
);

async fn by_hand(node: &Node, statement: &'static Statement) {
    let changed = node.app.state().db.connect().await.unwrap().run(statement, &[Column::Int(vec![1])]).await.unwrap();
    assert_eq!(changed, 1);
}

both_tiers! {
    async fn what_differs_is_found_and_repaired(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let users: Vec<_> = [1_i64, 2].map(|user| user.try_into().unwrap()).into();
        for user in [1, 2] {
            node.client.post(&format!("/v1/users/{user}/badges/like/increment"), &json!({"by": 3})).await.ok();
            // The second poll finds the entry that the first has filled.
            for _ in 0..2 {
                assert_eq!(node.client.summary(user).await["counters"]["like"]["unread"], 3);
            }
        }
        let state = node.app.state();
        assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 0, "nothing differs");
        by_hand(&node, &RAISE_HEAD).await;
        assert_eq!(node.client.summary(1).await["counters"]["like"]["unread"], 3, "the cache does not know");
        assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 1);
        assert_eq!(node.client.summary(1).await["counters"]["like"]["unread"], 8, "read again");
        assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 0);
        by_hand(&node, &RAISE_COUNT).await;
        assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 1);
        assert_eq!(scrub(&state.contexts.scrub, &users).await.unwrap(), 0, "repaired");
        let metrics = node.client.get("/metrics").await.text;
        assert!(metrics.contains("headmark_drift_total{what=\"entry\"} 1") && metrics.contains("headmark_drift_total{what=\"number\"} 1"), "{metrics}");
        node.stop().await;
    }

    async fn unread_direct_messages_are_repaired_in_rows_and_entries(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let send = async |id: &str| node.client.post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": id, "content": "x"})).await.ok();
        send("a").await;
        let users: Vec<_> = [1_i64, 2].map(|user| user.try_into().unwrap()).into();
        for _ in 0..2 {
            assert_eq!(node.client.summary(1).await["revision"], 2);
        }
        by_hand(&node, &RAISE_DIRECTS).await;
        assert!(scrub(&node.app.state().contexts.scrub, &users).await.unwrap() >= 1);
        assert_eq!(node.client.summary(1).await["revision"], 3, "the entry is read again, under another tag");
        assert_eq!(scrub(&node.app.state().contexts.scrub, &users).await.unwrap(), 0);
        send("b").await;
        node.client.post("/v1/users/1/directs/2/read", &json!({})).await.ok();
        assert_eq!(scrub(&node.app.state().contexts.scrub, &users).await.unwrap(), 0);
        node.stop().await;
    }

    async fn two_that_find_the_same_difference_repair_it_once(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        node.client.post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": "a", "content": "x"})).await.ok();
        by_hand(&node, &RAISE_DIRECTS).await;
        // Both have compared before either repairs.
        let (both, hits) = (Barrier::new(2), AtomicUsize::new(0));
        let wait = move || if hits.fetch_add(1, Ordering::SeqCst) < 2 { let _ = both.wait(); };
        fail::cfg_callback("recount::before_repair", wait).unwrap();
        let state = Arc::clone(&node.app.state().contexts.scrub);
        let scrubs = [Arc::clone(&state), state].map(|state| tokio::spawn(async move { scrub(&state, &[1_i64.try_into().unwrap()]).await.unwrap() }));
        let mut found = 0;
        for scrub in scrubs {
            found += scrub.await.unwrap();
        }
        fail::remove("recount::before_repair");
        assert_eq!(found, 1, "it is counted once, too");
        assert_eq!(scrub(&node.app.state().contexts.scrub, &[1_i64.try_into().unwrap()]).await.unwrap(), 0);
        assert_eq!(node.client.summary(1).await["chats"]["unread"], 1);
        node.stop().await;
    }

    async fn unread_notifications_are_repaired_in_rows_and_entries(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let notification = json!({"type": "notice", "title": "t", "content": "c", "recipients": [1, 2]});
        node.client.post("/v1/notifications", &notification).await.ok();
        let users: Vec<_> = [1_i64, 2].map(|user| user.try_into().unwrap()).into();
        by_hand(&node, &RAISE_NOTIFICATIONS).await;
        // The entries are made from what is wrong.
        for _ in 0..2 {
            assert_eq!(node.client.summary(1).await["notifications"]["notice"]["unread"], 5);
        }
        assert_eq!(scrub(&node.app.state().contexts.scrub, &users).await.unwrap(), 1);
        let summary = node.client.summary(1).await;
        assert_eq!((&summary["notifications"]["notice"]["unread"], &summary["revision"]), (&json!(1), &json!(3)), "read again, under another tag");
        assert_eq!(scrub(&node.app.state().contexts.scrub, &users).await.unwrap(), 0);
        node.stop().await;
    }

    async fn what_nodes_do_is_no_drift(world: World) {
        let node = world.node_with(&["--scrub-users", "1000"]).await;
        let client = &node.client;
        for round in 0..40 {
            let user = round % 5 + 1;
            client.summary(user).await;
            client.post(&format!("/v1/users/{user}/badges/like/increment"), &json!({})).await.ok();
            client.post("/v1/broadcasts/system", &json!({"title": "t"})).await.ok();
            client.post(&format!("/v1/users/{user}/broadcasts/system/read"), &json!({})).await.ok();
            client.follow(user, user + 1).await;
            client.post("/v1/notifications", &json!({"type": "notice", "title": "t", "content": "c", "recipients": [user, user + 1]})).await.ok();
            client.post(&format!("/v1/users/{user}/notifications/read"), &json!({"all": true})).await.ok();
            let users: Vec<_> = (1..=5_i64).map(|user| user.try_into().unwrap()).collect();
            assert_eq!(scrub(&node.app.state().contexts.scrub, &users).await.unwrap(), 0, "round {round}");
        }
        node.stop().await;
    }
}
