//! Which changes are told, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use headmark::base::clock::{DAY_MS, UnixMs};
use headmark::features::groups::expiry::{Walk, sweep_before};
use headmark::maintenance::recount::Recount;
use serde_json::json;

use super::{Reader, enrol, flag, make_group, revision, say, total};
use crate::both_tiers;
use crate::support::{Client, Hand, Node, eventually_within};

/// What has to do with the flag itself is told.
async fn settled(client: &Client) -> Reader {
    let mut reader = Reader::at_the_end(client).await;
    reader.settle().await;
    reader
}

/// Time passes, in steps as real time does, so that what is in hand is done.
async fn pass(at: &AtomicI64, ms: i64) {
    at.fetch_add(ms, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1500)).await;
}

both_tiers! {
    async fn every_raise_of_a_revision_is_told_of_users_with_a_push_device(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        make_group(client, 9, "write", &[1, 2, 3]).await;
        flag(client, 2).await;
        let mut reader = settled(client).await;
        let mut is_told = async |what: &str, least: usize| {
            let count = reader.told(what, &[2]).await;
            assert!(count >= least, "{what}: {count}");
            assert_eq!(revision(other, 2).await, revision(client, 2).await);
        };
        for user in [1, 2, 3] {
            client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({"by": 3})).await.ok();
        }
        is_told("an increment", 1).await;
        other.post("/v1/users/2/badges/mention/reset", &json!({})).await.ok();
        is_told("a reset", 1).await;
        client.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "c", "content": "x"})).await.ok();
        is_told("a direct message", 1).await;
        other.post("/v1/users/2/directs/1/read", &json!({})).await.ok();
        is_told("its reading", 1).await;
        say(client, 9, 1, "m").await;
        is_told("a message of a group that writes", 1).await;
        let sent = client.post("/v1/notifications", &json!({"type": "n", "recipients": [1, 2, 3]})).await.ok();
        is_told("a notification", 1).await;
        let id = sent["notification_id"].as_str().unwrap();
        client.delete(&format!("/v1/notifications/{id}")).await;
        is_told("its withdrawal", 1).await;
        client.request(reqwest::Method::PATCH, "/v1/users/2/settings").json(&json!({"not_in_total": ["counters.mention"]})).send().await.unwrap();
        is_told("a setting", 1).await;
        // Several of one user in one batch are one event.
        let items: Vec<_> = (0..50).map(|n| json!({"user_id": 2, "badge": format!("b{}", n % 5), "by": 1})).collect();
        client.post("/v1/badges/increment", &json!({"items": items})).await.ok();
        let last = reader.read().await;
        let all = if last.is_empty() { reader.settle().await } else { last };
        assert_eq!(all, [(2, revision(client, 2).await)]);
        Node::stop_all(nodes).await;
    }

    async fn changes_without_a_write_are_told_with_the_numbers_that_they_make(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        // One who is a member, one who is not, one who has silenced the group; and one without a
        // device in each.
        make_group(client, 9, "read", &[1, 2, 3, 4]).await;
        for user in [2, 3, 5] {
            flag(client, user).await;
        }
        for user in 1..=6 {
            enrol(client, user).await;
        }
        client.put("/v1/users/3/groups/9/settings", &json!({"level": "none"})).await.ok();
        let mut reader = settled(client).await;
        // One message at a time: an event about the second one could be taken for that of the recall.
        say(client, 9, 1, "m1").await;
        reader.told("a message", &[2]).await;
        say(other, 9, 4, "m2").await;
        reader.told("another", &[2]).await;
        assert_eq!((total(client, 2).await, total(other, 2).await), (2, 2));
        client.delete("/v1/groups/9/messages/1").await;
        reader.told("a recall", &[2]).await;
        assert_eq!((total(client, 2).await, total(other, 2).await), (1, 1));
        client.post("/v1/broadcasts/news", &json!({"title": "x"})).await.ok();
        reader.told("a broadcast", &[2, 3, 5]).await;
        assert_eq!((total(client, 5).await, total(other, 5).await, total(other, 2).await), (1, 1, 2));
        other.delete("/v1/broadcasts/news/1").await;
        reader.told("its withdrawal", &[2, 3, 5]).await;
        assert_eq!((total(client, 5).await, total(other, 5).await, total(other, 2).await), (0, 0, 1));
        let now = nodes[0].app.state().clock.now();
        client.post("/v1/broadcasts/news", &json!({"title": "x", "expires_at": UnixMs(now.0 + 6000).to_string()})).await.ok();
        reader.told("one that expires", &[2, 3, 5]).await;
        assert_eq!(total(other, 5).await, 1);
        reader.told("its expiry", &[2, 3, 5]).await;
        assert_eq!((total(client, 5).await, total(other, 5).await), (0, 0));
        // So late that a slow machine looks before it.
        let soon = || UnixMs(nodes[0].app.state().clock.now().0 + 3000).to_string();
        client.put("/v1/users/2/groups/9/settings", &json!({"level": "none", "until": soon()})).await.ok();
        reader.told("a level", &[2]).await;
        assert_eq!(total(other, 2).await, 0);
        reader.told("its end", &[2]).await;
        assert_eq!((total(client, 2).await, total(other, 2).await), (1, 1));
        client.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "c", "content": "x"})).await.ok();
        reader.told("a direct message", &[2]).await;
        client.put("/v1/users/2/directs/1/settings", &json!({"level": "none", "until": soon()})).await.ok();
        reader.told("its level", &[2]).await;
        reader.told("the end of that", &[2]).await;
        assert_eq!((total(client, 2).await, total(other, 2).await), (2, 2));
        assert_eq!(reader.settle().await, [], "and no more");
        client.post("/v1/dots/mall/light", &json!({})).await.ok();
        client.put("/v1/users/1/posts/p1", &json!({})).await.ok();
        assert_eq!(reader.settle().await, [], "no feed and no dots");
        Node::stop_all(nodes).await;
    }

    /// A node whose clock was a year ahead has died with the job in hand.
    async fn a_job_far_in_the_future_is_done(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_group(client, 9, "read", &[1, 2]).await;
        flag(client, 2).await;
        enrol(client, 2).await;
        let mut reader = settled(client).await;
        let due_at = node.app.state().clock.now().0 + 365 * DAY_MS;
        let job = format!("insert into unread_jobs (scope_id, due_at, next_at, after_id) values (9, {due_at}, {}, 0)", due_at + 1);
        Hand::on(&world).await.run(&job).await;
        let mut told = 0;
        eventually_within(40, "it is done, and once more", async || {
            told += reader.read().await.len();
            told >= 2
        })
        .await;
        node.stop().await;
    }

    /// The tables of another history have lower numbers of events, and less of them that was read along.
    async fn events_that_go_back_are_read_along(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_group(client, 9, "read", &[1, 2]).await;
        flag(client, 2).await;
        enrol(client, 2).await;
        for n in 0..5 {
            say(client, 9, 1, &format!("m{n}")).await;
        }
        settled(client).await;
        let mut hand = Hand::on(&world).await;
        hand.run("delete from events").await;
        hand.run("update unread_progress set event_id = 1; update event_head set head = 1, floor = 1, streamed = 1").await;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let told = async || client.metric("headmark_unread_job_users_total").await;
        let before = told().await;
        say(client, 9, 1, "after").await;
        eventually_within(15, "the message is told", async || told().await > before).await;
        node.stop().await;
    }

    async fn time_alone_is_told_by_the_clock(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let now = || UnixMs(at.load(Ordering::SeqCst));
        let node = world.node_at(&at, &["--group-message-days", "1"]).await;
        let client = &node.client;
        make_group(client, 9, "read", &[1, 2]).await;
        make_group(client, 8, "read", &[1, 2]).await;
        flag(client, 2).await;
        enrol(client, 2).await;
        let mut reader = Reader::at_the_end(client).await;
        say(client, 9, 1, "m").await;
        // Two levels: each end is told, the earlier one first, also where it was set last.
        for (group, later_ms) in [(9, 500_000), (8, 100_000)] {
            let until = UnixMs(now().0 + later_ms).to_string();
            client.put(&format!("/v1/users/2/groups/{group}/settings"), &json!({"level": "none", "until": until})).await.ok();
        }
        let pass = async |ms: i64| pass(&at, ms).await;
        for _ in 0..3 {
            pass(3000).await;
        }
        reader.settle().await;
        assert_eq!(total(client, 2).await, 0);
        say(client, 8, 1, "m").await;
        pass(3000).await;
        assert_eq!(reader.settle().await, [], "it is silent");
        pass(100_000).await;
        reader.told("the first end", &[2]).await;
        assert_eq!(total(client, 2).await, 1);
        assert_eq!(reader.settle().await, []);
        pass(400_000).await;
        reader.told("the second end", &[2]).await;
        assert_eq!(total(client, 2).await, 2);
        // Messages that are kept no longer.
        pass(2 * DAY_MS).await;
        reader.settle().await;
        let contexts = &node.app.state().contexts;
        assert!(sweep_before(&contexts.groups, &mut Walk::default(), UnixMs(now().0 - DAY_MS)).await.unwrap() > 0);
        pass(10_000).await;
        reader.told("their end", &[2]).await;
        assert_eq!(total(client, 2).await, 0);
        node.stop().await;
    }

    /// While a mute or a block lies over a level that ends, nothing ends by itself. Afterwards it does.
    async fn the_end_of_a_level_is_told_after_what_hid_it(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let mut until = at.load(Ordering::SeqCst);
        let pass = async |ms: i64| pass(&at, ms).await;
        for (user, by) in [(1, "mutes"), (2, "blocks")] {
            client.post(&format!("/v1/users/{user}/inbox"), &json!({"sender_id": 7, "client_id": "c", "content": "x"})).await.ok();
            until += 200_000;
            let level = json!({"level": "none", "until": UnixMs(until).to_string()});
            client.put(&format!("/v1/users/{user}/directs/7/settings"), &level).await.ok();
            let silence = format!("/v1/users/{user}/{by}/7");
            client.put(&silence, &json!({})).await.ok();
            flag(client, user).await;
            let mut reader = Reader::at_the_end(client).await;
            // The turn that the flag brings finds nothing that ends by itself.
            pass(5_000).await;
            reader.settle().await;
            assert_eq!(client.delete(&silence).await.status, 204);
            reader.told("no longer silenced", &[user]).await;
            assert_eq!((reader.settle().await, total(client, user).await), (vec![], 0));
            pass(200_000).await;
            reader.told("the end of the level", &[user]).await;
            assert_eq!(total(client, user).await, 1);
        }
        node.stop().await;
    }

    /// By the clock of another node, the second may be still to come when the first is told.
    async fn each_of_two_ends_is_told_once_it_is_past_by_every_clock(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let ends = [200_000, 201_500].map(|later_ms| at.load(Ordering::SeqCst) + later_ms);
        for group in [8, 9] {
            make_group(client, group, "read", &[1, 2]).await;
        }
        flag(client, 2).await;
        enrol(client, 2).await;
        for (group, until) in [8, 9].into_iter().zip(ends) {
            let level = json!({"level": "none", "until": UnixMs(until).to_string()});
            client.put(&format!("/v1/users/2/groups/{group}/settings"), &level).await.ok();
        }
        let mut reader = Reader::at_the_end(client).await;
        pass(&at, 5_000).await;
        reader.settle().await;
        for (end, what) in ends.into_iter().zip(["the first end", "the second end"]) {
            at.store(end + 2_000, Ordering::SeqCst);
            reader.told(what, &[2]).await;
            assert_eq!(reader.settle().await, [], "after {what}");
        }
        node.stop().await;
    }

    async fn many_whose_levels_end_at_once_are_all_told(world: World) {
        const USERS: i64 = 130;
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let users: Vec<i64> = (1..=USERS).collect();
        make_group(client, 9, "read", &users).await;
        for user in &users {
            flag(client, *user).await;
        }
        let level = json!({"level": "none", "until": UnixMs(at.load(Ordering::SeqCst) + 100_000).to_string()});
        for user in &users {
            client.put(&format!("/v1/users/{user}/groups/9/settings"), &level).await.ok();
        }
        at.fetch_add(5_000, Ordering::SeqCst);
        let mut reader = settled(client).await;
        at.fetch_add(110_000, Ordering::SeqCst);
        reader.told("the end of all levels", &users).await;
        node.stop().await;
    }

    /// Few of a large group have a push device: they are found by and by.
    async fn the_last_of_a_large_group_is_told(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.put("/v1/groups/9", &json!({"delivery": "read"})).await.ok();
        for first in (1..=11_000).step_by(1000) {
            let members: Vec<i64> = (first..first + 1000).collect();
            client.post("/v1/groups/9/members", &json!({"user_ids": members})).await.ok();
        }
        for user in [2, 10_999] {
            flag(client, user).await;
        }
        let mut reader = settled(client).await;
        say(client, 9, 1, "m").await;
        reader.told("a message", &[2, 10_999]).await;
        node.stop().await;
    }

    /// A notice, a level and messages come to their end while no node runs.
    async fn what_happened_while_no_node_ran_is_made_up_for(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let until = UnixMs(at.load(Ordering::SeqCst) + 60_000).to_string();
        make_group(&node.client, 9, "read", &[1, 2]).await;
        for user in [2, 3] {
            flag(&node.client, user).await;
            enrol(&node.client, user).await;
        }
        node.client.post("/v1/broadcasts/news", &json!({"title": "x", "expires_at": until})).await.ok();
        node.client.put("/v1/users/2/groups/9/settings", &json!({"level": "none", "until": until})).await.ok();
        let mut reader = Reader::at_the_end(&node.client).await;
        for _ in 0..3 {
            at.fetch_add(3000, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1500)).await;
        }
        reader.settle().await;
        say(&node.client, 9, 1, "m").await;
        node.stop().await;
        at.fetch_add(3_600_000, Ordering::SeqCst);
        let node = world.node_at(&at, &[]).await;
        reader.client = node.client.clone();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            at.fetch_add(3000, Ordering::SeqCst);
        }
        reader.told("all of it", &[2, 3]).await;
        assert_eq!((total(&node.client, 2).await, total(&node.client, 3).await), (1, 0));
        node.stop().await;
    }

    /// However fast messages come: those who are told are told about once a second.
    async fn a_hot_group_is_told_now_and_then(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        make_group(client, 9, "read", &[1, 2]).await;
        flag(client, 2).await;
        let mut reader = settled(client).await;
        let began = Instant::now();
        let mut sent = 0;
        while began.elapsed() < Duration::from_secs(5) {
            sent += 1;
            say(&nodes[sent % nodes.len()].client, 9, 1, &format!("m{sent}")).await;
        }
        let most = usize::try_from(began.elapsed().as_secs()).unwrap() + 3;
        let told = reader.settle().await.len();
        assert!((2..=most).contains(&told) && sent > 3 * told, "{told} events for {sent} messages");
        assert_eq!(total(client, 2).await, i64::try_from(sent).unwrap());
        Node::stop_all(nodes).await;
    }

    /// Several pages of users, walked by several nodes.
    async fn many_users_are_all_told(world: World) {
        const USERS: i64 = 1300;
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        let users: Vec<_> = (1..=USERS).collect();
        for some in users.chunks(50) {
            join_all(some.iter().map(|user| flag(&nodes[usize::try_from(*user).unwrap() % nodes.len()].client, *user))).await;
        }
        make_group(client, 9, "read", &(1..=700).collect::<Vec<_>>()).await;
        client.get("/v1/users/1300/badges").await.ok();
        let mut reader = settled(client).await;
        say(client, 9, 701 - 1, "m").await;
        let count = reader.told("a message", &(1..=700).collect::<Vec<_>>()).await;
        assert!(count <= 2 * 700, "{count}");
        client.post("/v1/broadcasts/news", &json!({"title": "x"})).await.ok();
        let count = reader.told("a broadcast", &users).await;
        assert!(count <= 2 * users.len(), "{count}");
        assert_eq!(total(client, USERS).await, 1);
        Node::stop_all(nodes).await;
    }

    async fn messages_that_are_imported_and_numbers_that_are_repaired_are_told(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make_group(client, 9, "read", &[1, 2]).await;
        flag(client, 2).await;
        let mut reader = settled(client).await;
        let mut hand = Hand::on(&world).await;
        // A message that somebody took out: the recount finds it gone.
        say(client, 9, 1, "m").await;
        reader.told("a message", &[2]).await;
        hand.run("update users set version = version + 1, direct_unread = 5 where user_id = 2").await;
        let found = Recount { user: None, dry_run: false }.run(&node.app.state().db, |_| ()).await.unwrap();
        // The scrubber may have been quicker.
        assert!(found.found <= 1, "{}", found.found);
        reader.told("a repair", &[2]).await;
        node.stop().await;
    }

    async fn a_switch_of_delivery_loses_nothing(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        flag(client, 2).await;
        let mut reader = settled(client).await;
        for round in 0..4 {
            let group = 10 + round;
            make_group(client, group, "read", &[1, 2]).await;
            reader.settle().await;
            say(client, group, 1, "m").await;
            client.put(&format!("/v1/groups/{group}"), &json!({"delivery": "write"})).await.ok();
            eventually_within(15, "it is told", async || reader.read().await.iter().any(|(user, _)| *user == 2)).await;
            assert_eq!(total(client, 2).await, round + 1);
        }
        Node::stop_all(nodes).await;
    }
}
