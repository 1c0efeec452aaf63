//! The promise itself: a hit is never older than what was acknowledged. A simulated database, with
//! writers that may die at any point, readers that may stall at any point, and evictions.
//!
//! Nodes' copies are shown here, but word of a change is never late; `leases.rs` has that.
//!
//! One exception is known, and modelled exactly: Redis evicted (or lost) an entry *between a
//! writer's begin and its commit*. Until that writer applies, which is before it acknowledges
//! anything, a reader may fill the state from before the commit and others may see it; and if the
//! writer dies between commit and apply, or its apply does not reach Redis, they may do so until
//! the next change or the end of the entry's life. In memory there is no exception.

use std::sync::atomic::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

const USERS: usize = 2;
const WRITERS: usize = 3;
const READERS: usize = 3;
const LEASE: Duration = Duration::from_secs(600);

/// What happens next; who is free to do it follows from the state.
#[derive(Debug, Clone)]
enum Step {
    Write {
        writer: usize,
        choice: u8,
    },
    Read {
        reader: usize,
        user: usize,
    },
    Evict {
        user: usize,
    },
    PassHalfALease,
    /// A commit made while the cache was away: the epoch rises first.
    CommitBypassing {
        user: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..WRITERS, any::<u8>()).prop_map(|(writer, choice)| Step::Write { writer, choice }),
        14 => (0..READERS, 0..USERS).prop_map(|(reader, user)| Step::Read { reader, user }),
        2 => (0..USERS).prop_map(|user| Step::Evict { user }),
        2 => Just(Step::PassHalfALease),
        1 => (0..USERS).prop_map(|user| Step::CommitBypassing { user }),
    ]
}

