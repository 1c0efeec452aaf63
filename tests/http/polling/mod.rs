//! Polling: tags, 304, the pace, and waiting for a change. `failures.rs`: waiting where the database cannot be read;
//! `nodes.rs`: never back in time; `tags.rs`: whose tag is whose.

mod failures;
mod nodes;
mod tags;

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::both_tiers;
use crate::support::{Client, Node, Reply, Tier, World, eventually};

const SUMMARY: &str = "/v1/users/42/badges";

/// Well below the time after which a waiting poll looks again by itself (5 s): what answers sooner
/// was woken.
const WOKEN: Duration = Duration::from_millis(2500);

async fn raise(client: &Client, user: i64) {
    client.post(&format!("/v1/users/{user}/badges/mention/increment"), &json!({})).await.ok();
}

async fn etag(client: &Client) -> String {
    client.get(SUMMARY).await.header("etag").to_owned()
}

/// A poll that waits, and the time that it took.
fn wait_for(client: &Client, query: &str, etag: &str) -> tokio::task::JoinHandle<(Reply, Duration)> {
    let request = client.request(Method::GET, &format!("{SUMMARY}?{query}")).header("if-none-match", etag);
    tokio::spawn(async move {
        let asked = Instant::now();
        (Client::send(request).await, asked.elapsed())
    })
}

/// A group's message comes through one node, and then a change of the user's own, by which the
/// other node hears nothing of the group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_share_does_not_go_back_where_ones_own_numbers_went_on() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    let (first, other) = (&nodes[0].client, &nodes[1].client);
    crate::features::groups::make(first, 7, &[42, 43]).await;
    for n in 1..=12 {
        let path = [SUMMARY, "/v1/users/42/groups"][n % 2];
        // It has the head as it is now.
        other.get(path).await.ok();
        crate::features::groups::send(first, 7, 43, &format!("m{n}")).await.ok();
        let seen = first.get(path).await;
        raise(first, 42).await;
        let shown = other.get_if_changed(path, seen.header("etag")).await.ok();
        let unread = if n % 2 == 0 { &shown["chats"]["unread"] } else { &shown["items"][0]["unread"] };
        assert_eq!(*unread, n, "{} and then {shown}", seen.text);
    }
    Node::stop_all(nodes).await;
}

/// Returns when so many polls wait on the node.
async fn waiting(node: &Node, polls: usize) {
    eventually("the poll waits", async || node.app.state().polling.waiting.taken() == polls).await;
    // It holds its place from just before it subscribes and reads; that much it is given here.
    tokio::time::sleep(Duration::from_millis(150)).await;
}

