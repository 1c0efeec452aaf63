//! `headmark import posts`, and enrolment with what was imported.

use headmark::features::users::UserCommand as LastSeen;
use serde_json::json;

use super::{Ran, gzip, headmark, import as import_follows};
use crate::both_tiers;
use crate::features::feed::{count, delete, feed, post, reset};
use crate::support::{Tier, World, run};

/// Imports this text through a pipe.
async fn import(world: &World, text: impl Into<Vec<u8>>, more: &[&str]) -> Ran {
    headmark(world, &[&["import", "posts", "-"], more].concat(), true, &[], text.into()).await
}

/// Posted, known, deleted before, refused, bad.
#[track_caller]
fn counts(ran: &Ran) -> [i64; 5] {
    ["posted", "known already", "deleted before", "refused", "bad"].map(|what| ran.told(what))
}

both_tiers! {
    async fn a_user_with_imported_follows_begins_at_nothing_unread(world: World) {
        assert_eq!(import(&world, "user,post_id\n7,a\n7,b\n8,a\n", &[]).await.status, Some(0));
        assert_eq!(import_follows(&world, "follower,followee\n1,7\n1,8\n2,7\n", &[]).await.status, Some(0));
        let node = world.node().await;
        let client = &node.client;
        // A service asks, which enrols nobody.
        let query = json!({"user_ids": ["1"], "include": ["feed"]});
        assert_eq!(client.post("/v1/badges/query", &query).await.ok()["items"][0]["feed"]["unread"], 0);
        post(client, 7, "c").await.ok();
        assert_eq!(client.post("/v1/badges/query", &query).await.ok()["items"][0]["feed"]["unread"], 0);
        assert_eq!(feed(client, 1).await, (0, 2), "what was there before the first visit is not counted");
        post(client, 7, "d").await.ok();
        assert_eq!((feed(client, 1).await, feed(client, 2).await), ((1, 2), (0, 1)));
        assert_eq!(client.post("/v1/badges/query", &query).await.ok()["items"][0]["feed"]["unread"], 1);
        node.stop().await;
        let node = world.node().await;
        assert_eq!(feed(&node.client, 1).await, (1, 2));
        // The day is noted before the node ends; later it would enrol the user whom the next one forgets.
        node.stop().await;
        let node = world.node().await;
        // Not seen for long: forgotten, and new again with the next visit.
        let forget = |user: i64| LastSeen::Forget { user: user.try_into().unwrap(), before: i64::MAX };
        let job = headmark::engine::lanes::Job { command: std::sync::Arc::new(forget(1)), key: None };
        node.app.state().lanes.submit(job).await.unwrap();
        assert_eq!(node.client.post("/v1/badges/query", &query).await.ok()["items"][0]["feed"]["unread"], 0);
        node.stop().await;
        // A node that does not remember that it saw the user today.
        let node = world.node().await;
        post(&node.client, 8, "b").await.ok();
        assert_eq!(feed(&node.client, 1).await, (0, 2));
        post(&node.client, 8, "c").await.ok();
        assert_eq!(feed(&node.client, 1).await, (1, 2));
        reset(&node.client, 1).await;
        assert_eq!(feed(&node.client, 1).await, (0, 2));
        node.stop().await;
    }

    async fn posts_come_from_csv_plain_or_compressed(world: World) {
        let text = "timestamp,post_id,user\n1671916715,a,6\n2022-12-24T22:18:35.5+01:00,b,6\n1671916715,\"c:1\",7\n\n1671916716,a,6\n";
        let first = import(&world, text, &["--id-offset", "1"]).await;
        assert_eq!((first.status, counts(&first), first.told("lines read"), first.err.as_str()), (Some(0), [3, 1, 0, 0, 0], 4, ""), "{first:?}");
        let second = import(&world, gzip("user,post_id\n7,a\n7,d\n"), &[]).await;
        assert_eq!((second.status, counts(&second)), (Some(0), [1, 1, 0, 0, 0]), "{second:?}");
        let zstd = import(&world, zstd::encode_all(&b"user,post_id\n8,x\n"[..], 3).unwrap(), &[]).await;
        assert_eq!((zstd.status, counts(&zstd)), (Some(0), [1, 0, 0, 0, 0]), "{zstd:?}");
        let node = world.node().await;
        assert_eq!((count(&node.client, 7).await, count(&node.client, 8).await), ((3, 3), (2, 2)));
        delete(&node.client, 7, "a").await;
        assert_eq!(post(&node.client, 7, "b").await.status, 200);
        node.stop().await;
        let again = import(&world, text, &["--id-offset", "1"]).await;
        assert_eq!((again.status, counts(&again)), (Some(0), [0, 2, 2, 0, 0]), "a second run changes nothing: {again:?}");
        let node = world.node().await;
        assert_eq!(count(&node.client, 7).await, (2, 3));
        node.stop().await;
    }

    async fn readers_of_events_are_told_of_imported_posts(world: World) {
        for _ in 0..2 {
            assert_eq!(import(&world, "user,post_id\n7,a\n8,x\n7,b\n", &[]).await.status, Some(0));
        }
        let node = world.node().await;
        post(&node.client, 7, "c").await.ok();
        let told = crate::features::events::all(&node.client, 4).await;
        let mut told: Vec<_> = told.iter().map(|event| format!("{} {}", event["type"], event["data"])).collect();
        told.sort();
        let of = |user, post| format!("\"post\" {}", json!({"user_id": user, "post_id": post, "deleted": false}));
        assert_eq!(told, [of("7", "a"), of("7", "b"), of("7", "c"), of("8", "x")]);
        node.stop().await;
    }

    async fn bad_lines_of_posts_are_told_by_number(world: World) {
        let text = "user,post_id,timestamp\n7,a,5\nx,a,5\n7,b c,5\n7,d,never\n7,e\n0,f,5\n7,g,5\n";
        let ran = import(&world, text, &[]).await;
        assert_eq!((ran.status, counts(&ran), ran.told("lines read")), (Some(3), [2, 0, 0, 0, 5], 7), "{ran:?}");
        let told: Vec<_> = ran.err.lines().map(|line| line.strip_prefix("headmark: line ").unwrap().split(' ').next().unwrap()).collect();
        assert_eq!(told, ["3", "4", "5", "6", "7"]);
        for (text, why) in [
            ("", "standard input is empty; its first line must name the columns, as in `user,post_id,timestamp`"),
            ("7,a\n", "it has '7', and known are user, post_id, timestamp"),
            ("user\n7\n", "there is no 'post_id'"),
        ] {
            let ran = import(&world, text, &[]).await;
            assert_eq!((ran.status, ran.out.as_str()), (Some(1), ""), "{ran:?}");
            assert!(ran.err.contains(why), "{why}: {}", ran.err);
        }
        let node = world.node().await;
        assert_eq!(count(&node.client, 7).await, (2, 2));
        node.stop().await;
    }

    async fn an_import_of_posts_that_was_killed_is_run_again(world: World) {
        let text: String = std::iter::once("user,post_id\n".to_owned()).chain((0..9000).map(|n| format!("{},p{n}\n", 1 + n % 700))).collect();
        for step in ["lane::before_commit", "lane::after_commit"] {
            let died = headmark(&world, &["import", "posts", "-"], true, &[("FAILPOINTS", &format!("{step}=1*off->return"))], text.clone().into_bytes()).await;
            assert_eq!((died.status, died.out.as_str()), (None, ""), "{died:?}");
        }
        let ran = import(&world, text.clone(), &[]).await;
        let [posted, known, ..] = counts(&ran);
        assert_eq!((ran.status, posted + known), (Some(0), 9000), "{ran:?}");
        assert!(known > 0, "nothing of what the first ones committed was there");
        let node = world.node().await;
        for creator in [1, 600, 601, 700] {
            let expected = (0..9000).filter(|n| 1 + n % 700 == creator).count();
            let expected = i64::try_from(expected).unwrap();
            assert_eq!(count(&node.client, creator).await, (expected, expected));
        }
        node.stop().await;
    }
}

