//! Whatever the sequence of operations, restarts and evictions, every node shows what a naive model
//! says.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::truth::{Summary, Truth};
use crate::support::{Client, Node, Reply, Tier, World, ask, connect};

const BADGES: [&str; 3] = ["follow", "like", "mention"];
const USERS: usize = 3;
const NODES: usize = 2;

/// One thing that happened, for ever at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Unread,
    Read,
    Gone,
}

/// The naive model of one user: every thing in a list, and a count of the changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    things: BTreeMap<&'static str, Vec<Thing>>,
    revision: i64,
}

impl Model {
    /// Does something to the things, and counts it if it changed any.
    fn change(&mut self, act: impl FnOnce(&mut BTreeMap<&'static str, Vec<Thing>>)) {
        let before = self.things.clone();
        act(&mut self.things);
        self.revision += i64::from(before != self.things);
    }

    fn read(things: &mut [Thing], up_to: usize) {
        things.iter_mut().take(up_to).filter(|thing| **thing == Thing::Unread).for_each(|thing| *thing = Thing::Read);
    }

    fn summary(&self) -> Summary {
        let counters = self.things.iter().map(|(badge, things)| (badge.to_string(), numbers(things)));
        Summary { revision: self.revision, counters: counters.collect() }
    }

    /// What a write to this badge answers.
    fn answer(&self, badge: &str) -> Value {
        let (unread, head) = self.things.get(badge).map_or((0, 0), |things| numbers(things));
        json!({"badge": badge, "unread": unread, "head": head, "revision": self.revision})
    }
}

fn numbers(things: &[Thing]) -> (i64, i64) {
    let unread = things.iter().filter(|thing| **thing == Thing::Unread).count();
    (unread.try_into().unwrap(), things.len().try_into().unwrap())
}

/// One step. Users, badges and nodes are given by index; a position is a share of the head.
#[derive(Debug, Clone)]
enum Step {
    Increment {
        user: usize,
        badge: usize,
        by: usize,
    },
    Batch(Vec<(usize, usize, usize)>),
    RetractAt {
        user: usize,
        badge: usize,
        percent: usize,
    },
    RetractNewest {
        user: usize,
        badge: usize,
        by: usize,
    },
    Reset {
        user: usize,
        badge: usize,
        percent: Option<usize>,
    },
    ResetMany {
        user: usize,
        percent: Vec<(usize, usize)>,
    },
    ResetAll {
        user: usize,
    },
    /// An earlier request again, under its key.
    Repeat(usize),
    /// A key used before, with another body.
    Reuse(usize),
    Query,
    Forget,
    ForgetUser {
        user: usize,
    },
    Restart {
        node: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<(Step, usize)>> {
    let (user, badge) = (0..USERS, 0..BADGES.len());
    let at = (user.clone(), badge.clone());
    let step = prop_oneof![
        8 => (at.clone(), 1_usize..6).prop_map(|((user, badge), by)| Step::Increment { user, badge, by }),
        3 => prop::collection::vec((user.clone(), badge.clone(), 1_usize..4), 1..8).prop_map(Step::Batch),
        5 => (at.clone(), 0_usize..=110).prop_map(|((user, badge), percent)| Step::RetractAt { user, badge, percent }),
        3 => (at.clone(), 1_usize..5).prop_map(|((user, badge), by)| Step::RetractNewest { user, badge, by }),
        4 => (at, prop::option::of(0_usize..=110)).prop_map(|((user, badge), percent)| Step::Reset { user, badge, percent }),
        2 => (user.clone(), prop::collection::vec((badge, 0_usize..=110), 0..3)).prop_map(|(user, percent)| Step::ResetMany { user, percent }),
        1 => user.clone().prop_map(|user| Step::ResetAll { user }),
        4 => (0_usize..1000).prop_map(Step::Repeat),
        1 => (0_usize..1000).prop_map(Step::Reuse),
        1 => Just(Step::Query),
        1 => Just(Step::Forget),
        2 => user.prop_map(|user| Step::ForgetUser { user }),
        1 => (0..NODES).prop_map(|node| Step::Restart { node }),
    ];
    prop::collection::vec((step, 0..NODES), 30..90)
}

/// Nodes that several cases share, each case with users of its own.
struct Arena {
    world: World,
    nodes: Vec<Node>,
    next_user: i64,
}

impl Arena {
    async fn new(tier: Tier) -> Self {
        let world = World::new(tier).await;
        let mut nodes = Vec::new();
        for _ in 0..if tier == Tier::Server { NODES } else { 1 } {
            nodes.push(world.node().await);
        }
        Self { world, nodes, next_user: 1 }
    }

    fn client(&self, node: usize) -> Client {
        self.nodes[node % self.nodes.len()].client.clone()
    }

    async fn restart(&mut self, node: usize) {
        let at = node % self.nodes.len();
        self.nodes.remove(at).stop().await;
        let node = self.world.node().await;
        self.nodes.insert(at, node);
    }

    /// Evicts what the cache holds: of one user, or everything.
    async fn forget(&self, user: Option<i64>) {
        if self.world.tier == Tier::Embedded {
            return self.nodes[0].app.state().cache.clear();
        }
        let mut redis = connect(&self.world.redis_url).await.unwrap();
        let pattern = format!("{}{{u:{}}}", self.world.prefix, user.map_or("*".to_owned(), |user| user.to_string()));
        let keys: Vec<String> = deadpool_redis::redis::from_redis_value(ask(&mut redis, &["KEYS", &pattern]).await.unwrap()).unwrap();
        for key in keys {
            ask(&mut redis, &["DEL", &key]).await.unwrap();
        }
    }
}

/// A keyed request and its first answer.
struct Sent {
    path: String,
    key: String,
    body: Value,
    answer: String,
    status: u16,
}

/// One case.
struct Run<'a> {
    arena: &'a mut Arena,
    first_user: i64,
    models: Vec<Model>,
    sent: Vec<Sent>,
    /// The tag that the clients of each user have.
    tags: Vec<(String, Model)>,
}

impl Run<'_> {
    fn user(&self, user: usize) -> i64 {
        self.first_user + i64::try_from(user).unwrap()
    }

