//! Sending and fetching.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use headmark::base::ids::GroupId;
use headmark::db::{Column, Statement, Type};
use headmark::features::inbox::GroupRun;
use serde_json::{Value, json};

use super::{chats, fan_out, inbox, message, of_group, read, send, seqs, sums};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, eventually};

/// Less than a poll waits before it looks again by itself.
const WOKEN: Duration = Duration::from_secs(4);

fn without_epoch(text: &str) -> String {
    let epoch = serde_json::from_str::<Value>(text).unwrap()["epoch"].as_str().unwrap().to_owned();
    assert!(epoch.len() == 16 && epoch.bytes().all(|b| b.is_ascii_hexdigit()), "{epoch}");
    text.replace(&epoch, "EPOCH")
}

static GROUP_MESSAGE: Statement = Statement::insert(
    "group_messages",
    &[
        ("group_id", Type::Int),
        ("seq", Type::Int),
        ("sender_id", Type::Int),
        ("client_id", Type::Text),
        ("content", Type::Text),
        ("sent_at", Type::Int),
        ("recalled", Type::Int),
    ],
);

static RECALL: Statement = Statement::one("update group_messages set recalled = 1 where seq = $1", &[("seq", Type::Int)]);

async fn waiting(node: &Node, polls: usize) {
    eventually("the polls wait", async || node.app.state().polling.waiting.taken() == polls).await;
}

fn wait_for(client: &Client, path: String) -> tokio::task::JoinHandle<(crate::support::Reply, Duration)> {
    let client = client.clone();
    tokio::spawn(async move {
        let asked = Instant::now();
        (client.get(&path).await, asked.elapsed())
    })
}

