//! Pages of a group's history, in both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use headmark::base::clock::DAY_MS;
use headmark::features::groups::expiry::{Walk, sweep};
use serde_json::{Value, json};

use super::{join, leave, make, recall, send};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, eventually};

/// The seqs of a page, with the page.
async fn page(client: &Client, group: i64, query: &str) -> (Vec<i64>, Value) {
    let page = client.get(&format!("/v1/groups/{group}/messages?{query}")).await.ok();
    (page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect(), page)
}

both_tiers! {
    async fn history_is_read_in_both_directions(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &CREDENTIALS).await;
        let service = node.service();
        make(&service, 9, &[1, 2]).await;
        for n in 1..=4 { send(&service, 9, 1, &format!("m{n}")).await.ok(); }
        join(&service, 9, 3).await.ok();
        for n in 5..=9 { send(&service, 9, 1, &format!("m{n}")).await.ok(); }
        recall(&service, 9, 8).await;
        insta::assert_snapshot!(service.get("/v1/groups/9/messages?before=10&limit=2").await.text, @r#"{"items":[{"seq":9,"sender_id":"1","content":"it is m9","sent_at":"2027-01-15T08:00:00.000Z"},{"seq":8,"sender_id":"1","recalled":true}],"next_after":9,"next_before":8,"has_more":true,"head":9}"#);
        insta::assert_snapshot!(service.get("/v1/groups/9/messages?around=5&limit=3").await.text, @r#"{"items":[{"seq":4,"sender_id":"1","content":"it is m4","sent_at":"2027-01-15T08:00:00.000Z"},{"seq":5,"sender_id":"1","content":"it is m5","sent_at":"2027-01-15T08:00:00.000Z"},{"seq":6,"sender_id":"1","content":"it is m6","sent_at":"2027-01-15T08:00:00.000Z"}],"next_after":6,"next_before":4,"has_more":true,"has_older":true,"head":9}"#);

        let (seqs, newest) = page(&service, 9, "before=9007199254740991&limit=4").await;
        assert_eq!((seqs, &newest["next_after"], &newest["next_before"], &newest["has_more"]), (vec![9, 8, 7, 6], &json!(9), &json!(6), &json!(true)));
        let (seqs, older) = page(&service, 9, "before=6&limit=5").await;
        assert_eq!((seqs, &older["has_more"], &older["next_before"]), (vec![5, 4, 3, 2, 1], &json!(false), &json!(1)));
        assert_eq!(page(&service, 9, "before=1").await.0, [0; 0]);
        let (seqs, around) = page(&service, 9, "around=2&limit=6").await;
        assert_eq!((seqs, &around["has_older"], &around["has_more"], &around["next_after"]), (vec![1, 2, 3, 4], &json!(false), &json!(true), &json!(4)));
        assert_eq!(page(&service, 9, "around=50&limit=4").await.0, [8, 9]);

        // A member sees what was sent since joining, whatever is asked for.
        let member = node.user(3);
        let (seqs, first) = page(&member, 9, "before=7").await;
        assert_eq!((seqs, &first["has_more"], &first["next_before"]), (vec![6, 5], &json!(false), &json!(5)));
        assert_eq!(page(&member, 9, "before=3").await.0, [0; 0]);
        let (seqs, around) = page(&member, 9, "around=2&limit=4").await;
        assert_eq!((seqs, &around["has_older"]), (vec![5, 6], &json!(false)));
        leave(&service, 9, 3).await;
        member.get("/v1/groups/9/messages?before=7").await.problem(403, "forbidden");

        for (query, name) in [
            ("after=1&before=2", "before"), ("after=1&around=2", "around"), ("before=1&around=2", "around"),
            ("after=1&before=2&around=3", "before"), ("before=0", "before"), ("around=0", "around"), ("before=-1", "before"),
            ("after=-1", "after"), ("limit=0", "limit"), ("wait=61", "wait"), ("before=9007199254740992", "before"),
        ] {
            assert_eq!(service.get(&format!("/v1/groups/9/messages?{query}")).await.pointers(400, "invalid_query"), [name], "{query}");
        }
        service.get("/v1/groups/9/messages?before=3&wait=1").await.problem(400, "wait_needs_tag");
        service.get("/v1/groups/8/messages?before=3").await.problem(404, "not_found");
        node.stop().await;
    }

    async fn a_page_has_one_tag_on_every_node_for_all_who_see_the_same(world: World) {
        let mut nodes = vec![world.node_with(&CREDENTIALS).await];
        if world.tier == crate::support::Tier::Server { nodes.push(world.node_with(&CREDENTIALS).await); }
        let (service, other) = (nodes[0].service(), nodes.last().unwrap().service());
        make(&service, 9, &[1, 2]).await;
        for n in 1..=3 { send(&service, 9, 1, &format!("m{n}")).await.ok(); }
        for query in ["after=0", "before=3", "around=2"] {
            let path = format!("/v1/groups/9/messages?{query}");
            let tag = service.get(&path).await.header("etag").to_owned();
            for client in [&service, &other, &nodes[0].user(1)] {
                let reply = client.get_if_changed(&path, &tag).await;
                assert_eq!((reply.status.as_u16(), reply.text.as_str()), (304, ""), "{query}");
                assert_eq!(reply.header("cache-control"), "private, no-cache");
            }
            recall(&other, 9, 1).await;
        }
        let tag = service.get("/v1/groups/9/messages?before=3").await.header("etag").to_owned();
        recall(&other, 9, 2).await;
        assert_eq!(service.get_if_changed("/v1/groups/9/messages?before=3", &tag).await.ok()["items"][0]["recalled"], true);
        Node::stop_all(nodes).await;
    }

    async fn a_poll_is_held_while_there_is_nothing_after(world: World) {
        let mut nodes = vec![world.node_with(&CREDENTIALS).await];
        if world.tier == crate::support::Tier::Server { nodes.push(world.node_with(&CREDENTIALS).await); }
        let (service, other) = (nodes[0].service(), nodes.last().unwrap().service());
        make(&service, 9, &[1, 2, 3]).await;
        send(&service, 9, 1, "m1").await.ok();
        let taken = |count: usize| {
            let nodes = &nodes;
            async move {
                let all = || nodes.iter().map(|node| node.app.state().polling.waiting.taken()).sum::<usize>();
                eventually("the polls wait", async || all() == count).await;
            }
        };
        assert_eq!(page(&service, 9, "after=0&wait=60").await.0, [1], "there is something");
        assert_eq!(page(&service, 9, "after=1&wait=1").await.0, [0; 0], "the time is up");

        // Held on each node, for a service and a member; answered at once where it is sent, and within 2 s elsewhere.
        let member = nodes.last().unwrap().user(2);
        let polls = [service.clone(), other.clone(), member.clone()];
        let polls: Vec<_> = polls.into_iter().map(|client| tokio::spawn(async move { page(&client, 9, "after=1&wait=60").await.0 })).collect();
        taken(3).await;
        send(&service, 9, 3, "m2").await.ok();
        for poll in join_all(polls).await { assert_eq!(poll.unwrap(), [2]); }

        // With a tag, the other directions wait for a change.
        let path = "/v1/groups/9/messages?before=3";
        let tag = other.get(path).await.header("etag").to_owned();
        let poll = tokio::spawn(async move { other.get_if_changed(&format!("{path}&wait=60"), &tag).await });
        taken(1).await;
        recall(&service, 9, 1).await;
        assert_eq!(poll.await.unwrap().ok()["items"][1], json!({"seq": 1, "sender_id": "1", "recalled": true}));

        // A member who leaves hears of it.
        let poll = tokio::spawn(async move { member.get("/v1/groups/9/messages?after=2&wait=60").await });
        eventually("the poll waits", async || nodes.last().unwrap().app.state().polling.waiting.taken() >= 1).await;
        leave(&service, 9, 2).await;
        poll.await.unwrap().problem(403, "forbidden");
        Node::stop_all(nodes).await;
    }

    async fn what_has_expired_is_named_in_each_direction(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--group-message-days", "2"]).await;
        let client = &node.client;
        make(client, 9, &[1, 2]).await;
        for n in 1..=4 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        at.fetch_add(3 * DAY_MS, Ordering::SeqCst);
        for n in 5..=6 { send(client, 9, 1, &format!("m{n}")).await.ok(); }
        sweep(&node.app.state().contexts.groups, &mut Walk::default()).await.unwrap();
        for query in ["after=3", "before=5", "before=2", "around=4"] {
            let problem = client.get(&format!("/v1/groups/9/messages?{query}")).await.problem(410, "cursor_expired");
            assert_eq!(problem["earliest_seq"], 5, "{query}");
        }
        let (seqs, newest) = page(client, 9, "before=7&limit=2").await;
        assert_eq!((seqs, &newest["has_more"]), (vec![6, 5], &json!(false)));
        let (seqs, around) = page(client, 9, "around=5").await;
        assert_eq!((seqs, &around["has_older"]), (vec![5, 6], &json!(false)));
        at.fetch_add(9 * DAY_MS, Ordering::SeqCst);
        sweep(&node.app.state().contexts.groups, &mut Walk::default()).await.unwrap();
        assert_eq!(page(client, 9, "before=7").await.0, [0; 0], "one who begins at the end asks for nothing that was there");
        node.stop().await;
    }
}
