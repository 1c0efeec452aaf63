//! Asynchronous writes: durable when accepted, done once, in order, and told of.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Hand, JWT_SECRET, Node, Reply, Tier, World, eventually_within};

/// Asks for it to be done later.
async fn later(client: &Client, method: Method, path: &str) -> Reply {
    Client::send(client.request(method, path).header("prefer", "respond-async")).await
}

/// Where to ask what became of one that was accepted.
fn location(reply: &Reply) -> String {
    assert_eq!((reply.status.as_u16(), reply.header("preference-applied")), (202, "respond-async"), "{}", reply.text);
    assert_eq!(reply.body["status"], "pending");
    let location = reply.header("location").to_owned();
    assert_eq!(location, format!("/v1/operations/{}", reply.body["operation_id"].as_str().unwrap()));
    location
}

/// What became of it, once it is no longer pending.
pub async fn outcome(client: &Client, location: &str) -> Value {
    let mut told = Value::Null;
    eventually_within(20, "the operation is done", async || {
        told = client.get(location).await.ok();
        told["status"] != "pending"
    })
    .await;
    told
}

/// Waits until a node finds nothing pending.
pub async fn all_done(client: &Client) {
    eventually_within(60, "all are done", async || {
        client.get("/metrics").await.text.lines().any(|line| line == "headmark_operations_pending 0")
    })
    .await;
}

