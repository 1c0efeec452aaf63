//! Secret and special follows, blocks, removed followers: what they do, and what they do not tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use headmark::base::clock::UnixMs;
use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Reply, World};

/// A node with credentials, a service's client, and a way to be any user.
struct Scene {
    node: Node,
    service: Client,
}

impl Scene {
    async fn of(world: &World) -> Self {
        Self::with(world, &[]).await
    }

    async fn with(world: &World, more: &[&str]) -> Self {
        let args = [&CREDENTIALS, more].concat();
        let node = world.node_with(&args).await;
        let service = node.service();
        Self { node, service }
    }

    fn user(&self, id: i64) -> Client {
        self.node.user(id)
    }

    async fn follow(&self, follower: i64, followee: i64, how: &Value) -> Reply {
        Client::send(self.service.request(Method::PUT, &format!("/v1/users/{follower}/following/{followee}")).json(how)).await
    }

    async fn block(&self, user: i64, target: i64) -> Reply {
        Client::send(self.service.request(Method::PUT, &format!("/v1/users/{user}/blocks/{target}"))).await
    }
}

/// The users of a list, in its order.
async fn list(client: &Client, path: &str) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = client.get(&format!("{path}{sign}limit=2{cursor}")).await.ok();
        ids.extend(page["items"].as_array().unwrap().iter().map(|item| item["user_id"].as_str().unwrap().parse::<i64>().unwrap()));
        match page["next_cursor"].as_str() {
            None => return ids,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

async fn counts(client: &Client, user: i64) -> Value {
    client.get(&format!("/v1/users/{user}/relation-counts")).await.ok()
}

async fn relation(client: &Client, user: i64, other: i64) -> Value {
    client.get(&format!("/v1/users/{user}/relations?ids={other}")).await.ok()["items"][0].clone()
}

/// All that a stranger can ask about a user.
async fn seen_by(stranger: &Client, user: i64) -> Vec<Value> {
    let mut seen = Vec::new();
    for name in ["following", "following?visibility=public", "followers", "mutuals", "relation-counts"] {
        let reply = stranger.get(&format!("/v1/users/{user}/{name}")).await;
        seen.push(json!([reply.status.as_u16(), reply.body]));
    }
    for name in
        ["following?visibility=secret", "following?visibility=all", "special", "blocks", "blocks/ids", "following/ids", "relations?ids=1"]
    {
        let reply = stranger.get(&format!("/v1/users/{user}/{name}")).await;
        assert_eq!(reply.status, 403, "{name}");
        seen.push(json!([reply.status.as_u16(), reply.body]));
    }
    seen
}

/// How often indexes of these names were scanned, and how many entries that read, as Postgres has
/// counted so far.
async fn scanned(conn: &mut sqlx::PgConnection, names: &[&str]) -> (i64, i64) {
    let sql = "select coalesce(sum(s.idx_scan), 0)::bigint, coalesce(sum(s.idx_tup_read), 0)::bigint
        from pg_stat_user_indexes s
        left join pg_inherits i on i.inhrelid = s.indexrelid
        left join pg_class whole on whole.oid = i.inhparent
        where coalesce(whole.relname, s.indexrelname) = any($1)";
    sqlx::query_as(sql).bind(names).fetch_one(conn).await.unwrap()
}

/// Twenty thousand secret rows stand between a hundred public ones: a page for a stranger looks at
/// none of them, so its time tells nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_for_strangers_reads_nothing_secret() {
    const PAGES: i64 = 20;
    let world = World::new(crate::support::Tier::Server).await;
    let scene = Scene::of(&world).await;
    let mut conn = world.postgres().await;
    for sql in [
        "insert into following (follower_id, followee_id, since, secret) select 1, g, g, case when g % 200 = 0 then 0 else 1 end from generate_series(200, 20199) g",
        "insert into secret_followers (followee_id, since, follower_id) select 1, g, g from generate_series(200, 20199) g where g % 200 <> 0",
        "insert into followers (followee_id, since, follower_id) select 1, g, g from generate_series(200, 20199) g where g % 200 = 0",
        "analyze",
    ] {
        sqlx::query(sql).execute(&mut conn).await.unwrap();
    }
    let stranger = scene.user(9);
    for name in ["following", "followers"] {
        let shown = stranger.walk(&format!("/v1/users/1/{name}"), 5).await;
        assert_eq!(shown.len(), 100);
    }
    stranger.get("/v1/users/1/mutuals?limit=100").await.ok();
    let public = ["following_public", "followers_pkey"];
    crate::support::eventually("the scans are counted", async || scanned(&mut conn, &public).await.0 >= 2 * PAGES).await;
    // The stranger's own numbers are looked for, which finds none.
    assert_eq!(scanned(&mut conn, &["following_secret", "secret_followers_pkey"]).await.1, 0);
    let (_, read) = scanned(&mut conn, &["following_public", "followers_pkey", "following_pkey"]).await;
    assert!(read < 2000, "{read} entries for a list of a hundred on either side");
    assert_eq!(list(&scene.service, "/v1/users/1/following?visibility=public").await.len(), 100);
    let first = scene.service.get("/v1/users/1/following?limit=100").await.ok();
    let ids: Vec<i64> = first["items"].as_array().unwrap().iter().map(|item| item["user_id"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(ids, (20_100..20_200).rev().collect::<Vec<_>>(), "the owner's page has both, in one order");
    scene.node.stop().await;
}

both_tiers! {
    async fn a_whole_list_is_given_up_to_a_bound_that_is_set(world: World) {
        let refusal = world.try_node(&["--max-whole-list", "4999"], headmark::base::clock::Clock::System).await.expect_err("a list of 5000 may be made");
        assert!(refusal.contains("HEADMARK_MAX_WHOLE_LIST"), "{refusal}");
        let args = ["--max-following", "300000", "--max-whole-list", "300000"];
        let mut nodes = vec![world.node_with(&args).await];
        if world.tier == crate::support::Tier::Server {
            nodes.push(world.node_with(&args).await);
        }
        let mut hand = crate::support::Hand::on(&world).await;
        let numbers = "with recursive n (g) as (select 2 union all select g + 1 from n where g < 300001)";
        hand.run(&format!("{numbers} insert into following (follower_id, followee_id, since) select 1, g, g from n")).await;
        // A user without a row of its own follows nobody.
        hand.run("insert into users (user_id, version, revision, following) values (1, 1, 1, 300000)").await;
        for node in &nodes {
            let whole = node.client.get("/v1/users/1/following/ids").await;
            let tag = whole.header("etag").to_owned();
            let whole = whole.ok();
            assert_eq!((&whole["count"], &whole["ids"][0], &whole["ids"][299_999]), (&json!(300_000), &json!("300001"), &json!("2")));
            assert_eq!(whole["ids"].as_array().unwrap().len(), 300_000);
            assert_eq!(node.client.get_if_changed("/v1/users/1/following/ids", &tag).await.status, 304);
        }
        // One more, as imports make it, is beyond the bound; and something changes, so that the
        // list is read again.
        hand.run("insert into following (follower_id, followee_id, since) values (1, 400000, 400000)").await;
        hand.run("update users set following = following + 1 where user_id = 1").await;
        Client::send(nodes[0].client.request(Method::PUT, "/v1/users/1/following/5").json(&json!({"special": true}))).await.ok();
        for node in &nodes {
            let refused = node.client.get("/v1/users/1/following/ids").await.problem(409, "too_many");
            assert!(refused["detail"].as_str().unwrap().contains("more than 300000 users"), "{refused}");
        }
        nodes[0].client.unfollow(1, 400_000).await;
        for node in &nodes {
            assert_eq!(node.client.get("/v1/users/1/following/ids").await.ok()["count"], 300_000, "as soon as it is short enough");
        }
        Node::stop_all(nodes).await;
    }

    async fn a_follow_is_changed_by_what_is_named(world: World) {
        let scene = Scene::of(&world).await;
        let is = |relation: &Value| (relation["following"] == true, relation["secret"] == true, relation["special"] == true);
        let steps = [
            (json!({"special": true}), (true, false, true)),
            (json!({}), (true, false, true)),
            (json!({"visibility": "secret"}), (true, true, true)),
            (json!({"special": false}), (true, true, false)),
            (json!({"visibility": "public", "special": true}), (true, false, true)),
        ];
        scene.follow(1, 2, &json!({})).await.ok();
        for (how, expected) in steps {
            assert_eq!(is(&scene.follow(1, 2, &how).await.ok()), expected, "{how}");
            let entry = scene.service.walk("/v1/users/1/following", 5).await[0].clone();
            assert_eq!((&entry["secret"], &entry["special"]), (&json!(expected.1), &json!(expected.2)));
            assert_eq!(is(&relation(&scene.service, 1, 2).await), expected);
            let own = counts(&scene.service, 1).await;
            assert_eq!(own, json!({"following": 1, "followers": 0, "mutuals": 0, "secret": i64::from(expected.1), "special": i64::from(expected.2), "blocked": 0, "requests": 0, "requests_sent": 0}));
            assert_eq!(counts(&scene.service, 2).await["followers"], 1);
        }
        assert_eq!(list(&scene.service, "/v1/users/1/special").await, [2]);
        scene.service.unfollow(1, 2).await;
        assert_eq!(counts(&scene.service, 1).await, json!({"following": 0, "followers": 0, "mutuals": 0, "secret": 0, "special": 0, "blocked": 0, "requests": 0, "requests_sent": 0}));
        assert!(list(&scene.service, "/v1/users/1/special").await.is_empty());
        scene.node.stop().await;
    }

    async fn a_secret_follow_that_is_made_public_begins_then(world: World) {
        const BEGIN: i64 = 1_800_000_000_000;
        let at = Arc::new(AtomicI64::new(BEGIN));
        let args = CREDENTIALS;
        let node = world.node_at(&at, &args).await;
        let scene = Scene { service: node.service(), node };
        let stranger = scene.user(9);
        let time = |minutes: i64| json!(UnixMs(BEGIN + minutes * 60_000));
        let since = async |client: &Client, path: &str| client.walk(path, 5).await.iter().map(|item| item["since"].clone()).collect::<Vec<_>>();
        let follow = async |how: Value, minute: i64| {
            at.store(BEGIN + minute * 60_000, Ordering::SeqCst);
            scene.follow(1, 2, &how).await.ok();
        };
        for path in ["/v1/users/1/following", "/v1/users/2/followers"] {
            assert_eq!(since(&stranger, path).await, Vec::<Value>::new());
        }
        follow(json!({"visibility": "secret"}), 1).await;
        follow(json!({"special": true}), 2).await;
        scene.follow(1, 3, &json!({})).await.ok();
        scene.follow(3, 2, &json!({})).await.ok();
        for path in ["/v1/users/1/following", "/v1/users/2/followers"] {
            assert_eq!(since(&scene.service, path).await, [time(2), time(1)]);
        }
        follow(json!({"visibility": "public"}), 3).await;
        follow(json!({"visibility": "public", "special": false}), 4).await;
        for (path, first) in [("/v1/users/1/following", "2"), ("/v1/users/2/followers", "1")] {
            for client in [&stranger, &scene.service] {
                assert_eq!(since(client, path).await, [time(3), time(2)], "the same for everybody");
                assert_eq!(client.walk(path, 5).await[0]["user_id"], first, "the newest first");
            }
        }
        follow(json!({"visibility": "secret"}), 5).await;
        assert_eq!(since(&scene.service, "/v1/users/1/following").await, [time(3), time(2)], "to hide it changes no time");
        follow(json!({"visibility": "public"}), 6).await;
        assert_eq!(since(&scene.service, "/v1/users/2/followers").await, [time(6), time(2)]);
        assert_eq!(scene.service.get("/v1/users/1/following/ids").await.ok()["ids"], json!(["2", "3"]));
        scene.node.stop().await;
    }

    async fn a_secret_follow_is_seen_by_the_two_alone(world: World) {
        let scene = Scene::of(&world).await;
        let (me, star, stranger) = (scene.user(1), scene.user(2), scene.user(3));
        // The same without the secret, of other users.
        for (follower, followee) in [(1, 4), (5, 1), (1, 5), (2, 1), (6, 2)] {
            scene.follow(follower, followee, &json!({})).await.ok();
        }
        let before = [seen_by(&stranger, 1).await, seen_by(&stranger, 2).await];
        scene.follow(1, 2, &json!({"visibility": "secret", "special": true})).await.ok();
        scene.follow(1, 4, &json!({"special": true})).await.ok();
        let mut after = [seen_by(&stranger, 1).await, seen_by(&stranger, 2).await];
        // The number of followers is one for everybody.
        assert_eq!(after[1][4][1]["followers"], 2);
        after[1][4][1]["followers"] = json!(1);
        assert_eq!(before, after, "nothing else shows");
        assert_eq!(seen_by(&star, 1).await, before[0], "nor to the followee in the follower's lists");

        assert_eq!(list(&me, "/v1/users/me/following").await, [2, 5, 4]);
        assert_eq!(list(&me, "/v1/users/me/following?visibility=secret").await, [2]);
        assert_eq!(list(&me, "/v1/users/me/following?visibility=public").await, [5, 4]);
        assert_eq!(list(&me, "/v1/users/me/following?visibility=all").await, [2, 5, 4]);
        assert_eq!(list(&me, "/v1/users/me/special").await, [2, 4]);
        assert_eq!(counts(&me, 1).await, json!({"following": 3, "followers": 2, "mutuals": 1, "secret": 1, "special": 2, "blocked": 0, "requests": 0, "requests_sent": 0}));
        assert_eq!(list(&star, "/v1/users/me/followers").await, [1, 6]);
        let entry = star.walk("/v1/users/me/followers", 5).await[0].clone();
        assert_eq!((&entry["secret"], &entry["mutual"], entry.get("special")), (&json!(true), &json!(false), None), "what is special is the follower's own");
        assert_eq!(counts(&star, 2).await, json!({"following": 1, "followers": 2, "mutuals": 0, "secret": 0, "special": 0, "blocked": 0, "requests": 0, "requests_sent": 0}));
        let seen = relation(&star, 2, 1).await;
        assert_eq!((&seen["followed_by"], &seen["following"], &seen["mutual"], &seen["secret"]), (&json!(true), &json!(true), &json!(false), &json!(false)));
        assert!(list(&star, "/v1/users/1/mutuals").await == [5] && list(&star, "/v1/users/2/mutuals").await.is_empty(), "a secret follow makes nothing mutual");

        scene.follow(1, 2, &json!({"visibility": "public"})).await.ok();
        assert_eq!((list(&stranger, "/v1/users/1/mutuals").await, list(&stranger, "/v1/users/2/mutuals").await), (vec![2, 5], vec![1]));
        assert_eq!((counts(&stranger, 1).await, counts(&stranger, 2).await), (json!({"following": 3, "followers": 2, "mutuals": 2}), json!({"following": 1, "followers": 2, "mutuals": 1})));
        scene.node.stop().await;
    }

    async fn a_block_severs_both_follows_and_forbids_new_ones(world: World) {
        let scene = Scene::of(&world).await;
        for (follower, followee) in [(1, 2), (2, 1), (3, 1)] {
            scene.follow(follower, followee, &json!({})).await.ok();
        }
        let blocked = scene.block(1, 2).await.ok();
        assert_eq!(blocked, json!({"user_id": "2", "following": false, "requested": false, "secret": false, "special": false, "followed_by": false, "mutual": false, "blocking": true, "muting": false, "revision": blocked["revision"]}));
        assert_eq!(scene.block(1, 2).await.ok(), blocked);
        let revision = scene.service.summary(1).await["revision"].clone();
        scene.block(1, 2).await.ok();
        assert_eq!(scene.service.summary(1).await["revision"], revision, "a repeat changes nothing");
        assert_eq!(counts(&scene.service, 1).await, json!({"following": 0, "followers": 1, "mutuals": 0, "secret": 0, "special": 0, "blocked": 1, "requests": 0, "requests_sent": 0}));
        assert_eq!(counts(&scene.service, 2).await, json!({"following": 0, "followers": 0, "mutuals": 0, "secret": 0, "special": 0, "blocked": 0, "requests": 0, "requests_sent": 0}));
        assert_eq!((list(&scene.service, "/v1/users/1/blocks").await, list(&scene.service, "/v1/users/2/blocks").await), (vec![2], vec![]));
        // Anyone who tries and anyone who blocks: the same answer.
        let (mine, theirs) = (scene.follow(1, 2, &json!({})).await, scene.follow(2, 1, &json!({"visibility": "secret"})).await);
        assert_eq!(mine.body, theirs.body);
        mine.problem(403, "blocked");
        scene.block(2, 1).await.ok();
        assert_eq!(scene.follow(1, 2, &json!({})).await.body, theirs.body);
        for user in [1, 2] {
            let reply = scene.service.delete(&format!("/v1/users/{user}/following/{}", 3 - user)).await;
            assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        }
        // Each lifts its own.
        assert_eq!(scene.service.delete("/v1/users/1/blocks/2").await.status, 204);
        scene.follow(1, 2, &json!({})).await.problem(403, "blocked");
        assert_eq!(scene.service.delete("/v1/users/2/blocks/1").await.status, 204);
        assert_eq!(scene.service.delete("/v1/users/2/blocks/1").await.status, 204);
        assert_eq!(relation(&scene.service, 1, 2).await["following"], false, "nothing comes back by itself");
        scene.follow(1, 2, &json!({})).await.ok();
        scene.node.stop().await;
    }

    async fn a_block_shows_to_nobody_else(world: World) {
        let scene = Scene::of(&world).await;
        let (blocked, stranger) = (scene.user(2), scene.user(3));
        scene.follow(4, 1, &json!({})).await.ok();
        let before = [seen_by(&stranger, 1).await, seen_by(&stranger, 2).await, seen_by(&blocked, 1).await];
        let own = [counts(&blocked, 2).await, relation(&blocked, 2, 1).await];
        scene.block(1, 2).await.ok();
        assert_eq!([seen_by(&stranger, 1).await, seen_by(&stranger, 2).await, seen_by(&blocked, 1).await], before);
        assert_eq!([counts(&blocked, 2).await, relation(&blocked, 2, 1).await], own, "nor to the one who is blocked");
        assert_eq!(blocked.get("/v1/users/me/blocks/ids").await.ok(), json!({"ids": [], "count": 0}));
        Client::send(stranger.request(Method::PUT, "/v1/users/1/blocks/2")).await.problem(403, "forbidden");
        stranger.delete("/v1/users/1/blocks/2").await.problem(403, "forbidden");
        stranger.delete("/v1/users/1/followers/4").await.problem(403, "forbidden");
        stranger.post("/v1/relations/query", &json!({"pairs": [{"user_id": 1, "target_id": 2}]})).await.problem(403, "forbidden");
        scene.node.stop().await;
    }

    async fn a_follower_is_removed(world: World) {
        let scene = Scene::of(&world).await;
        let me = scene.user(1);
        scene.follow(2, 1, &json!({})).await.ok();
        scene.follow(3, 1, &json!({"visibility": "secret"})).await.ok();
        scene.follow(1, 2, &json!({})).await.ok();
        for fan in [2, 3, 4] {
            let reply = me.delete(&format!("/v1/users/me/followers/{fan}")).await;
            assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
        }
        assert_eq!(counts(&me, 1).await, json!({"following": 1, "followers": 0, "mutuals": 0, "secret": 0, "special": 0, "blocked": 0, "requests": 0, "requests_sent": 0}));
        assert_eq!(counts(&scene.service, 3).await["secret"], 0);
        assert!(list(&scene.service, "/v1/users/2/following").await.is_empty() && list(&me, "/v1/users/me/following").await == [2]);
        scene.follow(2, 1, &json!({})).await.ok();
        me.delete("/v1/users/me/followers/1").await.problem(422, "self_relation");
        me.delete("/v1/users/me/followers/x").await.problem(400, "invalid_path");
        Client::send(me.request(Method::PUT, "/v1/users/me/blocks/1")).await.problem(422, "self_relation");
        Client::send(me.request(Method::PUT, "/v1/users/me/blocks/2").json(&json!({"why": "spam"}))).await.problem(422, "invalid_body");
        scene.node.stop().await;
    }

    async fn the_limit_on_blocks_is_exact(world: World) {
        let scene = Scene::with(&world, &["--max-blocks", "3"]).await;
        let replies = futures_util::future::join_all((10..30).map(|target| scene.block(1, target))).await;
        let (blocked, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
        assert_eq!((blocked.len(), refused.len()), (3, 17));
        refused.into_iter().for_each(|reply| drop(reply.problem(409, "too_many")));
        let mine = list(&scene.service, "/v1/users/1/blocks").await;
        assert_eq!((mine.len(), counts(&scene.service, 1).await["blocked"].clone()), (3, json!(3)));
        scene.service.delete(&format!("/v1/users/1/blocks/{}", mine[0])).await;
        scene.block(1, 99).await.ok();
        scene.node.stop().await;
    }

    async fn whole_lists_are_polled(world: World) {
        let scene = Scene::of(&world).await;
        let me = scene.user(1);
        let ids = |reply: Reply| reply.ok()["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().parse::<i64>().unwrap()).collect::<Vec<_>>();
        let empty = me.get("/v1/users/me/following/ids").await;
        assert_eq!(empty.body, json!({"ids": [], "count": 0}));
        for followee in [5, 3, 9] {
            scene.follow(1, followee, &json!({"visibility": if followee == 3 { "secret" } else { "public" }})).await.ok();
        }
        scene.block(1, 7).await.ok();
        let full = me.get_if_changed("/v1/users/me/following/ids", empty.header("etag")).await;
        assert_eq!((full.header("x-poll-interval"), full.header("cache-control")), ("30", "private, no-cache"));
        let tag = full.header("etag").to_owned();
        assert_eq!((full.body["count"].clone(), ids(full)), (json!(3), vec![9, 3, 5]));
        let same = me.get_if_changed("/v1/users/me/following/ids", &tag).await;
        assert_eq!((same.status.as_u16(), same.text.as_str(), same.header("etag")), (304, "", tag.as_str()));
        assert_eq!(ids(me.get("/v1/users/me/blocks/ids").await), [7]);

        scene.follow(8, 1, &json!({})).await.ok();
        scene.service.post("/v1/users/1/badges/mention/increment", &json!({})).await.ok();
        assert_eq!(me.get_if_changed("/v1/users/me/following/ids", &tag).await.status, 304, "another change of the user's is none of the list's");
        let waiting = me.request(Method::GET, "/v1/users/me/following/ids?wait=30").header("if-none-match", &tag);
        let poll = tokio::spawn(Client::send(waiting));
        crate::support::eventually("the poll waits", async || scene.service.metric("headmark_polls_waiting").await == 1.0).await;
        scene.service.delete("/v1/users/9/followers/1").await;
        assert_eq!(ids(poll.await.unwrap()), [3, 5], "removed by the other");
        scene.user(3).get("/v1/users/1/following/ids").await.problem(403, "forbidden");
        for bad in ["wait=61", "wait=x", "limit=5"] {
            me.get(&format!("/v1/users/me/following/ids?{bad}")).await.problem(400, "invalid_query");
        }
        scene.node.stop().await;
        let node = world.node().await;
        assert_eq!(ids(node.client.get("/v1/users/1/following/ids").await), [3, 5], "it is there after a restart");
        node.stop().await;
    }

    async fn pairs_are_queried_by_services(world: World) {
        let nodes = world.nodes().await;
        let client = &nodes[0].client;
        client.follow(1, 2).await;
        Client::send(client.request(Method::PUT, "/v1/users/2/following/1").json(&json!({"visibility": "secret"}))).await.ok();
        Client::send(client.request(Method::PUT, "/v1/users/3/blocks/1")).await.ok();
        let pairs = json!({"pairs": [{"user_id": 1, "target_id": "2"}, {"user_id": 2, "target_id": 1}, {"user_id": 3, "target_id": 1}, {"user_id": 1, "target_id": 3}, {"user_id": 1, "target_id": 2}]});
        let told = |a: &str, b: &str, following, secret, followed_by, blocking| {
            json!({"user_id": a, "target_id": b, "following": following, "requested": false, "secret": secret, "special": false, "followed_by": followed_by, "mutual": false, "blocking": blocking, "muting": false})
        };
        let expected = json!({"items": [
            told("1", "2", true, false, true, false),
            told("2", "1", true, true, true, false),
            told("3", "1", false, false, false, true),
            told("1", "3", false, false, false, false),
            told("1", "2", true, false, true, false),
        ]});
        for _ in 0..3 {
            for node in &nodes {
                assert_eq!(node.client.post("/v1/relations/query", &pairs).await.ok(), expected);
                // With entries in the cache the look-ups may be answered from there.
                for user in 1..=3 {
                    node.client.summary(user).await;
                }
            }
        }
        client.unfollow(1, 2).await;
        for node in &nodes {
            assert_eq!(node.client.post("/v1/relations/query", &pairs).await.ok()["items"][0]["following"], false, "at once on every node");
        }
        client.post("/v1/relations/query", &json!({"pairs": []})).await.problem(422, "invalid_body");
        client.post("/v1/relations/query", &json!({"pairs": [{"user_id": 1}]})).await.problem(422, "invalid_body");
        let many: Vec<_> = (1..=1001).map(|n| json!({"user_id": n, "target_id": n + 1})).collect();
        client.post("/v1/relations/query", &json!({"pairs": many[1..]})).await.ok();
        client.post("/v1/relations/query", &json!({"pairs": many})).await.problem(422, "invalid_body");
        Node::stop_all(nodes).await;
    }

    async fn strangers_see_a_change_at_once_where_it_was_made_and_soon_elsewhere(world: World) {
        let args = CREDENTIALS;
        let (first, second) = (Scene { node: world.node_with(&args).await, service: Client::new("http://unused") }, {
            let node = if world.tier == crate::support::Tier::Server { Some(world.node_with(&args).await) } else { None };
            node.map(|node| Scene { node, service: Client::new("http://unused") })
        });
        let service = first.node.service();
        let here = first.user(99);
        let there = second.as_ref().unwrap_or(&first).user(99);
        for fan in 2..30 {
            service.follow(fan, 1).await;
            for name in ["followers", "mutuals"] {
                here.get(&format!("/v1/users/1/{name}")).await.ok();
            }
            assert_eq!(counts(&here, 1).await["followers"], fan - 1, "at once on the node that wrote");
            assert_eq!(here.get("/v1/users/1/followers").await.ok()["items"][0]["user_id"], fan.to_string());
            there.get("/v1/users/1/followers").await.ok();
        }
        let began = tokio::time::Instant::now();
        crate::support::eventually("the other node shows it", async || counts(&there, 1).await["followers"] == 28).await;
        crate::support::eventually("and the list", async || there.get("/v1/users/1/followers").await.ok()["items"][0]["user_id"] == "29").await;
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        first.node.stop().await;
        if let Some(second) = second {
            second.node.stop().await;
        }
    }
}
