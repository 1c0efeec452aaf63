//! All that two users can be to each other: counts equal lists, and nobody sees what is secret.
//! Random acts of many users at two nodes, at once and asynchronous, run against a naive model.
//! Every race of two acts on one pair must end as if one had come after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use headmark::base::clock::UnixMs;
use headmark::base::error::Problem;
use headmark::engine::lanes::{Answer, Command, Job, Names, Needs, Rows};
use headmark::features::relations::Pair;
use headmark::features::relations::rows::{RelationRows, need_block_seen};
use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Dice, Node, RedisServer, Tier, World};

/// With the badges that new followers and new requests raise: nobody reads them here, so that they
/// count who follows and who has asked to.
const ARGS: [&str; 4] = ["--follower-badge", "fans", "--request-badge", "asks"];

/// Who approves follows.
const APPROVING: [i64; 2] = [5, 6];

async fn nodes(world: &World) -> Vec<Node> {
    let mut nodes = vec![world.node_with(&ARGS).await];
    if world.tier == Tier::Server {
        nodes.push(world.node_with(&ARGS).await);
    }
    nodes
}

const USERS: i64 = 6;
const STEPS: usize = 60;

/// An act of one user about another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Follow { secret: Option<bool>, special: Option<bool> },
    Unfollow,
    Remove,
    Accept,
    Refuse,
    Block,
    Unblock,
    Mute,
    Unmute,
}

impl Act {
    fn is_of_mutes(self) -> bool {
        matches!(self, Self::Mute | Self::Unmute)
    }
}

const ACTS: [Act; 16] = [
    Act::Follow { secret: None, special: None },
    Act::Follow { secret: Some(true), special: None },
    Act::Follow { secret: Some(false), special: Some(true) },
    Act::Follow { secret: None, special: None },
    Act::Follow { secret: None, special: Some(false) },
    Act::Unfollow,
    Act::Unfollow,
    Act::Remove,
    Act::Block,
    Act::Unblock,
    Act::Accept,
    Act::Accept,
    Act::Refuse,
    Act::Mute,
    Act::Mute,
    Act::Unmute,
];

/// Who follows whom, or has asked to (in secret, and as special), who blocks whom, and who mutes whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Naive {
    follows: BTreeMap<(i64, i64), (bool, bool)>,
    requests: BTreeMap<(i64, i64), (bool, bool)>,
    blocks: BTreeSet<(i64, i64)>,
    /// Who approves follows.
    approving: BTreeSet<i64>,
    mutes: BTreeSet<(i64, i64)>,
}

impl Naive {
    /// What it answers: the status.
    fn act(&mut self, a: i64, b: i64, act: Act) -> u16 {
        match act {
            Act::Follow { .. } if self.blocks.contains(&(a, b)) || self.blocks.contains(&(b, a)) => return 403,
            Act::Follow { secret, special } => {
                let asks = self.approving.contains(&b) && !self.follows.contains_key(&(a, b));
                let follow = if asks { &mut self.requests } else { &mut self.follows }.entry((a, b)).or_default();
                *follow = (secret.unwrap_or(follow.0), special.unwrap_or(follow.1));
                return 200;
            }
            Act::Unfollow => {
                self.follows.remove(&(a, b));
                self.requests.remove(&(a, b));
            }
            Act::Remove => drop(self.follows.remove(&(b, a))),
            Act::Accept => {
                let Some(options) = self.requests.remove(&(b, a)) else { return 404 };
                self.follows.insert((b, a), options);
                return 200;
            }
            Act::Refuse => drop(self.requests.remove(&(b, a))),
            Act::Block => {
                for pair in [(a, b), (b, a)] {
                    self.follows.remove(&pair);
                    self.requests.remove(&pair);
                }
                self.blocks.insert((a, b));
                return 200;
            }
            Act::Unblock => drop(self.blocks.remove(&(a, b))),
            Act::Mute => {
                self.mutes.insert((a, b));
                return 200;
            }
            Act::Unmute => drop(self.mutes.remove(&(a, b))),
        }
        204
    }

    fn mutual(&self, a: i64, b: i64) -> bool {
        let public = |pair| self.follows.get(&pair).is_some_and(|(secret, _)| !secret);
        public((a, b)) && public((b, a))
    }

