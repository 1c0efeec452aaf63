//! The token of a feed: it names the posts that were counted, whatever happens before the reset.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{count, delete, feed, post, reset};
use crate::both_tiers;
use crate::support::Hand;
use crate::support::{Client, Dice, Node, Reply, eventually};

const FEED: &str = "/v1/users/1/feed";

/// Loads the feed: unread, and the token.
async fn load(client: &Client, user: i64) -> (i64, String) {
    let shown = client.get(&format!("/v1/users/{user}/feed")).await.ok();
    (shown["unread"].as_i64().unwrap(), shown["token"].as_str().unwrap().to_owned())
}

async fn reset_to(client: &Client, user: i64, token: &str) -> Reply {
    client.post(&format!("/v1/users/{user}/feed/reset"), &json!({"up_to": token})).await
}

/// What a reset to this token leaves unread.
async fn left(client: &Client, user: i64, token: &str) -> i64 {
    reset_to(client, user, token).await.ok()["unread"].as_i64().unwrap()
}

/// Waits until each node shows so much.
async fn all_show(nodes: &[Node], expected: (i64, i64)) {
    for node in nodes {
        eventually("every node shows it", async || feed(&node.client, 1).await == expected).await;
    }
}

/// The user's mark of each creator.
async fn marks(client: &Client) -> BTreeMap<i64, i64> {
    let explained = client.get("/v1/users/1/badges/explain").await.ok();
    let term = |of: &Value| (of["user_id"].as_str().unwrap().parse().unwrap(), of["mark"].as_i64().unwrap());
    explained["feed"]["creators"].as_array().unwrap().iter().map(term).collect()
}

