//! What each route promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::Method;
use serde_json::json;

use super::{access, delete, numbers, put, put_in_order, view};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Tier, eventually};

both_tiers! {
    async fn a_lower_bound_on_visited_views_is_reached_step_by_step(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let visit = async |node: &Node, n: i64| {
            at.fetch_add(1000, Ordering::SeqCst);
            access(&node.client, 7, &format!("thread/{n}"), None).await;
        };
        let visited = async |node: &Node| {
            let mut visited = Vec::new();
            for first in (1..=200).step_by(50) {
                let names: Vec<_> = (first..first + 50).map(|n| format!("thread:{n}")).collect();
                let summary = node.client.get(&format!("/v1/users/7/badges?views={}", names.join(","))).await.ok();
                visited.extend((first..first + 50).filter(|n| summary["views"][format!("thread:{n}")]["last_access_at"].is_string()));
            }
            visited
        };
        let node = world.node_at(&at, &[]).await;
        for n in 1..=180 {
            visit(&node, n).await;
        }
        assert_eq!(visited(&node).await, (1..=180).collect::<Vec<i64>>());
        node.stop().await;
        let node = world.node_at(&at, &["--visited-views", "50"]).await;
        visit(&node, 180).await;
        assert_eq!(visited(&node).await.len(), 180, "only a new one takes a place");
        for (n, oldest) in [(181, 101), (182, 133), (183, 134)] {
            visit(&node, n).await;
            assert_eq!(visited(&node).await, (oldest..=n).collect::<Vec<i64>>());
        }
        node.stop().await;
    }

    async fn the_view_visited_longest_ago_makes_room(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--visited-views", "50"]).await;
        let client = &node.client;
        let visit = async |user: i64, n: i64| {
            at.fetch_add(1000, Ordering::SeqCst);
            access(client, user, &format!("thread/{n}"), None).await
        };
        for n in 1..=50 {
            visit(7, n).await;
        }
        visit(8, 1).await;
        // Visited again, so 2 is the oldest.
        visit(7, 1).await;
        for n in [1, 2, 3] {
            put(client, &format!("thread/{n}"), "a", None).await.ok();
        }
        let before = visit(7, 51).await["revision"].as_i64().unwrap();
        let visited = async |user: i64, n: i64| {
            let shown = view(client, user, &format!("thread/{n}")).await;
            (shown["last_access_at"].is_string(), shown["unread"].as_i64().unwrap())
        };
        assert_eq!((visited(7, 1).await, visited(7, 2).await, visited(7, 3).await), ((true, 1), (false, 0), (true, 1)));
        assert_eq!((visited(7, 51).await, visited(8, 1).await), ((true, 0), (true, 1)), "nobody else's");
        // Another visit of a known one takes nobody's place.
        assert_eq!(visit(7, 51).await["revision"], before + 1);
        assert_eq!(visited(7, 3).await, (true, 1));
        assert_eq!(visit(7, 2).await["unread"], 0, "a first visit again");
        assert_eq!((visited(7, 2).await, visited(7, 3).await), ((true, 0), (false, 0)));
        node.stop().await;
    }
}

