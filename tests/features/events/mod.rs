//! `GET /v1/events`: exactly what happened, numbered so that nothing is skipped.

mod types;

use std::collections::BTreeMap;
use std::time::Duration;

use deadpool_redis::redis::{Value as RedisValue, from_redis_value};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Hand, Node, Pause, Process, Proxy, Tier, World, ask, connect, eventually, eventually_within};

/// Reads on until there are so many events.
pub async fn all(client: &Client, least: usize) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    let mut after = 0;
    while events.len() < least {
        let page = client.get(&format!("/v1/events?after={after}&limit=7&wait=10")).await.ok();
        let items = page["items"].as_array().unwrap();
        assert!(!items.is_empty(), "{} of {least} events came", events.len());
        for event in items {
            assert_eq!(event["id"], after + 1, "no gap, no repeat");
            after += 1;
            events.push(event.clone());
        }
        assert_eq!(page["next_after"], after);
    }
    events
}

/// Removes what is kept no longer.
async fn sweep(node: &Node) {
    let state = node.app.state();
    while headmark::engine::events::sweep(&state.db, &state.contexts.events.config, state.clock.now()).await.unwrap() > 0 {}
}

both_tiers! {
    async fn every_change_is_told_once_and_in_order(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let empty = client.get("/v1/events").await.ok();
        assert_eq!(empty, json!({"items": [], "next_after": 0, "has_more": false}));
        client.follow(1, 2).await;
        client.follow(1, 2).await;
        client.put("/v1/users/2/following/1", &json!({"visibility": "secret", "special": true})).await.ok();
        client.put("/v1/users/1/blocks/2", &json!({})).await.ok();
        client.delete("/v1/users/1/blocks/2").await;
        client.delete("/v1/users/1/blocks/2").await;
        Client::send(client.request(Method::PUT, "/v1/users/1/following/1")).await.problem(422, "self_relation");
        client.post("/v1/broadcasts/system", &json!({"title": "Hello"})).await.ok();
        client.delete("/v1/broadcasts/system/1").await;
        client.delete("/v1/broadcasts/system/1").await;
        client.put("/v1/users/7/posts/p1", &json!({})).await.ok();
        client.put("/v1/users/7/posts/p1", &json!({})).await.ok();
        client.delete("/v1/users/7/posts/p1").await;
        client.delete("/v1/users/7/posts/p1").await;
        client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
        let relation = |user: &str, target: &str, following, secret, special, blocking| {
            json!({"type": "relation", "data": {"user_id": user, "target_id": target, "following": following, "requested": false, "secret": secret, "special": special, "blocking": blocking}})
        };
        let expected = [
            relation("1", "2", true, false, false, false),
            relation("2", "1", true, true, true, false),
            relation("1", "2", false, false, false, true),
            relation("2", "1", false, false, false, false),
            relation("1", "2", false, false, false, false),
            json!({"type": "broadcast", "data": {"channel": "system", "seq": 1, "withdrawn": false}}),
            json!({"type": "broadcast", "data": {"channel": "system", "seq": 1, "withdrawn": true}}),
            json!({"type": "post", "data": {"user_id": "7", "post_id": "p1", "deleted": false}}),
            json!({"type": "post", "data": {"user_id": "7", "post_id": "p1", "deleted": true}}),
        ];
        let told = all(client, expected.len()).await;
        for (event, expected) in told.iter().zip(&expected) {
            assert_eq!(json!({"type": event["type"], "data": event["data"]}), *expected);
            assert!(event["at"].as_str().unwrap().ends_with('Z'), "{event}");
        }
        assert_eq!(client.get("/v1/events?after=9").await.ok(), json!({"items": [], "next_after": 9, "has_more": false}), "and nothing else");
        let page = client.get("/v1/events?after=3&limit=2").await.ok();
        assert_eq!((page["items"].as_array().unwrap().as_slice(), &page["next_after"], &page["has_more"]), (&told[3..5], &json!(5), &json!(true)));
        node.stop().await;
        let node = world.node().await;
        assert_eq!(all(&node.client, 9).await, told, "they are there after a restart");
        node.stop().await;
    }

    async fn a_reader_waits_for_what_comes(world: World) {
        let nodes = world.nodes().await;
        let (writer, reader) = (&nodes[0].client, nodes[nodes.len() - 1].client.clone());
        let waiting = tokio::spawn(async move { reader.get("/v1/events?after=0&wait=20").await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        writer.follow(1, 2).await;
        let told = tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("it is told soon").unwrap().ok();
        assert_eq!(told["next_after"], 1);
        assert_eq!(writer.get("/v1/events?after=1").await.header("x-poll-interval"), "1", "for one that was answered too early");
        for bad in ["after=-1", "after=x", "limit=0", "limit=1001", "wait=61", "until=3"] {
            writer.get(&format!("/v1/events?{bad}")).await.problem(400, "invalid_query");
        }
        Node::stop_all(nodes).await;
    }

    async fn only_services_read_events(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        node.client.get("/v1/events").await.problem(401, "unauthorized");
        node.user(1).get("/v1/events").await.problem(403, "forbidden");
        node.service().get("/v1/events").await.ok();
        node.stop().await;
    }

    /// Several read while many write at every node: each reads the same numbers, without a gap, and
    /// each pair's changes in their order.
    async fn nothing_is_skipped_under_load(world: World) {
        const WRITERS: i64 = 12;
        const STEPS: i64 = 40;
        let nodes = world.nodes().await;
        let clients: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
        let write = |writer: i64| {
            let clients = clients.clone();
            async move {
                for step in 0..STEPS {
                    let client = &clients[usize::try_from(writer + step).unwrap() % clients.len()];
                    if step % 2 == 0 { drop(client.follow(writer, 1000).await) } else { client.unfollow(writer, 1000).await }
                }
            }
        };
        let total = usize::try_from(WRITERS * STEPS).unwrap();
        let readers: Vec<_> = clients.iter().flat_map(|client| [client.clone(), client.clone()]).map(|client| tokio::spawn(async move { all(&client, total).await })).collect();
        join_all((1..=WRITERS).map(write)).await;
        let mut read = Vec::new();
        for reader in readers {
            read.push(tokio::time::timeout(Duration::from_secs(30), reader).await.expect("all events come").unwrap());
        }
        assert!(read.iter().all(|events| *events == read[0]));
        let mut last: BTreeMap<String, bool> = BTreeMap::new();
        for event in &read[0] {
            let (user, following) = (event["data"]["user_id"].as_str().unwrap().to_owned(), event["data"]["following"] == true);
            assert_eq!(last.insert(user, following).unwrap_or(false), !following, "in the order in which they happened");
        }
        Node::stop_all(nodes).await;
    }

    async fn what_is_beyond_the_last_event_is_of_another_history(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        let beyond = async |after: i64| {
            for node in &nodes {
                // At once, rather than after the wait: nothing of that history will ever come.
                let path = format!("/v1/events?after={after}&wait=60");
                let asked = tokio::time::timeout(std::time::Duration::from_secs(30), node.client.get(&path)).await;
                let body = asked.expect("no wait").problem(410, "gone");
                assert!(body["detail"].as_str().unwrap().contains("restored"), "{body}");
            }
        };
        assert_eq!(client.get("/v1/events?after=0").await.ok()["items"], json!([]), "nothing has happened yet");
        beyond(1).await;
        for target in 2..=4 {
            client.follow(1, target).await;
        }
        all(client, 3).await;
        for node in &nodes {
            assert_eq!(node.client.get("/v1/events?after=3").await.ok(), json!({"items": [], "next_after": 3, "has_more": false}));
        }
        beyond(4).await;
        beyond(9_007_199_254_740_991).await;
        Node::stop_all(nodes).await;
    }

    async fn what_is_kept_no_longer_is_gone(world: World) {
        let at = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--event-ttl-hours", "1"]).await;
        for target in 2..=4 {
            node.client.follow(1, target).await;
            all(&node.client, usize::try_from(target).unwrap() - 1).await;
        }
        at.fetch_add(3_700_000, std::sync::atomic::Ordering::SeqCst);
        node.client.follow(1, 5).await;
        all(&node.client, 4).await;
        sweep(&node).await;
        for gone in [0, 1, 2] {
            let body = node.client.get(&format!("/v1/events?after={gone}")).await.problem(410, "gone");
            assert!(body["detail"].as_str().unwrap().contains("after=3"), "{body}");
        }
        for path in ["/v1/events?after=3", "/v1/events"] {
            let page = node.client.get(path).await.ok();
            assert_eq!((&page["items"][0]["id"], &page["next_after"]), (&json!(4), &json!(4)), "without it, from the first that is kept");
        }
        node.stop().await;
    }

    async fn who_names_no_position_loses_nothing_to_a_sweep(world: World) {
        let at = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--event-ttl-hours", "1"]).await;
        for target in 2..=4 {
            node.client.follow(1, target).await;
            all(&node.client, usize::try_from(target).unwrap() - 1).await;
        }
        at.fetch_add(3_700_000, std::sync::atomic::Ordering::SeqCst);
        node.client.follow(1, 5).await;
        eventually("it is numbered", async || node.client.get("/v1/events?after=3").await.ok()["next_after"] == 4).await;
        // While the page is read, a sweep removes the first three.
        let (pause, reader) = (Pause::at("events::searched"), node.client.clone());
        let reading = tokio::spawn(async move { reader.get("/v1/events").await });
        pause.reached().await;
        sweep(&node).await;
        pause.go_on().await;
        let page = reading.await.unwrap().ok();
        let ids: Vec<_> = page["items"].as_array().unwrap().iter().map(|event| event["id"].clone()).collect();
        assert_eq!((ids, &page["next_after"], &page["has_more"]), (vec![json!(4)], &json!(4), &json!(false)));
        node.stop().await;
    }

    /// More rows than one round looks at are of a node whose clock was a year ahead, and one of a node whose clock
    /// was half an hour ahead.
    async fn rows_of_a_fast_clock_keep_nothing(world: World) {
        const FAST: usize = 450;
        let at = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--event-ttl-hours", "1", "--event-stream-length", "0"]).await;
        let client = &node.client;
        let mut hand = Hand::on(&world).await;
        let event = r#"[{"at":"2027-01-15T08:00:00.000Z","type":"relation","data":{}}]"#;
        let rows = |count: usize, at: i64| vec![format!("(1, 0, 0, {at}, 1, '{event}')"); count].join(", ");
        for rows in [rows(FAST, 1_831_536_000_000), rows(1, 1_800_002_000_000)] {
            hand.run(&format!("insert into events (size, first_id, last_id, created_at, types, content) values {rows}")).await;
        }
        client.follow(1, 2).await;
        let told = async |count: usize| {
            let head = format!("/v1/events?after={}", count - 1);
            eventually("they are numbered", async || client.get(&head).await.body["items"][0]["id"] == count).await;
        };
        told(FAST + 2).await;
        sweep(&node).await;
        assert_eq!(client.get("/v1/events?after=0").await.ok()["items"][0]["id"], 1, "nothing is old yet");
        at.fetch_add(3_700_000, std::sync::atomic::Ordering::SeqCst);
        client.follow(1, 3).await;
        told(FAST + 3).await;
        sweep(&node).await;
        client.get("/v1/events?after=0").await.ok();
        at.fetch_add(2_000_000, std::sync::atomic::Ordering::SeqCst);
        sweep(&node).await;
        client.get(&format!("/v1/events?after={FAST}")).await.problem(410, "gone");
        assert_eq!(client.get("/v1/events").await.ok()["items"][0]["id"], FAST + 3, "all before what has expired went with it");
        assert_eq!(hand.text("select cast(count(*) as text) from events").await, "1");
        node.stop().await;
    }
}

/// A Redis that answers each command late, and not too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_stream_keeps_no_event_from_its_number() {
    const ROWS: usize = 1200;
    let mut world = World::new(Tier::Server).await;
    let (proxy, redis_url) = Proxy::start_redis(&world.redis_url).await;
    world.redis_url = redis_url;
    let node = world.node().await;
    let event = r#"[{"at":"2027-01-15T08:00:00.000Z","type":"relation","data":{}}]"#;
    let rows = vec![format!("(1, 0, 0, {}, 1, '{event}')", node.app.state().clock.now().0); ROWS].join(", ");
    proxy.slow(Duration::from_millis(250));
    let mut hand = Hand::on(&world).await;
    hand.run(&format!("insert into events (size, first_id, last_id, created_at, types, content) values {rows}")).await;
    let head = "select cast(head as text) from event_head";
    eventually_within(30, "all are numbered", async || hand.text(head).await == ROWS.to_string()).await;
    proxy.slow(Duration::ZERO);
    let streamed = "select cast(streamed as text) from event_head";
    eventually_within(30, "all are on the stream", async || hand.text(streamed).await == ROWS.to_string()).await;
    node.stop().await;
}

/// Each row has the events of a large batch: together they take a slow Redis longer than one operation may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_stream_is_appended_to_all_the_same() {
    const ROWS: usize = 20;
    const EVENTS: usize = 200;
    let mut world = World::new(Tier::Server).await;
    let mut redis = connect(&world.redis_url).await.unwrap();
    let (proxy, redis_url) = Proxy::start_redis(&world.redis_url).await;
    world.redis_url = redis_url;
    let node = world.node().await;
    let event = r#"{"at":"2027-01-15T08:00:00.000Z","type":"relation","data":{}}"#;
    let content = vec![event; EVENTS].join(",");
    let row = format!("({EVENTS}, 0, 0, {}, 1, '[{content}]')", node.app.state().clock.now().0);
    let rows = vec![row; ROWS].join(", ");
    proxy.slow(Duration::from_millis(250));
    let mut hand = Hand::on(&world).await;
    hand.run(&format!("insert into events (size, first_id, last_id, created_at, types, content) values {rows}")).await;
    let streamed = "select cast(streamed as text) from event_head";
    let all = (ROWS * EVENTS).to_string();
    eventually_within(60, "all are on the stream", async || hand.text(streamed).await == all).await;
    let length: i64 = from_redis_value(ask(&mut redis, &["XLEN", &world.event_stream()]).await.unwrap()).unwrap();
    assert_eq!(length.to_string(), all);
    proxy.slow(Duration::ZERO);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_on_the_stream_too() {
    let world = World::new(Tier::Server).await;
    let nodes = [world.node().await, world.node().await];
    for target in 2..=30 {
        nodes[usize::try_from(target).unwrap() % 2].client.follow(1, target).await;
    }
    let told = all(&nodes[0].client, 29).await;
    let mut redis = connect(&world.redis_url).await.unwrap();
    let key = world.event_stream();
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    eventually("all are on the stream", async || {
        let value: RedisValue = ask(&mut redis, &["XRANGE", &key, "-", "+"]).await.unwrap();
        entries = from_redis_value(value).unwrap();
        entries.len() == 29
    })
    .await;
    for (event, (id, fields)) in told.iter().zip(&entries) {
        assert_eq!(id, &format!("{}-0", event["id"]));
        assert_eq!((fields[0].as_str(), serde_json::from_str::<Value>(&fields[1]).unwrap()), ("event", event.clone()));
    }
    let ttl: i64 = from_redis_value(ask(&mut redis, &["PTTL", &key]).await.unwrap()).unwrap();
    assert!(ttl > 0, "it does not stay for ever");
    Node::stop_all(nodes.into()).await;
}

/// Two installations that were given one stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_others_use_is_told() {
    let (one, other) = (World::new(Tier::Server).await, World::new(Tier::Server).await);
    let stream = one.event_stream();
    let node = one.node().await;
    node.client.follow(1, 2).await;
    let mut redis = connect(&one.redis_url).await.unwrap();
    eventually("it is on the stream", async || from_redis_value::<i64>(ask(&mut redis, &["XLEN", &stream]).await.unwrap()).unwrap() == 1)
        .await;
    let args: Vec<String> = other.args().into_iter().skip(1).chain(["--event-stream".to_owned(), stream.clone()]).collect();
    let log = other.dir.join("log");
    let process = Process::start_after("true", &args, &[], &log).await;
    process.client.follow(3, 4).await;
    let warned = |log: &str| log.lines().any(|line| line.contains("the stream in Redis refused events") && line.contains(&stream));
    eventually("it is told", async || warned(&std::fs::read_to_string(&log).unwrap())).await;
    node.stop().await;
}
