//! Read receipts, over HTTP, as the contract has them.

mod nodes;
mod strangers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::features::groups::{make, read, read_one, send};
use crate::support::{CREDENTIALS, Client, eventually};

/// The times that a user was a member: messages there, messages read, whether it goes on.
pub(crate) type Stays = Vec<(BTreeSet<i64>, BTreeSet<i64>, bool)>;

/// Messages (sender, whether recalled), and the stays of each user.
pub(crate) type Model = BTreeMap<i64, (Vec<(i64, bool)>, BTreeMap<i64, Stays>)>;

async fn receipts(client: &Client, group: i64, seq: i64, query: &str) -> Value {
    client.get(&format!("/v1/groups/{group}/messages/{seq}/receipts{query}")).await.ok()
}

/// Recipients, how many have read it, how many have not.
async fn counts(client: &Client, group: i64, seq: i64) -> (i64, i64, i64) {
    let body = receipts(client, group, seq, "").await;
    let [recipients, read, unread] = ["recipients", "read_count", "unread_count"].map(|field| body[field].as_i64().unwrap());
    assert_eq!(read + unread, recipients);
    (recipients, read, unread)
}

/// The ordinals whose bit is set.
fn ordinals(bits: &Value) -> Vec<i64> {
    let bytes = BASE64.decode(bits.as_str().unwrap()).unwrap();
    let set = |at: &usize| bytes[at / 8] >> (at % 8) & 1 == 1;
    (0..bytes.len() * 8).filter(set).map(|at| i64::try_from(at).unwrap() + 1).collect()
}