both_tiers! {
    async fn a_tag_is_weak_the_same_on_every_node_and_changes_with_every_change(world: World) {
        let nodes = world.nodes().await;
        let (writer, reader) = (&nodes[0].client, &nodes.last().unwrap().client);
        let mut seen = vec![etag(writer).await];
        for _ in 0..3 {
            raise(writer, 42).await;
            let tag = etag(writer).await;
            assert!(tag.starts_with("W/\"") && tag.ends_with('"'), "{tag}");
            assert_eq!(tag, etag(reader).await);
            assert!(!seen.contains(&tag), "{tag} again");
            assert_eq!(reader.get_if_changed(SUMMARY, &tag).await.status, 304);
            assert_eq!(reader.get_if_changed(SUMMARY, seen.last().unwrap()).await.status, 200);
            seen.push(tag);
        }
        Node::stop_all(nodes).await;
    }

    async fn a_304_has_no_body_and_the_headers_of_the_200(world: World) {
        let node = world.node_with(&["--poll-interval", "45"]).await;
        raise(&node.client, 42).await;
        let full = node.client.get(SUMMARY).await;
        let none = node.client.get_if_changed(SUMMARY, full.header("etag")).await;
        assert_eq!((none.status.as_u16(), none.text.as_str()), (304, ""));
        for reply in [&full, &none] {
            assert_eq!(reply.header("cache-control"), "private, no-cache");
            assert_eq!(reply.header("x-poll-interval"), "45");
            assert_eq!(reply.header("etag"), full.header("etag"));
            assert!(!reply.header("x-request-id").is_empty());
        }
        assert!(none.headers.get("content-type").is_none());
        node.stop().await;
    }

    async fn if_none_match_is_a_list_and_compares_weakly(world: World) {
        let node = world.node().await;
        raise(&node.client, 42).await;
        let tag = etag(&node.client).await;
        let strong = tag.trim_start_matches("W/").to_owned();
        for (sent, status) in [
            (tag.clone(), 304),
            (strong.clone(), 304),
            (format!("\"x\", {tag}"), 304),
            (format!("\"a,b\" ,W/\"x\",{strong}"), 304),
            ("*".to_owned(), 304),
            ("\"x\"".to_owned(), 200),
            ("W/\"x\", \"y\"".to_owned(), 200),
            // Malformed: as if it were not there.
            (tag.trim_matches('"').to_owned(), 200),
            ("junk".to_owned(), 200),
        ] {
            assert_eq!(node.client.get_if_changed(SUMMARY, &sent).await.status, status, "{sent}");
        }
        let two_lines = node.client.request(Method::GET, SUMMARY).header("if-none-match", "\"x\"").header("if-none-match", &tag);
        assert_eq!(Client::send(two_lines).await.status, 304);
        node.stop().await;
    }

    async fn head_is_get_without_the_body(world: World) {
        let node = world.node().await;
        raise(&node.client, 42).await;
        let get = node.client.get(SUMMARY).await;
        let head = Client::send(node.client.request(Method::HEAD, SUMMARY)).await;
        assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
        for name in ["etag", "cache-control", "x-poll-interval", "content-type", "content-length"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        let same = node.client.request(Method::HEAD, SUMMARY).header("if-none-match", get.header("etag"));
        assert_eq!(Client::send(same).await.status, 304);
        node.stop().await;
    }

    async fn a_poll_that_waits_answers_at_once_when_something_is_new(world: World) {
        let node = world.node().await;
        let old = etag(&node.client).await;
        raise(&node.client, 42).await;
        let (reply, took) = wait_for(&node.client, "wait=60", &old).await.unwrap();
        assert_eq!(reply.ok()["total"], 1);
        assert!(took < WOKEN, "{took:?}");
        let now = etag(&node.client).await;
        let (reply, took) = wait_for(&node.client, "wait=0", &now).await.unwrap();
        assert_eq!(reply.status, 304);
        assert!(took < WOKEN, "{took:?}");
        node.stop().await;
    }

    async fn a_write_on_any_node_wakes_the_polls_that_wait(world: World) {
        let nodes = world.nodes().await;
        let writer = &nodes[0].client;
        for n in 1..=3 {
            let tag = etag(writer).await;
            let polls: Vec<_> = nodes.iter().map(|node| wait_for(&node.client, "wait=60", &tag)).collect();
            for node in &nodes {
                waiting(node, 1).await;
            }
            let written = Instant::now();
            raise(writer, 42).await;
            for poll in polls {
                assert_eq!(poll.await.unwrap().0.ok()["total"], n);
            }
            assert!(written.elapsed() < WOKEN, "{:?}", written.elapsed());
        }
        Node::stop_all(nodes).await;
    }

    async fn a_poll_that_waits_without_a_tag_is_refused(world: World) {
        let node = world.node().await;
        let client: &Client = &node.client;
        crate::features::groups::make(client, 9, &[1, 2]).await;
        crate::features::groups::send(client, 9, 1, "a").await.ok();
        let of_user = ["badges", "feed", "views/home/1", "groups", "directs", "following/ids", "blocks/ids"].map(|path| format!("/v1/users/1/{path}?"));
        let of_group = ["receipts?from=1&to=1&", "messages/1/receipts?"].map(|path| format!("/v1/groups/9/{path}"));
        for path in of_user.into_iter().chain(of_group) {
            assert_eq!(client.get(&format!("{path}wait=60")).await.pointers(400, "wait_needs_tag"), ["wait"], "{path}");
            assert_eq!(client.get(&format!("{path}wait=0")).await.status, 200, "{path}: it does not wait");
            let malformed = client.get_if_changed(&format!("{path}wait=60"), "no tag").await;
            malformed.problem(400, "wait_needs_tag");
        }
        // What comes after a place needs none.
        for path in ["/v1/users/1/inbox?after=0&wait=1", "/v1/events?after=0&wait=1"] {
            assert_eq!(client.get(path).await.status, 200, "{path}");
        }
        node.stop().await;
    }

    async fn a_poll_that_waits_is_held_while_the_node_is_degraded(world: World) {
        let node = world.node().await;
        let tag = etag(&node.client).await;
        // Where nobody else writes, what is cached stays exact. Of another user nothing is.
        let path = if world.tier == Tier::Embedded { "/v1/users/4242/badges" } else { SUMMARY };
        // Nothing reaches the database from here on but through connections that are open already.
        node.app.state().db.close().await;
        eventually("polls are degraded", async || node.client.get(path).await.body["degraded"] == true).await;
        let asked = Instant::now();
        let reply = node.client.get_if_changed(&format!("{path}?wait=3"), &tag).await;
        let took = asked.elapsed();
        assert_eq!((reply.status.as_u16(), reply.header("etag"), &reply.body["degraded"]), (200, "", &json!(true)), "{}", reply.text);
        assert!(took >= Duration::from_secs(3), "{took:?}");
        let known = node.client.get(SUMMARY).await;
        assert_eq!(known.body["degraded"], world.tier == Tier::Server, "{}", known.text);
        node.stop().await;
    }

    async fn a_poll_that_waited_in_vain_answers_304(world: World) {
        let node = world.node().await;
        let tag = etag(&node.client).await;
        let (reply, took) = wait_for(&node.client, "wait=1", &tag).await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.text.as_str(), reply.header("etag")), (304, "", tag.as_str()));
        assert!((Duration::from_millis(1000)..Duration::from_millis(3500)).contains(&took), "{took:?}");
        assert_eq!(node.app.state().polling.waiting.taken(), 0, "its place is given back");
        node.stop().await;
    }

    async fn a_write_that_changes_nothing_or_is_about_another_user_answers_no_poll(world: World) {
        let node = world.node().await;
        raise(&node.client, 42).await;
        let tag = etag(&node.client).await;
        let poll = wait_for(&node.client, "wait=2", &tag);
        waiting(&node, 1).await;
        raise(&node.client, 43).await;
        raise(&node.client, 4).await;
        node.client.post(&format!("{SUMMARY}/mention/reset"), &json!({"up_to": 0})).await.ok();
        let (reply, took) = poll.await.unwrap();
        assert_eq!(reply.status, 304);
        assert!(took >= Duration::from_secs(2), "{took:?}");
        node.stop().await;
    }

    async fn waiting_polls_are_answered_when_the_node_stops(world: World) {
        let node = world.node().await;
        let tag = etag(&node.client).await;
        let polls: Vec<_> = (0..5).map(|_| wait_for(&node.client, "wait=60", &tag)).collect();
        waiting(&node, 5).await;
        let stopping = Instant::now();
        node.stop().await;
        for poll in polls {
            assert_eq!(poll.await.unwrap().0.status, 304);
        }
        assert!(stopping.elapsed() < WOKEN, "{:?}", stopping.elapsed());
    }

    async fn polls_beyond_the_room_for_waiting_are_answered_at_once(world: World) {
        let node = world.node_with(&["--waiting-polls", "1"]).await;
        let tag = etag(&node.client).await;
        let first = wait_for(&node.client, "wait=60", &tag);
        let waiting = async || node.client.metric("headmark_polls_waiting").await;
        eventually("the first waits", async || waiting().await == 1.0).await;
        let (second, took) = wait_for(&node.client, "wait=60", &tag).await.unwrap();
        assert_eq!((second.status.as_u16(), second.header("x-poll-interval")), (304, "30"));
        assert!(took < WOKEN, "{took:?}");
        node.app.begin_drain();
        let (told, _) = first.await.unwrap();
        assert_eq!((told.status.as_u16(), told.header("x-poll-interval")), (304, "2"), "it comes back soon, to another node");
        eventually("nobody waits", async || waiting().await == 0.0).await;
        node.stop().await;
    }

    async fn a_tag_that_is_ahead_is_answered_with_the_truth(world: World) {
        let node = world.node().await;
        raise(&node.client, 42).await;
        let ahead = tags::at_revision(&etag(&node.client).await, 999);
        for tag in [ahead.as_str(), "W/\"999\""] {
            assert_eq!(node.client.get_if_changed(SUMMARY, tag).await.ok()["revision"], 2);
        }
        node.stop().await;
    }
}

