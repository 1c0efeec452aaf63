//! Look-ups of what users are to each other, and whole lists, from the caches.
//!
//! Both go by *version*: the revision at which a user's list changed last, which the user's cache entry names. What is kept of a version, in memory or in Redis, is
//! right for that version however old it is, so it can be lost and is never wrong; and whether it is the present one, the entry tells, which is never silently
//! stale. A *fact* is what one user is to another: a field of the hash `{u:42}:r`, beside the version that all its fields belong to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use moka::future::Cache as Lists;
use moka::ops::compute::{CompResult, Op};

use super::state::{Stance, Standing};
use super::{Pair, lists};
use crate::cache::{Cache, Facts, ListKey, Lookup};
use crate::db::Db;
use crate::error::{Code, Error, Fault, Problem, Result};
use crate::guard::{Guard, Trust};
use crate::ids::UserId;
use crate::sheet;

/// How long a list may be that is given at once. Longer ones there are by import, or by a high limit on following.
pub const MAX_WHOLE: usize = 100_000;

/// What a list takes besides its ids.
const LIST_BYTES: usize = 96;

/// Which whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Related {
    /// Whom a user follows.
    Following,
    /// Whom a user blocks.
    Blocks,
}

impl Related {
    fn key(self) -> ListKey {
        match self {
            Self::Following => ListKey::Following,
            Self::Blocks => ListKey::Blocks,
        }
    }
}

/// A whole list as of one version.
#[derive(Debug, PartialEq, Eq)]
pub struct WholeList {
    /// The revision at which it changed last.
    pub version: i64,
    /// Who is on it, newest first.
    pub ids: Box<[UserId]>,
}

impl WholeList {
    /// As Redis holds it: eight bytes for each id.
    fn encode(&self) -> Vec<u8> {
        self.ids.iter().flat_map(|id| id.get().to_be_bytes()).collect()
    }

    fn decode(version: i64, bytes: &[u8]) -> Option<Self> {
        let (ids, rest) = bytes.as_chunks::<8>();
        let ids: Option<Box<[UserId]>> = ids.iter().map(|id| UserId::try_from(i64::from_be_bytes(*id)).ok()).collect();
        Some(Self { version, ids: ids.filter(|_| rest.is_empty())? })
    }

    fn weight(&self) -> u32 {
        u32::try_from(LIST_BYTES + size_of_val::<[UserId]>(&self.ids)).unwrap_or(u32::MAX)
    }
}

/// What answers look-ups.
#[derive(Debug)]
pub struct Looks {
    db: Db,
    cache: Arc<Cache>,
    guard: Arc<Guard>,
    lists: Lists<(UserId, Related), Arc<WholeList>>,
}

impl Looks {
    /// Over these stores, with so many bytes of lists in memory.
    #[must_use]
    pub fn new(max_bytes: u64, db: Db, cache: Arc<Cache>, guard: Arc<Guard>) -> Self {
        let weigh = |_: &(UserId, Related), list: &Arc<WholeList>| list.weight();
        Self { db, cache, guard, lists: Lists::builder().weigher(weigh).max_capacity(max_bytes).build() }
    }

    /// A user's whole list of this version or a later one.
    ///
    /// # Errors
    /// When a store is away.
    pub async fn whole(&self, user: UserId, related: Related, version: i64) -> Result<Arc<WholeList>> {
        match self.lists.get(&(user, related)).await {
            Some(list) if list.version >= version => Ok(list),
            _ => Box::pin(self.load(user, related, version)).await,
        }
    }

    /// The list as it was last seen here, where a store is away.
    pub async fn last_known(&self, user: UserId, related: Related) -> Option<Arc<WholeList>> {
        self.lists.get(&(user, related)).await
    }

    /// Loads a list, once for all who want it at the same time.
    async fn load(&self, user: UserId, related: Related, version: i64) -> Result<Arc<WholeList>> {
        let load = async |kept: Option<moka::Entry<(UserId, Related), Arc<WholeList>>>| {
            if kept.is_some_and(|kept| kept.value().version >= version) {
                return Ok(Op::Nop);
            }
            let list = match self.shared(user, related, version).await {
                Some(list) => list,
                None => self.read(user, related).await?,
            };
            Ok::<_, Error>(Op::Put(Arc::new(list)))
        };
        match self.lists.entry((user, related)).and_try_compute_with(load).await? {
            CompResult::Inserted(list) | CompResult::ReplacedWith(list) | CompResult::Unchanged(list) | CompResult::Removed(list) => {
                Ok(list.into_value())
            }
            CompResult::StillNone(_) => Err(Fault::Bug("a list that was loaded is not there".to_owned()).into()),
        }
    }

    /// The list as another node has left it, if that is of this version.
    async fn shared(&self, user: UserId, related: Related, version: i64) -> Option<WholeList> {
        match self.cache.get_list(user, related.key()).await {
            Ok(found) => found.filter(|(found, _)| *found == version).and_then(|(_, ids)| WholeList::decode(version, &ids)),
            Err(error) => {
                tracing::debug!(%error, "cannot ask the cache for a list; the database has it");
                None
            }
        }
    }