    /// What `a` is shown of `b`.
    fn relation(&self, a: i64, b: i64) -> Value {
        let request = self.requests.get(&(a, b));
        let mine = self.follows.get(&(a, b)).or(request);
        json!({
            "user_id": b.to_string(),
            "following": self.follows.contains_key(&(a, b)),
            "requested": request.is_some(),
            "secret": mine.is_some_and(|(secret, _)| *secret),
            "special": mine.is_some_and(|(_, special)| *special),
            "followed_by": self.follows.contains_key(&(b, a)),
            "mutual": self.mutual(a, b),
            "blocking": self.blocks.contains(&(a, b)),
            "muting": self.mutes.contains(&(a, b)),
        })
    }
}

fn request(client: &Client, a: i64, b: i64, act: Act) -> reqwest::RequestBuilder {
    match act {
        Act::Follow { secret, special } => {
            let mut body = json!({});
            if let Some(secret) = secret {
                body["visibility"] = json!(if secret { "secret" } else { "public" });
            }
            if let Some(special) = special {
                body["special"] = json!(special);
            }
            client.request(Method::PUT, &format!("/v1/users/{a}/following/{b}")).json(&body)
        }
        Act::Unfollow => client.request(Method::DELETE, &format!("/v1/users/{a}/following/{b}")),
        Act::Remove => client.request(Method::DELETE, &format!("/v1/users/{a}/followers/{b}")),
        Act::Accept => client.request(Method::PUT, &format!("/v1/users/{a}/follow-requests/{b}")),
        Act::Refuse => client.request(Method::DELETE, &format!("/v1/users/{a}/follow-requests/{b}")),
        Act::Block => client.request(Method::PUT, &format!("/v1/users/{a}/blocks/{b}")),
        Act::Unblock => client.request(Method::DELETE, &format!("/v1/users/{a}/blocks/{b}")),
        Act::Mute => client.request(Method::PUT, &format!("/v1/users/{a}/mutes/{b}")),
        Act::Unmute => client.request(Method::DELETE, &format!("/v1/users/{a}/mutes/{b}")),
    }
}

/// One that is accepted to be done later: where to ask, and what must come of it.
type Later = (String, u16);

/// Whether a user is on another one's whole list.
async fn stands_on(client: &Client, user: i64, name: &str, other: i64) -> bool {
    let list = client.get(&format!("/v1/users/{user}/{name}/ids")).await.ok();
    assert!(list.get("degraded").is_none(), "{list}");
    list["ids"].as_array().unwrap().contains(&json!(other.to_string()))
}

/// Acts on pairs of its own, from both sides, through any node; what is acknowledged must show at
/// once on each.
async fn act(clients: Arc<Vec<Client>>, pairs: Vec<(i64, i64)>, seed: usize, steps: usize) -> (Naive, Vec<Later>) {
    let (mut dice, mut naive, mut later) = (Dice::new(seed + 1), Naive { approving: APPROVING.into(), ..Naive::default() }, Vec::new());
    for _ in 0..steps {
        let (a, b) = dice.pick(&pairs);
        let (a, b) = if dice.roll(2) == 0 { (a, b) } else { (b, a) };
        let act = dice.pick(&ACTS);
        let client = &clients[dice.roll(clients.len())];
        let expected = naive.act(a, b, act);
        if dice.roll(4) == 0 && !act.is_of_mutes() {
            let reply = Client::send(request(client, a, b, act).header("prefer", "respond-async")).await;
            assert_eq!(reply.status, 202, "{}", reply.text);
            later.push((reply.header("location").to_owned(), expected));
            continue;
        }
        let reply = Client::send(request(client, a, b, act)).await;
        assert_eq!(reply.status, expected, "{a} {b} {act:?}: {}", reply.text);
        if expected == 200 {
            let mut relation = reply.body;
            let revision = relation.as_object_mut().unwrap().remove("revision").and_then(|revision| revision.as_i64());
            assert_eq!(relation, naive.relation(a, b), "{a} {b} {act:?}");
            assert!(revision.is_some(), "{a} {b} {act:?}");
            assert!(client.summary(a).await["revision"].as_i64() >= revision, "{a} {b} {act:?}");
        }
        let other = &clients[dice.roll(clients.len())];
        let looked = other.get(&format!("/v1/users/{a}/relations?ids={b}")).await.ok();
        assert_eq!(looked["items"][0], naive.relation(a, b), "{a} {b} {act:?}: what was acknowledged shows on every node at once");
        for (user, other) in [(a, b), (b, a)] {
            let client = &clients[dice.roll(clients.len())];
            let (name, expected) = match dice.roll(4) {
                0 => ("blocks", naive.blocks.contains(&(user, other))),
                1 => ("mutes", naive.mutes.contains(&(user, other))),
                _ => ("following", naive.follows.contains_key(&(user, other))),
            };
            assert_eq!(stands_on(client, user, name, other).await, expected, "{name} of {user}: {other}, after {act:?} of {a}");
        }
    }
    (naive, later)
}