/// Whom a user follows may change while the user is enrolled: what was posted before is not counted
/// all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enrolment_beside_an_import_of_follows_begins_at_nothing_unread() {
    let world = World::new(Tier::Server).await;
    let creators = 1001..=1400;
    let posts: String =
        std::iter::once("user,post_id\n".to_owned()).chain(creators.clone().map(|creator| format!("{creator},a\n"))).collect();
    assert_eq!(import(&world, posts, &[]).await.status, Some(0));
    let node = world.node().await;
    for user in 1..=3 {
        let follows: String = std::iter::once("follower,followee\n".to_owned())
            .chain(creators.clone().map(|creator| format!("{user},{creator}\n")))
            .collect();
        let polls = async {
            for _ in 0..60 {
                assert_eq!(feed(&node.client, user).await.0, 0);
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let (ran, ()) = tokio::join!(import_follows(&world, &follows, &[]), polls);
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert_eq!(feed(&node.client, user).await, (0, 400));
        post(&node.client, 1200, &format!("new{user}")).await.ok();
        assert_eq!(feed(&node.client, user).await, (1, 400));
    }
    node.stop().await;
}

#[tokio::test]
async fn the_help_of_an_import_of_posts_names_the_variables() {
    let help = String::from_utf8(run(&["import", "posts", "--help"], &[]).await.stdout).unwrap();
    for name in ["DATABASE_URL", "REDIS_URL", "HEADMARK_DATA_DIR", "HEADMARK_CACHE_PREFIX", "HEADMARK_POST_TTL_DAYS", "Exit status"] {
        assert!(help.contains(name), "{name} in {help}");
    }
}
