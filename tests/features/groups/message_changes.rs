//! Changes of a group's messages, as members and services read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use headmark::base::clock::DAY_MS;
use headmark::features::groups::expiry::{Walk, sweep};
use serde_json::{Value, json};

use super::{join, leave, make, recall, send};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Hand, Node, Tier, eventually};

async fn changes(client: &Client, group: i64, query: &str) -> Value {
    client.get(&format!("/v1/groups/{group}/messages/changes?{query}")).await.ok()
}

/// The messages of a page of changes.
fn seqs(page: &Value) -> Vec<i64> {
    page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect()
}

both_tiers! {
    async fn recalls_are_told_in_their_order(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        make(&service, 9, &[1, 2]).await;
        for n in 1..=3 { send(&service, 9, 1, &format!("m{n}")).await.ok(); }
        join(&service, 9, 3).await.ok();
        for n in 4..=6 { send(&service, 9, 1, &format!("m{n}")).await.ok(); }
        insta::assert_snapshot!(service.get("/v1/groups/9/messages/changes").await.text, @r#"{"items":[],"next_after":0,"has_more":false}"#);
        for seq in [5, 2, 5, 6] { assert_eq!(recall(&service, 9, seq).await.status, 204); }
        insta::assert_snapshot!(
            service.get("/v1/groups/9/messages/changes?limit=2").await.text,
            @r#"{"items":[{"id":1,"seq":5,"recalled":true},{"id":2,"seq":2,"recalled":true}],"next_after":2,"has_more":true}"#
        );
        insta::assert_snapshot!(
            service.get("/v1/groups/9/messages/changes?after=2").await.text,
            @r#"{"items":[{"id":3,"seq":6,"recalled":true}],"next_after":3,"has_more":false}"#
        );
        let own = changes(&node.user(3), 9, "after=0").await;
        assert_eq!((seqs(&own), &own["next_after"]), (vec![5, 6], &json!(3)), "of messages since the member joined");
        assert_eq!(seqs(&changes(&node.user(1), 9, "").await), [5, 2, 6]);
        leave(&service, 9, 3).await;
        node.user(3).get("/v1/groups/9/messages/changes").await.problem(403, "forbidden");
        service.get("/v1/groups/8/messages/changes").await.problem(404, "not_found");
        for (query, name) in [("after=-1", "after"), ("limit=101", "limit"), ("wait=61", "wait"), ("before=1", "before")] {
            assert_eq!(service.get(&format!("/v1/groups/9/messages/changes?{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        node.stop().await;
    }

    async fn a_poll_is_held_until_something_changes(world: World) {
        let mut nodes = vec![world.node_with(&CREDENTIALS).await];
        if world.tier == Tier::Server { nodes.push(world.node_with(&CREDENTIALS).await); }
        let service = nodes[0].service();
        make(&service, 9, &[1, 2]).await;
        for n in 1..=2 { send(&service, 9, 1, &format!("m{n}")).await.ok(); }
        assert_eq!(seqs(&changes(&service, 9, "after=0&wait=1").await), [0; 0], "the time is up");
        let polls: Vec<_> = nodes.iter().flat_map(|node| [node.service(), node.user(2)]).map(|client| {
            tokio::spawn(async move { changes(&client, 9, "after=0&wait=60").await })
        }).collect();
        let all = || nodes.iter().map(|node| node.app.state().polling.waiting.taken()).sum::<usize>();
        eventually("the polls wait", async || all() == polls.len()).await;
        send(&service, 9, 1, "m3").await.ok();
        recall(&service, 9, 2).await;
        for poll in join_all(polls).await { assert_eq!(seqs(&poll.unwrap()), [2]); }
        let path = "/v1/groups/9/messages/changes?after=0";
        let tag = service.get(path).await.header("etag").to_owned();
        let other = nodes.last().unwrap().service();
        assert_eq!(other.get_if_changed(path, &tag).await.status, 304);
        recall(&service, 9, 1).await;
        assert_eq!(seqs(&other.get_if_changed(path, &tag).await.ok()), [2, 1]);
        Node::stop_all(nodes).await;
    }

    async fn no_reader_skips_a_change(world: World) {
        let nodes = world.nodes().await;
        make(&nodes[0].client, 9, &[1, 2]).await;
        join_all((0..60).map(|n| { let client = &nodes[0].client; async move { send(client, 9, 1, &format!("m{n}")).await.ok() } })).await;
        let readers: Vec<_> = nodes.iter().map(|node| {
            let client = node.client.clone();
            tokio::spawn(async move {
                let (mut after, mut got) = (0, Vec::new());
                while got.len() < 60 {
                    let page = changes(&client, 9, &format!("after={after}&limit=7&wait=5")).await;
                    for item in page["items"].as_array().unwrap() {
                        assert!(item["id"].as_i64() > Some(after));
                        after = item["id"].as_i64().unwrap();
                        got.push(item["seq"].as_i64().unwrap());
                    }
                    assert_eq!(page["next_after"].as_i64(), Some(after));
                }
                got
            })
        }).collect();
        join_all((1..=60).map(|seq| {
            let client = &nodes[usize::try_from(seq).unwrap() % nodes.len()].client;
            async move { recall(client, 9, seq).await }
        })).await;
        let mut orders = Vec::new();
        for reader in readers {
            let got = reader.await.unwrap();
            let mut sorted = got.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (1..=60).collect::<Vec<_>>(), "each once");
            orders.push(got);
        }
        assert!(orders.windows(2).all(|pair| pair[0] == pair[1]), "all in one order");
        Node::stop_all(nodes).await;
    }

    async fn changes_go_with_their_messages_and_above_their_number(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--group-message-days", "2"]).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for n in 1..=3 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        // Now, as the node forgets it on its own as soon as it expires.
        assert_eq!(recall(client, 9, 2).await.status, 204);
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        for n in 4..=6 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        for seq in [4, 5] { assert_eq!(recall(client, 9, seq).await.status, 204); }
        sweep(&node.app.state().contexts.groups, &mut Walk::default()).await.unwrap();
        let page = changes(client, 9, "after=0").await;
        assert_eq!((seqs(&page), &page["next_after"]), (vec![4, 5], &json!(3)), "the one of an expired message is gone");

        // As after ten thousand more recalls.
        let mut hand = Hand::on(&world).await;
        hand.run("update chat_groups set changes = 10001 where group_id = 9").await;
        assert_eq!(recall(client, 9, 6).await.status, 204);
        let page = changes(client, 9, "").await;
        assert_eq!((seqs(&page), &page["next_after"]), (vec![5, 6], &json!(10_002)), "the first two ids are no longer kept");
        assert_eq!(client.get("/v1/groups/9/messages/changes?after=1").await.problem(410, "cursor_expired")["earliest_seq"], 3);
        assert_eq!(seqs(&changes(client, 9, "after=2").await), [5, 6]);
        node.stop().await;
    }
}
