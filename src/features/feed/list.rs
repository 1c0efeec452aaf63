//! Users' lists, decoded: a cached head and a mark for each creator, so that counting a feed is
//! reading cached heads, without a lock, a hash or a store.
//!
//! A list belongs to a *version*, the revision at which it changed last, which a user's cache entry
//! names. So one that is kept is never wrong: it is either that of the version or it is loaded
//! again, from Redis where another node has left it, else from SQL. Neither evictions nor a Redis
//! that lost them change a number.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moka::future::Cache as Lists;

use super::followees::{Counted, FOR_EVER, FeedList, Followee, Term};
use super::shared_list::SharedList;
use super::{FeedConfig, Horizon, Snapshot, store};
use crate::base::clock::{DAY_MS, UnixMs};
use crate::base::error::Error;
use crate::base::ids::UserId;
use crate::cache::{Cache, ListVersion, Revision};
use crate::db::{Db, DbResult, MAX_READ};
use crate::engine::get_or_read::get_or_read;
use crate::engine::guard::{Guard, Trust};
use crate::engine::heads::{Heads, KeptCount, Versions};
use crate::engine::marks::StreamKey;
use crate::engine::turns::Turns;
use crate::features::silence::Mute;

/// How long a read of SQL may take for a database that did not answer recently: what is in memory may do without it.
const SQL_TRIAL: Duration = Duration::from_millis(500);

/// How often cached heads are loaded that were forgotten meanwhile, before the count is given up.
const MAX_LOADS: u32 = 4;

/// How often a list is counted whose heads change while it is, before the count is given up.
const MAX_COUNTS: u32 = 100;

/// How many unread posts the feed has, and what they were counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedCount {
    /// Posts that came since the user last looked; where the unread summary is capped, no more than
    /// one above the cap.
    pub unread: i64,
    /// How many the user follows.
    pub creators: i64,
    /// The versions of their heads.
    pub versions: Versions,
    /// The revision at which the list of creators that was counted changed last.
    pub list_changed_at: Revision,
    /// When the next mute of a creator ends, whose posts count from then on.
    pub changes_at: Option<UnixMs>,
}

/// The lists of the users who poll.
#[derive(Debug)]
pub struct Feeds {
    db: Db,
    cache: Arc<Cache>,
    guard: Arc<Guard>,
    heads: Arc<Heads>,
    turns: Arc<Turns>,
    lists: Lists<UserId, Arc<FeedList>>,
    /// For how long rows of posts are kept; None: for ever.
    posts_kept_ms: Option<i64>,
}

impl Feeds {
    #[must_use]
    pub fn new(config: &FeedConfig, db: Db, cache: Arc<Cache>, guard: Arc<Guard>, heads: Arc<Heads>, turns: Arc<Turns>) -> Self {
        let weigh = |_: &UserId, list: &Arc<FeedList>| list.weight();
        let lists = Lists::builder().weigher(weigh).max_capacity(config.feed_cache_bytes).build();
        let posts_kept_ms = (config.post_ttl_days > 0).then(|| i64::from(config.post_ttl_days) * DAY_MS);
        Self { db, cache, guard, heads, turns, lists, posts_kept_ms }
    }

    /// How much of a list is unread, no more than `most`. `version` is that of the
    /// user's state: an older list will not do.
    pub async fn count(&self, user: UserId, version: i64, most: i64, now: UnixMs) -> Result<FeedCount, Error> {
        let list = self.list(user, version).await?;
        let counted = list.count_kept(self.heads.history(), now);
        if counted.unloaded || !counted.below.is_empty() {
            // Boxed, so that the many polls that need it not need not carry its room.
            return Box::pin(self.count_on(&list, counted, most, now)).await;
        }
        Ok(count_out(&list, &counted, most, now))
    }

    /// Whether rows of posts that came after a horizon may be gone by now.
    #[must_use]
    pub fn is_forgotten(&self, horizon: &Horizon, now: UnixMs) -> bool {
        self.posts_kept_ms.is_some_and(|kept_ms| horizon.at.0 < now.0 - kept_ms)
    }

    /// How much of a list is unread, and which posts were counted.
    pub async fn count_up_to_horizon(&self, user: UserId, version: i64, now: UnixMs) -> Result<(FeedCount, Horizon), Error> {
        let list = self.list(user, version).await?;
        let before = self.heads_of(&list).await?;
        // What is the same before and after this look is what the lanes had written: the look
        // brought all of that, and what was here before it was written by then.
        let lanes = BTreeMap::clone(&*self.in_time(self.heads.lanes()).await?);
        for _ in 0..MAX_COUNTS {
            let heads = self.heads_of(&list).await?;
            let counted = list.count(now);
            let count = self.count_on(&list, counted, i64::MAX, now).await?;
            if self.heads_of(&list).await? != heads {
                continue;
            }
            let others = list.followees.iter().zip(before.iter().zip(&heads)).filter(|(_, (before, head))| before != head);
            let counted = Snapshot::new(others.map(|(of, (_, head))| (of.creator, *head)).collect());
            return Ok((count, Horizon { at: now, lanes, counted }));
        }
        Err(Error::store_unavailable())
    }

