//! `headmark recount`.

use std::collections::BTreeSet;

use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio_util::sync::CancellationToken;

use crate::both_tiers;
use crate::import::{Ran, assert_degrees, edges, headmark, import, sample};
use crate::support::{Node, Tier, World};

async fn recount(world: &World, more: &[&str]) -> Ran {
    headmark(world, &[&["recount"], more].concat(), false, &[], Vec::new()).await
}

/// For nodes that are to leave the repairs to the command.
const UNSCRUBBED: &[&str] = &["--scrub-users", "0"];

/// Changes rows by hand.
async fn damage(world: &World, sql: &'static str) {
    match world.tier {
        Tier::Server => drop(world.postgres().await.execute(sql).await.unwrap()),
        Tier::Embedded => {
            let path = format!("sqlite://{}/headmark.sqlite", world.dir.display());
            SqliteConnection::connect(&path).await.unwrap().execute(sql).await.unwrap();
        }
    }
}

/// What a recount said before its summary, sorted.
fn differences(ran: &Ran) -> BTreeSet<&str> {
    ran.out.lines().filter(|line| line.starts_with("user ")).collect()
}

const HEALTHY: &str = "nothing differs";

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

        damage(&world, "delete from followers where follower_id = 3; update users set following = following + 5, counters = 7 where user_id = 1").await;
        damage(&world, "insert into followers (followee_id, since, follower_id) values (8, 1, 9)").await;
        damage(&world, "update follower_counts set mutuals = mutuals - 2 where user_id = 2 and slot = (select min(slot) from follower_counts where user_id = 2); delete from users where user_id = 5").await;
        damage(&world, "insert into follower_counts (user_id, slot, followers, mutuals) values (6, 3, 4, 0)").await;
        let rows = ["user 1 follower 3: stored 0, counted 1", "user 8 follower 9: stored 1, counted 0"];
        let numbers = [
            "user 1 counters: stored 7, counted 2",
            "user 1 following: stored 7, counted 2",
            "user 2 mutuals: stored -1, counted 1",
            "user 5 following: stored 0, counted 1",
            "user 6 followers: stored 4, counted 0",
        ];
        let of_rows = ["user 1 followers: stored 3, counted 2", "user 8 followers: stored 0, counted 1"];
        let dry = recount(&world, &["--dry-run"]).await;
        assert_eq!((dry.status, differences(&dry)), (Some(3), [rows.as_slice(), &numbers, &of_rows].concat().into_iter().collect()), "{dry:?}");
        assert!(dry.out.contains("differences  9, nothing was changed"), "{dry:?}");
        let one = recount(&world, &["--dry-run", "--user", "1"]).await;
        assert_eq!((one.status, differences(&one)), (Some(3), [rows[0], numbers[0], numbers[1], of_rows[0]].into()), "{one:?}");

        let repaired = recount(&world, &["--user", "1"]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [rows[0], numbers[0], numbers[1]].into()), "{repaired:?}");
        let repaired = recount(&world, &[]).await;
        assert_eq!((repaired.status, differences(&repaired)), (Some(0), [rows[1], numbers[2], numbers[3], numbers[4]].into()), "{repaired:?}");
        assert!(repaired.out.contains("differences  4, all repaired"), "{repaired:?}");
        let again = recount(&world, &[]).await;
        assert!(again.status == Some(0) && again.out.contains(HEALTHY), "{again:?}");
        let node = world.node_with(UNSCRUBBED).await;
        assert_degrees(&node.client, &edges(text)).await;
        for user in [6, 8] {
            assert_eq!(node.client.get(&format!("/v1/users/{user}/relation-counts")).await.ok(), json!({"following": 0, "followers": 0, "mutuals": 0, "secret": 0, "special": 0, "blocked": 0}));
        }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_repair_waits_for_the_server_to_stop_and_a_look_does_not() {
    let world = World::new(Tier::Embedded).await;
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
