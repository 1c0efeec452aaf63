//! The protocol on both engines: that they agree, that a hit is never stale, and what only a real
//! server shows.

mod conformance;
mod facts;
mod leases;
mod lists;
mod live;
mod lives_on;
mod memory;
mod outage;
mod polls;
mod safety;
mod servers;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use secrecy::SecretString;

use super::memory::LeaseClock;
use super::nonce::Nonces;
use super::*;

/// A Redis for the tests that share one. The variable is not optional: a test that is silently
/// skipped proves nothing.
fn shared_redis() -> String {
    std::env::var("HEADMARK_TEST_REDIS").expect("set HEADMARK_TEST_REDIS to a Redis that tests may use, such as redis://127.0.0.1:6379")
}

/// A prefix of its own for each test.
fn fresh_prefix() -> String {
    format!("hmt{:x}:", Nonces::new().next())
}

fn config() -> CacheConfig {
    CacheConfig { prefix: fresh_prefix(), ..CacheConfig::default() }
}

fn redis_at(url: &str) -> RedisConfig {
    // Patient, for machines that are busy with the other tests; those about time-outs set their
    // own.
    RedisConfig { timeout: std::time::Duration::from_secs(10), ..RedisConfig::new(SecretString::from(url)) }
}

async fn connect(config: &CacheConfig, url: &str) -> Cache {
    Cache::redis(config.clone(), redis_at(url)).await.unwrap()
}

/// A cache in memory whose time a test sets.
fn manual_memory(config: CacheConfig) -> (Cache, Arc<AtomicU64>) {
    let now_ms = Arc::new(AtomicU64::new(1));
    let memory = Memory::new(config, LeaseClock::Manual(Arc::clone(&now_ms)));
    (Cache::Memory(Box::new(memory)), now_ms)
}

fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

/// An entry whose only part says its revision.
fn entry(revision: Revision) -> Entry {
    Entry { revision, parts: parts(revision) }
}

fn parts(revision: Revision) -> Parts {
    [("v".into(), revision.to_string().into())].into()
}

fn change(id: i64, before: Revision, after: Revision) -> Change {
    let parts = if before == after { Parts::new() } else { parts(after) };
    Change { user: user(id), before, after, parts: Some(parts) }
}

/// Plain commands, past the cache.
struct Raw(deadpool_redis::redis::aio::MultiplexedConnection);

impl Raw {
    async fn connect(url: &str) -> Self {
        Self(deadpool_redis::redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap())
    }

    async fn ask<T: deadpool_redis::redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        let mut command = deadpool_redis::redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.0).await.unwrap()
    }
}

fn token_of(lookup: &Lookup) -> Option<FillToken> {
    match lookup {
        Lookup::Hit(_) => None,
        Lookup::Miss { fill, .. } => *fill,
    }
}

fn hit_of(lookup: &Lookup) -> Option<&Entry> {
    match lookup {
        Lookup::Hit(entry) => Some(entry),
        Lookup::Miss { .. } => None,
    }
}

/// Asks again and again until the condition holds; fails after ten seconds.
async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let asked = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(10), asked).await.is_ok(), "not within 10 s: {what}");
}

/// The hash with the writers of entries that are not there, beside the entry with this key.
fn writers_beside(key: &str) -> String {
    format!("{}writers", key.split_once('{').unwrap().0)
}

/// As if half a lease had passed on the server: by the leases of the writers of this entry, for its
/// clock is not ours to set.
async fn pass_half_a_lease(raw: &mut Raw, key: &str, lease: Duration) {
    let half = i64::try_from(lease.as_millis()).unwrap() / 2;
    for (hash, field) in [(key, "!w"), (&writers_beside(key), key)] {
        if let Some(writers) = raw.ask::<Option<String>>(&["HGET", hash, field]).await {
            raw.ask::<i64>(&["HSET", hash, field, &aged(&writers, half)]).await;
        }
    }
}

/// As if Redis had evicted an entry, or forgotten the writers of a missing one. Returns whether there was either.
async fn evict(raw: &mut Raw, key: &str) -> bool {
    let was_there: i64 = raw.ask(&["DEL", key]).await;
    let had_writers: i64 = raw.ask(&["HDEL", &writers_beside(key), key]).await;
    was_there + had_writers > 0
}

/// Writers whose leases end so much earlier.
fn aged(writers: &str, by_ms: i64) -> String {
    let aged = |writer: &str| {
        let (token, expiry_ms) = writer.split_once('=').unwrap();
        format!("{token}={}", expiry_ms.parse::<i64>().unwrap() - by_ms)
    };
    writers.split(';').map(aged).collect::<Vec<_>>().join(";")
}
