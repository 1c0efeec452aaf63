//! The scripts against the pure state machine: the same random operations, the same answers.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

const USERS: i64 = 3;
const LEASE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone)]
enum Op {
    Begin { user: i64, writer: u64 },
    Get { user: i64 },
    GetMany,
    Fill { token: usize, revision: i64 },
    Apply { user: i64, writer: u64, before: i64, by: i64 },
    Abandon { user: i64, writer: u64 },
    PassHalfALease,
    Evict { user: i64 },
    Epoch(i64),
}

fn op() -> impl Strategy<Value = Op> {
    let (user, writer) = (1..=USERS, 0..5_u64);
    prop_oneof![
        4 => (user.clone(), writer.clone()).prop_map(|(user, writer)| Op::Begin { user, writer }),
        6 => user.clone().prop_map(|user| Op::Get { user }),
        1 => Just(Op::GetMany),
        6 => (0..4_usize, 0..4_i64).prop_map(|(token, revision)| Op::Fill { token, revision }),
        6 => (user.clone(), writer.clone(), 0..4_i64, 0..2_i64).prop_map(|(user, writer, before, by)| Op::Apply { user, writer, before, by }),
        1 => (user.clone(), writer).prop_map(|(user, writer)| Op::Abandon { user, writer }),
        2 => Just(Op::PassHalfALease),
        1 => user.prop_map(|user| Op::Evict { user }),
        1 => (0..3_i64).prop_map(Op::Epoch),
    ]
}

/// Both engines, and the tokens that they gave out at the same step, newest last.
struct Pair {
    memory: Cache,
    now_ms: Arc<AtomicU64>,
    redis: Cache,
    raw: Raw,
    prefix: String,
    tokens: Vec<(i64, FillToken, FillToken)>,
    /// The users and writers that found no entry in Redis as they began.
    absent: HashSet<(i64, u64)>,
}

impl Pair {
    async fn new(url: &str) -> Self {
        let prefix = fresh_prefix();
        let config = CacheConfig { lease: LEASE, ttl: LEASE, prefix: prefix.clone(), ..CacheConfig::default() };
        // Leases end by leaps of the clock, with which entries must not expire.
        let (memory, now_ms) = manual_memory(CacheConfig { ttl: LEASE * 10_000, ..config.clone() });
        Self {
            memory,
            now_ms,
            redis: connect(&config, url).await,
            raw: Raw::connect(url).await,
            prefix,
            tokens: Vec::new(),
            absent: HashSet::new(),
        }
    }

    fn key(&self, id: i64) -> String {
        format!("{}{{u:{id}}}", self.prefix)
    }

    /// Tokens are random, so they agree if the same ones are equal.
    fn same(&mut self, id: i64, memory: &Lookup, redis: &Lookup) {
        let (Lookup::Miss { fill: ours, last_known }, Lookup::Miss { fill: theirs, last_known: also }) = (memory, redis) else {
            assert_eq!(memory, redis);
            return;
        };
        assert_eq!(last_known, also);
        assert_eq!(ours.is_some(), theirs.is_some(), "{memory:?} {redis:?}");
        let (Some(ours), Some(theirs)) = (*ours, *theirs) else { return };
        for &(_, a, b) in &self.tokens {
            assert_eq!(a == ours, b == theirs, "one engine gave out a token again");
        }
        self.tokens.push((id, ours, theirs));
    }

