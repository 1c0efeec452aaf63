//! Resets that arrive in another order than they were read in.

use std::sync::Arc;

use headmark::base::ids::UserId;
use headmark::engine::lanes::Job;
use headmark::features::feed::{FeedCommand, Followed, store};

use super::{feed, post, reset};
use crate::both_tiers;
use crate::support::{Client, Node};

fn user() -> UserId {
    1.try_into().unwrap()
}

/// What a reset of user 1 reads before it goes to a lane.
pub async fn read(node: &Node) -> Followed {
    store::read_followed(&node.app.state().db, user()).await.unwrap()
}

/// Has a lane do it.
pub async fn apply(node: &Node, followed: Followed) {
    let command = Arc::new(FeedCommand::Reset { user: user(), followed });
    node.app.state().lanes.submit(Job { command, key: None }).await.unwrap();
}

/// The user's mark of each creator.
async fn marks(client: &Client) -> Vec<(String, i64)> {
    let explained = client.get("/v1/users/1/badges/explain").await.ok();
    let creators = explained["feed"]["creators"].as_array().unwrap();
    creators.iter().map(|of| (of["user_id"].as_str().unwrap().to_owned(), of["mark"].as_i64().unwrap())).collect()
}

both_tiers! {
    async fn a_reset_that_was_read_first_takes_no_mark_back(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0], nodes.last().unwrap());
        first.client.follow(1, 7).await;
        post(&first.client, 7, "a").await.ok();
        let early = read(first).await;
        last.client.follow(1, 8).await;
        for id in ["a", "b"] {
            post(&last.client, 8, id).await.ok();
        }
        reset(&last.client, 1).await;
        apply(first, early).await;
        assert_eq!(marks(&last.client).await, [("7".to_owned(), 1), ("8".to_owned(), 2)]);
        for node in &nodes {
            assert_eq!(feed(&node.client, 1).await, (0, 2), "all was seen");
        }
        Node::stop_all(nodes).await;
    }

    async fn marks_never_go_back_in_whichever_order_resets_arrive(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        let mut pending = Vec::new();
        for step in 0..6 {
            let creator = 7 + step % 4;
            client.follow(1, creator).await;
            for of in 7..=creator {
                post(client, of, &format!("p{step}")).await.ok();
            }
            if step == 4 {
                client.unfollow(1, 9).await;
            }
            pending.push(read(&nodes[0]).await);
        }
        // The newest first, then the oldest, and so on inwards.
        let (mut before, mut turn) = (marks(client).await, 0);
        while !pending.is_empty() {
            let followed = if turn % 2 == 0 { pending.pop().unwrap() } else { pending.remove(0) };
            apply(&nodes[turn % nodes.len()], followed).await;
            let after = marks(client).await;
            for ((creator, before), (same, after)) in before.iter().zip(&after) {
                assert_eq!(creator, same);
                assert!(after >= before, "creator {creator} went back from {before} to {after} in turn {turn}");
            }
            (before, turn) = (after, turn + 1);
        }
        for node in &nodes {
            assert_eq!(feed(&node.client, 1).await.0, 0);
        }
        Node::stop_all(nodes).await;
    }
}
