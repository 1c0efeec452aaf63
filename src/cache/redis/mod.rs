//! The cache that all nodes share: one hash for each user in Redis or Redis Cluster.
//!
//! `reads.rs` is the connection for polls with its lease, `tracking.rs` hears what changes,
//! `copies.rs` holds what was read, `lookups.rs` finds a user's entry, `ending.rs` knows who is polled
//! while an entry ends, `lives_on.rs` lets it live on, `lists.rs` and `facts.rs` hold what is kept
//! beside the entries, `wire.rs` connects and sends, `sentinel.rs` asks Sentinels where to, `shared.rs` is what all of
//! them share, `breaker.rs` fails fast while Redis is away and `probe.rs` looks for its return,
//! `scripts.rs` builds the calls and reads the replies, `packing.rs` and `pieces.rs` say how Redis
//! holds a value, `wakes.rs` holds the subscription. To add an operation: a `.lua` in `scripts/`, a
//! field in `Scripts`, a method here, the same in `entry.rs`, and a step in the test that compares
//! the two.

mod address;
mod breaker;
mod copies;
mod ending;
mod facts;
mod lists;
mod lives_on;
mod look;
mod lookups;
mod packing;
mod pieces;
mod probe;
mod reads;
mod run;
mod scripts;
mod sentinel;
mod shared;
mod tracking;
mod wakes;
mod wire;

pub use self::look::{RedisFacts, look_at_redis};
pub use self::sentinel::SentinelFacts;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use deadpool_redis::redis::cmd;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use self::breaker::Breaker;
use self::copies::Copies;
use self::ending::Ending;
use self::reads::Reads;
use self::run::TrustedRun;
use self::scripts::{Applied, Outcome, Scripts, read_applied, read_begun};
use self::shared::{Shared, unexpected_reply};
use self::wire::{Connected, away};
use super::hub::{Hub, Listener};
use super::meters::Meters;
use super::nonce::Nonces;
use super::{Begun, CacheConfig, CacheError, Changes, READ_LEASE, RedisConfig, SharedRun, Writer, Written};
use crate::base::ids::UserId;
use crate::base::threads;

/// How long a cluster is read after its masters were asked who they are. No replica takes over so
/// soon after its master has gone, where `cluster-node-timeout` is no less.
const CLUSTER_LOOK: Duration = Duration::from_millis(2500);

/// The cache in Redis.
pub struct Redis {
    shared: Arc<Shared>,
    reads: Arc<Reads>,
    ending: Ending,
    hub: Arc<Hub>,
    epoch: AtomicI64,
    nonces: Nonces,
    /// The breaker's probe, the subscription and the read lease; they end with the cache.
    _tasks: [AbortOnDropHandle<()>; 3],
    /// Ends the thread of the read lease.
    _end_of_thread: DropGuard,
}

impl Redis {
    /// Connects and loads the scripts. Where Redis is away, the breaker is open from the start: a
    /// restart in the middle of an outage must not make it a larger one.
    pub(super) async fn connect(config: CacheConfig, redis: RedisConfig) -> Result<Self, CacheError> {
        let scripts = Scripts::new(&config, redis.cluster);
        let (connected, breaker, meters) = (wire::connect(&redis, &scripts).await, Breaker::default(), Meters::new());
        let connected = match connected {
            Ok(connected) => connected,
            Err(error) if wire::may_come_back(&error) => {
                tracing::warn!(%error, "Redis is away: starting without it, polls go to the database");
                breaker.open();
                Connected::to_nothing()
            }
            Err(error) => return Err(away(&error)),
        };
        meters.breaker(breaker.check().is_err());
        let end = CancellationToken::new();
        let thread = threads::start("read-lease", end.clone());
        let thread = thread.map_err(|error| CacheError::Away(format!("no thread for the read lease: {error}")))?;
        let (copies, ending) = (Copies::new(config.capacity_bytes), Ending::new(config.ttl));
        let (nonces, reads) = (Nonces::new(), Arc::new(Reads::new(copies, thread.clone())));
        let connected = ArcSwap::from_pointee(connected);
        let (node, run) = (nonces.next(), TrustedRun::default());
        let shared = Arc::new(Shared { config, redis, connected, node, breaker, run, scripts, meters });
        let hub = Hub::new(true);
        let probe = tokio::spawn(probe::run(Arc::clone(&shared), Arc::clone(&reads)));
        let wakes = tokio::spawn(wakes::run(Arc::clone(&shared), Arc::clone(&reads), Arc::clone(&hub)));
        let lease = thread.spawn(Arc::clone(&reads).run(Arc::clone(&shared)));
        let tasks = [probe, wakes, lease].map(AbortOnDropHandle::new);
        Ok(Self { shared, reads, ending, hub, epoch: AtomicI64::new(0), nonces, _tasks: tasks, _end_of_thread: end.drop_guard() })
    }

