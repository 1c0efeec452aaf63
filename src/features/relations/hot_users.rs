//! What is shown of users whom many look at, kept in memory for a moment. What this node has
//! changed shows at once; what others changed, within [`KEPT`].
//!
//! Strangers are shown first pages and counts from here, so that a million visitors of a star cost
//! the database a read a second. An answer is dropped only if strangers would now see another one:
//! an answer that is read again takes longer, and who did something in secret must not be told by
//! that. Owners and services are shown no page and no count from here.
//!
//! A *star*, who has more relations than its hash in Redis may hold ([`MAX_COMPLETE`]), is told
//! from here what others are to it. What the star itself does shows at once on every node, as each
//! look-up is kept with the version of the star's own lists. Where there is one node alone, all
//! look-ups are kept here.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;
use moka::policy::EvictionPolicy;

use super::lists::{List, ShownPage};
use super::{Changed, Counts, Pair};
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::base::lately::Lately;
use crate::cache::Revision;
use crate::engine::get_or_read::get_or_read;
use crate::engine::lanes::{AfterCommit, Rows};
use crate::features::relations::rows::RelationRows;

/// For how long an answer is kept: with the time that reading it takes, below the 2 s in which a
/// change must show.
pub(super) const KEPT: Duration = Duration::from_secs(1);

/// How many first pages, and counts, are kept.
const MAX_KEPT: u64 = 20_000;

/// How many look-ups are kept, of one other each.
const MAX_LOOKS: u64 = 500_000;

/// How many relations a user may have whose hash in Redis is filled completely: one with more is a
/// star. That is room for the follows that one may have by default, and for as many followers.
pub(super) const MAX_COMPLETE: usize = 10_000;

/// How many stars are known, and for how long. Then it is counted again.
const MAX_STARS: u64 = 100_000;
const STAR_FOR: Duration = Duration::from_secs(10);

/// How many users, and how many pairs, are remembered as changed by this node, and for how long:
/// longer than anything read before is kept or under way.
const MAX_WRITTEN: u64 = 200_000;
const WRITTEN_FOR: Duration = Duration::from_secs(15);

/// An answer, and how much this node had written when reading it began.
#[derive(Debug)]
struct Kept<T> {
    begun: u64,
    value: T,
}

/// The answers.
#[derive(Debug)]
pub struct HotUsers {
    pages: Cache<(UserId, List), Arc<Kept<ShownPage>>>,
    counts: Cache<UserId, Arc<Kept<Counts>>>,
    /// Counts the writes of this node.
    writes: AtomicU64,
    /// Which of them changed last what strangers are shown of a user.
    written: moka::sync::Cache<UserId, u64>,
    /// Of whom strangers are shown what a replica may not show yet.
    lately: Lately<UserId>,
    looks: moka::sync::Cache<Pair, Look>,
    /// Which of the writes changed last what the first of a pair is told of the second.
    looked: moka::sync::Cache<Pair, u64>,
    stars: moka::sync::Cache<UserId, ()>,
    /// Which of the writes changed last who may see somebody's lists.
    visibility: AtomicU64,
    /// Whether other nodes may write, too.
    shared: bool,
}

/// What one user is told of another.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// As of a page.
    begun: u64,
    /// The version of the user's own lists before it was read.
    version: Revision,
    code: u8,
}

impl Default for HotUsers {
    fn default() -> Self {
        Self::new(true)
    }
}

/// The newest writes. The default policy may refuse a new key where others are used more often.
fn newest<K: Hash + Eq + Send + Sync + 'static>() -> moka::sync::Cache<K, u64> {
    moka::sync::Cache::builder().max_capacity(MAX_WRITTEN).time_to_live(WRITTEN_FOR).eviction_policy(EvictionPolicy::lru()).build()
}

/// Of two writes at once the later number stays, whichever comes here first.
fn remember<K: Hash + Eq + Send + Sync + 'static>(written: &moka::sync::Cache<K, u64>, key: K, number: u64) {
    written.entry(key).and_upsert_with(|known| known.map_or(number, |known| known.into_value().max(number)));
}

impl AfterCommit for HotUsers {
    fn committed(&self, rows: &Rows, _now: UnixMs) {
        self.changed(&rows.get::<RelationRows>().changed());
        self.visibility_changed(&rows.lists_changed().collect::<Vec<_>>());
    }
}

impl HotUsers {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(shared: bool) -> Self {
        Self {
            pages: Cache::builder().max_capacity(MAX_KEPT).time_to_live(KEPT).build(),
            counts: Cache::builder().max_capacity(MAX_KEPT).time_to_live(KEPT).build(),
            writes: AtomicU64::new(0),
            written: newest(),
            lately: Lately::default(),
            looks: moka::sync::Cache::builder().max_capacity(MAX_LOOKS).time_to_live(KEPT).build(),
            looked: newest(),
            stars: moka::sync::Cache::builder().max_capacity(MAX_STARS).time_to_live(STAR_FOR).build(),
            visibility: AtomicU64::new(0),
            shared,
        }
    }

