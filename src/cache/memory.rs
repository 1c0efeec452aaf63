//! The cache of a single node, in process.
//!
//! A sharded table with an eviction of its own. A general-purpose cache in its place would evict an
//! entry while a writer is inside, and what that writer leaves behind in the detached entry would
//! be lost to the readers of a new one: a stale answer after an acknowledged write. Here an entry
//! lives in the table alone, is seen under its shard's lock alone, and is never evicted while an
//! unexpired writer is inside. So a begin is lost in no case, and what an eviction takes is either
//! clean, or dirty with every writer's transaction over: then anyone who reads next finds nothing
//! and asks SQL, which has all of it.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::entry::EntryState;
use super::hub::{Hub, Listener};
use super::meters::Meters;
use super::nonce::Nonces;
use super::{CacheConfig, Change, Derived, Entry, FillToken, KEPT_BYTES, Lookup, ReadEntry, Writer};
use crate::base::id_hash::IdHash;
use crate::base::ids::UserId;

/// Independent parts of the table, each with its own lock.
const SHARDS: usize = 64;

/// Entries that one change spares while it makes room; then the table may stay above its capacity
/// for a while, by no more than the users that running writers are in. What it evicts is not
/// counted: each entry is evicted once.
const MAX_SPARED: usize = 32;

/// Of these, how many because they were read since the last look.
const SECOND_CHANCES: usize = 16;

/// Entries that an insertion looks at for expired ones, so that users who went away do not fill the
/// table for ever.
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
    /// When the whole entry, dirt included, is gone. Set by begin, fill and apply to at least a
    /// lease from then.
    expires_at_ms: u64,
    /// Whether it was used since the eviction last looked.
    used: bool,
    /// How much memory it took when it was last changed.
    weight_bytes: usize,
}

impl Slot {
    fn fresh(expires_at_ms: u64) -> Self {
        Self { state: EntryState::default(), expires_at_ms, used: true, weight_bytes: 0 }
    }

    fn weigh(&self) -> usize {
        KEPT_BYTES + self.state.size_bytes()
    }
}

/// How much a shard may hold.
#[derive(Debug, Clone, Copy)]
struct Room {
    entries: usize,
    bytes: usize,
}

/// A part of the table. `ring` holds each user of `entries` exactly once, the next candidate for
/// eviction first.
#[derive(Default)]
struct Shard {
    entries: HashMap<UserId, Slot, IdHash>,
    ring: VecDeque<UserId>,
    /// The weights of all entries.
    bytes: usize,
}

impl Shard {
    /// Changes the user's entry, if there is one that has not expired.
    fn change<R>(&mut self, user: UserId, now_ms: u64, room: Room, change: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let slot = self.entries.get_mut(&user).filter(|slot| slot.expires_at_ms > now_ms)?;
        slot.used = true;
        let changed = change(slot);
        let after = slot.weigh();
        let before = std::mem::replace(&mut slot.weight_bytes, after);
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
        if self.bytes > room.bytes {
            self.make_room(now_ms, room, 0);
        }
        Some(changed)
    }

    /// The same, where there may be none yet: a new one lives for `ttl_ms`.
    fn change_or_insert<R>(
        &mut self,
        user: UserId,
        now_ms: u64,
        ttl_ms: u64,
        room: Room,
        change: impl FnOnce(&mut Slot) -> R,
    ) -> Option<R> {
        let fresh = Slot::fresh(now_ms.saturating_add(ttl_ms));
        match self.entries.get_mut(&user) {
            Some(slot) if slot.expires_at_ms > now_ms => {}
            Some(expired) => *expired = Slot { weight_bytes: expired.weight_bytes, ..fresh },
            None => {
                self.make_room(now_ms, room, 1);
                self.ring.push_back(user);
                self.entries.insert(user, fresh);
            }
        }
        self.change(user, now_ms, room, change)
    }

    /// Drops what expired, and evicts until so many more fit, where the running writers allow it.
    fn make_room(&mut self, now_ms: u64, room: Room, more: usize) {
        let (mut looked, mut spared) = (0, 0);
        while spared < MAX_SPARED {
            let full = self.entries.len() + more > room.entries || self.bytes > room.bytes;
            if !full && looked >= EXPIRY_STEPS {
                return;
            }
            looked += 1;
            let Some(user) = self.ring.pop_front() else { return };
            let Some(slot) = self.entries.get_mut(&user) else { continue };
            let expired = slot.expires_at_ms <= now_ms;
            let spare = !full || (slot.used && spared < SECOND_CHANCES) || slot.state.has_writers(now_ms);
            if spare && !expired {
                slot.used = slot.used && !full;
                self.ring.push_back(user);
                spared += 1;
                continue;
            }
            self.remove(user);
        }
    }

    fn remove(&mut self, user: UserId) {
        if let Some(slot) = self.entries.remove(&user) {
            self.bytes = self.bytes.saturating_sub(slot.weight_bytes);
        }
    }
}

