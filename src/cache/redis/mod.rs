//! The cache that all nodes share: one hash for each user in Redis or Redis Cluster.
//!
//! `beside.rs` and `facts.rs` hold what is kept beside the entries, `wire.rs` connects and sends, `breaker.rs` fails fast while that does not work, `reads.rs` makes one pipeline of many reads, `pipe.rs` is the
//! connection for them, `resp.rs` what is said over it, `scripts.rs` builds the calls and reads the replies, `wakes.rs` holds the subscription. To add an operation: a `.lua` in `scripts/`, a
//! field in `Scripts`, a method here, the same in `entry.rs`, and a step in the test that compares the two.

mod beside;
mod breaker;
mod facts;
mod pipe;
mod reads;
mod resp;
mod scripts;
mod wakes;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use deadpool_redis::redis::{Cmd, RedisError, ServerErrorKind, Value, cmd};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::breaker::Breaker;
use self::reads::ReadQueue;
use self::scripts::{Form, Scripts, is_yes, read_answers, read_hash, read_lookup};
use self::wire::{Links, Wire};
use super::hub::{Hub, Listener};
use super::meters::Meters;
use super::nonce::Nonces;
use super::{CacheConfig, CacheError, Change, Entry, FillToken, Lookup, RedisConfig, Writer};
use crate::base::ids::UserId;

/// How long the key lives with which a node tries whether Redis takes writes.
const PROBE_TTL_MS: u64 = 10_000;

/// Commands in one pipeline, or keys in its calls: bounds what one reply holds in memory, and how long Redis keeps others waiting.
const COMMANDS_PER_PIPELINE: usize = 256;

/// Keys in one call of a writer's script. A call costs Redis as much as what the script does to two or three keys. On a cluster keys live apart, and each
/// has a call of its own.
const KEYS_PER_CALL: usize = 64;

/// The cache in Redis.
pub struct Redis {
    shared: Arc<Shared>,
    reads: ReadQueue,
    hub: Arc<Hub>,
    epoch: AtomicI64,
    nonces: Nonces,
    /// The breaker's probe and the subscription; they end with the cache.
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// What the operations and the background tasks share.
struct Shared {
    config: CacheConfig,
    redis: RedisConfig,
    links: ArcSwap<Links>,
    breaker: Breaker,
    scripts: Scripts,
    meters: Meters,
}

/// How long calls may take that go out in several pipelines.
#[derive(Debug, Clone, Copy)]
enum Limit {
    /// All of them together, until then: a poll waits for the answer.
    Until(Instant),
    /// Each pipeline has the timeout of one operation; all together have one lease, after which a writer counts as gone. How many pipelines a batch needs depends on
    /// how many users it has, and on a cluster on their keys, which go one by one: that they take long does not say that Redis is away.
    EachTurn,
}

impl Shared {
    /// When an operation that begins now has to be over.
    fn deadline(&self) -> Instant {
        Instant::now() + self.redis.timeout
    }

    fn key(&self, user: UserId) -> String {
        format!("{}{{u:{user}}}", self.config.prefix)
    }

    fn keys(&self, users: impl IntoIterator<Item = UserId>) -> Vec<String> {
        users.into_iter().map(|user| self.key(user)).collect()
    }

    /// How many keys go into one call of a script that takes many.
    fn keys_per_call(&self) -> usize {
        if self.redis.cluster { 1 } else { KEYS_PER_CALL }
    }

    fn wake_channel(&self, user: UserId) -> String {
        format!("{}wake:{{u:{user}}}", self.config.prefix)
    }

    fn scripts_wire(&self) -> Wire {
        self.links.load().scripts.clone()
    }

