//! Look-ups of what users are to each other, and whole lists, from the caches.
//!
//! Lists go by *version*: the revision at which a user's list changed last, which the user's cache
//! entry names. What is kept of a version, in memory or in Redis, is right for that version however
//! old it is, so it can be lost and is never wrong; and whether it is the present one, the entry
//! tells, which is never silently stale. A user's *facts* are what the user and others are to each
//! other, both directions in one number: a second entry of the one who looks, the hash `{u:42}:r`.
//! The first look-up fills it with all others of whom there is something to tell; anyone who changes
//! one of them makes it dirty before the commit, and applies the change after it
//! (`cache/facts.rs`). A look-up reads one hash, whatever it asks. A star has too many relations
//! for that, and is told from memory ([`super::hot_users`]).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache as Lists;

use super::hot_users::MAX_COMPLETE;
use super::lookup_batch::{Looked, LookupBatch};
use super::whole_lists::{self, Related};
use super::{HotUsers, Pair, RelationConfig, lookup_store, mute_store};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem, Result};
use crate::base::ids::UserId;
use crate::cache::{Cache, ListVersion, Revision};
use crate::db::Db;
use crate::engine::get_or_read::get_or_read;
use crate::engine::guard::{Guard, Trust};
use crate::engine::turns::Turns;

/// How long a list may be that is left in Redis for other nodes, which a larger value would keep
/// waiting. Longer ones each node reads from SQL.
const MAX_SHARED: usize = 100_000;

/// How many users are remembered as being read whole, and for how long: one who is written to all
/// the time, so that nothing may be left, is not read whole for each look-up.
const MAX_READING: u64 = 100_000;
const READING_FOR: Duration = Duration::from_secs(1);

/// How many users one look-up reads whole at most: those of whom it asks at least an equal share.
const MAX_READ_WHOLE: usize = 4;

/// What a list takes besides its ids.
const LIST_BYTES: usize = 96;

/// A whole list as of one version.
#[derive(Debug, PartialEq, Eq)]
pub struct WholeList {
    /// That of the revision at which it changed last.
    pub version: ListVersion,
    /// Who is on it, newest first.
    pub ids: Box<[UserId]>,
    /// Of mutes: those that end, in the order of the list.
    pub ends: Box<[(UserId, UnixMs)]>,
}

impl WholeList {
    /// As Redis holds it: eight bytes for each id. Those that end follow a zero, each with its time.
    fn encode(&self) -> Vec<u8> {
        let ids = self.ids.iter().map(|id| id.get());
        let zero = (!self.ends.is_empty()).then_some(0);
        let ends = self.ends.iter().flat_map(|(id, until)| [id.get(), until.0]);
        ids.chain(zero).chain(ends).flat_map(i64::to_be_bytes).collect()
    }

    fn decode(version: ListVersion, bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<_> = numbers.iter().map(|number| i64::from_be_bytes(*number)).collect();
        let mut parts = numbers.splitn(2, |number| *number == 0);
        let (ids, ends) = (parts.next()?, parts.next().unwrap_or_default().as_chunks::<2>());
        let ids: Option<Box<[UserId]>> = ids.iter().map(|id| UserId::try_from(*id).ok()).collect();
        let end = |[id, until]: &[i64; 2]| Some((UserId::try_from(*id).ok()?, UnixMs(*until)));
        let is_whole = rest.is_empty() && ends.1.is_empty();
        Some(Self { version, ids: ids.filter(|_| is_whole)?, ends: ends.0.iter().map(end).collect::<Option<_>>()? })
    }

    fn weight(&self) -> u32 {
        let bytes = size_of_val::<[UserId]>(&self.ids) + size_of_val::<[(UserId, UnixMs)]>(&self.ends);
        u32::try_from(LIST_BYTES + bytes).unwrap_or(u32::MAX)
    }

    /// Without those that have ended by then.
    #[must_use]
    pub fn at(self: &Arc<Self>, now: UnixMs) -> Arc<Self> {
        let ended: HashSet<_> = self.ends.iter().filter(|(_, until)| *until <= now).map(|(id, _)| *id).collect();
        if ended.is_empty() {
            return Arc::clone(self);
        }
        let ids = self.ids.iter().copied().filter(|id| !ended.contains(id)).collect();
        let ends = self.ends.iter().copied().filter(|(_, until)| *until > now).collect();
        Arc::new(Self { version: self.version, ids, ends })
    }
}

/// What answers look-ups.
#[derive(Debug)]
pub struct Lookups {
    db: Db,
    cache: Arc<Cache>,
    guard: Arc<Guard>,
    /// Those of polls to read the database.
    turns: Arc<Turns>,
    lists: Lists<(UserId, Related), Arc<WholeList>>,
    /// How long a list may be that is given at once.
    max_whole: usize,
    /// What is kept of look-ups in memory.
    hot: Arc<HotUsers>,
    /// Users who are being read whole, or were a moment ago.
    reading: moka::sync::Cache<UserId, ()>,
}

