//! Counts equal lists, and both directions agree, no matter who acts on the same pair at the same
//! moment, and whatever dies meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::truth::Truth;
use crate::both_tiers;
use crate::support::{Client, Dice, Node, Nodes, Tier, World};

/// Who follows whom.
type Follows = BTreeSet<(i64, i64)>;

const USERS: i64 = 7;
const WRITERS: usize = 14;
const STEPS: usize = 60;

fn path(follower: i64, followee: i64) -> String {
    format!("/v1/users/{follower}/following/{followee}")
}

/// Insists until it is acknowledged: a repeat changes nothing.
async fn insist(nodes: &Nodes, dice: &mut Dice, method: &Method, path: &str) -> Value {
    for _ in 0..4000 {
        let up = nodes.up();
        if !up.is_empty() {
            let client = &up[dice.roll(up.len())];
            match Client::try_send(client.request(method.clone(), path)).await {
                Ok(reply) if reply.status.is_success() => return reply.body,
                Ok(reply) => assert_eq!(reply.status, 503, "{}", reply.text),
                Err(_) => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no answer to {method} {path}");
}

/// One writer: it alone changes the pairs that are its own, so it knows how they stand; others
/// change the same pairs the other way round.
async fn write(nodes: Nodes, number: usize, steps: usize, done: Arc<AtomicUsize>) -> Follows {
    let mut dice = Dice::new(number + 1);
    let every = (1..=USERS).flat_map(|a| (1..=USERS).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let own: Vec<_> = every.enumerate().filter(|(at, _)| at % WRITERS == number).map(|(_, pair)| pair).collect();
    let mut follows = Follows::new();
    for _ in 0..steps {
        let (a, b) = dice.pick(&own);
        if dice.roll(5) < 3 {
            let relation = insist(&nodes, &mut dice, &Method::PUT, &path(a, b)).await;
            assert_eq!((&relation["following"], &relation["mutual"]), (&json!(true), &relation["followed_by"]), "{relation}");
            follows.insert((a, b));
        } else {
            insist(&nodes, &mut dice, &Method::DELETE, &path(a, b)).await;
            follows.remove(&(a, b));
        }
        let looked = insist(&nodes, &mut dice, &Method::GET, &format!("/v1/users/{a}/relations?ids={b}")).await;
        assert_eq!(looked["items"][0]["following"], follows.contains(&(a, b)), "what was acknowledged shows on every node at once");
        done.fetch_add(1, Ordering::SeqCst);
    }
    follows
}

/// All writers at once; `trouble` is made meanwhile, and ends when told.
async fn crowd(nodes: &Nodes, steps: usize, trouble: impl AsyncFnOnce(&AtomicBool, &AtomicUsize)) -> Follows {
    let (done, over) = (Arc::new(AtomicUsize::new(0)), AtomicBool::new(false));
    let writers = (0..WRITERS).map(|number| tokio::spawn(write(nodes.clone(), number, steps, Arc::clone(&done))));
    let writing = async {
        let parts = join_all(writers).await;
        over.store(true, Ordering::SeqCst);
        parts.into_iter().flat_map(|part| part.unwrap()).collect()
    };
    let (follows, ()) = tokio::join!(writing, trouble(&over, &done));
    follows
}

/// Follows, also where a slow machine has a node refuse it for now: a repeat changes nothing. How often that was.
async fn follow_patiently(client: &Client, follower: i64, followee: i64) -> usize {
    for refused in 0..50 {
        let reply = Client::send(client.request(Method::PUT, &path(follower, followee))).await;
        if reply.status != 503 {
            assert_eq!(reply.ok()["following"], true);
            return refused;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{follower} cannot follow {followee}");
}

fn ids(items: &[Value]) -> BTreeSet<i64> {
    items.iter().map(|item| item["user_id"].as_str().unwrap().parse().unwrap()).collect()
}

/// Every list, count and look-up of every user, against what must be so.
async fn check(client: &Client, follows: &Follows, users: impl Iterator<Item = i64>) {
    let mutual = |a: i64, b: i64| follows.contains(&(a, b)) && follows.contains(&(b, a));
    for user in users {
        let following: BTreeSet<i64> = follows.iter().filter(|(a, _)| *a == user).map(|(_, b)| *b).collect();
        let followers: BTreeSet<i64> = follows.iter().filter(|(_, b)| *b == user).map(|(a, _)| *a).collect();
        for (name, expected) in [("following", &following), ("followers", &followers)] {
            let items = client.walk(&format!("/v1/users/{user}/{name}"), 3).await;
            assert_eq!((items.len(), &ids(&items)), (expected.len(), expected), "{name} of {user}");
            for item in &items {
                let other = item["user_id"].as_str().unwrap().parse().unwrap();
                assert_eq!(item["mutual"], mutual(user, other), "{user} and {other}");
            }
        }
        let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.ok();
        let mutuals = following.intersection(&followers).count();
        let expected = json!({"following": following.len(), "followers": followers.len(), "mutuals": mutuals, "secret": 0, "special": 0, "blocked": 0, "requests": 0, "requests_sent": 0});
        assert_eq!(counts, expected, "{user}");
    }
}

/// Both tables, asked without the program's own code.
async fn rows(world: &World) -> [Follows; 2] {
    let mut truth = Truth::of(world).await;
    let mut tables = [Follows::new(), Follows::new()];
    for (table, rows) in ["following", "followers"].iter().zip(&mut tables) {
        let sql = sqlx::AssertSqlSafe(format!("select follower_id, followee_id from {table}"));
        let found: Vec<(i64, i64)> = match &mut truth {
            Truth::Sqlite(conn) => sqlx::query_as(sql).fetch_all(conn).await.unwrap(),
            Truth::Postgres(conn) => sqlx::query_as(sql).fetch_all(conn).await.unwrap(),
        };
        assert_eq!(found.len(), found.iter().collect::<BTreeSet<_>>().len(), "{table} has no row twice");
        rows.extend(found);
    }
    tables
}

async fn settle(world: &World, nodes: &Nodes, follows: &Follows) {
    for client in nodes.up() {
        check(&client, follows, 1..=USERS).await;
    }
    assert_eq!(rows(world).await, [follows.clone(), follows.clone()]);
}

both_tiers! {
    async fn random_follows_from_many_at_two_nodes_match_a_model(world: World) {
        let running = world.nodes().await;
        let nodes = Nodes::of(running.iter().map(|node| node.client.clone()));
        let follows = crowd(&nodes, STEPS, async |_, _| {}).await;
        assert!(follows.len() > 10, "{follows:?}");
        settle(&world, &nodes, &follows).await;
        Node::stop_all(running).await;
    }

    async fn two_who_follow_each_other_at_once_are_mutual(world: World) {
        let running = world.nodes().await;
        let (first, last) = (&running[0].client, &running[running.len() - 1].client);
        for round in 0..40 {
            let (a, b) = (1 + 2 * round, 2 + 2 * round);
            let (there, back) = tokio::join!(first.follow(a, b), last.follow(b, a));
            assert!(there["mutual"] == true || back["mutual"] == true, "one of them came second: {there} {back}");
            for client in [first, last] {
                check(client, &Follows::from([(a, b), (b, a)]), a..=b).await;
            }
            let ((), _) = tokio::join!(first.unfollow(a, b), last.follow(b, a));
            check(first, &Follows::from([(b, a)]), a..=b).await;
        }
        Node::stop_all(running).await;
    }

    async fn a_star_gains_ten_thousand_followers_at_once(world: World) {
        const STAR: i64 = 1;
        const FANS: i64 = 10_000;
        // What counts is that no follow is lost, not how long it takes.
        let args = ["--follower-badge", "fans", "--write-timeout-ms", "80000"];
        let mut running = vec![world.node_with(&args).await];
        if world.tier == Tier::Server {
            running.push(world.node_with(&args).await);
        }
        let clients: Vec<_> = running.iter().map(|node| node.client.clone()).collect();
        let follow = |fan: i64| {
            let client = clients[usize::try_from(fan).unwrap() % clients.len()].clone();
            async move { follow_patiently(&client, fan, STAR).await }
        };
        let burst = async {
            let refused: Vec<usize> = futures_util::stream::iter(2..FANS + 2).map(follow).buffer_unordered(400).collect().await;
            refused.into_iter().sum::<usize>()
        };
        // Meanwhile others go on: the star is nowhere where they would queue.
        let others = async {
            join_all((1..=5).map(|other| follow_patiently(&clients[0], 50_000 + other, 60_000))).await;
            assert_eq!(clients[0].get("/v1/users/60000/relation-counts").await.ok()["followers"], 5);
        };
        tokio::pin!(burst);
        tokio::select! {
            _ = &mut burst => panic!("five follows of others took longer than ten thousand of the star"),
            () = others => {}
        }
        let refused = burst.await;
        assert!(refused < 500, "{refused} of them were refused");
        for client in &clients {
            let counts = client.get(&format!("/v1/users/{STAR}/relation-counts")).await.ok();
            assert_eq!((&counts["following"], &counts["followers"], &counts["mutuals"]), (&json!(0), &json!(FANS), &json!(0)));
            assert_eq!(client.summary(STAR).await["counters"]["fans"]["head"], FANS);
        }
        let items = clients[0].walk(&format!("/v1/users/{STAR}/followers"), 100).await;
        let shown = ids(&items);
        assert_eq!((items.len(), shown.len(), shown.first(), shown.last()), (10_000, 10_000, Some(&2), Some(&(FANS + 1))));
        let [following, followers] = rows(&world).await;
        assert!(following == followers && following.len() == 10_005);
        Node::stop_all(running).await;
    }

    /// While a star gains followers as fast as they come, from every node, whatever others write or
    /// read is answered in time.
    async fn nobody_waits_for_a_star(world: World) {
        const STAR: i64 = 1;
        const FANS: i64 = 6000;
        // Far more than it takes: a bound on stalls, not a measure of speed.
        const PATIENCE: Duration = Duration::from_secs(5);
        let running = world.nodes().await;
        let clients: Vec<_> = running.iter().map(|node| node.client.clone()).collect();
        let over = AtomicBool::new(false);
        let gain = async {
            let follow = |fan: i64| {
                let client = clients[usize::try_from(fan).unwrap() % clients.len()].clone();
                async move { client.follow(fan, STAR).await }
            };
            futures_util::stream::iter(2..FANS + 2).map(follow).buffer_unordered(300).collect::<Vec<_>>().await;
            over.store(true, Ordering::SeqCst);
        };
        let other = |number: i64| {
            let (clients, over) = (&clients, &over);
            async move {
                let (me, mut slowest, mut turns) = (100_000 + number, Duration::ZERO, 0);
                while !over.load(Ordering::SeqCst) {
                    let client = &clients[usize::try_from(turns).unwrap() % clients.len()];
                    let target = 200_000 + number * 10_000 + turns;
                    for (method, path) in [
                        (Method::PUT, path(me, target)),
                        (Method::PUT, format!("/v1/users/{me}/blocks/{target}")),
                        (Method::POST, format!("/v1/users/{me}/badges/mention/increment")),
                        // The star acts too, and is looked at.
                        (Method::PUT, path(STAR, target)),
                        (Method::GET, format!("/v1/users/{STAR}/followers")),
                        (Method::GET, format!("/v1/users/{me}/relations?ids={STAR},{target}")),
                    ] {
                        let began = tokio::time::Instant::now();
                        Client::send(client.request(method, &path)).await.ok();
                        slowest = slowest.max(began.elapsed());
                    }
                    turns += 1;
                }
                (turns, slowest)
            }
        };
        let ((), others) = tokio::join!(gain, join_all((0..4).map(other)));
        for (turns, slowest) in &others {
            assert!(*turns > 0 && *slowest < PATIENCE, "{turns} turns, the slowest answer after {slowest:?}");
        }
        let counts = clients[0].get(&format!("/v1/users/{STAR}/relation-counts")).await.ok();
        assert_eq!((&counts["followers"], &counts["following"]), (&json!(FANS), &json!(others.iter().map(|(turns, _)| turns).sum::<i64>())));
        Node::stop_all(running).await;
    }

    /// A node dies at every step of a block that severs both follows: all of it is there
    /// afterwards, or nothing.
    async fn kill_a_node_amid_a_block(world: World) {
        for (at, step) in ["lane::after_begin_write", "lane::before_commit", "lane::after_commit", "lane::after_apply_write"].iter().enumerate() {
            let (a, b) = (10 + 2 * i64::try_from(at).unwrap(), 11 + 2 * i64::try_from(at).unwrap());
            // It dies in the fifth batch: after the first sight of both users, and a follow each
            // way.
            let mut doomed = world.process(&[], &[("FAILPOINTS", &format!("{step}=4*off->return"))]).await;
            doomed.client.summary(a).await;
            doomed.client.summary(b).await;
            doomed.client.follow(a, b).await;
            doomed.client.follow(b, a).await;
            let sent = Client::try_send(doomed.client.request(Method::PUT, &format!("/v1/users/{b}/blocks/{a}"))).await;
            assert!(sent.is_err() && !doomed.ended().await.success(), "{step}");
            let node = world.node().await;
            let severed = *step != "lane::after_begin_write" && *step != "lane::before_commit";
            let relation = node.client.get(&format!("/v1/users/{b}/relations?ids={a}")).await.ok()["items"][0].clone();
            let told = ["following", "followed_by", "mutual", "blocking"].map(|name| relation[name] == true);
            assert_eq!(told, [!severed, !severed, !severed, severed], "{step}: {relation}");
            let follows = if severed { Follows::new() } else { Follows::from([(a, b), (b, a)]) };
            for (user, blocks) in [(a, 0), (b, usize::from(severed))] {
                assert_eq!(node.client.walk(&format!("/v1/users/{user}/blocks"), 5).await.len(), blocks, "{step}");
                for name in ["following", "followers"] {
                    assert_eq!(node.client.walk(&format!("/v1/users/{user}/{name}"), 5).await.len(), follows.len() / 2, "{step}");
                }
            }
            let [following, followers] = rows(&world).await;
            assert_eq!(following, followers, "{step}");
            node.stop().await;
        }
    }

    async fn kill_nodes_and_counts_still_equal_lists(world: World) {
        const DEATHS: usize = 4;
        let other = if world.tier == Tier::Server { Some(world.node().await) } else { None };
        let mut process = world.process(&[], &[]).await;
        let nodes = Nodes::of([process.client.clone()].into_iter().chain(other.iter().map(|node| node.client.clone())));
        let follows = crowd(&nodes, 30, async |over, done| {
            for death in 1..=DEATHS {
                while done.load(Ordering::SeqCst) < death * 40 && !over.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                process.kill().await;
                nodes.set(0, None);
                process = world.process(&[], &[]).await;
                nodes.set(0, Some(process.client.clone()));
            }
        })
        .await;
        settle(&world, &nodes, &follows).await;
    }
}
