//! Facts in Redis: what is told is never older than an acknowledged write.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::servers::cluster;
use super::*;

const LEASE: Duration = Duration::from_secs(600);

/// What the cache tells of a user and others.
async fn told(cache: &Cache, id: i64, others: &[i64]) -> Vec<Option<u8>> {
    let others: Vec<_> = others.iter().map(|other| user(*other)).collect();
    cache.get_facts(&[(user(id), others.as_slice())]).await.unwrap().pop().unwrap().codes
}

async fn token(cache: &Cache, id: i64) -> Option<FillToken> {
    cache.facts_tokens(&[user(id)]).await.unwrap().pop().unwrap()
}

async fn fill(cache: &Cache, id: i64, token: FillToken, of: &[(i64, u8)]) -> bool {
    let codes = of.iter().map(|(other, code)| (user(*other), *code)).collect();
    cache.fill_facts(&[Facts { user: user(id), token, codes, complete: false }]).await.unwrap() == 1
}

/// All that there is.
async fn fill_all(cache: &Cache, id: i64, token: FillToken, of: &[(i64, u8)]) -> bool {
    let codes = of.iter().map(|(other, code)| (user(*other), *code)).collect();
    cache.fill_facts(&[Facts { user: user(id), token, codes, complete: true }]).await.unwrap() == 1
}

fn pairs(of: &[(i64, &[i64])]) -> Vec<(UserId, Vec<UserId>)> {
    of.iter().map(|(id, others)| (user(*id), others.iter().map(|other| user(*other)).collect())).collect()
}

async fn fresh() -> (Cache, Raw, CacheConfig) {
    let (config, url) = (config(), shared_redis());
    (connect(&config, &url).await, Raw::connect(&url).await, config)
}

#[tokio::test]
async fn what_sql_told_is_kept_until_somebody_writes_it() {
    let (cache, _, _) = fresh().await;
    assert_eq!(told(&cache, 1, &[2, 3]).await, [None, None]);
    let first = token(&cache, 1).await.expect("nobody is inside");
    assert_eq!(token(&cache, 1).await, Some(first), "readers share it");
    assert!(fill(&cache, 1, first, &[(2, 17), (3, 0)]).await);
    assert!(fill(&cache, 1, first, &[(4, 8)]).await, "it stays, for those who hold it too");
    assert_eq!(told(&cache, 1, &[4, 2, 3, 5]).await, [Some(8), Some(17), Some(0), None]);

    let changed = pairs(&[(1, &[2]), (2, &[1])]);
    cache.begin_facts_write(&changed, Writer(7)).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 3]).await, [None, Some(0)], "what may change is gone, and the rest is as true as before");
    assert_eq!(token(&cache, 1).await, None, "a writer is inside");
    assert!(!fill(&cache, 1, first, &[(5, 1)]).await, "its token died");
    assert_eq!(token(&cache, 2).await, None, "of the other one too");
    cache.begin_facts_write(&changed, Writer(8)).await.unwrap();
    cache.end_facts_write(&changed, Writer(7)).await.unwrap();
    assert_eq!(token(&cache, 1).await, None, "another one still is");
    cache.end_facts_write(&changed, Writer(8)).await.unwrap();
    let second = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, second, &[(2, 1)]).await);
    assert_eq!(told(&cache, 1, &[2, 3]).await, [Some(1), Some(0)]);

    cache.end_facts_write(&changed, Writer(9)).await.unwrap();
    assert_eq!(
        told(&cache, 1, &[2, 3]).await,
        [None, Some(0)],
        "one that was not inside to the end may have committed after what was read"
    );
    assert!(!fill(&cache, 1, second, &[(2, 1)]).await);
}