    fn head(&self, user: usize, badge: usize) -> usize {
        self.models[user].things.get(BADGES[badge]).map_or(0, Vec::len)
    }

    fn path(&self, user: usize, badge: usize, verb: &str) -> String {
        format!("/v1/users/{}/badges/{}/{verb}", self.user(user), BADGES[badge])
    }

    /// Sends under a new key, remembers the answer for [`Step::Repeat`].
    async fn send(&mut self, client: &Client, path: String, body: Value) -> Reply {
        let key = format!("key-{}-{}", self.first_user, self.sent.len());
        let reply = client.post_once(&path, &key, &body).await;
        assert_eq!(reply.header("idempotent-replayed"), "");
        if reply.status == 200 {
            self.sent.push(Sent { path, key, body, answer: reply.text.clone(), status: 200 });
        }
        reply
    }

    async fn step(&mut self, step: &Step, node: usize) {
        let client = self.arena.client(node);
        match step {
            Step::Increment { user, badge, by } => {
                let reply = self.send(&client, self.path(*user, *badge, "increment"), json!({"by": by})).await;
                self.models[*user].change(|things| things.entry(BADGES[*badge]).or_default().extend(vec![Thing::Unread; *by]));
                assert_eq!(reply.ok(), self.models[*user].answer(BADGES[*badge]));
            }
            Step::Batch(items) => self.batch(&client, items).await,
            Step::RetractAt { user, badge, percent } => {
                let at = self.head(*user, *badge) * percent / 100;
                let (path, known) = (self.path(*user, *badge, "retract"), self.head(*user, *badge));
                let reply = self.send(&client, path, json!({"at": at.max(1)})).await;
                if at.max(1) > known {
                    drop(reply.problem(404, "not_found"));
                    return;
                }
                self.models[*user].change(|things| {
                    let thing = &mut things.get_mut(BADGES[*badge]).unwrap()[at.max(1) - 1];
                    *thing = if *thing == Thing::Unread { Thing::Gone } else { *thing };
                });
                assert_eq!(reply.ok(), self.models[*user].answer(BADGES[*badge]));
            }
            Step::RetractNewest { user, badge, by } => {
                let reply = self.send(&client, self.path(*user, *badge, "retract"), json!({"by": by})).await;
                self.models[*user].change(|things| {
                    let things = things.get_mut(BADGES[*badge]).into_iter().flatten().rev();
                    things.filter(|thing| **thing == Thing::Unread).take(*by).for_each(|thing| *thing = Thing::Gone);
                });
                assert_eq!(reply.ok(), self.models[*user].answer(BADGES[*badge]));
            }
            Step::Reset { .. } | Step::ResetMany { .. } | Step::ResetAll { .. } => self.reset(&client, step).await,
            Step::Repeat(which) => self.repeat(&client, *which).await,
            Step::Reuse(which) => {
                if let Some(sent) = self.sent.get(which % self.sent.len().max(1)) {
                    let reply = client.post_once(&sent.path, &sent.key, &json!({"by": 999})).await;
                    let malformed = reply.body["code"] == "invalid_body";
                    assert!(malformed || reply.body["code"] == "idempotency_key_reused", "{}", reply.text);
                }
            }
            Step::Query => {
                let users: Vec<_> = (0..USERS).map(|user| self.user(user)).collect();
                let body = client.post("/v1/badges/query", &json!({"user_ids": users})).await.ok();
                let shown: Vec<_> = body["items"].as_array().unwrap().iter().map(Summary::shown).collect();
                assert_eq!(shown, self.models.iter().map(Model::summary).collect::<Vec<_>>());
            }
            Step::Forget => self.arena.forget(None).await,
            Step::ForgetUser { user } => self.arena.forget(Some(self.user(*user))).await,
            Step::Restart { node } => self.arena.restart(*node).await,
        }
    }