    async fn heads_of(&self, list: &FeedList) -> Result<Vec<i64>, Error> {
        for _ in 0..MAX_LOADS {
            if let Some(heads) = list.heads() {
                return Ok(heads);
            }
            self.load_cached_heads(list).await?;
        }
        Err(Error::store_unavailable())
    }

    /// A user's list of this version or a later one.
    pub async fn list(&self, user: UserId, revision: Revision) -> Result<Arc<FeedList>, Error> {
        let version = self.cache.list_version(revision);
        match self.lists.get(&user).await {
            Some(list) if list.version.is_at_least(version) => Ok(list),
            _ => Box::pin(self.load(user, version)).await,
        }
    }

    /// Every term of a user's count, in the order of the creators.
    pub async fn terms(&self, user: UserId, version: i64, now: UnixMs) -> Result<Vec<Term>, Error> {
        let list = self.list(user, version).await?;
        self.load_cached_heads(&list).await?;
        let terms: Vec<_> = list.iter().collect();
        let below = terms.iter().filter(|(.., unread)| unread.is_none()).map(|(creator, head, mark, _)| (*creator, *mark, *head)).collect();
        let mut counted = self.count_rows(below).await?.into_iter();
        let muted: HashSet<_> = list.muted(now).collect();
        let term = |(creator, head, mark, unread): (UserId, i64, i64, Option<i64>)| {
            let unread = unread.or_else(|| counted.next()).unwrap_or_default();
            Term { creator, head, mark, unread, muted: muted.contains(&creator) }
        };
        let mut terms: Vec<_> = terms.into_iter().map(term).collect();
        terms.sort_unstable_by_key(|term| term.creator);
        Ok(terms)
    }

    /// How many bytes of lists are kept.
    pub async fn kept_bytes(&self) -> u64 {
        self.lists.run_pending_tasks().await;
        self.lists.weighted_size()
    }

    /// Forgets all lists: they are loaded again when they are next needed.
    pub fn clear(&self) {
        self.lists.invalidate_all();
    }

    /// Loads a list, once for all who want it at the same time.
    async fn load(&self, user: UserId, version: ListVersion) -> Result<Arc<FeedList>, Error> {
        let read = || async move {
            let list = match self.shared(user, version).await {
                Some(shared) => self.decoded(version, &shared).await?,
                None => self.read(user, version).await?,
            };
            Ok(Arc::new(list))
        };
        get_or_read(&self.lists, user, |list| list.version.is_at_least(version), read).await
    }

    /// The list as another node has left it, if that is of this version.
    async fn shared(&self, user: UserId, version: ListVersion) -> Option<SharedList> {
        let (found, list) = match self.cache.get_feed(user).await {
            Ok(found) => found?,
            Err(error) => {
                tracing::debug!(%error, "cannot ask the cache for a feed; the database has it");
                return None;
            }
        };
        if found != version {
            return None;
        }
        metrics::counter!("headmark_feed_loads_total", "from" => "cache").increment(1);
        SharedList::decode(&list)
    }

    /// The list as SQL has it. What is read belongs to the version that is read with it.
    async fn read(&self, user: UserId, wanted: ListVersion) -> Result<FeedList, Error> {
        crate::failpoint("feed::before_read");
        let rows = {
            let _turn = self.sql_turn().await?;
            self.in_time(store::read_list(&self.db, user)).await?
        };
        metrics::counter!("headmark_feed_loads_total", "from" => "database").increment(1);
        let snapshot = Snapshot::decode(&rows.snapshot).unwrap_or_else(|| {
            // Only the feed's number is then too high; the rest of the summary is right.
            tracing::error!(%user, "the snapshot of a feed cannot be read; all since the follows counts as unread (see `headmark recount`)");
            Snapshot::default()
        });
        let shared = SharedList { marks: rows.follows.raised_by(&snapshot), muted: rows.muted };
        let version = ListVersion { revision: rows.version, ..wanted };
        let list = self.decoded(version, &shared).await?;
        if let Err(error) = self.cache.set_feed(user, version, &shared.encode()).await {
            // The next node reads it from SQL.
            tracing::debug!(%error, "could not leave a feed in the cache");
        }
        Ok(list)
    }

