//! Look-ups of what users are to each other, and whole lists, from the caches.
//!
//! Lists go by *version*: the revision at which a user's list changed last, which the user's cache
//! entry names. What is kept of a version, in memory or in Redis, is right for that version however
//! old it is, so it can be lost and is never wrong; and whether it is the present one, the entry
//! tells, which is never silently stale. A *fact* is what two users are to each other, both
//! directions in one number: a field of the hash `{u:42}:r` of the one who looks. Anyone who
//! changes the pair takes it out of both users' hashes before the commit (`cache/facts.rs`), so
//! what is there is true, and a look-up reads one hash, whatever it asks. On the first look-up of a
//! user the hash is filled with all that the user is to others and they to the user, so that one
//! who is not in it is nothing to the user; but for a star, who has too many relations for that,
//! and is told from memory ([`super::hot_users`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache as Lists;

use super::hot_users::MAX_COMPLETE;
use super::lists::Related;
use super::lookup_batch::LookupBatch;
use super::state::PairState;
use super::{HotUsers, Pair, RelationConfig, lists};
use crate::base::error::{Code, Problem, Result};
use crate::base::ids::UserId;
use crate::cache::{Cache, Facts, FillToken, Revision, Told};
use crate::db::Db;
use crate::engine::get_or_read::get_or_read;
use crate::engine::guard::{Guard, Trust};

/// How long a list may be that is left in Redis for other nodes, which a larger value would keep
/// waiting. Longer ones each node reads from SQL.
const MAX_SHARED: usize = 100_000;

/// How many users are remembered as being read whole, and for how long: one who is written to all
/// the time, so that nothing may be left, is not read whole for each look-up.
const MAX_READING: u64 = 100_000;
const READING_FOR: Duration = Duration::from_secs(1);

/// What a list takes besides its ids.
const LIST_BYTES: usize = 96;

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
pub struct Lookups {
    db: Db,
    cache: Arc<Cache>,
    guard: Arc<Guard>,
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
    pub fn new(config: &RelationConfig, db: Db, cache: Arc<Cache>, guard: Arc<Guard>, hot: Arc<HotUsers>) -> Self {
        let weigh = |_: &(UserId, Related), list: &Arc<WholeList>| list.weight();
        let lists = Lists::builder().weigher(weigh).max_capacity(config.list_cache_bytes).build();
        let reading = moka::sync::Cache::builder().max_capacity(MAX_READING).time_to_live(READING_FOR).build();
        Self { db, cache, guard, lists, max_whole: usize::try_from(config.max_whole_list).unwrap_or(usize::MAX), hot, reading }
    }

