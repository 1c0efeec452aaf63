//! What each route promises.

use std::time::{Duration, Instant};

use headmark::base::clock::DAY_MS;
use headmark::base::ids::UserId;
use headmark::features::feed::FeedConfig;
use reqwest::Method;
use serde_json::json;

use super::{count, delete, feed, post, post_path, reset};
use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, JWT_SECRET, Node, Tier, World, eventually};

both_tiers! {
    async fn a_post_counts_once_and_goes_once(world: World) {
        let node = world.node().await;
        let client = &node.client;
        assert_eq!(count(client, 7).await, (0, 0), "nobody needs to be created");
        let new = post(client, 7, "p-1").await;
        assert_eq!(new.status, 201);
        insta::assert_snapshot!(new.text, @r#"{"post_id":"p-1","posts":1,"head":1}"#);
        let longest = "Z".repeat(128);
        assert_eq!(post(client, 7, &longest).await.ok()["head"], 2);
        assert_eq!(post(client, 7, "A.b_c:1-2").await.ok()["posts"], 3);
        let known = post(client, 7, "p-1").await;
        assert_eq!(known.status, 200);
        insta::assert_snapshot!(known.text, @r#"{"post_id":"p-1","posts":3,"head":3}"#);
        assert_eq!(post(client, 8, "p-1").await.status, 201, "each creator has its own ids");
        delete(client, 7, "p-1").await;
        delete(client, 7, "p-1").await;
        let counts = client.get("/v1/users/7/posts/count").await;
        insta::assert_snapshot!(counts.text, @r#"{"posts":2,"head":3}"#);
        assert_eq!(counts.header("cache-control"), "private, no-cache");
        post(client, 7, "p-1").await.problem(410, "gone");
        client.delete(&post_path(7, "p-9")).await.problem(404, "not_found");
        client.delete(&post_path(9, "p-1")).await.problem(404, "not_found");
        assert_eq!((count(client, 7).await, count(client, 9).await), ((2, 3), (0, 0)));
        assert_eq!([post(client, 10, "count").await.status, post(client, 10, "count").await.status], [201, 200], "an id like any other");
        assert_eq!(count(client, 10).await, (1, 1));
        delete(client, 10, "count").await;
        assert_eq!(count(client, 10).await, (0, 1));
        node.stop().await;
        let node = world.node().await;
        assert_eq!(count(&node.client, 7).await, (2, 3), "it is there after a restart");
        node.stop().await;
    }

    async fn bad_posts_are_refused_and_change_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for id in ["a%20b", "%C3%A9", &"x".repeat(129), "a%2Fb", "a,b"] {
            assert_eq!(post(client, 7, id).await.pointers(400, "invalid_path"), ["post_id"], "{id}");
            assert_eq!(client.delete(&post_path(7, id)).await.pointers(400, "invalid_path"), ["post_id"], "{id}");
        }
        for user in ["0", "x", "me", "9223372036854775808"] {
            let path = format!("/v1/users/{user}/posts/p");
            assert_eq!(Client::send(client.request(Method::PUT, &path)).await.pointers(400, "invalid_path"), ["user"], "{user}");
        }
        let put = |body: serde_json::Value| Client::send(client.request(Method::PUT, &post_path(7, "p")).json(&body));
        assert_eq!(put(json!({"title": "x"})).await.pointers(422, "invalid_body"), ["/title"]);
        assert_eq!(client.post("/v1/users/7/feed/reset", &json!({"up_to": 3})).await.pointers(422, "invalid_body"), ["/up_to"]);
        for query in ["posts/count?user=1", "feed?cap=9", "feed?wait=61", "feed?wait=x"] {
            client.get(&format!("/v1/users/7/{query}")).await.problem(400, "invalid_query");
        }
        client.delete(&format!("{}?now=1", post_path(7, "p"))).await.problem(400, "invalid_query");
        assert_eq!(count(client, 7).await, (0, 0));
        assert_eq!(put(json!({})).await.status, 201);
        node.stop().await;
    }

    async fn services_post_and_users_read_their_own_feed(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        let token = |user: &str| {
            let claims = json!({"sub": user, "exp": 4_102_444_800_i64});
            jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &jsonwebtoken::EncodingKey::from_secret(JWT_SECRET.as_bytes())).unwrap()
        };
        let (one, two) = (node.client.with_bearer(&token("1")), node.client.with_bearer(&token("2")));
        assert_eq!(post(&service, 2, "p").await.status, 201);
        post(&two, 2, "q").await.problem(403, "forbidden");
        two.delete(&post_path(2, "p")).await.problem(403, "forbidden");
        assert_eq!(count(&one, 2).await, (1, 1), "anyone with credentials");
        one.follow(1, 2).await;
        assert_eq!(post(&service, 2, "r").await.status, 201);
        assert_eq!((feed(&one, 1).await, feed(&service, 1).await), ((1, 1), (1, 1)));
        assert_eq!(one.get("/v1/users/me/feed").await.ok()["unread"], 1);
        two.get("/v1/users/1/feed").await.problem(403, "forbidden");
        two.post("/v1/users/1/feed/reset", &json!({})).await.problem(403, "forbidden");
        assert_eq!(one.post("/v1/users/me/feed/reset", &json!({})).await.ok()["unread"], 0);
        for path in ["/v1/users/1/feed", "/v1/users/1/posts/count"] {
            node.client.get(path).await.problem(401, "unauthorized");
        }
        node.stop().await;
    }

    async fn a_feed_counts_what_came_since_the_follow_and_the_last_look(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for id in ["a", "b", "c"] {
            post(client, 7, id).await.ok();
        }
        assert_eq!(feed(client, 1).await, (0, 0));
        client.follow(1, 7).await;
        client.follow(1, 8).await;
        assert_eq!(feed(client, 1).await, (0, 2), "following begins at the present count");
        for (creator, id) in [(7, "d"), (7, "e"), (8, "a"), (9, "a")] {
            post(client, creator, id).await.ok();
        }
        let shown = client.get("/v1/users/1/feed").await;
        let token = shown.body["token"].as_str().unwrap().to_owned();
        insta::assert_snapshot!(shown.text.replace(&token, "TOKEN"), @r#"{"unread":3,"creators":2,"token":"TOKEN"}"#);
        delete(client, 7, "b").await;
        assert_eq!(feed(client, 1).await, (3, 2), "what was seen changes nothing");
        delete(client, 7, "d").await;
        assert_eq!(feed(client, 1).await, (2, 2));
        client.unfollow(1, 8).await;
        assert_eq!(feed(client, 1).await, (1, 1));
        client.follow(1, 8).await;
        assert_eq!(feed(client, 1).await, (1, 2), "following again begins again");
        let before = client.summary(1).await["revision"].as_i64().unwrap();
        let looked = client.post("/v1/users/1/feed/reset", &json!({})).await;
        assert_eq!(looked.text, format!(r#"{{"unread":0,"creators":2,"revision":{}}}"#, before + 1));
        assert_eq!(reset(client, 1).await["revision"], before + 1, "a repeat changes nothing");
        assert_eq!(feed(client, 1).await, (0, 2));
        delete(client, 7, "e").await;
        assert_eq!(feed(client, 1).await, (0, 2));
        post(client, 8, "b").await.ok();
        assert_eq!(feed(client, 1).await, (1, 2));
        client.unfollow(1, 8).await;
        client.follow(1, 8).await;
        assert_eq!(feed(client, 1).await, (0, 2), "the follow is younger than the look");
        node.stop().await;
    }

    async fn the_summary_has_the_feed_and_caps_it(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.follow(1, 7).await;
        client.follow(1, 8).await;
        for n in 0..5 {
            post(client, 7 + n % 2, &format!("p{n}")).await.ok();
        }
        let summary = client.get("/v1/users/1/badges?include=feed").await.ok();
        assert_eq!((&summary["feed"], summary.get("total")), (&json!({"unread": 5}), None));
        assert_eq!(client.summary(1).await["total"], 0, "a weak reminder");
        for (cap, expected) in [(3, json!({"unread": 3, "capped": true})), (4, json!({"unread": 4, "capped": true})), (5, json!({"unread": 5, "capped": false}))] {
            assert_eq!(client.get(&format!("/v1/users/1/badges?include=feed&cap={cap}")).await.ok()["feed"], expected);
        }
        let query = json!({"user_ids": ["1", "2", "7"], "include": ["feed"]});
        let summaries = client.post("/v1/badges/query", &query).await.ok();
        let unread: Vec<_> = summaries["items"].as_array().unwrap().iter().map(|summary| summary["feed"]["unread"].clone()).collect();
        assert_eq!(unread, [5, 0, 0]);
        node.stop().await;
    }

    async fn a_tag_stays_while_nothing_changes_and_a_post_wakes_who_waits(world: World) {
        const FEED: &str = "/v1/users/1/feed";
        let nodes = world.nodes().await;
        let (writer, reader) = (&nodes[0].client, &nodes.last().unwrap().client);
        writer.follow(1, 7).await;
        let mut tags = vec![writer.get(FEED).await.header("etag").to_owned()];
        for n in 1..=3 {
            post(writer, 7, &format!("p{n}")).await.ok();
            post(writer, 8, &format!("p{n}")).await.ok();
            let reply = writer.get_if_changed(FEED, tags.last().unwrap()).await;
            let tag = reply.header("etag").to_owned();
            assert_eq!(reply.ok()["unread"], n);
            assert!(!tags.contains(&tag), "{tag} again");
            for client in [writer, reader] {
                assert_eq!(client.get_if_changed(FEED, &tag).await.status, 304, "nothing changed; a node that is behind looks");
            }
            assert_eq!(reader.get(FEED).await.header("etag"), tag, "the same on every node");
            tags.push(tag);
        }
        let tag = tags.last().unwrap().clone();
        let (wait, asked) = (reader.request(Method::GET, "/v1/users/1/feed?wait=20").header("if-none-match", tag), Instant::now());
        let wait = tokio::spawn(Client::send(wait));
        eventually("the poll waits", async || nodes.last().unwrap().app.state().polling.waiting.taken() == 1).await;
        post(writer, 7, "late").await.ok();
        assert_eq!(wait.await.unwrap().ok()["unread"], 4);
        assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
        Node::stop_all(nodes).await;
    }

    async fn posts_are_kept_for_as_long_as_is_set(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.follow(1, 7).await;
        for id in ["a", "b", "c"] {
            post(client, 7, id).await.ok();
        }
        delete(client, 7, "b").await;
        let state = node.app.state();
        let mut config = FeedConfig { feed_cache_bytes: 1 << 20, post_ttl_days: 400 };
        let after = |days: i64| headmark::base::clock::UnixMs(state.clock.now().0 + days * DAY_MS);
        assert_eq!(headmark::features::feed::sweep(&state.db, &config, after(399)).await.unwrap(), 0);
        config.post_ttl_days = 0;
        assert_eq!(headmark::features::feed::sweep(&state.db, &config, after(4000)).await.unwrap(), 0, "for ever");
        config.post_ttl_days = 400;
        assert_eq!(headmark::features::feed::sweep(&state.db, &config, after(401)).await.unwrap(), 2);
        assert_eq!(headmark::features::feed::sweep(&state.db, &config, after(401)).await.unwrap(), 0);
        assert_eq!((count(client, 7).await, feed(client, 1).await), ((2, 3), (2, 1)), "numbers stay");
        client.delete(&post_path(7, "a")).await.problem(404, "not_found");
        post(client, 7, "b").await.problem(410, "gone");
        assert_eq!(post(client, 7, "a").await.status, 201, "an id that is no longer known is new");
        node.stop().await;
    }

    async fn looks_and_posts_at_the_same_time_lose_nothing(world: World) {
        let nodes = world.nodes().await;
        let clients: Vec<_> = nodes.iter().map(|node| node.client.clone()).collect();
        for creator in 7..=9 {
            clients[0].follow(1, creator).await;
        }
        let posts = (0..60).map(|n| {
            let client = clients[n % clients.len()].clone();
            async move { assert_eq!(post(&client, 7 + i64::try_from(n % 3).unwrap(), &format!("p{n}")).await.status, 201) }
        });
        let looks = (0..20).map(|n| {
            let client = clients[n % clients.len()].clone();
            async move { reset(&client, 1).await["revision"].as_i64().unwrap() }
        });
        tokio::join!(futures_util::future::join_all(posts), futures_util::future::join_all(looks));
        for client in &clients {
            reset(client, 1).await;
        }
        for (n, client) in (1..).zip(&clients) {
            post(client, 7, &format!("late{n}")).await.ok();
            let tag = client.get("/v1/users/1/feed").await.header("etag").to_owned();
            let shown = client.get_if_changed("/v1/users/1/feed", &tag).await;
            assert_eq!(shown.status, 304);
        }
        let expected = (i64::try_from(clients.len()).unwrap(), 3);
        for client in &clients {
            eventually("every node shows the last posts", async || feed(client, 1).await == expected).await;
        }
        Node::stop_all(nodes).await;
    }

    async fn a_follow_again_in_the_same_batch_begins_anew(world: World) {
        let node = world.node_with(&["--lanes", "1"]).await;
        let client = &node.client;
        client.follow(1, 7).await;
        for n in 0..4 {
            post(client, 7, &format!("p{n}")).await.ok();
        }
        let mut hand = crate::support::Hand::on(&world).await;
        hand.block().await;
        let first = {
            let client = client.clone();
            tokio::spawn(async move { client.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok() })
        };
        eventually("the lane waits", async || hand.waiting().await > 0).await;
        let unfollow = tokio::spawn({
            let client = client.clone();
            async move { client.unfollow(1, 7).await }
        });
        tokio::time::sleep(Duration::from_millis(150)).await;
        let follow = tokio::spawn({
            let client = client.clone();
            async move { client.follow(1, 7).await }
        });
        tokio::time::sleep(Duration::from_millis(150)).await;
        hand.release().await;
        first.await.unwrap();
        unfollow.await.unwrap();
        follow.await.unwrap();
        assert_eq!(feed(client, 1).await, (0, 1));
        node.stop().await;
    }
}

/// A list that one node loaded is there for the others, for a time; one of another version is not
/// used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_share_lists_through_redis() {
    let world = World::new(Tier::Server).await;
    let nodes = world.nodes().await;
    let (first, second) = (&nodes[0], &nodes[1]);
    first.client.follow(1, 7).await;
    post(&first.client, 7, "a").await.ok();
    assert_eq!(feed(&first.client, 1).await, (1, 1));
    let key = format!("{}{{u:1}}:f", world.prefix);
    let mut redis = crate::support::connect(&world.redis_url).await.unwrap();
    let ttl_ms: i64 = deadpool_redis::redis::cmd("PTTL").arg(&key).query_async(&mut redis).await.unwrap();
    assert!((1..=60_000).contains(&ttl_ms), "{ttl_ms}");
    let loads = async |from: &str| {
        let text = first.client.get("/metrics").await.text;
        let name = format!("headmark_feed_loads_total{{from=\"{from}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
    };
    let from_cache = loads("cache").await;
    eventually("the other node shows it", async || feed(&second.client, 1).await == (1, 1)).await;
    assert_eq!((from_cache, loads("cache").await, loads("database").await), (0, 1, 1));
    for junk in [&b"short"[..], &[0; 8], b"\0\0\0\0\0\0\0\x01\x09rubbish"] {
        let () = deadpool_redis::redis::cmd("SET").arg(&key).arg(junk).arg("PX").arg(60_000).query_async(&mut redis).await.unwrap();
        first.app.state().summaries.parts.feed.feeds.clear();
        assert_eq!(feed(&first.client, 1).await, (1, 1), "{junk:?}");
    }
    Node::stop_all(nodes).await;
}

both_tiers! {
    async fn what_is_far_behind_is_counted_from_the_rows(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.follow(1, 7).await;
        let ids: Vec<_> = (0..460).map(|n| format!("p{n}")).collect();
        for id in &ids {
            post(client, 7, id).await.ok();
        }
        // Every other one: more runs than a stream keeps at hand.
        for (n, id) in ids.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
            delete(client, 7, id).await;
            if n % 50 == 0 || n > 400 {
                let gone = i64::try_from(n / 2 + 1).unwrap();
                assert_eq!(feed(client, 1).await, (460 - gone, 1), "after {gone}");
            }
        }
        // One whose position is no longer at hand, and one that is.
        for id in ["p1", "p459"] {
            delete(client, 7, id).await;
        }
        assert_eq!((feed(client, 1).await, count(client, 7).await), ((228, 1), (228, 460)));
        let capped = client.get("/v1/users/1/badges?include=feed&cap=99").await.ok();
        assert_eq!(capped["feed"], json!({"unread": 99, "capped": true}));
        let state = node.app.state();
        state.summaries.parts.feed.feeds.clear();
        state.heads.forget_all();
        assert_eq!(feed(client, 1).await, (228, 1));
        let (user, version) = (UserId::try_from(1).unwrap(), client.summary(1).await["revision"].as_i64().unwrap());
        let terms = state.summaries.parts.feed.feeds.terms(user, version, headmark::base::clock::UnixMs(0)).await.unwrap();
        let terms: Vec<_> = terms.iter().map(|term| (term.creator.get(), term.head, term.mark, term.unread)).collect();
        assert_eq!(terms, [(7, 460, 0, 228)]);
        reset(client, 1).await;
        assert_eq!(feed(client, 1).await, (0, 1));
        node.stop().await;
    }
}