    async fn step(&mut self, op: &Op) {
        match *op {
            Op::Begin { user: id, writer } => {
                self.memory.begin_write(&[user(id)], Writer(writer)).await.unwrap();
                let begun = self.redis.begin_write(&[user(id)], Writer(writer)).await.unwrap();
                self.absent.remove(&(id, writer));
                self.absent.extend(begun.absent_users.into_iter().map(|user| (user.get(), writer)));
            }
            Op::Get { user: id } => {
                let (memory, redis) = (self.memory.get(user(id)).await.unwrap(), self.redis.get(user(id)).await.unwrap());
                self.same(id, &memory, &redis);
            }
            Op::GetMany => {
                let users: Vec<_> = (1..=USERS).map(user).collect();
                let (memory, redis) = (self.memory.get_many(&users).await.unwrap(), self.redis.get_many(&users).await.unwrap());
                for ((user, memory), redis) in users.iter().zip(&memory).zip(&redis) {
                    self.same(user.get(), memory, redis);
                }
            }
            Op::Fill { token, revision } => {
                let Some(&(id, ours, theirs)) = self.tokens.iter().rev().nth(token) else { return };
                let memory = self.memory.fill(user(id), ours, &entry(revision)).await.unwrap();
                let redis = self.redis.fill(user(id), theirs, &entry(revision)).await.unwrap();
                assert_eq!(memory, redis);
            }
            Op::Apply { user: id, writer, before, by } => {
                let changes = [change(id, before, before + by)];
                self.memory.apply_write(Writer(writer), &changes).await.unwrap();
                let changes = changes.map(|change| {
                    let parts = change.parts.filter(|_| !self.absent.contains(&(id, writer)));
                    Change { parts, ..change }
                });
                self.redis.apply_write(Writer(writer), &changes).await.unwrap();
            }
            Op::Abandon { user: id, writer } => {
                self.memory.abandon_write(&[user(id)], Writer(writer)).await.unwrap();
                self.redis.abandon_write(&[user(id)], Writer(writer)).await.unwrap();
            }
            Op::PassHalfALease => {
                self.now_ms.fetch_add(u64::try_from(LEASE.as_millis()).unwrap() / 2, Ordering::Relaxed);
                for id in 1..=USERS {
                    let key = self.key(id);
                    pass_half_a_lease(&mut self.raw, &key, LEASE).await;
                }
            }
            Op::Evict { user: id } => {
                let Cache::Memory(memory) = &self.memory else { unreachable!() };
                let shows = memory.shows(user(id));
                if memory.evict(user(id)) {
                    let key = self.key(id);
                    let deleted: i64 = self.raw.ask(&["DEL", &key]).await;
                    let Cache::Redis(redis) = &self.redis else { unreachable!() };
                    redis.forget_copy(user(id));
                    // The scripts remove an entry that shows nothing when the last writer goes
                    // it.
                    assert!(deleted == 1 || !shows, "one engine held an entry, the other did not");
                }
            }
            Op::Epoch(epoch) => {
                self.memory.set_epoch(epoch);
                self.redis.set_epoch(epoch);
            }
        }
    }

    /// All entries, as the next reads would see them; and away with them.
    async fn finish(mut self) {
        self.step(&Op::GetMany).await;
        for id in 1..=USERS {
            let key = self.key(id);
            evict(&mut self.raw, &key).await;
        }
    }
}

#[test]
fn both_engines_answer_alike() {
    let url = shared_redis();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&vec(op(), 1..80), |ops| {
        runtime.block_on(async {
            let mut pair = Pair::new(&url).await;
            for op in &ops {
                pair.step(op).await;
            }
            pair.finish().await;
        });
        Ok(())
    });
    outcome.unwrap();
}