impl Lookups {
    #[must_use]
    pub fn new(config: &RelationConfig, db: Db, cache: Arc<Cache>, guard: Arc<Guard>, turns: Arc<Turns>, hot: Arc<HotUsers>) -> Self {
        let weigh = |_: &(UserId, Related), list: &Arc<WholeList>| list.weight();
        let lists = Lists::builder().weigher(weigh).max_capacity(config.list_cache_bytes).build();
        let reading = moka::sync::Cache::builder().max_capacity(MAX_READING).time_to_live(READING_FOR).build();
        Self { db, cache, guard, turns, lists, max_whole: usize::try_from(config.max_whole_list).unwrap_or(usize::MAX), hot, reading }
    }

    /// A user's whole list of the version of this revision or a later one.
    pub async fn whole(&self, user: UserId, related: Related, revision: Revision) -> Result<Arc<WholeList>> {
        let version = self.cache.list_version(revision);
        match self.lists.get(&(user, related)).await {
            Some(list) if list.version.is_at_least(version) => Ok(list),
            _ => Box::pin(self.load(user, related, version)).await,
        }
    }

    /// The list as it was last seen here, where a store is away.
    pub async fn last_known(&self, user: UserId, related: Related) -> Option<Arc<WholeList>> {
        self.lists.get(&(user, related)).await
    }

    /// Loads a list, once for all who want it at the same time.
    async fn load(&self, user: UserId, related: Related, version: ListVersion) -> Result<Arc<WholeList>> {
        let read = || async move {
            let list = match self.shared(user, related, version).await {
                Some(list) => list,
                None => self.read(user, related, version).await?,
            };
            Ok(Arc::new(list))
        };
        get_or_read(&self.lists, (user, related), |list| list.version.is_at_least(version), read).await
    }

    /// The list as another node has left it, if that is of this version.
    async fn shared(&self, user: UserId, related: Related, version: ListVersion) -> Option<WholeList> {
        match self.cache.get_list(user, related.key()).await {
            Ok(found) => found.filter(|(found, _)| *found == version).and_then(|(_, ids)| WholeList::decode(version, &ids)),
            Err(error) => {
                tracing::debug!(%error, "cannot ask the cache for a list; the database has it");
                None
            }
        }
    }

    async fn read(&self, user: UserId, related: Related, wanted: ListVersion) -> Result<WholeList> {
        let whole = self.turns.read_list(whole_lists::whole(&self.db, user, related, self.max_whole)).await?;
        let whole_lists::Whole { version: revision, ids, ends, is_cut } = whole;
        if is_cut {
            let most = self.max_whole;
            let detail = format!("The list has more than {most} users. Use the paginated list.");
            return Err(Problem::new(Code::TooMany, detail).into());
        }
        let list = WholeList { version: ListVersion { revision, ..wanted }, ids: ids.into(), ends: ends.into() };
        if list.ids.len() > MAX_SHARED {
            return Ok(list);
        }
        if let Err(error) = self.cache.set_list(user, related.key(), list.version, &list.encode()).await {
            // The next node reads it from SQL.
            tracing::debug!(%error, "could not leave a list in the cache");
        }
        Ok(list)
    }

    /// What the two of each pair are to each other, as the first of it sees that, in the order
    /// asked.
    pub async fn look(&self, pairs: &[Pair]) -> Result<Vec<Looked>> {
        let mut asked = LookupBatch::new(pairs);
        self.look_beside(&mut asked).await?;
        Ok(asked.looked(pairs))
    }

    /// What others are to one user, in the order asked. `version` reads that of the user's own
    /// lists, where look-ups of this user are kept in memory; None where that cannot be had.
    pub async fn look_of(&self, user: UserId, others: &[UserId], version: impl AsyncFnOnce() -> Option<Revision>) -> Result<Vec<Looked>> {
        let pairs: Vec<_> = others.iter().map(|other| Pair { follower: user, followee: *other }).collect();
        let mut asked = LookupBatch::new(&pairs);
        if !self.hot.keeps_looks_of(user) {
            self.look_beside(&mut asked).await?;
            return Ok(asked.looked(&pairs));
        }
        // Before anything is read: what is kept is at least as new as they say.
        let begun = self.hot.begin();
        let version = if self.cache.is_shared() { version().await } else { Some(0) };
        if let Some(version) = version {
            let known: Vec<_> = asked.pairs.iter().map(|pair| self.hot.look(*pair, version)).collect();
            asked.fill(known);
        }
        let missing = asked.missing();
        if missing.is_empty() {
            count("memory");
            return Ok(asked.looked(&pairs));
        }
        self.look_beside(&mut asked).await?;
        if let Some(version) = version {
            self.hot.keep_looks(begun, version, missing.into_iter().map(|pair| (pair, asked.code(&pair))));
        }
        Ok(asked.looked(&pairs))
    }

