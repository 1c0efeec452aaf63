//! Follow, unfollow, lists, counts and look-ups over HTTP, as the contract has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Tier, World};

/// The users of a list, in its order.
async fn list(client: &Client, user: i64, name: &str) -> Vec<i64> {
    let items = client.walk(&format!("/v1/users/{user}/{name}"), 7).await;
    items.iter().map(|item| item["user_id"].as_str().unwrap().parse().unwrap()).collect()
}

/// Following, followers and mutuals.
async fn counts(client: &Client, user: i64) -> (i64, i64, i64) {
    let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.ok();
    let count = |name: &str| counts[name].as_i64().unwrap();
    (count("following"), count("followers"), count("mutuals"))
}

/// How many entries of indexes were read so far, as Postgres counts them, once it has counted so
/// many scans.
async fn entries_read(world: &World, scans: i64) -> i64 {
    let mut conn = world.postgres().await;
    let mut entries = 0;
    crate::support::eventually("the reads are counted", async || {
        let sql = "select coalesce(sum(idx_scan), 0)::bigint, coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes where relname ~ '^(following|followers)(_[0-9]|$)'";
        let (scanned, read): (i64, i64) = sqlx::query_as(sql).fetch_one(&mut conn).await.unwrap();
        entries = read;
        scanned >= scans
    })
    .await;
    entries
}

/// With statistics in place the planner thinks again; it must still not read all follows that there
/// are for a page of ten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_a_long_list_reads_no_more_than_it_shows() {
    const FANS: i64 = 20_000;
    const PAGES: i64 = 30;
    let world = World::new(Tier::Server).await;
    let node = world.node().await;
    let mut conn = world.postgres().await;
    for sql in [
        "insert into following select g, 1, g from generate_series(2, 20001) g",
        "insert into followers select 1, g, g from generate_series(2, 20001) g",
        "insert into following select 1, g, g from generate_series(2, 4001) g",
        // Those on the pages follow many others.
        "insert into following select f, 100000 + g, g from generate_series(19982, 20001) f, generate_series(1, 1000) g",
        "insert into following select f, 100000 + g, g from generate_series(3982, 4001) f, generate_series(1, 1000) g",
        "analyze",
    ] {
        sqlx::query(sql).execute(&mut conn).await.unwrap();
    }
    for _ in 0..PAGES {
        for name in ["followers", "following"] {
            let page = node.client.get(&format!("/v1/users/1/{name}?limit=10")).await.ok();
            assert_eq!(page["items"].as_array().unwrap().len(), 10);
        }
    }
    // Each page is a scan, and one for each entry.
    let read = entries_read(&world, PAGES * 2 * 11).await;
    assert!(read < FANS, "{read} entries for {} pages", PAGES * 2);
    node.stop().await;
}

