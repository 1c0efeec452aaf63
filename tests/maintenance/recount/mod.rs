//! `headmark recount`.

mod inboxes;
mod marks;
mod mentions;
mod notifications;
mod streams;

use std::collections::BTreeSet;

use headmark::maintenance::recount::Recount;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::both_tiers;
use crate::maintenance::import::{Ran, assert_degrees, edges, headmark, import, sample};
use crate::support::{Hand, Node, Pause, Tier, World, distributed};

/// A recount of all that the node has finds no difference.
pub async fn assert_clean(node: &Node) {
    let (recount, mut found) = (Recount { user: None, dry_run: true }, Vec::new());
    recount.run(&node.app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
    assert!(found.is_empty(), "{found:?}");
}

async fn recount(world: &World, more: &[&str]) -> Ran {
    headmark(world, &[&["recount"], more].concat(), false, &[], Vec::new()).await
}

/// For nodes that are to leave the repairs to the command.
const UNSCRUBBED: &[&str] = &["--scrub-users", "0"];

/// Changes rows by hand.
async fn damage(world: &World, sql: &str) {
    Hand::on(world).await.run(sql).await;
}

/// Ends the entries in the cache, which do not hear of a recount: until then they show the old numbers.
async fn end_entries(world: &World) {
    Hand::on(world).await.run("update cache_guard set epoch = epoch + 1").await;
}

/// What a recount said before its summary, sorted.
fn differences(ran: &Ran) -> BTreeSet<&str> {
    ran.out.lines().filter(|line| line.contains(": stored ")).collect()
}

const HEALTHY: &str = "nothing differs";

/// A folder that was misspelt, and a database that is another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_told_and_not_made() {
    for tier in [Tier::Embedded, Tier::Server] {
        let world = World::without_tables(tier).await;
        for command in [&["recount"][..], &["recount", "--dry-run"], &["epoch", "--renew"], &["epoch"], &["export", "follows"]] {
            let ran = headmark(&world, command, false, &[], Vec::new()).await;
            let hint = if tier == Tier::Embedded { "there is no " } else { "see `headmark migrate`" };
            assert!(ran.status == Some(1) && ran.err.contains(hint), "{command:?}: {ran:?}");
        }
        match tier {
            Tier::Embedded => assert!(!world.dir.join("headmark.sqlite").exists()),
            Tier::Server => {
                let tables = "select count(*) from pg_tables where schemaname = 'public'";
                let (tables,): (i64,) = sqlx::query_as(tables).fetch_one(&mut world.postgres().await).await.unwrap();
                assert_eq!(tables, 0);
            }
        }
    }
}