/// The in-process cache: exact, for one node.
pub struct Memory {
    shards: Vec<Mutex<Shard>>,
    hasher: IdHash,
    room: Room,
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
        let of_a_shard = |total: u64| usize::try_from(total).unwrap_or(usize::MAX).div_ceil(SHARDS).max(1);
        let lease_ms = millis(config.lease);
        Self {
            shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect(),
            hasher: IdHash::default(),
            room: Room { entries: of_a_shard(config.capacity), bytes: of_a_shard(config.capacity_bytes) },
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

    /// The user's shard. What a shard's methods do to it they do without panicking in between, so a
    /// poisoned lock guards whole data.
    fn shard(&self, user: UserId) -> Option<MutexGuard<'_, Shard>> {
        let hash = usize::try_from(self.hasher.hash_one(user) >> 32).unwrap_or(0);
        let shard = self.shards.get(hash % SHARDS)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn epoch(&self) -> &AtomicI64 {
        &self.epoch
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(super) fn begin_write(&self, users: &[UserId], writer: Writer) {
        let now_ms = self.clock.now_ms();
        for &user in users {
            let Some(mut shard) = self.shard(user) else { continue };
            shard.change_or_insert(user, now_ms, self.ttl_ms, self.room, |slot| {
                slot.state.begin_write(writer, self.lease_ms, now_ms);
                slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
            });
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
        let nothing = Lookup::Miss { fill: None, last_known: None };
        let Some(mut shard) = self.shard(user) else { return nothing };
        if let Some(slot) = shard.entries.get_mut(&user).filter(|slot| slot.expires_at_ms > now_ms)
            && let Some(entry) = slot.state.clean(epoch)
        {
            // Every write comes by here, so what is read stays.
            slot.used = true;
            slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
            return Lookup::Hit(Arc::clone(entry));
        }
        let nonce = FillToken(self.nonces.next());
        shard.change_or_insert(user, now_ms, self.ttl_ms, self.room, |slot| slot.state.get(nonce, epoch, now_ms)).unwrap_or(nothing)
    }

    pub(super) fn fill(&self, user: UserId, token: FillToken, entry: &Entry) -> bool {
        let now_ms = self.clock.now_ms();
        let fill = |slot: &mut Slot| {
            let kept = slot.state.fill(token, self.epoch.load(Ordering::Acquire), entry, now_ms);
            if kept {
                slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
            }
            kept
        };
        let kept = self.shard(user).and_then(|mut shard| shard.change(user, now_ms, self.room, fill)).unwrap_or(false);
        self.meters.fill(kept);
        kept
    }

    pub(super) fn keep(&self, user: UserId, entry: &Arc<ReadEntry>, derived: Arc<dyn Derived>) {
        let now_ms = self.clock.now_ms();
        if let Some(mut shard) = self.shard(user) {
            shard.change(user, now_ms, self.room, |slot| slot.state.keep(entry, derived));
        }
    }

    pub(super) fn apply_write(&self, writer: Writer, changes: &[Change]) {
        let now_ms = self.clock.now_ms();
        for change in changes {
            let apply = |slot: &mut Slot| {
                let applied = slot.state.apply_write(writer, self.epoch.load(Ordering::Acquire), change, now_ms);
                if applied {
                    slot.expires_at_ms = now_ms.saturating_add(self.ttl_ms);
                }
                applied
            };
            let applied = self.shard(change.user).and_then(|mut shard| shard.change(change.user, now_ms, self.room, apply));
            self.meters.apply(applied.unwrap_or(false));
        }
        self.hub.wake(changes.iter().filter(|change| change.before != change.after).map(|change| change.user));
    }

    pub(super) fn abandon_write(&self, users: &[UserId], writer: Writer) {
        let now_ms = self.clock.now_ms();
        for &user in users {
            if let Some(mut shard) = self.shard(user) {
                shard.change(user, now_ms, self.room, |slot| slot.state.abandon_write(writer, now_ms));
            }
        }
    }

    pub(super) fn wake(&self, user: UserId) {
        self.hub.wake([user]);
    }

    pub(super) fn listen(&self, user: UserId) -> Listener {
        self.hub.listen(user)
    }

    /// Drops everything but the writers inside, whose entries stay dirty.
    pub(super) fn clear(&self) {
        let now_ms = self.clock.now_ms();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let Shard { entries, ring, bytes } = &mut *shard;
            *bytes = 0;
            entries.retain(|_, slot| {
                slot.state.forget();
                slot.weight_bytes = slot.weigh();
                let stays = slot.state.has_writers(now_ms);
                *bytes += if stays { slot.weight_bytes } else { 0 };
                stays
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
            shard.remove(user);
            shard.ring.retain(|&other| other != user);
        }
        evictable
    }

    /// Whether the user has an entry that shows anything, be it outdated.
    #[cfg(test)]
    pub(super) fn shows(&self, user: UserId) -> bool {
        self.shard(user).unwrap().entries.get(&user).is_some_and(|slot| slot.state.shows())
    }

    /// How much memory the entries take, counted again.
    #[cfg(test)]
    pub(super) fn weigh(&self) -> usize {
        let weigh = |shard: &Shard| {
            let weight: usize = shard.entries.values().map(Slot::weigh).sum();
            assert_eq!(shard.bytes, weight, "what was counted as it changed");
            assert_eq!(shard.ring.len(), shard.entries.len());
            weight
        };
        self.shards.iter().map(|shard| weigh(&shard.lock().unwrap())).sum()
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
