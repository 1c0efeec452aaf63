//! Familiar followers: whom a user follows that follow somebody else, over HTTP, as the contract has
//! it, and against a naive model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::features::erasure::erase;
use crate::support::{CREDENTIALS, Client, Dice, Hand, Node, Pause, Tier, World, eventually};

async fn nodes(world: &World) -> Vec<Node> {
    let mut nodes = vec![world.node_with(&CREDENTIALS).await];
    if world.tier == Tier::Server {
        nodes.push(world.node_with(&CREDENTIALS).await);
    }
    nodes
}

async fn show(service: &Client, user: i64, lists: &str) {
    let settings = json!({"lists": lists});
    Client::send(service.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&settings)).await.ok();
}

async fn familiar(client: &Client, user: i64, others: &[i64]) -> Vec<Value> {
    let ids = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let body = client.get(&format!("/v1/users/{user}/familiar?ids={ids}")).await.ok();
    body["items"].as_array().unwrap().clone()
}

/// The sample about one other, which is everybody there is.
async fn sample(client: &Client, user: i64, other: i64) -> Vec<i64> {
    let item = familiar(client, user, &[other]).await[0].clone();
    let sample: Vec<i64> = item["sample"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(item, json!({"user_id": other.to_string(), "count": sample.len(), "capped": false, "sample": item["sample"]}));
    sample
}

both_tiers! {
    /// The rows of an erased user go bit by bit. Those that are left show nothing that was hidden before, nor the user.
    async fn an_erased_user_is_no_familiar_one(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        for (followee, lists) in [(2, "self"), (3, "followers"), (4, "all")] {
            service.follow(1, followee).await;
            service.follow(followee, 20).await;
            show(&service, followee, lists).await;
        }
        let me = node.user(1);
        assert_eq!(sample(&me, 1, 20).await, [4, 3]);
        for (user, left) in [(2, &[4, 3][..]), (4, &[3]), (3, &[])] {
            let pause = Pause::at("removal::before_relations");
            erase(&service, user).await;
            pause.reached().await;
            let shown = sample(&me, 1, 20).await;
            pause.go_on().await;
            assert_eq!(shown, left);
        }
        node.stop().await;
    }

    async fn of_those_whom_the_user_follows_it_names_the_newest(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        for followee in [2, 3, 4, 5, 6] {
            service.follow(1, followee).await;
            // In the order of the list, whatever the clock says.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for follower in [2, 3, 4, 5, 8] {
            service.follow(follower, 7).await;
        }
        service.follow(3, 9).await;
        let me = node.user(1);
        let reply = me.get("/v1/users/me/familiar?ids=7,9,10,7").await;
        assert_eq!((reply.header("cache-control"), reply.header("etag")), ("private, no-cache", ""));
        let seven = json!({"user_id": "7", "count": 4, "capped": false, "sample": ["5", "4", "3"]});
        let nine = json!({"user_id": "9", "count": 1, "capped": false, "sample": ["3"]});
        let ten = json!({"user_id": "10", "count": 0, "capped": false, "sample": []});
        assert_eq!(reply.ok(), json!({"items": [seven, nine, ten, seven]}));
        assert_eq!(familiar(&service, 1, &[7]).await, [seven], "a service sees the same");
        assert_eq!(familiar(&service, 11, &[7]).await[0]["count"], 0, "one who follows nobody");
        // Those who follow the user, and the user as a familiar follower.
        service.follow(4, 1).await;
        assert_eq!(sample(&me, 1, 1).await, [4]);
        node.user(2).get("/v1/users/1/familiar?ids=7").await.problem(403, "forbidden");
        let twenty = (1..=20).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
        me.get(&format!("/v1/users/1/familiar?ids={twenty}")).await.ok();
        for bad in ["?ids=", "?ids=0", "?ids=7,", "", &format!("?ids={twenty},21"), "?ids=7&limit=3"] {
            me.get(&format!("/v1/users/1/familiar{bad}")).await.problem(400, "invalid_query");
        }
        node.stop().await;
    }

    async fn only_the_newest_five_hundred_are_looked_at(world: World) {
        let node = world.node().await;
        let mut hand = Hand::on(&world).await;
        let numbers = "with recursive n (g) as (select 101 union all select g + 1 from n where g < 600)";
        hand.run(&format!("{numbers} insert into following (follower_id, followee_id, since) select 1, g, g from n")).await;
        hand.run(&format!("{numbers} insert into following (follower_id, followee_id, since) select g, 7, g from n")).await;
        let item = |capped, newest: [i64; 3]| json!({"user_id": "7", "count": 500, "capped": capped, "sample": newest.map(|id| id.to_string())});
        assert_eq!(familiar(&node.client, 1, &[7]).await, [item(false, [600, 599, 598])]);
        // A secret follow counts as none, and an older one is looked at no longer.
        node.client.put("/v1/users/1/following/700", &json!({"visibility": "secret"})).await.ok();
        assert_eq!(familiar(&node.client, 1, &[7]).await, [item(false, [600, 599, 598])]);
        node.client.follow(1, 701).await;
        let item = json!({"user_id": "7", "count": 499, "capped": true, "sample": ["600", "599", "598"]});
        assert_eq!(familiar(&node.client, 1, &[7]).await, [item]);
        node.stop().await;
    }

    /// What the user does shows at once on every node; what others do, at once where they do it, and
    /// within 2 s elsewhere.
    async fn what_is_hidden_is_hidden_at_once(world: World) {
        let nodes = nodes(&world).await;
        let service = nodes[0].service();
        let clients: Vec<_> = nodes.iter().map(|node| node.user(1)).collect();
        for followee in 2..=9 {
            service.follow(1, followee).await;
            service.follow(followee, 20).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let count = async |client: &Client| familiar(client, 1, &[20]).await[0]["count"].as_u64().unwrap();
        let mut left = 8;
        let mut shows = async |at_once: &[&Client], less: u64, what: &str| {
            left -= less;
            for client in at_once {
                assert_eq!(count(client).await, left, "{what}, at once");
            }
            let began = tokio::time::Instant::now();
            for client in &clients {
                eventually(what, async || count(client).await == left).await;
            }
            assert!(began.elapsed() < Duration::from_secs(2), "{what}: {:?}", began.elapsed());
        };
        let (here, everywhere) = (&[&clients[0]][..], clients.iter().collect::<Vec<_>>());
        shows(&everywhere, 0, "all of them").await;
        // What others do.
        service.put("/v1/users/2/following/20", &json!({"visibility": "secret"})).await.ok();
        shows(here, 1, "a follow becomes secret").await;
        show(&service, 3, "self").await;
        shows(here, 1, "a list is hidden").await;
        show(&service, 4, "followers").await;
        shows(here, 0, "the user is a follower").await;
        service.put("/v1/users/5/blocks/20", &json!({})).await.ok();
        shows(here, 1, "a block by the follower").await;
        service.put("/v1/users/20/blocks/6", &json!({})).await.ok();
        shows(here, 1, "a block by the followed").await;
        service.put("/v1/users/7/blocks/1", &json!({})).await.ok();
        shows(&everywhere, 1, "a block of the user").await;
        // What the user does.
        clients[0].put("/v1/users/1/following/8", &json!({"visibility": "secret"})).await.ok();
        shows(&everywhere, 1, "the user's follow becomes secret").await;
        clients[0].put("/v1/users/1/blocks/9", &json!({})).await.ok();
        shows(&everywhere, 1, "a block by the user").await;
        // These change nothing: a mute, a request, and a block between the user and the followed.
        clients[0].put("/v1/users/1/mutes/4", &json!({})).await.ok();
        clients[0].put("/v1/users/1/mutes/20", &json!({})).await.ok();
        service.put("/v1/users/20/blocks/1", &json!({})).await.ok();
        shows(&everywhere, 0, "mutes and a block that hide nothing of it").await;
        Client::send(service.request(Method::PATCH, "/v1/users/21/settings").json(&json!({"approve_follows": true}))).await.ok();
        service.follow(4, 21).await;
        for client in &clients {
            assert_eq!(sample(client, 1, 21).await, [0i64; 0], "a request is no follow");
            assert_eq!(sample(client, 1, 20).await, [4]);
        }
        Node::stop_all(nodes).await;
    }

    /// Random follows, blocks and settings, some in a row on each node, which shows after each what a
    /// walk through everybody's lists shows; then so do the others.
    async fn it_is_what_a_walk_through_the_lists_finds(world: World) {
        const USERS: i64 = 7;
        const IN_A_ROW: usize = 15;
        let nodes = nodes(&world).await;
        let mut dice = Dice::new(7);
        // By follower and followee: when it began, by its number, and whether it is secret.
        let mut follows: BTreeMap<(i64, i64), (usize, bool)> = BTreeMap::new();
        let (mut blocks, mut hides) = (BTreeSet::new(), BTreeSet::new());
        for step in 0..150 {
            let service = nodes[step / IN_A_ROW % nodes.len()].service();
            let user = 1 + i64::try_from(dice.roll(7)).unwrap();
            let other = 1 + (user + i64::try_from(dice.roll(6)).unwrap()) % USERS;
            match dice.roll(10) {
                0..6 => {
                    let secret = dice.roll(4) == 0;
                    let how = json!({"visibility": if secret { "secret" } else { "public" }});
                    let reply = service.put(&format!("/v1/users/{user}/following/{other}"), &how).await;
                    if blocks.contains(&(user, other)) || blocks.contains(&(other, user)) {
                        reply.problem(403, "blocked");
                    } else {
                        reply.ok();
                        // One that becomes public begins then.
                        let (since, was_secret) = follows.get(&(user, other)).copied().unwrap_or((step, secret));
                        follows.insert((user, other), (if was_secret && !secret { step } else { since }, secret));
                    }
                }
                6 => {
                    service.unfollow(user, other).await;
                    follows.remove(&(user, other));
                }
                7 => {
                    service.put(&format!("/v1/users/{user}/blocks/{other}"), &json!({})).await.ok();
                    blocks.insert((user, other));
                    [(user, other), (other, user)].iter().for_each(|pair| _ = follows.remove(pair));
                }
                8 => {
                    service.delete(&format!("/v1/users/{user}/blocks/{other}")).await;
                    blocks.remove(&(user, other));
                }
                _ => {
                    let lists = dice.pick(&["all", "followers", "self"]);
                    show(&service, user, lists).await;
                    if lists == "self" { hides.insert(user) } else { hides.remove(&user) };
                }
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            let others: Vec<i64> = (1..=USERS).collect();
            let expected = |me: i64| -> Vec<Value> {
                let mut mine: Vec<_> = follows.iter().filter(|((by, _), (_, secret))| *by == me && !secret).collect();
                mine.sort_by_key(|(_, (since, _))| std::cmp::Reverse(*since));
                let item = |other: &i64| {
                    let is_familiar = |followee: &i64| !hides.contains(followee) && follows.get(&(*followee, *other)).is_some_and(|(_, secret)| !secret);
                    let found: Vec<_> = mine.iter().map(|((_, followee), _)| *followee).filter(is_familiar).collect();
                    let sample: Vec<_> = found.iter().take(3).map(ToString::to_string).collect();
                    json!({"user_id": other.to_string(), "count": found.len(), "capped": false, "sample": sample})
                };
                others.iter().map(item).collect()
            };
            for me in 1..=USERS {
                assert_eq!(familiar(&service, me, &others).await, expected(me), "user {me} after step {step}");
            }
            if step % IN_A_ROW == IN_A_ROW - 1 {
                for node in &nodes {
                    let service = node.service();
                    for me in 1..=USERS {
                        eventually(&format!("user {me} after step {step}"), async || familiar(&service, me, &others).await == expected(me)).await;
                    }
                }
            }
        }
        Node::stop_all(nodes).await;
    }

    /// Three statements, whoever is asked about and however many: two lists, and the settings. None
    /// within a second of the last.
    async fn it_costs_four_statements(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        let statements = async || node.client.metric("headmark_database_statements_total").await;
        for followee in 2..=9 {
            service.follow(1, followee).await;
            service.follow(followee, 20).await;
        }
        let me = node.user(1);
        me.summary(1).await;
        let (mut cold, mut warm) = (f64::MAX, f64::MAX);
        for time in 0..6 {
            let others: Vec<i64> = (100 + 20 * time..).take(20).collect();
            let before = statements().await;
            familiar(&me, 1, &others).await;
            let between = statements().await;
            familiar(&me, 1, &others).await;
            (cold, warm) = (cold.min(between - before), warm.min(statements().await - between));
        }
        // What the node does by itself may fall into some of them.
        // One says whether any of the others was erased.
        assert_eq!((cold, warm), (4.0, 0.0));
        node.stop().await;
    }
}