/// A Redis that lost the last writes must not take a client back in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polls_never_go_back_though_the_cache_does() {
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let mut redis =
        deadpool_redis::redis::Client::open(world.redis_url.as_str()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let key = format!("{}{{u:42}}", world.prefix);
    raise(&node.client, 42).await;
    let first = etag(&node.client).await;
    assert_eq!(tags::revision(&first), 2, "read, so that the entry is clean");
    let old: Vec<Vec<u8>> = deadpool_redis::redis::cmd("HGETALL").arg(&key).query_async(&mut redis).await.unwrap();
    assert!(old.contains(&b"!r".to_vec()) && !old.contains(&b"!d".to_vec()), "{old:?}");
    raise(&node.client, 42).await;
    let tag = etag(&node.client).await;
    assert_eq!(tags::revision(&tag), 3);
    for _ in 0..2 {
        let () = deadpool_redis::redis::cmd("DEL").arg(&key).query_async(&mut redis).await.unwrap();
        let () = deadpool_redis::redis::cmd("HSET").arg(&key).arg(&old).query_async(&mut redis).await.unwrap();
        let () = deadpool_redis::redis::cmd("PEXPIRE").arg(&key).arg(60_000).query_async(&mut redis).await.unwrap();
        assert_eq!(node.client.summary(42).await["revision"], 2, "the old entry is in place: who has seen nothing newer gets it");
        assert_eq!(node.client.get_if_changed(SUMMARY, &tag).await.status, 304, "the truth is what the client has");
        let ahead = node.client.get_if_changed(SUMMARY, &tags::at_revision(&tag, 4)).await.ok();
        assert_eq!((&ahead["revision"], &ahead["total"]), (&json!(3), &json!(2)));
    }
    node.stop().await;
}