/// The usual course of things, so that the random test above cannot agree on doing nothing.
async fn usual_course(cache: &Cache) {
    let (reader, writer, other) = (user(42), Writer(7), Writer(8));
    let token = token_of(&cache.get(reader).await.unwrap()).expect("a missing entry can be filled");
    assert_eq!(token_of(&cache.get(reader).await.unwrap()), Some(token), "readers share the token");
    assert!(cache.fill(reader, token, &entry(3)).await.unwrap());
    assert_eq!(hit_of(&cache.get(reader).await.unwrap()), Some(&entry(3)));
    assert!(!cache.fill(reader, token, &entry(3)).await.unwrap(), "a token is for one fill");

    cache.begin_write(&[reader], writer).await.unwrap();
    let inside = cache.get(reader).await.unwrap();
    assert_eq!(inside, Lookup::Miss { fill: None, last_known: Some(Arc::new(entry(3).into())) });
    cache.apply_write(writer, &[change(42, 3, 4)]).await.unwrap();
    assert_eq!(hit_of(&cache.get(reader).await.unwrap()), Some(&entry(4)), "applied at once");

    cache.begin_write(&[reader], writer).await.unwrap();
    cache.apply_write(writer, &[change(42, 4, 4)]).await.unwrap();
    assert_eq!(hit_of(&cache.get(reader).await.unwrap()), Some(&entry(4)), "nothing changed: clean again");

    cache.begin_write(&[reader], writer).await.unwrap();
    cache.begin_write(&[reader], other).await.unwrap();
    cache.apply_write(writer, &[change(42, 4, 5)]).await.unwrap();
    let inside = cache.get(reader).await.unwrap();
    let applied = Some(Arc::new(entry(5).into()));
    assert_eq!(inside, Lookup::Miss { fill: None, last_known: applied }, "applied, but the other one is still inside");
    cache.apply_write(other, &[change(42, 5, 6)]).await.unwrap();
    assert_eq!(hit_of(&cache.get(reader).await.unwrap()), Some(&entry(6)), "clean with the last one");
    cache.begin_write(&[reader], writer).await.unwrap();
    cache.apply_write(writer, &[change(42, 5, 5)]).await.unwrap();
    assert_eq!(hit_of(&cache.get(reader).await.unwrap()), Some(&entry(6)), "it has what the writer found, and more");

    cache.begin_write(&[reader], writer).await.unwrap();
    cache.apply_write(writer, &[change(42, 4, 5)]).await.unwrap();
    let token = token_of(&cache.get(reader).await.unwrap()).expect("SQL had less before the change: what it shows is not the change");
    assert!(cache.fill(reader, token, &entry(5)).await.unwrap(), "what it showed is forgotten");
    cache.begin_write(&[reader], writer).await.unwrap();
    cache.begin_write(&[reader], other).await.unwrap();
    cache.apply_write(writer, &[change(42, 3, 4)]).await.unwrap();
    cache.apply_write(other, &[change(42, 5, 6)]).await.unwrap();
    let forgotten = Lookup::Miss { fill: token_of(&cache.get(reader).await.unwrap()), last_known: None };
    assert_eq!(cache.get(reader).await.unwrap(), forgotten, "no later change fits it");
    let token = token_of(&forgotten).expect("nobody is inside");
    assert!(cache.fill(reader, token, &entry(6)).await.unwrap());

    cache.begin_write(&[reader], writer).await.unwrap();
    cache.begin_write(&[reader], other).await.unwrap();
    cache.apply_write(other, &[change(42, 7, 8)]).await.unwrap();
    cache.apply_write(writer, &[change(42, 6, 7)]).await.unwrap();
    let token = token_of(&cache.get(reader).await.unwrap()).expect("nobody inside, but the change of the first to apply is missing");
    cache.abandon_write(&[reader], other).await.unwrap();
    assert!(!cache.fill(reader, token, &entry(8)).await.unwrap(), "an unknown outcome voids tokens");
    let token = token_of(&cache.get(reader).await.unwrap()).unwrap();
    assert!(!cache.fill(reader, token, &entry(3)).await.unwrap(), "older than what is known");
    assert!(cache.fill(reader, token, &entry(8)).await.unwrap());

    cache.set_epoch(1);
    let token = token_of(&cache.get(reader).await.unwrap()).expect("of an older epoch");
    cache.set_epoch(2);
    assert!(!cache.fill(reader, token, &entry(8)).await.unwrap(), "read in an older epoch");
    let token = token_of(&cache.get(reader).await.unwrap()).unwrap();
    assert!(cache.fill(reader, token, &entry(8)).await.unwrap());
    let both = cache.get_many(&[user(43), reader]).await.unwrap();
    assert!(token_of(&both[0]).is_some());
    assert_eq!(hit_of(&both[1]), Some(&entry(8)));
}

#[tokio::test]
async fn the_usual_course_in_memory() {
    usual_course(&Cache::memory(config())).await;
}

#[tokio::test]
async fn the_usual_course_in_redis() {
    usual_course(&connect(&config(), &shared_redis()).await).await;
}

#[tokio::test]
async fn leases_end_by_themselves() {
    let config = CacheConfig { lease: Duration::from_millis(60), ttl: Duration::from_secs(5), ..config() };
    for cache in [Cache::memory(config.clone()), connect(&config, &shared_redis()).await] {
        cache.begin_write(&[user(1)], Writer(1)).await.unwrap();
        assert_eq!(cache.get(user(1)).await.unwrap(), Lookup::Miss { fill: None, last_known: None });
        eventually("the lease ends", || async { token_of(&cache.get(user(1)).await.unwrap()).is_some() }).await;
        let token = token_of(&cache.get(user(1)).await.unwrap()).unwrap();
        cache.apply_write(Writer(1), &[change(1, 0, 1)]).await.unwrap();
        assert!(!cache.fill(user(1), token, &entry(0)).await.unwrap(), "a late apply voids tokens");
    }
}

/// Too rare for chance to find: one writer commits, another commits after it and dies, and only the
/// second one's lease is over when the first one applies. What the first one knows is not the
/// newest then, though the entry shows just what it found.
#[tokio::test]
async fn a_writer_that_died_inside_taints_the_entry() {
    for renews in [false, true] {
        let mut pair = Pair::new(&shared_redis()).await;
        let (dies, applies) = (Op::Begin { user: 1, writer: 0 }, Op::Begin { user: 1, writer: 1 });
        for op in [Op::Get { user: 1 }, Op::Fill { token: 0, revision: 0 }, dies, Op::PassHalfALease, applies.clone(), Op::PassHalfALease] {
            pair.step(&op).await;
        }
        if renews {
            pair.step(&applies).await;
        }
        pair.step(&Op::Apply { user: 1, writer: 1, before: 0, by: 1 }).await;
        for cache in [&pair.memory, &pair.redis] {
            let lookup = cache.get(user(1)).await.unwrap();
            assert!(token_of(&lookup).is_some(), "renews: {renews}, {lookup:?}");
        }
        pair.finish().await;
    }
}
