//! Devices that come and go while others write: each gets everything once, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{inbox, message, seqs, sums};
use crate::both_tiers;
use crate::support::{Client, Dice, Node};

const WRITERS: i64 = 5;
const EACH: i64 = 40;

/// A device that fetches until it has everything: now and then it is away, comes back through
/// another node, and goes on from the cursor that the server has.
async fn device(nodes: Vec<Client>, name: String, seed: usize) -> Vec<String> {
    let mut dice = Dice::new(seed);
    let (mut got, mut after): (Vec<String>, i64) = (Vec::new(), 0);
    let all = WRITERS * EACH;
    while i64::try_from(got.len()).unwrap() < all {
        let client = &nodes[dice.roll(nodes.len())];
        let path = format!("/v1/users/2/inbox?after={after}&limit={}&wait={}", 1 + dice.roll(30), dice.roll(3));
        let found = client.get(&path).await.ok();
        let shown = seqs(&found);
        assert_eq!(shown, (after + 1..=after + i64::try_from(shown.len()).unwrap()).collect::<Vec<_>>(), "no gap, nothing twice");
        got.extend(found["items"].as_array().unwrap().iter().map(|item| item["content"].as_str().unwrap().to_owned()));
        after = found["next_after"].as_i64().unwrap();
        assert!(found["head"].as_i64() >= Some(after) && found["has_more"] == (found["head"] != after));
        if dice.roll(3) == 0 {
            let cursor = client.put(&format!("/v1/users/2/devices/{name}/cursor"), &json!({"seq": after})).await.ok();
            assert_eq!(cursor["cursor"], after);
        }
        if dice.roll(6) == 0 {
            // Away, and it has lost what it did not put.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let devices = nodes[dice.roll(nodes.len())].get("/v1/users/2/devices").await.ok();
            let mine = devices["items"].as_array().unwrap().iter().find(|item| item["device_id"] == name);
            after = mine.map_or(0, |item| item["cursor"].as_i64().unwrap());
            got.truncate(usize::try_from(after).unwrap());
        }
    }
    got
}

/// Sends one after the other, each up to three times.
async fn writer(nodes: Vec<Client>, sender: i64) {
    let mut dice = Dice::new(usize::try_from(sender).unwrap());
    for n in 0..EACH {
        let body = message(sender, &format!("c-{n}"), &format!("{sender}:{n}"));
        let mut first = None;
        for _ in 0..=dice.roll(3) {
            let reply = nodes[dice.roll(nodes.len())].post("/v1/users/2/inbox", &body).await;
            assert_eq!(reply.status, if first.is_none() { 201 } else { 200 });
            let seq = reply.ok()["seq"].clone();
            assert_eq!(first.get_or_insert(seq.clone()), &seq);
        }
    }
}

both_tiers! {
    async fn three_devices_get_everything_once_and_in_order(world: World) {
        let nodes = world.nodes().await;
        let clients: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
        let writers = (100..100 + WRITERS).map(|sender| tokio::spawn(writer(clients.clone(), sender)));
        let writers: Vec<_> = writers.collect();
        let devices: Vec<_> = (1..=3).map(|n| tokio::spawn(device(clients.clone(), format!("d{n}"), n))).collect();
        for writer in join_all(writers).await {
            writer.unwrap();
        }
        let got: Vec<_> = join_all(devices).await.into_iter().map(Result::unwrap).collect();
        assert!(got.iter().all(|device| *device == got[0]));
        for sender in 100..100 + WRITERS {
            let mine: Vec<_> = got[0].iter().filter(|text| text.starts_with(&format!("{sender}:"))).cloned().collect();
            assert_eq!(mine, (0..EACH).map(|n| format!("{sender}:{n}")).collect::<Vec<_>>(), "in the order in which it was sent");
        }
        assert_eq!(sums(&nodes[0], 2).await, (WRITERS * EACH, WRITERS));
        Node::stop_all(nodes).await;
    }

    async fn a_reader_beside_many_writers_sees_no_gap(world: World) {
        let nodes = world.nodes().await;
        let done = Arc::new(AtomicI64::new(0));
        let sends = (0..8).map(|sender| {
            let (client, done) = (nodes[usize::try_from(sender).unwrap() % nodes.len()].client.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                for n in 0..25 {
                    // Users whose rows are locked in another order than they are named.
                    client.post("/v1/users/2/inbox", &message(sender + 1, &format!("{n}"), "x")).await.ok();
                    client.post(&format!("/v1/users/{}/inbox", sender + 1), &message(2, &format!("{n}"), "y")).await.ok();
                }
                done.fetch_add(1, Ordering::SeqCst);
            })
        });
        let sends: Vec<_> = sends.collect();
        let mut last = [0; 2];
        while done.load(Ordering::SeqCst) < 8 {
            for (node, last) in nodes.iter().zip(&mut last) {
                let found = node.client.get(&format!("/v1/users/2/inbox?after={}&limit=100", (*last - 20).max(0))).await.ok();
                let shown = seqs(&found);
                let from = (*last - 20).max(0) + 1;
                assert_eq!(shown, (from..from + i64::try_from(shown.len()).unwrap()).collect::<Vec<_>>());
                assert!(shown.last().copied().unwrap_or(0) >= *last, "what was seen is there");
                *last = shown.last().copied().unwrap_or(0);
            }
        }
        for send in sends {
            send.await.unwrap();
        }
        // To oneself there is one row, and not two: 2 is one of the senders.
        assert_eq!(inbox(&nodes[0].client, 2, "").await["head"], 7 * 25 * 2 + 25);
        Node::stop_all(nodes).await;
    }
}
