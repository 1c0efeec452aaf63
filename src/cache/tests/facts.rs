//! Facts in Redis: what is told is never older than an acknowledged write.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::servers::cluster;
use super::*;

const LEASE: Duration = Duration::from_secs(600);

/// What the cache tells of a user and others.
async fn told(cache: &Cache, id: i64, others: &[i64]) -> Option<Vec<u8>> {
    let others: Vec<_> = others.iter().map(|other| user(*other)).collect();
    cache.get_facts(&[(user(id), others.as_slice())]).await.unwrap().pop().unwrap()
}

async fn token(cache: &Cache, id: i64) -> Option<FillToken> {
    cache.facts_token(user(id)).await.unwrap()
}

/// All that there is.
async fn fill(cache: &Cache, id: i64, token: FillToken, of: &[(i64, u8)]) -> bool {
    cache.fill_facts(user(id), token, &codes(of)).await.unwrap()
}

fn codes(of: &[(i64, u8)]) -> Vec<(UserId, u8)> {
    of.iter().map(|(other, code)| (user(*other), *code)).collect()
}

/// Whether there are no facts.
async fn begin(cache: &Cache, id: i64, writer: u64) -> bool {
    cache.begin_write(Written { users: &[], facts: &[user(id)] }, Writer(writer)).await.unwrap().absent_facts.contains(&user(id))
}

async fn apply(cache: &Cache, id: i64, writer: u64, of: &[(i64, u8)]) {
    apply_codes(cache, id, writer, Some(codes(of))).await;
}

async fn apply_codes(cache: &Cache, id: i64, writer: u64, codes: Option<Vec<(UserId, u8)>>) {
    let facts = [FactsChange { user: user(id), codes }];
    cache.apply_write(Writer(writer), Changes { entries: &[], facts: &facts }).await.unwrap();
}

async fn abandon(cache: &Cache, id: i64, writer: u64) {
    cache.abandon_write(Written { users: &[], facts: &[user(id)] }, Writer(writer)).await.unwrap();
}

async fn fresh() -> (Cache, Raw, String) {
    let (config, url) = (config(), shared_redis());
    let key = format!("{}{{u:1}}:r", config.prefix);
    (connect(&config, &url).await, Raw::connect(&url).await, key)
}

#[tokio::test]
async fn a_writer_that_was_alone_applies_what_it_changed() {
    let (cache, mut raw, key) = fresh().await;
    assert_eq!(told(&cache, 1, &[2, 3]).await, None);
    let first = token(&cache, 1).await.expect("nobody is inside");
    assert_eq!(token(&cache, 1).await, Some(first), "readers share it");
    assert_eq!(told(&cache, 1, &[2]).await, None, "given, not filled");
    assert!(fill(&cache, 1, first, &[(2, 17), (3, 8)]).await);
    assert!(!fill(&cache, 1, first, &[(2, 1)]).await, "it is filled once");
    assert_eq!(told(&cache, 1, &[4, 2, 3]).await, Some(vec![0, 17, 8]), "one who is not there is nothing");
    assert_eq!(token(&cache, 1).await, None, "what is clean is not filled");

    begin(&cache, 1, 7).await;
    assert_eq!((told(&cache, 1, &[3]).await, token(&cache, 1).await), (None, None), "a writer is inside");
    apply(&cache, 1, 7, &[(2, 0), (4, 1)]).await;
    assert_eq!(told(&cache, 1, &[2, 3, 4]).await, Some(vec![0, 8, 1]));
    begin(&cache, 1, 8).await;
    apply(&cache, 1, 8, &[]).await;
    assert_eq!(told(&cache, 1, &[2, 3, 4]).await, Some(vec![0, 8, 1]), "nothing changed");

    begin(&cache, 1, 9).await;
    abandon(&cache, 1, 9).await;
    assert_eq!(told(&cache, 1, &[3]).await, None, "nobody knows what became of it");
    let second = token(&cache, 1).await.unwrap();
    begin(&cache, 1, 10).await;
    assert!(!fill(&cache, 1, second, &[(2, 1)]).await, "its token died");
    apply(&cache, 1, 10, &[(2, 1)]).await;
    assert_eq!(told(&cache, 1, &[2]).await, None, "all of it must be read again");

    begin(&cache, 5, 11).await;
    apply(&cache, 5, 11, &[(1, 1)]).await;
    assert_eq!(raw.ask::<i64>(&["EXISTS", &key.replace("u:1", "u:5")]).await, 0, "nothing is kept of one of whom nothing was");
}

