//! The heads of the streams that users share, as this node holds them: the broadcast state (all
//! channels and dots) and a *cached head* for each other stream that somebody here looked at, such
//! as a creator's posts.
//!
//! ```text
//!   a lane here commits ──▶ apply (at once)
//!                                  ╲
//!   lanes elsewhere ─▶ SQL ─ follow ▶ cached heads, broadcast state ──▶ feeds, unread summaries, views
//!                         (twice a second)
//! ```
//!
//! What a lane here writes to the broadcast state is put on top of the broadcast state that is
//! here, without a look at the database, where that is the broadcast state it was written to. Where
//! another node wrote in between, what it wrote is read first: the head of the broadcast state is
//! the version of all that is on it, so nothing below it may be missing.
//!
//! Each batch that changes heads writes to `head_changes` which ones, and a lane's batches commit
//! one after the other. So a node that remembers how far each lane was asks for exactly what others
//! changed since. Nothing can be missed, as a number drawn before its commit could be. A head only
//! ever goes from a lower version to a higher one, whichever way it comes.
//!
//! A *look* is that question: one statement, so that all it finds is of one moment. The first one reads
//! much ahead (`first_look.rs`).
//! [`Heads::catch_up`] waits for a look that began after it was called. So it shows every commit
//! that anybody had been told of by then. One look serves all who asked before it began.
//!
//! A cached head stays the same object for as long as anybody holds it: a decoded feed holds those
//! of its creators, and counting is reading them. To add a sort of stream: a
//! [`crate::engine::marks::Kind`], a constructor of [`StreamKey`], and reading its cached heads
//! with [`Heads::cached_heads`].

mod broadcast_state;
mod cached_head;
mod deleted;
mod distributed;
pub mod erased;
pub mod first_look;
mod followed;
mod kept_count;
mod shard;
pub mod store;
mod versions;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::broadcast_state::{BroadcastState, Channel, Dot};
pub use self::cached_head::{AboveFloor, CachedHead};
pub use self::deleted::Deleted;
use self::first_look::ReadAhead;
use self::followed::Followed;
pub use self::kept_count::KeptCount;
pub use self::shard::MAX_CELLS;
use self::shard::{SHARDS, Shard};
use self::store::Look;
pub use self::store::NoticeRow;
pub use self::versions::{Batch, Versions};
use crate::base::clock::{Clock, UnixMs};
use crate::db::{Db, DbResult, MAX_FIRST_CONNECT, classify};
use crate::engine::marks::{Kind, Stream, StreamKey};
use crate::failpoint;

/// How often a node asks what others changed. Together with the time that asking takes it stays
/// well below the 2 s that a change may take to show.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// For how long what was last heard counts as new.
const FRESH: Duration = Duration::from_millis(1800);

/// How long one look at the database may take. A first look has a longer limit, for each of its statements.
const MAX_LOOK: Duration = Duration::from_secs(1);

/// How long anybody waits for a look to come: for one that is under way, and the next one. A first look may
/// take longer than anybody should wait.
const MAX_WAIT: Duration = Duration::from_millis(2500);

/// Two looks begin at least so far apart, however many ask for one.
const LOOKS_APART: Duration = Duration::from_millis(10);

/// How often this node has asked what others changed.
const LOOKS: &str = "headmark_shared_looks_total";

/// Heads that one statement reads.
const HEADS_AT_ONCE: usize = 5000;

/// How often heads are read that are forgotten while they are read.
const MAX_LOADS: usize = 4;

/// The last look that is over.
#[derive(Debug, Clone, Copy, Default)]
struct Looked {
    /// When it began; None where there was none yet.
    began: Option<Instant>,
    /// Whether the database answered.
    answered: bool,
}

/// The heads as this node holds them.
#[derive(Debug)]
pub struct Heads {
    db: Db,
    clock: Clock,
    broadcast_state: ArcSwap<BroadcastState>,
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    followed: tokio::sync::Mutex<Followed>,
    /// Whether a look is about to begin: anyone who asks now need not have one of its own.
    is_coming: AtomicBool,
    looked: watch::Sender<Looked>,
    /// Until when what is here counts as new.
    fresh_until: ArcSwap<Option<Instant>>,
    /// Counts the changes of the broadcast state, and those of cached heads: for polls that wait.
    changes: watch::Sender<Changes>,
    /// How many epochs of the installation were met here.
    epochs: AtomicU64,
    /// How often all cached heads were forgotten.
    forgotten: AtomicU64,
    /// How far each lane was at the last look: all that was written up to there is here.
    lanes: ArcSwap<BTreeMap<i64, i64>>,
}

