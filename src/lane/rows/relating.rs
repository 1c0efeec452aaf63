//! The rows of relations in a batch: follows, blocks and the counts that follow from them.

use std::collections::BTreeSet;

use crate::clock::UnixMs;
use crate::db::{Conn, DbResult};
use crate::ids::UserId;
use crate::lane::Needs;
use crate::relations::state::{Stance, Standing};
use crate::relations::store::{self, Loaded};
use crate::relations::{Changed, Fans, Follow, Own, Pair};

use super::Rows;

fn stance(block: Option<UnixMs>, follow: Option<&Follow>) -> Stance {
    match (block, follow) {
        (Some(_), _) => Stance::Blocks,
        (None, Some(follow)) => Stance::Follows(follow.manner),
        (None, None) => Stance::Nothing,
    }
}

impl Rows {
    /// Takes the locks of the pairs that may change, and of those that are looked at, in one order.
    pub(super) async fn lock_pairs(conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        let mut stripes: Vec<_> = needs.stripes.iter().map(|stripe| (*stripe, false)).collect();
        stripes.extend(needs.seen_stripes.difference(&needs.stripes).map(|stripe| (*stripe, true)));
        stripes.sort_unstable();
        store::lock_stripes(conn, &stripes).await
    }

    /// Loads both directions of the pairs, what of them is accepted and not done, and the counts of those whose relations may change.
    pub(super) async fn load_relations(&mut self, conn: &mut Conn, needs: &Needs) -> DbResult<()> {
        let pairs: Vec<_> = needs.follows.union(&needs.seen_pairs).copied().collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let users: Vec<_> = needs.related.iter().copied().collect();
        let (found, own) = store::load(conn, &pairs, &users).await?;
        for (pair, loaded) in found {
            match loaded {
                Loaded::Follow(follow) => self.follows.insert_loaded([(pair, Some(follow))]),
                Loaded::Block(since) => self.blocks.insert_loaded([(pair, Some(since))]),
                Loaded::Pending(first, last) => self.operations.insert_pending(pair, first, last),
            }
        }
        self.own.insert_loaded(own);
        Ok(())
    }