    pub(super) fn epoch(&self) -> &AtomicI64 {
        &self.epoch
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Whether polls are answered from copies now.
    #[cfg(test)]
    pub(super) async fn is_leased(&self) -> bool {
        let connection = self.reads.connection(&self.shared, self.shared.deadline()).await.unwrap();
        connection.leased_at().is_some()
    }

    /// As if Redis had told of a change.
    #[cfg(test)]
    pub(super) fn forget_copy(&self, user: UserId) {
        self.reads.copies.remove(user);
    }

    #[cfg(test)]
    pub(super) fn prefix(&self) -> &str {
        &self.shared.config.prefix
    }

    /// The node that has it sent hears of it over its own subscription too, if anybody there
    /// listens.
    pub(super) async fn wake(&self, user: UserId) {
        let mut publish = cmd("PUBLISH");
        publish.arg(self.shared.wake_channel(user)).arg("");
        let sent = async { self.shared.send(self.shared.scripts_wire()?, vec![publish], self.shared.deadline()).await };
        if let Err(error) = sent.await {
            // Whoever waits looks again by itself.
            tracing::debug!(%error, %user, "could not wake the polls of a user");
            self.hub.wake([user]);
        }
    }

    pub(super) fn listen(&self, user: UserId) -> Listener {
        self.hub.listen(user)
    }

    /// The keys of what is written.
    fn keys(&self, written: Written<'_>) -> Vec<String> {
        let shared = &self.shared;
        let facts = written.facts.iter().map(|&user| shared.facts_key(user));
        written.users.iter().map(|&user| shared.key(user)).chain(facts).collect()
    }

    pub(super) async fn begin_write(&self, written: Written<'_>, writer: Writer) -> Result<Begun, CacheError> {
        let shared = &self.shared;
        let call = |keys: &[String], form| shared.scripts.begin_write(form, keys, writer, shared.node);
        let replies = shared.run_chunks(&self.keys(written), call).await?;
        // Other nodes are waited for. This one is not: it does not show what it has any more.
        self.reads.copies.remove_all(written.users.iter().copied());
        let (mut is_shown, mut absent) = (false, Vec::with_capacity(written.users.len() + written.facts.len()));
        for reply in &replies {
            let (shown, are_absent) = read_begun(reply).ok_or_else(unexpected_reply)?;
            is_shown |= shown;
            absent.extend(are_absent);
        }
        let (users, facts) = absent.split_at_checked(written.users.len()).ok_or_else(unexpected_reply)?;
        let those =
            |all: &[UserId], absent: &[bool]| all.iter().zip(absent).filter(|(_, absent)| **absent).map(|(user, _)| *user).collect();
        Ok(Begun {
            shown_until: is_shown.then(|| Instant::now() + READ_LEASE),
            absent_users: those(written.users, users),
            absent_facts: those(written.facts, facts),
        })
    }

    /// What was read, if that is still what may be read: meanwhile another run may have taken the place
    /// of the one that was asked, with entries of the same epoch that are outdated.
    pub(in crate::cache) fn still<T>(&self, epoch: i64, read: T) -> Result<T, CacheError> {
        self.shared.run.check_now()?;
        if self.epoch.load(Ordering::Acquire) == epoch { Ok(read) } else { Err(CacheError::Away("another epoch has begun".to_owned())) }
    }

    pub(super) async fn apply_write(&self, writer: Writer, changes: Changes<'_>) -> Result<bool, CacheError> {
        let shared = &self.shared;
        let epoch = self.epoch.load(Ordering::Acquire);
        let call = |all: &[Applied<'_>], form| {
            let key = |applied: &Applied<'_>| match applied {
                Applied::Entry(change) => shared.key(change.user),
                Applied::Facts(change) => shared.facts_key(change.user),
            };
            let keys: Vec<_> = all.iter().map(key).collect();
            shared.scripts.apply_write(form, &keys, &shared.config.prefix, writer, epoch, all)
        };
        let Changes { entries, facts } = changes;
        let all: Vec<_> = entries.iter().map(Applied::Entry).chain(facts.iter().map(Applied::Facts)).collect();
        let replies = shared.run_chunks(&all, call).await;
        // A writer that was not inside makes entries dirty here.
        self.reads.copies.remove_all(entries.iter().map(|change| change.user));
        // Directly, and even if Redis did not take it: the commit has been made.
        self.hub.wake(entries.iter().filter(|change| change.before != change.after).map(|change| change.user));
        let mut outcomes = Vec::with_capacity(all.len());
        for reply in replies? {
            outcomes.extend(read_applied(&reply).ok_or_else(unexpected_reply)?);
        }
        outcomes.iter().zip(entries).for_each(|(outcome, _)| shared.meters.apply(*outcome == Outcome::Clean));
        Ok(!outcomes.contains(&Outcome::Outside))
    }

