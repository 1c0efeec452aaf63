//! Receipts of direct chats, against a list of what was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headmark::base::clock::DAY_MS;
use headmark::base::ids::UserId;
use headmark::features::inbox::expiry::sweep_devices;
use serde_json::{Value, json};

use super::{message, read, send, unread};
use crate::both_tiers;
use crate::support::{Client, Dice, Node, eventually};

const PATH: &str = "/v1/users/1/directs/2/receipts";

/// Delivered and read.
fn shown(body: &Value) -> (i64, i64) {
    (body["delivered_seq"].as_i64().unwrap(), body["read_seq"].as_i64().unwrap())
}

async fn put_cursor(client: &Client, device: &str, seq: i64) {
    client.put(&format!("/v1/users/2/devices/{device}/cursor"), &json!({"seq": seq})).await.ok();
}

async fn wait_for(node: &Node, tag: &str) -> tokio::task::JoinHandle<crate::support::Reply> {
    let request = node.client.request(reqwest::Method::GET, &format!("{PATH}?wait=60")).header("if-none-match", tag);
    let poll = tokio::spawn(Client::send(request));
    eventually("it waits", async || node.app.state().polling.waiting.taken() == 1).await;
    poll
}

both_tiers! {
    async fn receipts_are_in_the_numbers_of_the_senders_inbox(world: World) {
        let nodes = world.nodes().await;
        let (client, last) = (&nodes[0].client, nodes.last().unwrap());
        let nothing = client.get(PATH).await;
        insta::assert_snapshot!(nothing.text, @r#"{"delivered_seq":0,"read_seq":0}"#);
        // In the inbox of 2: from 1 at 2, 4, 6; in that of 1: at 1, 2, 3.
        for id in ["a", "b", "c"] {
            send(client, 3, 2, id).await;
            send(client, 1, 2, id).await;
        }
        assert_eq!(shown(&client.get(PATH).await.ok()), (0, 0));
        put_cursor(client, "phone", 5).await;
        put_cursor(client, "tablet", 1).await;
        let known = client.get(PATH).await;
        assert_eq!(shown(&known.body), (2, 0), "the furthest device counts");
        for node in &nodes {
            assert_eq!(node.client.get_if_changed(PATH, known.header("etag")).await.status, 304);
        }
        // The peer reads on another node.
        let poll = wait_for(&nodes[0], known.header("etag")).await;
        let written = Instant::now();
        read(&last.client, 2, 1, &json!({"up_to": 2})).await;
        let reply = poll.await.unwrap();
        assert_eq!(shown(&reply.body), (2, 1));
        // A device moves.
        let poll = wait_for(&nodes[0], reply.header("etag")).await;
        put_cursor(&last.client, "tablet", 6).await;
        assert_eq!(shown(&poll.await.unwrap().ok()), (3, 1));
        assert!(written.elapsed() < Duration::from_secs(4), "{:?}", written.elapsed());
        // An answer reads, and unread again is the peer's own view.
        client.post("/v1/users/1/inbox", &message(2, "re", "re")).await.ok();
        assert_eq!((unread(client, 2, 1, 1).await, shown(&client.get(PATH).await.ok())), (3, (3, 3)));
        assert_eq!(shown(&client.get("/v1/users/2/directs/1/receipts").await.ok()), (0, 0));
        client.get(&format!("{PATH}?wait=5")).await.problem(400, "wait_needs_tag");
        Node::stop_all(nodes).await;
    }

    async fn a_cursor_that_stays_wakes_nobody(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for id in ["a", "b"] {
            send(client, 1, 2, id).await;
        }
        put_cursor(client, "phone", 1).await;
        let mut listener = node.app.state().polling.cache.listen(UserId::try_from(2).unwrap());
        listener.ready().await;
        let mut is_woken = async || tokio::time::timeout(Duration::from_millis(300), listener.woken()).await.is_ok();
        // It may be the repeat of one after which the node ended.
        put_cursor(client, "phone", 1).await;
        // By what was written before, too.
        while is_woken().await {}
        for seq in [0, 1, 0, 1] {
            put_cursor(client, "phone", seq).await;
        }
        assert!(!is_woken().await, "it has not moved");
        put_cursor(client, "tablet", 0).await;
        assert!(is_woken().await, "a new device");
        put_cursor(client, "tablet", 2).await;
        assert!(is_woken().await, "it has moved");
        put_cursor(client, "tablet", 1).await;
        assert!(is_woken().await, "it may be the repeat of one after which the node ended");
        put_cursor(client, "tablet", 1).await;
        assert!(!is_woken().await, "it does not go back");
        // However often it is repeated.
        for _ in 0..11 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            put_cursor(client, "phone", 1).await;
        }
        assert!(is_woken().await, "once in five seconds");
        node.stop().await;
    }

    /// A poll that waits must not read the database as often as its peer writes.
    async fn changes_of_the_peer_wake_a_poll_some_times_a_second(world: World) {
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let client = &node.client;
        for id in ["a", "b"] {
            send(client, 1, 2, id).await;
        }
        put_cursor(client, "phone", 1).await;
        let tag = client.get(PATH).await.header("etag").to_owned();
        let poll = wait_for(&node, &tag).await;
        let statements = async || client.metric("headmark_database_statements_total").await;
        let (before, began) = (statements().await, Instant::now());
        while began.elapsed() < Duration::from_secs(2) {
            node.app.state().polling.cache.wake(UserId::try_from(2).unwrap()).await;
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
        // At most 20 looks, of two statements each, and those of the node itself.
        let read = statements().await - before;
        assert!(read < 120.0, "{read} statements");
        put_cursor(client, "phone", 2).await;
        assert_eq!(shown(&poll.await.unwrap().ok()), (2, 0));
        node.stop().await;
    }

    async fn what_a_device_has_fetched_stays_fetched_once_it_is_gone(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for id in ["a", "b", "c"] {
            send(client, 1, 2, id).await;
        }
        let delivered = async || shown(&client.get(PATH).await.ok()).0;
        put_cursor(client, "phone", 1).await;
        put_cursor(client, "tablet", 2).await;
        client.delete("/v1/users/2/devices/tablet").await.ok();
        assert_eq!(delivered().await, 2);
        client.delete("/v1/users/2/devices/phone").await.ok();
        assert_eq!(delivered().await, 2, "the furthest of those that are gone");
        insta::assert_snapshot!(client.get("/v1/users/2/devices").await.text, @r#"{"items":[],"head":3}"#);
        put_cursor(client, "old", 3).await;
        client.put("/v1/users/2/devices/young", &json!({"push": true})).await.ok();
        at.fetch_add(366 * DAY_MS, Ordering::SeqCst);
        assert_eq!(sweep_devices(&node.app.state().contexts.inbox).await.unwrap(), 2);
        assert_eq!((delivered().await, sweep_devices(&node.app.state().contexts.inbox).await.unwrap()), (3, 0));
        node.stop().await;
    }

    async fn receipts_match_a_list(world: World) {
        let nodes = world.nodes().await;
        let mut dice = Dice::new(77);
        // Of each message of 1 its numbers in both inboxes, and how far 2 and its devices are.
        let (mut sent, mut head, mut fetched, mut read_to) = (Vec::<(i64, i64)>::new(), 0, 0, 0);
        for step in 0..120 {
            let client = nodes[dice.roll(nodes.len())].client.clone();
            let place = i64::try_from(dice.roll(usize::try_from(head + 2).unwrap())).unwrap();
            match dice.roll(9) {
                0..=2 => {
                    let reply = client.post("/v1/users/2/inbox", &message(1, &format!("m{step}"), "x")).await.ok();
                    head = reply["seq"].as_i64().unwrap();
                    sent.push((head, reply["own_seq"].as_i64().unwrap()));
                }
                3 => head = send(&client, 3, 2, &format!("o{step}")).await,
                4 => {
                    let reply = client.post("/v1/users/1/inbox", &message(2, &format!("r{step}"), "x")).await.ok();
                    head = reply["own_seq"].as_i64().unwrap();
                    read_to = head;
                }
                5 => {
                    put_cursor(&client, &format!("d{}", dice.roll(2)), place).await;
                    fetched = fetched.max(place.min(head));
                }
                6 => _ = client.delete(&format!("/v1/users/2/devices/d{}", dice.roll(2))).await,
                7 => {
                    read(&client, 2, 1, &json!({"up_to": place})).await;
                    read_to = read_to.max(place.min(head));
                }
                _ => {
                    let last = |to: i64| sent.iter().rev().find(|(theirs, _)| *theirs <= to).map_or(0, |(_, own)| *own);
                    assert_eq!(shown(&client.get(PATH).await.ok()), (last(fetched), last(read_to)), "{sent:?} {fetched} {read_to}");
                }
            }
        }
        Node::stop_all(nodes).await;
    }
}