    /// This node has changed this: what was read before, and is otherwise now, is shown no longer.
    pub fn changed(&self, changes: &[Changed]) {
        if changes.is_empty() {
            return;
        }
        // Before the number: an answer that is as new as the number was then read where the change
        // shows.
        let shown = || changes.iter().flat_map(|change| change.shown_to_strangers().into_iter().flatten());
        shown().for_each(|user| self.lately.changed(user));
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        shown().for_each(|user| remember(&self.written, user, number));
        for change in changes {
            remember(&self.looked, change.pair, number);
            if change.is_told_to_the_other() {
                remember(&self.looked, change.pair.reversed(), number);
            }
        }
    }

    /// This node has changed who may see the lists of these users.
    fn visibility_changed(&self, users: &[UserId]) {
        if users.is_empty() {
            return;
        }
        users.iter().for_each(|user| self.lately.changed(*user));
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        users.iter().for_each(|user| remember(&self.written, *user, number));
        self.visibility.fetch_max(number, Ordering::AcqRel);
    }

    /// Whether this node has lately changed what strangers are shown of a user.
    #[must_use]
    pub fn has_changed_lately(&self, user: UserId) -> bool {
        self.lately.has(&user)
    }

    /// Whether this node has changed nothing since then that strangers are shown of these users, nor
    /// who may see the lists of anybody.
    #[must_use]
    pub fn is_unchanged(&self, begun: u64, users: [UserId; 2]) -> bool {
        let written = users.iter().filter_map(|user| self.written.get(user)).max().unwrap_or(0);
        begun >= written.max(self.visibility.load(Ordering::Acquire))
    }

    /// From here on a user is a star, for a while.
    pub fn add_star(&self, user: UserId) {
        self.stars.insert(user, ());
    }

    /// Whether what the user looks up is kept here.
    #[must_use]
    pub fn keeps_looks_of(&self, user: UserId) -> bool {
        !self.shared || self.stars.contains_key(&user)
    }

    /// To be asked before that is read which [`HotUsers::keep_looks`] is to keep.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// What the first of a pair was told of the second, where the first one's own lists are still
    /// of this version.
    #[must_use]
    pub fn look(&self, pair: Pair, version: Revision) -> Option<u8> {
        let look = self.looks.get(&pair)?;
        let changed = self.looked.get(&pair).unwrap_or(0);
        (look.begun >= changed && look.version >= version).then_some(look.code)
    }

    /// Keeps what was read after [`HotUsers::begin`], and after that version of the first one's
    /// lists.
    pub fn keep_looks(&self, begun: u64, version: Revision, codes: impl IntoIterator<Item = (Pair, u8)>) {
        codes.into_iter().for_each(|(pair, code)| self.looks.insert(pair, Look { begun, version, code }));
    }

    /// The first entries of a list, as many as the longest page has and one more.
    pub async fn page<F>(&self, user: UserId, list: List, read: impl Fn() -> F) -> Result<ShownPage>
    where
        F: Future<Output = Result<ShownPage>>,
    {
        self.kept(&self.pages, (user, list), user, read).await
    }

    /// A user's counts.
    pub async fn counts<F>(&self, user: UserId, read: impl Fn() -> F) -> Result<Counts>
    where
        F: Future<Output = Result<Counts>>,
    {
        self.kept(&self.counts, user, user, read).await
    }