both_tiers! {
    async fn a_recount_finds_and_repairs_what_was_damaged(world: World) {
        let text = "follower,followee\n1,2\n2,1\n1,3\n3,1\n4,1\n5,4\n";
        import(&world, text, &[]).await;
        let node = world.node_with(UNSCRUBBED).await;
        for badge in ["mention", "like"] {
            node.client.post(&format!("/v1/users/1/badges/{badge}/increment"), &json!({})).await.ok();
        }
        node.stop().await;
        assert_eq!((recount(&world, &[]).await.status, recount(&world, &["--dry-run"]).await.status), (Some(0), Some(0)));
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));

        damage(&world, "delete from followers where follower_id = 3; update users set following = following + 5 where user_id = 1").await;
        damage(&world, "insert into followers (followee_id, since, follower_id) values (8, 1, 9)").await;
        damage(&world, "update follower_counts set mutuals = mutuals - 2 where user_id = 2 and slot = (select min(slot) from follower_counts where user_id = 2); delete from users where user_id = 5").await;
        damage(&world, "insert into follower_counts (user_id, slot, followers, mutuals) values (6, 3, 4, 0)").await;
        let rows = ["user 1 follower 3: stored 0, counted 1", "user 8 follower 9: stored 1, counted 0"];
        let numbers = [
            "user 1 following: stored 7, counted 2",
            "user 2 mutuals: stored -1, counted 1",
            "user 5 following: stored 0, counted 1",
            "user 6 followers: stored 4, counted 0",
        ];
        let of_rows = ["user 1 followers: stored 3, counted 2", "user 8 followers: stored 0, counted 1"];
        let dry = recount(&world, &["--dry-run"]).await;
        assert_eq!((dry.status, differences(&dry)), (Some(3), [rows.as_slice(), &numbers, &of_rows].concat().into_iter().collect()), "{dry:?}");
        assert!(dry.out.contains("differences  8, nothing was changed"), "{dry:?}");
        let one = recount(&world, &["--dry-run", "--user", "1"]).await;
        assert_eq!((one.status, differences(&one)), (Some(3), [rows[0], numbers[0], of_rows[0]].into()), "{one:?}");

        let repaired = recount(&world, &["--user", "1"]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [rows[0], numbers[0]].into()), "{repaired:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [rows[1], numbers[1], numbers[2], numbers[3]].into()), "{repaired:?}");
        assert!(repaired.out.contains("differences  4, all repaired"), "{repaired:?}");
        let again = recount(&world, &[]).await;
        assert!(again.status == Some(0) && again.out.contains(HEALTHY), "{again:?}");
        let node = world.node_with(UNSCRUBBED).await;
        assert_degrees(&node.client, &edges(text)).await;
        for user in [6, 8] {
            assert_eq!(node.client.get(&format!("/v1/users/{user}/relation-counts")).await.ok(), json!({"following": 0, "followers": 0, "mutuals": 0, "secret": 0, "special": 0, "blocked": 0, "requests": 0, "requests_sent": 0}));
        }
        node.stop().await;
    }

    async fn a_recount_compares_the_two_sides_of_requests(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        let approve = node.client.request(reqwest::Method::PATCH, "/v1/users/2/settings").json(&json!({"approve_follows": true}));
        crate::support::Client::send(approve).await.ok();
        for fan in [1, 3, 4] {
            node.client.follow(fan, 2).await;
        }
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "delete from follow_requests where follower_id = 3; update follow_requests set since = 7 where follower_id = 4").await;
        damage(&world, "insert into follow_requests (followee_id, since, follower_id) values (8, 1, 9)").await;
        let of_2 = [
            "user 2 follow request of 3: stored 0, counted 1",
            "user 2 follow request of 4: stored 0, counted 1",
            "user 2 follow request of 4: stored 1, counted 0",
        ];
        let (of_8, numbers) = ("user 8 follow request of 9: stored 1, counted 0", ["user 2 requests: stored 3, counted 2", "user 8 requests: stored 0, counted 1"]);
        let dry = recount(&world, &["--dry-run"]).await;
        assert_eq!((dry.status, differences(&dry)), (Some(3), [of_2.as_slice(), &[of_8], &numbers].concat().into_iter().collect()), "{dry:?}");
        let repaired = recount(&world, &["--user", "2"]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), of_2.into()), "{repaired:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [of_8].into()), "{repaired:?}");
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        for fan in [3, 4] {
            let accept = node.client.request(reqwest::Method::PUT, &format!("/v1/users/2/follow-requests/{fan}"));
            crate::support::Client::send(accept).await.ok();
        }
        assert_eq!(node.client.get("/v1/users/2/follow-requests").await.ok()["items"].as_array().unwrap().len(), 1);
        assert_eq!(node.client.get("/v1/users/8/follow-requests").await.ok()["items"], json!([]));
        node.stop().await;
    }

    async fn a_recount_compares_groups_with_their_memberships(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        crate::features::groups::make(&node.client, 5, &[1, 2, 3]).await;
        crate::features::groups::make(&node.client, 6, &[1]).await;
        node.client.delete("/v1/groups/5/members/2").await;
        for n in 1..=2 {
            crate::features::groups::send(&node.client, 5, 1, &format!("m{n}")).await.ok();
            node.client.delete(&format!("/v1/groups/5/messages/{n}")).await;
        }
        crate::features::groups::send(&node.client, 5, 1, "m3").await.ok();
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "update chat_groups set members = 7, ordinals = 2, changes = 1 where group_id = 5").await;
        damage(&world, "update users set chat_groups = 9 where user_id = 1").await;
        let all = [
            "user 1 groups: stored 9, counted 2",
            "group 5 members: stored 7, counted 2",
            "group 5 ordinals: stored 2, counted 3",
            "group 5 changes: stored 1, counted 2",
        ];
        let found = recount(&world, &["--dry-run"]).await;
        assert_eq!((found.status, differences(&found)), (Some(3), all.into()), "{found:?}");
        let found = recount(&world, &["--dry-run", "--user", "1"]).await;
        assert_eq!(differences(&found), [all[0]].into(), "{found:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), all.into()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        let node = world.node_with(UNSCRUBBED).await;
        let joined = node.client.put("/v1/groups/5/members/4", &json!({})).await.ok();
        assert_eq!(joined["ordinal"], 4);
        node.client.delete("/v1/groups/5/messages/3").await;
        let changes = node.client.get("/v1/groups/5/messages/changes").await.ok();
        assert_eq!(changes["items"], json!([{"id": 1, "seq": 1, "recalled": true}, {"id": 2, "seq": 2, "recalled": true}, {"id": 3, "seq": 3, "recalled": true}]));
        assert_eq!(node.client.get("/v1/groups/5").await.ok()["members"], 3);
        node.stop().await;
        // Of this user nothing but memberships is left.
        damage(&world, "delete from users where user_id = 3").await;
        let found = recount(&world, &["--dry-run"]).await;
        assert!(differences(&found).contains("user 3 groups: stored 0, counted 1"), "{found:?}");
    }

    async fn a_recount_compares_direct_chats_with_the_inbox(world: World) {
        let node = world.node_with(UNSCRUBBED).await;
        for (sender, id) in [(1, "a"), (1, "b"), (2, "a"), (3, "a")] {
            node.client.post("/v1/users/9/inbox", &json!({"sender_id": sender, "client_id": id, "content": "x"})).await.ok();
        }
        let mute = node.client.request(reqwest::Method::PUT, "/v1/users/9/directs/3/settings").json(&json!({"level": "none"}));
        crate::support::Client::send(mute).await.ok();
        node.stop().await;
        assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
        damage(&world, "update directs set head = 5 where user_id = 9 and peer_id = 1; update directs set mark = 3 where user_id = 9 and peer_id = 2; update directs set recalled = 2 where user_id = 9 and peer_id = 3").await;
        damage(&world, "update users set direct_unread = 7, direct_chats = 0, inbox_seq = 2 where user_id = 9").await;
        let sides = ["user 9 direct head 1: stored 5, counted 2", "user 9 direct mark 2: stored 3, counted 1", "user 9 direct recalled 3: stored 2, counted 0"];
        let found = recount(&world, &["--dry-run", "--user", "9"]).await;
        assert!(found.status == Some(3) && differences(&found).is_superset(&sides.into()), "{found:?}");
        let repaired = recount(&world, &[]).await;
        let numbers = ["user 9 direct_unread: stored 7, counted 2", "user 9 direct_chats: stored 0, counted 1", "user 9 inbox_seq: stored 2, counted 4"];
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [sides.as_slice(), &numbers].concat().into_iter().collect()), "{repaired:?}");
        assert!(recount(&world, &[]).await.out.contains(HEALTHY));
        // A chat that no sum counts: its page and the entry show it all the same.
        let revision = async || crate::support::Hand::on(&world).await.text("select cast(revision as text) from users where user_id = 9").await.parse::<i64>().unwrap();
        let before = revision().await;
        damage(&world, "update directs set recalled = 1 where user_id = 9 and peer_id = 3").await;
        assert_eq!(differences(&recount(&world, &[]).await), ["user 9 direct recalled 3: stored 1, counted 0"].into());
        assert!(revision().await > before, "polls are told");
        let node = world.node_with(UNSCRUBBED).await;
        let sent = node.client.post("/v1/users/9/inbox", &json!({"sender_id": 1, "client_id": "c", "content": "x"})).await.ok();
        assert_eq!(sent["seq"], 5);
        let chats = node.client.get("/v1/users/9/directs").await.ok();
        let unread: Vec<_> = chats["items"].as_array().unwrap().iter().map(|chat| (chat["peer_id"].as_str().unwrap(), chat["unread"].as_i64().unwrap())).collect();
        assert_eq!(unread, [("1", 3), ("3", 1), ("2", 0)]);
        node.stop().await;
    }

    async fn a_recount_looks_at_every_user_of_a_large_database(world: World) {
        import(&world, &sample("follows-nostr-sample.csv.gz"), &[]).await;
        damage(&world, "delete from followers where follower_id % 2 = 0; update users set following = following - 1").await;
        let found = recount(&world, &["--dry-run"]).await;
        let repaired = recount(&world, &[]).await;
        let again = recount(&world, &["--dry-run"]).await;
        assert!(differences(&found).len() > 1000, "more than are fetched at once");
        assert!(differences(&repaired).is_subset(&differences(&found)));
        assert!(repaired.status == Some(0) && again.status == Some(0) && again.out.contains(HEALTHY), "{again:?}");
        let node = world.node_with(UNSCRUBBED).await;
        assert_degrees(&node.client, &edges(&sample("follows-nostr-sample.csv.gz"))).await;
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recount_beside_follows_repairs_what_is_wrong_and_nothing_else() {
    let world = World::new(Tier::Server).await;
    // Their scrubbers would be faster.
    let nodes = vec![world.node_with(UNSCRUBBED).await, world.node_with(UNSCRUBBED).await];
    // Those who are to be damaged must be there, however late the crowd begins.
    nodes[0].client.follow(1, 8).await;
    nodes[0].client.follow(8, 1).await;
    let done = CancellationToken::new();
    let follows = (0..4_i64).map(|task| {
        let (client, done) = (nodes[usize::try_from(task).unwrap() % 2].client.clone(), done.clone());
        tokio::spawn(async move {
            for n in 0_i64.. {
                if done.is_cancelled() {
                    return;
                }
                // All in one small crowd, so that every number changes all the time.
                let (follower, followee) = (1 + (task + n) % 6, 7 + (task * 3 + n * 5) % 4);
                client.follow(follower, followee).await;
                client.follow(followee, follower).await;
                client.unfollow(if n % 2 == 0 { follower } else { followee }, if n % 2 == 0 { followee } else { follower }).await;
            }
        })
    });
    let follows: Vec<_> = follows.collect();
    for _ in 0..5 {
        let healthy = recount(&world, &[]).await;
        assert!(healthy.status == Some(0) && healthy.out.contains(HEALTHY), "nothing was wrong: {healthy:?}");
        damage(&world, "update users set following = following + 3 where user_id = 1").await;
        damage(
            &world,
            "insert into follower_counts (user_id, slot, followers, mutuals) values (8, 5, 4, -2)
            on conflict (user_id, slot) do update set followers = follower_counts.followers + 4, mutuals = follower_counts.mutuals - 2",
        )
        .await;
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired).len()), (Some(0), 3), "{repaired:?}");
    }
    done.cancel();
    for task in follows {
        task.await.unwrap();
    }
    let healthy = recount(&world, &["--dry-run"]).await;
    assert!(healthy.status == Some(0) && healthy.out.contains(HEALTHY), "{healthy:?}");
    Node::stop_all(nodes).await;
}

