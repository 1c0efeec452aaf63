//! What polls read: one entry for each user, with the revision that it shows, never silently stale.
//!
//! The protocol (begin, get, fill, apply) is the same on both engines; `entry.rs` holds it as a
//! pure state machine for the in-process cache, `scripts/*.lua` as scripts that run on one user's
//! hash in Redis. See `docs/subsystems/cache.md`.

mod config;
mod entry;
mod facts;
mod hub;
mod lists;
mod memory;
mod meters;
mod nonce;
mod parts;
mod protocol;
mod read_entry;
mod redis;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::time::Instant;

pub use self::config::{CacheConfig, RedisConfig, SentinelConfig, USUAL_PREFIX};
pub use self::facts::FactsChange;
pub use self::hub::Listener;
pub use self::lists::{HISTORY_STEP, ListKey, ListVersion};
pub use self::memory::Memory;
pub use self::parts::Parts;
pub use self::protocol::{Begun, CacheError, Change, Changes, FillToken, Lookup, READ_LEASE, RedisStream, SharedRun, Writer, Written};
pub(crate) use self::read_entry::KEPT_BYTES;
pub use self::read_entry::{Derived, Entry, ReadEntry, Revision};
pub use self::redis::{Redis, RedisFacts, SentinelFacts, look_at_redis};

use self::hub::Hub;
use crate::base::ids::UserId;

/// The cache, on one of two engines, chosen once at start.
#[derive(Debug)]
pub enum Cache {
    /// In process, for one node.
    Memory(Box<Memory>),
    /// In Redis or Redis Cluster, shared by all nodes.
    Redis(Redis),
}

/// What the in-process cache answers where a run id is asked for: it lives as long as its only
/// node.
const MEMORY_RUN_ID: &str = "memory";

impl Cache {
    /// A cache in this process.
    #[must_use]
    pub fn memory(config: CacheConfig) -> Self {
        Self::Memory(Box::new(Memory::monotonic(config)))
    }

    /// Connects to Redis and loads the scripts; Redis that is away now is tried again and again.
    ///
    /// # Errors
    /// If the address is none, or Redis refuses us.
    pub async fn redis(config: CacheConfig, redis: RedisConfig) -> Result<Self, CacheError> {
        Redis::connect(config, redis).await.map(Self::Redis)
    }

    fn epoch_cell(&self) -> &AtomicI64 {
        match self {
            Self::Memory(memory) => memory.epoch(),
            Self::Redis(redis) => redis.epoch(),
        }
    }

    fn hub(&self) -> &Hub {
        match self {
            Self::Memory(memory) => memory.hub(),
            Self::Redis(redis) => redis.hub(),
        }
    }