#[tokio::test]
async fn one_who_is_not_in_a_complete_hash_is_nothing_until_somebody_writes_the_two() {
    let (cache, mut raw, config) = fresh().await;
    let key = format!("{}{{u:1}}:r", config.prefix);
    let first = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, first, &[(9, 1)]).await);
    assert!(fill_all(&cache, 1, first, &[(2, 17), (3, 8)]).await);
    assert_eq!(told(&cache, 1, &[2, 3, 4, 9]).await, [Some(17), Some(8), Some(0), Some(0)], "what was kept before is gone");
    assert!(fill(&cache, 1, first, &[(5, 1)]).await);
    assert_eq!(told(&cache, 1, &[2, 5, 6]).await, [Some(17), Some(1), Some(0)], "one more leaves it complete");

    let changed = pairs(&[(1, &[2, 4])]);
    cache.begin_facts_write(&changed, Writer(7)).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 3, 4, 6]).await, [None, Some(8), None, Some(0)], "what may change is not known");
    assert!(!fill_all(&cache, 1, first, &[(2, 17)]).await, "its token died");
    cache.end_facts_write(&changed, Writer(7)).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 4, 6]).await, [None, None, Some(0)]);
    let second = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, second, &[(2, 0), (4, 1)]).await);
    assert_eq!(told(&cache, 1, &[2, 4, 6]).await, [Some(0), Some(1), Some(0)]);
    cache.end_facts_write(&changed, Writer(9)).await.unwrap();
    assert_eq!(told(&cache, 1, &[2, 4, 6]).await, [None, None, Some(0)], "one that was not inside to the end");

    // Nobody at all, and many: either is bounded by the life of what is kept.
    let third = token(&cache, 1).await.unwrap();
    assert!(fill_all(&cache, 1, third, &[]).await);
    assert_eq!(told(&cache, 1, &[2, 4]).await, [Some(0), Some(0)]);
    let many: Vec<_> = (10..10_010).map(|other| (other, 1)).collect();
    assert!(fill_all(&cache, 1, third, &many).await);
    assert_eq!(told(&cache, 1, &[2, 10, 10_009]).await, [Some(0), Some(1), Some(1)]);
    assert!(raw.ask::<i64>(&["PTTL", &key]).await > 0);
    let crowd: Vec<i64> = (20_000..30_000).collect();
    let crowd = pairs(&[(1, crowd.as_slice())]);
    for writer in [Writer(1), Writer(2)] {
        cache.begin_facts_write(&crowd, writer).await.unwrap();
        cache.end_facts_write(&crowd, writer).await.unwrap();
    }
    assert_eq!(told(&cache, 1, &[2, 10]).await, [None, None], "one that has grown too large begins again, and says nothing meanwhile");
}

#[tokio::test]
async fn another_epoch_begins_anew() {
    let (cache, _, _) = fresh().await;
    let old = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, old, &[(2, 1)]).await);
    cache.set_epoch(1);
    assert_eq!(told(&cache, 1, &[2]).await, [None]);
    assert!(!fill(&cache, 1, old, &[(2, 1)]).await, "read in an older epoch");
    let new = token(&cache, 1).await.unwrap();
    assert_ne!(new, old);
    assert!(fill(&cache, 1, new, &[(3, 1)]).await);
    assert_eq!(told(&cache, 1, &[2, 3]).await, [None, Some(1)]);
}

#[tokio::test]
async fn a_lease_ends_by_itself_and_what_is_kept_expires() {
    let url = shared_redis();
    let config = CacheConfig { lease: Duration::from_millis(60), ttl: Duration::from_millis(400), ..config() };
    let (cache, mut raw) = (connect(&config, &url).await, Raw::connect(&url).await);
    let key = format!("{}{{u:1}}:r", config.prefix);
    cache.begin_facts_write(&pairs(&[(1, &[2])]), Writer(1)).await.unwrap();
    assert_eq!(token(&cache, 1).await, None);
    eventually("the lease ends", || async { token(&cache, 1).await.is_some() }).await;
    let late = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, late, &[(2, 0), (3, 0)]).await);
    // However often others are written: it is not kept for longer.
    eventually("what is kept is too old", || async {
        cache.begin_facts_write(&pairs(&[(1, &[9])]), Writer(2)).await.unwrap();
        cache.end_facts_write(&pairs(&[(1, &[9])]), Writer(2)).await.unwrap();
        told(&cache, 1, &[3]).await == [None]
    })
    .await;
    assert_eq!(raw.ask::<i64>(&["EXISTS", &key]).await, 0, "one that says nothing is not kept");
    cache.begin_facts_write(&pairs(&[(1, &[9])]), Writer(2)).await.unwrap();
    assert_eq!(raw.ask::<i64>(&["EXISTS", &key]).await, 0, "a writer makes none");
    let ttl_ms: i64 = raw.ask(&["PTTL", &format!("{key}w")]).await;
    assert!((1..=60).contains(&ttl_ms), "{ttl_ms}");
    cache.end_facts_write(&pairs(&[(1, &[9])]), Writer(2)).await.unwrap();
    let of_user = token(&cache, 1).await.unwrap();
    assert!(fill(&cache, 1, of_user, &[(2, 0)]).await);
    let ttl_ms: i64 = raw.ask(&["PTTL", &key]).await;
    assert!((1..=400).contains(&ttl_ms), "{ttl_ms}");
}

