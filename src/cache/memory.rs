//! The cache of a single node, in process.
//!
//! A sharded table with an eviction of its own. A general-purpose cache in its place would evict an entry while a writer is inside, and
//! what that writer leaves behind in the detached entry would be lost to the readers of a new one: a stale answer after an acknowledged
//! write. Here an entry lives in the table alone, is seen under its shard's lock alone, and is never evicted while an unexpired writer is
//! inside. So a touch is lost in no case, and what an eviction takes is either clean, or dirty with every writer's transaction over: then
//! whoever reads next finds nothing and asks SQL, which has all of it.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::entry::EntryState;
use super::hub::{Hub, Listener};
use super::meters::Meters;
use super::nonce::Nonces;
use super::{CacheConfig, Change, Entry, FillToken, Lookup, Writer};
use crate::ids::UserId;

/// Independent parts of the table, each with its own lock.
const SHARDS: usize = 64;

/// Entries that one insertion looks at for something to evict; then the table may stay above its capacity for a while, by no more than
/// the users that running writers are in.
const EVICTION_STEPS: usize = 32;

/// Of these steps, how many spare an entry that was read since the last look.
const SECOND_CHANCES: usize = 16;

/// Entries that an insertion looks at for expired ones, so that users who went away do not fill the table for ever.
const EXPIRY_STEPS: usize = 2;

/// Where leases and expiries get their time from.
#[derive(Debug, Clone)]
pub(super) enum LeaseClock {
    /// The process's monotonic clock, from this instant.
    Monotonic(Instant),
    /// Milliseconds set by a test.
    #[cfg(test)]
    Manual(Arc<std::sync::atomic::AtomicU64>),
}

impl LeaseClock {
    fn now_ms(&self) -> u64 {
        match self {
            Self::Monotonic(start) => millis(start.elapsed()),
            #[cfg(test)]
            Self::Manual(ms) => ms.load(Ordering::Relaxed),
        }
    }
}

/// Whole milliseconds, held at the end of the range.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

struct Slot {
    state: EntryState,
    /// When the whole entry, dirt included, is gone. Set by touch, fill and publish to at least a lease from then.
    expires_at_ms: u64,
    /// Whether it was used since the eviction last looked.
    used: bool,
}

/// A part of the table. `ring` holds each user of `entries` exactly once, the next candidate for eviction first.
#[derive(Default)]
struct Shard {
    entries: HashMap<UserId, Slot>,
    ring: VecDeque<UserId>,
}

impl Shard {
    /// The user's entry if there is one that has not expired.
    fn get(&mut self, user: UserId, now_ms: u64) -> Option<&mut Slot> {
        let slot = self.entries.get_mut(&user).filter(|slot| slot.expires_at_ms > now_ms)?;
        slot.used = true;
        Some(slot)
    }

    /// The user's entry, or a new one that lives for `ttl_ms`.
    fn get_or_insert(&mut self, user: UserId, now_ms: u64, ttl_ms: u64, capacity: usize) -> &mut Slot {
        let expires_at_ms = now_ms.saturating_add(ttl_ms);
        let fresh = || Slot { state: EntryState::default(), expires_at_ms, used: true };
        if !self.entries.contains_key(&user) {
            self.make_room(now_ms, capacity);
            self.ring.push_back(user);
        }
        let slot = self.entries.entry(user).or_insert_with(fresh);
        if slot.expires_at_ms <= now_ms {
            *slot = fresh();
        }
        slot.used = true;
        slot
    }

    /// Drops what expired, and evicts down to below the capacity where the running writers allow it.
    fn make_room(&mut self, now_ms: u64, capacity: usize) {
        for step in 0..EVICTION_STEPS {
            let full = self.entries.len() >= capacity;
            if !full && step >= EXPIRY_STEPS {
                return;
            }
            let Some(user) = self.ring.pop_front() else { return };
            let Some(slot) = self.entries.get_mut(&user) else { continue };
            let expired = slot.expires_at_ms <= now_ms;
            let spared = !full || (slot.used && step < SECOND_CHANCES) || slot.state.has_writers(now_ms);
            if spared && !expired {
                slot.used = slot.used && !full;
                self.ring.push_back(user);
                continue;
            }
            self.entries.remove(&user);
        }
    }
}

/// The in-process cache: exact, for one node.
pub struct Memory {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    shard_capacity: usize,
    lease_ms: u64,
    ttl_ms: u64,
    clock: LeaseClock,
    epoch: AtomicI64,
    nonces: Nonces,
    hub: Arc<Hub>,
    meters: Meters,
    config: CacheConfig,
}

impl Memory {
    pub(super) fn new(config: CacheConfig, clock: LeaseClock) -> Self {
        let capacity = usize::try_from(config.capacity).unwrap_or(usize::MAX);
        let lease_ms = millis(config.lease);
        Self {
            shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect(),
            hasher: RandomState::new(),
            shard_capacity: capacity.div_ceil(SHARDS).max(1),
            lease_ms,
            // Dirt must not expire before the lease that it stands for.
            ttl_ms: millis(config.ttl).max(lease_ms),
            clock,
            epoch: AtomicI64::new(0),
            nonces: Nonces::new(),
            hub: Hub::new(false),
            meters: Meters::new(),
            config,
        }
    }