#[tokio::test]
async fn of_writers_that_were_inside_together_none_is_the_last() {
    let (cache, _, _) = fresh().await;
    for later_first in [false, true] {
        let of_user = token(&cache, 1).await.unwrap();
        assert!(fill(&cache, 1, of_user, &[(2, 1)]).await);
        begin(&cache, 1, 7).await;
        begin(&cache, 1, 8).await;
        for writer in if later_first { [8, 7] } else { [7, 8] } {
            apply(&cache, 1, writer, &[(2, u8::try_from(writer).unwrap())]).await;
            assert_eq!(told(&cache, 1, &[2]).await, None);
        }
    }
    let of_user = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, of_user, &[(2, 1)]).await);
    apply(&cache, 1, 9, &[(2, 3)]).await;
    assert_eq!(told(&cache, 1, &[2]).await, None, "one that was not inside to the end may have committed after what was read");
}

#[tokio::test]
async fn another_epoch_begins_anew() {
    let (cache, _, _) = fresh().await;
    let old = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, old, &[(2, 1)]).await);
    cache.set_epoch(1);
    assert_eq!(told(&cache, 1, &[2]).await, None);
    let new = token(&cache, 1).await.unwrap();
    assert!(new != old && !fill(&cache, 1, old, &[(2, 1)]).await, "read in an older epoch");
    assert!(fill(&cache, 1, new, &[(3, 1)]).await);
    assert_eq!(told(&cache, 1, &[2, 3]).await, Some(vec![0, 1]));
}

/// Nothing would tell that a fact is wrong, so that one that is must not live for as long as its user
/// is written to.
#[tokio::test]
async fn no_write_lets_facts_live_for_longer() {
    let config = CacheConfig { ttl: Duration::from_millis(900), lease: Duration::from_millis(300), ..config() };
    let cache = connect(&config, &shared_redis()).await;
    let of_user = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, of_user, &[(2, 1)]).await);
    let mut was_told = false;
    for writer in 0..30 {
        begin(&cache, 1, writer).await;
        apply(&cache, 1, writer, &[(3, 1)]).await;
        was_told |= told(&cache, 1, &[2]).await.is_some();
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    assert!(was_told, "a write alone does not end them");
    assert_eq!(told(&cache, 1, &[2]).await, None, "what was filled in is read again once its life is over");
}

/// A reader that stood still for longer than others committed past the cache.
#[tokio::test]
async fn what_was_read_long_ago_is_not_filled_in() {
    let (cache, mut raw, key) = fresh().await;
    let old = token(&cache, 1).await.unwrap();
    let given: String = raw.ask(&["HGET", &key, "!g"]).await;
    let (rest, dies) = given.rsplit_once(':').unwrap();
    let aged = format!("{rest}:{}", dies.parse::<i64>().unwrap() - 10_000);
    let _: i64 = raw.ask(&["HSET", &key, "!g", &aged]).await;
    assert!(!fill(&cache, 1, old, &[(2, 1)]).await, "its token has died");
    let new = token(&cache, 1).await.unwrap();
    assert!(new != old, "nor is it shared");
    assert!(fill(&cache, 1, new, &[(2, 1)]).await);
}