async fn listed(client: &Client, group: i64, seq: i64, which: &str) -> Vec<(i64, bool)> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = receipts(client, group, seq, &format!("?members={which}&limit=2{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        all.extend(items.iter().map(|of| (of["user_id"].as_str().unwrap().parse().unwrap(), of["left"].as_bool().unwrap())));
        match page["next_cursor"].as_str() {
            None => return all,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

/// Everything that receipts tell, against plain sets.
pub(crate) async fn compare(client: &Client, model: &Model) {
    for (group, (messages, stays)) in model {
        for (seq, (sender, recalled)) in (1..).zip(messages) {
            if *recalled {
                client.get(&format!("/v1/groups/{group}/messages/{seq}/receipts")).await.problem(404, "not_found");
                continue;
            }
            let there = |user: &i64| stays[user].iter().find(|(there, ..)| there.contains(&seq));
            let recipients: Vec<_> = stays.keys().filter(|user| *user != sender).filter_map(|user| Some((*user, there(user)?))).collect();
            for (which, wanted) in [("read", true), ("unread", false)] {
                let these = recipients.iter().filter(|(_, (_, read, _))| read.contains(&seq) == wanted);
                let these: BTreeSet<_> = these.map(|(user, (.., open))| (*user, !open)).collect();
                let got = listed(client, *group, seq, which).await;
                assert_eq!(got.len(), these.len());
                assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), these, "message {seq} of group {group}, {which}");
            }
            let read = recipients.iter().filter(|(_, (_, read, _))| read.contains(&seq)).count();
            assert_eq!(
                counts(client, *group, seq).await,
                (recipients.len().try_into().unwrap(), read.try_into().unwrap(), (recipients.len() - read).try_into().unwrap())
            );
        }
    }
}

both_tiers! {
    async fn who_has_read_a_message(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[11, 12, 13, 14, 15, 16, 17, 18, 19, 20]).await;
        client.delete("/v1/groups/9/members/13").await;
        send(client, 9, 11, "a").await.ok();
        make(client, 9, &[21]).await;
        read(client, 12, 9, None).await.ok();
        read(client, 20, 9, None).await.ok();
        client.delete("/v1/groups/9/members/12").await;
        client.delete("/v1/groups/9/members/14").await;
        read(client, 21, 9, None).await.ok();
        insta::assert_snapshot!(receipts(client, 9, 1, "").await, @r#"{"max_ordinal":10,"read_count":2,"recipients":8,"sender_id":"11","seq":1,"unread_count":6}"#);
        insta::assert_snapshot!(
            receipts(client, 9, 1, "?members=read").await,
            @r#"{"items":[{"left":true,"ordinal":2,"user_id":"12"},{"left":false,"ordinal":10,"user_id":"20"}],"next_cursor":null}"#
        );
        assert_eq!(listed(client, 9, 1, "unread").await, [(14, true), (15, false), (16, false), (17, false), (18, false), (19, false)]);
        let bitmap = receipts(client, 9, 1, "?format=bitmap").await;
        insta::assert_snapshot!(bitmap, @r#"{"encoding":"bits","max_ordinal":10,"quit_bits":"BAA=","read_bits":"AgI="}"#);
        assert_eq!((ordinals(&bitmap["read_bits"]), ordinals(&bitmap["quit_bits"])), (vec![2, 10], vec![3]));
        // Who rejoins is no recipient of what came before, and what was read or not in the earlier
        // time stays.
        make(client, 9, &[12, 13, 14]).await;
        read(client, 14, 9, None).await.ok();
        assert_eq!(counts(client, 9, 1).await, (8, 2, 6));
        send(client, 9, 15, "b").await.ok();
        assert_eq!(counts(client, 9, 1).await, (8, 3, 5), "anyone who sends has read what is above");
        assert_eq!(counts(client, 9, 2).await, (10, 0, 10));
        let bitmap = receipts(client, 9, 2, "?format=bitmap").await;
        assert_eq!((bitmap["max_ordinal"].as_i64(), ordinals(&bitmap["quit_bits"])), (Some(11), vec![]));
        // Out of order: this message alone.
        for n in 3..=6 {
            send(client, 9, 16, &format!("c{n}")).await.ok();
        }
        assert_eq!(read_one(client, 17, 9, 5).await.ok()["unread"], 5);
        let screenful = client.get("/v1/groups/9/receipts?from=3&to=7").await.ok();
        insta::assert_snapshot!(
            screenful,
            @r#"{"items":[{"read_count":0,"seq":3,"unread_count":10},{"read_count":0,"seq":4,"unread_count":10},{"read_count":1,"seq":5,"unread_count":9},{"read_count":0,"seq":6,"unread_count":10}]}"#
        );
        client.delete("/v1/groups/9/messages/4").await;
        let seqs: Vec<_> = client.get("/v1/groups/9/receipts?from=3&to=7").await.ok()["items"].as_array().unwrap().iter().map(|of| of["seq"].clone()).collect();
        assert_eq!(seqs, [3, 5, 6]);
        client.get("/v1/groups/9/messages/4/receipts").await.problem(404, "not_found");
        node.stop().await;
    }

    async fn what_is_wrong_is_refused(world: World) {
        let node = world.node_with(&["--max-receipt-members", "3"]).await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        send(client, 9, 1, "a").await.ok();
        receipts(client, 9, 1, "?format=bitmap").await;
        make(client, 9, &[4]).await;
        receipts(client, 9, 1, "?format=bitmap").await;
        send(client, 9, 1, "b").await.ok();
        let listed_instead = receipts(client, 9, 2, "?format=bitmap").await;
        assert_eq!(listed_instead, json!({"encoding": "ordinals", "max_ordinal": 4, "read": [], "unread": [2, 3, 4]}), "there are too many ordinals for bits");
        assert_eq!(counts(client, 9, 2).await, (3, 0, 3), "counts stay");
        assert_eq!(listed(client, 9, 2, "unread").await.len(), 3, "and so do lists");
        for (query, name) in [
            ("?members=all", "members"), ("?format=json", "format"), ("?members=read&format=bitmap", "format"), ("?limit=5", "limit"), ("?wait=61", "wait"), ("?x=1", "x"),
        ] {
            assert_eq!(client.get(&format!("/v1/groups/9/messages/1/receipts{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        for (query, name) in [("from=1", "to"), ("from=0&to=1", "from"), ("from=1&to=101", "to"), ("from=3&to=2", "to")] {
            assert_eq!(client.get(&format!("/v1/groups/9/receipts?{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        client.get("/v1/groups/9/messages/3/receipts").await.problem(404, "not_found");
        client.get("/v1/groups/8/messages/1/receipts").await.problem(404, "not_found");
        client.get("/v1/groups/8/receipts?from=1&to=2").await.problem(404, "not_found");
        client.put("/v1/groups/9", &json!({"receipts": false})).await.ok();
        client.get("/v1/groups/9/messages/1/receipts").await.problem(409, "receipts_disabled");
        client.get("/v1/groups/9/receipts?from=1&to=2").await.problem(409, "receipts_disabled");
        node.stop().await;
    }

    async fn ordinals_that_have_run_far_ahead_are_listed(world: World) {
        let node = world.node().await;
        let client = &node.client;
        // A thousand come and go before three stay.
        make(client, 9, &(1..=1000).collect::<Vec<_>>()).await;
        join_all((1..=1000).map(|user| async move { client.delete(&format!("/v1/groups/9/members/{user}")).await.status })).await;
        make(client, 9, &[2001, 2002, 2003, 500]).await;
        send(client, 9, 2001, "a").await.ok();
        read(client, 2003, 9, None).await.ok();
        let path = "/v1/groups/9/messages/1/receipts?format=bitmap";
        let first = client.get(path).await;
        insta::assert_snapshot!(first.text, @r#"{"encoding":"ordinals","max_ordinal":1003,"read":[1003],"unread":[500,1002]}"#);
        read(client, 500, 9, None).await.ok();
        let second = client.get_if_changed(path, first.header("etag")).await;
        assert_eq!(second.clone().ok()["read"], json!([500, 1003]));
        assert_eq!(client.get_if_changed(path, second.header("etag")).await.status, 304);
        node.stop().await;
    }

    async fn only_senders_see_receipts(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        let [one, two, three] = [1, 2, 3].map(|user| node.user(user));
        make(&service, 9, &[1, 2]).await;
        send(&one, 9, 1, "a").await.ok();
        send(&two, 9, 2, "b").await.ok();
        let path = "/v1/groups/9/messages/1/receipts";
        assert_eq!((counts(&one, 9, 1).await, counts(&service, 9, 1).await), ((1, 1, 0), (1, 1, 0)));
        two.get(path).await.problem(403, "forbidden");
        three.get(path).await.problem(403, "forbidden");
        three.get("/v1/groups/9/messages/77/receipts").await.problem(403, "forbidden");
        two.get("/v1/groups/9/messages/77/receipts").await.problem(404, "not_found");
        let own = one.get("/v1/groups/9/receipts?from=1&to=9").await.ok();
        assert_eq!(own, json!({"items": [{"seq": 1, "read_count": 1, "unread_count": 0}]}));
        assert_eq!(service.get("/v1/groups/9/receipts?from=1&to=9").await.ok()["items"].as_array().unwrap().len(), 2);
        three.get("/v1/groups/9/receipts?from=1&to=9").await.problem(403, "forbidden");
        service.delete("/v1/groups/9/members/1").await;
        assert_eq!(counts(&one, 9, 1).await, (1, 1, 0), "a sender who has left still sees who has read it");
        node.stop().await;
    }

    async fn a_poll_of_receipts_waits_for_readers(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        make(&client, 9, &[1, 2, 3, 4]).await;
        send(&client, 9, 1, "a").await.ok();
        for path in ["/v1/groups/9/messages/1/receipts", "/v1/groups/9/receipts?from=1&to=1"] {
            let first = client.get(path).await;
            let tag = first.header("etag").to_owned();
            assert_eq!(client.get_if_changed(path, &tag).await.status, 304);
            let join = if path.contains('?') { '&' } else { '?' };
            let waiting: Vec<_> = [&client, &other].map(|node| {
                let (node, tag) = (node.clone(), tag.clone());
                tokio::spawn(async move { node.get_if_changed(&format!("{path}{join}wait=30"), &tag).await })
            }).into();
            tokio::time::sleep(Duration::from_millis(300)).await;
            let reader = if path.contains('?') { 3 } else { 2 };
            read(&client, reader, 9, None).await.ok();
            for waiting in waiting {
                let woken = tokio::time::timeout(Duration::from_secs(4), waiting).await.expect("it is woken, also on another node").unwrap();
                assert_eq!(woken.status, 200);
                // A node that has not heard of it reads again before it answers.
                assert_eq!(other.get_if_changed(path, woken.header("etag")).await.status, 304);
            }
        }
        crate::support::Node::stop_all(nodes).await;
    }

    async fn reading_all_chats_shows_in_receipts_at_once(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        send(client, 9, 1, "a").await.ok();
        assert_eq!(counts(client, 9, 1).await, (2, 0, 2), "the node has looked");
        client.post("/v1/users/2/chats/read", &json!({})).await.ok();
        assert_eq!(counts(client, 9, 1).await, (2, 1, 1));
        client.post("/v1/users/3/chats/read", &json!({"up_to": {"groups": {"9": 1}}})).await.ok();
        assert_eq!(counts(client, 9, 1).await, (2, 2, 0));
        node.stop().await;
    }

    async fn receipts_of_a_recalled_message_are_gone_for_a_sender_who_has_left(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        make(&service, 9, &[1, 2]).await;
        for (client_id, sender) in [("a", 1), ("b", 1), ("c", 2)] {
            send(&service, 9, sender, client_id).await.ok();
        }
        let path = |seq: i64| format!("/v1/groups/9/messages/{seq}/receipts");
        let as_user = |user: i64| node.user(user);
        for seq in [1, 3] {
            service.delete(&format!("/v1/groups/9/messages/{seq}")).await;
        }
        service.delete("/v1/groups/9/members/1").await;
        let one = as_user(1);
        one.get(&path(1)).await.problem(404, "not_found");
        assert_eq!(one.get(&path(2)).await.ok()["recipients"], 1, "the other one is still there");
        for seq in [3, 4] {
            one.get(&path(seq)).await.problem(403, "forbidden");
        }
        as_user(7).get(&path(1)).await.problem(403, "forbidden");
        node.stop().await;
    }

    /// A request that waits for a read that began later takes its result, also while the group changes.
    async fn a_busy_group_is_read_once_for_all_who_wait(world: World) {
        const ASKING: i64 = 12;
        let node = world.node_with(&["--scrub-users", "0", "--sql-reads", "1", "--sql-read-wait-ms", "20000"]).await;
        let client = &node.client;
        make(client, 9, &(1..=ASKING + 1).collect::<Vec<_>>()).await;
        send(client, 9, 1, "m").await.ok();
        let state = node.app.state();
        let turn = state.receipts.turns.take().await.unwrap();
        let mut asking = Vec::new();
        for change in 1..=ASKING {
            asking.push(tokio::spawn({
                let client = client.clone();
                async move { client.get("/v1/groups/9/messages/1/receipts").await.ok() }
            }));
            tokio::time::sleep(Duration::from_millis(20)).await;
            send(client, 9, 1, &format!("change-{change}")).await.ok();
        }
        // Longer than what was read is kept for: it is still later than what they asked.
        let reads = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&reads);
        let slow = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1100));
        };
        fail::cfg_callback("receipts::before_spans", slow).unwrap();
        drop(turn);
        for asking in asking {
            assert_eq!(asking.await.unwrap()["recipients"], ASKING);
        }
        assert_eq!(reads.load(Ordering::SeqCst), 1, "for {ASKING} that waited");
        node.stop().await;
    }

    /// A service has no entry of its own by which it would hear of it.
    async fn a_poll_of_a_service_hears_that_the_group_is_deleted(world: World) {
        let node = world.node().await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        send(client, 9, 1, "m").await.ok();
        let path = "/v1/groups/9/receipts?from=1&to=1";
        let tag = client.get(path).await.header("etag").to_owned();
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.get_if_changed(&format!("{path}&wait=30"), &tag).await }
        });
        let state = node.app.state();
        eventually("it waits", async || state.polling.waiting.taken() == 1).await;
        client.delete("/v1/groups/9").await;
        let told = tokio::time::timeout(Duration::from_secs(3), waiting).await.expect("it is woken").unwrap();
        told.problem(410, "gone");
        node.stop().await;
    }

    async fn polls_that_wait_share_one_look_at_their_group(world: World) {
        const WAITING: usize = 30;
        let node = world.node_with(&["--scrub-users", "0"]).await;
        let client = &node.client;
        make(client, 9, &[1, 2, 3]).await;
        for n in 1..=2 {
            send(client, 9, 1, &format!("m{n}")).await.ok();
        }
        let statements = || client.metric("headmark_database_statements_total");
        // What the node asks by itself in three seconds.
        let asks = async || {
            let before = statements().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            statements().await - before
        };
        let alone = asks().await;
        let paths = ["/v1/groups/9/messages/1/receipts", "/v1/groups/9/receipts?from=1&to=2"];
        let tags = [client.get(paths[0]).await.header("etag").to_owned(), client.get(paths[1]).await.header("etag").to_owned()];
        let waiting: Vec<_> = (0..WAITING).map(|n| {
            let (client, path, tag) = (client.clone(), paths[n % 2], tags[n % 2].clone());
            let join = if path.contains('?') { '&' } else { '?' };
            tokio::spawn(async move { client.get_if_changed(&format!("{path}{join}wait=40"), &tag).await })
        }).collect();
        let state = node.app.state();
        eventually("all wait", async || state.polling.waiting.taken() == WAITING).await;
        // Those of the first readings are over.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let together = asks().await;
        assert!(together <= alone + 16.0, "{together} statements with {WAITING} that wait, {alone} without");
        assert_eq!(state.receipts.watched_groups(), 1);
        read(client, 2, 9, None).await.ok();
        for waiting in waiting {
            let woken = tokio::time::timeout(Duration::from_secs(4), waiting).await.expect("woken by a reader").unwrap();
            assert_eq!(woken.status, 200);
        }
        // A recall ends a poll, too, and nobody is looked after who does not wait.
        let tag = client.get(paths[0]).await.header("etag").to_owned();
        let recalled = {
            let client = client.clone();
            tokio::spawn(async move { client.get_if_changed(&format!("{}?wait=40", paths[0]), &tag).await })
        };
        eventually("it waits", async || state.polling.waiting.taken() == 1).await;
        client.delete("/v1/groups/9/messages/1").await;
        tokio::time::timeout(Duration::from_secs(4), recalled).await.expect("woken by the recall").unwrap().problem(404, "not_found");
        eventually("nothing is watched", async || state.receipts.watched_groups() == 0).await;
        node.stop().await;
    }

    async fn five_hundred_read_at_once(world: World) {
        let nodes = world.nodes().await;
        let members: Vec<i64> = (1..=500).collect();
        make(&nodes[0].client, 9, &members).await;
        for n in 0..5 {
            send(&nodes[0].client, 9, 1, &format!("m{n}")).await.ok();
        }
        for chunk in members[1..].chunks(64) {
            join_all(chunk.iter().map(|user| read(&nodes[usize::try_from(*user).unwrap() % nodes.len()].client, *user, 9, Some(*user % 6)))).await;
        }
        for node in &nodes {
            eventually("each node counts all", async || {
                let screenful = node.client.get("/v1/groups/9/receipts?from=1&to=5").await.ok();
                let read = (1..=5).map(|seq| members[1..].iter().filter(|user| **user % 6 >= seq).count());
                let wanted: Vec<_> = read.zip(1..).map(|(read, seq)| json!({"seq": seq, "read_count": read, "unread_count": 499 - read})).collect();
                screenful["items"] == json!(wanted)
            }).await;
        }
        crate::support::Node::stop_all(nodes).await;
    }
}