async fn approve(client: &Client, user: i64, approves: bool) {
    let settings = json!({"approve_follows": approves});
    Client::send(client.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&settings)).await.ok();
}

/// Many actors at once, each with pairs of its own.
async fn crowd(clients: &Arc<Vec<Client>>, steps: usize) -> (Naive, Vec<Later>) {
    for user in APPROVING {
        approve(&clients[0], user, true).await;
    }
    let pairs: Vec<_> = (1..=USERS).flat_map(|a| (a + 1..=USERS).map(move |b| (a, b))).collect();
    let actors = pairs.chunks(2).enumerate().map(|(seed, own)| tokio::spawn(act(Arc::clone(clients), own.to_vec(), seed, steps)));
    let (mut naive, mut later) = (Naive { approving: APPROVING.into(), ..Naive::default() }, Vec::new());
    for outcome in join_all(actors).await {
        let (part, accepted) = outcome.unwrap();
        naive.follows.extend(part.follows);
        naive.requests.extend(part.requests);
        naive.blocks.extend(part.blocks);
        naive.mutes.extend(part.mutes);
        later.extend(accepted);
    }
    (naive, later)
}

/// The ids of a list, in its order, page by page.
async fn listed(client: &Client, user: i64, name: &str) -> Vec<i64> {
    let items = client.walk(&format!("/v1/users/{user}/{name}"), 2).await;
    items.iter().map(|item| item["user_id"].as_str().unwrap().parse().unwrap()).collect()
}

