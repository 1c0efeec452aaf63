//! Follows that the other user approves, over HTTP, as the contract has them.

use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Hand, Node, Reply, eventually};

/// With the badges that new followers and new requests raise.
const BADGES: [&str; 4] = ["--follower-badge", "fans", "--request-badge", "asks"];

async fn approve(client: &Client, user: i64, approves: bool) {
    let settings = json!({"approve_follows": approves});
    Client::send(client.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&settings)).await.ok();
}

async fn accept(client: &Client, user: i64, fan: i64) -> Reply {
    Client::send(client.request(Method::PUT, &format!("/v1/users/{user}/follow-requests/{fan}"))).await
}

async fn refuse(client: &Client, user: i64, fan: i64) -> Reply {
    client.delete(&format!("/v1/users/{user}/follow-requests/{fan}")).await
}

async fn block(client: &Client, user: i64, target: i64) {
    Client::send(client.request(Method::PUT, &format!("/v1/users/{user}/blocks/{target}"))).await.ok();
}

async fn list(client: &Client, user: i64, name: &str) -> Vec<i64> {
    let items = client.walk(&format!("/v1/users/{user}/{name}"), 2).await;
    items.iter().map(|item| item["user_id"].as_str().unwrap().parse().unwrap()).collect()
}

async fn relation(client: &Client, user: i64, other: i64) -> Value {
    client.get(&format!("/v1/users/{user}/relations?ids={other}")).await.ok()["items"][0].clone()
}

/// How many follow the user, have asked to, and were asked by the user.
async fn counts(client: &Client, user: i64) -> [i64; 3] {
    let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.ok();
    ["followers", "requests", "requests_sent"].map(|name| counts[name].as_i64().unwrap())
}

/// What the badges of new followers and new requests show.
async fn badges(client: &Client, user: i64) -> [i64; 2] {
    let summary = client.summary(user).await;
    ["fans", "asks"].map(|name| summary["counters"][name]["unread"].as_i64().unwrap_or(0))
}

