//! Nodes die while they tell of changed numbers: the last change of a user with a push device is
//! told all the same, whatever the step.

use std::time::Duration;

use headmark::base::clock::{Clock, UnixMs};
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Process, World, eventually_within};

/// How a user's numbers change.
#[derive(Clone, Copy, PartialEq)]
enum Cause {
    /// A message in a group that is read.
    Message,
    Broadcast,
    /// The end of a level.
    LevelEnds,
    /// A write of the user's own.
    Increment,
}

async fn total(client: &Client) -> (i64, i64) {
    loop {
        let reply = client.post("/v1/badges/query", &json!({"user_ids": [2]})).await;
        if reply.status != 503 {
            let summary = reply.ok()["items"][0].clone();
            return (summary["total"].as_i64().unwrap(), summary["revision"].as_i64().unwrap());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The events of the user after a number, and the end.
async fn unread(client: &Client, mut after: i64) -> (Vec<Value>, i64) {
    let mut all = Vec::new();
    loop {
        let page = client.get(&format!("/v1/events?types=unread&after={after}")).await.ok();
        all.extend(page["items"].as_array().unwrap().iter().cloned());
        after = page["next_after"].as_i64().unwrap();
        if page["has_more"] == false {
            return (all, after);
        }
    }
}

/// A member with a push device, of whom all is told. The end of events.
async fn prepare(world: &World) -> i64 {
    let node = world.node().await;
    let client = &node.client;
    client.put("/v1/groups/9", &json!({})).await.ok();
    client.post("/v1/groups/9/members", &json!({"user_ids": [1, 2]})).await.ok();
    client.get("/v1/users/2/badges").await.ok();
    client.put("/v1/users/2/devices/phone", &json!({"push": true})).await.ok();
    // Counts once the level has ended.
    client.post("/v1/groups/9/messages", &json!({"sender_id": 1, "client_id": "first", "content": "x"})).await.ok();
    let (mut end, mut still) = (0, 0);
    while still < 50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (events, reached) = unread(client, end).await;
        still = if events.is_empty() { still + 1 } else { 0 };
        end = reached;
    }
    node.stop().await;
    end
}

/// Which may be acknowledged or not.
async fn happens(client: &Client, cause: Cause) {
    let (path, body) = match cause {
        Cause::Message => ("/v1/groups/9/messages", json!({"sender_id": 1, "client_id": "m", "content": "x"})),
        Cause::Broadcast => ("/v1/broadcasts/news", json!({"title": "x"})),
        Cause::Increment => ("/v1/users/2/badges/mention/increment", json!({})),
        Cause::LevelEnds => {
            let until = UnixMs(Clock::System.now().0 + 1500).to_string();
            client.put("/v1/users/2/groups/9/settings", &json!({"level": "none", "until": until})).await.ok();
            return;
        }
    };
    let request = client.request(reqwest::Method::POST, path).header("idempotency-key", "late").json(&body);
    let _may_fail = Client::try_send(request).await;
}

async fn dies_at(world: World, step: &str, cause: Cause) {
    let end = prepare(&world).await;
    let mut doomed: Process = world.process(&[], &[("FAILPOINTS", &format!("{step}=return"))]).await;
    happens(&doomed.client, cause).await;
    assert!(!doomed.ended().await.success());
    let node = world.node().await;
    let client = &node.client;
    if cause != Cause::LevelEnds {
        // As a caller does who was not answered.
        happens(client, cause).await;
    }
    let expected = if cause == Cause::LevelEnds { 1 } else { 2 };
    eventually_within(20, "it is told, with the number that it makes", async || {
        let (events, _) = unread(client, end).await;
        let (total, revision) = total(client).await;
        events.last().is_some_and(|event| event["data"] == json!({"user_id": "2", "revision": revision})) && total == expected
    })
    .await;
    if cause == Cause::LevelEnds {
        // The level itself was told; its end is another event.
        eventually_within(20, "the end of the level is told", async || unread(client, end).await.0.len() >= 2).await;
    }
    node.stop().await;
}

both_tiers! {
    async fn kill_before_a_cause_becomes_a_job(world: World) {
        dies_at(world, "push::before_follow", Cause::Message).await;
    }

    async fn kill_after_a_cause_has_become_a_job(world: World) {
        dies_at(world, "push::after_follow", Cause::Broadcast).await;
    }

    async fn kill_before_a_page_of_a_job(world: World) {
        dies_at(world, "push::before_page", Cause::Message).await;
    }

    async fn kill_after_a_page_of_a_job(world: World) {
        dies_at(world, "push::after_page", Cause::Broadcast).await;
    }

    async fn kill_before_the_turn_of_a_user(world: World) {
        dies_at(world, "push::before_turn", Cause::LevelEnds).await;
    }

    async fn kill_after_the_turn_of_a_user(world: World) {
        dies_at(world, "push::after_turn", Cause::LevelEnds).await;
    }

    async fn kill_before_the_commit_of_a_raise(world: World) {
        dies_at(world, "lane::before_commit", Cause::Increment).await;
    }

    async fn kill_after_the_commit_of_a_raise(world: World) {
        dies_at(world, "lane::after_commit", Cause::Increment).await;
    }

    /// Under load, again and again, with two nodes where the tier has them.
    async fn kill_under_load_loses_no_last_event(world: World) {
        let end = prepare(&world).await;
        let mut process = world.process(&[], &[]).await;
        let other = if world.tier == crate::support::Tier::Server { Some(world.node().await) } else { None };
        let mut sent = 0;
        for _death in 0..4 {
            let clients: Vec<_> = std::iter::once(process.client.clone()).chain(other.as_ref().map(|node| node.client.clone())).collect();
            for n in 0..40 {
                sent += 1;
                let body = json!({"sender_id": 1, "client_id": format!("m{sent}"), "content": "x"});
                clients[n % clients.len()].post("/v1/groups/9/messages", &body).await.ok();
                clients[n % clients.len()].post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
            process.kill().await;
            process = world.process(&[], &[]).await;
        }
        let client = process.client.clone();
        let mut read = end;
        let mut shown = (0, 0);
        eventually_within(30, "a reader that asks after each event has the last numbers", async || {
            let (events, reached) = unread(&client, read).await;
            if !events.is_empty() {
                shown = total(&client).await;
                read = reached;
            }
            shown.0 == 1 + 2 * sent
        })
        .await;
        assert_eq!(shown, total(&client).await);
    }
}
