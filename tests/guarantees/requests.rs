//! Requests to follow, while their user switches approval off and on, nodes die, and others act:
//! nothing stays open for ever, no count is wrong, and nobody is accepted who was not to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Dice, Node, Tier, eventually};

const ARGS: [&str; 4] = ["--follower-badge", "fans", "--request-badge", "asks"];

async fn approve(client: &Client, user: i64, approves: bool) -> bool {
    let settings = json!({"approve_follows": approves});
    let request = client.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&settings);
    Client::try_send(request).await.is_ok_and(|reply| reply.status == 200)
}

async fn counts(client: &Client, user: i64) -> [i64; 4] {
    let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.ok();
    ["following", "followers", "requests", "requests_sent"].map(|name| counts[name].as_i64().unwrap())
}

async fn badges(client: &Client, user: i64) -> [i64; 2] {
    let summary = client.summary(user).await;
    ["fans", "asks"].map(|name| summary["counters"][name]["unread"].as_i64().unwrap_or(0))
}

async fn relation(client: &Client, user: i64, other: i64) -> Value {
    client.get(&format!("/v1/users/{user}/relations?ids={other}")).await.ok()["items"][0].clone()
}

async fn no_difference(node: &Node) {
    let (recount, mut found) = (headmark::maintenance::recount::Recount { user: None, dry_run: true }, Vec::new());
    recount.run(&node.app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
    assert_eq!(found, Vec::<String>::new());
}

/// Follows and unfollows a star without end; what is acknowledged is one of the two that may be.
async fn pester(client: Client, fan: i64, star: i64, stop: Arc<AtomicBool>) -> bool {
    let mut dice = Dice::new(usize::try_from(fan).unwrap());
    let mut wants = false;
    while !stop.load(Ordering::Relaxed) {
        wants = dice.roll(3) > 0;
        if wants {
            let told = client.put(&format!("/v1/users/{fan}/following/{star}"), &json!({})).await.ok();
            assert!((told["following"] == true) != (told["requested"] == true), "{told}");
        } else {
            client.unfollow(fan, star).await;
        }
    }
    wants
}

both_tiers! {
    /// A follow that saw the approval commits before the switch: so it is among those accepted.
    async fn no_request_is_left_behind_by_a_switch(world: World) {
        let mut nodes = vec![world.node_with(&ARGS).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&ARGS).await);
        }
        let last = &nodes.last().unwrap().client;
        for round in 0..6 {
            let star = 1000 + round;
            assert!(approve(&nodes[0].client, star, true).await);
            let stop = Arc::new(AtomicBool::new(false));
            let fans = (1..=16).map(|fan| {
                let client = nodes[usize::try_from(fan).unwrap() % nodes.len()].client.clone();
                tokio::spawn(pester(client, fan, star, Arc::clone(&stop)))
            });
            let fans: Vec<_> = fans.collect();
            for switch in 0..4 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                assert!(approve(if switch % 2 == 0 { last } else { &nodes[0].client }, star, switch % 2 == 1).await);
            }
            assert!(approve(last, star, false).await);
            stop.store(true, Ordering::Relaxed);
            let wanted: Vec<bool> = join_all(fans).await.into_iter().map(Result::unwrap).collect();
            let fans = i64::try_from(wanted.iter().filter(|wants| **wants).count()).unwrap();
            for node in &nodes {
                eventually("all who want to follow do", async || counts(&node.client, star).await == [0, fans, 0, 0]).await;
                assert_eq!(badges(&node.client, star).await, [fans, 0]);
                for (fan, wants) in (1..).zip(&wanted) {
                    let seen = relation(&node.client, fan, star).await;
                    assert_eq!((seen["following"] == true, seen["requested"] == true), (*wants, false), "{fan}");
                }
            }
        }
        no_difference(&nodes[0]).await;
        Node::stop_all(nodes).await;
    }

    /// Two nodes accept, refuse and withdraw what a third accepts as a whole.
    async fn answers_race_with_a_switch(world: World) {
        let mut nodes = vec![world.node_with(&ARGS).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&ARGS).await);
        }
        let (first, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        for star in 1000..1006 {
            assert!(approve(first, star, true).await);
            join_all((1..=40).map(|fan| first.follow(fan, star))).await;
            let act = async |fan: i64| {
                let client = if fan % 2 == 0 { first } else { last };
                match fan % 5 {
                    0 => _ = Client::send(client.request(Method::PUT, &format!("/v1/users/{star}/follow-requests/{fan}"))).await,
                    1 => _ = client.delete(&format!("/v1/users/{star}/follow-requests/{fan}")).await,
                    2 => client.unfollow(fan, star).await,
                    3 => _ = Client::send(client.request(Method::PUT, &format!("/v1/users/{star}/blocks/{fan}"))).await,
                    _ => {}
                }
            };
            let (switched, _) = tokio::join!(approve(last, star, false), join_all((1..=40).map(act)));
            assert!(switched);
            eventually("nothing is open", async || counts(first, star).await[2] == 0).await;
            let mut followers = 0;
            for fan in 1..=40 {
                let seen = relation(last, fan, star).await;
                assert_eq!(seen["requested"], false);
                let follows = seen["following"] == true;
                followers += i64::from(follows);
                match fan % 5 {
                    0 | 4 => assert!(follows, "{fan}"),
                    2 | 3 => assert!(!follows, "{fan}"),
                    // Refused before it was accepted, or too late.
                    _ => {}
                }
            }
            assert_eq!((counts(first, star).await, badges(last, star).await), ([0, followers, 0, 0], [followers, 0]));
        }
        no_difference(&nodes[0]).await;
        Node::stop_all(nodes).await;
    }

    /// The node that was told dies at any moment; another, or the same started again, goes on.
    async fn kill_9_while_requests_are_accepted_loses_none(world: World) {
        const FANS: i64 = 350;
        let mut doomed = world.process(&ARGS, &[]).await;
        let survivor = if world.tier == Tier::Server { Some(world.node_with(&ARGS).await) } else { None };
        let mut switched = 0;
        for (round, after_ms) in [0, 3, 8, 15, 30, 60].into_iter().enumerate() {
            let star = 5000 + i64::try_from(round).unwrap();
            let client = doomed.client.clone();
            assert!(approve(&client, star, true).await);
            for fans in (1..=FANS).collect::<Vec<_>>().chunks(50) {
                join_all(fans.iter().map(|fan| client.follow(*fan, star))).await;
            }
            assert_eq!(counts(&client, star).await[2], FANS);
            let (told, ()) = tokio::join!(approve(&client, star, false), async {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
                doomed.kill().await;
            });
            doomed = world.process(&ARGS, &[]).await;
            let client = survivor.as_ref().map_or_else(|| doomed.client.clone(), |node| node.client.clone());
            let settings = client.get(&format!("/v1/users/{star}/settings")).await.ok();
            let is_off = settings["approve_follows"] == false;
            assert!(is_off || !told, "what was acknowledged stays");
            switched += i64::from(is_off);
            if is_off {
                eventually("all are accepted", async || counts(&client, star).await == [0, FANS, 0, 0]).await;
                assert_eq!(badges(&client, star).await, [FANS, 0]);
                for fan in [1, FANS / 2, FANS] {
                    assert_eq!(relation(&doomed.client, fan, star).await["following"], true);
                }
            } else {
                assert_eq!(counts(&client, star).await, [0, 0, FANS, 0]);
            }
        }
        assert!(switched > 0, "it was always killed before the switch");
        doomed.kill().await;
        let node = match survivor {
            Some(node) => node,
            None => world.node_with(&ARGS).await,
        };
        no_difference(&node).await;
        node.stop().await;
    }
}