    async fn read(&self, user: UserId, related: Related) -> Result<WholeList> {
        let (version, ids) = lists::whole(&self.db, user, related, MAX_WHOLE).await?;
        if ids.len() > MAX_WHOLE {
            let detail =
                format!("The list has more than {MAX_WHOLE} users, which is the most that is given at once. Read it page by page.");
            return Err(Problem::new(Code::TooMany, detail).into());
        }
        let list = WholeList { version, ids: ids.into() };
        if let Err(error) = self.cache.set_list(user, related.key(), version, &list.encode()).await {
            // The next node reads it from SQL.
            tracing::debug!(%error, "could not leave a list in the cache");
        }
        Ok(list)
    }

    /// What the two of each pair are to each other, as the first of it sees that, in the order asked.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn look(&self, pairs: &[Pair]) -> Result<Vec<Standing>> {
        let mut others: BTreeMap<UserId, Vec<UserId>> = BTreeMap::new();
        for pair in pairs {
            others.entry(pair.follower).or_default().push(pair.followee);
            others.entry(pair.followee).or_default().push(pair.follower);
        }
        others.values_mut().for_each(|others| {
            others.sort_unstable();
            others.dedup();
        });
        let versions = self.versions(&others).await;
        let mut stances = self.facts(&others, &versions).await;
        let missing: Vec<Pair> = others
            .iter()
            .flat_map(|(user, others)| others.iter().map(|other| Pair { follower: *user, followee: *other }))
            .filter(|pair| !stances.contains_key(pair))
            .collect();
        if !missing.is_empty() {
            let found = lists::look(&self.db, &missing).await?;
            self.leave(&found, &versions).await;
            stances.extend(found.into_iter().map(|(pair, stance, _)| (pair, stance)));
        }
        let stance = |pair: Pair| stances.get(&pair).copied().unwrap_or_default();
        Ok(pairs.iter().map(|pair| Standing { mine: stance(*pair), theirs: stance(pair.reversed()) }).collect())
    }

    /// The present versions of those whose cache entries are clean. None at all where these are few: the rest must be asked of SQL in any case.
    async fn versions(&self, others: &BTreeMap<UserId, Vec<UserId>>) -> HashMap<UserId, i64> {
        if !self.cache.is_shared() || self.guard.trust() != Trust::Full {
            return HashMap::new();
        }
        let users: Vec<_> = others.keys().copied().collect();
        let Ok(lookups) = self.cache.get_many(&users).await else { return HashMap::new() };
        let clean = users.iter().zip(lookups).filter_map(|(user, lookup)| match lookup {
            Lookup::Hit(entry) => Some((*user, sheet::list_versions(&entry).relations())),
            Lookup::Miss { .. } => None,
        });
        let versions: HashMap<_, _> = clean.collect();
        if versions.len() * 2 < users.len() { HashMap::new() } else { versions }
    }

    /// What Redis tells of them at these versions.
    async fn facts(&self, others: &BTreeMap<UserId, Vec<UserId>>, versions: &HashMap<UserId, i64>) -> HashMap<Pair, Stance> {
        let asked: Vec<_> =
            others.iter().filter(|(user, _)| versions.contains_key(*user)).map(|(user, others)| (*user, others.as_slice())).collect();
        if asked.is_empty() {
            return HashMap::new();
        }
        let found = match self.cache.get_facts(&asked).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "cannot ask the cache for relations; the database has them");
                return HashMap::new();
            }
        };
        let mut stances = HashMap::new();
        for ((user, others), facts) in asked.iter().zip(found) {
            let Some(facts) = facts.filter(|facts| Some(&facts.version) == versions.get(user)) else { continue };
            for (other, code) in others.iter().zip(facts.codes) {
                if let Some(code) = code {
                    stances.insert(Pair { follower: *user, followee: *other }, lists::stance(code));
                }
            }
        }
        let from = if stances.is_empty() { "database" } else { "cache" };
        metrics::counter!("headmark_relation_looks_total", "from" => from).increment(1);
        stances
    }

    /// Leaves what SQL said for the next look-up, where the entry names the same version.
    async fn leave(&self, found: &[(Pair, Stance, i64)], versions: &HashMap<UserId, i64>) {
        let mut facts: BTreeMap<UserId, Facts> = BTreeMap::new();
        for (pair, stance, version) in found.iter().filter(|(pair, _, version)| versions.get(&pair.follower) == Some(version)) {
            let of = facts.entry(pair.follower).or_insert_with(|| Facts { version: *version, others: Vec::new(), codes: Vec::new() });
            of.others.push(pair.followee);
            of.codes.push(Some(lists::code(*stance)));
        }
        if facts.is_empty() {
            return;
        }
        if let Err(error) = self.cache.set_facts(&facts.into_iter().collect::<Vec<_>>()).await {
            // The next look-up reads SQL again.
            tracing::debug!(%error, "could not leave relations in the cache");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relations::state::Manner;

    #[test]
    fn lists_and_stances_are_read_as_they_were_written() {
        let ids: Vec<UserId> = [9, 1, i64::MAX, 300].into_iter().map(|id| id.try_into().unwrap()).collect();
        let list = WholeList { version: 7, ids: ids.into() };
        assert_eq!(WholeList::decode(7, &list.encode()), Some(list));
        assert_eq!(WholeList::decode(1, &[0; 8]), None, "nobody has this id");
        assert_eq!(WholeList::decode(1, &[1; 9]), None);
        let manners = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(secret, special)| Stance::Follows(Manner { secret, special }));
        for stance in manners.into_iter().chain([Stance::Nothing, Stance::Blocks]) {
            assert_eq!(lists::stance(lists::code(stance)), stance);
        }
    }
}