/// A history of the database: see [`Heads::history`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct History(u64);

/// How often something changed on this node; only for being woken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    pub broadcast_state: u64,
    /// Any cached head.
    pub cached_heads: u64,
}

/// What a batch of a lane of this node has changed of what users share.
#[derive(Debug, Default)]
pub struct Committed {
    /// The heads, as they are now.
    pub heads: Vec<(StreamKey, Stream)>,
    /// The notices that were sent or taken back, as they are now.
    pub notices: Vec<NoticeRow>,
    /// Where the broadcast state is among the heads: its head before.
    pub broadcast_state_before: Option<i64>,
}

impl Heads {
    /// Over this database, with the broadcast state as it is now.
    pub async fn start(db: Db, clock: Clock) -> DbResult<Arc<Self>> {
        let this = Self {
            db,
            clock,
            broadcast_state: ArcSwap::default(),
            shards: std::iter::repeat_with(Mutex::default).take(SHARDS).collect(),
            hasher: RandomState::new(),
            followed: tokio::sync::Mutex::default(),
            is_coming: AtomicBool::new(false),
            looked: watch::Sender::default(),
            fresh_until: ArcSwap::default(),
            changes: watch::Sender::default(),
            epochs: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            lanes: ArcSwap::default(),
        };
        // A database that is busy is slow, which is no reason not to start.
        let give_up = Instant::now() + MAX_FIRST_CONNECT;
        while let Err(error) = this.look().await {
            if !classify(&error).may_pass() || Instant::now() >= give_up {
                return Err(error);
            }
        }
        Ok(Arc::new(this))
    }