both_tiers! {
    async fn posts_between_loading_and_resetting_stay_unread(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        for creator in [7, 8, 9] {
            first.follow(1, creator).await;
        }
        for (creator, id) in [(7, "a"), (7, "b"), (8, "a")] {
            post(first, creator, id).await.ok();
        }
        all_show(&nodes, (3, 3)).await;
        let (unread, token) = load(last, 1).await;
        assert_eq!(unread, 3);
        for (creator, id) in [(7, "c"), (8, "b"), (8, "c"), (9, "a")] {
            post(first, creator, id).await.ok();
        }
        delete(first, 8, "a").await;
        // Somebody else is followed meanwhile, and one of the three no longer.
        first.follow(1, 10).await;
        post(first, 10, "a").await.ok();
        first.unfollow(1, 9).await;
        let answer = reset_to(first, 1, &token).await.ok();
        assert_eq!((&answer["unread"], &answer["creators"]), (&json!(4), &json!(3)), "{answer}");
        assert_eq!(answer["revision"], first.summary(1).await["revision"]);
        all_show(&nodes, (4, 3)).await;
        assert_eq!(reset_to(last, 1, &token).await.ok()["revision"], answer["revision"], "a repeat changes nothing");
        // The token of a later answer, then the earlier one once more.
        let (unread, later) = load(first, 1).await;
        assert_eq!((unread, left(first, 1, &later).await), (4, 0));
        assert_eq!(left(first, 1, &token).await, 0, "a mark never goes back");
        post(first, 7, "d").await.ok();
        assert_eq!(left(first, 1, &later).await, 1);
        assert_eq!(reset(first, 1).await["unread"], 0);
        assert_eq!(left(first, 1, &later).await, 0);
        Node::stop_all(nodes).await;
    }

    async fn a_token_is_exact_while_others_post(world: World) {
        let nodes = world.nodes().await;
        let clients: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
        for creator in 7..=12 {
            clients[0].follow(1, creator).await;
        }
        let writers = (0..4_usize).map(|writer| {
            let client = clients[writer % clients.len()].clone();
            async move {
                for n in 0..60 {
                    let creator = 7 + i64::try_from((writer + n) % 6).unwrap();
                    assert_eq!(post(&client, creator, &format!("w{writer}-{n}")).await.status, 201);
                }
            }
        });
        // Each load is followed by a reset, later ones before earlier ones now and then: what is
        // marked is what was counted, never more.
        let reader = async {
            let (mut dice, mut seen, mut total) = (Dice::new(7), 0_i64, 0_i64);
            let mut held: Option<String> = None;
            for n in 0..40 {
                let client = &clients[n % clients.len()];
                let (unread, token) = load(client, 1).await;
                // Nobody else resets, so all that is marked came by a token: marks and what was
                // counted above them are one sum.
                assert!(seen + unread >= total, "{seen} and {unread} after {total}");
                total = seen + unread;
                if dice.roll(3) == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                reset_to(client, 1, &token).await.ok();
                seen = marks(client).await.values().sum();
                assert_eq!(seen, total, "exactly what was counted is marked");
                if let Some(earlier) = held.replace(token) {
                    reset_to(client, 1, &earlier).await.ok();
                    assert_eq!(marks(client).await.values().sum::<i64>(), seen, "no mark goes back or on");
                }
            }
        };
        tokio::join!(join_all(writers), reader);
        let posted: i64 = join_all((7..=12).map(|creator| count(&clients[0], creator))).await.iter().map(|(_, head)| head).sum();
        let seen: i64 = marks(&clients[0]).await.values().sum();
        assert_eq!(posted, 240);
        all_show(&nodes, (posted - seen, 6)).await;
        Node::stop_all(nodes).await;
    }

    async fn what_is_no_token_of_the_user_is_refused(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.follow(1, 7).await;
        post(client, 7, "a").await.ok();
        let (_, token) = load(client, 1).await;
        let (_, others) = load(client, 2).await;
        let mut broken = token.clone().into_bytes();
        broken[4] = if broken[4] == b'A' { b'B' } else { b'A' };
        let broken = String::from_utf8(broken).unwrap();
        let long = "A".repeat(headmark::features::feed::MAX_TOKEN_CHARS + 1);
        let shorter: String = token.chars().skip(1).collect();
        for bad in [others.as_str(), &broken, &shorter, "x", "", "ä", &long] {
            assert_eq!(reset_to(client, 1, bad).await.pointers(422, "invalid_body"), ["/up_to"], "of {} bytes", bad.len());
        }
        for body in [json!({"up_to": null}), json!({"up_to": 5}), json!({"upto": token})] {
            assert_eq!(client.post("/v1/users/1/feed/reset", &body).await.status, 422, "{body}");
        }
        assert_eq!(feed(client, 1).await, (1, 1), "nothing was marked");
        // A 304 needs no token.
        let tag = client.get(FEED).await.header("etag").to_owned();
        assert_eq!(client.get_if_changed(FEED, &tag).await.status, 304);
        assert_eq!(left(client, 1, &token).await, 0);
        node.stop().await;
        // After a restart, and by another lane.
        let node = world.node().await;
        post(&node.client, 7, "b").await.ok();
        assert_eq!(left(&node.client, 1, &token).await, 1);
        node.stop().await;
    }

    async fn a_token_does_not_grow_with_the_followees(world: World) {
        const FOLLOWEES: i64 = 3000;
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        let numbers = format!("with recursive g(n) as (select 1 union all select n + 1 from g where n < {FOLLOWEES})");
        hand.run(&format!("insert into users (user_id, revision, following, feed) values (1, 1, {FOLLOWEES}, 1)")).await;
        let ids = "1000000 + n * cast(1000003111 as bigint)";
        hand.run(&format!("insert into following (follower_id, followee_id, since, mark) {numbers} select 1, {ids}, 1, 0 from g")).await;
        let items: Vec<_> = (1..=FOLLOWEES).map(|n| (1_000_000 + n * 1_000_003_111, n)).collect();
        assert_eq!(feed(&node.client, 1).await, (0, FOLLOWEES));
        let put = items.iter().map(|(creator, n)| {
            let client = node.client.clone();
            async move { assert_eq!(post(&client, *creator, &format!("p{n}")).await.status, 201) }
        });
        stream::iter(put).buffer_unordered(200).collect::<Vec<()>>().await;
        let (unread, token) = load(&node.client, 1).await;
        assert_eq!(unread, FOLLOWEES);
        assert!(token.len() <= 300, "{} characters", token.len());
        for (creator, _) in items.iter().step_by(600) {
            post(&node.client, *creator, "late").await.ok();
        }
        assert_eq!(left(&node.client, 1, &token).await, 5);
        node.stop().await;
    }
}