both_tiers! {
    async fn a_follow_shows_on_both_sides_and_a_repeat_changes_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        assert_eq!((counts(client, 1).await, list(client, 1, "following").await), ((0, 0, 0), vec![]), "nobody needs to be created");
        let relation = client.follow(1, 2).await;
        let expected = json!({"user_id": "2", "following": true, "requested": false, "secret": false, "special": false, "followed_by": false, "mutual": false, "blocking": false, "muting": false, "revision": 2});
        assert_eq!(relation, expected);
        let revision = client.summary(1).await["revision"].clone();
        assert_eq!(revision, 2, "the enrolment, and the follower's own rows changed");
        for body in [json!({}), json!({"visibility": "public"}), json!({"special": false, "visibility": "public"})] {
            assert_eq!(client.put("/v1/users/1/following/2", &body).await.ok(), expected);
        }
        assert_eq!(client.summary(1).await["revision"], revision);
        assert_eq!(client.summary(2).await["revision"], 1, "the enrolment: being followed changes nothing of one's own");
        assert_eq!((list(client, 1, "following").await, list(client, 1, "followers").await), (vec![2], vec![]));
        assert_eq!((list(client, 2, "following").await, list(client, 2, "followers").await), (vec![], vec![1]));
        assert_eq!((counts(client, 1).await, counts(client, 2).await), ((1, 0, 0), (0, 1, 0)));

        let back = client.follow(2, 1).await;
        assert_eq!((&back["followed_by"], &back["mutual"]), (&json!(true), &json!(true)));
        assert_eq!((counts(client, 1).await, counts(client, 2).await), ((1, 1, 1), (1, 1, 1)));
        for user in [1, 2] {
            for name in ["following", "followers"] {
                assert_eq!(client.walk(&format!("/v1/users/{user}/{name}"), 5).await[0]["mutual"], true);
            }
        }
        node.stop().await;
        let node = world.node().await;
        assert_eq!(counts(&node.client, 2).await, (1, 1, 1), "it is there after a restart");
        node.stop().await;
    }

    async fn an_unfollow_takes_both_sides_back_and_needs_no_follow(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.unfollow(1, 2).await;
        assert_eq!(client.summary(1).await["revision"], 1, "the enrolment");
        client.follow(1, 2).await;
        client.follow(2, 1).await;
        client.follow(3, 2).await;
        client.unfollow(1, 2).await;
        client.unfollow(1, 2).await;
        assert_eq!((counts(client, 1).await, counts(client, 2).await), ((0, 1, 0), (1, 1, 0)));
        assert_eq!((list(client, 1, "following").await, list(client, 2, "followers").await), (vec![], vec![3]));
        assert_eq!(client.walk("/v1/users/2/following", 5).await[0]["mutual"], false);
        client.follow(1, 2).await;
        assert_eq!((counts(client, 2).await, list(client, 2, "followers").await), ((1, 2, 1), vec![1, 3]));
        node.stop().await;
    }

    async fn bad_follows_are_refused_and_change_nothing(world: World) {
        let node = world.node().await;
        let client = &node.client;
        Client::send(client.request(Method::PUT, "/v1/users/1/following/1")).await.problem(422, "self_relation");
        client.delete("/v1/users/1/following/1").await.problem(422, "self_relation");
        for target in ["0", "x", "-1", "9223372036854775808", "me"] {
            let path = format!("/v1/users/1/following/{target}");
            assert_eq!(Client::send(client.request(Method::PUT, &path)).await.pointers(400, "invalid_path"), ["target"]);
            assert_eq!(client.delete(&path).await.pointers(400, "invalid_path"), ["target"]);
        }
        for (body, pointer) in [
            (json!({"visibility": "hidden"}), "/visibility"),
            (json!({"visibility": null}), "/visibility"),
            (json!({"special": null}), "/special"),
            (json!({"special": "yes"}), "/special"),
            (json!({"visible": "public"}), "/visible"),
        ] {
            let reply = client.put("/v1/users/1/following/2", &body).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        client.delete("/v1/users/1/following/2?now=1").await.problem(400, "invalid_query");
        client.get("/v1/users/1/relation-counts?user=2").await.problem(400, "invalid_query");
        assert_eq!((counts(client, 1).await, counts(client, 2).await), ((0, 0, 0), (0, 0, 0)));
        node.stop().await;
    }

    async fn the_limit_on_following_is_exact(world: World) {
        let mut nodes = vec![world.node_with(&["--max-following", "5"]).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&["--max-following", "5"]).await);
        }
        let tries = (10..40).map(|target| {
            let request = nodes[target % nodes.len()].client.request(Method::PUT, &format!("/v1/users/1/following/{target}"));
            Client::send(request)
        });
        let replies = futures_util::future::join_all(tries).await;
        let (followed, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
        assert_eq!((followed.len(), refused.len()), (5, 25));
        let client = &nodes[0].client;
        for reply in refused {
            reply.problem(409, "following_limit");
        }
        let mine = list(client, 1, "following").await;
        assert_eq!((mine.len(), counts(client, 1).await), (5, (5, 0, 0)));
        client.follow(1, mine[0]).await;
        client.unfollow(1, mine[0]).await;
        client.follow(1, 99).await;
        Client::send(client.request(Method::PUT, "/v1/users/1/following/100")).await.problem(409, "following_limit");
        client.follow(99, 1).await;
        Node::stop_all(nodes).await;
    }

    async fn lists_are_newest_first_also_within_a_millisecond(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for (user, later_ms) in [(30, 0), (10, 5), (20, 0), (40, 0), (5, 1)] {
            at.fetch_add(later_ms, Ordering::SeqCst);
            client.follow(user, 1).await;
            client.follow(1, user).await;
        }
        for name in ["followers", "following"] {
            assert_eq!(list(client, 1, name).await, [5, 40, 20, 10, 30]);
            for limit in 1..=6 {
                let items = client.walk(&format!("/v1/users/1/{name}"), limit).await;
                assert_eq!(items.len(), 5, "{limit} a page");
                let mut first = json!({"user_id": "5", "since": "2027-01-15T08:00:00.006Z", "mutual": true, "secret": false});
                if name == "following" {
                    first["special"] = json!(false);
                }
                assert_eq!(items[0], first);
            }
        }
        node.stop().await;
    }

    async fn pages_neither_repeat_nor_skip_what_stays(world: World) {
        let at = Arc::new(AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &[]).await;
        let client = &node.client;
        for user in 101..=130 {
            at.fetch_add(i64::from(user % 3 == 0), Ordering::SeqCst);
            client.follow(user, 1).await;
        }
        let before = list(client, 1, "followers").await;
        let first = client.get("/v1/users/1/followers?limit=10").await;
        let next = first.body["next_cursor"].as_str().unwrap().to_owned();
        assert_eq!(first.header("link"), format!("</v1/users/1/followers?limit=10&cursor={next}>; rel=\"next\""));
        let shown: Vec<i64> = first.body["items"].as_array().unwrap().iter().map(|item| item["user_id"].as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(shown, before[..10]);
        // The entry that the cursor names goes, one that was shown, one that was not, and new ones
        // come.
        for gone in [before[9], before[2], before[15]] {
            client.unfollow(gone, 1).await;
        }
        for new in 201..=205 {
            client.follow(new, 1).await;
        }
        let mut rest = Vec::new();
        let mut cursor = Some(next);
        while let Some(at) = cursor {
            let page = client.get(&format!("/v1/users/1/followers?cursor={at}&limit=4")).await;
            rest.extend(page.body["items"].as_array().unwrap().iter().map(|item| item["user_id"].as_str().unwrap().parse::<i64>().unwrap()));
            cursor = page.body["next_cursor"].as_str().map(str::to_owned);
            assert_eq!(page.header("link").is_empty(), cursor.is_none());
        }
        let stayed: Vec<i64> = before[10..].iter().copied().filter(|user| *user != before[15]).collect();
        assert_eq!(rest, stayed);
        node.stop().await;
    }

    async fn a_page_has_bounds_and_a_cursor_is_checked(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for user in 2..=25 {
            client.follow(user, 1).await;
        }
        let page = client.get("/v1/users/1/followers").await;
        assert_eq!((page.body["items"].as_array().unwrap().len(), page.header("cache-control")), (20, "private, no-cache"));
        assert_eq!(client.get("/v1/users/1/followers?limit=100").await.body["next_cursor"], Value::Null);
        assert_eq!(client.get("/v1/users/1/followers?limit=24").await.body["next_cursor"], Value::Null, "a full last page is the last");
        for (query, pointer) in [("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), ("limt=5", "limt"), ("limit=-1", "limit")] {
            assert_eq!(client.get(&format!("/v1/users/1/followers?{query}")).await.pointers(400, "invalid_query"), [pointer]);
        }
        let good = page.body["next_cursor"].as_str().unwrap();
        for bad in ["", "x", good.split_at(1).1, &format!("{good}0"), &good.replacen('2', "9", 1)] {
            client.get(&format!("/v1/users/1/followers?cursor={bad}")).await.problem(400, "invalid_cursor");
        }
        for other in ["users/1/following", "users/1/mutuals", "users/2/followers", "users/1/directs", "users/1/groups", "broadcasts/news"] {
            let problem = client.get(&format!("/v1/{other}?cursor={good}")).await.problem(400, "invalid_cursor");
            assert_eq!(problem["errors"][0]["detail"], "is not a cursor of this list");
        }
        assert_eq!(client.get(&format!("/v1/users/1/followers?cursor={good}")).await.status, 200);
        node.stop().await;
    }

    async fn look_ups_answer_in_the_order_asked(world: World) {
        let node = world.node().await;
        let client = &node.client;
        for (follower, followee) in [(1, 2), (1, 3), (3, 1), (4, 1), (5, 6)] {
            client.follow(follower, followee).await;
        }
        let shown = client.get("/v1/users/1/relations?ids=5,3,1,2,4").await.ok();
        let brief = |item: &Value| {
            let is = |name: &str| item[name].as_bool().unwrap();
            assert!(!is("secret") && !is("special") && !is("blocking"));
            (item["user_id"].as_str().unwrap().to_owned(), is("following"), is("followed_by"), is("mutual"))
        };
        let shown: Vec<_> = shown["items"].as_array().unwrap().iter().map(brief).collect();
        let expected = [("5", false, false, false), ("3", true, true, true), ("1", false, false, false), ("2", true, false, false), ("4", false, true, false)];
        assert_eq!(shown, expected.map(|(id, following, followed_by, mutual)| (id.to_owned(), following, followed_by, mutual)));
        let twice = client.get("/v1/users/1/relations?ids=2,2").await.ok();
        assert_eq!(twice["items"][0], twice["items"][1], "as often as asked");
        let ids = |ids: std::ops::RangeInclusive<i64>| ids.map(|id| id.to_string()).collect::<Vec<_>>().join(",");
        let many = client.get(&format!("/v1/users/1/relations?ids={}", ids(1..=100))).await.ok();
        assert_eq!(many["items"].as_array().unwrap().len(), 100);
        for bad in ["", "?ids=", "?ids=1,,2", "?ids=0", "?ids=1,2,", "?id=1", &format!("?ids={}", ids(1..=101))] {
            client.get(&format!("/v1/users/1/relations{bad}")).await.problem(400, "invalid_query");
        }
        node.stop().await;
    }

    async fn a_user_acts_for_itself_and_sees_the_lists_of_all(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (alice, bob, service) = (node.user(1), node.user(2), node.service());
        Client::send(alice.request(Method::PUT, "/v1/users/me/following/2")).await.ok();
        service.follow(1, 3).await;
        Client::send(bob.request(Method::PUT, "/v1/users/1/following/9")).await.problem(403, "forbidden");
        bob.delete("/v1/users/1/following/2").await.problem(403, "forbidden");
        bob.get("/v1/users/1/relations?ids=2").await.problem(403, "forbidden");
        for client in [&alice, &bob, &service] {
            assert_eq!((list(client, 1, "following").await, list(client, 2, "followers").await), (vec![3, 2], vec![1]));
            assert_eq!(counts(client, 1).await, (2, 0, 0));
        }
        assert_eq!(alice.get("/v1/users/me/following").await.ok(), service.get("/v1/users/1/following").await.ok());
        assert_eq!(bob.get("/v1/users/me/relation-counts").await.ok()["followers"], 1);
        assert_eq!(bob.get("/v1/users/me/relations?ids=1").await.ok()["items"][0]["followed_by"], true);
        for path in ["following", "followers", "relation-counts", "relations?ids=2"] {
            node.client.get(&format!("/v1/users/1/{path}")).await.problem(401, "unauthorized");
            service.get(&format!("/v1/users/me/{path}")).await.problem(403, "forbidden");
        }
        let link = alice.get("/v1/users/me/following?limit=1").await;
        assert!(link.header("link").starts_with("</v1/users/me/following?limit=1&cursor="), "{}", link.header("link"));
        node.stop().await;
    }

    async fn a_new_follower_raises_the_badge_that_was_set(world: World) {
        let node = world.node().await;
        node.client.follow(1, 2).await;
        assert_eq!(node.client.summary(2).await["counters"], json!({}), "none is set");
        node.stop().await;
        let node = world.node_with(&["--follower-badge", "fans"]).await;
        let client = &node.client;
        client.follow(1, 2).await;
        assert_eq!(client.summary(2).await["counters"], json!({}), "not a new one");
        for follower in 11..=13 {
            client.follow(follower, 2).await;
            client.follow(follower, 2).await;
        }
        client.unfollow(12, 2).await;
        let summary = client.summary(2).await;
        assert_eq!((&summary["counters"], &summary["revision"]), (&json!({"fans": {"unread": 2, "head": 3}}), &json!(5)), "unfollowing takes it back");
        client.post("/v1/users/2/badges/fans/reset", &json!({"up_to": 2})).await.ok();
        client.follow(12, 2).await;
        assert_eq!(client.summary(2).await["counters"]["fans"]["unread"], 2);

        let items: Vec<_> = (0..100).map(|n| json!({"user_id": 3, "badge": format!("b{n}")})).collect();
        client.post("/v1/badges/increment", &json!({ "items": items })).await.ok();
        client.follow(1, 3).await;
        assert_eq!((client.summary(3).await["total"].as_i64(), counts(client, 3).await), (Some(100), (0, 1, 0)), "a full summary keeps nobody from following");
        node.stop().await;
    }

    async fn the_badge_counts_each_present_follower_gained_since_it_was_read(world: World) {
        let args = ["--follower-badge", "fans"];
        let mut nodes = vec![world.node_with(&args).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&args).await);
        }
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        let unread = async || {
            let shown = last.summary(2).await;
            let explained = first.get("/v1/users/2/badges/explain").await.ok();
            assert_eq!((&explained["counters"]["fans"]["unread"], &explained["total"]), (&shown["counters"]["fans"]["unread"], &shown["total"]));
            shown["counters"]["fans"]["unread"].as_i64().unwrap()
        };
        for _ in 0..3 {
            first.follow(11, 2).await;
            assert_eq!(unread().await, 1, "following again does not raise it twice");
            last.unfollow(11, 2).await;
            assert_eq!(unread().await, 0, "unfollowing takes it back");
        }
        for fan in 11..=16 {
            first.follow(fan, 2).await;
        }
        // No matter who ends the follow, and how.
        last.delete("/v1/users/2/followers/11").await;
        assert_eq!(unread().await, 5);
        Client::send(first.request(Method::PUT, "/v1/users/2/blocks/12")).await.ok();
        Client::send(last.request(Method::PUT, "/v1/users/13/blocks/2")).await.ok();
        assert_eq!(unread().await, 3);
        let reply = Client::send(first.request(Method::DELETE, "/v1/users/14/following/2").header("prefer", "respond-async")).await;
        crate::features::operations::outcome(last, reply.header("location")).await;
        assert_eq!(unread().await, 2);
        let head = first.summary(2).await["counters"]["fans"]["head"].clone();
        first.follow(17, 2).await;
        last.post("/v1/users/2/badges/fans/reset", &json!({"up_to": head})).await.ok();
        assert_eq!(unread().await, 1, "the one who came after what was shown");
        first.unfollow(15, 2).await;
        assert_eq!(unread().await, 1, "one that was read is no longer there to be taken back");
        first.follow(15, 2).await;
        assert_eq!(unread().await, 2, "gained since");
        let mut found = Vec::new();
        let recount = headmark::maintenance::recount::Recount { user: None, dry_run: true };
        recount.run(&nodes[0].app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
        assert_eq!(found, Vec::<String>::new());
        Node::stop_all(nodes).await;
        // What another badge had raised is not taken from this one.
        let node = world.node_with(&["--follower-badge", "others"]).await;
        node.client.follow(18, 2).await;
        node.client.unfollow(15, 2).await;
        assert_eq!(node.client.summary(2).await["counters"]["others"]["unread"], 1);
        node.stop().await;
    }

    async fn a_waiting_poll_wakes_for_a_new_follower(world: World) {
        let nodes = {
            let mut nodes = vec![world.node_with(&["--follower-badge", "fans"]).await];
            if world.tier == Tier::Server {
                nodes.push(world.node_with(&["--follower-badge", "fans"]).await);
            }
            nodes
        };
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        let tag = last.get("/v1/users/2/badges").await.header("etag").to_owned();
        let waiting = last.request(Method::GET, "/v1/users/2/badges?wait=30").header("if-none-match", tag);
        let poll = tokio::spawn(Client::send(waiting));
        crate::support::eventually("the poll waits", async || last.metric("headmark_polls_waiting").await == 1.0).await;
        first.follow(1, 2).await;
        let told = poll.await.unwrap().ok();
        assert_eq!(told["counters"]["fans"]["unread"], 1);
        Node::stop_all(nodes).await;
    }
}