both_tiers! {
    async fn a_follow_is_accepted_and_then_done(world: World) {
        let node = world.node_with(&["--max-following", "2"]).await;
        let client = &node.client;
        let accepted = location(&later(client, Method::PUT, "/v1/users/1/following/2").await);
        let done = outcome(client, &accepted).await;
        let relation = json!({"user_id": "2", "following": true, "requested": false, "secret": false, "special": false, "followed_by": false, "mutual": false, "blocking": false, "muting": false, "revision": 2});
        assert_eq!((&done["status"], &done["answer"]), (&json!("done"), &json!({"status": 200, "body": relation})), "{done}");
        assert!(done["finished_at"].as_str() >= done["created_at"].as_str() && done.get("problem").is_none(), "{done}");
        assert_eq!(client.walk("/v1/users/1/following", 5).await.len(), 1);

        let removed = outcome(client, &location(&later(client, Method::DELETE, "/v1/users/2/followers/1").await)).await;
        assert_eq!(removed["answer"], json!({"status": 204}));
        let blocked = outcome(client, &location(&later(client, Method::PUT, "/v1/users/2/blocks/1").await)).await;
        assert_eq!(blocked["answer"]["body"]["blocking"], true);
        let refused = outcome(client, &location(&later(client, Method::PUT, "/v1/users/1/following/2").await)).await;
        assert_eq!((&refused["status"], &refused["problem"]["code"], &refused["problem"]["status"]), (&json!("failed"), &json!("blocked"), &json!(403)));
        assert_eq!(outcome(client, &location(&later(client, Method::DELETE, "/v1/users/2/blocks/1").await)).await["status"], "done");
        for target in [3, 4] {
            outcome(client, &location(&later(client, Method::PUT, &format!("/v1/users/1/following/{target}")).await)).await;
        }
        let over = outcome(client, &location(&later(client, Method::PUT, "/v1/users/1/following/5").await)).await;
        assert_eq!((&over["status"], &over["problem"]["code"]), (&json!("failed"), &json!("following_limit")));
        assert_eq!(client.get("/v1/users/1/relation-counts").await.ok()["following"], 2);
        node.stop().await;
    }

    async fn what_is_not_valid_is_refused_at_once(world: World) {
        let node = world.node().await;
        let client = &node.client;
        later(client, Method::PUT, "/v1/users/1/following/1").await.problem(422, "self_relation");
        later(client, Method::DELETE, "/v1/users/1/following/x").await.problem(400, "invalid_path");
        for (preference, status) in [("wait=10", 200), ("respond-async; foo=1, wait=10", 202), ("wait=5, Respond-Async", 202), ("", 200), ("respond-sync", 200)] {
            let reply = Client::send(client.request(Method::PUT, "/v1/users/1/following/2").header("prefer", preference)).await;
            assert_eq!(reply.status, status, "{preference}");
        }
        client.get("/v1/operations/1").await.problem(400, "invalid_path");
        for never in ["00000000000000000000000000000000", "0190163d8694739b3d5c2a7f00112233", "ffffffffffff00000000000000000000"] {
            client.get(&format!("/v1/operations/{never}")).await.problem(404, "not_found");
        }
        node.stop().await;
    }

    async fn only_who_made_it_may_ask(world: World) {
        let node = world.node_with(&["--service-keys", "web:s3cret-of-the-suite,app:t0psecret-of-the-suite", "--jwt-secret", JWT_SECRET]).await;
        let (alice, bob, web, app) =
            (node.user(1), node.user(2), node.service(), node.client.with_bearer("t0psecret-of-the-suite"));
        let hers = location(&later(&alice, Method::PUT, "/v1/users/me/following/2").await);
        let its = location(&later(&web, Method::PUT, "/v1/users/1/following/3").await);
        later(&bob, Method::PUT, "/v1/users/1/following/3").await.problem(403, "forbidden");
        assert_eq!((outcome(&alice, &hers).await["status"].clone(), outcome(&web, &its).await["status"].clone()), (json!("done"), json!("done")));
        for (client, other) in [(&bob, &hers), (&web, &hers), (&app, &its), (&alice, &its)] {
            client.get(other).await.problem(404, "not_found");
        }
        node.client.get(&hers).await.problem(401, "unauthorized");
        node.stop().await;
    }

    async fn a_write_goes_after_those_accepted_before_it(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        for round in 0..30_i64 {
            let (a, b) = (1 + 2 * round, 2 + 2 * round);
            let path = format!("/v1/users/{a}/following/{b}");
            location(&later(first, Method::PUT, &path).await);
            location(&later(last, Method::PUT, &format!("/v1/users/{b}/blocks/{a}")).await);
            location(&later(first, Method::DELETE, &format!("/v1/users/{b}/blocks/{a}")).await);
            location(&later(last, Method::PUT, &path).await);
            // The last word, by either side.
            if round % 2 == 0 {
                last.unfollow(a, b).await;
            } else {
                assert_eq!(last.delete(&format!("/v1/users/{b}/followers/{a}")).await.status, 204);
            }
            for client in [first, last] {
                let counts = client.get(&format!("/v1/users/{a}/relation-counts")).await.ok();
                assert_eq!(counts["following"], 0, "nothing comes after it");
            }
        }
        Node::stop_all(nodes).await;
    }

    /// Who is followed asynchronously without end still has a turn to block.
    async fn nobody_keeps_a_write_waiting_by_having_more_accepted(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        let has_ended = std::sync::atomic::AtomicBool::new(false);
        let pester = async |client: &Client, method: Method| {
            while !has_ended.load(std::sync::atomic::Ordering::Relaxed) {
                location(&later(client, method.clone(), "/v1/users/1/following/2").await);
            }
        };
        let pesters = (0..16).map(|n| pester(if n % 4 < 2 { first } else { last }, if n % 2 == 0 { Method::PUT } else { Method::DELETE }));
        let victim = async {
            for _ in 0..10 {
                assert_eq!(last.put("/v1/users/2/blocks/1", &json!({})).await.ok()["blocking"], true);
                assert_eq!(first.delete("/v1/users/2/blocks/1").await.status, 204);
                assert_eq!(first.put("/v1/users/2/mutes/1", &json!({})).await.ok()["muting"], true);
                assert_eq!(last.delete("/v1/users/2/mutes/1").await.status, 204);
            }
            last.put("/v1/users/2/blocks/1", &json!({})).await.ok();
            has_ended.store(true, std::sync::atomic::Ordering::Relaxed);
        };
        tokio::join!(futures_util::future::join_all(pesters), victim);
        all_done(first).await;
        let counts = first.get("/v1/users/1/relation-counts").await.ok();
        assert_eq!(counts["following"], 0, "the block has the last word");
        Node::stop_all(nodes).await;
    }

    async fn one_user_cannot_take_all_the_room(world: World) {
        let settings = ["--service-keys", "web:s3cret-of-the-suite", "--jwt-secret", JWT_SECRET];
        let bounds = ["--max-pending-operations", "40", "--max-pending-operations-per-user", "3"];
        let node = world.node_with(&[settings.as_slice(), &bounds].concat()).await;
        let (alice, bob) = (node.user(1), node.user(2));
        let paths = (0..200).map(|n| format!("/v1/users/me/following/{}", 10 + n)).collect::<Vec<_>>();
        let replies = futures_util::future::join_all(paths.iter().map(|path| later(&alice, Method::PUT, path))).await;
        let (accepted, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 202);
        assert!(accepted.len() >= 3 && !refused.is_empty(), "{} of 200 were accepted", accepted.len());
        for reply in refused {
            assert_eq!(reply.header("retry-after"), "1");
            reply.problem(429, "rate_limited");
        }
        location(&later(&bob, Method::PUT, "/v1/users/me/following/9").await);
        node.stop().await;
    }

    /// What is pending is counted seldom where that takes long.
    async fn what_is_done_makes_room_at_once(world: World) {
        let bounds = ["--max-pending-operations", "40", "--max-pending-operations-per-user", "3"];
        let node = world.node_with(&[["--jwt-secret", JWT_SECRET].as_slice(), &bounds].concat()).await;
        fail::cfg("operations::counting", "sleep(1000)").unwrap();
        let alice = node.user(1);
        for n in 0..12 {
            let accepted = location(&later(&alice, Method::PUT, &format!("/v1/users/me/following/{}", 10 + n)).await);
            assert_eq!(outcome(&alice, &accepted).await["status"], "done");
        }
        fail::remove("operations::counting");
        node.stop().await;
    }

    /// A node whose clock was a year ahead has accepted it, and died.
    async fn what_was_accepted_far_in_the_future_is_done(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let accepted = location(&later(client, Method::PUT, "/v1/users/1/following/2").await);
        assert_eq!(outcome(client, &accepted).await["status"], "done");
        let as_its = "update operations set status = 0, finished_at = 0, node_id = 1, created_at = created_at + 31536000000";
        Hand::on(&world).await.run(as_its).await;
        assert_eq!(outcome(client, &accepted).await["status"], "done");
        node.stop().await;
    }

    /// A newer version has accepted it, and its node is gone.
    async fn what_a_node_cannot_read_waits_for_a_newer_one(world: World) {
        let node = world.node().await;
        let client = &node.client;
        let accepted = location(&later(client, Method::PUT, "/v1/users/1/following/2").await);
        assert_eq!(outcome(client, &accepted).await["status"], "done");
        let statements = async || client.metric("headmark_database_statements_total").await;
        let sent_in_3_s = async || {
            let before = statements().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            statements().await - before
        };
        let quiet = sent_in_3_s().await;
        let as_of_newer = "update operations set status = 0, finished_at = 0, node_id = 1, created_at = 1, command = '{\"newer\":true}'";
        Hand::on(&world).await.run(as_of_newer).await;
        let sent = sent_in_3_s().await;
        assert!(sent < quiet + 60.0, "{sent} statements in 3 s, not {quiet}, for an operation that cannot be read");
        assert_eq!(client.get(&accepted).await.ok()["status"], "pending");
        let other = location(&later(client, Method::PUT, "/v1/users/3/following/4").await);
        assert_eq!(outcome(client, &other).await["status"], "done");
        node.stop().await;
    }

    /// A newer version has accepted more of them than one round looks at.
    async fn what_a_node_cannot_read_keeps_nothing_else_waiting(world: World) {
        let node = world.node().await;
        // Of many pairs, and of one.
        for (user, step) in [(10_000, 1), (50_000, 0)] {
            Hand::on(&world)
                .await
                .run(&format!("insert into operations
                        (operation_id, low_id, high_id, caller, command, node_id, status, created_at, finished_at, answer_status, answer)
                    with recursive of_newer (n) as (select 1 union all select n + 1 from of_newer where n < 10500)
                    select 'newer-{user}-' || n, {user} + n * {step}, 90000, 'open', '{{\"newer\":true}}', 1, 0, 1, 0, 0, '' from of_newer"))
                .await;
            for target in [2, 3] {
                let accepted = location(&later(&node.client, Method::PUT, &format!("/v1/users/1/following/{}", user + target)).await);
                assert_eq!(outcome(&node.client, &accepted).await["status"], "done");
            }
        }
        node.stop().await;
    }

    async fn a_burst_is_absorbed(world: World) {
        // A hundred times the average of a million changes a day is 1,160 a second.
        const CHANGES: i64 = 3500;
        let nodes = world.nodes().await;
        let accept = |n: i64| {
            let client = nodes[usize::try_from(n).unwrap() % nodes.len()].client.clone();
            async move { location(&later(&client, Method::PUT, &format!("/v1/users/{}/following/{}", 1 + n % 500, 1001 + n / 500)).await) }
        };
        let accepted: BTreeSet<String> = futures_util::stream::iter(0..CHANGES).map(accept).buffer_unordered(200).collect().await;
        assert_eq!(accepted.len(), 3500);
        let client = &nodes[0].client;
        eventually_within(60, "all are done", async || {
            let mut done = 0;
            for star in 1001..=1007 {
                done += client.get(&format!("/v1/users/{star}/relation-counts")).await.ok()["followers"].as_i64().unwrap();
            }
            done == CHANGES
        })
        .await;
        for location in accepted.iter().step_by(100) {
            assert_eq!(outcome(client, location).await["status"], "done");
        }
        Node::stop_all(nodes).await;
    }

    /// A minute's worth of a burst as fast as it goes, of all kinds of acts on a thousand pairs,
    /// and the node is killed in the middle of it. What was accepted is done once, in the order in
    /// which it was accepted for each pair, and tells the truth of it.
    async fn kill_a_node_in_a_burst_and_each_has_its_true_outcome(world: World) {
        const PAIRS: i64 = 1000;
        // Followed, then refused as a block is in the way, then not followed any more: each of
        // these is told by its own outcome.
        let acts = |a: i64, b: i64| {
            [
                (Method::PUT, format!("/v1/users/{a}/following/{b}"), 200),
                (Method::PUT, format!("/v1/users/{b}/blocks/{a}"), 200),
                (Method::PUT, format!("/v1/users/{a}/following/{b}"), 403),
                (Method::DELETE, format!("/v1/users/{b}/blocks/{a}"), 204),
                (Method::PUT, format!("/v1/users/{a}/following/{b}"), 200),
            ]
        };
        let other = if world.tier == Tier::Server { Some(world.node().await) } else { None };
        let mut process = world.process(&[], &[]).await;
        let clients: Vec<Client> = [process.client.clone()].into_iter().chain(other.iter().map(|node| node.client.clone())).collect();
        let accepted = std::sync::atomic::AtomicUsize::new(0);
        // The acts of a pair one after the other, until one is not answered: nobody knows whether
        // that one was accepted.
        let submit = |n: i64| {
            let (client, accepted) = (&clients[usize::try_from(n).unwrap() % clients.len()], &accepted);
            async move {
                let mut locations = Vec::new();
                for (method, path, status) in acts(10_000 + n, 20_000 + n) {
                    let sent = Client::try_send(client.request(method, &path).header("prefer", "respond-async")).await;
                    let Some(reply) = sent.ok().filter(|reply| reply.status == 202) else { return (n, locations, true) };
                    accepted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    locations.push((location(&reply), status));
                }
                (n, locations, false)
            }
        };
        let submitting = futures_util::stream::iter(0..PAIRS).map(submit).buffer_unordered(200).collect::<Vec<_>>();
        let killing = async {
            while accepted.load(std::sync::atomic::Ordering::SeqCst) < 1500 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            process.kill().await;
        };
        let (pairs, ()) = tokio::join!(submitting, killing);
        process = world.process(&[], &[]).await;
        let client = &process.client;
        all_done(client).await;
        let mut events = 0;
        for (n, locations, broken_off) in &pairs {
            for (location, status) in locations {
                let told = outcome(client, location).await;
                let came = if *status < 400 { &told["answer"]["status"] } else { &told["problem"]["status"] };
                assert_eq!(came, status, "{told}");
            }
            let (a, b) = (10_000 + n, 20_000 + n);
            let relation = client.get(&format!("/v1/users/{b}/relations?ids={a}")).await.ok()["items"][0].clone();
            let state = |done: usize| (matches!(done, 1 | 5), matches!(done, 2 | 3));
            let shown = (relation["followed_by"] == true, relation["blocking"] == true);
            // The one that was not answered may have been accepted too.
            let most = locations.len() + usize::from(*broken_off);
            assert!((locations.len()..=most).any(|done| state(done) == shown), "{} accepted, {relation}", locations.len());
            let done = (locations.len()..=most).find(|done| state(*done) == shown).unwrap();
            // A block tells of the follow that it severs too; what is refused tells of nothing.
            events += [0, 1, 3, 3, 4, 5][done];
        }
        let whole = pairs.iter().filter(|(_, locations, _)| locations.len() == 5).count();
        assert!(accepted.into_inner() >= 1500 && whole < pairs.len(), "it was killed in the middle: {whole}");
        let told = crate::features::events::all(client, events).await;
        assert_eq!((told.len(), client.get(&format!("/v1/events?after={events}")).await.ok()["items"].clone()), (events, json!([])), "each was applied once");
    }

    async fn what_became_of_it_is_kept_for_a_while(world: World) {
        let at = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(1_800_000_000_000));
        let node = world.node_at(&at, &["--operation-ttl-hours", "1"]).await;
        let accepted = location(&later(&node.client, Method::PUT, "/v1/users/1/following/2").await);
        outcome(&node.client, &accepted).await;
        at.fetch_add(3_700_000, std::sync::atomic::Ordering::SeqCst);
        let state = node.app.state();
        while headmark::features::operations::sweep(&state.db, &state.contexts.operations.operations.config, state.clock.now()).await.unwrap() > 0 {}
        node.client.get(&accepted).await.problem(410, "gone");
        node.stop().await;
    }

    /// The node is killed again and again while it accepts and does them. Each that was accepted is
    /// done, once.
    async fn kill_nodes_and_each_is_done_once(world: World) {
        const DEATHS: i64 = 3;
        let mut process = world.process(&[], &[]).await;
        let mut accepted: Vec<(i64, String)> = Vec::new();
        for death in 0..DEATHS {
            let client = process.client.clone();
            let answered = Cell::new(0);
            let accept = |n: i64| {
                let (client, answered) = (client.clone(), &answered);
                async move {
                    let path = format!("/v1/users/{}/following/{}", 1 + n, 5000 + death);
                    let sent = Client::try_send(client.request(Method::PUT, &path).header("prefer", "respond-async")).await;
                    answered.set(answered.get() + 1);
                    sent.ok().filter(|reply| reply.status == 202).map(|reply| (n, location(&reply)))
                }
            };
            let accepting = futures_util::stream::iter(0..400).map(accept).buffer_unordered(50).collect::<Vec<_>>();
            let killing = async {
                while answered.get() < 100 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                process.kill().await;
            };
            let (answers, ()) = tokio::join!(accepting, killing);
            accepted.extend(answers.into_iter().flatten().map(|(n, location)| (n * DEATHS + death, location)));
            process = world.process(&[], &[]).await;
        }
        assert!(!accepted.is_empty(), "some were accepted before the node died");
        for (_, location) in &accepted {
            assert_eq!(outcome(&process.client, location).await["status"], "done");
        }
        let mut followers = 0;
        for death in 0..DEATHS {
            followers += process.client.get(&format!("/v1/users/{}/relation-counts", 5000 + death)).await.ok()["followers"].as_i64().unwrap();
        }
        assert!(followers >= i64::try_from(accepted.len()).unwrap(), "{followers} of {}", accepted.len());
        let told = crate::features::events::all(&process.client, usize::try_from(followers).unwrap()).await;
        let pairs: BTreeSet<String> = told.iter().map(|event| format!("{} {}", event["data"]["user_id"], event["data"]["target_id"])).collect();
        assert_eq!(pairs.len(), told.len(), "an event for each, once");
        assert_eq!(process.client.get(&format!("/v1/events?after={followers}")).await.ok()["items"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_a_node_and_another_one_goes_on() {
    let world = World::new(Tier::Server).await;
    let other = world.node().await;
    for (at, step) in ["lane::after_begin_write", "lane::before_commit", "lane::after_commit", "lane::after_apply_write"].iter().enumerate()
    {
        let target = 10 + at;
        // It dies in the first batch after the one that accepted: the one that does it.
        let mut doomed = world.process(&[], &[("FAILPOINTS", &format!("{step}=2*off->return"))]).await;
        doomed.client.get(&format!("/v1/users/{target}/relations?ids=2")).await.ok();
        let accepted = location(&later(&doomed.client, Method::PUT, &format!("/v1/users/{target}/following/2")).await);
        assert!(!doomed.ended().await.success(), "{step}");
        assert_eq!(outcome(&other.client, &accepted).await["status"], "done", "{step}");
        assert_eq!(other.client.get("/v1/users/2/relation-counts").await.ok()["followers"], at + 1, "{step}");
        assert_eq!(crate::features::events::all(&other.client, at + 1).await.len(), at + 1, "{step}: told once");
    }
    other.stop().await;
}
