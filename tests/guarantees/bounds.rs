//! Whatever the load, memory, queues and waits are bounded, and the node stays alive.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::both_tiers;
use crate::support::Hand;
use crate::support::{Client, Dice, Process, eventually};

const CONNECTIONS: usize = 300;
const FLOOD: Duration = Duration::from_secs(4);

/// What a node may have in use with a few thousand users and several hundred connections; a debug
/// build at that.
const MEMORY_BYTES: u64 = 400 * 1024 * 1024;

/// Far more than it should be, for a machine that has other things to do.
const SLOWEST_LIVEZ: Duration = Duration::from_secs(3);

/// Writes and polls as fast as it can; returns how many were answered.
async fn flood(client: Client, mut dice: Dice, until: Instant) -> usize {
    let mut answers = 0;
    while Instant::now() < until {
        let user = 1 + dice.roll(5000);
        let reply = match dice.roll(3) {
            0 => client.get(&format!("/v1/users/{user}/badges")).await,
            1 => client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await,
            _ => {
                let items: Vec<_> = (0..200).map(|_| json!({"user_id": 1 + dice.roll(5000), "badge": "like"})).collect();
                client.post("/v1/badges/increment", &json!({"items": items})).await
            }
        };
        assert!(reply.status == 200 || reply.body["code"] == "overloaded" || reply.body["code"] == "outcome_unknown", "{}", reply.text);
        answers += usize::from(reply.status == 200);
    }
    answers
}

/// The slowest of the answers to `/livez`.
async fn slowest_livez(process: &Process, until: Instant) -> Duration {
    let mut slowest = Duration::ZERO;
    while Instant::now() < until {
        let asked = Instant::now();
        assert_eq!(process.client.get("/livez").await.status, 200);
        slowest = slowest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    slowest
}

both_tiers! {
    async fn a_flood_does_not_kill_a_node(world: World) {
        let process = world.process(&["--lane-queue", "2000", "--write-timeout-ms", "10000"], &[]).await;
        let until = Instant::now() + FLOOD;
        let clients = (1..=CONNECTIONS).map(|seed| tokio::spawn(flood(process.client.clone(), Dice::new(seed), until)));
        let clients: Vec<_> = clients.collect();
        let slowest = slowest_livez(&process, until).await;
        let memory = process.memory_bytes();
        let answers: usize = join_all(clients).await.into_iter().map(Result::unwrap).sum();
        assert!(answers > 100, "{answers} answers");
        assert!(slowest < SLOWEST_LIVEZ, "livez took {slowest:?}");
        assert!(memory < MEMORY_BYTES, "{memory} bytes in use");
    }

    async fn a_thousand_waiting_polls_do_not_kill_a_node(world: World) {
        let process = world.process(&["--waiting-polls", "1000"], &[]).await;
        let path = |n: usize| format!("/v1/users/{}/badges", 1 + n % 50);
        let tags = join_all((0..50).map(async |n| process.client.get(&path(n)).await.header("etag").to_owned())).await;
        let polls: Vec<_> = (0..1100)
            .map(|n| {
                let (client, path, tag) = (process.client.clone(), path(n), tags[n % 50].clone());
                tokio::spawn(async move { client.get_if_changed(&format!("{path}?wait=60"), &tag).await })
            })
            .collect();
        // Those for which there is no room are answered at once.
        let answered = || polls.iter().filter(|poll| poll.is_finished()).count();
        eventually("a hundred have no room to wait", async || answered() == 100).await;
        assert!(process.memory_bytes() < MEMORY_BYTES);
        let items: Vec<_> = (1..=50).map(|user| json!({"user_id": user, "badge": "mention"})).collect();
        process.client.post("/v1/badges/increment", &json!({"items": items})).await.ok();
        eventually("all are woken", async || answered() == 1100).await;
        let mut woken = 0;
        for poll in polls {
            let reply = poll.await.unwrap();
            assert!(reply.status == 304 || reply.body["total"] == 1, "{}", reply.text);
            woken += usize::from(reply.status == 200);
        }
        assert_eq!(woken, 1000);
    }

    async fn beyond_the_limit_requests_are_refused_and_livez_is_not(world: World) {
        let node = world.node_with(&["--max-in-flight", "20", "--waiting-polls", "19", "--lanes", "1"]).await;
        let mut hand = Hand::on(&world).await;
        hand.block().await;
        let writes: Vec<_> = (0..40)
            .map(|_| {
                let client = node.client.clone();
                tokio::spawn(async move { client.post("/v1/users/1/badges/mention/increment", &json!({})).await })
            })
            .collect();
        eventually("half are refused", async || writes.iter().filter(|write| write.is_finished()).count() == 20).await;
        node.client.get("/v1/users/2/badges").await.problem(503, "overloaded");
        assert_eq!(node.client.get("/livez").await.status, 200);
        assert_eq!(node.client.metric("headmark_lane_waiting").await, 20.0);
        hand.release().await;
        let mut taken = 0;
        for write in writes {
            let reply = write.await.unwrap();
            taken += i64::from(reply.status == 200);
            if reply.status != 200 {
                reply.problem(503, "overloaded");
            }
        }
        let summary = node.client.get("/v1/users/1/badges").await.ok();
        assert_eq!(summary["total"], taken);
        assert_eq!(taken, 20);
    }
}