/// A count of a distributed database may be of two moments. Then it finds what is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_second_count_finds_right_is_no_difference() {
    if distributed::database().is_none() {
        return;
    }
    let world = World::new(Tier::Server).await;
    let node = world.node_with(UNSCRUBBED).await;
    node.client.follow(1, 2).await;
    let mut hand = Hand::on(&world).await;
    hand.run("update users set following = 5 where user_id = 1").await;
    let pause = Pause::at("recount::before_second_count");
    let undoing = tokio::spawn(async move {
        pause.reached().await;
        hand.run("update users set following = 1 where user_id = 1").await;
        pause.go_on().await;
    });
    assert_clean(&node).await;
    undoing.await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_repair_waits_for_the_server_to_stop_and_a_look_does_not() {
    let world = World::without_tables(Tier::Embedded).await;
    let missing = recount(&world, &["--dry-run"]).await;
    assert_eq!(missing.status, Some(1));
    assert!(missing.err.contains("there is no ") && missing.err.contains("--data-dir"), "{missing:?}");
    let node = world.node_with(UNSCRUBBED).await;
    node.client.follow(1, 2).await;
    let refused = recount(&world, &[]).await;
    assert_eq!(refused.status, Some(1));
    assert!(refused.err.contains("another headmark is using the data folder"), "{refused:?}");
    assert!(recount(&world, &["--dry-run"]).await.out.contains(HEALTHY));
    node.stop().await;
    assert!(recount(&world, &[]).await.out.contains(HEALTHY));
}
