//! Feeds of many followees.

use std::time::Duration;

use futures_util::StreamExt as _;

use super::{feed, post, reset};
use crate::both_tiers;
use crate::support::Hand;
use crate::support::{Client, eventually};

/// Ids far apart, as random ones are.
fn creator(n: i64) -> i64 {
    1_000_000 + n * 1_000_003_111
}

/// All of these, many at once.
async fn at_once<F: Future<Output = ()>>(all: impl Iterator<Item = F>) {
    futures_util::stream::iter(all).buffer_unordered(300).collect::<Vec<()>>().await;
}

/// The user follows so many.
async fn follow(client: &Client, user: i64, followees: i64) {
    at_once((0..followees).map(|n| async move {
        client.follow(user, creator(n)).await;
    }))
    .await;
}

both_tiers! {
    async fn lists_keep_within_their_bound_and_are_right_without_it(world: World) {
        const BOUND: u64 = 1 << 20;
        let node = world.node_with(&["--feed-cache-bytes", &BOUND.to_string()]).await;
        // Twelve who follow 5000 each, as if they had been imported: together more than the bound.
        let mut hand = Hand::on(&world).await;
        let numbers = |up_to: i64| format!("with recursive g(n) as (select 1 union all select n + 1 from g where n < {up_to})");
        hand.run(&format!("insert into users (user_id, revision, following, feed) {} select n, 1, 5000, 1 from g", numbers(12))).await;
        for user in 1..=12 {
            hand.run(&format!("insert into following (follower_id, followee_id, since, mark) {} select {user}, 1000 + n, 1, 0 from g", numbers(5000))).await;
        }
        post(&node.client, 1001, "old").await.ok();
        for user in 1..=12 {
            assert_eq!(feed(&node.client, user).await, (0, 5000), "enrolled by the first poll");
        }
        post(&node.client, 1002, "new").await.ok();
        for round in 0..3 {
            for user in 1..=12 {
                assert_eq!(feed(&node.client, user).await, (1, 5000), "{round}");
            }
            let kept = node.app.state().summaries.parts.feed.feeds.kept_bytes().await;
            assert!((100_000..=BOUND).contains(&kept), "{kept}");
        }
        node.stop().await;
    }

    async fn three_hundred_three_thousand_and_five_thousand_followees(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let sizes = [(1, 300), (2, 3000), (3, 5000)];
        // One post before the follow, which does not count, and one after it.
        at_once((0..5000).filter(|n| n % 5 == 0).map(|n| async move {
            post(client, creator(n), "old").await.ok();
        }))
        .await;
        for (user, followees) in sizes {
            follow(client, user, followees).await;
            assert_eq!(feed(client, user).await, (0, followees));
        }
        at_once((0..5000).filter(|n| n % 2 == 0).map(|n| async move {
            post(client, creator(n), "new").await.ok();
        }))
        .await;
        for (user, followees) in sizes {
            assert_eq!(feed(client, user).await, (followees / 2, followees));
            node.app.state().summaries.parts.feed.feeds.clear();
            assert_eq!(feed(client, user).await, (followees / 2, followees), "loaded again");
            assert_eq!(reset(client, user).await["creators"], followees);
            assert_eq!(feed(client, user).await, (0, followees));
        }
        post(client, creator(7), "last").await.ok();
        for (user, followees) in sizes {
            assert_eq!(feed(client, user).await, (1, followees));
        }
        node.stop().await;
        let node = world.node().await;
        for (user, followees) in sizes {
            assert_eq!(feed(&node.client, user).await, (1, followees), "it is there after a restart");
        }
        eventually("the follower has looked", async || {
            tokio::time::sleep(Duration::from_millis(50)).await;
            node.app.state().heads.is_fresh()
        })
        .await;
        node.stop().await;
    }
}
