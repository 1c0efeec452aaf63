//! Nodes die, by SIGKILL under load and at each step of a write: no acknowledged write is lost,
//! none counts twice, and no poll goes back.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::storm::Storm;
use super::truth::{Truth, poll};
use crate::both_tiers;
use crate::support::{Client, Nodes, Process, Tier, World, connect, eventually};

/// How often the node is killed.
const DEATHS: usize = 5;

/// Changes that are to be acknowledged between two deaths, so that each comes in the middle of the
/// work.
const BETWEEN_DEATHS: i64 = 60;

/// Kills the node in the first place again and again, and puts a new one there.
async fn keep_killing(world: &World, storm: &Storm, mut process: Process) -> Process {
    for death in 1..=DEATHS {
        let enough = i64::try_from(death).unwrap() * BETWEEN_DEATHS;
        while storm.acknowledged() < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        process.kill().await;
        storm.nodes.set(0, None);
        process = world.process(&[], &[]).await;
        storm.nodes.set(0, Some(process.client.clone()));
    }
    process
}

/// Writes what the failpoint lets pass, then three at once, in the middle of which the node dies.
/// Returns which of the three were acknowledged.
async fn write_until_death(doomed: &mut Process) -> usize {
    for n in 1..=2 {
        let raised = doomed.client.post_once("/v1/users/1/badges/mention/increment", &format!("early-{n}"), &json!({})).await.ok();
        assert_eq!(raised["head"], n);
    }
    // The cache has the user, and shows what is about to be outdated.
    for _ in 0..2 {
        assert_eq!(poll(&doomed.client, 1).await.head("mention"), 2);
    }
    let client = doomed.client.clone();
    let last = join_all((1..=3).map(|n| increment(&client, n))).await;
    assert!(!doomed.ended().await.success());
    last.iter().filter(|acknowledged| **acknowledged).count()
}

async fn increment(client: &Client, n: usize) -> bool {
    let request = client.request(reqwest::Method::POST, "/v1/users/1/badges/mention/increment");
    let sent = Client::try_send(request.header("idempotency-key", format!("late-{n}")).json(&json!({}))).await;
    sent.is_ok_and(|reply| reply.status == 200)
}

/// The node dies at this step of its third increment: the first poll in between is a write too, the
/// enrolment.
async fn dies_at(world: World, step: &str) {
    let survivor = if world.tier == Tier::Server { Some(world.node().await) } else { None };
    let mut doomed = world.process(&[], &[("FAILPOINTS", &format!("{step}=3*off->return"))]).await;
    let acknowledged = write_until_death(&mut doomed).await;
    let survivor = match survivor {
        Some(survivor) => survivor,
        None => world.node().await,
    };
    let mut truth = Truth::of(&world).await;
    let least = i64::try_from(2 + acknowledged).unwrap();
    // Well past the death, while the dead one's lease holds and a backend may still be at its
    // commit.
    for _ in 0..100 {
        let before = truth.summary(1).await;
        let shown = poll(&survivor.client, 1).await;
        assert!(shown.head("mention") >= least && shown.revision >= before.revision, "{before:?} but {shown:?}");
    }
    for n in 1..=3 {
        survivor.client.post_once("/v1/users/1/badges/mention/increment", &format!("late-{n}"), &json!({})).await.ok();
    }
    survivor.client.post("/v1/users/1/badges/mention/reset", &json!({"up_to": 4})).await.ok();
    let summary = truth.summary(1).await;
    assert_eq!(summary.counters["mention"], (1, 5), "each once");
    assert_eq!(poll(&survivor.client, 1).await, summary);
    if world.tier == Tier::Server {
        let mut redis = connect(&world.redis_url).await.unwrap();
        let key = format!("{}{{u:1}}", world.prefix);
        eventually("the lease has ended, and the entry is filled again", async || {
            assert_eq!(poll(&survivor.client, 1).await, summary);
            let dirty: bool = deadpool_redis::redis::cmd("HEXISTS").arg(&key).arg("!d").query_async(&mut redis).await.unwrap();
            !dirty
        })
        .await;
    }
    survivor.client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
    assert_eq!(poll(&survivor.client, 1).await.counters["mention"], (2, 6));
}

both_tiers! {
    async fn kill_9_under_load_loses_and_doubles_nothing(world: World) {
        let process = world.process(&[], &[]).await;
        let mut clients = vec![process.client.clone()];
        let survivor = if world.tier == Tier::Server { Some(world.node().await) } else { None };
        clients.extend(survivor.iter().map(|node| node.client.clone()));
        let mut storm = Storm::new(Nodes::of(clients));
        storm.calm = false;
        storm.steps = 150;
        let mut last = None;
        storm.rage(async { last = Some(keep_killing(&world, &storm, process).await) }).await;
        assert!(last.is_some(), "the work was over before the last death; make more of it");
        storm.settle(&mut Truth::of(&world).await).await;
    }

    async fn kill_after_begin_write(world: World) {
        dies_at(world, "lane::after_begin_write").await;
    }

    async fn kill_before_commit(world: World) {
        dies_at(world, "lane::before_commit").await;
    }

    async fn kill_after_commit(world: World) {
        dies_at(world, "lane::after_commit").await;
    }

    async fn kill_after_apply_write(world: World) {
        dies_at(world, "lane::after_apply_write").await;
    }
}