    pub(super) async fn abandon_write(&self, written: Written<'_>, writer: Writer) -> Result<(), CacheError> {
        let shared = &self.shared;
        let call = |keys: &[String], form| shared.scripts.abandon_write(form, keys, writer);
        let outcome = shared.run_chunks(&self.keys(written), call).await;
        self.reads.copies.remove_all(written.users.iter().copied());
        outcome.map(drop)
    }

    pub(super) fn is_away(&self) -> bool {
        self.shared.breaker.check().is_err()
    }

    pub(super) async fn run_id(&self) -> Result<String, CacheError> {
        let shared = &self.shared;
        shared.breaker.check()?;
        let asked = tokio::time::timeout_at(shared.deadline(), shared.any_wire().server_info()).await;
        let texts = match asked {
            Ok(Ok(texts)) => texts,
            Ok(Err(error)) => {
                if shared.ends(&error) {
                    shared.open(&error.to_string());
                } else if wire::is_outage(&error) {
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
        for written in shared.send(shared.any_wire(), vec![shared.probe_write()], shared.deadline()).await? {
            written.map_err(|error| away(&error))?;
        }
        wire::run_of(&texts).ok_or_else(unexpected_reply)
    }

    pub(super) fn is_trusted_run(&self, id: &str) -> bool {
        self.shared.run.is_trusted(id)
    }

    pub(super) fn expect_run(&self, id: &str) {
        // The runs of a cluster's masters are known by a look only.
        self.shared.run.expect(id, self.shared.redis.cluster.then(Instant::now));
    }

    pub(super) fn trust_run(&self, id: &str, asked: Instant) {
        let read_until = self.shared.redis.cluster.then(|| asked + CLUSTER_LOOK);
        if self.shared.run.trust(id, read_until) {
            self.reads.disconnect();
        }
    }

    pub(super) fn runs_overlap(&self) -> bool {
        self.shared.redis.sentinel.is_some()
    }

    pub(super) fn share_run(&self, run: SharedRun) {
        if self.shared.run.share(run) {
            self.reads.disconnect();
        }
    }

    pub(super) fn is_behind(&self, id: &str, since: Instant) -> bool {
        let connected = self.shared.connected.load();
        connected.asked < since && connected.run.as_ref().is_some_and(|run| run != id)
    }

    pub(super) fn ask_again(&self) {
        self.shared.open("the Sentinels are asked again");
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").field("config", &self.shared.config).field("redis", &self.shared.redis).finish_non_exhaustive()
    }
}