    async fn reset(&mut self, client: &Client, step: &Step) {
        match step {
            Step::Reset { user, badge, percent } => {
                let up_to = percent.map_or(usize::MAX, |percent| self.head(*user, *badge) * percent / 100);
                let body = percent.map_or(json!({}), |_| json!({"up_to": up_to}));
                let reply = client.post(&self.path(*user, *badge, "reset"), &body).await;
                self.models[*user]
                    .change(|things| things.get_mut(BADGES[*badge]).into_iter().for_each(|things| Model::read(things, up_to)));
                assert_eq!(reply.ok(), self.models[*user].answer(BADGES[*badge]));
            }
            Step::ResetMany { user, percent } => {
                let up_to: BTreeMap<_, _> =
                    percent.iter().map(|(badge, percent)| (*badge, self.head(*user, *badge) * percent / 100)).collect();
                let named: BTreeMap<_, _> = up_to.iter().map(|(badge, up_to)| (BADGES[*badge], up_to)).collect();
                let path = format!("/v1/users/{}/badges/reset", self.user(*user));
                let summary = client.post(&path, &json!({"up_to": named})).await.ok();
                self.models[*user].change(|things| {
                    for (badge, up_to) in up_to {
                        things.get_mut(BADGES[badge]).into_iter().for_each(|things| Model::read(things, up_to));
                    }
                });
                assert_eq!(Summary::shown(&summary), self.models[*user].summary());
            }
            Step::ResetAll { user } => {
                let summary = client.post(&format!("/v1/users/{}/badges/reset", self.user(*user)), &json!({})).await.ok();
                self.models[*user].change(|things| things.values_mut().for_each(|things| Model::read(things, usize::MAX)));
                assert_eq!(Summary::shown(&summary), self.models[*user].summary());
            }
            other => unreachable!("{other:?} is no reset"),
        }
    }