    /// Whether the first of each pair mutes the second, given what was looked up of them. The rows are
    /// asked where a mute ends, which few do.
    pub async fn muting(&self, pairs: &[Pair], looked: &[Looked], now: UnixMs) -> Result<Vec<bool>> {
        let timed: Vec<_> = pairs.iter().zip(looked).filter(|(_, looked)| looked.mutes().is_none()).map(|(pair, _)| *pair).collect();
        let mutes: BTreeMap<_, _> = if timed.is_empty() {
            BTreeMap::new()
        } else {
            self.turns.read_list(mute_store::of_pairs(&self.db, &timed)).await?.into_iter().collect()
        };
        let holds = |pair: &Pair| mutes.get(pair).is_some_and(|mute| !mute.has_ended(now));
        Ok(pairs.iter().zip(looked).map(|(pair, looked)| looked.mutes().unwrap_or_else(|| holds(pair))).collect())
    }

    /// Asks Redis, and then SQL. One of whom much is asked that Redis does not know is read whole,
    /// if there is not too much of it: the next look-up of the same user is told from Redis.
    async fn look_beside(&self, asked: &mut LookupBatch) -> Result<()> {
        for (user, others) in self.unknown_to_redis(asked).await.into_iter().take(MAX_READ_WHOLE) {
            if others.len() >= asked.pairs.len() / MAX_READ_WHOLE && !self.hot.keeps_looks_of(user) && self.take_turn(user) {
                self.read_whole(user, asked).await?;
            }
        }
        let missing = asked.missing();
        if missing.is_empty() {
            return Ok(());
        }
        for (pair, code) in self.turns.read_list(lookup_store::look(&self.db, &missing)).await? {
            asked.set(&pair, code);
        }
        Ok(())
    }

    /// Takes what Redis tells; of whom it tells nothing, and what was asked of them. Nobody where
    /// Redis may not be asked.
    async fn unknown_to_redis(&self, asked: &mut LookupBatch) -> Vec<(UserId, Vec<UserId>)> {
        let missing = asked.missing();
        if missing.is_empty() || !self.trusts_facts() {
            count(if missing.is_empty() { "cache" } else { "database" });
            return Vec::new();
        }
        let of_user = |pairs: &[Pair]| Some((pairs.first()?.follower, pairs.iter().map(|pair| pair.followee).collect::<Vec<_>>()));
        let users: Vec<_> = missing.chunk_by(|one, next| one.follower == next.follower).filter_map(of_user).collect();
        let told = match self.cache.get_facts(&users.iter().map(|(user, others)| (*user, others.as_slice())).collect::<Vec<_>>()).await {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!(%error, "cannot ask the cache for relations; the database has them");
                count("database");
                return Vec::new();
            }
        };
        let mut unknown = Vec::new();
        for ((user, others), codes) in users.into_iter().zip(told) {
            match codes {
                Some(codes) => {
                    others.iter().zip(codes).for_each(|(other, code)| asked.set(&Pair { follower: user, followee: *other }, code));
                }
                None => unknown.push((user, others)),
            }
        }
        count(if unknown.is_empty() { "cache" } else { "database" });
        unknown
    }

    /// Whether this is to read all of a user for Redis: not while another does, or has just done so
    /// in vain.
    fn take_turn(&self, user: UserId) -> bool {
        self.reading.entry(user).or_insert(()).is_fresh()
    }

    /// Reads all who are something to a user, and leaves them in Redis; one of whom there are too
    /// many is a star.
    async fn read_whole(&self, user: UserId, asked: &mut LookupBatch) -> Result<()> {
        let token = self.cache.facts_token(user).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot leave relations in the cache");
            None
        });
        let Some(codes) = self.turns.read_list(lookup_store::related(&self.db, user, MAX_COMPLETE)).await? else {
            self.hot.add_star(user);
            return Ok(());
        };
        asked.fill_all(user, &codes);
        if let Some(token) = token
            && self.trusts_facts()
            && let Err(error) = self.cache.fill_facts(user, token, &codes).await
        {
            // The next look-up reads SQL again.
            tracing::debug!(%error, "could not leave relations in the cache");
        }
        Ok(())
    }

    /// Whether facts may be read from the cache, and left there.
    fn trusts_facts(&self) -> bool {
        self.cache.is_shared() && self.guard.trust() == Trust::Full
    }
}

/// Counts where the last of what a look-up told came from.
fn count(from: &'static str) {
    metrics::counter!("headmark_relation_looks_total", "from" => from).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_were_written() {
        let ids: Vec<UserId> = [9, 1, i64::MAX, 300].into_iter().map(|id| id.try_into().unwrap()).collect();
        let version = ListVersion { history: 0, revision: 7 };
        let list = WholeList { version, ids: ids.clone().into(), ends: Box::default() };
        assert_eq!(list.encode().len(), 4 * 8);
        assert_eq!(WholeList::decode(version, &list.encode()), Some(list));
        let list = Arc::new(WholeList { version, ids: ids.clone().into(), ends: [(ids[0], UnixMs(5)), (ids[3], UnixMs(7))].into() });
        assert_eq!(WholeList::decode(version, &list.encode()).as_ref(), Some(&*list));
        let left = |now: i64| list.at(UnixMs(now)).ids.len();
        assert_eq!([4, 5, 6, 7].map(left), [4, 3, 3, 2]);
        assert_eq!(WholeList::decode(version, &[0xff; 8]), None, "nobody has this id");
        assert_eq!(WholeList::decode(version, &[1; 9]), None);
    }
}
