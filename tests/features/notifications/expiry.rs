//! How long notifications are kept, and what goes with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use headmark::base::clock::{Clock, DAY_MS};
use headmark::db::Statement;
use headmark::features::notifications::expiry::sweep;
use serde_json::json;

use super::grouping::like;
use super::{mark, send, seqs};
use crate::both_tiers;
use crate::support::{Client, Node, Tier};

static ROWS: Statement = Statement::new(
    "select (select count(*) from notifications), (select count(*) from notification_receivers) + (select count(*) from grouped_notifications)",
    &[],
);

/// What a count must equal.
static WRONG: Statement = Statement::new(
    "select count(*)
    from notification_types t
    where t.unread <> (select count(*) from notification_receivers r where r.user_id = t.user_id and r.type = t.type and r.read_at = 0 and r.gone = 0)
        or exists (
            select 1
            from notification_receivers r
            where r.user_id = t.user_id and r.group_key <> ''
                and r.notifications <> (select count(*) from grouped_notifications g where g.user_id = r.user_id and g.entry_id = r.notification_id)
        )",
    &[],
);

const TTL: [&str; 2] = ["--notification-ttl-days", "2"];

/// Sweeps, and returns how many notifications and receivers are left. The node's own sweep may have
/// come first.
async fn left(node: &Node) -> (i64, i64) {
    sweep(&node.app.state().contexts.notifications).await.unwrap();
    let wrong: Vec<(i64,)> = node.app.state().db.fetch(&WRONG, &[]).await.unwrap();
    assert_eq!(wrong, [(0,)], "every number equals its rows");
    let rows: Vec<(i64, i64)> = node.app.state().db.fetch(&ROWS, &[]).await.unwrap();
    rows[0]
}

async fn revision(client: &Client, user: i64) -> i64 {
    client.summary(user).await["revision"].as_i64().unwrap()
}

