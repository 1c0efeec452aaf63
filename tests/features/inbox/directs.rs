//! One direct chat: where it is, unread again, recalls, its history, and a device's own position.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use headmark::base::clock::DAY_MS;
use headmark::features::inbox::expiry::{Walk, sweep};
use serde_json::{Value, json};

use super::{chats, differences, inbox, message, read, send, seqs, sums, unread};
use crate::both_tiers;
use crate::support::{Client, Hand, Node, Pause};

async fn direct(client: &Client, user: i64, peer: i64) -> Value {
    client.get(&format!("/v1/users/{user}/directs/{peer}")).await.ok()
}

async fn recall(client: &Client, user: i64, peer: i64, seq: i64) -> u16 {
    client.delete(&format!("/v1/users/{user}/directs/{peer}/messages/{seq}")).await.status.as_u16()
}

async fn history(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/users/2/directs/1/messages?{query}")).await.ok()
}

both_tiers! {
    async fn one_chat_says_where_it_is(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let nothing = client.get("/v1/users/2/directs/1").await;
        insta::assert_snapshot!(nothing.text, @r#"{"peer_id":"1","unread":0,"last_seq":0,"read_seq":0,"level":"all"}"#);
        for id in ["a", "b", "c"] {
            send(client, 1, 2, id).await;
            send(client, 3, 2, id).await;
        }
        read(client, 2, 1, &json!({"up_to": 2})).await;
        let known = client.get("/v1/users/2/directs/1").await;
        insta::assert_snapshot!(known.text, @r#"{"peer_id":"1","unread":2,"last_seq":5,"read_seq":1,"first_unread_seq":3,"last_at":"2027-01-15T08:00:00.000Z","level":"all"}"#);
        assert_eq!(client.get_if_changed("/v1/users/2/directs/1", known.header("etag")).await.status, 304);
        assert_eq!(client.get("/v1/users/2/directs").await.ok()["items"][1], known.body, "as the list shows it");
        // Sending reads what came before.
        client.post("/v1/users/1/inbox", &message(2, "re", "re")).await.ok();
        let shown = direct(client, 2, 1).await;
        assert_eq!((&shown["unread"], &shown["last_seq"], &shown["read_seq"], &shown["first_unread_seq"]), (&json!(0), &json!(7), &json!(7), &Value::Null));
        assert_eq!((sums(&node, 2).await, direct(client, 1, 2).await["unread"].clone()), ((3, 1), json!(1)));
        client.get("/v1/users/2/directs/1?wait=5").await.problem(400, "wait_needs_tag");
        node.stop().await;
    }

    async fn what_is_sent_while_a_page_is_read_is_on_the_next(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, 1, 2, "a").await;
        let (pause, reader) = (Pause::at("inbox::history_read"), client.clone());
        let page = tokio::spawn(async move { history(&reader, "after=1").await });
        pause.reached().await;
        send(client, 1, 2, "b").await;
        pause.go_on().await;
        let page = page.await.unwrap();
        assert_eq!((&page["items"], &page["head"], &page["next_after"]), (&json!([]), &json!(1), &json!(1)));
        assert_eq!(seqs(&history(client, "after=1").await), [2]);
        node.stop().await;
    }

    async fn a_page_around_a_place_beyond_the_end_leads_past_no_message(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, 3, 2, "a").await;
        for expected in [1, 2] {
            let page = history(client, "around=100").await;
            assert_eq!((&page["head"], &page["next_after"], &page["has_more"]), (&json!(expected), &json!(expected), &json!(false)));
            let seq = send(client, 1, 2, &format!("m{expected}")).await;
            assert_eq!(seqs(&history(client, &format!("after={}", page["next_after"])).await), [seq]);
        }
        // All has been shown up to the head, but not up to the place.
        assert_eq!(seqs(&history(client, "around=100").await), [2, 3]);
        assert_eq!(history(client, "after=100").await["next_after"], 100, "a client that names a place stays there");
        node.stop().await;
    }

    async fn a_chat_is_unread_again_until_it_is_read(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        // 1 at 1, 3, 5; 3 at 2, 4; own at 6.
        for (sender, id) in [(1, "a"), (3, "a"), (1, "b"), (3, "b"), (1, "c")] {
            send(client, sender, 2, id).await;
        }
        client.post("/v1/users/1/inbox", &message(2, "re", "re")).await.ok();
        assert_eq!(sums(&nodes[0], 2).await, (2, 1));
        let reply = other.post("/v1/users/2/directs/1/unread", &json!({"from": 2})).await;
        insta::assert_snapshot!(reply.text, @r#"{"peer_id":"1","unread":2,"last_seq":6,"read_seq":6,"revision":8}"#);
        assert_eq!((sums(&nodes[0], 2).await, direct(client, 2, 1).await["first_unread_seq"].clone()), ((4, 2), json!(3)));
        assert_eq!(client.summary(2).await["chats"]["unread"], 4);
        assert_eq!(client.get("/v1/users/2/badges/explain").await.ok()["chats"]["unread"], 4);
        // A later point ends no earlier one, as in groups; a read moves it forward.
        assert_eq!((unread(client, 2, 1, 1).await, unread(client, 2, 1, 4).await, unread(client, 2, 1, 1).await), (3, 3, 3));
        assert_eq!(read(other, 2, 1, &json!({"up_to": 1})).await, 2);
        assert_eq!(direct(other, 2, 1).await["first_unread_seq"], 3);
        assert_eq!((read(other, 2, 1, &json!({"up_to": 1})).await, read(other, 2, 1, &json!({})).await), (2, 0));
        // Unread in any case.
        send(client, 1, 2, "d").await;
        assert_eq!((unread(client, 2, 1, 7).await, unread(client, 2, 1, 5).await), (1, 2));
        assert_eq!(direct(client, 2, 1).await["read_seq"], 6);
        // Sending ends it.
        client.post("/v1/users/1/inbox", &message(2, "re2", "re")).await.ok();
        assert_eq!((direct(client, 2, 1).await["unread"].clone(), sums(&nodes[0], 2).await), (json!(0), (2, 1)));
        for (peer, from) in [(1, 9), (77, 1)] {
            client.post(&format!("/v1/users/2/directs/{peer}/unread"), &json!({"from": from})).await.problem(404, "not_found");
        }
        for body in [json!({}), json!({"from": 0}), json!({"from": null}), json!({"from": 1, "x": 1})] {
            client.post("/v1/users/2/directs/1/unread", &body).await.problem(422, "invalid_body");
        }
        assert_eq!(differences(&nodes[0]).await, Vec::<String>::new());
        Node::stop_all(nodes).await;
    }

    async fn a_recalled_message_is_a_tombstone_on_both_sides(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for id in ["a", "b", "c"] {
            send(client, 1, 2, id).await;
        }
        let before = direct(client, 2, 1).await;
        at.fetch_add(5000, Ordering::SeqCst);
        assert_eq!(recall(client, 1, 2, 2).await, 204);
        let after = direct(client, 2, 1).await;
        assert_eq!((&after["unread"], &after["last_seq"], &after["last_at"]), (&json!(2), &before["last_seq"], &before["last_at"]));
        assert_eq!(sums(&node, 2).await, (2, 1));
        let theirs = inbox(client, 2, "?after=1").await["items"].to_string();
        insta::assert_snapshot!(theirs, @r#"[{"peer_id":"1","recalled":true,"sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":2},{"content":"c","peer_id":"1","sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":3},{"peer_id":"1","recall":2,"sender_id":"1","sent_at":"2027-01-15T08:00:05.000Z","seq":4}]"#);
        let own = inbox(client, 1, "?after=1").await["items"].to_string();
        insta::assert_snapshot!(own, @r#"[{"client_id":"b","own":true,"peer_id":"2","recalled":true,"sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":2},{"client_id":"c","content":"c","own":true,"peer_id":"2","sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":3},{"own":true,"peer_id":"2","recall":2,"sender_id":"1","sent_at":"2027-01-15T08:00:05.000Z","seq":4}]"#);
        assert_eq!((recall(client, 1, 2, 2).await, inbox(client, 2, "").await["head"].clone()), (204, json!(4)), "again changes nothing");
        client.post("/v1/users/2/inbox", &message(1, "b", "b")).await.problem(410, "gone");
        // The row that tells is no message.
        for (user, peer, seq, status) in [(2, 1, 1, 403), (1, 2, 4, 404), (1, 2, 9, 404), (1, 3, 1, 404)] {
            assert_eq!(recall(client, user, peer, seq).await, status, "{user} {peer} {seq}");
        }
        // The number falls by what is unread alone.
        assert_eq!(read(client, 2, 1, &json!({"up_to": 2})).await, 1);
        assert_eq!((recall(client, 1, 2, 1).await, direct(client, 2, 1).await["unread"].clone()), (204, json!(1)));
        assert_eq!(unread(client, 2, 1, 1).await, 1, "what is recalled is never unread");
        assert_eq!(direct(client, 2, 1).await["first_unread_seq"], 3);
        assert_eq!((recall(client, 1, 2, 3).await, sums(&node, 2).await, direct(client, 2, 1).await["first_unread_seq"].clone()), (204, (0, 0), Value::Null));
        // To oneself.
        send(client, 5, 5, "note").await;
        assert_eq!((recall(client, 5, 5, 1).await, inbox(client, 5, "").await["head"].clone()), (204, json!(2)));
        assert_eq!(differences(&node).await, Vec::<String>::new());
        node.stop().await;
    }

    async fn an_expired_message_cannot_be_recalled_but_its_copy_is(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        send(client, 1, 2, "a").await;
        send(client, 1, 2, "b").await;
        at.fetch_add(29 * DAY_MS, Ordering::SeqCst);
        // What a device of the sender has yet to fetch is kept, and not the receiver's row.
        client.put("/v1/users/1/devices/d/cursor", &json!({"seq": 1})).await.ok();
        at.fetch_add(2 * DAY_MS, Ordering::SeqCst);
        sweep(&node.app.state().contexts.inbox, &mut Walk::default()).await.unwrap();
        assert_eq!(recall(client, 1, 2, 1).await, 410);
        assert_eq!(sums(&node, 2).await, (2, 1));
        assert_eq!((recall(client, 1, 2, 2).await, sums(&node, 2).await), (204, (1, 1)), "it counted until it was read");
        assert_eq!(inbox(client, 2, "").await["items"][0]["recall"], 2);
        assert_eq!((chats(client, 2).await, read(client, 2, 1, &json!({})).await), (vec![(1, 1, false)], 0));
        client.post("/v1/users/2/directs/1/unread", &json!({"from": 1})).await.problem(410, "cursor_expired");
        node.stop().await;
    }

    async fn a_row_that_does_not_name_its_copy_is_recalled_by_its_id(world: World) {
        let node = world.node().await;
        let client = &node.client;
        send(client, 1, 2, "a").await;
        Hand::on(&world).await.run("update inbox set other_seq = 0").await;
        assert_eq!((recall(client, 1, 2, 1).await, sums(&node, 2).await), (204, (0, 0)));
        assert_eq!(inbox(client, 2, "").await["items"][0]["recalled"], true);
        node.stop().await;
    }

    async fn the_history_is_read_both_ways(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        // In the inbox of 2: the chat with 1 at 1, 3, … 19, of which the last three are its own.
        for n in 0..7 {
            send(client, 1, 2, &format!("a{n}")).await;
            send(client, 3, 2, &format!("b{n}")).await;
        }
        for n in 0..3 {
            client.post("/v1/users/1/inbox", &message(2, &format!("c{n}"), "re")).await.ok();
            send(client, 3, 2, &format!("d{n}")).await;
        }
        recall(client, 1, 2, 2).await;
        let all: Vec<i64> = (0..10).map(|n| 2 * n + 1).collect();
        let page = history(client, "").await;
        assert_eq!((seqs(&page), &page["has_more"], &page["next_after"]), (all.clone(), &json!(false), &json!(19)));
        let items = (page["items"][1].to_string(), page["items"][7].to_string());
        insta::assert_snapshot!(items.0, @r#"{"peer_id":"1","recalled":true,"sender_id":"1","sent_at":"2027-01-15T08:00:00.000Z","seq":3}"#);
        insta::assert_snapshot!(items.1, @r#"{"client_id":"c0","content":"re","own":true,"peer_id":"1","sender_id":"2","sent_at":"2027-01-15T08:00:00.000Z","seq":15}"#);
        let page = history(client, "after=4&limit=3").await;
        assert_eq!((seqs(&page), &page["has_more"], &page["next_after"], &page["next_before"]), (vec![5, 7, 9], &json!(true), &json!(9), &Value::Null));
        let page = history(client, "before=9&limit=3").await;
        assert_eq!((seqs(&page), &page["has_more"], &page["next_before"]), (vec![7, 5, 3], &json!(true), &json!(3)));
        let page = history(client, "before=3&limit=3").await;
        assert_eq!((seqs(&page), &page["has_more"], &page["next_before"]), (vec![1], &json!(false), &json!(1)));
        assert_eq!(seqs(&history(client, "before=9007199254740991&limit=2").await), [19, 17]);
        let page = history(client, "around=8&limit=4").await;
        assert_eq!((seqs(&page), &page["has_more"], &page["has_older"]), (vec![5, 7, 9, 11], &json!(true), &json!(true)));
        assert_eq!((&page["next_before"], &page["next_after"]), (&json!(5), &json!(11)));
        let nothing = client.get("/v1/users/2/directs/77/messages").await;
        insta::assert_snapshot!(nothing.text, @r#"{"items":[],"next_after":21,"has_more":false,"head":21}"#);
        for (query, name) in [("after=1&before=2", "before"), ("after=1&around=2", "around"), ("before=1&around=2", "around"), ("before=0", "before"), ("limit=0", "limit")] {
            assert_eq!(client.get(&format!("/v1/users/2/directs/1/messages?{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        // Each walk meets every message once.
        let (mut down, mut place) = (Vec::new(), i64::from(i32::MAX));
        loop {
            let page = history(client, &format!("before={place}&limit=4")).await;
            down.extend(seqs(&page));
            place = page["next_before"].as_i64().unwrap();
            if page["has_more"] == false {
                break;
            }
        }
        down.reverse();
        assert_eq!(down, all);
        at.fetch_add(31 * DAY_MS, Ordering::SeqCst);
        send(client, 1, 2, "young").await;
        sweep(&node.app.state().contexts.inbox, &mut Walk::default()).await.unwrap();
        for query in ["after=3", "before=9", "around=9"] {
            let reply = client.get(&format!("/v1/users/2/directs/1/messages?{query}")).await;
            assert_eq!(reply.problem(410, "cursor_expired")["earliest_seq"], 22, "{query}");
        }
        assert_eq!((seqs(&history(client, "").await), seqs(&history(client, "before=100").await)), (vec![22], vec![22]));
        // All has expired: who begins at the end did not ask for a message that was there.
        at.fetch_add(31 * DAY_MS, Ordering::SeqCst);
        sweep(&node.app.state().contexts.inbox, &mut Walk::default()).await.unwrap();
        assert_eq!(seqs(&history(client, "before=23").await), Vec::<i64>::new());
        client.get("/v1/users/2/directs/1/messages?before=22").await.problem(410, "cursor_expired");
        node.stop().await;
    }

    async fn a_device_reads_from_its_own_cursor(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for n in 0..5 {
            send(client, 1, 2, &format!("c-{n}")).await;
        }
        assert_eq!(seqs(&inbox(client, 2, "?device=phone").await), [1, 2, 3, 4, 5], "a new one begins with the oldest row");
        client.put("/v1/users/2/devices/phone/cursor", &json!({"seq": 3})).await.ok();
        assert_eq!(seqs(&inbox(client, 2, "?device=phone").await), [4, 5]);
        assert_eq!(seqs(&inbox(client, 2, "?device=tablet&limit=2").await), [1, 2]);
        client.put("/v1/users/2/devices/phone/cursor", &json!({"seq": 5})).await.ok();
        let waits = client.request(reqwest::Method::GET, "/v1/users/2/inbox?device=phone&wait=60");
        let waits = tokio::spawn(Client::send(waits));
        crate::support::eventually("it waits", async || node.app.state().polling.waiting.taken() == 1).await;
        send(client, 1, 2, "c-5").await;
        assert_eq!(seqs(&waits.await.unwrap().ok()), [6]);
        assert_eq!(client.get("/v1/users/2/inbox?device=phone&after=1").await.pointers(400, "invalid_query"), ["device"]);
        assert_eq!(client.get("/v1/users/2/inbox?device=a%20b").await.pointers(400, "invalid_query"), ["device"]);
        node.stop().await;
    }
}