    /// The epoch that this node is in, 0 at first.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch_cell().load(Ordering::Acquire)
    }

    /// Enters another epoch: entries filled in any other are misses from now on, and fill tokens
    /// given in another are void.
    pub fn set_epoch(&self, epoch: i64) {
        self.epoch_cell().store(epoch, Ordering::Release);
    }

    /// Before the commit: puts the writer into these entries and facts and marks them dirty, for one
    /// lease. Doing it again renews the lease.
    ///
    /// # Errors
    /// If any of them could not be entered; then the transaction must not commit. Those that were
    /// stay dirty.
    pub async fn begin_write(&self, written: impl Into<Written<'_>>, writer: Writer) -> Result<Begun, CacheError> {
        let written = written.into();
        match self {
            Self::Memory(memory) => memory.begin_write(written.users, writer),
            Self::Redis(redis) => return redis.begin_write(written, writer).await,
        }
        Ok(Begun::default())
    }

    /// What the cache knows of a user.
    ///
    /// # Errors
    /// If Redis is away, or more reads are waiting than the queue holds.
    pub async fn get(&self, user: UserId) -> Result<Lookup, CacheError> {
        match self {
            Self::Memory(memory) => Ok(memory.get(user)),
            Self::Redis(redis) => redis.get(user).await,
        }
    }

    /// The same for many users, in their order.
    pub async fn get_many(&self, users: &[UserId]) -> Result<Vec<Lookup>, CacheError> {
        match self {
            Self::Memory(memory) => Ok(users.iter().map(|&user| memory.get(user)).collect()),
            Self::Redis(redis) => redis.get_many(users).await,
        }
    }

    /// After a miss: brings what SQL said, read after the miss. Whether it was kept; not if the
    /// token has died meanwhile.
    pub async fn fill(&self, user: UserId, token: FillToken, entry: &Entry) -> Result<bool, CacheError> {
        match self {
            Self::Memory(memory) => Ok(memory.fill(user, token, entry)),
            Self::Redis(redis) => redis.fill(user, token, entry).await,
        }
    }

    /// Users who are polled while their entries end soon, with the revisions that these show; once
    /// there are any. In process an entry lives as long as it is polled.
    pub async fn ending(&self) -> Vec<(UserId, Revision)> {
        match self {
            Self::Memory(_) => std::future::pending().await,
            Self::Redis(redis) => redis.ending().await,
        }
    }

    /// Lets entries live on that were as new as SQL at a moment in this epoch, after [`Self::ending`]
    /// told of them. How many do.
    ///
    /// # Errors
    /// If Redis is away, or another epoch has begun; then they may not.
    pub async fn extend(&self, epoch: i64, users: &[UserId]) -> Result<usize, CacheError> {
        match self {
            Self::Memory(_) => Ok(0),
            Self::Redis(redis) => redis.extend(epoch, users).await,
        }
    }

    /// Keeps what a reader made of a user's entry, where the cache still has that entry. It counts
    /// as a part of the entry.
    pub fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        match self {
            Self::Memory(memory) => memory.keep(user, entry, derived),
            Self::Redis(redis) => redis.keep(user, entry, derived),
        }
    }

    /// After the commit: applies the changes to the entries that show what the transaction found,
    /// and takes the writer out of all. Wakes anyone who listens to a user that changed. Returns
    /// whether the writer was inside all of them: if not, a reader may have filled in what was there
    /// before the commit, and other nodes may show copies of that for a read lease more.
    ///
    /// # Errors
    /// If Redis is away; then entries stay dirty, which is safe. This node's listeners are woken
    /// even so.
    pub async fn apply_write(&self, writer: Writer, changes: impl Into<Changes<'_>>) -> Result<bool, CacheError> {
        let changes = changes.into();
        match self {
            Self::Memory(memory) => memory.apply_write(writer, changes.entries),
            Self::Redis(redis) => return redis.apply_write(writer, changes).await,
        }
        Ok(true)
    }

    /// Instead of [`Self::apply_write`] if the transaction was aborted or its outcome is unknown:
    /// takes the writer out; the entries stay dirty.
    ///
    /// Only once the transaction is over. One whose COMMIT may still arrive must stay inside (begin
    /// again before each lease ends): after it went, a reader may fill the state from before that
    /// commit, and nothing would make it dirty again.
    ///
    /// # Errors
    /// If Redis is away; then the leases run out by themselves.
    pub async fn abandon_write(&self, written: impl Into<Written<'_>>, writer: Writer) -> Result<(), CacheError> {
        let written = written.into();
        match self {
            Self::Memory(memory) => memory.abandon_write(written.users, writer),
            Self::Redis(redis) => return redis.abandon_write(written, writer).await,
        }
        Ok(())
    }

    /// Takes entries out of a stream, by their numbers; those that are not there are passed by.
    ///
    /// # Errors
    /// If Redis is away.
    pub async fn remove(&self, stream: &RedisStream, ids: &[i64]) -> Result<(), CacheError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.remove(stream, ids).await,
        }
    }

    /// Appends to a stream, each entry under its number, and trims it to about so many. What is
    /// there already is passed over. Returns whether the stream has these entries: it may have others
    /// under their numbers, or beyond them. In process there is no stream.
    ///
    /// # Errors
    /// If Redis is away; then some may have been appended.
    pub async fn append(&self, stream: &RedisStream, entries: &[(i64, String)]) -> Result<bool, CacheError> {
        match self {
            Self::Memory(_) => Ok(true),
            Self::Redis(redis) => redis.append(stream, entries).await,
        }
    }

    /// Subscribes to the changes of a user, on any node.
    #[must_use]
    pub fn listen(&self, user: UserId) -> Listener {
        match self {
            Self::Memory(memory) => memory.listen(user),
            Self::Redis(redis) => redis.listen(user),
        }
    }

    /// Wakes anyone who listens to a user, on any node, where what polls show of the user to others
    /// has changed without a new revision. A hint: one that is lost costs a poll its next recheck.
    pub async fn wake(&self, user: UserId) {
        match self {
            Self::Memory(memory) => memory.wake(user),
            Self::Redis(redis) => redis.wake(user).await,
        }
    }

    /// Wakes this node's listeners of these users: Redis, which tells those of other nodes, is away.
    pub(crate) fn wake_local(&self, users: impl IntoIterator<Item = UserId>) {
        self.hub().wake(users);
    }

    /// What names the running server, so that a node can tell a restart or failover: of a cluster,
    /// all masters' together. Fails too when the server answers but takes no writes.
    pub async fn run_id(&self) -> Result<String, CacheError> {
        match self {
            Self::Memory(_) => Ok(MEMORY_RUN_ID.to_owned()),
            Self::Redis(redis) => redis.run_id().await,
        }
    }

    /// Whether the entries of this run may be read.
    #[must_use]
    pub fn is_trusted_run(&self, id: &str) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Redis(redis) => redis.is_trusted_run(id),
        }
    }

    /// At the start: in which run the entries were made, as the database has it. No other one is read before
    /// [`Self::trust_run`], and of a cluster none.
    pub fn expect_run(&self, id: &str) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(redis) => redis.expect_run(id),
        }
    }

    /// From here on the entries of this run may be read, and those of no other. To be told after the
    /// epoch of its entries is known, with the time at which it was asked for.
    pub fn trust_run(&self, id: &str, asked: Instant) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(redis) => redis.trust_run(id, asked),
        }
    }

    /// Whether nodes may reach several runs of Redis at once, of which each takes itself for the
    /// master: so it is with Sentinels.
    #[must_use]
    pub fn runs_overlap(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Redis(redis) => redis.runs_overlap(),
        }
    }

    /// What all nodes agree on, where runs may overlap. To be told before the epoch of its entries.
    pub fn share_run(&self, run: SharedRun) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(redis) => redis.share_run(run),
        }
    }

    /// Whether another run than this is connected that the Sentinels named before that time.
    #[must_use]
    pub fn is_behind(&self, id: &str, since: Instant) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Redis(redis) => redis.is_behind(id, since),
        }
    }

    /// Asks the Sentinels again. Until they have answered, Redis is away.
    pub fn ask_again(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(redis) => redis.ask_again(),
        }
    }

    /// Whether it did not answer when it was last asked.
    #[must_use]
    pub fn is_away(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Redis(redis) => redis.is_away(),
        }
    }

    /// Drops everything from the in-process cache but the running writers' marks. Redis: nothing,
    /// for which a new epoch is the way.
    pub fn clear(&self) {
        match self {
            Self::Memory(memory) => memory.clear(),
            Self::Redis(_) => {}
        }
    }

    /// How long what is kept in a shared cache lives after it was last written, in milliseconds.
    #[must_use]
    pub fn life_ms(&self) -> i64 {
        match self {
            Self::Memory(_) => 0,
            Self::Redis(redis) => redis.life_ms(),
        }
    }

    /// Whether other nodes see this cache too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Redis(_))
    }
}