both_tiers! {
    async fn a_view_is_read_by_visiting(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        let first = put(client, "home/1", "post:1", None).await;
        assert_eq!(first.status, 201);
        insta::assert_snapshot!(first.text, @r#"{"item_id":"post:1","view":"home","view_id":"1","head":1}"#);
        put(client, "home/1", "post:2", None).await.ok();
        let again = put(client, "home/1", "post:1", Some(7)).await;
        insta::assert_snapshot!(again.text, @r#"{"item_id":"post:1","view":"home","view_id":"1","head":2}"#);
        assert_eq!(again.status, 200);

        let never = client.get("/v1/users/7/views/home/1").await;
        insta::assert_snapshot!(never.text, @r#"{"view":"home","view_id":"1","unread":0,"head":2,"revision":1}"#);
        let visit = client.post("/v1/users/7/views/home/1/access", &json!({"up_to": 1})).await;
        insta::assert_snapshot!(
            visit.text,
            @r#"{"view":"home","view_id":"1","unread":0,"head":2,"last_access_at":"2027-01-15T08:00:00.000Z","revision":2}"#
        );
        for n in 3..=6 {
            put(client, "home/1", &format!("post:{n}"), None).await.ok();
        }
        assert_eq!(numbers(client, 7, "home/1").await, (4, 6));
        at.fetch_add(1500, Ordering::SeqCst);
        let part = client.post("/v1/users/7/views/home/1/access", &json!({"up_to": 4})).await;
        insta::assert_snapshot!(
            part.text,
            @r#"{"view":"home","view_id":"1","unread":2,"head":6,"last_access_at":"2027-01-15T08:00:01.500Z","revision":3}"#
        );
        assert_eq!(client.get("/v1/users/7/views/home/1").await.text, part.text);
        assert_eq!(access(client, 7, "home/1", Some(3)).await["unread"], 2, "never backwards");
        assert_eq!(access(client, 7, "home/1", Some(99)).await["unread"], 0, "clamped to the head");
        put(client, "home/1", "post:7", None).await.ok();
        assert_eq!(numbers(client, 7, "home/1").await, (1, 7));
        let visited = access(client, 7, "home/1", None).await;
        assert_eq!(access(client, 7, "home/1", None).await, visited, "at the same time, up to the same head: nothing changes");
        node.stop().await;
        let node = world.node().await;
        assert_eq!(numbers(&node.client, 7, "home/1").await, (0, 7), "it is there after a restart");
        node.stop().await;
    }

    async fn what_is_deleted_or_ones_own_does_not_count(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        put(client, "forum/9", "old", None).await.ok();
        for user in [1, 2] {
            access(client, user, "forum/9", None).await;
        }
        for (item, actor) in [("a", None), ("b", Some(1)), ("c", Some(1)), ("d", Some(2)), ("e", Some(3))] {
            put(client, "forum/9", item, actor).await.ok();
        }
        assert_eq!((numbers(client, 1, "forum/9").await, numbers(client, 2, "forum/9").await, numbers(client, 3, "forum/9").await), ((3, 6), (4, 6), (0, 6)));
        // Read by the one, not by the other; deleted twice.
        access(client, 1, "forum/9", Some(2)).await;
        for _ in 0..2 {
            assert_eq!((delete(client, "forum/9", "a").await, delete(other, "forum/9", "b").await), (204, 204));
        }
        for node in [client, other] {
            eventually("each node knows of both", async || numbers(node, 2, "forum/9").await == (2, 6)).await;
            assert_eq!(numbers(node, 1, "forum/9").await, (2, 6));
        }
        put(client, "forum/9", "a", None).await.problem(410, "gone");
        put(other, "forum/9", "b", Some(1)).await.problem(410, "gone");
        assert_eq!(delete(client, "forum/9", "never").await, 404);
        assert_eq!(delete(client, "forum/10", "a").await, 404);
        assert_eq!(numbers(client, 1, "forum/9").await, (2, 6));
        // One's own item changes one's revision only if one has visited.
        let revisions = async |users: [i64; 2]| [client.summary(users[0]).await["revision"].as_i64().unwrap(), client.summary(users[1]).await["revision"].as_i64().unwrap()];
        let before = revisions([1, 5]).await;
        put(client, "forum/9", "f", Some(1)).await.ok();
        put(client, "forum/9", "g", Some(5)).await.ok();
        assert_eq!(revisions([1, 5]).await, [before[0] + 1, before[1]]);
        Node::stop_all(nodes).await;
    }

    async fn a_summary_shows_the_views_asked_for(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        for name in ["home/1", "forum/9"] {
            access(client, 4, name, None).await;
        }
        for n in 0..5 {
            put(client, "home/1", &format!("p{n}"), None).await.ok();
        }
        let summary = async |query: &str| client.get(&format!("/v1/users/4/badges?{query}")).await;
        let reply = summary("include=counters&cap=3&views=home:1,forum:9,never:a:b").await;
        let views = &reply.body["views"];
        assert_eq!((&views["home:1"]["unread"], &views["home:1"]["head"], &views["home:1"]["capped"]), (&json!(3), &json!(5), &json!(true)));
        assert_eq!((&views["forum:9"]["unread"], &views["forum:9"]["capped"]), (&json!(0), &json!(false)));
        assert_eq!(views["never:a:b"], json!({"unread": 0, "head": 0, "capped": false}));
        assert!(views["home:1"]["last_access_at"].is_string());
        assert_eq!(summary("").await.body.get("views"), None);
        assert_eq!(summary("views=home:1").await.body["total"], 0, "views are in no total");
        // The tag: the same on every node, another after each change.
        let path = "/v1/users/4/badges?views=home:1,forum:9";
        let mut tag = client.get(path).await.header("etag").to_owned();
        for change in 0..4 {
            assert_eq!(client.get_if_changed(path, &tag).await.status, 304);
            match change {
                0 => drop(put(client, "forum/9", "x", None).await.ok()),
                1 => assert_eq!(delete(client, "forum/9", "x").await, 204),
                2 => drop(access(client, 4, "forum/9", None).await),
                _ => drop(put(client, "home/1", "y", Some(4)).await.ok()),
            }
            let changed = client.get_if_changed(path, &tag).await;
            assert_eq!(changed.status, 200, "change {change}");
            assert_ne!(changed.header("etag"), tag);
            changed.header("etag").clone_into(&mut tag);
            assert_eq!(other.get_if_changed(path, &tag).await.status, 304, "a node that is behind the client's tag reads the truth first");
        }
        let fifty: Vec<_> = (0..50).map(|n| format!("v:{n}")).collect();
        assert_eq!(summary(&format!("views={}", fifty.join(","))).await.body["views"].as_object().unwrap().len(), 50);
        for bad in ["", "home", "home:", "Home:1", "home:1,", "home:1,home:1", "home:%20", &format!("{},v:50", fifty.join(","))] {
            assert_eq!(summary(&format!("views={bad}")).await.pointers(400, "invalid_query"), ["views"], "{bad}");
        }
        Node::stop_all(nodes).await;
    }

    async fn bad_requests_are_refused_and_change_nothing(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (alice, service) = (node.user(1), node.service());
        put(&alice, "home/1", "a", None).await.problem(403, "forbidden");
        alice.delete("/v1/views/home/1/items/a").await.problem(403, "forbidden");
        alice.get("/v1/users/2/views/home/1").await.problem(403, "forbidden");
        alice.post("/v1/users/2/views/home/1/access", &json!({})).await.problem(403, "forbidden");
        put(&node.client, "home/1", "a", None).await.problem(401, "unauthorized");
        assert_eq!(alice.get("/v1/users/me/views/home/1").await.ok()["head"], 0);
        let long = "a".repeat(129);
        for (path, name) in [("Home/1/items/a", "view"), ("home/a%20b/items/a", "view_id"), ("home/1/items/a%2Fb", "item_id"), (&format!("home/1/items/{long}"), "item_id")] {
            let reply = Client::send(service.request(Method::PUT, &format!("/v1/views/{path}"))).await;
            assert_eq!(reply.pointers(400, "invalid_path"), [name], "{path}");
        }
        for (body, pointer) in [(json!({"actor_id": 0}), "/actor_id"), (json!({"actor_id": null}), "/actor_id"), (json!({"actor": 1}), "/actor")] {
            let reply = Client::send(service.request(Method::PUT, "/v1/views/home/1/items/a").json(&body)).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer]);
        }
        for (body, pointer) in [(json!({"up_to": -1}), "/up_to"), (json!({"up_to": null}), "/up_to"), (json!({"upto": 1}), "/upto")] {
            let reply = service.post("/v1/users/1/views/home/1/access", &body).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer]);
        }
        service.delete("/v1/views/home/1/items/a?x=1").await.problem(400, "invalid_query");
        service.get("/v1/users/1/views/home/1?wait=61").await.problem(400, "invalid_query");
        let none = service.get("/v1/users/1/views/home/1").await.ok();
        assert_eq!((&none["head"], &none["revision"]), (&json!(0), &json!(1)));
        node.stop().await;
    }

    async fn polls_wake_on_every_node(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes.last().unwrap().client);
        access(first, 4, "home/1", None).await;
        let path = "/v1/users/4/views/home/1";
        let full = last.get(path).await;
        assert_eq!(last.get_if_changed(path, full.header("etag")).await.status, 304);
        assert_eq!((full.header("cache-control"), full.header("x-poll-interval")), ("private, no-cache", "30"));
        let waiting = last.request(Method::GET, &format!("{path}?wait=30")).header("if-none-match", full.header("etag"));
        let poll = tokio::spawn(Client::send(waiting));
        eventually("the poll waits", async || last.metric("headmark_polls_waiting").await == 1.0).await;
        put(first, "home/1", "a", None).await.ok();
        let told = poll.await.unwrap();
        let tag = told.header("etag").to_owned();
        assert_eq!(told.ok()["unread"], 1);
        let waiting = last.request(Method::GET, &format!("{path}?wait=30")).header("if-none-match", tag);
        let poll = tokio::spawn(Client::send(waiting));
        eventually("the poll waits", async || last.metric("headmark_polls_waiting").await == 1.0).await;
        access(first, 4, "home/1", None).await;
        assert_eq!(poll.await.unwrap().ok()["unread"], 0, "the visit on another device");
        Node::stop_all(nodes).await;
    }

    async fn many_holes_below_a_mark_are_counted_from_the_rows(world: World) {
        let node = world.node().await;
        let client = &node.client;
        access(client, 1, "home/1", None).await;
        put_in_order(&node, "home:1", (0..500).map(|_| None)).await;
        access(client, 2, "home/1", None).await;
        // Every other one of the first 450: more runs than a head keeps.
        for n in (0..450).step_by(2) {
            assert_eq!(delete(client, "home/1", &format!("i{n}")).await, 204);
        }
        assert_eq!((numbers(client, 1, "home/1").await, numbers(client, 2, "home/1").await), ((275, 500), (0, 500)));
        // Below the floor, at it, above it; each mark moves on.
        for (up_to, unread) in [(1, 275), (2, 274), (20, 265), (49, 251), (50, 250), (51, 250), (60, 245), (449, 51), (500, 0)] {
            assert_eq!(access(client, 1, "home/1", Some(up_to)).await["unread"], unread, "up to {up_to}");
            assert_eq!(numbers(client, 1, "home/1").await, (unread, 500));
        }
        node.stop().await;
        let node = world.node().await;
        assert_eq!(numbers(&node.client, 1, "home/1").await, (0, 500));
        node.stop().await;
    }

    async fn who_makes_more_than_a_mark_holds_is_counted_from_the_rows(world: World) {
        let node = world.node().await;
        let client = &node.client;
        access(client, 1, "home/1", None).await;
        // Turn by turn: each of one's own is a run.
        put_in_order(&node, "home:1", (0..2400).map(|n| (n % 2 == 1).then_some(1))).await;
        assert_eq!(numbers(client, 1, "home/1").await, (1200, 2400));
        // Of others, and of one's own, below what the mark tells and above.
        for n in [0, 2, 3, 5, 2390, 2391] {
            assert_eq!(delete(client, "home/1", &format!("i{n}")).await, 204);
        }
        assert_eq!(numbers(client, 1, "home/1").await, (1197, 2400));
        for (up_to, unread) in [(1, 1197), (3, 1197), (5, 1196), (300, 1049), (500, 949), (2389, 4), (2400, 0)] {
            assert_eq!(access(client, 1, "home/1", Some(up_to)).await["unread"], unread, "up to {up_to}");
            assert_eq!(numbers(client, 1, "home/1").await, (unread, 2400));
        }
        node.stop().await;
    }

    async fn visits_and_items_at_once_lose_nothing(world: World) {
        let nodes = world.nodes().await;
        let clients: Vec<Client> = nodes.iter().map(|node| node.client.clone()).collect();
        access(&clients[0], 1, "home/1", None).await;
        let writers = (0..6).map(|writer| {
            let client = clients[writer % clients.len()].clone();
            tokio::spawn(async move {
                for n in 0..20 {
                    let actor = (n % 4 == 0).then_some(1);
                    put(&client, "home/1", &format!("w{writer}-{n}"), actor).await.ok();
                    // Known by now, on any node: changes nothing.
                    assert_eq!(put(&client, "home/1", &format!("w{writer}-{n}"), actor).await.status, 200);
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        let (mut up_to, mut revision) = (0, 0);
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            let shown = view(clients.last().unwrap(), 1, "home/1").await;
            up_to = shown["head"].as_i64().unwrap() / 2;
            let visited = access(&clients[0], 1, "home/1", Some(up_to)).await;
            assert!(visited["revision"].as_i64().unwrap() > revision, "{visited}");
            revision = visited["revision"].as_i64().unwrap();
        }
        for writer in writers {
            writer.await.unwrap();
        }
        // What one's own items leave of those above the mark, whatever their order: asked position
        // by position.
        let mut left = Vec::new();
        for at in up_to..=120 {
            left.push(access(&clients[0], 1, "home/1", Some(at)).await["unread"].as_i64().unwrap());
        }
        assert!(left.windows(2).all(|two| two[0] - two[1] == 0 || two[0] - two[1] == 1), "{left:?}");
        assert_eq!(left.last(), Some(&0));
        access(&clients[0], 2, "home/1", None).await;
        eventually("every node has the head", async || numbers(clients.last().unwrap(), 2, "home/1").await == (0, 120)).await;
        Node::stop_all(nodes).await;
    }

    async fn a_store_that_is_away_leaves_views_out(world: World) {
        if world.tier == Tier::Embedded {
            return;
        }
        let node = world.node().await;
        access(&node.client, 1, "home/1", None).await;
        node.client.summary(1).await;
        node.app.state().db.close().await;
        let degraded = node.client.get("/v1/users/1/badges?include=counters&views=other:2").await.ok();
        assert_eq!((&degraded["degraded"], &degraded["missing"], degraded.get("views")), (&json!(true), &json!(["views"]), None));
        node.client.get("/v1/users/1/views/other/2").await.problem(503, "store_unavailable");
    }
}