    pub(super) fn monotonic(config: CacheConfig) -> Self {
        Self::new(config, LeaseClock::Monotonic(Instant::now()))
    }

    /// The user's shard. What a shard's methods do to it they do without panicking in between, so a poisoned lock guards whole data.
    fn shard(&self, user: UserId) -> Option<MutexGuard<'_, Shard>> {
        let hash = usize::try_from(self.hasher.hash_one(user) >> 32).unwrap_or(0);
        let shard = self.shards.get(hash % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn epoch(&self) -> &AtomicI64 {
        &self.epoch
    }

    #[cfg(test)]
    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(super) fn touch(&self, users: &[UserId], writer: Writer) {
        let now_ms = self.clock.now_ms();
        for &user in users {
            let Some(mut shard) = self.shard(user) else { continue };
            let slot = shard.get_or_insert(user, now_ms, self.ttl_ms, self.shard_capacity);
            slot.state.touch(writer, self.lease_ms, now_ms);
            slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
        }
    }

    pub(super) fn get(&self, user: UserId) -> Lookup {
        let lookup = self.look(user);
        self.meters.read(Ok(&lookup));
        lookup
    }

    fn look(&self, user: UserId) -> Lookup {
        let now_ms = self.clock.now_ms();
        let epoch = self.epoch.load(Ordering::Acquire);
        let Some(mut shard) = self.shard(user) else { return Lookup::Miss { fill: None, last_known: None } };
        if let Some(slot) = shard.get(user, now_ms)
            && let Some(entry) = slot.state.clean(epoch)
        {
            // Every write comes by here, so what is read stays.
            slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
            return Lookup::Hit(Arc::clone(entry));
        }
        let nonce = FillToken(self.nonces.next());
        shard.get_or_insert(user, now_ms, self.ttl_ms, self.shard_capacity).state.get(nonce, epoch, now_ms)
    }

    pub(super) fn fill(&self, user: UserId, token: FillToken, entry: &Entry) -> bool {
        let now_ms = self.clock.now_ms();
        let kept = self.shard(user).is_some_and(|mut shard| {
            let Some(slot) = shard.get(user, now_ms) else { return false };
            let kept = slot.state.fill(token, self.epoch.load(Ordering::Acquire), entry, now_ms);
            if kept {
                slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
            }
            kept
        });
        self.meters.fill(kept);
        kept
    }

    pub(super) fn publish(&self, writer: Writer, changes: &[Change]) {
        let now_ms = self.clock.now_ms();
        for change in changes {
            let applied = self.shard(change.user).is_some_and(|mut shard| {
                let Some(slot) = shard.get(change.user, now_ms) else { return false };
                let applied = slot.state.publish(writer, self.epoch.load(Ordering::Acquire), change, now_ms);
                if applied {
                    slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
                }
                applied
            });
            self.meters.publish(applied);
        }
        self.hub.wake(changes.iter().filter(|change| change.before != change.after).map(|change| change.user));
    }

    pub(super) fn leave(&self, users: &[UserId], writer: Writer) {
        let now_ms = self.clock.now_ms();
        for &user in users {
            if let Some(slot) = self.shard(user).as_mut().and_then(|shard| shard.get(user, now_ms)) {
                slot.state.leave(writer, now_ms);
            }
        }
    }

    pub(super) fn listen(&self, user: UserId) -> Listener {
        self.hub.listen(user)
    }

    /// Drops everything but the writers inside, whose entries stay dirty.
    pub(super) fn clear(&self) {
        let now_ms = self.clock.now_ms();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let Shard { entries, ring } = &mut *shard;
            entries.retain(|_, slot| {
                slot.state.forget();
                slot.state.has_writers(now_ms)
            });
            ring.retain(|user| entries.contains_key(user));
        }
    }

    /// Evicts one entry, by the rule that holds for every eviction; whether it did.
    #[cfg(test)]
    pub(super) fn evict(&self, user: UserId) -> bool {
        let now_ms = self.clock.now_ms();
        let mut shard = self.shard(user).unwrap();
        let evictable = shard.entries.get(&user).is_some_and(|slot| !slot.state.has_writers(now_ms));
        if evictable {
            shard.entries.remove(&user);
            shard.ring.retain(|&other| other != user);
        }
        evictable
    }

    /// Whether the user has an entry that shows anything, be it outdated.
    #[cfg(test)]
    pub(super) fn shows(&self, user: UserId) -> bool {
        self.shard(user).unwrap().entries.get(&user).is_some_and(|slot| slot.state.shows())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap().entries.len()).sum()
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("config", &self.config).finish_non_exhaustive()
    }
}