    /// Asks what others changed, again and again, until told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tick = tokio::time::interval(FOLLOW_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            // For polls that wait: anyone who reads the broadcast state sees no expired notice
            // anyway.
            self.expire(self.clock.now());
            // Nothing is lost where that fails: the next look asks for all since the last one that
            // came through. Until then polls say that they are degraded.
            let _ = self.catch_up().await;
        }
    }

    /// The broadcast state without what has expired by now.
    #[must_use]
    pub fn broadcast_state(&self) -> Arc<BroadcastState> {
        self.broadcast_state_at(self.clock.now())
    }

    /// The same for a caller that has looked at the clock.
    #[must_use]
    pub fn broadcast_state_at(&self, now: UnixMs) -> Arc<BroadcastState> {
        self.expire(now);
        self.broadcast_state.load_full()
    }

    fn expire(&self, now: UnixMs) {
        if self.broadcast_state.load().is_outdated(now) {
            self.change_broadcast_state(|broadcast_state| Some(broadcast_state.clone().expired(now)));
        }
    }

    /// Whether what is here is as new as it is promised to be. Without other nodes it is, also where no look comes
    /// through.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.fresh_until.load().is_some_and(|until| !self.has_peers() || Instant::now() < until)
    }

    /// Whether other nodes change heads, too. Without them, an answer that a client has seen never
    /// had newer ones than are here: what this node commits is here before it shows.
    #[must_use]
    pub fn has_peers(&self) -> bool {
        self.db.is_shared()
    }

    /// To be told of changes.
    #[must_use]
    pub fn listen(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }

    /// The epoch of the installation, as of the last look.
    #[must_use]
    pub fn epoch(&self) -> Arc<str> {
        Arc::clone(&self.broadcast_state.load().epoch)
    }

    /// Which history the database is in, as a number of this node's own. Whatever is kept here under
    /// a revision is kept under this, too: after a restore the same revisions are given again.
    #[must_use]
    pub fn history(&self) -> History {
        History(self.epochs.load(Ordering::Acquire))
    }

    /// Returns after a look that began after this call, so that all that was committed before it is
    /// here. A look goes on also where nobody waits for it any more.
    ///
    /// # Errors
    /// The pool's, should that look have failed or take too long; the log has the database's own.
    pub async fn catch_up(self: &Arc<Self>) -> DbResult<()> {
        let mut looked = self.looked.subscribe();
        let asked = Instant::now();
        if !self.is_coming.swap(true, Ordering::AcqRel) {
            let this = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = this.look().await {
                    tracing::debug!(%error, "cannot ask what others changed");
                }
            });
        }
        let over = looked.wait_for(|looked| looked.began.is_some_and(|began| began >= asked));
        match tokio::time::timeout(MAX_WAIT, over).await {
            Ok(Ok(looked)) if looked.answered => Ok(()),
            _ => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// The broadcast state for a list of what is on it. `at_once`: it has all that any node has acknowledged by now.
    /// Otherwise it is as new as it is promised to be.
    ///
    /// # Errors
    /// As [`Self::catch_up`], where a look is needed.
    pub async fn broadcast_state_to_list(self: &Arc<Self>, at_once: bool) -> DbResult<Arc<BroadcastState>> {
        if (at_once && self.has_peers()) || !self.is_fresh() {
            self.catch_up().await?;
        }
        Ok(self.broadcast_state())
    }

    /// How far each lane is now. All that was written up to there is here.
    pub async fn lanes(self: &Arc<Self>) -> DbResult<Arc<BTreeMap<i64, i64>>> {
        self.catch_up().await?;
        Ok(self.lanes.load_full())
    }

    /// What a lane of this node has committed: it shows here at once.
    pub async fn committed(self: &Arc<Self>, committed: Committed) {
        self.take(&committed.heads);
        let Some(before) = committed.broadcast_state_before else { return };
        let mut missed = false;
        self.change_broadcast_state(|broadcast_state| {
            missed = broadcast_state.head < before;
            // One that is further already was read after the commit.
            (broadcast_state.head == before).then(|| broadcast_state.with(&committed.heads, &committed.notices, self.clock.now()))
        });
        if missed && self.catch_up().await.is_err() {
            // The write is durable all the same. Until a look brings it, polls must not pass for
            // current.
            self.fresh_until.store(Arc::new(None));
        }
    }

    /// One look, a little after the one before.
    async fn look(&self) -> DbResult<()> {
        let mut followed = self.followed.lock().await;
        if let Some(last) = followed.last {
            tokio::time::sleep_until(last + LOOKS_APART).await;
        }
        let mut moment = self.begin();
        followed.last = Some(moment.0);
        if followed.is_old(moment) {
            followed.lanes = None;
        }
        let outcome = self.look_at(&mut followed, &mut moment).await;
        let (began, _) = moment;
        if outcome.is_ok() {
            followed.answered = Some(moment);
            self.fresh_until.store(Arc::new(Some(began + FRESH)));
            self.lanes.store(Arc::new(followed.lanes.iter().flatten().map(|(lane, batch)| (*lane, *batch)).collect()));
        }
        metrics::counter!(LOOKS).increment(1);
        self.looked.send_replace(Looked { began: Some(began), answered: outcome.is_ok() });
        outcome
    }

    /// A look begins now, by either clock.
    fn begin(&self) -> (Instant, UnixMs) {
        // In this order: who still saw that a look was coming asked before it began.
        self.is_coming.store(false, Ordering::Release);
        (Instant::now(), self.clock.now())
    }

    async fn look_at(&self, followed: &mut Followed, moment: &mut (Instant, UnixMs)) -> DbResult<()> {
        let here = self.broadcast_state.load_full();
        if let Some(lanes) = &followed.lanes {
            let look = store::look(&self.db, lanes, here.head);
            let look = tokio::time::timeout(MAX_LOOK, look).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
            if !look.is_partial(lanes) && look.epoch == here.epoch {
                let is_shared = |(key, _): &(StreamKey, Stream)| matches!(key.kind, Kind::BroadcastState | Kind::Broadcast | Kind::Dot);
                if !look.notices.is_empty() || look.heads.iter().any(is_shared) {
                    self.change_broadcast_state(|broadcast_state| Some(broadcast_state.with(&look.heads, &look.notices, self.clock.now())));
                }
                self.take(&look.heads);
                followed.lanes = Some(look.lanes);
                return Ok(());
            }
        }
        // Nothing is here yet, too much was missed, or another database is instead of the one that
        // was here.
        let ahead = ReadAhead::read(&self.db).await?;
        // Whoever asked while it was read ahead is served, too: all is of the moment that comes now.
        *moment = self.begin();
        let look = ahead.look(&self.db).await?;
        self.begin_with(&look);
        followed.lanes = Some(look.lanes);
        Ok(())
    }

    /// What a first look has found is all there is.
    fn begin_with(&self, look: &Look) {
        let is_other_history = look.epoch != self.broadcast_state.load().epoch;
        if is_other_history {
            // First: nothing that was kept before is shown as of the new epoch.
            self.epochs.fetch_add(1, Ordering::AcqRel);
        }
        self.change_broadcast_state(|broadcast_state| {
            let base =
                if broadcast_state.epoch == look.epoch { broadcast_state.clone() } else { BroadcastState::of(Arc::clone(&look.epoch)) };
            Some(base.with(&look.heads, &look.notices, self.clock.now()))
        });
        self.forget_all();
        if is_other_history {
            // Again: nor what was made meanwhile of heads that were still the old ones.
            self.epochs.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Puts another broadcast state instead of the one that is here. `next` is asked again should
    /// somebody else do so in the same moment.
    fn change_broadcast_state(&self, mut next: impl FnMut(&BroadcastState) -> Option<BroadcastState>) {
        let mut changed = false;
        self.broadcast_state.rcu(|broadcast_state| {
            let next = next(broadcast_state).filter(|next| *next != **broadcast_state);
            changed = next.is_some();
            next.map_or_else(|| Arc::clone(broadcast_state), |next| Arc::new(next.following(broadcast_state)))
        });
        if changed {
            self.changes.send_modify(|changes| changes.broadcast_state = changes.broadcast_state.wrapping_add(1));
        }
    }

    fn shard(&self, key: &StreamKey) -> Option<MutexGuard<'_, Shard>> {
        let hash = usize::try_from(self.hasher.hash_one(key) >> 32).unwrap_or(0);
        let shard = self.shards.get(hash % SHARDS)?;
        // Every change below is made in one step, so a poisoned lock guards whole data.
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in heads; those that nobody looked at here are passed over.
    fn take(&self, heads: &[(StreamKey, Stream)]) {
        let mut changed = false;
        for (key, stream) in heads {
            let cached_head = self.shard(key).and_then(|shard| shard.cached_heads.get(key).map(Arc::clone));
            changed |= cached_head.is_some_and(|cached_head| cached_head.change(key.kind, stream));
        }
        if changed {
            self.changes.send_modify(|changes| changes.cached_heads = changes.cached_heads.wrapping_add(1));
        }
    }

    /// After too much was missed: every cached head is to be read again.
    pub fn forget_all(&self) {
        // What was read before this is not taken any more. Nor is what is read while they are forgotten: what was told
        // of it meanwhile may be forgotten, too.
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).cached_heads.values().for_each(|cached_head| cached_head.forget());
        }
        self.forgotten.fetch_add(1, Ordering::AcqRel);
    }

    /// The cached heads of these streams, in their order, all with a head. They stand in the table
    /// before SQL is asked, so that no change can fall in between.
    pub async fn cached_heads(&self, keys: &[StreamKey]) -> DbResult<Vec<Arc<CachedHead>>> {
        let cached_heads: Vec<_> = keys.iter().map(|key| self.cached_head(key)).collect();
        self.load(keys, &cached_heads).await?;
        Ok(cached_heads)
    }

    /// The same, if none of them needs to be read.
    #[must_use]
    pub fn cached_heads_here(&self, keys: &[StreamKey]) -> Option<Vec<Arc<CachedHead>>> {
        keys.iter().map(|key| Some(self.cached_head(key)).filter(|cached_head| cached_head.is_loaded())).collect()
    }

    /// Reads those of these cached heads from SQL that have no head. `keys` and `cached_heads`
    /// belong together.
    ///
    /// # Errors
    /// Those of the database; the pool's where all heads were forgotten each time before they came.
    pub async fn load(&self, keys: &[StreamKey], cached_heads: &[Arc<CachedHead>]) -> DbResult<()> {
        for tries in 0.. {
            let missing: Vec<_> = keys.iter().zip(cached_heads).filter(|(_, cached_head)| !cached_head.is_loaded()).collect();
            if missing.is_empty() {
                break;
            }
            if tries == MAX_LOADS {
                return Err(sqlx::Error::PoolTimedOut);
            }
            for chunk in missing.chunks(HEADS_AT_ONCE) {
                self.read(chunk).await?;
            }
        }
        Ok(())
    }

    async fn read(&self, missing: &[(&StreamKey, &Arc<CachedHead>)]) -> DbResult<()> {
        let forgotten = self.forgotten.load(Ordering::Acquire);
        let wanted: Vec<_> = missing.iter().map(|(key, _)| (*key).clone()).collect();
        let mut found: HashMap<_, _> = store::read(&self.db, &wanted).await?.into_iter().collect();
        failpoint("heads::after_read");
        for (key, cached_head) in missing {
            // A look that found all again does not ask once more for what was changed before it.
            let is_current = || self.forgotten.load(Ordering::Acquire) == forgotten;
            cached_head.load(key.kind, &found.remove(*key).unwrap_or_default(), is_current);
        }
        Ok(())
    }

    /// The cached head of a stream, which may have no head yet.
    #[must_use]
    pub fn cached_head(&self, key: &StreamKey) -> Arc<CachedHead> {
        self.shard(key).map(|mut shard| shard.of(key)).unwrap_or_default()
    }
}