    async fn decoded(&self, version: ListVersion, shared: &SharedList) -> Result<FeedList, Error> {
        let muted: HashMap<_, _> = shared.muted.iter().collect();
        let (last, mut marks): (Vec<_>, Vec<_>) = shared.marks.iter().partition(|(creator, _)| muted.contains_key(creator));
        let until =
            |(creator, _): &(UserId, i64)| muted.get(creator).map_or(FOR_EVER, |until| Mute::from_row(*until).until.unwrap_or(FOR_EVER));
        let muted_until = last.iter().map(until).collect();
        marks.extend(last);
        let keys: Vec<_> = marks.iter().map(|(creator, _)| StreamKey::posts(*creator)).collect();
        let _turn = if self.guard.trust() == Trust::Unsure { None } else { Some(self.turns.take().await?) };
        let cached_heads = self.in_time(self.heads.cached_heads(&keys)).await?;
        let followees =
            marks.into_iter().zip(cached_heads).map(|((creator, mark), cached_head)| Followee { cached_head, mark, creator }).collect();
        Ok(FeedList { version, followees, muted_until, below: Mutex::new(None), counted: KeptCount::default() })
    }

    /// Counts on where a head is not loaded, or a mark lies so far back that only the rows tell.
    async fn count_on(&self, list: &FeedList, counted: Counted, most: i64, now: UnixMs) -> Result<FeedCount, Error> {
        let mut counted = counted;
        for _ in 0..MAX_LOADS {
            if !counted.unloaded {
                if counted.unread < most {
                    counted.unread = counted.unread.saturating_add(self.count_below(list, &counted.below).await?);
                }
                return Ok(count_out(list, &counted, most, now));
            }
            self.load_cached_heads(list).await?;
            counted = list.count(now);
        }
        Err(Error::store_unavailable())
    }

    /// Loads the heads that are not loaded.
    async fn load_cached_heads(&self, list: &FeedList) -> Result<(), Error> {
        let without: Vec<_> = list.followees.iter().filter(|of| !of.cached_head.is_loaded()).collect();
        if without.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = without.iter().map(|of| StreamKey::posts(of.creator)).collect();
        let cached_heads: Vec<_> = without.iter().map(|of| Arc::clone(&of.cached_head)).collect();
        let _turn = self.sql_turn().await?;
        self.in_time(self.heads.load(&keys, &cached_heads)).await
    }

    /// What is unread of those of whom only the rows tell. Each deletion raises a version, so what
    /// was counted holds for as long as the versions do.
    async fn count_below(&self, list: &FeedList, below: &[usize]) -> Result<i64, Error> {
        let these: Vec<_> = below.iter().filter_map(|at| list.followees.get(*at)).collect();
        let version = these.iter().map(|of| of.cached_head.version()).fold(0, i64::saturating_add);
        if let Some((_, unread)) = list.below().filter(|(known, _)| *known == version) {
            return Ok(unread);
        }
        let unread = self.count_rows(these.iter().map(|of| (of.creator, of.mark, of.cached_head.head())).collect()).await?;
        let unread = unread.into_iter().fold(0, i64::saturating_add);
        *list.below() = Some((version, unread));
        Ok(unread)
    }

    /// What each of these creators (with mark and head) has that is unread, by the rows of what is
    /// gone.
    async fn count_rows(&self, creators: Vec<(UserId, i64, i64)>) -> Result<Vec<i64>, Error> {
        if creators.is_empty() {
            return Ok(Vec::new());
        }
        let _turn = self.sql_turn().await?;
        metrics::counter!("headmark_feed_counts_from_rows_total").increment(1);
        let gone: HashMap<_, _> = self.in_time(store::gone(&self.db, &creators)).await?.into_iter().collect();
        let unread = |(creator, mark, head): &(UserId, i64, i64)| (head - mark - gone.get(creator).copied().unwrap_or(0)).max(0);
        Ok(creators.iter().map(unread).collect())
    }

    /// A turn to read SQL. Not waited for where the database did not answer recently.
    async fn sql_turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        if self.guard.trust() == Trust::Unsure {
            return Err(Error::store_unavailable());
        }
        self.turns.take().await
    }

    async fn in_time<T>(&self, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        let most = if self.guard.trust() == Trust::Unsure { SQL_TRIAL } else { MAX_READ };
        let read = tokio::time::timeout(most, read).await;
        Ok(read.unwrap_or(Err(sqlx::Error::PoolTimedOut))?)
    }
}

fn count_out(list: &FeedList, counted: &Counted, most: i64, now: UnixMs) -> FeedCount {
    FeedCount {
        unread: counted.unread.min(most),
        creators: i64::try_from(list.len()).unwrap_or(i64::MAX),
        versions: counted.versions,
        list_changed_at: list.version.revision,
        changes_at: list.changes_at(now),
    }
}