    /// Sends, bounded by the deadline, and tells the breaker how it went. As many results as commands.
    async fn send(&self, wire: Wire, commands: Vec<Cmd>, deadline: Instant) -> Result<Vec<Result<Value, RedisError>>, CacheError> {
        self.breaker.check()?;
        self.meters.commands(commands.len());
        let begun = Instant::now();
        match tokio::time::timeout_at(deadline, wire.send(commands)).await {
            Ok(results) => {
                match results.iter().find_map(|result| result.as_ref().err().filter(|error| wire::is_outage(error))) {
                    Some(error) => self.failed(&error.to_string()),
                    None => self.breaker.succeeded(),
                }
                Ok(results)
            }
            Err(_) => {
                // What had waited for its turn until shortly before the deadline tells nothing about Redis.
                if begun.elapsed() >= self.redis.timeout / 2 {
                    self.failed("no answer in time");
                }
                Err(CacheError::Away("no answer in time".to_owned()))
            }
        }
    }

    fn failed(&self, reason: &str) {
        if self.breaker.failed() {
            self.meters.breaker(true);
            tracing::warn!(reason, "Redis is away: the breaker opens");
        }
    }

    /// Runs one script call for each item, in pipelines. Every call is sent, whatever became of the others of its pipeline; the first error
    /// is returned.
    async fn run<T>(&self, items: &[T], deadline: Instant, call: impl Fn(&T, Form) -> Cmd) -> Result<Vec<Value>, CacheError> {
        self.run_by(COMMANDS_PER_PIPELINE, items, Limit::Until(deadline), call).await
    }

    /// The same for a writer, with a call for each chunk of items, as many as go into one call.
    async fn run_chunks<T>(&self, items: &[T], call: impl Fn(&[T], Form) -> Cmd) -> Result<Vec<Value>, CacheError> {
        let keys = self.keys_per_call();
        let chunks: Vec<&[T]> = items.chunks(keys).collect();
        self.run_by(COMMANDS_PER_PIPELINE / keys, &chunks, Limit::EachTurn, |chunk, form| call(chunk, form)).await
    }

    async fn run_by<T>(&self, at_once: usize, items: &[T], limit: Limit, call: impl Fn(&T, Form) -> Cmd) -> Result<Vec<Value>, CacheError> {
        let mut values = Vec::with_capacity(items.len());
        let mut failure = None;
        let lease_ends = Instant::now() + self.config.lease;
        for chunk in items.chunks(at_once) {
            let deadline = match limit {
                Limit::Until(deadline) => deadline,
                Limit::EachTurn => self.deadline().min(lease_ends),
            };
            let commands = chunk.iter().map(|item| call(item, Form::Hash)).collect();
            let mut results = self.send(self.scripts_wire(), commands, deadline).await?;
            self.repeat_unknown(chunk, &mut results, deadline, &call).await?;
            for result in results {
                match result {
                    Ok(value) => values.push(value),
                    Err(error) => failure = failure.or(Some(away(&error))),
                }
            }
        }
        failure.map_or(Ok(values), Err)
    }

    /// Calls whose script the server did not know (it restarted, or was told to forget) are sent again with the script itself.
    async fn repeat_unknown<T>(
        &self,
        items: &[T],
        results: &mut [Result<Value, RedisError>],
        deadline: Instant,
        call: impl Fn(&T, Form) -> Cmd,
    ) -> Result<(), CacheError> {
        let unknown = |result: &Result<Value, RedisError>| {
            result.as_ref().is_err_and(|error| error.kind() == deadpool_redis::redis::ErrorKind::Server(ServerErrorKind::NoScript))
        };
        let again: Vec<_> = items.iter().zip(results).filter(|(_, result)| unknown(result)).collect();
        if again.is_empty() {
            return Ok(());
        }
        let commands = again.iter().map(|(item, _)| call(item, Form::Text)).collect();
        let repeated = self.send(self.scripts_wire(), commands, deadline).await?;
        for ((_, result), new) in again.into_iter().zip(repeated) {
            *result = new;
        }
        Ok(())
    }
}

/// An error of Redis as the callers see it.
fn away(error: &RedisError) -> CacheError {
    CacheError::Away(error.to_string())
}

fn unexpected_reply() -> CacheError {
    CacheError::Away("Redis sent a reply of an unexpected form".to_owned())
}

impl Redis {
    /// Connects and loads the scripts. Where Redis is away, the breaker is open from the start: a restart in the middle of an outage must not make it
    /// a larger one.
    pub(super) async fn connect(config: CacheConfig, redis: RedisConfig) -> Result<Self, CacheError> {
        let scripts = Scripts::new(&config);
        let (links, breaker, meters) = (wire::connect(&redis, &scripts).await, Breaker::default(), Meters::new());
        let links = match links {
            Ok(links) => links,
            Err(error) if wire::may_come_back(&error) => {
                tracing::warn!(%error, "Redis is away: starting without it, polls go to the database");
                breaker.open();
                Links::none(&redis)
            }
            Err(error) => return Err(away(&error)),
        };
        meters.breaker(breaker.check().is_err());
        let shared = Arc::new(Shared { config, redis, links: ArcSwap::from_pointee(links), breaker, scripts, meters });
        let hub = Hub::new(true);
        let probe = tokio::spawn(breaker::probe(Arc::clone(&shared)));
        let wakes = tokio::spawn(wakes::run(Arc::clone(&shared), Arc::clone(&hub)));
        Ok(Self {
            reads: ReadQueue::start(&shared),
            hub,
            epoch: AtomicI64::new(0),
            nonces: Nonces::new(),
            _tasks: [AbortOnDropHandle::new(probe), AbortOnDropHandle::new(wakes)],
            shared,
        })
    }