#[tokio::test]
async fn facts_are_bounded() {
    let (cache, mut raw, key) = fresh().await;
    for (others, encoding) in [(10..20, "listpack"), (20..60, "hashtable")] {
        let of_user = token(&cache, 1).await.unwrap();
        assert!(fill(&cache, 1, of_user, &others.map(|other| (other, 1)).collect::<Vec<_>>()).await);
        assert_eq!(raw.ask::<String>(&["OBJECT", "ENCODING", &key]).await, encoding, "many are not looked for one after the other");
        assert!(raw.ask::<i64>(&["PTTL", &key]).await > 0);
        cache.set_epoch(cache.epoch() + 1);
    }
    let of_user = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, of_user, &(10..10_010).map(|other| (other, 1)).collect::<Vec<_>>()).await);
    assert_eq!(told(&cache, 1, &[2, 10, 10_009]).await, Some(vec![0, 1, 1]));
    let more: Vec<_> = (20_000..30_000).map(|other| (other, 1)).collect();
    for is_kept in [true, false] {
        begin(&cache, 1, 7).await;
        apply(&cache, 1, 7, &more).await;
        assert_eq!(told(&cache, 1, &[10, 20_000]).await.is_some(), is_kept, "one that has grown too large is read again");
    }
}

#[derive(Debug, Clone)]
enum Op {
    /// A writer enters, as it does before its commit.
    Begin(u64),
    /// A writer that is inside commits a new truth.
    Commit(u64),
    /// A writer goes, and anyone who waits for it is answered.
    End(u64),
    /// A reader is given a token …
    Token(usize),
    /// … and reads SQL …
    Read(usize),
    /// … and fills in what it read.
    Fill(usize),
    /// A reader does all three at once.
    Refill,
    PassHalfALease,
    /// Redis, which is full, takes the hash out.
    Flush,
}

fn op() -> impl Strategy<Value = Op> {
    let (writer, reader) = (0..3_u64, 0..3_usize);
    prop_oneof![
        6 => writer.clone().prop_map(Op::Begin),
        6 => writer.clone().prop_map(Op::Commit),
        6 => writer.prop_map(Op::End),
        2 => reader.clone().prop_map(Op::Token),
        2 => reader.clone().prop_map(Op::Read),
        2 => reader.prop_map(Op::Fill),
        3 => Just(Op::Refill),
        1 => Just(Op::PassHalfALease),
        1 => Just(Op::Flush),
    ]
}

/// One user and two others, to each a truth: a number that goes up. A transaction ends before its
/// writer's lease does, as those of lanes do.
struct Scene {
    cache: Cache,
    raw: Raw,
    key: String,
    truth: [u8; 2],
    /// The newest truths that were acknowledged.
    acknowledged: [u8; 2],
    /// For each writer inside: half leases since it began, and what it committed.
    inside: [Option<(u8, Option<u8>)>; 3],
    /// The writers that renewed their lease, as those do whose commit is in doubt.
    renewed: [bool; 3],
    /// The writers that found no facts.
    absent: [bool; 3],
    readers: [(Option<FillToken>, Option<[u8; 2]>); 3],
}

impl Scene {
    async fn fill(&self, token: FillToken, read: [u8; 2]) {
        // The first truth is that the two are nothing to each other.
        let all: Vec<_> = OTHERS.into_iter().zip(read).filter(|(_, read)| *read > 0).collect();
        fill(&self.cache, 1, token, &all).await;
    }