#[tokio::test]
async fn facts_of_a_user_are_bounded_and_many_writers_leave_nothing() {
    let (cache, mut raw, config) = fresh().await;
    let key = format!("{}{{u:1}}:r", config.prefix);
    let of_user = token(&cache, 1).await.unwrap();
    for (others, encoding) in [(10..20, "listpack"), (20..60, "hashtable")] {
        assert!(fill(&cache, 1, of_user, &others.map(|other| (other, 1)).collect::<Vec<_>>()).await);
        assert_eq!(raw.ask::<String>(&["OBJECT", "ENCODING", &key]).await, encoding, "many are not looked for one after the other");
    }
    let many: Vec<_> = (10..20_000).map(|other| (other, 1)).collect();
    assert!(fill(&cache, 1, of_user, &many).await);
    assert!(fill(&cache, 1, of_user, &[(5, 1)]).await);
    assert_eq!(told(&cache, 1, &[5, 10]).await, [Some(1), None], "one that has grown too large begins again");
    let everybody: Vec<i64> = (10..5000).collect();
    let (star, fans) = ([(1, everybody.as_slice())], everybody.iter().map(|fan| (user(*fan), vec![user(1)])).collect::<Vec<_>>());
    for (written, writer) in [(pairs(&star), Writer(1)), (fans, Writer(2))] {
        cache.begin_facts_write(&written, writer).await.unwrap();
        cache.end_facts_write(&written, writer).await.unwrap();
    }
    assert_eq!(raw.ask::<i64>(&["EXISTS", &format!("{key}w"), &format!("{}{{u:10}}:rw", config.prefix)]).await, 0);
    assert_eq!(raw.ask::<i64>(&["EXISTS", &format!("{}{{u:10}}:r", config.prefix)]).await, 0);
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
    PassHalfALease,
    /// Redis, which is full, takes the hash out …
    Flush,
    /// … or who is inside.
    LoseWriters,
}

fn op() -> impl Strategy<Value = Op> {
    let (writer, reader) = (0..3_u64, 0..3_usize);
    prop_oneof![
        3 => writer.clone().prop_map(Op::Begin),
        3 => writer.clone().prop_map(Op::Commit),
        3 => writer.prop_map(Op::End),
        4 => reader.clone().prop_map(Op::Token),
        4 => reader.clone().prop_map(Op::Read),
        4 => reader.prop_map(Op::Fill),
        1 => Just(Op::PassHalfALease),
        1 => Just(Op::Flush),
        1 => Just(Op::LoseWriters),
    ]
}

/// One pair and its truth, which is a number that goes up. A transaction ends before its writer's
/// lease does, as those of lanes do.
struct Scene {
    cache: Cache,
    raw: Raw,
    key: String,
    writers: String,
    truth: u8,
    /// The newest truth that was acknowledged.
    acknowledged: u8,
    /// For each writer inside: half leases since it written, and what it committed.
    inside: [Option<(u8, Option<u8>)>; 3],
    readers: [(Option<FillToken>, Option<u8>); 3],
}