#[derive(Debug, Clone, Copy)]
enum WriterState {
    Idle,
    /// The begin may have been lost to an eviction. After its lease, of two halves, a transaction
    /// can no longer commit.
    Begun {
        user: usize,
        lost: bool,
        halves: u32,
        absent: bool,
    },
    /// `commit` is its place in the list of commits. In doubt, it renews its lease, whether or not that has ended.
    Committed {
        user: usize,
        before: i64,
        after: i64,
        commit: usize,
        in_doubt: bool,
        absent: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum ReaderState {
    Idle,
    Missed { user: usize, token: FillToken },
    Read { user: usize, token: FillToken, revision: i64 },
}

struct Commit {
    user: usize,
    revision: i64,
    /// Made after a begin that was lost, and not applied since.
    excused: bool,
}

enum Engine {
    Memory { now_ms: Arc<AtomicU64> },
    Redis { raw: Raw, prefix: String },
}

struct World {
    cache: Cache,
    engine: Engine,
    db: [i64; USERS],
    commits: Vec<Commit>,
    writers: [WriterState; WRITERS],
    tokens: [u64; WRITERS],
    readers: [ReaderState; READERS],
    next_writer: u64,
    hits: usize,
}

fn id(user: usize) -> i64 {
    i64::try_from(user).unwrap() + 1
}

impl World {
    fn new(cache: Cache, engine: Engine) -> Self {
        let (writers, readers) = ([WriterState::Idle; WRITERS], [ReaderState::Idle; READERS]);
        Self { cache, engine, db: [0; USERS], commits: Vec::new(), writers, tokens: [0; WRITERS], readers, next_writer: 1, hits: 0 }
    }

    async fn step(&mut self, step: &Step) {
        match *step {
            Step::Write { writer, choice } => self.write(writer, choice).await,
            Step::Read { reader, user } => self.read(reader, user).await,
            Step::Evict { user: evicted } => {
                if self.evict(evicted).await {
                    for state in &mut self.writers {
                        if let WriterState::Begun { user, lost, .. } = state {
                            *lost |= *user == evicted;
                        }
                    }
                }
            }
            Step::PassHalfALease => self.pass_half_a_lease().await,
            Step::CommitBypassing { user } => {
                self.cache.set_epoch(self.cache.epoch() + 1);
                self.db[user] += 1;
                self.commits.push(Commit { user, revision: self.db[user], excused: false });
            }
        }
        for user in 0..USERS {
            self.check(user).await;
        }
    }

    async fn write(&mut self, writer: usize, choice: u8) {
        let token = Writer(self.tokens[writer]);
        self.writers[writer] = match self.writers[writer] {
            WriterState::Idle => {
                self.next_writer += 1;
                self.tokens[writer] = self.next_writer;
                let user = usize::from(choice) % USERS;
                let absent = self.begin(user, Writer(self.next_writer)).await;
                WriterState::Begun { user, lost: false, halves: 0, absent }
            }
            WriterState::Begun { user, lost, halves, absent } => match choice % 8 {
                // Dies before the commit.
                0 => WriterState::Idle,
                1 => {
                    self.cache.abandon_write(&[super::user(id(user))], token).await.unwrap();
                    WriterState::Idle
                }
                2 if halves < 2 => {
                    let absent = self.begin(user, token).await;
                    WriterState::Begun { user, lost: false, halves: 0, absent }
                }
                3 if halves < 2 => WriterState::Committed {
                    user,
                    before: self.db[user],
                    after: self.db[user],
                    commit: usize::MAX,
                    in_doubt: false,
                    absent,
                },
                _ if halves < 2 => {
                    let before = self.db[user];
                    self.db[user] += 1;
                    self.commits.push(Commit { user, revision: before + 1, excused: lost });
                    WriterState::Committed { user, before, after: before + 1, commit: self.commits.len() - 1, in_doubt: false, absent }
                }
                _ => WriterState::Begun { user, lost, halves, absent },
            },
            WriterState::Committed { user, before, after, commit, in_doubt, absent } => {
                match choice % 8 {
                    2 => {
                        self.begin(user, token).await;
                        self.writers[writer] = WriterState::Committed { user, before, after, commit, in_doubt: true, absent };
                        return;
                    }
                    // Dies after the commit: the excuse, if it has one, stays.
                    0 => {}
                    1 => {
                        self.cache.abandon_write(&[super::user(id(user))], token).await.unwrap();
                        self.acknowledge(commit);
                    }
                    _ => {
                        if in_doubt {
                            self.cache.abandon_write(&[super::user(id(user))], token).await.unwrap();
                        }
                        let change = change(id(user), before, after);
                        let parts = change.parts.filter(|_| !absent);
                        self.cache.apply_write(token, &[Change { parts, ..change }]).await.unwrap();
                        self.acknowledge(commit);
                    }
                }
                WriterState::Idle
            }
        };
    }

    /// Whether there is no entry.
    async fn begin(&self, user: usize, writer: Writer) -> bool {
        let user = super::user(id(user));
        self.cache.begin_write(&[user], writer).await.unwrap().absent_users.contains(&user)
    }

    fn acknowledge(&mut self, commit: usize) {
        if let Some(commit) = self.commits.get_mut(commit) {
            commit.excused = false;
        }
    }

    async fn read(&mut self, reader: usize, user: usize) {
        self.readers[reader] = match self.readers[reader] {
            ReaderState::Idle => match self.cache.get(super::user(id(user))).await.unwrap() {
                Lookup::Miss { fill: Some(token), .. } => ReaderState::Missed { user, token },
                _ => ReaderState::Idle,
            },
            ReaderState::Missed { user, token } => ReaderState::Read { user, token, revision: self.db[user] },
            ReaderState::Read { user, token, revision } => {
                self.cache.fill(super::user(id(user)), token, &entry(revision)).await.unwrap();
                ReaderState::Idle
            }
        };
    }

    async fn evict(&mut self, user: usize) -> bool {
        match &mut self.engine {
            Engine::Memory { .. } => {
                let Cache::Memory(memory) = &self.cache else { unreachable!() };
                memory.evict(super::user(id(user)));
                // Whatever it evicts, nothing is excused.
                false
            }
            Engine::Redis { raw, prefix } => super::evict(raw, &format!("{prefix}{{u:{}}}", id(user))).await,
        }
    }

    async fn pass_half_a_lease(&mut self) {
        for state in &mut self.writers {
            if let WriterState::Begun { halves, .. } = state {
                *halves += 1;
            }
        }
        match &mut self.engine {
            Engine::Memory { now_ms } => {
                now_ms.fetch_add(u64::try_from(LEASE.as_millis()).unwrap() / 2, Ordering::Relaxed);
            }
            Engine::Redis { raw, prefix } => {
                for user in 0..USERS {
                    super::pass_half_a_lease(raw, &format!("{prefix}{{u:{}}}", id(user)), LEASE).await;
                }
            }
        }
    }

    async fn check(&mut self, user: usize) {
        let lookup = self.cache.get(super::user(id(user))).await.unwrap();
        let Some(hit) = hit_of(&lookup) else { return };
        self.hits += 1;
        let owed = self.commits.iter().filter(|commit| commit.user == user && !commit.excused).map(|commit| commit.revision).max();
        assert!(hit.revision >= owed.unwrap_or(0), "user {user}: shown {}, owed {owed:?}", hit.revision);
        assert!(hit.revision <= self.db[user], "user {user}: shown {} before it was committed", hit.revision);
        assert_eq!(hit.parts, parts(hit.revision), "the parts are of another revision");
    }
}

fn run(cases: u32, world: impl AsyncFn() -> World) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let hits = std::cell::Cell::new(0);
    let outcome = runner.run(&vec(step(), 1..120), |steps| {
        runtime.block_on(async {
            let mut world = world().await;
            for step in &steps {
                world.step(step).await;
            }
            hits.set(hits.get() + world.hits);
            if let Engine::Redis { raw, prefix } = &mut world.engine {
                for user in 0..USERS {
                    super::evict(raw, &format!("{prefix}{{u:{}}}", id(user))).await;
                }
            }
        });
        Ok(())
    });
    outcome.unwrap();
    let hits = hits.get();
    assert!(hits > usize::try_from(cases).unwrap(), "{hits} hits in {cases} cases: too few to prove anything");
}

/// A writer whose lease ends after its commit renews it, when another one has committed and was alone inside.
async fn renew_late(mut world: World) {
    let read = Step::Read { reader: 0, user: 0 };
    let write = |writer, choice| Step::Write { writer, choice };
    let steps = [
        vec![read.clone(), read.clone(), read],
        vec![write(0, 0), write(0, 5), Step::PassHalfALease, Step::PassHalfALease],
        vec![write(1, 0), write(1, 5), write(1, 5)],
        vec![write(0, 2), write(0, 5)],
    ];
    for step in steps.concat() {
        world.step(&step).await;
    }
    assert!(world.hits > 0 && world.db[0] == 2, "{} hits, {:?}", world.hits, world.db);
}

#[test]
fn a_hit_in_memory_is_never_stale() {
    run(3000, async || memory());
}

fn memory() -> World {
    let (cache, now_ms) = manual_memory(CacheConfig { lease: LEASE, ttl: LEASE * 10_000, ..config() });
    World::new(cache, Engine::Memory { now_ms })
}

async fn redis(url: &str) -> World {
    let config = CacheConfig { lease: LEASE, ttl: LEASE, ..config() };
    let engine = Engine::Redis { raw: Raw::connect(url).await, prefix: config.prefix.clone() };
    World::new(connect(&config, url).await, engine)
}

#[tokio::test]
async fn a_late_renewal_hides_nothing_in_memory() {
    renew_late(memory()).await;
}

#[tokio::test]
async fn a_late_renewal_hides_nothing_in_redis() {
    renew_late(redis(&shared_redis()).await).await;
}

#[test]
fn a_hit_in_redis_is_never_stale() {
    let url = shared_redis();
    run(250, async || redis(&url).await);
}