    async fn batch(&mut self, client: &Client, items: &[(usize, usize, usize)]) {
        let item = |(user, badge, by): &(usize, usize, usize)| json!({"user_id": self.user(*user), "badge": BADGES[*badge], "by": by});
        let body = json!({"items": items.iter().map(item).collect::<Vec<_>>()});
        let reply = self.send(client, "/v1/badges/increment".to_owned(), body).await.ok();
        // One change for each user that is in it, whatever the number of items.
        let before = self.models.clone();
        for ((user, badge, by), shown) in items.iter().zip(reply["items"].as_array().unwrap()) {
            let model = &mut self.models[*user];
            model.change(|things| things.entry(BADGES[*badge]).or_default().extend(vec![Thing::Unread; *by]));
            model.revision = before[*user].revision + 1;
            let mut expected = model.answer(BADGES[*badge]);
            expected["user_id"] = self.user(*user).to_string().into();
            assert_eq!(*shown, expected);
        }
    }

    async fn repeat(&self, client: &Client, which: usize) {
        let Some(sent) = self.sent.get(which % self.sent.len().max(1)) else { return };
        let reply = client.post_once(&sent.path, &sent.key, &sent.body).await;
        assert_eq!((reply.status.as_u16(), &reply.text), (sent.status, &sent.answer));
        assert_eq!(reply.header("idempotent-replayed"), "true");
    }

    /// Every node shows the model; the tag is another exactly if the unread summary is.
    async fn compare(&mut self) {
        for at in 0..self.arena.nodes.len() {
            let client = self.arena.client(at);
            for user in 0..USERS {
                let path = format!("/v1/users/{}/badges", self.user(user));
                let (tag, had) = &self.tags[user];
                let conditional = client.get_if_changed(&path, tag).await;
                assert_eq!(conditional.status == 304, *had == self.models[user], "{tag} {}", conditional.text);
                let full = client.get(&path).await;
                let tag = full.header("etag").to_owned();
                assert_eq!(conditional.header("etag"), tag);
                assert_eq!(Summary::shown(&full.ok()), self.models[user].summary());
                if at + 1 == self.arena.nodes.len() {
                    self.tags[user] = (tag, self.models[user].clone());
                }
            }
        }
    }
}

async fn run(arena: &mut Arena, steps: &[(Step, usize)]) {
    let first_user = arena.next_user;
    arena.next_user += i64::try_from(USERS).unwrap();
    let tags = vec![("W/\"none\"".to_owned(), Model { revision: -1, ..Model::default() }); USERS];
    let mut run = Run { arena, first_user, models: vec![Model { revision: 1, ..Model::default() }; USERS], sent: Vec::new(), tags };
    for user in 0..USERS {
        // Each is enrolled by its first poll.
        run.arena.client(0).summary(run.user(user)).await;
    }
    for (step, node) in steps {
        run.step(step, *node).await;
        run.compare().await;
    }
    let mut truth = Truth::of(&run.arena.world).await;
    for user in 0..USERS {
        assert_eq!(truth.summary(run.user(user)).await, run.models[user].summary());
    }
}

fn explore(tier: Tier) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let arena = Mutex::new(runtime.block_on(Arena::new(tier)));
    let cases = if tier == Tier::Server { 12 } else { 24 };
    let config = ProptestConfig { cases, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in steps())| {
        runtime.block_on(async { run(&mut *arena.lock().await, &steps).await });
    });
}

#[test]
fn every_sequence_matches_the_model_embedded() {
    explore(Tier::Embedded);
}

#[test]
fn every_sequence_matches_the_model_server() {
    explore(Tier::Server);
}
