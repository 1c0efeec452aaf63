//! What each route promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headmark::base::clock::DAY_MS;
use serde_json::{Value, json};

use super::{send, unread};
use crate::both_tiers;
use crate::support::{Client, Node, eventually};

const NOW: i64 = 1_790_000_000_000;

both_tiers! {
    async fn data_keeps_its_text(world: World) {
        let node = world.node().await;
        // Numbers that no double holds, an order that is not the alphabet's, spaces, escapes.
        let data = r#"{"z": 12345678901234567890.123456789012345678901, "a":9007199254740993, "m": 1.10, "big":1e300, "e":"\u00e9\/", "o":{ "y":1,"b":[ ] }}"#;
        let send = async || {
            let request = node.client.request(reqwest::Method::POST, "/v1/broadcasts/system").header("content-type", "application/json");
            let body = format!("{{\"title\":\"t\",\"data\":{data}}}");
            Client::send(request.header("idempotency-key", "k").body(body)).await
        };
        let (first, again) = (send().await, send().await);
        assert!(first.status == 201 && again.header("idempotent-replayed") == "true", "{} {}", first.text, again.text);
        let path = ["/v1/broadcasts/system", "/v1/users/1/broadcasts/system"];
        let [all, own] = [node.client.get(path[0]).await, node.client.get(path[1]).await];
        for reply in [&first, &again, &all, &own] {
            assert!(reply.text.contains(&format!("\"data\":{data}")), "{}", reply.text);
        }
        // What not every reader of that text can hold.
        for (data, status, code, pointer) in
            [(r#"{"a":"\ud800"}"#, 400, "malformed_json", None), (r#"{"a":[1e999]}"#, 422, "invalid_body", Some("/data"))]
        {
            let refused = node.client.post_text("/v1/broadcasts/system", format!("{{\"title\":\"t\",\"data\":{data}}}")).await;
            assert_eq!(refused.pointers(status, code), pointer.into_iter().collect::<Vec<_>>(), "{data}");
        }
        assert_eq!(node.client.get("/v1/broadcasts/system").await.ok()["items"].as_array().unwrap().len(), 1);
        node.stop().await;
    }

    async fn a_notice_reaches_everybody_who_was_there_before_it(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, "system", "before anybody").await;
        assert_eq!(unread(client, 1, "system").await, 0, "what came before the user does not count");
        let reply = client.post("/v1/broadcasts/system", &json!({"title": "Hello", "body": "all", "data": {"n": [1, null]}})).await;
        assert_eq!(reply.status, 201);
        let sent = reply.ok();
        assert_eq!((&sent["channel"], &sent["seq"], &sent["title"], &sent["body"], &sent["data"]),
            (&json!("system"), &json!(2), &json!("Hello"), &json!("all"), &json!({"n": [1, null]})));
        let summary = client.summary(1).await;
        assert_eq!((&summary["broadcasts"], &summary["total"]), (&json!({"system": {"unread": 1, "head": 2}}), &json!(1)));
        assert_eq!(unread(client, 2, "system").await, 0, "another is seen for the first time");
        send(client, "later", "a channel made after both were seen").await;
        assert_eq!((unread(client, 1, "later").await, unread(client, 2, "later").await), (1, 1));
        let query = client.post("/v1/badges/query", &json!({"user_ids": ["1", "2", "3"]})).await.ok();
        let totals: Vec<_> = query["items"].as_array().unwrap().iter().map(|summary| summary["total"].as_i64().unwrap()).collect();
        assert_eq!(totals, [2, 1, 0]);
        send(client, "later", "again").await;
        assert_eq!(unread(client, 3, "later").await, 0, "a query enrols nobody");
        node.stop().await;
    }

    async fn reading_clears_what_was_shown(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.summary(1).await;
        for n in 1..=5 { send(client, "system", &format!("n{n}")).await; }
        let read = async |up_to: Value| client.post("/v1/users/1/broadcasts/system/read", &up_to).await.ok();
        let first = read(json!({"up_to": 3})).await;
        assert_eq!((&first["channel"], &first["unread"], &first["head"]), (&json!("system"), &json!(2), &json!(5)));
        let again = read(json!({"up_to": 3})).await;
        assert_eq!(first, again, "a repeat changes nothing");
        assert_eq!(read(json!({"up_to": 1})).await["unread"], 2, "marks do not go back");
        assert_eq!(read(json!({"up_to": 99})).await["unread"], 0, "clamped to the head");
        send(client, "system", "after").await;
        assert_eq!(unread(client, 1, "system").await, 1, "not beyond it");
        assert_eq!(read(json!({})).await["unread"], 0);
        let none = client.post("/v1/users/1/broadcasts/unknown/read", &json!({})).await.ok();
        assert_eq!((&none["unread"], &none["head"]), (&json!(0), &json!(0)));
        node.stop().await;
    }

    async fn a_withdrawn_notice_is_one_less_for_those_who_had_not_read_it(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for user in [1, 2] { client.summary(user).await; }
        for n in 1..=3 { send(client, "system", &format!("n{n}")).await; }
        client.post("/v1/users/2/broadcasts/system/read", &json!({"up_to": 2})).await.ok();
        for _ in 0..2 {
            assert_eq!(client.delete("/v1/broadcasts/system/2").await.status, 204);
            assert_eq!((unread(client, 1, "system").await, unread(client, 2, "system").await), (2, 1));
        }
        client.delete("/v1/broadcasts/system/4").await.problem(404, "not_found");
        client.delete("/v1/broadcasts/none/1").await.problem(404, "not_found");
        let titles: Vec<_> = client.walk("/v1/broadcasts/system", 1).await.iter().map(|n| n["title"].clone()).collect();
        assert_eq!(titles, ["n3", "n1"]);
        let read: Vec<_> = client.walk("/v1/users/2/broadcasts/system", 1).await.iter().map(|n| (n["seq"].clone(), n["read"].clone())).collect();
        assert_eq!(read, [(json!(3), json!(false)), (json!(1), json!(true))]);
        node.stop().await;
    }

    async fn an_expired_notice_is_gone_without_a_write(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        client.summary(1).await;
        send(client, "system", "stays").await;
        let past = client.post("/v1/broadcasts/system", &json!({"title": "x", "expires_at": "2020-01-01T00:00:00Z"})).await;
        assert_eq!(past.pointers(422, "invalid_body"), ["/expires_at"]);
        let expires = headmark::base::clock::UnixMs(NOW + 60_000).to_string();
        let sent = client.post("/v1/broadcasts/system", &json!({"title": "goes", "expires_at": expires})).await.ok();
        assert_eq!(sent["expires_at"], expires);
        let before = client.get("/v1/users/1/badges").await;
        assert_eq!(before.body["broadcasts"]["system"], json!({"unread": 2, "head": 2}));
        assert_eq!(client.get_if_changed("/v1/users/1/badges", before.header("etag")).await.status, 304);
        at.store(NOW + 60_000, Ordering::Relaxed);
        let after = client.get_if_changed("/v1/users/1/badges", before.header("etag")).await;
        assert_eq!((after.status.as_u16(), &after.body["broadcasts"]["system"]), (200, &json!({"unread": 1, "head": 2})));
        assert_eq!(client.walk("/v1/broadcasts/system", 10).await.len(), 1);
        node.stop().await;
    }

    async fn a_poll_that_waits_is_woken_as_a_notice_expires(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        client.summary(1).await;
        let expires = headmark::base::clock::UnixMs(NOW + 60_000).to_string();
        client.post("/v1/broadcasts/system", &json!({"title": "goes", "expires_at": expires})).await.ok();
        let before = client.get("/v1/users/1/badges").await;
        let poll = client.request(reqwest::Method::GET, "/v1/users/1/badges?wait=60").header("if-none-match", before.header("etag"));
        let poll = tokio::spawn(Client::send(poll));
        eventually("it waits", async || client.metric("headmark_polls_waiting").await == 1.0).await;
        at.store(NOW + 60_000, Ordering::Relaxed);
        let begun = Instant::now();
        assert_eq!(poll.await.unwrap().ok()["broadcasts"]["system"], json!({"unread": 0, "head": 1}));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        node.stop().await;
    }

    async fn a_retry_is_answered_as_before_also_when_the_notice_has_expired(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &[]).await;
        let body = json!({"title": "goes", "expires_at": headmark::base::clock::UnixMs(NOW + 1000).to_string()});
        let first = node.client.post_once("/v1/broadcasts/system", "k", &body).await;
        assert_eq!(first.status, 201);
        at.store(NOW + 1000, Ordering::Relaxed);
        let again = node.client.post_once("/v1/broadcasts/system", "k", &body).await;
        assert_eq!((again.status.as_u16(), &again.text, again.header("idempotent-replayed")), (201, &first.text, "true"));
        // What was never taken is refused, at whatever time it lies.
        for past in [NOW + 1000, 0, -1] {
            let body = json!({"title": "t", "expires_at": headmark::base::clock::UnixMs(past).to_string()});
            assert_eq!(node.client.post_once("/v1/broadcasts/system", "other", &body).await.pointers(422, "invalid_body"), ["/expires_at"]);
        }
        node.stop().await;
    }

    async fn a_poll_that_waits_is_woken_by_a_notice_on_any_node(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        let tag = first.get("/v1/users/1/badges").await.header("etag").to_owned();
        let waiting = tokio::spawn({
            let (first, tag) = (first.clone(), tag.clone());
            async move { first.get_if_changed("/v1/users/1/badges?wait=20", &tag).await }
        });
        let state = nodes[0].app.state();
        eventually("the poll waits", async || state.polling.waiting.taken() > 0).await;
        let begun = tokio::time::Instant::now();
        send(last, "system", "wake up").await;
        let woken = waiting.await.unwrap();
        assert_eq!((woken.status.as_u16(), woken.body["broadcasts"]["system"]["unread"].as_i64()), (200, Some(1)));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        Node::stop_all(nodes).await;
    }

    async fn a_node_that_is_behind_reads_the_truth(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        first.summary(1).await;
        for n in 1..=20 {
            send(first, "system", "news").await;
            let seen = first.get("/v1/users/1/badges").await;
            assert_eq!(seen.body["broadcasts"]["system"]["unread"], n, "at once on the node that took it");
            let other = last.get_if_changed("/v1/users/1/badges", seen.header("etag")).await;
            assert_eq!(other.status, 304, "never older, and the same tag: {} {}", other.text, seen.header("etag"));
        }
        send(first, "system", "last").await;
        eventually("it shows everywhere", async || unread(last, 1, "system").await == 21).await;
        Node::stop_all(nodes).await;
    }

    async fn enrolment_is_one_revision_and_survives_everything(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for _ in 0..2 {
            assert_eq!(client.summary(1).await["revision"], 1);
        }
        let raised = client.post("/v1/users/1/badges/like/increment", &json!({})).await.ok();
        assert_eq!((&raised["revision"], &client.summary(1).await["revision"]), (&json!(2), &json!(2)));
        send(client, "system", "one").await;
        node.stop().await;
        let node = world.node().await;
        assert_eq!(unread(&node.client, 1, "system").await, 1);
        node.stop().await;
    }

    async fn bad_input_is_refused(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let long = "x".repeat(201);
        for (body, pointer) in [
            (json!({}), "/title"),
            (json!({"title": ""}), "/title"),
            (json!({"title": long}), "/title"),
            (json!({"title": 5}), "/title"),
            (json!({"title": "t", "body": "x".repeat(10_001)}), "/body"),
            (json!({"title": "t", "data": []}), "/data"),
            (json!({"title": "t", "data": {"x": "y".repeat(17_000)}}), "/data"),
            (json!({"title": "t", "expires_at": "tomorrow"}), "/expires_at"),
            (json!({"title": "t", "expires_at": 5}), "/expires_at"),
            (json!({"title": "t", "more": 1}), "/more"),
        ] {
            assert_eq!(client.post("/v1/broadcasts/system", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        assert_eq!(client.post("/v1/broadcasts/System", &json!({"title": "t"})).await.pointers(400, "invalid_path"), ["channel"]);
        assert_eq!(client.delete("/v1/broadcasts/system/0").await.pointers(400, "invalid_path"), ["seq"]);
        assert_eq!(client.post("/v1/users/1/broadcasts/system/read", &json!({"up_to": -1})).await.pointers(422, "invalid_body"), ["/up_to"]);
        assert_eq!(client.post("/v1/dots/mall/light", &json!({"by": 1})).await.pointers(422, "invalid_body"), ["/by"]);
        let summary = client.summary(1).await;
        assert_eq!((&summary["broadcasts"], &summary["dots"]), (&json!({}), &json!({})), "nothing was changed");
        let once = async |key: &str| client.post_once("/v1/broadcasts/system", key, &json!({"title": "once"})).await.ok();
        assert_eq!(once("k").await, once("k").await);
        assert_eq!(client.summary(1).await["broadcasts"]["system"]["head"], 1);
        node.stop().await;
    }

    async fn who_stays_away_is_forgotten_and_counts_as_new(world: World) {
        let at = Arc::new(AtomicI64::new(NOW));
        let node = world.node_at(&at, &["--forget-after-days", "30"]).await;
        let client = &node.client;
        for user in [1, 2] {
            client.summary(user).await;
            client.post(&format!("/v1/users/{user}/badges/like/increment"), &json!({})).await.ok();
        }
        send(client, "system", "one").await;
        client.post("/v1/users/1/broadcasts/system/read", &json!({})).await.ok();
        send(client, "system", "two").await;
        let before = client.summary(1).await["revision"].as_i64().unwrap();
        at.store(NOW + 20 * DAY_MS, Ordering::Relaxed);
        assert_eq!(unread(client, 2, "system").await, 2, "the other was there in between");
        at.store(NOW + 31 * DAY_MS, Ordering::Relaxed);
        headmark::features::users::forget_the_absent(&node.app.state().contexts.last_seen).await.unwrap();
        let query = client.post("/v1/badges/query", &json!({"user_ids": ["1", "2"]})).await.ok();
        let unread_of = |at: usize| query["items"][at]["broadcasts"]["system"]["unread"].clone();
        assert_eq!((unread_of(0), unread_of(1)), (json!(0), json!(2)));
        send(client, "system", "three").await;
        let summary = client.summary(1).await;
        assert_eq!(summary["broadcasts"]["system"], json!({"unread": 0, "head": 3}), "new again");
        assert_eq!(summary["counters"]["like"]["unread"], 1, "counters stay");
        assert!(summary["revision"].as_i64().unwrap() > before, "the revision never goes back");
        send(client, "system", "four").await;
        assert_eq!((unread(client, 1, "system").await, unread(client, 2, "system").await), (1, 4));
        node.stop().await;
    }
}