    pub(super) fn epoch(&self) -> &AtomicI64 {
        &self.epoch
    }

    #[cfg(test)]
    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    #[cfg(test)]
    pub(super) fn prefix(&self) -> &str {
        &self.shared.config.prefix
    }

    pub(super) fn listen(&self, user: UserId) -> Listener {
        self.hub.listen(user)
    }

    pub(super) async fn touch(&self, users: &[UserId], writer: Writer) -> Result<(), CacheError> {
        let shared = &self.shared;
        let call = |users: &[UserId], form| shared.scripts.touch(form, &shared.keys(users.iter().copied()), writer);
        shared.run_chunks(users, call).await.map(|_| ())
    }

    pub(super) async fn get(&self, user: UserId) -> Result<Lookup, CacheError> {
        let outcome = self.look(user).await;
        self.shared.meters.read(outcome.as_ref());
        outcome
    }

    async fn look(&self, user: UserId) -> Result<Lookup, CacheError> {
        self.shared.breaker.check()?;
        let deadline = self.shared.deadline();
        let epoch = self.epoch.load(Ordering::Acquire);
        if let Some(entry) = self.reads.read(user, deadline).await?.and_then(|found| found.clean(epoch)) {
            return Ok(Lookup::Hit(Arc::new(entry)));
        }
        self.look_again(&[user], epoch, deadline).await?.pop().ok_or_else(unexpected_reply)
    }

    /// For users whose plain read was no hit: the same decided atomically, with fill tokens.
    async fn look_again(&self, users: &[UserId], epoch: i64, deadline: Instant) -> Result<Vec<Lookup>, CacheError> {
        let shared = &self.shared;
        let call = |&user: &UserId, form| shared.scripts.get(form, &shared.key(user), self.nonces.next(), epoch);
        let values = shared.run(users, deadline, call).await?;
        values.into_iter().map(|value| read_lookup(value).ok_or_else(unexpected_reply)).collect()
    }

    pub(super) async fn get_many(&self, users: &[UserId]) -> Result<Vec<Lookup>, CacheError> {
        let outcome = self.look_many(users).await;
        match &outcome {
            Ok(lookups) => lookups.iter().for_each(|lookup| self.shared.meters.read(Ok(lookup))),
            Err(error) => self.shared.meters.read(Err(error)),
        }
        outcome
    }