impl Scene {
    async fn step(&mut self, op: &Op) {
        match *op {
            Op::Begin(writer) => {
                self.cache.begin_facts_write(&pairs(&[(1, &[2])]), Writer(writer)).await.unwrap();
                let committed = self.inside[usize::try_from(writer).unwrap()].and_then(|(_, committed)| committed);
                self.inside[usize::try_from(writer).unwrap()] = Some((0, committed));
            }
            Op::Commit(writer) => {
                if let Some((0 | 1, committed)) = &mut self.inside[usize::try_from(writer).unwrap()] {
                    self.truth += 1;
                    *committed = Some(self.truth);
                }
            }
            Op::End(writer) => {
                let Some((_, committed)) = self.inside[usize::try_from(writer).unwrap()].take() else { return };
                self.cache.end_facts_write(&pairs(&[(1, &[2])]), Writer(writer)).await.unwrap();
                self.acknowledged = self.acknowledged.max(committed.unwrap_or_default());
            }
            Op::Token(reader) => self.readers[reader] = (token(&self.cache, 1).await, None),
            Op::Read(reader) => self.readers[reader].1 = Some(self.truth),
            Op::Fill(reader) => {
                if let (Some(token), Some(read)) = self.readers[reader] {
                    // Of the last reader all; the first truth is that the two are nothing to each
                    // other.
                    let all: &[(i64, u8)] = if read == 0 { &[] } else { &[(2, read)] };
                    if reader == 2 {
                        fill_all(&self.cache, 1, token, all).await;
                    } else {
                        fill(&self.cache, 1, token, &[(2, read)]).await;
                    }
                }
            }
            Op::PassHalfALease => {
                self.inside.iter_mut().flatten().for_each(|(halves, _)| *halves += 1);
                pass_half_of_the_leases(&mut self.raw, &self.writers).await;
            }
            Op::Flush => drop(self.raw.ask::<i64>(&["DEL", &self.key]).await),
            Op::LoseWriters => drop(self.raw.ask::<i64>(&["DEL", &self.writers]).await),
        }
        if let [Some(shown)] = told(&self.cache, 1, &[2]).await[..] {
            assert!(shown >= self.acknowledged, "{} is acknowledged, {shown} is shown", self.acknowledged);
        }
    }
}

/// Takes half a lease from each writer, and from the key's own life, which ends with that of the
/// last one.
async fn pass_half_of_the_leases(raw: &mut Raw, key: &str) {
    let Some(writers) = raw.ask::<Option<String>>(&["GET", key]).await else { return };
    let half = i64::try_from(LEASE.as_millis()).unwrap() / 2;
    let left_ms: i64 = raw.ask(&["PTTL", key]).await;
    raw.ask::<String>(&["SET", key, &aged(&writers, half), "PX", &left_ms.to_string()]).await;
    // In the past: it is deleted.
    raw.ask::<i64>(&["PEXPIRE", key, &(left_ms - half).to_string()]).await;
}

#[test]
fn no_fact_is_older_than_what_was_acknowledged() {
    let url = shared_redis();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&vec(op(), 1..60), |ops| {
        runtime.block_on(async {
            let config = CacheConfig { lease: LEASE, ttl: LEASE, ..config() };
            let key = format!("{}{{u:1}}:r", config.prefix);
            let (cache, raw, writers) = (connect(&config, &url).await, Raw::connect(&url).await, format!("{key}w"));
            let mut scene = Scene { cache, raw, key, writers, truth: 0, acknowledged: 0, inside: [None; 3], readers: [(None, None); 3] };
            for op in &ops {
                scene.step(op).await;
            }
            let _: i64 = scene.raw.ask(&["DEL", &scene.key, &scene.writers]).await;
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
    let others: Vec<_> = (2..=41).map(|other| [user(other)]).collect();
    let asked: Vec<_> = (1..=40).map(user).zip(others.iter().map(<[UserId; 1]>::as_slice)).collect();
    let all = async |code| assert_eq!(cache.get_facts(&asked).await.unwrap(), vec![Told { complete: false, codes: vec![code] }; 40]);
    all(Some(17)).await;
    let written: Vec<_> = (1..=40).map(|id| (user(id), vec![user(id + 1)])).collect();
    cache.begin_facts_write(&written, Writer(1)).await.unwrap();
    all(None).await;
    cache.end_facts_write(&written, Writer(1)).await.unwrap();
    assert!(token(&cache, 1).await.is_some());
}
