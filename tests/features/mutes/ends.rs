//! Mutes that end by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headmark::features::relations::mute_http::sweep_mutes;
use serde_json::{Value, json};

use super::{START, check, mute_until, muted, notify, numbers, send, time, unmute};
use crate::both_tiers;
use crate::features::feed::post;
use crate::support::{Client, Node};

const ME: i64 = 9;

/// What changes when a mute ends.
const POLLED: [&str; 7] = ["badges", "directs", "directs/1", "chats", "chats/direct/1", "feed", "mutes/ids"];

async fn muting(client: &Client) -> Value {
    client.get(&format!("/v1/users/{ME}/relations?ids=1")).await.ok()["items"][0]["muting"].clone()
}

both_tiers! {
    async fn a_mute_ends_at_its_time_without_a_write(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let mut nodes = vec![world.node_at(&at, &[]).await];
        if world.tier == crate::support::Tier::Server {
            nodes.push(world.node_at(&at, &[]).await);
        }
        let (client, other) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        client.summary(ME).await;
        client.follow(ME, 1).await;
        send(client, 1, ME, "a").await;
        post(client, 1, "a").await;
        mute_until(client, ME, 1, START + 10_000).await;
        send(other, 1, ME, "b").await;
        post(other, 1, "b").await;
        notify(client, 1, &[ME], None).await;
        for client in [client, other] {
            assert_eq!((numbers(client, ME).await, muted(client, ME).await, muting(client).await), ([0, 0, 0, 0], vec![1], json!(true)));
        }
        assert_eq!(client.get(&format!("/v1/users/{ME}/directs/1")).await.ok()["level_until"], time(START + 10_000));
        let mut tags = Vec::new();
        for path in POLLED {
            tags.push(client.get(&format!("/v1/users/{ME}/{path}")).await);
        }
        at.store(START + 9_999, Ordering::SeqCst);
        for (path, before) in POLLED.iter().zip(&tags) {
            assert_eq!(other.get_if_changed(&format!("/v1/users/{ME}/{path}"), before.header("etag")).await.status, 304, "{path}");
        }
        at.store(START + 10_000, Ordering::SeqCst);
        for (path, before) in POLLED.iter().zip(&tags) {
            for client in [client, other] {
                let after = client.get_if_changed(&format!("/v1/users/{ME}/{path}"), before.header("etag")).await;
                assert_eq!((after.status.as_u16(), &after.body["revision"]), (200, &before.body["revision"]), "{path}: nothing was written");
            }
        }
        for client in [client, other] {
            crate::support::eventually("both posts are counted", async || crate::features::feed::feed(client, ME).await.0 == 2).await;
            assert_eq!((numbers(client, ME).await, muted(client, ME).await, muting(client).await), ([2, 1, 2, 2], vec![], json!(false)));
            assert_eq!(client.get(&format!("/v1/users/{ME}/directs/1")).await.ok()["level"], "all");
        }
        check(&nodes[0], &[ME, 1]).await;
        // Notifications are shown from then on, those of that time not.
        notify(other, 1, &[ME], None).await;
        assert_eq!(client.get(&format!("/v1/users/{ME}/notifications")).await.ok()["items"].as_array().unwrap().len(), 1);
        // What is written to the chat, and the sweep, change nothing that is shown.
        send(other, 1, ME, "c").await;
        assert_eq!(numbers(client, ME).await, [3, 1, 4, 2]);
        assert_eq!(sweep_mutes(&nodes[0].app.state().contexts.relations).await.unwrap(), 1);
        assert_eq!(sweep_mutes(&nodes[0].app.state().contexts.relations).await.unwrap(), 0);
        for client in [client, other] {
            assert_eq!((numbers(client, ME).await, muted(client, ME).await, muting(client).await), ([3, 1, 4, 2], vec![], json!(false)));
        }
        check(&nodes[0], &[ME, 1]).await;
        // A mute that was changed ends when it now says.
        mute_until(client, ME, 1, START + 20_000).await;
        mute_until(other, ME, 1, START + 30_000).await;
        at.store(START + 20_000, Ordering::SeqCst);
        assert_eq!((numbers(client, ME).await, sweep_mutes(&nodes[0].app.state().contexts.relations).await.unwrap()), ([0, 0, 1, 0], 0));
        mute_until(client, ME, 1, START + 20_001).await;
        at.store(START + 20_001, Ordering::SeqCst);
        assert_eq!(numbers(other, ME).await, [3, 1, 4, 2]);
        // A new one after that, before any sweep.
        mute_until(other, ME, 1, START + 40_000).await;
        assert_eq!((numbers(client, ME).await, muted(client, ME).await), ([0, 0, 1, 0], vec![1]));
        assert_eq!(client.get(&format!("/v1/users/{ME}/mutes")).await.ok()["items"][0]["since"], time(START + 20_001));
        unmute(client, ME, 1).await;
        assert_eq!(numbers(other, ME).await, [3, 1, 4, 2]);
        check(&nodes[0], &[ME, 1]).await;
        Node::stop_all(nodes).await;
    }

    /// The chat says "none" until the last of its reasons ends.
    async fn a_mute_and_a_level_end_each_for_itself(world: World) {
        let at = Arc::new(AtomicI64::new(START));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        send(client, 1, ME, "a").await;
        let level = async || {
            let chat = client.get(&format!("/v1/users/{ME}/directs/1")).await.ok();
            (chat["level"].as_str().unwrap().to_owned(), chat["level_until"].clone(), numbers(client, ME).await[0])
        };
        let set = async |until: Option<i64>| {
            let mut body = json!({"level": "none"});
            if let Some(until) = until {
                body["until"] = time(until);
            }
            client.put(&format!("/v1/users/{ME}/directs/1/settings"), &body).await.ok();
        };
        for (of_mute, of_level, ends) in [(10, Some(20), 20), (20, Some(10), 20), (10, Some(10), 10)] {
            let start = at.load(Ordering::SeqCst);
            mute_until(client, ME, 1, start + of_mute).await;
            set(of_level.map(|until| start + until)).await;
            for now in [0, 9, 10, 19] {
                at.store(start + now, Ordering::SeqCst);
                let expected = if now < ends { ("none".to_owned(), time(start + ends), 0) } else { ("all".to_owned(), Value::Null, 1) };
                assert_eq!(level().await, expected, "{of_mute} {of_level:?} at {now}");
                check(&node, &[ME]).await;
            }
            at.store(start + 20, Ordering::SeqCst);
            assert_eq!(level().await, ("all".to_owned(), Value::Null, 1));
        }
        let start = at.load(Ordering::SeqCst);
        set(None).await;
        mute_until(client, ME, 1, start + 10).await;
        assert_eq!(level().await, ("none".to_owned(), Value::Null, 0), "the level does not end");
        at.store(start + 10, Ordering::SeqCst);
        assert_eq!(level().await, ("none".to_owned(), Value::Null, 0));
        check(&node, &[ME]).await;
        node.stop().await;
    }

    async fn the_end_of_a_mute_wakes_who_waits(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        client.summary(ME).await;
        client.follow(ME, 1).await;
        post(client, 1, "a").await;
        let sent = client.post(&format!("/v1/users/{ME}/inbox"), &json!({"sender_id": 1, "client_id": "a", "content": "a"})).await.ok();
        let now: headmark::base::clock::UnixMs = serde_json::from_value(sent["sent_at"].clone()).unwrap();
        mute_until(client, ME, 1, now.0 + 3000).await;
        let mut polls = Vec::new();
        for node in &nodes {
            for path in POLLED {
                let path = format!("/v1/users/{ME}/{path}");
                let tag = node.client.get(&path).await.header("etag").to_owned();
                let request = node.client.request(reqwest::Method::GET, &format!("{path}?wait=30")).header("if-none-match", tag);
                polls.push((path, tokio::spawn(Client::send(request))));
            }
        }
        let began = Instant::now();
        for (path, poll) in polls {
            assert_eq!(poll.await.unwrap().status, 200, "{path}");
        }
        assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
        assert_eq!(numbers(client, ME).await, [1, 1, 1, 1]);
        Node::stop_all(nodes).await;
    }
}
