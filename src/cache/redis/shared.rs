//! What the operations and the background tasks share: the connections, the scripts, and how calls
//! go out.

use std::time::Duration;

use arc_swap::ArcSwap;
use deadpool_redis::redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use tokio::time::Instant;

use super::breaker::Breaker;
use super::run::TrustedRun;
use super::scripts::{Form, Scripts};
use super::wire::{self, Connected, Wire, away};
use crate::base::ids::UserId;
use crate::cache::meters::Meters;
use crate::cache::{CacheConfig, CacheError, RedisConfig};

/// Commands in one pipeline, or keys in its calls: bounds what one reply holds in memory, and how
/// long Redis keeps others waiting.
pub(super) const COMMANDS_PER_PIPELINE: usize = 256;

/// Keys in one call of a writer's script. A call costs Redis as much as what the script does to two
/// or three keys. On a cluster keys live apart, and each has a call of its own.
const KEYS_PER_CALL: usize = 64;

/// How old a connection to a cluster is, of which not all masters answer, when another one is made. In
/// between the guard has the time to look.
const CONNECT_AGAIN: Duration = Duration::from_secs(5);

/// How long after a demotion every node has seen it: each writes to Redis every second. As long as nodes
/// wait for each other in all else (`engine::guard::SEEN`).
const DEMOTION_SEEN: Duration = Duration::from_secs(3);

/// How long the key lives with which a node tries whether Redis takes writes.
const PROBE_TTL_MS: u64 = 10_000;

/// What became of each command.
pub(super) type Replies = Vec<Result<Value, RedisError>>;

/// What the operations and the background tasks share.
pub(super) struct Shared {
    pub(super) config: CacheConfig,
    pub(super) redis: RedisConfig,
    /// Scripts have their own connection, so that a big batch of writes does not stand in front of
    /// the polls.
    pub(super) connected: ArcSwap<Connected>,
    /// Tells this node from others.
    pub(super) node: u64,
    pub(super) breaker: Breaker,
    pub(super) run: TrustedRun,
    pub(super) scripts: Scripts,
    pub(super) meters: Meters,
}

/// How long calls may take that go out in several pipelines.
#[derive(Debug, Clone, Copy)]
enum Limit {
    /// All of them together, until then: a poll waits for the answer.
    Until(Instant),
    /// Each pipeline has the timeout of one operation; all together have one lease, after which a
    /// writer counts as gone. How many pipelines a batch needs depends on how many users it has,
    /// and on a cluster on their keys, which go one by one: that they take long does not say that
    /// Redis is away.
    EachTurn,
}

