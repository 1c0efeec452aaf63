//! The broadcast state: what a node writes to it shows there at once, no matter who else writes,
//! and how many channels and dots there may be holds across nodes.

use futures_util::future::join_all;
use headmark::features::broadcasts::MAX_CHANNELS;
use headmark::features::dots::MAX_DOTS;
use serde_json::json;

use crate::both_tiers;
use crate::support::{Client, Node, Reply, eventually};

async fn send(client: &Client, channel: &str) -> Reply {
    client.post(&format!("/v1/broadcasts/{channel}"), &json!({"title": "t"})).await
}

async fn light(client: &Client, dot: &str) -> Reply {
    client.post(&format!("/v1/dots/{dot}/light"), &json!({})).await
}

async fn unread(client: &Client) -> i64 {
    client.summary(1).await["broadcasts"]["system"]["unread"].as_i64().unwrap_or(0)
}

/// How many of these were refused, each because it was one too many.
fn refused(replies: Vec<Reply>) -> i64 {
    replies.into_iter().filter(|reply| !reply.status.is_success()).fold(0, |refused, reply| {
        reply.problem(409, "too_many");
        refused + 1
    })
}

both_tiers! {
    async fn what_a_node_writes_shows_there_at_once_whoever_else_writes(world: World) {
        let nodes = world.nodes().await;
        for node in &nodes { assert_eq!(unread(&node.client).await, 0); }
        let write = async |node: &Node| {
            for n in 0..25 {
                let sent = send(&node.client, "system").await.ok();
                assert!(unread(&node.client).await >= sent["seq"].as_i64().unwrap(), "all up to {sent}");
                if n % 5 == 0 {
                    let lit = light(&node.client, "mall").await.ok();
                    assert!(node.client.summary(1).await["dots"]["mall"]["head"].as_i64() >= lit["head"].as_i64(), "{lit}");
                }
            }
        };
        join_all(nodes.iter().map(write)).await;
        let all = 25 * i64::try_from(nodes.len()).unwrap();
        for node in &nodes {
            eventually("the others' show too", async || unread(&node.client).await == all).await;
        }
        Node::stop_all(nodes).await;
    }

    async fn what_a_node_alone_writes_to_the_board_is_not_read_back(world: World) {
        let node = world.node().await;
        send(&node.client, "system").await.ok();
        // Nothing but the lanes reaches the database from here on: they have connections of their
        // own.
        node.app.state().db.close().await;
        let sent = send(&node.client, "system").await.ok();
        send(&node.client, "news").await.ok();
        light(&node.client, "mall").await.ok();
        assert_eq!(node.client.delete("/v1/broadcasts/system/1").await.status, 204);
        let broadcast_state = node.app.state().heads.broadcast_state();
        assert_eq!((broadcast_state.head, broadcast_state.channels["news"].head, broadcast_state.dots["mall"].head, &sent["seq"]), (5, 1, 1, &json!(2)));
        assert_eq!(broadcast_state.channels["system"].unread(0, 0), 1, "one of two was taken back");
        node.stop().await;
    }

    async fn nodes_that_make_channels_at_once_make_no_more_than_there_may_be(world: World) {
        let nodes = world.nodes().await;
        let first = &nodes[0].client;
        let names: Vec<_> = (0..MAX_CHANNELS - 5).map(|n| format!("early-{n}")).collect();
        assert_eq!(refused(join_all(names.iter().map(|name| send(first, name))).await), 0);
        let race: Vec<_> = nodes.iter().enumerate().flat_map(|(at, node)| (0..20).map(move |n| (node, format!("late-{at}-{n}")))).collect();
        let too_many = refused(join_all(race.iter().map(|(node, name)| send(&node.client, name))).await);
        assert_eq!(too_many, i64::try_from(race.len()).unwrap() - 5);
        for node in &nodes {
            node.app.state().heads.catch_up().await.unwrap();
            assert_eq!(i64::try_from(node.app.state().heads.broadcast_state().channels.len()).unwrap(), MAX_CHANNELS);
            send(&node.client, "early-1").await.ok();
            send(&node.client, "another").await.problem(409, "too_many");
        }
        Node::stop_all(nodes).await;
    }

    async fn nodes_that_make_dots_at_once_make_no_more_than_there_may_be(world: World) {
        let nodes = world.nodes().await;
        let first = &nodes[0].client;
        let names: Vec<_> = (0..MAX_DOTS - 5).map(|n| format!("early-{n}")).collect();
        assert_eq!(refused(join_all(names.iter().map(|name| light(first, name))).await), 0);
        let race: Vec<_> = nodes.iter().enumerate().flat_map(|(at, node)| (0..20).map(move |n| (node, format!("late-{at}-{n}")))).collect();
        let too_many = refused(join_all(race.iter().map(|(node, name)| light(&node.client, name))).await);
        assert_eq!(too_many, i64::try_from(race.len()).unwrap() - 5);
        for node in &nodes {
            node.app.state().heads.catch_up().await.unwrap();
            assert_eq!(i64::try_from(node.app.state().heads.broadcast_state().dots.len()).unwrap(), MAX_DOTS);
            light(&node.client, "early-1").await.ok();
            light(&node.client, "another").await.problem(409, "too_many");
        }
        Node::stop_all(nodes).await;
    }
}