    /// A follow, or a block, that changed is one removed and one made.
    pub(super) async fn save_relations(&self, conn: &mut Conn, slot: i64) -> DbResult<()> {
        let (mut gone, mut made) = (Vec::new(), Vec::new());
        for (pair, (loaded, now)) in self.follows.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            gone.extend(loaded.clone().map(|follow| (*pair, follow)));
            made.extend(now.clone().map(|follow| (*pair, follow)));
        }
        store::delete(conn, &gone).await?;
        store::insert(conn, &made).await?;
        let (mut lifted, mut set) = (Vec::new(), Vec::new());
        for (pair, (loaded, now)) in self.blocks.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
            lifted.extend(loaded.map(|_| *pair));
            set.extend(now.map(|since| (*pair, since)));
        }
        store::delete_blocks(conn, &lifted).await?;
        store::insert_blocks(conn, &set).await?;
        let own = self.own.rows.iter().filter(|(_, (loaded, now))| loaded != now).map(|(user, (loaded, now))| (loaded, (*user, *now)));
        let (known, new): (Vec<_>, Vec<_>) = own.partition(|(loaded, _)| **loaded != Own::default());
        let rows = |own: Vec<(&Own, (UserId, Own))>| own.into_iter().map(|(_, row)| row).collect::<Vec<_>>();
        store::save_own(conn, &rows(known), &rows(new)).await?;
        let fans: Vec<_> = self.fans.changed().map(|(user, fans)| (*user, *fans)).collect();
        if fans.is_empty() { Ok(()) } else { store::add_counts(conn, slot, &fans).await }
    }

    /// What two users are to each other, the first of the pair as the one who looks.
    #[must_use]
    pub fn standing(&self, pair: Pair) -> Standing {
        Standing { mine: self.stance(pair), theirs: self.stance(pair.reversed()) }
    }

    fn stance(&self, pair: Pair) -> Stance {
        stance(self.block(pair), self.follow(pair).as_ref())
    }

    /// What the batch changed of what users are to each other.
    #[must_use]
    pub fn changed_relations(&self) -> Vec<Changed> {
        let pairs: BTreeSet<_> =
            self.follows.changed().map(|(pair, _)| *pair).chain(self.blocks.changed().map(|(pair, _)| *pair)).collect();
        let change = |pair: Pair| {
            let block = self.blocks.rows.get(&pair).and_then(|(loaded, _)| *loaded);
            let follow = self.follows.rows.get(&pair).and_then(|(loaded, _)| loaded.as_ref());
            Changed { pair, before: stance(block, follow), after: self.stance(pair) }
        };
        pairs.into_iter().map(change).collect()
    }

    /// Whether the first of the pair blocks the second; needs [`Needs::seen_block`], or more.
    #[must_use]
    pub fn blocks(&self, pair: Pair) -> bool {
        self.block(pair).is_some()
    }

    /// Since when the first of the pair blocks the second.
    #[must_use]
    pub fn block(&self, pair: Pair) -> Option<UnixMs> {
        self.blocks.get(&pair)
    }

    /// Whether writes of this pair are accepted that are not done.
    #[must_use]
    pub fn has_pending(&self, pair: Pair) -> bool {
        self.operations.has_pending(pair)
    }

    /// One follow as it is now.
    #[must_use]
    pub fn follow(&self, pair: Pair) -> Option<Follow> {
        self.follows.get(&pair)
    }

    /// What a user's own relations count.
    #[must_use]
    pub fn own(&self, user: UserId) -> Own {
        self.own.get(&user)
    }

    /// Sets, changes or removes a follow, takes every count along, and raises the follower's revision. One that is the same changes nothing.
    pub fn set_follow(&mut self, pair: Pair, follow: Option<Follow>) {
        let before = self.follow(pair);
        if before == follow {
            return;
        }
        let difference = |is: fn(&Follow) -> bool| i64::from(follow.as_ref().is_some_and(is)) - i64::from(before.as_ref().is_some_and(is));
        let step = difference(|_| true);
        let returned = self.follow(pair.reversed()).is_some_and(|back| !back.manner.secret);
        let mutual = if returned { difference(|follow| !follow.manner.secret) } else { 0 };
        self.revise(pair.follower, |row| row.following += step);
        if step != 0 {
            self.feed_changed(pair.follower);
        }
        let mut own = self.own(pair.follower);
        own.secret += difference(|follow| follow.manner.secret);
        own.special += difference(|follow| follow.manner.special);
        own.versions.following = self.revision(pair.follower);
        self.own.set(&pair.follower, own);
        self.add_fans(pair.followee, Fans { followers: step, mutuals: mutual });
        self.add_fans(pair.follower, Fans { followers: 0, mutuals: mutual });
        self.follows.set(&pair, follow);
    }

    /// Sets or removes a block, takes the count along, and raises the revision of the one who blocks. What it severs is the caller's to remove.
    pub fn set_block(&mut self, pair: Pair, since: Option<UnixMs>) {
        let before = self.block(pair);
        if before.is_some() == since.is_some() {
            return;
        }
        self.revise(pair.follower, |_| {});
        let mut own = self.own(pair.follower);
        own.blocked += if since.is_some() { 1 } else { -1 };
        own.versions.blocks = self.revision(pair.follower);
        self.own.set(&pair.follower, own);
        self.blocks.set(&pair, since);
    }

    /// What this batch adds to the counts of a user whom others follow.
    #[must_use]
    pub fn fans(&self, user: UserId) -> Fans {
        self.fans.get(&user)
    }

    fn add_fans(&mut self, user: UserId, more: Fans) {
        let fans = self.fans(user);
        self.fans.set(&user, Fans { followers: fans.followers + more.followers, mutuals: fans.mutuals + more.mutuals });
    }
}