impl Shared {
    /// When an operation that begins now has to be over.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.redis.timeout
    }

    pub(super) fn key(&self, user: UserId) -> String {
        format!("{}{{u:{user}}}", self.config.prefix)
    }

    /// What stands before and after the id in a user's key.
    pub(super) fn key_frame(&self) -> (String, &'static str) {
        (format!("{}{{u:", self.config.prefix), "}")
    }

    /// How many keys go into one call of a script that takes many.
    pub(super) fn keys_per_call(&self) -> usize {
        if self.redis.cluster { 1 } else { KEYS_PER_CALL }
    }

    pub(super) fn wake_channel(&self, user: UserId) -> String {
        format!("{}wake:{{u:{user}}}", self.config.prefix)
    }

    /// The connection for scripts, to whatever run it leads.
    pub(super) fn any_wire(&self) -> Wire {
        self.connected.load().wire.clone()
    }

    /// The same for what readers ask.
    pub(super) fn scripts_wire(&self) -> Result<Wire, CacheError> {
        let connected = self.connected.load();
        connected.run.as_deref().map_or(Ok(()), |run| self.run.check_read(run))?;
        Ok(connected.wire.clone())
    }

    /// The same for writers, who must know that no reader reads another run.
    fn writers_wire(&self) -> Result<Wire, CacheError> {
        let connected = self.connected.load();
        connected.run.as_deref().map_or(Ok(()), |run| self.run.check_write(run, Instant::now()))?;
        Ok(connected.wire.clone())
    }

    /// Sends, bounded by the deadline, and tells the breaker how it went. As many results as
    /// commands.
    pub(super) async fn send(&self, wire: Wire, commands: Vec<Cmd>, deadline: Instant) -> Result<Replies, CacheError> {
        self.meters.commands(commands.len());
        self.send_uncounted(wire, commands, deadline).await
    }

    /// The same for what is sent however many polls and writes there are.
    pub(super) async fn send_uncounted(&self, wire: Wire, commands: Vec<Cmd>, deadline: Instant) -> Result<Replies, CacheError> {
        self.breaker.check()?;
        let (begun, is_made_again) = (Instant::now(), wire.is_made_again());
        match tokio::time::timeout_at(deadline, wire.send(commands)).await {
            Ok(results) => {
                let mut errors = results.iter().filter_map(|result| result.as_ref().err());
                match errors.find(|error| wire::is_outage(error) || self.ends(error)) {
                    Some(error) if self.ends(error) && self.redis.sentinel.is_none() => self.leave_demoted(&error.to_string()),
                    Some(error) if self.ends(error) => self.open(&error.to_string()),
                    // A closed connection, say one that nobody used, does not tell that Redis is away.
                    // The next attempt to connect does.
                    Some(error) if error.is_connection_dropped() && !is_made_again => {}
                    Some(error) => self.failed(&error.to_string()),
                    None => self.breaker.succeeded(),
                }
                Ok(results)
            }
            Err(_) => {
                // What had waited for its turn until shortly before the deadline tells nothing
                // about Redis.
                if begun.elapsed() >= self.redis.timeout / 2 {
                    self.failed("no answer in time");
                }
                Err(CacheError::Away("no answer in time".to_owned()))
            }
        }
    }

    pub(super) fn failed(&self, reason: &str) {
        if self.breaker.failed() {
            self.meters.breaker(true);
            tracing::warn!(reason, "Redis is away: the breaker opens");
        }
    }

    /// Whether new connections are needed after this error. What is at the other end is no master any
    /// more, and need not close them: only a cluster says by itself where its masters are. Or one was
    /// closed that the Sentinels have to be asked for.
    pub(super) fn ends(&self, error: &RedisError) -> bool {
        let is_closed = self.redis.sentinel.is_some() && error.is_unrecoverable_error();
        is_closed || (!self.redis.cluster && wire::is_demoted(error))
    }

    /// A write that shows whether Redis takes any. One that answers but takes none (full, or a replica)
    /// is as good as away: no write could begin.
    pub(super) fn probe_write(&self) -> Cmd {
        let mut write = cmd("SET");
        write.arg(format!("{}probe", self.config.prefix)).arg(1).arg("PX").arg(PROBE_TTL_MS);
        write
    }

    /// Refuses to read what may be another run by now. Where it is a cluster, of which not all masters
    /// have answered lately, new connections are made now and then. Over the old ones a master is asked
    /// again and again that stands still or is gone, also when its replica has taken over.
    pub(super) fn check_look(&self) -> Result<(), CacheError> {
        let checked = self.run.check_now();
        if checked.is_err() && self.run.is_unseen(Instant::now()) && self.connected.load().asked.elapsed() >= CONNECT_AGAIN {
            self.open("not all masters of the cluster have answered lately");
        }
        checked
    }

    /// Opens the breaker, whose probe makes new connections.
    pub(super) fn open(&self, reason: &str) {
        self.note_opened(self.breaker.open(), reason);
    }

    /// What is at the other end is no master any more. Other nodes may read it until they have seen that,
    /// too: no write of this node goes to the new master before.
    fn leave_demoted(&self, reason: &str) {
        self.note_opened(self.breaker.open_until(Instant::now() + DEMOTION_SEEN), reason);
    }

    fn note_opened(&self, opened: bool, reason: &str) {
        if opened {
            self.meters.breaker(true);
            tracing::warn!(reason, "Redis is away: the breaker opens");
        }
    }

    /// Runs one script call for each item, in pipelines. Every call is sent, whatever became of the
    /// others of its pipeline; the first error is returned.
    pub(super) async fn run<T>(&self, items: &[T], deadline: Instant, call: impl Fn(&T, Form) -> Cmd) -> Result<Vec<Value>, CacheError> {
        self.run_by(COMMANDS_PER_PIPELINE, items, Limit::Until(deadline), call).await
    }

    /// The same for a writer, with a call for each chunk of items, as many as go into one call.
    pub(super) async fn run_chunks<T>(&self, items: &[T], call: impl Fn(&[T], Form) -> Cmd) -> Result<Vec<Value>, CacheError> {
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
            let wire = match limit {
                Limit::Until(_) => self.scripts_wire()?,
                Limit::EachTurn => self.writers_wire()?,
            };
            let commands = chunk.iter().map(|item| call(item, Form::Hash)).collect();
            let mut results = self.send(wire.clone(), commands, deadline).await?;
            self.repeat_unknown(wire, chunk, &mut results, deadline, &call).await?;
            for result in results {
                match result {
                    Ok(value) => values.push(value),
                    Err(error) => failure = failure.or(Some(away(&error))),
                }
            }
        }
        failure.map_or(Ok(values), Err)
    }

    /// Calls whose script the server did not know (it restarted, or was told to forget) are sent
    /// again with the script itself.
    async fn repeat_unknown<T>(
        &self,
        wire: Wire,
        items: &[T],
        results: &mut [Result<Value, RedisError>],
        deadline: Instant,
        call: impl Fn(&T, Form) -> Cmd,
    ) -> Result<(), CacheError> {
        let again: Vec<_> = items.iter().zip(results).filter(|(_, result)| is_unknown(result)).collect();
        if again.is_empty() {
            return Ok(());
        }
        let commands = again.iter().map(|(item, _)| call(item, Form::Text)).collect();
        let repeated = self.send(wire, commands, deadline).await?;
        for ((_, result), new) in again.into_iter().zip(repeated) {
            *result = new;
        }
        Ok(())
    }
}

/// Whether the server did not know the script.
pub(super) fn is_unknown(result: &Result<Value, RedisError>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}

pub(super) fn unexpected_reply() -> CacheError {
    CacheError::Away("Redis sent a reply of an unexpected form".to_owned())
}

/// The hot path's read: the entry, and for how long it lives.
pub(super) fn entry_and_life(key: &str) -> [Cmd; 2] {
    ["HGETALL", "PTTL"].map(|name| {
        let mut command = cmd(name);
        command.arg(key);
        command
    })
}