    /// One reading for all who ask within a moment, unless this node has written since it began.
    /// Then those who ask meanwhile wait for one new reading, so a star that gains followers all
    /// the time is not read once for each visitor.
    async fn kept<K, T, F>(&self, cache: &Cache<K, Arc<Kept<T>>>, key: K, user: UserId, read: impl Fn() -> F) -> Result<T>
    where
        K: Hash + Eq + Send + Sync + Clone + 'static,
        T: Clone + Send + Sync + 'static,
        F: Future<Output = Result<T>>,
    {
        let written = self.written.get(&user).unwrap_or(0);
        let read = || async {
            let begun = self.writes.load(Ordering::Acquire);
            Ok(Arc::new(Kept { begun, value: read().await? }))
        };
        let kept = get_or_read(cache, key, |kept| kept.begun >= written, read).await?;
        Ok(kept.value.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;
    use crate::features::relations::state::{FollowOptions, Relation};

    const OPENLY: Relation = Relation::Follows(FollowOptions { secret: false, special: false });
    const SPECIALLY: Relation = Relation::Follows(FollowOptions { secret: false, special: true });
    const SECRETLY: Relation = Relation::Follows(FollowOptions { secret: true, special: false });

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    fn change(follower: i64, followee: i64, before: Relation, after: Relation) -> Changed {
        Changed { pair: Pair { follower: user(follower), followee: user(followee) }, before, after }
    }

    #[test]
    fn only_what_is_shown_otherwise_than_before_is_read_anew() {
        // What strangers are shown of either, and whether the followee is told.
        let cases = [
            (Relation::Nothing, OPENLY, [true, true], true),
            (OPENLY, Relation::Nothing, [true, true], true),
            (OPENLY, Relation::Blocks, [true, true], true),
            (OPENLY, SECRETLY, [true, true], true),
            (SECRETLY, OPENLY, [true, true], true),
            // The number of followers is one for everybody.
            (Relation::Nothing, SECRETLY, [false, true], true),
            (SECRETLY, Relation::Nothing, [false, true], true),
            (SECRETLY, Relation::Blocks, [false, true], true),
            (Relation::Nothing, Relation::Blocks, [false, false], false),
            (Relation::Blocks, Relation::Nothing, [false, false], false),
            (OPENLY, SPECIALLY, [false, false], false),
        ];
        for (before, after, shown, told) in cases {
            let change = change(1, 2, before, after);
            assert_eq!(change.shown_to_strangers().map(|user| user.is_some()), shown, "{change:?}");
            assert_eq!(change.is_told_to_the_other(), told, "{change:?}");
        }
    }

    #[test]
    fn a_look_up_is_kept_until_this_node_or_the_user_changes_it() {
        let hot = HotUsers::new(true);
        let pair = |a: i64, b: i64| Pair { follower: user(a), followee: user(b) };
        assert!(!hot.keeps_looks_of(user(1)) && HotUsers::new(false).keeps_looks_of(user(1)));
        hot.add_star(user(1));
        assert!(hot.keeps_looks_of(user(1)));
        let begun = hot.begin();
        hot.changed(&[change(7, 1, Relation::Nothing, OPENLY)]);
        hot.keep_looks(begun, 5, (2..=9).map(|other| (pair(1, other), 0)));
        assert_eq!([2, 3, 4].map(|other| hot.look(pair(1, other), 5)), [Some(0); 3]);
        assert_eq!(hot.look(pair(1, 7), 5), None, "changed since reading it began");
        assert_eq!(hot.look(pair(1, 2), 6), None, "the star did something, on whichever node");
        assert_eq!(hot.look(pair(2, 1), 5), None, "that is another one's");
        hot.changed(&[change(2, 1, Relation::Nothing, Relation::Blocks)]);
        assert_eq!(hot.look(pair(1, 2), 5), Some(0), "who is blocked is not told, nor by the time that it takes");
        hot.changed(&[change(1, 3, Relation::Nothing, Relation::Blocks)]);
        assert_eq!(hot.look(pair(1, 3), 5), None);
    }

    #[tokio::test]
    async fn one_reading_serves_many_until_this_node_writes() {
        let (hot, reads) = (HotUsers::default(), AtomicI64::new(0));
        let counts = async |id: i64| {
            let read = || async { Ok(Counts { followers: reads.fetch_add(1, Ordering::SeqCst) + 1, ..Counts::default() }) };
            hot.counts(user(id), read).await.unwrap().followers
        };
        assert_eq!([counts(1).await, counts(1).await, counts(2).await, counts(1).await], [1, 1, 2, 1]);
        hot.changed(&[change(1, 3, Relation::Nothing, OPENLY)]);
        assert_eq!([counts(1).await, counts(1).await, counts(2).await], [3, 3, 2], "again, and once");
    }

    #[tokio::test]
    async fn a_reading_that_began_before_a_write_is_not_shown_after_it() {
        let hot = Arc::new(HotUsers::default());
        let (begun, go_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let slow = {
            let (hot, begun, go_on) = (Arc::clone(&hot), Arc::clone(&begun), Arc::clone(&go_on));
            tokio::spawn(async move {
                let read = || async {
                    begun.notify_one();
                    go_on.notified().await;
                    Ok(Counts::default())
                };
                hot.counts(user(1), read).await.unwrap().followers
            })
        };
        begun.notified().await;
        hot.changed(&[change(3, 1, Relation::Nothing, OPENLY)]);
        let later = {
            let hot = Arc::clone(&hot);
            tokio::spawn(async move {
                hot.counts(user(1), || async { Ok(Counts { followers: 1, ..Counts::default() }) }).await.unwrap().followers
            })
        };
        go_on.notify_one();
        assert_eq!((slow.await.unwrap(), later.await.unwrap()), (0, 1));
    }
}