    /// A user's whole list of this version or a later one.
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
        let read = || async move {
            let list = match self.shared(user, related, version).await {
                Some(list) => list,
                None => self.read(user, related).await?,
            };
            Ok(Arc::new(list))
        };
        get_or_read(&self.lists, (user, related), |list| list.version >= version, read).await
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
        let (version, ids) = lists::whole(&self.db, user, related, self.max_whole).await?;
        if ids.len() > self.max_whole {
            let most = self.max_whole;
            let detail = format!("The list has more than {most} users. Use the paginated list.");
            return Err(Problem::new(Code::TooMany, detail).into());
        }
        let list = WholeList { version, ids: ids.into() };
        if list.ids.len() > MAX_SHARED {
            return Ok(list);
        }
        if let Err(error) = self.cache.set_list(user, related.key(), version, &list.encode()).await {
            // The next node reads it from SQL.
            tracing::debug!(%error, "could not leave a list in the cache");
        }
        Ok(list)
    }

    /// What the two of each pair are to each other, as the first of it sees that, in the order
    /// asked.
    pub async fn look(&self, pairs: &[Pair]) -> Result<Vec<PairState>> {
        let mut asked = LookupBatch::new(pairs);
        let told = self.facts(&asked.pairs).await;
        asked.fill(told.into_iter().flat_map(|told| told.codes));
        self.look_on(&mut asked).await?;
        Ok(asked.pair_states(pairs))
    }

    /// What others are to one user, in the order asked. `version` reads that of the user's own
    /// lists, where look-ups of this user are kept in memory; None where that cannot be had.
    pub async fn look_of(
        &self,
        user: UserId,
        others: &[UserId],
        version: impl AsyncFnOnce() -> Option<Revision>,
    ) -> Result<Vec<PairState>> {
        let pairs: Vec<_> = others.iter().map(|other| Pair { follower: user, followee: *other }).collect();
        let mut asked = LookupBatch::new(&pairs);
        if !self.hot.keeps_looks_of(user) {
            self.look_beside(user, &mut asked).await?;
            return Ok(asked.pair_states(&pairs));
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
            return Ok(asked.pair_states(&pairs));
        }
        self.look_beside(user, &mut asked).await?;
        if let Some(version) = version {
            self.hot.keep_looks(begun, version, missing.into_iter().map(|pair| (pair, asked.code(&pair))));
        }
        Ok(asked.pair_states(&pairs))
    }

    /// Asks Redis, and then SQL. A user whose hash in Redis does not say all is read whole, if
    /// there is not too much of it: then a look-up of anybody else is told from there, too.
    async fn look_beside(&self, user: UserId, asked: &mut LookupBatch) -> Result<()> {
        let missing = asked.missing();
        let told = self.facts(&missing).await;
        let complete = told.first().is_none_or(|told| told.complete);
        asked.fill_some(&missing, told.into_iter().flat_map(|told| told.codes));
        let is_star = self.hot.keeps_looks_of(user);
        if !asked.missing().is_empty() && self.trusts_facts() && !complete && !is_star && self.take_turn(user) {
            let tokens = self.tokens(&[Pair { follower: user, followee: user }]).await;
            match lists::related(&self.db, user, MAX_COMPLETE).await? {
                Some(codes) => {
                    asked.fill_all(&codes);
                    self.leave_all(user, codes, &tokens).await;
                    count("database");
                    return Ok(());
                }
                None => self.hot.add_star(user),
            }
        }
        self.look_on(asked).await
    }

    /// Whether this is to read all of a user for Redis: not while another does, or has just done so
    /// in vain.
    fn take_turn(&self, user: UserId) -> bool {
        self.reading.entry(user).or_insert(()).is_fresh()
    }

    /// Asks SQL for those of whom nothing is known yet, and leaves what it tells in Redis.
    async fn look_on(&self, asked: &mut LookupBatch) -> Result<()> {
        let missing = asked.missing();
        if missing.is_empty() {
            count("cache");
            return Ok(());
        }
        count("database");
        let tokens = self.tokens(&missing).await;
        let found = lists::look(&self.db, &missing).await?;
        for (pair, code) in &found {
            asked.set(pair, *code);
        }
        self.leave(found, &tokens).await;
        Ok(())
    }

    /// Whether facts may be read from the cache, and left there.
    fn trusts_facts(&self) -> bool {
        self.cache.is_shared() && self.guard.trust() == Trust::Full
    }

    /// What Redis tells of these pairs, which are sorted; nothing at all where it may not be asked.
    /// One read for each user, both directions of each pair in one field.
    async fn facts(&self, pairs: &[Pair]) -> Vec<Told> {
        if !self.trusts_facts() {
            return Vec::new();
        }
        let others: Vec<UserId> = pairs.iter().map(|pair| pair.followee).collect();
        let (mut asked, mut rest) = (Vec::new(), others.as_slice());
        for of_user in pairs.chunk_by(|one, next| one.follower == next.follower) {
            let (others, later) = rest.split_at(of_user.len());
            asked.extend(of_user.first().map(|pair| (pair.follower, others)));
            rest = later;
        }
        match self.cache.get_facts(&asked).await {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!(%error, "cannot ask the cache for relations; the database has them");
                Vec::new()
            }
        }
    }

    /// The right to leave what SQL is about to tell, of each user who is given it.
    async fn tokens(&self, missing: &[Pair]) -> BTreeMap<UserId, FillToken> {
        if !self.trusts_facts() {
            return BTreeMap::new();
        }
        let mut users: Vec<_> = missing.iter().map(|pair| pair.follower).collect();
        users.dedup();
        match self.cache.facts_tokens(&users).await {
            Ok(tokens) => users.into_iter().zip(tokens).filter_map(|(user, token)| Some((user, token?))).collect(),
            Err(error) => {
                // The next look-up reads SQL again.
                tracing::debug!(%error, "cannot leave relations in the cache");
                BTreeMap::new()
            }
        }
    }

    /// Leaves what SQL said for the next look-up.
    async fn leave(&self, found: Vec<(Pair, u8)>, tokens: &BTreeMap<UserId, FillToken>) {
        let mut facts: BTreeMap<UserId, Facts> = BTreeMap::new();
        for (Pair { follower: user, followee: other }, code) in found {
            if let Some(&token) = tokens.get(&user) {
                let none = || Facts { user, token, codes: Vec::new(), complete: false };
                facts.entry(user).or_insert_with(none).codes.push((other, code));
            }
        }
        self.fill(&facts.into_values().collect::<Vec<_>>()).await;
    }

    /// Leaves all others that are something to a user.
    async fn leave_all(&self, user: UserId, codes: Vec<(UserId, u8)>, tokens: &BTreeMap<UserId, FillToken>) {
        if let Some(&token) = tokens.get(&user) {
            self.fill(&[Facts { user, token, codes, complete: true }]).await;
        }
    }

    async fn fill(&self, facts: &[Facts]) {
        if facts.is_empty() || !self.trusts_facts() {
            return;
        }
        if let Err(error) = self.cache.fill_facts(facts).await {
            // The next look-up reads SQL again.
            tracing::debug!(%error, "could not leave relations in the cache");
        }
    }
}

/// Counts where the last of what a look-up told came from.
fn count(from: &'static str) {
    metrics::counter!("headmark_relation_looks_total", "from" => from).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::relations::state::{FollowOptions, Relation};

    #[test]
    fn lists_and_standings_are_read_as_they_were_written() {
        let ids: Vec<UserId> = [9, 1, i64::MAX, 300].into_iter().map(|id| id.try_into().unwrap()).collect();
        let list = WholeList { version: 7, ids: ids.into() };
        assert_eq!(WholeList::decode(7, &list.encode()), Some(list));
        assert_eq!(WholeList::decode(1, &[0; 8]), None, "nobody has this id");
        assert_eq!(WholeList::decode(1, &[1; 9]), None);
        let options = [(false, false), (true, false), (false, true), (true, true)]
            .map(|(secret, special)| Relation::Follows(FollowOptions { secret, special }));
        for mine in options.into_iter().chain([Relation::Nothing, Relation::Blocks]) {
            for theirs in options.into_iter().chain([Relation::Nothing]) {
                let theirs_as_told = match theirs {
                    Relation::Follows(options) => Relation::Follows(FollowOptions { special: false, ..options }),
                    other => other,
                };
                let told = lists::pair_state(lists::code(PairState { mine, theirs }));
                assert_eq!(told, PairState { mine, theirs: theirs_as_told }, "who is special to the other is not told");
            }
            let blocked = PairState { mine, theirs: Relation::Blocks };
            assert_eq!(
                lists::code(blocked),
                lists::code(PairState { mine, theirs: Relation::Nothing }),
                "a block by the other is not told"
            );
        }
    }
}