    async fn step(&mut self, op: &Op) {
        match *op {
            Op::Begin(writer) => {
                self.absent[of(writer).0] = begin(&self.cache, 1, writer).await;
                let before = self.inside[of(writer).0];
                self.renewed[of(writer).0] = before.is_some();
                self.inside[of(writer).0] = Some((0, before.and_then(|(_, committed)| committed)));
            }
            Op::Commit(writer) => {
                if let Some((0 | 1, committed)) = &mut self.inside[of(writer).0] {
                    self.truth[of(writer).1] += 1;
                    *committed = Some(self.truth[of(writer).1]);
                }
            }
            Op::End(writer) => match self.inside[of(writer).0].take() {
                Some((_, Some(committed))) => {
                    if self.renewed[of(writer).0] {
                        abandon(&self.cache, 1, writer).await;
                    } else {
                        let codes = codes(&[(OTHERS[of(writer).1], committed)]);
                        apply_codes(&self.cache, 1, writer, Some(codes).filter(|_| !self.absent[of(writer).0])).await;
                    }
                    let acknowledged = &mut self.acknowledged[of(writer).1];
                    *acknowledged = committed.max(*acknowledged);
                }
                Some((_, None)) => abandon(&self.cache, 1, writer).await,
                None => {}
            },
            Op::Token(reader) => self.readers[reader] = (token(&self.cache, 1).await, None),
            Op::Read(reader) => self.readers[reader].1 = Some(self.truth),
            Op::Fill(reader) => {
                if let (Some(token), Some(read)) = self.readers[reader] {
                    self.fill(token, read).await;
                }
            }
            Op::Refill => {
                if let Some(token) = token(&self.cache, 1).await {
                    self.fill(token, self.truth).await;
                }
            }
            Op::PassHalfALease => {
                self.inside.iter_mut().flatten().for_each(|(halves, _)| *halves += 1);
                pass_half_a_lease(&mut self.raw, &self.key, LEASE).await;
            }
            Op::Flush => drop(evict(&mut self.raw, &self.key).await),
        }
        if let Some(shown) = told(&self.cache, 1, &OTHERS).await {
            let is_new = shown.iter().zip(self.acknowledged).all(|(shown, acknowledged)| *shown >= acknowledged);
            assert!(is_new, "{:?} are acknowledged, {shown:?} are shown", self.acknowledged);
        }
    }
}

const OTHERS: [i64; 2] = [2, 3];

/// Where a writer is, and which of the others it writes: the first is written by two.
fn of(writer: u64) -> (usize, usize) {
    let at = usize::try_from(writer).unwrap();
    (at, at / 2)
}

#[test]
fn no_fact_is_older_than_what_was_acknowledged() {
    let url = shared_redis();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&vec(op(), 1..200), |ops| {
        runtime.block_on(async {
            let config = CacheConfig { lease: LEASE, ttl: LEASE, ..config() };
            let key = format!("{}{{u:1}}:r", config.prefix);
            let (cache, raw) = (connect(&config, &url).await, Raw::connect(&url).await);
            let mut scene = Scene {
                cache,
                raw,
                key,
                truth: [0; 2],
                acknowledged: [0; 2],
                inside: [None; 3],
                renewed: [false; 3],
                absent: [false; 3],
                readers: [(None, None); 3],
            };
            for op in &ops {
                scene.step(op).await;
            }
            evict(&mut scene.raw, &scene.key).await;
        });
        Ok(())
    });
    outcome.unwrap();
}

#[tokio::test]
async fn engine_a_cluster_has_facts_too() {
    let servers = cluster().await;
    let redis = RedisConfig { cluster: true, timeout: Duration::from_secs(2), ..redis_at(&servers[0].url()) };
    let cache = Cache::redis(config(), redis).await.unwrap();
    for id in 1..=40 {
        let of_user = token(&cache, id).await.unwrap();
        assert!(fill(&cache, id, of_user, &[(id + 1, 17)]).await);
    }
    let users: Vec<_> = (1..=40).map(user).collect();
    let others: Vec<_> = (2..=41).map(|other| [user(other)]).collect();
    let asked: Vec<_> = users.iter().copied().zip(others.iter().map(<[UserId; 1]>::as_slice)).collect();
    let all = async |code: Option<u8>| assert_eq!(cache.get_facts(&asked).await.unwrap(), vec![code.map(|code| vec![code]); 40]);
    all(Some(17)).await;
    cache.begin_write(Written { users: &users, facts: &users }, Writer(1)).await.unwrap();
    all(None).await;
    let facts: Vec<_> =
        users.iter().map(|user| FactsChange { user: *user, codes: Some(vec![((user.get() + 1).try_into().unwrap(), 1)]) }).collect();
    let entries: Vec<_> = (1..=40).map(|id| change(id, 0, 1)).collect();
    assert!(cache.apply_write(Writer(1), Changes { entries: &entries, facts: &facts }).await.unwrap(), "it was inside of all");
    all(Some(1)).await;
}