    async fn look_many(&self, users: &[UserId]) -> Result<Vec<Lookup>, CacheError> {
        let shared = &self.shared;
        let deadline = shared.deadline();
        let epoch = self.epoch.load(Ordering::Acquire);
        let mut lookups = Vec::with_capacity(users.len());
        for chunk in users.chunks(COMMANDS_PER_PIPELINE) {
            let commands = chunk.iter().map(|&user| hgetall(&shared.key(user))).collect();
            for result in shared.send(shared.scripts_wire(), commands, deadline).await? {
                let value = result.map_err(|error| away(&error))?;
                let entry = read_hash(&value).and_then(|found| found.clean(epoch));
                lookups.push(entry.map(|entry| Lookup::Hit(Arc::new(entry))));
            }
        }
        let missed: Vec<UserId> = users.iter().zip(&lookups).filter(|(_, lookup)| lookup.is_none()).map(|(&user, _)| user).collect();
        let mut again = self.look_again(&missed, epoch, deadline).await?.into_iter();
        lookups.into_iter().map(|lookup| lookup.or_else(|| again.next()).ok_or_else(unexpected_reply)).collect()
    }

    pub(super) async fn fill(&self, user: UserId, token: FillToken, entry: &Entry) -> Result<bool, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |&user: &UserId, form| shared.scripts.fill(form, &shared.key(user), token, epoch, entry);
        let values = shared.run(&[user], shared.deadline(), call).await?;
        let kept = values.first().is_some_and(is_yes);
        shared.meters.fill(kept);
        Ok(kept)
    }

    pub(super) async fn publish(&self, writer: Writer, changes: &[Change]) -> Result<(), CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |changes: &[Change], form| {
            let keys = shared.keys(changes.iter().map(|change| change.user));
            shared.scripts.publish(form, &keys, &shared.config.prefix, writer, epoch, changes)
        };
        let outcome = shared.run_chunks(changes, call).await;
        // Directly, and even if Redis did not take it: the commit has been made.
        self.hub.wake(changes.iter().filter(|change| change.before != change.after).map(|change| change.user));
        let calls = changes.chunks(shared.keys_per_call());
        for (reply, changes) in outcome?.iter().zip(calls) {
            let applied = read_answers(reply, changes.len()).ok_or_else(unexpected_reply)?;
            (0..changes.len()).for_each(|at| shared.meters.publish(at < applied));
        }
        Ok(())
    }

    pub(super) async fn leave(&self, users: &[UserId], writer: Writer) -> Result<(), CacheError> {
        let shared = &self.shared;
        let call = |users: &[UserId], form| shared.scripts.leave(form, &shared.keys(users.iter().copied()), writer);
        shared.run_chunks(users, call).await.map(|_| ())
    }

    pub(super) async fn run_id(&self) -> Result<String, CacheError> {
        let shared = &self.shared;
        shared.breaker.check()?;
        let asked = tokio::time::timeout_at(shared.deadline(), shared.scripts_wire().server_info()).await;
        let texts = match asked {
            Ok(Ok(texts)) => texts,
            Ok(Err(error)) => {
                if wire::is_outage(&error) {
                    shared.failed(&error.to_string());
                }
                return Err(away(&error));
            }
            Err(_) => {
                shared.failed("no answer in time");
                return Err(CacheError::Away("no answer in time".to_owned()));
            }
        };
        shared.breaker.succeeded();
        // One that answers but takes no writes (full, or a replica) is as good as away: it could not be touched.
        let mut write = cmd("SET");
        write.arg(format!("{}probe", shared.config.prefix)).arg(1).arg("PX").arg(PROBE_TTL_MS);
        for written in shared.send(shared.scripts_wire(), vec![write], shared.deadline()).await? {
            written.map_err(|error| away(&error))?;
        }
        let run_id = |text: &String| text.lines().find_map(|line| line.strip_prefix("run_id:").map(|id| id.trim().to_owned()));
        let mut ids = texts.iter().map(run_id).collect::<Option<Vec<_>>>().ok_or_else(unexpected_reply)?;
        ids.sort_unstable();
        Ok(ids.join(","))
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("config", &self.shared.config).field("redis", &self.shared.redis).finish_non_exhaustive()
    }
}

/// The hot path's read.
fn hgetall(key: &str) -> Cmd {
    let mut command = cmd("HGETALL");
    command.arg(key);
    command
}
