//! Familiar followers: of those whom a user follows, who follows somebody else.
//!
//! Only what the user may read in lists counts: public follows of users who show the user their
//! lists. A follower may see the lists of those who show them to followers, so only `self` hides.
//! Neither the answer nor the work depends on secret follows, requests, blocks or mutes.
//!
//! An answer is kept for a second, with the version of the user's own lists. So what the user does
//! shows at once on every node. What others do shows at once on the node that takes it, and within
//! 2 s on the others, as in their lists ([`super::hot_users`]).

use std::sync::Arc;

use moka::sync::Cache;

use super::familiar_store::{self, ShownFollows};
use super::hot_users::KEPT;
use super::{HotUsers, Pair};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::db::{Db, DbResult, PageReads};
use crate::engine::marks::ListVisibility;
use crate::engine::turns::Turns;

/// The most users that one request asks about.
pub(super) const MAX_OTHERS: usize = 20;

/// How many of those whom the user follows are looked at, the newest.
const MAX_FOLLOWEES: usize = 500;

/// How many of them are named.
const MAX_SAMPLE: usize = 3;

/// How many answers are kept, each about one other: some 150 bytes apiece.
const MAX_KEPT: u64 = 100_000;

/// Who of those whom a user follows follow somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Familiar {
    pub count: usize,
    /// Whether the user follows more than were looked at.
    pub is_capped: bool,
    /// The newest of them in the user's own list, newest first.
    pub sample: Vec<UserId>,
}

/// An answer, how much this node had written when reading it began, and the version of the user's
/// own lists before that.
#[derive(Debug)]
struct Kept {
    begun: u64,
    version: Revision,
    familiar: Familiar,
}

/// What is shown of `other`, to one who follows these, newest first.
fn familiar(followees: &[UserId], shown: &ShownFollows, other: UserId) -> Familiar {
    let hides = |followee: &UserId| shown.visibility.get(followee) == Some(&ListVisibility::Own);
    let follows = |followee: &UserId| shown.follows.contains(&Pair { follower: *followee, followee: other });
    let found: Vec<_> = followees.iter().take(MAX_FOLLOWEES).copied().filter(|followee| follows(followee) && !hides(followee)).collect();
    Familiar { count: found.len(), is_capped: followees.len() > MAX_FOLLOWEES, sample: found.into_iter().take(MAX_SAMPLE).collect() }
}

/// Finds familiar followers, and keeps them for a moment.
#[derive(Debug)]
pub struct FamiliarReader {
    db: Db,
    pages: PageReads,
    turns: Arc<Turns>,
    hot: Arc<HotUsers>,
    kept: Cache<Pair, Arc<Kept>>,
}

impl FamiliarReader {
    /// Nothing is known yet. Those whom a user follows are read from `db`, what these show from
    /// `pages`.
    #[must_use]
    pub fn new(db: Db, pages: PageReads, turns: Arc<Turns>, hot: Arc<HotUsers>) -> Self {
        Self { db, pages, turns, hot, kept: Cache::builder().max_capacity(MAX_KEPT).time_to_live(KEPT).build() }
    }

