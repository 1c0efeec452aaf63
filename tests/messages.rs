//! Messages that are read by hand, over HTTP, as the contract has them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use headmark::clock::Clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::contract::Dice;
use crate::support::{Client, Node, Reply, eventually};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn mail(kind: &str, recipients: &[i64]) -> Value {
    json!({"type": kind, "title": "Hello", "content": "World", "recipients": recipients})
}

/// Sends, and returns the id.
async fn send(client: &Client, kind: &str, recipients: &[i64]) -> String {
    let reply = client.post("/v1/messages", &mail(kind, recipients)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.body["message_id"].as_str().unwrap().to_owned()
}

async fn mark(client: &Client, user: i64, id: &str, verb: &str) -> Reply {
    client.post(&format!("/v1/users/{user}/messages/{id}/{verb}"), &json!({})).await
}

#[expect(clippy::print_stderr, reason = "how long it took depends on the machine: shown to whoever asks for the output, and no test")]
fn say(what: &str) {
    eprintln!("{what}");
}

/// Seqs of a list, in its order.
async fn seqs(client: &Client, user: i64, query: &str) -> Vec<i64> {
    let (mut seqs, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/users/{user}/messages?limit=7{query}{cursor}")).await.ok();
        seqs.extend(page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()));
        match page["next_cursor"].as_str() {
            None => return seqs,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

/// The messages of a sheet.
async fn shown(client: &Client, user: i64) -> Value {
    client.sheet(user).await["messages"].clone()
}

both_tiers! {
    async fn a_message_is_sent_listed_and_read(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.try_node(&[], Clock::Manual(Arc::clone(&at))).await.unwrap();
        let client = &node.client;
        let reply = client.post("/v1/messages", &mail("notice", &[1, 2, 3])).await;
        let id = reply.body["message_id"].as_str().unwrap().to_owned();
        let hide = |text: &str| text.replace(&id, "ID");
        assert_eq!(reply.status, 201);
        assert_eq!(id.parse::<i64>().unwrap() >> 20, 1_800_000_000_000);
        insta::assert_snapshot!(
            hide(&reply.text),
            @r#"{"message_id":"ID","type":"notice","title":"Hello","content":"World","created_at":"2027-01-15T08:00:00.000Z","recipient_count":3,"read_count":0}"#
        );
        assert_eq!(client.get(&format!("/v1/messages/{id}")).await.ok(), reply.body);
        insta::assert_snapshot!(
            hide(&client.get("/v1/users/1/messages").await.text),
            @r#"{"items":[{"message_id":"ID","seq":1,"type":"notice","title":"Hello","content":"World","created_at":"2027-01-15T08:00:00.000Z"}],"next_cursor":null}"#
        );
        let sheet = client.sheet(1).await;
        assert_eq!((&sheet["messages"], &sheet["total"], &sheet["revision"]), (&json!({"notice": {"unread": 1}}), &json!(1), &json!(1)));

        at.fetch_add(1500, std::sync::atomic::Ordering::SeqCst);
        let read = mark(client, 1, &id, "read").await;
        insta::assert_snapshot!(hide(&read.text), @r#"{"message_id":"ID","read_at":"2027-01-15T08:00:01.500Z","unread":0,"revision":2}"#);
        at.fetch_add(1500, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(mark(client, 1, &id, "read").await.text, read.text, "a repeat changes nothing, not even the time");
        let listed = client.get("/v1/users/1/messages").await.ok();
        assert_eq!(listed["items"][0]["read_at"], "2027-01-15T08:00:01.500Z");
        assert_eq!(client.get(&format!("/v1/messages/{id}")).await.ok()["read_count"], 1);
        assert_eq!(shown(client, 1).await, json!({"notice": {"unread": 0}}));
        assert_eq!(client.sheet(2).await["messages"]["notice"]["unread"], 1);

        let unread = mark(client, 1, &id, "unread").await;
        insta::assert_snapshot!(hide(&unread.text), @r#"{"message_id":"ID","unread":1,"revision":3}"#);
        assert_eq!(mark(client, 1, &id, "unread").await.text, unread.text);
        assert_eq!(client.get(&format!("/v1/messages/{id}")).await.ok()["read_count"], 0);
        node.stop().await;
        let node = world.node().await;
        assert_eq!(shown(&node.client, 1).await, json!({"notice": {"unread": 1}}), "it is there after a restart");
        node.stop().await;
    }

    async fn lists_narrow_page_and_keep_their_places(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut ids = Vec::new();
        for n in 0..20 {
            ids.push(send(client, if n % 3 == 0 { "mail" } else { "notice" }, &[5]).await);
        }
        for id in [&ids[0], &ids[1], &ids[19]] {
            mark(client, 5, id, "read").await.ok();
        }
        client.delete(&format!("/v1/users/5/messages/{}", ids[10])).await.ok();
        let all: Vec<i64> = (1..=20).rev().filter(|seq| *seq != 11).collect();
        assert_eq!(seqs(client, 5, "").await, all);
        assert_eq!(seqs(client, 5, "&status=all").await, all);
        assert_eq!(seqs(client, 5, "&status=read").await, [20, 2, 1]);
        assert_eq!(seqs(client, 5, "&status=unread").await, (3..=19).rev().filter(|seq| *seq != 11).collect::<Vec<_>>());
        assert_eq!(seqs(client, 5, "&type=mail").await, [19, 16, 13, 10, 7, 4, 1]);
        assert_eq!(seqs(client, 5, "&type=mail&status=unread").await, [19, 16, 13, 10, 7, 4]);
        assert_eq!(seqs(client, 5, "&type=notice&status=read").await, [20, 2]);
        assert!(seqs(client, 5, "&type=other").await.is_empty() && seqs(client, 6, "").await.is_empty());
        // What comes and goes between two pages neither repeats nor skips what stays.
        let first = client.get("/v1/users/5/messages?limit=4&type=notice").await;
        let next = first.body["next_cursor"].as_str().unwrap();
        assert_eq!(first.header("link"), format!("</v1/users/5/messages?limit=4&type=notice&cursor={next}>; rel=\"next\""));
        send(client, "notice", &[5]).await;
        client.delete(&format!("/v1/users/5/messages/{}", ids[14])).await.ok();
        let second = client.get(&format!("/v1/users/5/messages?limit=3&type=notice&cursor={next}")).await.ok();
        let second: Vec<_> = second["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect();
        assert_eq!(second, [14, 12, 9]);
        for (query, name) in [("?status=new", "status"), ("?type=A", "type"), ("?limit=0", "limit"), ("?state=read", "state"), ("?status=", "status")] {
            assert_eq!(client.get(&format!("/v1/users/5/messages{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        client.get("/v1/users/5/messages?cursor=x").await.problem(400, "invalid_cursor");
        node.stop().await;
    }

    async fn many_are_read_by_id_by_type_up_to_a_seq_or_all(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let mut ids = Vec::new();
        for n in 0..9 {
            ids.push(send(client, ["a", "b", "c"][n % 3], &[7]).await);
        }
        let path = "/v1/users/7/messages/read";
        let reply = client.post(path, &json!({"message_ids": [ids[0], ids[1], ids[8]], "up_to_seq": 5})).await;
        insta::assert_snapshot!(reply.text, @r#"{"changed":2,"revision":10,"messages":{"a":{"unread":2},"b":{"unread":2},"c":{"unread":3}}}"#);
        let again = client.post(path, &json!({"message_ids": [ids[0], ids[1]]})).await.ok();
        assert_eq!((&again["changed"], &again["revision"]), (&json!(0), &json!(10)));
        let of_type = client.post(path, &json!({"type": "a", "up_to_seq": 4})).await.ok();
        assert_eq!((&of_type["changed"], &of_type["messages"]["a"]), (&json!(1), &json!({"unread": 1})));
        let unknown = client.post(path, &json!({"type": "zzz"})).await.ok();
        assert_eq!((&unknown["changed"], &unknown["messages"]["zzz"]), (&json!(0), &Value::Null));
        let all = client.post(path, &json!({"all": true, "up_to_seq": 8})).await.ok();
        assert_eq!((&all["changed"], &all["messages"]), (&json!(5), &json!({"a": {"unread": 0}, "b": {"unread": 0}, "c": {"unread": 1}})));
        assert_eq!(shown(client, 7).await, all["messages"]);
        let rest = client.post(path, &json!({"all": true})).await.ok();
        assert_eq!((&rest["changed"], &rest["revision"]), (&json!(1), &client.sheet(7).await["revision"]));
        assert_eq!(client.post(path, &json!({"all": true})).await.ok()["changed"], 0);
        node.stop().await;
    }

    async fn more_than_a_transaction_takes_is_read_all_the_same(world: World) {
        let node = world.node().await;
        let client = &node.client;
        // The first transaction takes 200, the second one the rest.
        let sends = (0..470).map(|n| send(client, if n % 5 == 0 { "mail" } else { "notice" }, if n < 200 { &[1, 2] } else { &[1] }));
        futures_util::stream::iter(sends).buffer_unordered(32).collect::<Vec<_>>().await;
        let last = client.get("/v1/users/1/messages?limit=1").await.ok()["items"][0]["seq"].clone();
        let read = client.post("/v1/users/1/messages/read", &json!({"type": "notice", "up_to_seq": last})).await.ok();
        assert_eq!((&read["changed"], &read["messages"]), (&json!(376), &json!({"notice": {"unread": 0}, "mail": {"unread": 94}})));
        assert_eq!(client.post("/v1/users/1/messages/read", &json!({"all": true})).await.ok()["changed"], 94);
        assert_eq!(client.sheet(1).await["total"], 0);
        // As many as the first transaction takes: the second one finds nothing.
        let read = client.post("/v1/users/2/messages/read", &json!({"all": true})).await.ok();
        assert_eq!((&read["changed"], &read["revision"]), (&json!(200), &client.sheet(2).await["revision"]));
        node.stop().await;
    }

    async fn deleting_keeps_what_was_counted_and_withdrawing_takes_it_from_all(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let (first, second) = (send(client, "notice", &[1, 2, 3]).await, send(client, "notice", &[1, 2, 3]).await);
        mark(client, 1, &first, "read").await.ok();
        for _ in 0..2 {
            for user in [1, 2] {
                let reply = client.delete(&format!("/v1/users/{user}/messages/{first}")).await;
                assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
            }
        }
        let unread = async |client: &Client| [shown(client, 1).await, shown(client, 2).await, shown(client, 3).await].map(|shown| shown["notice"]["unread"].as_i64().unwrap());
        assert_eq!((unread(client).await, unread(other).await), ([1, 1, 2], [1, 1, 2]));
        assert_eq!((seqs(client, 1, "").await, seqs(client, 3, "").await), (vec![2], vec![2, 1]));
        let message = other.get(&format!("/v1/messages/{first}")).await.ok();
        assert_eq!((&message["read_count"], &message["recipient_count"]), (&json!(1), &json!(3)), "who deleted it had read it, or not");

        mark(client, 3, &second, "read").await.ok();
        let before = client.sheet(3).await["revision"].as_i64().unwrap();
        for node in [client, other] {
            let reply = node.delete(&format!("/v1/messages/{second}")).await;
            assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        }
        assert_eq!((unread(client).await, unread(other).await), ([0, 0, 1], [0, 0, 1]));
        assert_eq!(client.sheet(3).await["revision"], before + 1, "its list is another");
        assert_eq!((seqs(other, 1, "").await, seqs(other, 3, "").await), (vec![], vec![1]));
        for user in [1, 2, 3] {
            mark(client, user, &second, "read").await.problem(410, "gone");
            mark(client, user, &second, "unread").await.problem(410, "gone");
            assert_eq!(client.delete(&format!("/v1/users/{user}/messages/{second}")).await.status, 204);
        }
        mark(client, 1, &first, "read").await.problem(410, "gone");
        client.get(&format!("/v1/messages/{second}")).await.problem(410, "gone");
        let mixed = client.post("/v1/users/3/messages/read", &json!({"message_ids": [first, second]})).await;
        assert_eq!(mixed.pointers(410, "gone"), ["/message_ids/1"]);
        assert_eq!(unread(client).await, [0, 0, 1], "all or nothing");
        assert_eq!(client.post("/v1/users/3/messages/read", &json!({"all": true})).await.ok()["changed"], 1);
        Node::stop_all(nodes).await;
    }

    async fn bad_requests_are_refused_and_change_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let id = send(client, "notice", &[1]).await;
        let with = |field: &str, value: Value| {
            let mut body = mail("notice", &[1, 2]);
            body[field] = value;
            body
        };
        let many: Vec<i64> = (1..=10_001).collect();
        for (body, pointer) in [
            (with("type", json!("Notice")), "/type"),
            (with("title", json!("")), "/title"),
            (with("title", json!("é".repeat(201))), "/title"),
            (with("content", json!("é".repeat(10_001))), "/content"),
            (with("content", Value::Null), "/content"),
            (with("recipients", json!([])), "/recipients"),
            (with("recipients", json!(many)), "/recipients"),
            (with("recipients", json!([1, 2, "1"])), "/recipients/2"),
            (with("recipients", json!([1, 0])), "/recipients/1"),
            (with("recipient", json!([1])), "/recipient"),
        ] {
            assert_eq!(client.post("/v1/messages", &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        let longest = json!({"type": "notice", "title": "é".repeat(200), "content": "é".repeat(10_000), "recipients": ["9"]});
        assert_eq!(client.post("/v1/messages", &longest).await.ok()["content"], longest["content"]);
        let path = "/v1/users/1/messages/read";
        let named: Vec<i64> = (1..=1001).collect();
        for (body, pointer) in [
            (json!({}), ""),
            (json!({"all": true, "type": "notice"}), ""),
            (json!({"message_ids": [1], "all": true}), ""),
            (json!({"up_to_seq": 5}), ""),
            (json!({"all": false}), "/all"),
            (json!({"all": null}), "/all"),
            (json!({"type": null}), "/type"),
            (json!({"type": "A"}), "/type"),
            (json!({"message_ids": []}), "/message_ids"),
            (json!({"message_ids": named}), "/message_ids"),
            (json!({"message_ids": ["5", 5]}), "/message_ids/1"),
            (json!({"message_ids": ["05"]}), "/message_ids/0"),
            (json!({"all": true, "up_to_seq": -1}), "/up_to_seq"),
            (json!({"all": true, "up_to": 5}), "/up_to"),
        ] {
            assert_eq!(client.post(path, &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        assert_eq!(client.post(path, &json!({"message_ids": [id, 7, 8]})).await.pointers(404, "not_found"), ["/message_ids/1", "/message_ids/2"]);
        for (user, unknown) in [(1, "7"), (2, id.as_str())] {
            mark(client, user, unknown, "read").await.problem(404, "not_found");
            mark(client, user, unknown, "unread").await.problem(404, "not_found");
            client.delete(&format!("/v1/users/{user}/messages/{unknown}")).await.problem(404, "not_found");
        }
        client.get("/v1/messages/7").await.problem(404, "not_found");
        client.delete("/v1/messages/7").await.problem(404, "not_found");
        for bad in ["0", "x", "-1", "9223372036854775808"] {
            assert_eq!(client.get(&format!("/v1/messages/{bad}")).await.pointers(400, "invalid_path"), ["message_id"]);
            assert_eq!(mark(client, 1, bad, "read").await.pointers(400, "invalid_path"), ["message_id"]);
        }
        assert_eq!(client.post(&format!("/v1/users/1/messages/{id}/read"), &json!({"at": 5})).await.pointers(422, "invalid_body"), ["/at"]);
        client.delete(&format!("/v1/users/1/messages/{id}?all=true")).await.problem(400, "invalid_query");
        let sheet = client.sheet(1).await;
        assert_eq!((&sheet["revision"], &sheet["total"]), (&json!(1), &json!(1)));
        node.stop().await;
    }

    async fn a_user_has_messages_of_a_hundred_types(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for n in 0..100 {
            send(client, &format!("type-{n}"), &[2]).await;
        }
        let refused = client.post("/v1/messages", &mail("one-more", &[1, 2, 3])).await;
        assert_eq!(refused.pointers(409, "too_many"), ["/recipients/1"]);
        assert_eq!((client.sheet(1).await["revision"].clone(), shown(client, 3).await), (json!(0), json!({})), "all or nothing");
        send(client, "type-7", &[1, 2]).await;
        assert_eq!(client.sheet(2).await["total"], 101);
        node.stop().await;
    }

    async fn a_retry_changes_nothing(world: World) {
        let nodes = world.nodes().await;
        let body = mail("notice", &[1, 2]);
        let first = nodes[0].client.post_once("/v1/messages", "mail-1", &body).await;
        assert_eq!((first.status.as_u16(), first.header("idempotent-replayed")), (201, ""));
        for node in &nodes {
            let again = node.client.post_once("/v1/messages", "mail-1", &body).await;
            assert_eq!((again.status.as_u16(), &again.text, again.header("idempotent-replayed")), (201, &first.text, "true"));
            node.client.post_once("/v1/messages", "mail-1", &mail("notice", &[1])).await.problem(422, "idempotency_key_reused");
            assert_eq!((seqs(&node.client, 1, "").await, node.client.sheet(2).await["revision"].as_i64()), (vec![1], Some(1)));
        }
        Node::stop_all(nodes).await;
    }

    async fn who_may_do_what(world: World) {
        let node = world.node_with(&["--service-keys", "web:s3cret", "--jwt-secret", SECRET]).await;
        let token = |id: i64| node.app.state().auth.user_token(id.try_into().unwrap(), Duration::from_secs(600)).unwrap();
        let (alice, bob, service) = (node.client.with_bearer(&token(1)), node.client.with_bearer(&token(2)), node.client.with_bearer("s3cret"));
        let id = send(&service, "notice", &[1, 2]).await;
        alice.post("/v1/messages", &mail("notice", &[2])).await.problem(403, "forbidden");
        alice.get(&format!("/v1/messages/{id}")).await.problem(403, "forbidden");
        alice.delete(&format!("/v1/messages/{id}")).await.problem(403, "forbidden");
        node.client.post("/v1/messages", &mail("notice", &[2])).await.problem(401, "unauthorized");
        bob.get("/v1/users/1/messages").await.problem(403, "forbidden");
        bob.post("/v1/users/1/messages/read", &json!({"all": true})).await.problem(403, "forbidden");
        mark(&bob, 1, &id, "read").await.problem(403, "forbidden");
        bob.delete(&format!("/v1/users/1/messages/{id}")).await.problem(403, "forbidden");
        assert_eq!(alice.get("/v1/users/me/messages").await.ok()["items"][0]["message_id"], id);
        alice.post(&format!("/v1/users/me/messages/{id}/read"), &json!({})).await.ok();
        assert_eq!(service.get(&format!("/v1/messages/{id}")).await.ok()["read_count"], 1);
        assert_eq!(bob.post("/v1/users/me/messages/read", &json!({"message_ids": [id]})).await.ok()["changed"], 1);
        assert_eq!(alice.delete(&format!("/v1/users/me/messages/{id}")).await.status, 204);
        node.stop().await;
    }

    async fn senders_at_once_leave_no_gap_and_a_reader_skips_none(world: World) {
        const SENDERS: usize = 8;
        const EACH: usize = 12;
        let nodes = world.nodes().await;
        let clients: Vec<Client> = nodes.iter().map(|node| node.client.clone()).collect();
        let senders = (0..SENDERS).map(|sender| {
            let client = clients[sender % clients.len()].clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    // In another order each, so that locks taken in the order of the request would wait for each other.
                    let mut to = vec![1, 2, 3 + i64::try_from(sender).unwrap()];
                    to.rotate_left((sender + n) % 3);
                    send(&client, if n % 2 == 0 { "notice" } else { "mail" }, &to).await;
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        let all = i64::try_from(SENDERS * EACH).unwrap();
        let reader = clients.last().unwrap().clone();
        let (mut seen, mut highest) = (BTreeSet::new(), 0);
        eventually("the reader has all", async || {
            let list = seqs(&reader, 1, "").await;
            assert!(list.windows(2).all(|two| two[0] == two[1] + 1), "{list:?}");
            // Whoever has seen a seq has seen, or sees now, all below it.
            assert!(list.first().copied().unwrap_or(0) >= highest && list.last().is_none_or(|last| *last == 1), "{list:?}");
            highest = list.first().copied().unwrap_or(0);
            seen.extend(list);
            highest == all
        })
        .await;
        for sender in senders {
            sender.await.unwrap();
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), (1..=all).collect::<Vec<_>>());
        for client in &clients {
            assert_eq!(seqs(client, 2, "").await, (1..=all).rev().collect::<Vec<_>>());
            let half = all / 2;
            assert_eq!(shown(client, 2).await, json!({"mail": {"unread": half}, "notice": {"unread": half}}));
            assert_eq!(seqs(client, 3, "").await.len(), EACH);
        }
        Node::stop_all(nodes).await;
    }

    async fn a_message_for_ten_thousand(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        let everybody: Vec<i64> = (1..=10_000).collect();
        // The second one finds all rows there.
        let mut ids = Vec::new();
        for round in ["first", "second"] {
            let began = Instant::now();
            ids.push(send(client, "notice", &everybody).await);
            say(&format!("{:?}: the {round} message to 10,000 took {:?}", world.tier, began.elapsed()));
        }
        for user in [1, 4711, 10_000] {
            assert_eq!(other.sheet(user).await["messages"]["notice"]["unread"], 2);
            mark(other, user, &ids[0], "read").await.ok();
        }
        let message = client.get(&format!("/v1/messages/{}", ids[0])).await.ok();
        assert_eq!((&message["recipient_count"], &message["read_count"]), (&json!(10_000), &json!(3)));
        let began = Instant::now();
        assert_eq!(client.delete(&format!("/v1/messages/{}", ids[0])).await.status, 204);
        say(&format!("{:?}: withdrawing it took {:?}", world.tier, began.elapsed()));
        for (user, unread) in [(1, 1), (2, 1), (9999, 1)] {
            assert_eq!(other.sheet(user).await["messages"]["notice"]["unread"], unread);
            assert_eq!(seqs(other, user, "").await, [2]);
        }
        Node::stop_all(nodes).await;
    }

    async fn a_waiting_poll_wakes_for_a_message_and_for_its_withdrawal(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        let mut tag = last.get("/v1/users/2/badges").await.header("etag").to_owned();
        let mut id = String::new();
        for unread in [1, 0] {
            let waiting = last.request(Method::GET, "/v1/users/2/badges?wait=30").header("if-none-match", &tag);
            let poll = tokio::spawn(Client::send(waiting));
            eventually("the poll waits", async || last.metric("headmark_polls_waiting").await == 1.0).await;
            if unread == 1 {
                id = send(first, "notice", &[1, 2]).await;
            } else {
                assert_eq!(first.delete(&format!("/v1/messages/{id}")).await.status, 204);
            }
            let told = poll.await.unwrap();
            tag = told.header("etag").to_owned();
            assert_eq!(told.ok()["messages"]["notice"]["unread"], unread);
        }
        Node::stop_all(nodes).await;
    }

    async fn every_sequence_matches_a_model(world: World) {
        let nodes = world.nodes().await;
        for seed in 1..=4 {
            Run { clients: nodes.iter().map(|node| node.client.clone()).collect(), dice: Dice::new(seed), first_user: 100 * i64::try_from(seed).unwrap(), sent: Vec::new(), revisions: [0; 3] }.go().await;
        }
        Node::stop_all(nodes).await;
    }
}

const KINDS: [&str; 2] = ["mail", "notice"];

/// What one of the three users has of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Has {
    read: bool,
    gone: bool,
}

/// A message of the model, with what each user has of it.
#[derive(Debug, Clone)]
struct Sent {
    id: String,
    kind: &'static str,
    has: [Option<Has>; 3],
    withdrawn: bool,
}

/// A random sequence of requests, and a naive model beside it.
struct Run {
    clients: Vec<Client>,
    dice: Dice,
    first_user: i64,
    sent: Vec<Sent>,
    revisions: [i64; 3],
}

impl Run {
    async fn go(mut self) {
        for _ in 0..60 {
            self.step().await;
            let at = self.dice.roll(3);
            self.compare(at).await;
        }
        for at in 0..3 {
            self.compare(at).await;
        }
    }

    fn user(&self, at: usize) -> i64 {
        self.first_user + i64::try_from(at).unwrap()
    }

    /// Changes what a user has; a change raises the revision. Returns how many rows changed.
    fn change(&mut self, at: usize, meant: impl Fn(&Sent) -> bool, to: impl Fn(Has) -> Has) -> usize {
        let mut changed = 0;
        for sent in self.sent.iter_mut().filter(|sent| meant(sent)) {
            let before = sent.has[at];
            sent.has[at] = before.map(&to);
            changed += usize::from(sent.has[at] != before);
        }
        self.revisions[at] += i64::from(changed > 0);
        changed
    }

    fn unread(&self, at: usize, kind: &str) -> Option<usize> {
        let mut mine = self.sent.iter().filter(|sent| sent.kind == kind).filter_map(|sent| sent.has[at]).peekable();
        mine.peek()?;
        Some(mine.filter(|has| !has.read && !has.gone).count())
    }

    async fn step(&mut self) {
        let client = self.clients[self.dice.roll(self.clients.len())].clone();
        let (at, which) = (self.dice.roll(3), self.dice.roll(self.sent.len().max(1)));
        let (user, known) = (self.user(at), self.sent.get(which).cloned());
        match (self.dice.roll(10), known) {
            (0..=2, _) | (_, None) => {
                let (kind, others) = (self.dice.pick(&KINDS), 1 + self.dice.roll(7));
                let to: Vec<usize> = (0..3).filter(|at| others >> at & 1 == 1).collect();
                let id = send(&client, kind, &to.iter().map(|at| self.user(*at)).collect::<Vec<_>>()).await;
                let has = [0, 1, 2].map(|at| to.contains(&at).then_some(Has { read: false, gone: false }));
                to.into_iter().for_each(|at| self.revisions[at] += 1);
                self.sent.push(Sent { id, kind, has, withdrawn: false });
            }
            (roll @ 3..=5, Some(sent)) => {
                let read = roll < 5;
                let reply = mark(&client, user, &sent.id, if read { "read" } else { "unread" }).await;
                match sent.has[at] {
                    None => drop(reply.problem(404, "not_found")),
                    Some(has) if has.gone => drop(reply.problem(410, "gone")),
                    Some(_) => {
                        self.change(at, |other| other.id == sent.id, |has| Has { read, ..has });
                        let body = reply.ok();
                        assert_eq!(
                            (body["unread"].as_u64().map(|unread| usize::try_from(unread).unwrap()), &body["revision"]),
                            (self.unread(at, sent.kind), &json!(self.revisions[at]))
                        );
                    }
                }
            }
            (6, Some(sent)) => {
                let reply = client.delete(&format!("/v1/users/{user}/messages/{}", sent.id)).await;
                assert_eq!(reply.status, if sent.has[at].is_some() { 204 } else { 404 });
                self.change(at, |other| other.id == sent.id, |has| Has { gone: true, ..has });
            }
            (7, Some(sent)) => {
                assert_eq!(client.delete(&format!("/v1/messages/{}", sent.id)).await.status, 204);
                for at in 0..3 {
                    self.change(at, |other| other.id == sent.id, |has| Has { gone: true, ..has });
                }
                self.sent[which].withdrawn = true;
            }
            (_, Some(sent)) => self.many(&client, at, &sent).await,
        }
    }

    /// Reads by type, all, or two by id.
    async fn many(&mut self, client: &Client, at: usize, sent: &Sent) {
        let seq_of = |this: &Self, id: &str| {
            this.sent.iter().filter(|sent| sent.has[at].is_some()).position(|sent| sent.id == id).map_or(0, |at| at + 1)
        };
        let up_to = (self.dice.roll(2) == 0).then(|| self.dice.roll(self.sent.len() + 1));
        let other = self.sent[self.dice.roll(self.sent.len())].clone();
        let (mut body, ids) = match self.dice.roll(3) {
            0 => (json!({"all": true}), None),
            1 => (json!({"type": sent.kind}), None),
            _ => {
                let ids: BTreeSet<_> = [sent.id.clone(), other.id.clone()].into();
                (json!({"message_ids": ids}), Some(ids))
            }
        };
        if let Some(up_to) = up_to {
            body["up_to_seq"] = json!(up_to);
        }
        let reply = client.post(&format!("/v1/users/{}/messages/read", self.user(at)), &body).await;
        let named = |sent: &Sent| ids.as_ref().is_some_and(|ids| ids.contains(&sent.id));
        if self.sent.iter().any(|sent| named(sent) && sent.has[at].is_none()) {
            return drop(reply.problem(404, "not_found"));
        }
        if self.sent.iter().any(|sent| named(sent) && sent.has[at].is_some_and(|has| has.gone)) {
            return drop(reply.problem(410, "gone"));
        }
        let in_reach: BTreeSet<String> =
            self.sent.iter().filter(|sent| up_to.is_none_or(|up_to| seq_of(self, &sent.id) <= up_to)).map(|sent| sent.id.clone()).collect();
        let of_type = body["type"].as_str().map(str::to_owned);
        let meant = |sent: &Sent| {
            let asked = match &ids {
                Some(ids) => ids.contains(&sent.id),
                None => of_type.as_ref().is_none_or(|kind| kind == sent.kind),
            };
            asked && in_reach.contains(&sent.id) && sent.has[at].is_some_and(|has| !has.gone)
        };
        let changed = self.change(at, meant, |has| Has { read: true, ..has });
        let reply = reply.ok();
        assert_eq!((&reply["changed"], &reply["revision"]), (&json!(changed), &json!(self.revisions[at])), "{body}");
        assert_eq!(reply["messages"], self.messages(at));
    }

    fn messages(&self, at: usize) -> Value {
        let shown = KINDS.iter().filter_map(|kind| Some(((*kind).to_owned(), json!({"unread": self.unread(at, kind)?}))));
        Value::Object(shown.collect())
    }

    /// Sheet, list and counts are those of the model, on any node.
    async fn compare(&mut self, at: usize) {
        let client = self.clients[self.dice.roll(self.clients.len())].clone();
        let sheet = client.sheet(self.user(at)).await;
        assert_eq!((&sheet["messages"], &sheet["revision"]), (&self.messages(at), &json!(self.revisions[at])));
        let mine = self.sent.iter().filter_map(|sent| Some((sent, sent.has[at]?)));
        let mut listed: Vec<_> =
            (1..).zip(mine).filter(|(_, (_, has))| !has.gone).map(|(seq, (sent, has))| (seq, sent.id.clone(), has.read)).collect();
        listed.reverse();
        let items = client.walk(&format!("/v1/users/{}/messages", self.user(at)), 9).await;
        let shown = items
            .iter()
            .map(|item| (item["seq"].as_i64().unwrap(), item["message_id"].as_str().unwrap().to_owned(), item.get("read_at").is_some()));
        assert_eq!(shown.collect::<Vec<_>>(), listed);
        if let Some(sent) = self.sent.last() {
            let reply = client.get(&format!("/v1/messages/{}", sent.id)).await;
            if sent.withdrawn {
                return drop(reply.problem(410, "gone"));
            }
            let read = sent.has.iter().flatten().filter(|has| has.read).count();
            assert_eq!(reply.ok()["read_count"], json!(read));
        }
    }
}
