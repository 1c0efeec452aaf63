//! The version of the list of those whom a user follows: it stands in the user's row, and before that
//! it stood in `relation_counts`.

use serde_json::json;

use crate::both_tiers;
use crate::support::{Hand, Node};

/// The last migration before the version moved.
const BEFORE: i64 = 16;

async fn following(node: &Node, user: i64) -> Vec<i64> {
    let body = node.client.get(&format!("/v1/users/{user}/following/ids")).await.ok();
    let id = |item: &serde_json::Value| item.as_str().unwrap().parse().unwrap();
    let mut ids: Vec<i64> = body["ids"].as_array().unwrap().iter().map(id).collect();
    ids.sort_unstable();
    ids
}

both_tiers! {
    async fn a_plain_follow_leaves_what_few_follows_change_alone(world: World) {
        const COUNT: &str = "select cast(count(*) as text) from relation_counts";
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        assert_eq!(following(&node, 1).await, Vec::<i64>::new());
        for other in 2..6 {
            node.client.follow(1, other).await;
            assert_eq!(following(&node, 1).await, (2..=other).collect::<Vec<_>>(), "a list that was kept is not shown any more");
        }
        node.client.unfollow(1, 5).await;
        assert_eq!(following(&node, 1).await, [2, 3, 4]);
        assert_eq!(hand.text(COUNT).await, "0");
        node.client.put("/v1/users/1/following/2", &json!({"visibility": "secret"})).await.ok();
        node.client.put("/v1/users/1/blocks/4", &json!({})).await.ok();
        assert_eq!((following(&node, 1).await, hand.text(COUNT).await.as_str()), (vec![2, 3], "1"));
        node.client.follow(1, 6).await;
        assert_eq!(following(&node, 1).await, [2, 3, 6]);
        let counts = node.client.get("/v1/users/1/relation-counts").await.ok();
        assert_eq!((&counts["following"], &counts["secret"], &counts["blocked"]), (&json!(3), &json!(1), &json!(1)));
        node.stop().await;
    }

    async fn a_list_of_an_earlier_version_is_of_the_version_it_had(world: World) {
        let mut hand = Hand::earlier(&world, BEFORE).await;
        hand.run("insert into users (user_id, version, revision, following, feed) values (1, 9, 9, 1, 9), (2, 0, 0, 0, 0)").await;
        hand.run("insert into following (follower_id, followee_id, since) values (1, 2, 5)").await;
        hand.run("insert into followers (followee_id, since, follower_id) values (2, 5, 1)").await;
        hand.run("insert into follower_counts (user_id, slot, followers, mutuals) values (2, 0, 1, 0)").await;
        hand.run("insert into relation_counts (user_id, secret, special, blocked, following_version, blocks_version) values (1, 0, 0, 0, 9, 0)").await;
        let node = world.node().await;
        assert_eq!(following(&node, 1).await, [2]);
        let tag = node.client.get("/v1/users/1/following/ids").await.header("etag").to_owned();
        node.client.follow(1, 3).await;
        assert_eq!(following(&node, 1).await, [2, 3]);
        assert_ne!(node.client.get("/v1/users/1/following/ids").await.header("etag"), tag);
        let is_newest = "select cast(count(*) as text) from users where user_id = 1 and following_version = revision";
        assert_eq!(hand.text(is_newest).await, "1");
        node.stop().await;
    }
}