both_tiers! {
    async fn old_notifications_go_and_count_no_longer(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &TTL).await;
        let client = &node.client;
        let (notice, mail) = (send(client, "notice", &[1, 2, 3, 4]).await, send(client, "mail", &[1]).await);
        mark(client, 2, &notice, "read").await.ok();
        client.delete(&format!("/v1/users/3/notifications/{notice}")).await;
        let withdrawn = send(client, "notice", &[1, 2]).await;
        client.delete(&format!("/v1/notifications/{withdrawn}")).await;
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        let young = send(client, "notice", &[1, 2]).await;
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        assert_eq!(left(&node).await, (4, 9), "nothing is old");
        assert_eq!(client.get(&format!("/v1/notifications/{notice}")).await.ok()["read_count"], 1);
        let before = [revision(client, 1).await, revision(client, 2).await, revision(client, 3).await];
        assert_eq!(client.summary(1).await["notifications"], json!({"mail": {"unread": 1, "unseen": 1}, "notice": {"unread": 2, "unseen": 2}}));

        at.fetch_add(1, Ordering::SeqCst);
        assert_eq!(left(&node).await, (1, 2));
        let summary = client.summary(1).await;
        assert_eq!((&summary["notifications"], &summary["total"]), (&json!({"mail": {"unread": 0, "unseen": 0}, "notice": {"unread": 1, "unseen": 1}}), &json!(1)));
        assert_eq!(revision(client, 1).await, before[0] + 2, "two that were unread went");
        assert_eq!(revision(client, 2).await, before[1] + 1, "its list is another, but for what it has");
        assert_eq!(revision(client, 3).await, before[2], "it had deleted it");
        assert_eq!((seqs(client, 1, "").await, seqs(client, 1, "&status=unread").await, seqs(client, 4, "").await), (vec![4], vec![4], vec![]));

        for id in [&notice, &mail, &withdrawn] {
            client.get(&format!("/v1/notifications/{id}")).await.problem(410, "gone");
            client.delete(&format!("/v1/notifications/{id}")).await.problem(410, "gone");
            mark(client, 1, id, "read").await.problem(410, "gone");
            mark(client, 1, id, "unread").await.problem(410, "gone");
            client.delete(&format!("/v1/users/1/notifications/{id}")).await.problem(410, "gone");
        }
        let named = client.post("/v1/users/1/notifications/read", &json!({"ids": [young, notice]})).await;
        assert_eq!(named.pointers(410, "gone"), ["/ids/1"]);
        let never = (young.parse::<i64>().unwrap() + (1_i64 << 40)).to_string();
        mark(client, 1, &never, "read").await.problem(404, "not_found");
        assert_eq!(client.post("/v1/users/1/notifications/read", &json!({"all": true})).await.ok()["changed"], 1);
        send(client, "notice", &[1]).await;
        assert_eq!(seqs(client, 1, "").await, [5, 4], "numbers go on");
        node.stop().await;
    }

    async fn an_entry_goes_with_its_last_notification(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &TTL).await;
        let client = &node.client;
        let first = like(client, "post:1", Some(10), &[1, 2, 3]).await;
        mark(client, 2, &first, "read").await.ok();
        let withdrawn = like(client, "post:2", Some(10), &[3]).await;
        client.delete(&format!("/v1/notifications/{withdrawn}")).await;
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        let second = like(client, "post:1", Some(11), &[1, 2]).await;
        let third = like(client, "post:1", Some(10), &[1]).await;
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        let before = [revision(client, 1).await, revision(client, 2).await, revision(client, 3).await];
        at.fetch_add(1, Ordering::SeqCst);
        // Two notifications. Of user 1 an entry with two, of user 2 the one that begins with the second.
        assert_eq!(left(&node).await, (2, 5));
        let item = client.get("/v1/users/1/notifications").await.ok()["items"][0].clone();
        assert_eq!((&item["id"], &item["count"], &item["actors"], &item["seq"]), (&json!(first), &json!(2), &json!(["10", "11"]), &json!(3)));
        assert_eq!([revision(client, 1).await, revision(client, 2).await, revision(client, 3).await], before.map(|before| before + 1));
        assert_eq!(client.summary(3).await["notifications"], json!({"like": {"unread": 0, "unseen": 0}}));
        assert_eq!((seqs(client, 2, "").await, client.summary(2).await["total"].as_i64()), (vec![2], Some(1)));
        mark(client, 3, &first, "read").await.problem(410, "gone");
        // The entry is still called by its first notification, and is joined.
        let last = like(client, "post:1", Some(12), &[1]).await;
        let read = mark(client, 1, &first, "read").await.ok();
        assert_eq!(read["unread"], 0);
        assert_eq!(client.get(&format!("/v1/notifications/{last}")).await.ok()["read_count"], 1);
        at.fetch_add(DAY_MS, Ordering::SeqCst);
        assert_eq!(left(&node).await, (1, 2));
        client.delete(&format!("/v1/notifications/{last}")).await;
        assert_eq!(left(&node).await, (1, 0), "nothing is left of an entry that nothing would remove");
        for id in [&second, &third] {
            client.get(&format!("/v1/notifications/{id}")).await.problem(410, "gone");
        }
        mark(client, 1, &first, "read").await.problem(410, "gone");
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        assert_eq!(left(&node).await, (0, 0));
        node.stop().await;
    }

    async fn receivers_who_silenced_the_actor_leave_nothing_behind(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &TTL).await;
        let client = &node.client;
        client.put("/v1/users/2/mutes/9", &json!({})).await.ok();
        let before = revision(client, 2).await;
        like(client, "post:1", Some(9), &[1, 2]).await;
        let withdrawn = like(client, "post:2", Some(9), &[1, 2]).await;
        client.delete(&format!("/v1/notifications/{withdrawn}")).await;
        // Of each notification an entry of user 1 and a row of user 2, and one that says what the first entry holds.
        assert_eq!(left(&node).await, (2, 5));
        at.fetch_add(2 * DAY_MS + 1, Ordering::SeqCst);
        assert_eq!(left(&node).await, (0, 0));
        assert_eq!(revision(client, 2).await, before);
        node.stop().await;
    }

    async fn a_sweep_takes_large_and_many_and_every_node_shows_it(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let mut nodes = vec![world.node_at(&at, &TTL).await];
        if world.tier == Tier::Server { nodes.push(world.node_at(&at, &TTL).await); }
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let everybody: Vec<i64> = (1..=3000).collect();
        send(client, "notice", &everybody).await;
        join_all((0..600).map(|_| send(client, "mail", &[7, 8]))).await;
        for user in [7, 3000] { assert_eq!(other.summary(user).await["notifications"]["notice"]["unread"], 1); }
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        // All nodes at once: each notification goes once.
        let sweeps = nodes.iter().map(|node| sweep(&node.app.state().contexts.notifications));
        for swept in join_all(sweeps).await { swept.unwrap(); }
        for node in &nodes {
            assert_eq!(left(node).await, (0, 0));
            for user in [7, 8, 3000] {
                let summary = node.client.summary(user).await;
                assert_eq!((&summary["notifications"]["notice"]["unread"], &summary["total"]), (&json!(0), &json!(0)), "{summary}");
            }
        }
        Node::stop_all(nodes).await;
    }

    async fn without_the_setting_they_are_kept_for_ever(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        send(&node.client, "notice", &[1]).await;
        at.fetch_add(4000 * DAY_MS, Ordering::SeqCst);
        assert_eq!(left(&node).await, (1, 1));
        mark(&node.client, 1, "5", "read").await.problem(404, "not_found");
        node.stop().await;
        for days in ["36501", "-1", "x"] {
            assert!(world.try_node(&["--notification-ttl-days", days], Clock::System).await.is_err());
        }
    }
}