    /// What the user is shown of each of these others, in the order asked. `version` is that of the
    /// user's own lists; None where that cannot be had, so that nothing is kept.
    pub async fn of(&self, user: UserId, others: &[UserId], version: Option<Revision>) -> Result<Vec<Familiar>> {
        // Before anything is read: what is kept is at least as new as they say.
        let begun = self.hot.begin();
        let known: Vec<_> = others.iter().map(|other| self.known(user, *other, version?)).collect();
        let mut missing: Vec<_> = others.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(other, _)| *other).collect();
        missing.sort_unstable();
        missing.dedup();
        let (followees, shown) =
            if missing.is_empty() { Default::default() } else { self.turns.read_list(self.read(user, &missing)).await? };
        if let Some(version) = version {
            for other in &missing {
                let kept = Kept { begun, version, familiar: familiar(&followees, &shown, *other) };
                self.kept.insert(Pair { follower: user, followee: *other }, Arc::new(kept));
            }
        }
        let told = others.iter().zip(known).map(|(other, known)| known.unwrap_or_else(|| familiar(&followees, &shown, *other)));
        Ok(told.collect())
    }

    fn known(&self, user: UserId, other: UserId, version: Revision) -> Option<Familiar> {
        let kept = self.kept.get(&Pair { follower: user, followee: other })?;
        let is_good = kept.version >= version && self.hot.is_unchanged(kept.begun, [user, other]);
        is_good.then(|| kept.familiar.clone())
    }

    /// Whom the user follows, from the primary; what these show of those others, from a replica too,
    /// unless this node has changed some of it lately.
    async fn read(&self, user: UserId, others: &[UserId]) -> DbResult<(Vec<UserId>, ShownFollows)> {
        let followees = familiar_store::newest(&self.db, user, MAX_FOLLOWEES + 1).await?;
        let looked: Vec<_> = followees.iter().take(MAX_FOLLOWEES).copied().collect();
        if looked.is_empty() {
            return Ok(Default::default());
        }
        let shown = if looked.iter().chain(others).any(|user| self.hot.has_changed_lately(*user)) {
            familiar_store::shown(&self.db, &looked, others).await?
        } else {
            self.pages.read(|db| familiar_store::shown(db, &looked, others)).await?
        };
        Ok((followees, shown))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    #[test]
    fn more_than_are_looked_at_are_neither_counted_nor_named() {
        let followees: Vec<_> = (1..=501).rev().map(user).collect();
        let shown = ShownFollows {
            follows: followees.iter().map(|follower| Pair { follower: *follower, followee: user(1000) }).collect(),
            ..ShownFollows::default()
        };
        let all = familiar(&followees, &shown, user(1000));
        assert_eq!(all, Familiar { count: 500, is_capped: true, sample: [501, 500, 499].map(user).into() });
        let all = familiar(&followees[1..], &shown, user(1000));
        assert_eq!(all, Familiar { count: 500, is_capped: false, sample: [500, 499, 498].map(user).into() });
    }

    proptest! {
        /// Against a walk through what everybody follows, as a user reads it in lists.
        #[test]
        fn it_is_what_a_walk_through_the_lists_finds(
            mut followees in vec(1i64..12, 0..12),
            follows in btree_set((1i64..12, 20i64..24), 0..60),
            visibility in btree_map(1i64..12, 0..3, 0..12),
        ) {
            let mut seen = std::collections::BTreeSet::new();
            followees.retain(|followee| seen.insert(*followee));
            let of = |kind: &i32| [ListVisibility::All, ListVisibility::Followers, ListVisibility::Own][usize::try_from(*kind).unwrap()];
            let shown = ShownFollows {
                follows: follows.iter().map(|(follower, followee)| Pair { follower: user(*follower), followee: user(*followee) }).collect(),
                visibility: visibility.iter().map(|(id, kind)| (user(*id), of(kind))).collect(),
            };
            let followees: Vec<_> = followees.into_iter().map(user).collect();
            for other in 20..24 {
                let mut walked = Vec::new();
                for followee in &followees {
                    // Whoever follows may read this list, unless it is for its owner alone.
                    if visibility.get(&followee.get()) == Some(&2) {
                        continue;
                    }
                    let list: Vec<_> = follows.iter().filter(|(follower, _)| *follower == followee.get()).map(|(_, followee)| *followee).collect();
                    if list.contains(&other) {
                        walked.push(*followee);
                    }
                }
                let found = familiar(&followees, &shown, user(other));
                prop_assert_eq!(found.count, walked.len());
                walked.truncate(3);
                prop_assert_eq!((found.sample, found.is_capped), (walked, false));
            }
        }
    }
}
