//! The cache that all nodes share: one hash for each user in Redis or Redis Cluster.
//!
//! `known.rs` holds decoded entries, `lists.rs` and `facts.rs` hold what is kept beside the entries,
//! `wire.rs` connects and sends, `shared.rs` is what all of them share, `breaker.rs` fails fast
//! while Redis is away and `probe.rs` looks for its return, `reads.rs` makes one pipeline of many
//! reads, `pipe.rs` is the connection for them, `resp.rs` what is said over it, `scripts.rs` builds
//! the calls and reads the replies, `wakes.rs` holds the subscription. To add an operation: a `.lua`
//! in `scripts/`, a field in `Scripts`, a method here, the same in `entry.rs`, and a step in the
//! test that compares the two.

mod breaker;
mod facts;
mod known;
mod lists;
mod pieces;
mod pipe;
mod probe;
mod read;
mod reads;
mod resp;
mod scripts;
mod shared;
mod wakes;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use deadpool_redis::redis::cmd;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use self::breaker::Breaker;
use self::known::Known;
use self::read::Replied;
use self::reads::{Asked, ReadQueue};
use self::scripts::{Scripts, is_yes, read_answers, read_lookup};
use self::shared::{COMMANDS_PER_PIPELINE, Shared, unexpected_reply};
use self::wire::{Links, away};
use super::hub::{Hub, Listener};
use super::meters::Meters;
use super::nonce::Nonces;
use super::{CacheConfig, CacheError, Change, Derived, Entry, FillToken, Lookup, ReadEntry, RedisConfig, Writer};
use crate::base::ids::UserId;

/// How long the key lives with which a node tries whether Redis takes writes.
const PROBE_TTL_MS: u64 = 10_000;

/// The cache in Redis.
pub struct Redis {
    shared: Arc<Shared>,
    reads: ReadQueue,
    known: Known,
    hub: Arc<Hub>,
    epoch: AtomicI64,
    nonces: Nonces,
    /// The breaker's probe and the subscription; they end with the cache.
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Redis {
    /// Connects and loads the scripts. Where Redis is away, the breaker is open from the start: a
    /// restart in the middle of an outage must not make it a larger one.
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
        let probe = tokio::spawn(probe::run(Arc::clone(&shared)));
        let wakes = tokio::spawn(wakes::run(Arc::clone(&shared), Arc::clone(&hub)));
        Ok(Self {
            reads: ReadQueue::start(&shared),
            known: Known::new(),
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
        if let Some(entry) = self.hit(epoch, self.ask(user, epoch, deadline)?).await? {
            return Ok(Lookup::Hit(entry));
        }
        self.look_again(&[user], epoch, deadline).await?.pop().ok_or_else(unexpected_reply)
    }

    /// Begins a plain read.
    fn ask(&self, user: UserId, epoch: i64, deadline: Instant) -> Result<Asked, CacheError> {
        self.reads.ask(user, self.known.get(user, epoch), deadline)
    }

    /// What it finds, if that is a hit.
    async fn hit(&self, epoch: i64, mut asked: Asked) -> Result<Option<Arc<ReadEntry>>, CacheError> {
        let replied = asked.answer().await?;
        Ok(match (replied, asked.known) {
            (Replied::AsKnown, known) => known.map(|known| Arc::clone(&known.entry)),
            (Replied::Hash(found, reply), known) => {
                let entry = found.and_then(|found| found.clean(epoch));
                entry.map(|entry| self.known.take(asked.user, epoch, entry, reply, known))
            }
        })
    }

    pub(super) fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        self.known.keep(user, entry, derived);
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
        self.shared.breaker.check()?;
        let deadline = self.shared.deadline();
        let epoch = self.epoch.load(Ordering::Acquire);
        let mut lookups = Vec::with_capacity(users.len());
        for chunk in users.chunks(COMMANDS_PER_PIPELINE) {
            let asked = chunk.iter().map(|&user| self.ask(user, epoch, deadline)).collect::<Result<Vec<_>, _>>()?;
            for asked in asked {
                lookups.push(self.hit(epoch, asked).await?.map(Lookup::Hit));
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
        // One that answers but takes no writes (full, or a replica) is as good as away: it could
        // not be touched.
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
