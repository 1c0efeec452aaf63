//! Many senders at once, and many receivers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::grouping::like;
use super::{mark, notification, say, send, seqs, shown};
use crate::both_tiers;
use crate::support::{Client, Node, eventually, eventually_within};

both_tiers! {
    async fn senders_at_once_leave_no_gap_and_a_reader_skips_none(world: World) {
        const SENDERS: usize = 8;
        const EACH: usize = 12;
        let nodes = world.nodes().await;
        let clients: Vec<Client> = nodes.iter().map(|node| node.client.clone()).collect();
        let senders = (0..SENDERS).map(|sender| {
            let client = clients[sender % clients.len()].clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    // In another order each, so that locks taken in the order of the request would
                    // wait for each other.
                    let mut to = vec![1, 2, 3 + i64::try_from(sender).unwrap()];
                    to.rotate_left((sender + n) % 3);
                    send(&client, if n % 2 == 0 { "notice" } else { "mail" }, &to).await;
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        let all = i64::try_from(SENDERS * EACH).unwrap();
        let reader = clients.last().unwrap().clone();
        let (mut seen, mut highest) = (BTreeSet::new(), 0);
        eventually("the reader has all", async || {
            let list = seqs(&reader, 1, "").await;
            assert!(list.windows(2).all(|two| two[0] == two[1] + 1), "{list:?}");
            // Anyone who has seen a seq has seen, or sees now, all below it.
            assert!(list.first().copied().unwrap_or(0) >= highest && list.last().is_none_or(|last| *last == 1), "{list:?}");
            highest = list.first().copied().unwrap_or(0);
            seen.extend(list);
            highest == all
        })
        .await;
        for sender in senders {
            sender.await.unwrap();
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (1..=all).collect::<Vec<_>>());
        for client in &clients {
            assert_eq!(seqs(client, 2, "").await, (1..=all).rev().collect::<Vec<_>>());
            let half = all / 2;
            assert_eq!(shown(client, 2).await, json!({"mail": {"unread": half, "unseen": half}, "notice": {"unread": half, "unseen": half}}));
            assert_eq!(seqs(client, 3, "").await.len(), EACH);
        }
        Node::stop_all(nodes).await;
    }

    async fn a_notification_for_ten_thousand(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let everybody: Vec<i64> = (1..=10_000).collect();
        // The second one finds all rows there.
        let mut ids = Vec::new();
        for round in ["first", "second"] {
            let began = Instant::now();
            ids.push(send(client, "notice", &everybody).await);
            say(&format!("{:?}: the {round} notification to 10,000 took {:?}", world.tier, began.elapsed()));
        }
        for user in [1, 4711, 10_000] {
            assert_eq!(other.summary(user).await["notifications"]["notice"]["unread"], 2);
            mark(other, user, &ids[0], "read").await.ok();
        }
        let notification = client.get(&format!("/v1/notifications/{}", ids[0])).await.ok();
        assert_eq!((&notification["recipient_count"], &notification["read_count"]), (&json!(10_000), &json!(3)));
        let began = Instant::now();
        assert_eq!(client.delete(&format!("/v1/notifications/{}", ids[0])).await.status, 204);
        say(&format!("{:?}: withdrawing it took {:?}", world.tier, began.elapsed()));
        for (user, unread) in [(1, 1), (2, 1), (9999, 1)] {
            assert_eq!(other.summary(user).await["notifications"]["notice"]["unread"], unread);
            assert_eq!(seqs(other, user, "").await, [2]);
        }
        Node::stop_all(nodes).await;
    }

    async fn grouped_notifications_for_ten_thousand(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let everybody: Vec<i64> = (1..=10_000).collect();
        let mut ids = Vec::new();
        // The first one makes the entries, the others join them.
        for actor in [7, 8, 9] {
            let began = Instant::now();
            ids.push(like(client, "post:1", Some(actor), &everybody).await);
            say(&format!("{:?}: the like of {actor} to 10,000 took {:?}", world.tier, began.elapsed()));
        }
        let first = async |client: &Client, user: i64| client.get(&format!("/v1/users/{user}/notifications")).await.ok()["items"][0].clone();
        for user in [1, 4711, 10_000] {
            let entry = first(other, user).await;
            assert_eq!((&entry["count"], &entry["actors"], &entry["seq"]), (&json!(3), &json!(["9", "8", "7"]), &json!(3)));
            assert_eq!(shown(other, user).await, json!({"like": {"unread": 1, "unseen": 1}}));
        }
        mark(other, 4711, &ids[0], "read").await.ok();
        assert_eq!(client.get(&format!("/v1/notifications/{}", ids[2])).await.ok()["read_count"], 1);
        for (at, left) in [(1, json!(["9", "7"])), (2, json!(["7"]))] {
            let began = Instant::now();
            assert_eq!(client.delete(&format!("/v1/notifications/{}", ids[at])).await.status, 204);
            say(&format!("{:?}: withdrawing one took {:?}", world.tier, began.elapsed()));
            for user in [1, 9999] {
                let entry = first(other, user).await;
                assert_eq!((&entry["actors"], &entry["id"], &entry["seq"]), (&left, &json!(ids[0]), &json!(3)));
            }
        }
        let began = Instant::now();
        let edited = other.put(&format!("/v1/notifications/{}", ids[0]), &json!({"title": "New"})).await.ok();
        say(&format!("{:?}: an edit took {:?}", world.tier, began.elapsed()));
        assert_eq!((&edited["recipient_count"], &edited["read_count"]), (&json!(10_000), &json!(1)));
        assert_eq!(first(client, 10_000).await["title"], "New");
        client.delete(&format!("/v1/notifications/{}", ids[0])).await;
        assert_eq!(shown(other, 1).await, json!({"like": {"unread": 0, "unseen": 0}}));
        Node::stop_all(nodes).await;
    }

    async fn ten_notifications_for_ten_thousand_at_once_take_turns(world: World) {
        // One lane for all, as with SQLite; and time for a machine that does other things too.
        let node = world.node_with(&["--lanes", "1", "--write-timeout-ms", "120000", "--scrub-users", "0"]).await;
        let client = &node.client;
        let (sent, everybody) = (Arc::new(AtomicUsize::new(0)), (1..=10_000).collect::<Vec<i64>>());
        let senders = (1..=10).map(|actor| {
            let (client, sent, everybody) = (client.clone(), Arc::clone(&sent), everybody.clone());
            tokio::spawn(async move {
                like(&client, "post:1", Some(actor), &everybody).await;
                sent.fetch_add(1, Ordering::SeqCst);
            })
        });
        let senders: Vec<_> = senders.collect();
        eventually_within(60, "the first is in the lane", async || client.metric("headmark_lane_waiting").await >= 10_000.0).await;
        client.post("/v1/users/4711/badges/like/increment", &json!({})).await.ok();
        assert!(sent.load(Ordering::SeqCst) < 9, "a small write waits for one of them, and not for all");
        for sender in senders {
            sender.await.expect("none is refused");
        }
        for user in [1, 4711, 10_000] {
            assert_eq!(shown(client, user).await, json!({"like": {"unread": 1, "unseen": 1}}), "all are in one entry");
            assert_eq!(client.get(&format!("/v1/users/{user}/notifications")).await.ok()["items"][0]["count"], 10);
        }
        node.stop().await;
    }

    async fn how_many_large_notifications_may_wait_is_bounded(world: World) {
        let settings = ["--lanes", "1", "--lane-large-queue", "2", "--scrub-users", "0"];
        let mut stuck = world.process(&settings, &[("FAILPOINTS", "lane::before_commit=pause")]).await;
        let everybody: Vec<i64> = (1..=3000).collect();
        let body = notification("notice", &everybody);
        let mut answers: FuturesUnordered<_> = (0..5).map(|_| stuck.client.post("/v1/notifications", &body)).collect();
        // One is in the lane and two wait.
        for _ in 0..2 {
            answers.next().await.unwrap().problem(503, "overloaded");
        }
        assert_eq!((answers.len(), stuck.client.metric("headmark_lane_refused_total").await), (3, 2.0));
        drop(answers);
        stuck.kill().await;
    }
}