both_tiers! {
    async fn a_follow_waits_until_it_is_accepted(world: World) {
        let nodes = world.nodes().await;
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        approve(client, 2, true).await;
        let asked = other.follow(1, 2).await;
        assert_eq!(asked, json!({"user_id": "2", "following": false, "requested": true, "secret": false, "special": false, "followed_by": false, "mutual": false, "blocking": false, "muting": false, "revision": 2}));
        for node in &nodes {
            let shown = relation(&node.client, 1, 2).await;
            assert_eq!((shown["requested"].clone(), shown["following"].clone()), (json!(true), json!(false)));
            assert_eq!(relation(&node.client, 2, 1).await["followed_by"], false);
            let query = node.client.post("/v1/relations/query", &json!({"pairs": [{"user_id": 1, "target_id": 2}]})).await.ok();
            assert_eq!(query["items"][0]["requested"], true);
            for (user, name) in [(1, "following"), (2, "followers"), (1, "special"), (1, "mutuals")] {
                assert!(list(&node.client, user, name).await.is_empty(), "{name}");
            }
            assert_eq!(node.client.get("/v1/users/1/following/ids").await.ok()["ids"], json!([]));
            assert_eq!((list(&node.client, 2, "follow-requests").await, list(&node.client, 1, "follow-requests/sent").await), (vec![1], vec![2]));
            assert_eq!((counts(&node.client, 1).await, counts(&node.client, 2).await), ([0, 0, 1], [0, 1, 0]));
        }
        // Asking again changes what it names.
        Client::send(client.request(Method::PUT, "/v1/users/1/following/2").json(&json!({"special": true}))).await.ok();
        let accepted = accept(other, 2, 1).await.ok();
        assert_eq!(accepted, json!({"user_id": "1", "following": false, "requested": false, "secret": false, "special": false, "followed_by": true, "mutual": false, "blocking": false, "muting": false, "revision": 2}));
        accept(client, 2, 1).await.problem(404, "not_found");
        for node in &nodes {
            let seen = relation(&node.client, 1, 2).await;
            assert_eq!((&seen["following"], &seen["requested"], &seen["special"]), (&json!(true), &json!(false), &json!(true)));
            assert_eq!((list(&node.client, 2, "followers").await, list(&node.client, 1, "special").await), (vec![1], vec![2]));
            assert!(list(&node.client, 2, "follow-requests").await.is_empty() && list(&node.client, 1, "follow-requests/sent").await.is_empty());
            assert_eq!((counts(&node.client, 1).await, counts(&node.client, 2).await), ([0, 0, 0], [1, 0, 0]));
        }
        // Who follows already keeps that.
        assert_eq!(client.follow(1, 2).await["following"], true);
        Node::stop_all(nodes).await;
    }

    async fn a_request_ends_in_every_way(world: World) {
        let node = world.node_with(&BADGES).await;
        let client = &node.client;
        approve(client, 2, true).await;
        for fan in 3..=8 {
            client.follow(fan, 2).await;
        }
        assert_eq!((badges(client, 2).await, counts(client, 2).await), ([0, 6], [0, 6, 0]));
        assert_eq!(refuse(client, 2, 3).await.status, 204);
        assert_eq!(refuse(client, 2, 3).await.status, 204, "also where there is none");
        client.unfollow(4, 2).await;
        block(client, 2, 5).await;
        block(client, 6, 2).await;
        accept(client, 2, 7).await.ok();
        assert_eq!((badges(client, 2).await, counts(client, 2).await), ([1, 1], [1, 1, 0]));
        for fan in 3..=7 {
            let seen = relation(client, fan, 2).await;
            assert_eq!((&seen["requested"], seen["following"] == true), (&json!(false), fan == 7), "{fan}");
            assert_eq!(counts(client, fan).await[2], 0);
        }
        client.delete("/v1/users/2/followers/8").await;
        assert_eq!(counts(client, 2).await, [1, 1, 0], "one who has asked is no follower");
        client.post("/v1/users/2/badges/asks/reset", &json!({})).await.ok();
        client.unfollow(8, 2).await;
        assert_eq!(badges(client, 2).await, [1, 0], "what was read is not taken back again");
        client.follow(8, 2).await;
        assert_eq!(badges(client, 2).await, [1, 1]);
        client.put("/v1/users/8/following/2", &json!({"visibility": "secret"})).await.ok();
        assert_eq!(badges(client, 2).await, [1, 1], "the same request");
        node.stop().await;
    }

    async fn a_secret_follow_is_requested_and_stays_secret(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (service, me, star, stranger) = (node.service(), node.user(1), node.user(2), node.user(3));
        approve(&star, 2, true).await;
        let asked = me.put("/v1/users/me/following/2", &json!({"visibility": "secret"})).await.ok();
        assert_eq!((&asked["requested"], &asked["following"], &asked["secret"]), (&json!(true), &json!(false), &json!(true)));
        let entry = star.get("/v1/users/me/follow-requests").await.ok()["items"][0].clone();
        let fields: Vec<_> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((&entry["user_id"], fields), (&json!("1"), vec!["since", "user_id"]), "no more than the contract has");
        accept(&star, 2, 1).await.ok();
        assert_eq!(relation(&me, 1, 2).await["secret"], true);
        assert_eq!(service.get("/v1/users/1/following?visibility=secret").await.ok()["items"][0]["user_id"], "2");
        assert_eq!(stranger.get("/v1/users/1/following").await.ok()["items"], json!([]));
        assert_eq!(stranger.get("/v1/users/2/followers").await.ok()["items"], json!([]));
        node.stop().await;
    }

    async fn only_the_two_see_and_answer_a_request(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let (me, star, stranger) = (node.user(1), node.user(2), node.user(3));
        approve(&star, 2, true).await;
        me.put("/v1/users/me/following/2", &json!({})).await.ok();
        for name in ["follow-requests", "follow-requests/sent"] {
            for user in [1, 2] {
                stranger.get(&format!("/v1/users/{user}/{name}")).await.problem(403, "forbidden");
            }
        }
        me.get("/v1/users/2/follow-requests").await.problem(403, "forbidden");
        for asking in [&me, &stranger] {
            accept(asking, 2, 1).await.problem(403, "forbidden");
            refuse(asking, 2, 1).await.problem(403, "forbidden");
        }
        accept(&me, 1, 2).await.problem(404, "not_found");
        accept(&star, 2, 2).await.problem(422, "self_relation");
        Client::send(star.request(Method::PUT, "/v1/users/me/follow-requests/1").json(&json!({"how": "so"}))).await.problem(422, "invalid_body");
        star.get("/v1/users/me/follow-requests?limit=0").await.problem(400, "invalid_query");
        star.get("/v1/users/me/follow-requests?cursor=zz").await.problem(400, "invalid_cursor");
        // A cursor of one list is none of the other.
        node.user(4).put("/v1/users/me/following/2", &json!({})).await.ok();
        let cursor = star.get("/v1/users/me/follow-requests?limit=1").await.ok()["next_cursor"].as_str().unwrap().to_owned();
        star.get(&format!("/v1/users/me/follow-requests/sent?limit=1&cursor={cursor}")).await.problem(400, "invalid_cursor");
        for other in [&stranger, &me] {
            let counts = other.get("/v1/users/2/relation-counts").await.ok();
            assert_eq!(counts, json!({"following": 0, "followers": 0, "mutuals": 0}), "strangers are told no more");
        }
        node.stop().await;
    }

    async fn requests_count_towards_the_limit_of_the_one_who_asks(world: World) {
        let node = world.node_with(&["--max-following", "3"]).await;
        let client = &node.client;
        for star in [10, 11] {
            approve(client, star, true).await;
            client.follow(1, star).await;
        }
        client.follow(1, 12).await;
        let follow = async |followee: i64| client.put(&format!("/v1/users/1/following/{followee}"), &json!({})).await;
        for full in [13, 14] {
            approve(client, 14, true).await;
            follow(full).await.problem(409, "following_limit");
        }
        follow(10).await.ok();
        accept(client, 10, 1).await.ok();
        client.unfollow(1, 11).await;
        client.follow(1, 13).await;
        node.stop().await;

        // Imports may go beyond the limit; then accepting would, too.
        let node = world.node_with(&["--max-following", "2"]).await;
        let client = &node.client;
        client.unfollow(1, 10).await;
        client.unfollow(1, 12).await;
        follow_when_asked(client, 1, 14).await;
        node.stop().await;
        let imported = crate::maintenance::import::import(&world, "follower,followee\n1,20\n1,21\n", &[]).await;
        assert_eq!(imported.told("followed"), 2);
        let node = world.node_with(&["--max-following", "2"]).await;
        let client = &node.client;
        let refused = accept(client, 14, 1).await.problem(409, "following_limit");
        assert!(refused["detail"].as_str().unwrap().contains("User 1 "), "{refused}");
        assert_eq!(list(client, 14, "follow-requests").await, [1], "it stays");
        approve(client, 14, false).await;
        eventually("it is dropped", async || counts(client, 14).await == [0, 0, 0]).await;
        assert_eq!(relation(client, 1, 14).await["following"], false);
        node.stop().await;
    }

    async fn switching_off_accepts_all_that_is_open(world: World) {
        const FANS: i64 = 230;
        let args = [BADGES.as_slice(), &["--max-following", "1"]].concat();
        let mut nodes = vec![world.node_with(&args).await];
        if world.tier == crate::support::Tier::Server {
            nodes.push(world.node_with(&args).await);
        }
        let (client, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        approve(client, 1, true).await;
        let ask = async |fan: i64| {
            let body = json!({"visibility": if fan == 2 { "secret" } else { "public" }});
            client.put(&format!("/v1/users/{fan}/following/1"), &body).await
        };
        let fans = futures_util::future::join_all((2..2 + FANS).map(ask)).await;
        fans.into_iter().for_each(|reply| assert_eq!(reply.ok()["requested"], true));
        assert_eq!((counts(client, 1).await, badges(client, 1).await), ([0, FANS, 0], [0, FANS]));
        approve(other, 1, false).await;
        eventually("all are accepted", async || counts(other, 1).await == [FANS, 0, 0]).await;
        for node in &nodes {
            assert_eq!(badges(&node.client, 1).await, [FANS, 0]);
            assert!(list(&node.client, 1, "follow-requests").await.is_empty());
            assert_eq!(relation(&node.client, 2, 1).await["secret"], true);
        }
        assert_eq!(list(client, 1, "followers").await.len(), usize::try_from(FANS).unwrap());
        assert_eq!(client.follow(900, 1).await["following"], true, "nobody is asked any more");
        // Switched on again before anything was accepted, requests stay.
        approve(client, 1, true).await;
        assert_eq!(client.follow(901, 1).await["requested"], true);
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(counts(client, 1).await, [FANS + 1, 1, 0], "and are not accepted by themselves");
        Node::stop_all(nodes).await;
    }

    async fn switching_off_ends_where_only_one_side_of_a_request_is_there(world: World) {
        let node = world.node().await;
        let client = &node.client;
        approve(client, 2, true).await;
        client.follow(1, 2).await;
        let mut hand = Hand::on(&world).await;
        hand.run("insert into follow_requests (followee_id, since, follower_id) values (2, 1, 9)").await;
        approve(client, 2, false).await;
        let mut left = async |table: &str| hand.text(&format!("select cast(count(*) as text) from {table}")).await;
        eventually("it is over", async || left("approval_ends").await == "0").await;
        assert_eq!((left("follow_requests").await, left("sent_requests").await), ("0".to_owned(), "0".to_owned()));
        assert_eq!(list(client, 2, "followers").await, [1]);
        node.stop().await;
    }

    async fn requests_are_in_events_and_may_be_answered_later(world: World) {
        let node = world.node().await;
        let client = &node.client;
        approve(client, 2, true).await;
        let later = async |method: Method, path: &str| {
            let reply = Client::send(client.request(method, path).header("prefer", "respond-async")).await;
            assert_eq!(reply.status, 202, "{}", reply.text);
            crate::features::operations::outcome(client, reply.header("location")).await
        };
        let asked = later(Method::PUT, "/v1/users/1/following/2").await;
        assert_eq!(asked["answer"]["body"]["requested"], true);
        let accepted = later(Method::PUT, "/v1/users/2/follow-requests/1").await;
        assert_eq!(accepted["answer"]["body"]["followed_by"], true);
        assert_eq!(later(Method::PUT, "/v1/users/2/follow-requests/1").await["problem"]["status"], 404);
        client.unfollow(1, 2).await;
        client.follow(1, 2).await;
        assert_eq!(later(Method::DELETE, "/v1/users/2/follow-requests/1").await["answer"]["status"], 204);
        let expected = [(false, true), (true, false), (false, false), (false, true), (false, false)];
        eventually("they are told", async || {
            let events = client.get("/v1/events?after=0&limit=100").await.ok();
            let told = events["items"].as_array().unwrap().iter().map(|event| (event["data"]["following"] == true, event["data"]["requested"] == true));
            told.eq(expected)
        })
        .await;
        node.stop().await;
    }

    async fn a_feed_knows_no_request(world: World) {
        let node = world.node().await;
        let client = &node.client;
        client.summary(1).await;
        approve(client, 2, true).await;
        client.follow(1, 2).await;
        client.put("/v1/users/2/posts/p1", &json!({})).await.ok();
        assert_eq!(client.summary(1).await["feed"]["unread"], 0);
        accept(client, 2, 1).await.ok();
        assert_eq!(client.summary(1).await["feed"]["unread"], 0, "a follow begins when it is accepted");
        client.put("/v1/users/2/posts/p2", &json!({})).await.ok();
        assert_eq!(client.summary(1).await["feed"]["unread"], 1);
        node.stop().await;
    }
}

/// A request to a user who approves follows.
async fn follow_when_asked(client: &Client, user: i64, star: i64) {
    assert_eq!(client.follow(user, star).await["requested"], true);
}