/// Every list, count and look-up of every user, against what must be so.
async fn check(client: &Client, naive: &Naive) {
    for user in 1..=USERS {
        let others = || (1..=USERS).filter(|other| *other != user);
        let is = |test: &dyn Fn(i64) -> bool| others().filter(|other| test(*other)).collect::<BTreeSet<i64>>();
        let lists = [
            ("following", is(&|other| naive.follows.contains_key(&(user, other)))),
            ("followers", is(&|other| naive.follows.contains_key(&(other, user)))),
            ("mutuals", is(&|other| naive.mutual(user, other))),
            ("special", is(&|other| naive.follows.get(&(user, other)).is_some_and(|(_, special)| *special))),
            ("blocks", is(&|other| naive.blocks.contains(&(user, other)))),
            ("follow-requests", is(&|other| naive.requests.contains_key(&(other, user)))),
            ("follow-requests/sent", is(&|other| naive.requests.contains_key(&(user, other)))),
            ("mutes", is(&|other| naive.mutes.contains(&(user, other)))),
        ];
        for (name, expected) in &lists {
            let shown = listed(client, user, name).await;
            assert_eq!((shown.len(), &shown.iter().copied().collect()), (expected.len(), expected), "{name} of {user}");
            if ["following", "blocks", "mutes"].contains(name) {
                let whole = client.get(&format!("/v1/users/{user}/{name}/ids")).await.ok();
                let ids: Vec<i64> = whole["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect();
                assert_eq!((ids, &whole["count"]), (shown, &json!(expected.len())), "{name} of {user} at once");
            }
        }
        let secret = naive.follows.iter().filter(|((a, _), (secret, _))| *a == user && *secret).count();
        let [following, followers, mutuals, special, blocked, requests, sent, _] = lists.map(|(_, list)| list.len());
        let counts = client.get(&format!("/v1/users/{user}/relation-counts")).await.ok();
        let expected = json!({"following": following, "followers": followers, "mutuals": mutuals, "secret": secret, "special": special, "blocked": blocked, "requests": requests, "requests_sent": sent});
        assert_eq!(counts, expected, "{user}");
        let counters = client.summary(user).await["counters"].clone();
        let unread = |badge: &str| usize::try_from(counters[badge]["unread"].as_u64().unwrap_or_default()).unwrap();
        assert_eq!((unread("fans"), unread("asks")), (followers, requests), "new followers and requests of {user}");
        let ids = others().map(|other| other.to_string()).collect::<Vec<_>>().join(",");
        let looked = client.get(&format!("/v1/users/{user}/relations?ids={ids}")).await.ok();
        assert_eq!(looked["items"], Value::Array(others().map(|other| naive.relation(user, other)).collect()));
    }
}

/// Where reading all events and believing each leads. None tells of a mute.
async fn replayed(client: &Client, known: &Naive) -> Naive {
    let mut naive = Naive { approving: known.approving.clone(), mutes: known.mutes.clone(), ..Naive::default() };
    let mut after = 0;
    crate::support::eventually("all events came", async || {
        let page = client.get(&format!("/v1/events?after={after}&limit=1000")).await.ok();
        for event in page["items"].as_array().unwrap() {
            let (data, id) = (&event["data"], |name: &str| event["data"][name].as_str().unwrap().parse::<i64>().unwrap());
            let pair = (id("user_id"), id("target_id"));
            naive.follows.remove(&pair);
            naive.requests.remove(&pair);
            naive.blocks.remove(&pair);
            let options = (data["secret"] == true, data["special"] == true);
            if data["following"] == true {
                naive.follows.insert(pair, options);
            }
            if data["requested"] == true {
                naive.requests.insert(pair, options);
            }
            if data["blocking"] == true {
                naive.blocks.insert(pair);
            }
        }
        after = page["next_after"].as_i64().unwrap();
        naive == *known
    })
    .await;
    naive
}

/// What a direct message asks in its transaction: whether one blocks another.
#[derive(Debug)]
struct Ask(Pair);

impl Command for Ask {
    fn needs(&self, needs: &mut Needs) {
        need_block_seen(needs, self.0);
    }

    fn lane_key(&self) -> i64 {
        self.0.followee.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn apply(&self, rows: &mut Rows, _: UnixMs) -> Result<Answer, Problem> {
        Ok(Answer::ok(rows.get::<RelationRows>().blocks(self.0)))
    }
}

/// What is kept beside the entries may be lost at any moment, and with it the entries: nothing that
/// is shown is older for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_redis_is_flushed_while_relations_change() {
    let mut world = World::new(Tier::Server).await;
    let redis = RedisServer::start(&world.dir).await;
    world.redis_url = redis.url();
    let nodes = nodes(&world).await;
    let clients = Arc::new(nodes.iter().map(|node| node.client.clone()).collect::<Vec<_>>());
    let flush = async {
        loop {
            redis.ask(&["FLUSHALL"]).await;
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    };
    let (naive, later) = tokio::select! {
        done = crowd(&clients, 40) => done,
        () = flush => unreachable!("it goes on for ever"),
    };
    for client in clients.iter() {
        for (location, _) in &later {
            crate::features::operations::outcome(client, location).await;
        }
        check(client, &naive).await;
    }
    Node::stop_all(nodes).await;
}

/// Postgres without Redis: one node, with its caches in the process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_acts_at_a_node_alone_match_the_model_too() {
    let mut world = World::new(Tier::Server).await;
    world.redis_url.clear();
    let node = world.node_with(&ARGS).await;
    let (naive, later) = crowd(&Arc::new(vec![node.client.clone()]), 40).await;
    for (location, _) in &later {
        crate::features::operations::outcome(&node.client, location).await;
    }
    check(&node.client, &naive).await;
    assert_eq!(replayed(&node.client, &naive).await, naive);
    node.stop().await;
}

both_tiers! {
    async fn a_block_that_was_acknowledged_is_seen_by_every_transaction(world: World) {
        let nodes = world.nodes().await;
        let pair = |a: i64, b: i64| Pair { follower: a.try_into().unwrap(), followee: b.try_into().unwrap() };
        let turns = (0..10_i64).map(|number| {
            let nodes = &nodes;
            async move {
                let (a, b) = (1 + 2 * number, 2 + 2 * number);
                for round in 0..20_usize {
                    let client = &nodes[round % nodes.len()].client;
                    for (method, blocks) in [(Method::PUT, true), (Method::DELETE, false)] {
                        assert!(Client::send(client.request(method, &format!("/v1/users/{a}/blocks/{b}"))).await.status.is_success());
                        let ask = async |node: &Node, pair| node.app.state().lanes.submit(Job { command: Arc::new(Ask(pair)), key: None }).await.unwrap().value::<bool>().unwrap();
                        for node in nodes {
                            let (there, back) = tokio::join!(ask(node, pair(a, b)), ask(node, pair(b, a)));
                            assert_eq!((there, back), (blocks, false));
                        }
                    }
                }
            }
        });
        join_all(turns).await;
        Node::stop_all(nodes).await;
    }

    async fn random_acts_at_two_nodes_match_a_model(world: World) {
        let nodes = nodes(&world).await;
        let clients = Arc::new(nodes.iter().map(|node| node.client.clone()).collect::<Vec<_>>());
        let (naive, later) = crowd(&clients, STEPS).await;
        for (location, expected) in &later {
            let told = crate::features::operations::outcome(&clients[0], location).await;
            let status = if *expected < 400 { &told["answer"]["status"] } else { &told["problem"]["status"] };
            assert_eq!(status, expected, "{told}");
        }
        for client in clients.iter() {
            check(client, &naive).await;
            assert_eq!(replayed(client, &naive).await, naive);
        }
        // Those who approve follows no longer accept all that is open.
        let mut naive = naive;
        for (at, user) in APPROVING.into_iter().enumerate() {
            approve(&clients[at % clients.len()], user, false).await;
        }
        let requests = std::mem::take(&mut naive.requests);
        naive.follows.extend(requests);
        for client in clients.iter() {
            assert_eq!(replayed(client, &naive).await, naive);
            check(client, &naive).await;
        }
        let (recount, mut found) = (headmark::maintenance::recount::Recount { user: None, dry_run: true }, Vec::new());
        recount.run(&nodes[0].app.state().db, |difference| found.push(difference.to_string())).await.unwrap();
        assert_eq!(found, Vec::<String>::new());
        Node::stop_all(nodes).await;
    }

    async fn every_race_on_a_pair_ends_in_a_serial_outcome(world: World) {
        let nodes = world.nodes().await;
        let (first, last) = (&nodes[0].client, &nodes[nodes.len() - 1].client);
        let mut user = 0;
        let begun = [vec![], vec![(false, ACTS[0])], vec![(false, ACTS[0]), (true, ACTS[0])]];
        for (approves, begun) in [false, true].iter().flat_map(|approves| begun.iter().map(move |begun| (*approves, begun))) {
            for (mine, theirs) in [
                (ACTS[0], ACTS[0]),
                (ACTS[0], Act::Block),
                (ACTS[1], Act::Block),
                (Act::Unfollow, Act::Remove),
                (Act::Unfollow, Act::Block),
                (Act::Block, Act::Block),
                (ACTS[2], Act::Remove),
                (ACTS[0], Act::Accept),
                (Act::Unfollow, Act::Accept),
                (Act::Unfollow, Act::Refuse),
                (Act::Block, Act::Accept),
                (ACTS[1], Act::Refuse),
            ] {
                for _ in 0..4 {
                    user += 2;
                    let (a, b) = (user - 1, user);
                    // The second of each pair approves follows.
                    let mut before = Naive::default();
                    if approves {
                        before.approving.insert(b);
                        approve(first, b, true).await;
                    }
                    for (by_other, act) in begun {
                        let (a, b) = if *by_other { (b, a) } else { (a, b) };
                        before.act(a, b, *act);
                        Client::send(request(first, a, b, *act)).await.ok();
                    }
                    let serial = |order: [bool; 2]| {
                        let mut naive = before.clone();
                        let mut statuses = [0, 0];
                        for by_other in order {
                            if by_other { statuses[1] = naive.act(b, a, theirs) } else { statuses[0] = naive.act(a, b, mine) }
                        }
                        (naive.relation(a, b), naive.relation(b, a), statuses)
                    };
                    let (there, back) = tokio::join!(Client::send(request(first, a, b, mine)), Client::send(request(last, b, a, theirs)));
                    let look = async |a: i64, b: i64| last.get(&format!("/v1/users/{a}/relations?ids={b}")).await.ok()["items"][0].clone();
                    let shown = (look(a, b).await, look(b, a).await, [there.status.as_u16(), back.status.as_u16()]);
                    assert!([serial([false, true]), serial([true, false])].contains(&shown), "{begun:?} {mine:?} {theirs:?}: {shown:?}");
                }
            }
        }
        Node::stop_all(nodes).await;
    }
}