both_tiers! {
    async fn a_direct_message_reaches_its_receiver_and_the_senders_other_devices(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let before = client.get("/v1/users/2/inbox").await;
        insta::assert_snapshot!(without_epoch(&before.text), @r#"{"items":[],"epoch":"EPOCH","head":0,"next_after":0,"has_more":false}"#);
        let sent = client.post("/v1/users/2/inbox", &message(1, "c-1", "Hello")).await;
        assert_eq!(sent.status, 201);
        insta::assert_snapshot!(sent.text, @r#"{"seq":1,"own_seq":1,"sent_at":"2027-01-15T08:00:00.000Z","revision":1}"#);
        at.fetch_add(1500, Ordering::SeqCst);
        for _ in 0..2 {
            let again = client.post("/v1/users/2/inbox", &message(1, "c-1", "Hello")).await;
            assert_eq!((again.status.as_u16(), again.text.as_str()), (200, sent.text.as_str()));
        }
        let answer = client.post("/v1/users/1/inbox", &message(2, "c-1", "Hi")).await;
        insta::assert_snapshot!(answer.text, @r#"{"seq":2,"own_seq":2,"sent_at":"2027-01-15T08:00:01.500Z","revision":3}"#);
        let theirs = client.get("/v1/users/2/inbox").await;
        insta::assert_snapshot!(
            without_epoch(&theirs.text),
            @r#"{"items":[{"seq":1,"sender_id":"1","peer_id":"1","content":"Hello","sent_at":"2027-01-15T08:00:00.000Z"},{"seq":2,"sender_id":"2","peer_id":"1","own":true,"client_id":"c-1","content":"Hi","sent_at":"2027-01-15T08:00:01.500Z"}],"epoch":"EPOCH","head":2,"next_after":2,"has_more":false}"#
        );
        let mine = inbox(client, 1, "?after=1").await;
        assert_eq!((&mine["items"][0]["content"], &mine["items"][0]["own"], seqs(&mine)), (&json!("Hi"), &Value::Null, vec![2]));
        assert_eq!((sums(&node, 1).await, sums(&node, 2).await, sums(&node, 3).await), ((1, 1), (0, 0), (0, 0)));
        assert_eq!(client.summary(2).await["revision"], 3, "one for the enrolment and each of the two messages, none for a repeat");
        let sums_of_two = client.summary(2).await["chats"].clone();
        assert_eq!(sums_of_two, json!({"unread": 0, "mentions": 0, "groups": 0, "directs": 0}), "who answers has read");
        // The same id from another sender, or to another receiver, is another message.
        assert_eq!((send(client, 3, 2, "c-1").await, send(client, 1, 3, "c-1").await), (3, 2));
        node.stop().await;
        let node = world.node().await;
        let again = node.client.post("/v1/users/2/inbox", &message(1, "c-1", "Hello")).await;
        assert_eq!((again.status.as_u16(), &again.body["seq"], &again.body["sent_at"]), (200, &sent.body["seq"], &sent.body["sent_at"]));
        assert_eq!(seqs(&inbox(&node.client, 2, "").await), [1, 2, 3]);
        node.stop().await;
    }

    async fn who_is_blocked_cannot_send(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let message = json!({"sender_id": 1, "client_id": "before", "content": "x"});
        client.post("/v1/users/2/inbox", &message).await.ok();
        Client::send(client.request(reqwest::Method::PUT, "/v1/users/2/blocks/1")).await.ok();
        other.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "after", "content": "x"})).await.problem(403, "blocked");
        assert_eq!(other.post("/v1/users/2/inbox", &message).await.status, 200, "what was sent before stays sent");
        assert_eq!(other.post("/v1/users/1/inbox", &json!({"sender_id": 2, "client_id": "back", "content": "x"})).await.status, 201);
        client.delete("/v1/users/2/blocks/1").await;
        assert_eq!(other.post("/v1/users/2/inbox", &json!({"sender_id": 1, "client_id": "after", "content": "x"})).await.status, 201);
        Node::stop_all(nodes).await;
    }

    async fn a_message_to_oneself_is_one_row_and_never_unread(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let sent = client.post("/v1/users/5/inbox", &message(5, "note", "milk")).await;
        assert_eq!((sent.status.as_u16(), &sent.body["seq"], &sent.body["own_seq"]), (201, &json!(1), &json!(1)));
        let again = client.post("/v1/users/5/inbox", &message(5, "note", "milk")).await;
        assert_eq!((again.status.as_u16(), &again.text), (200, &sent.text));
        let found = inbox(client, 5, "").await;
        assert_eq!((seqs(&found), &found["items"][0]["own"], &found["items"][0]["peer_id"]), (vec![1], &json!(true), &json!("5")));
        assert_eq!((sums(&node, 5).await, chats(client, 5).await), ((0, 0), vec![(5, 0, false)]));
        assert_eq!(read(client, 5, 5, &json!({})).await, 0);
        node.stop().await;
    }

    async fn one_id_is_one_message_also_when_it_comes_many_times_at_once(world: World) {
        let nodes = world.nodes().await;
        for round in 0..5 {
            let id = format!("c-{round}");
            let sends = (0..12).map(|n| {
                let (client, id) = (nodes[n % nodes.len()].client.clone(), id.clone());
                async move { client.post("/v1/users/2/inbox", &message(1, &id, "once")).await }
            });
            let replies = join_all(sends).await;
            assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
            assert!(replies.iter().all(|reply| reply.body == replies[0].body && reply.status.is_success()), "{replies:?}");
        }
        for node in &nodes {
            assert_eq!((seqs(&inbox(&node.client, 2, "").await), seqs(&inbox(&node.client, 1, "").await)), ((1..=5).collect(), (1..=5).collect()));
            assert_eq!((sums(node, 2).await, sums(node, 1).await), ((5, 1), (0, 0)));
        }
        Node::stop_all(nodes).await;
    }

    async fn an_inbox_is_fetched_in_pages(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for n in 0..25 {
            send(client, 10 + n % 3, 2, &format!("c-{n}")).await;
        }
        let first = inbox(client, 2, "?after=0&limit=10").await;
        assert_eq!((seqs(&first), &first["has_more"], &first["next_after"], &first["head"]), ((1..=10).collect(), &json!(true), &json!(10), &json!(25)));
        let last = inbox(client, 2, "?after=15&limit=10").await;
        assert_eq!((seqs(&last), &last["has_more"], &last["next_after"]), ((16..=25).collect(), &json!(false), &json!(25)));
        assert_eq!(seqs(&inbox(client, 2, "").await), (1..=20).collect::<Vec<_>>(), "twenty unless asked otherwise");
        let none = inbox(client, 2, "?after=25").await;
        assert_eq!((seqs(&none), &none["has_more"], &none["next_after"]), (vec![], &json!(false), &json!(25)));
        for (query, name) in [("limit=0", "limit"), ("limit=101", "limit"), ("after=-1", "after"), ("after=x", "after"), ("wait=61", "wait"), ("cursor=1", "cursor"), ("after=9007199254740992", "after")] {
            assert_eq!(client.get(&format!("/v1/users/2/inbox?{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        node.stop().await;
    }

    async fn a_fetch_is_a_poll(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, 1, 2, "a").await;
        let path = "/v1/users/2/inbox?after=0";
        let first = client.get(path).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with("W/\"") && first.header("cache-control") == "private, no-cache" && first.header("x-poll-interval") == "30", "{first:?}");
        let same = client.get_if_changed(path, &tag).await;
        assert_eq!((same.status.as_u16(), same.text.as_str(), same.header("etag")), (304, "", tag.as_str()));
        client.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
        assert_eq!(client.get_if_changed(path, &tag).await.status, 304, "what else the user has is nothing new here");
        send(client, 1, 2, "b").await;
        let changed = client.get_if_changed(path, &tag).await;
        assert!(changed.status == 200 && changed.header("etag") != tag);
        node.stop().await;
    }

    async fn a_fetch_waits_while_there_is_nothing_and_is_woken_by_any_node(world: World) {
        let nodes = world.nodes().await;
        let writer = &nodes[0].client;
        for n in 1..=3_i64 {
            let polls: Vec<_> = nodes.iter().map(|node| wait_for(&node.client, format!("/v1/users/2/inbox?after={}&wait=60", n - 1))).collect();
            for node in &nodes {
                waiting(node, 1).await;
            }
            // What is nothing to the inbox wakes, and is waited past.
            writer.post("/v1/users/2/badges/mention/increment", &json!({})).await.ok();
            let written = Instant::now();
            send(writer, 1, 2, &format!("c-{n}")).await;
            for poll in polls {
                assert_eq!(seqs(&poll.await.unwrap().0.ok()), [n]);
            }
            assert!(written.elapsed() < WOKEN, "{:?}", written.elapsed());
        }
        let (reply, took) = wait_for(writer, "/v1/users/2/inbox?after=2&wait=60".to_owned()).await.unwrap();
        assert_eq!(seqs(&reply.ok()), [3]);
        assert!(took < WOKEN, "there was something: {took:?}");
        let (reply, took) = wait_for(writer, "/v1/users/2/inbox?after=3&wait=1".to_owned()).await.unwrap();
        assert!((Duration::from_millis(1000)..Duration::from_millis(3500)).contains(&took), "{took:?}");
        let tag = reply.header("etag").to_owned();
        assert_eq!((seqs(&reply.ok()), tag.is_empty()), (vec![], false), "it waited in vain");
        assert_eq!(writer.get_if_changed("/v1/users/2/inbox?after=3&wait=1", &tag).await.status, 304);
        // Who has what is there by its tag waits for more.
        let known = writer.get("/v1/users/2/inbox?after=2").await;
        let asked = Instant::now();
        assert_eq!(writer.get_if_changed("/v1/users/2/inbox?after=2&wait=1", known.header("etag")).await.status, 304);
        assert!(asked.elapsed() >= Duration::from_secs(1), "{:?}", asked.elapsed());
        let more = writer.request(reqwest::Method::GET, "/v1/users/2/inbox?after=2&wait=60").header("if-none-match", known.header("etag"));
        let more = tokio::spawn(Client::send(more));
        waiting(&nodes[0], 1).await;
        send(&nodes[nodes.len() - 1].client, 1, 2, "c-4").await;
        assert_eq!(seqs(&more.await.unwrap().ok()), [3, 4]);
        assert_eq!(nodes[0].app.state().polling.waiting.taken(), 0, "its place is given back");
        Node::stop_all(nodes).await;
    }

    async fn a_drain_answers_who_waits(world: World) {
        let node = world.node().await;
        let poll = wait_for(&node.client, "/v1/users/2/inbox?after=0&wait=60".to_owned());
        waiting(&node, 1).await;
        node.app.begin_drain();
        assert_eq!(seqs(&poll.await.unwrap().0.ok()), [0; 0]);
        node.stop().await;
    }

    async fn a_groups_messages_say_what_the_group_has(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let columns = [vec![9, 9], vec![1, 2], vec![1, 1]].map(Column::Int);
        let [groups, numbers, senders] = columns;
        let texts = |texts: [&str; 2]| Column::Text(texts.map(str::to_owned).into());
        let rows = [groups, numbers, senders, texts(["a", "b"]), texts(["one", "two"]), Column::Int(vec![1_800_000_000_000, 1_800_000_001_000]), Column::Int(vec![0, 0])];
        let mut conn = node.app.state().db.connect().await.unwrap();
        conn.run(&GROUP_MESSAGE, &rows).await.unwrap();
        send(client, 1, 2, "direct").await;
        let members = |seq: i64| vec![(1, of_group(9, seq, true)), (2, of_group(9, seq, false)), (3, of_group(9, seq, false))];
        assert_eq!(fan_out(&node, members(1)).await, [2, 2, 1]);
        assert_eq!(fan_out(&node, members(2)).await, [3, 3, 2]);
        let item = |inbox: &Value, at: usize| inbox["items"][at].to_string();
        let before = client.get("/v1/users/2/inbox?after=1").await;
        insta::assert_snapshot!(item(&before.body, 0), @r#"{"content":"one","group_id":"9","group_seq":1,"sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":2}"#);
        assert_eq!(inbox(client, 1, "?after=1").await["items"][0]["own"], true);
        assert_eq!(inbox(client, 3, "").await["items"][1]["content"], "two");
        // Recalled: a tombstone in its place, at once, and a row that says so.
        conn.run(&RECALL, &[Column::Int(vec![1])]).await.unwrap();
        let after = client.get_if_changed("/v1/users/2/inbox?after=1", before.header("etag")).await;
        assert_eq!(after.status, 200, "the tag is another");
        insta::assert_snapshot!(item(&after.body, 0), @r#"{"group_id":"9","group_seq":1,"recalled":true,"sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":2}"#);
        let recall = GroupRun::new(GroupId::try_from(9).unwrap(), [1].into_iter(), false, true);
        assert_eq!(fan_out(&node, vec![(2, recall.clone()), (3, recall)]).await, [4, 3]);
        let mut told = inbox(client, 2, "?after=3").await["items"][0].clone();
        told["sent_at"] = json!("T");
        insta::assert_snapshot!(told.to_string(), @r#"{"group_id":"9","recall":1,"sender_id":"1","sent_at":"T","seq":4}"#);
        assert_eq!((sums(&node, 2).await, chats(client, 2).await), ((1, 1), vec![(1, 1, false)]), "groups are no direct chats");
        node.stop().await;
    }

    async fn many_receivers_are_written_at_once(world: World) {
        let node = world.node().await;
        let items = (1..=1500).map(|user| (user, of_group(9, 1, user == 1))).collect();
        assert_eq!(fan_out(&node, items).await, vec![1; 1500]);
        let found = inbox(&node.client, 1400, "").await;
        assert_eq!((seqs(&found), &found["items"][0]["recalled"]), (vec![1], &json!(true)), "the group does not have it");
        node.stop().await;
    }

    async fn another_numbering_resets_the_inbox(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        for n in 0..3 {
            send(client, 1, 2, &format!("c-{n}")).await;
        }
        let epoch = inbox(client, 2, "").await["epoch"].as_str().unwrap().to_owned();
        assert_eq!(inbox(other, 9, "").await["epoch"], epoch, "one for all");
        assert_eq!(seqs(&inbox(other, 2, &format!("?after=1&epoch={epoch}")).await), [2, 3]);
        for query in ["?after=1&epoch=0000000000000000", "?epoch=x", "?after=4", &format!("?after=100&epoch={epoch}")] {
            client.get(&format!("/v1/users/2/inbox{query}")).await.problem(410, "inbox_reset");
        }
        let renewed = headmark::engine::epoch::renew(&nodes[0].app.state().db, headmark::engine::guard::SEEN).await.unwrap();
        assert_ne!(renewed, epoch);
        for client in [client, other] {
            client.get(&format!("/v1/users/2/inbox?after=1&epoch={epoch}")).await.problem(410, "inbox_reset");
            assert_eq!(seqs(&inbox(client, 2, &format!("?after=1&epoch={renewed}")).await), [2, 3]);
        }
        Node::stop_all(nodes).await;
        let node = world.node().await;
        assert_eq!(inbox(&node.client, 2, "").await["epoch"], renewed, "a start keeps it");
        node.stop().await;
    }

    async fn bad_messages_are_refused_and_change_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let with = |field: &str, value: Value| {
            let mut body = message(1, "c", "text");
            body[field] = value;
            body
        };
        for (body, pointer) in [
            (with("sender_id", json!(0)), "/sender_id"),
            (with("sender_id", Value::Null), "/sender_id"),
            (with("client_id", json!("")), "/client_id"),
            (with("client_id", json!("a b")), "/client_id"),
            (with("client_id", json!("a".repeat(129))), "/client_id"),
            (with("content", json!(7)), "/content"),
            (with("content", json!("")), "/content"),
            (with("content", json!("é".repeat(10_001))), "/content"),
            (with("content", json!("a\u{0}b")), "/content"),
            (with("contents", json!("x")), "/contents"),
            (json!({"sender_id": 1, "client_id": "c"}), "/content"),
        ] {
            assert_eq!(client.post("/v1/users/2/inbox", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        assert_eq!(client.post("/v1/users/0/inbox", &message(1, "c", "text")).await.pointers(400, "invalid_path"), ["user"]);
        client.post("/v1/users/me/inbox", &message(1, "c", "text")).await.problem(403, "forbidden");
        assert_eq!(seqs(&inbox(client, 2, "").await), [0; 0]);
        assert_eq!(sums(&node, 2).await, (0, 0));
        let longest = message(1, &"a".repeat(128), &"é".repeat(10_000));
        assert_eq!(client.post("/v1/users/2/inbox", &longest).await.status, 201);
        assert_eq!(inbox(client, 2, "").await["items"][0]["content"], longest["content"]);
        node.stop().await;
    }

    async fn who_may_do_what(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (alice, bob, service) = (node.user(1), node.user(2), node.service());
        assert_eq!(alice.post("/v1/users/2/inbox", &message(1, "a", "hi")).await.status, 201);
        assert_eq!(service.post("/v1/users/2/inbox", &message(1, "b", "hi")).await.status, 201);
        alice.post("/v1/users/1/inbox", &message(2, "c", "hi")).await.problem(403, "forbidden");
        alice.post("/v1/users/3/inbox", &message(2, "c", "hi")).await.problem(403, "forbidden");
        node.client.post("/v1/users/2/inbox", &message(1, "c", "hi")).await.problem(401, "unauthorized");
        let unnamed = [json!({"client_id": "d", "content": "hi"}), json!({"sender_id": "me", "client_id": "e", "content": "hi"})];
        for body in &unnamed {
            assert_eq!(alice.post("/v1/users/5/inbox", body).await.status, 201);
            assert_eq!(service.post("/v1/users/5/inbox", body).await.pointers(422, "invalid_body"), ["/sender_id"]);
        }
        let mine = inbox(&service, 5, "").await;
        assert_eq!([0, 1].map(|at: usize| mine["items"][at]["sender_id"].clone()), ["1", "1"]);
        for path in ["inbox", "directs", "devices"] {
            alice.get(&format!("/v1/users/2/{path}")).await.problem(403, "forbidden");
            node.client.get(&format!("/v1/users/2/{path}")).await.problem(401, "unauthorized");
        }
        alice.post("/v1/users/2/directs/1/read", &json!({})).await.problem(403, "forbidden");
        alice.put("/v1/users/2/directs/1/settings", &json!({"level": "none"})).await.problem(403, "forbidden");
        alice.put("/v1/users/2/devices/d/cursor", &json!({"seq": 1})).await.problem(403, "forbidden");
        alice.delete("/v1/users/2/devices/d").await.problem(403, "forbidden");
        assert_eq!(seqs(&inbox(&bob, 2, "").await), [1, 2]);
        assert_eq!(bob.get("/v1/users/me/inbox?after=1").await.ok()["next_after"], 2);
        assert_eq!(bob.post("/v1/users/me/directs/1/read", &json!({"up_to": 1})).await.ok()["unread"], 1);
        assert_eq!(service.get("/v1/users/2/directs").await.ok()["items"][0]["unread"], 1);
        node.stop().await;
    }
}
