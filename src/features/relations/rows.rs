//! Relations in a batch: follows, blocks, mutes, the counts that follow from them, and the writes that
//! are accepted and not done.

mod needs;
mod received;
mod set;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join;

pub(super) use self::needs::need_mute;
pub use self::needs::{need_approval, need_block, need_block_seen, need_follow, need_operations};
pub(super) use self::set::set_mute;
pub use self::set::{set_block, set_follow};
use super::lists_part::lists_part;
use super::mute_store::{self, MuteCount};
use super::pair_codes;
use super::request_store::{self, ApprovalChange};
use super::state::{PairState, Relation};
use super::store::{self, Loaded};
use super::{Changed, Fans, Follow, Muted, Own, Request, Versions};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline, Statement};
use crate::engine::entries::EntryRows;
use crate::engine::heads::Batch;
use crate::engine::lanes::{Core, EntryParts, Needs, RowSet, Table};
use crate::engine::marks::StreamKey;
use crate::engine::pairs::Pair;
use crate::features::operations::{self, Preceding};

/// What those have of a follow or a request who are followed or asked: of whom, and since when.
pub(super) type Received = (Pair, UnixMs);

/// The rows of relations in a batch.
#[derive(Debug, Default)]
pub struct RelationRows {
    follows: Table<Pair, Option<Follow>>,
    pub(super) requests: Table<Pair, Option<Request>>,
    /// Who approves follows, of those of whom that was asked.
    approving: BTreeSet<UserId>,
    /// Rows of those who are followed or asked that are to go: they are never loaded.
    received: Table<Received, bool>,
    /// Who begins or ends to accept all open requests: these rows are never loaded.
    pub(super) approval_ends: Table<UserId, Option<ApprovalChange>>,
    /// Who blocks whom, and since when.
    blocks: Table<Pair, Option<UnixMs>>,
    /// Who mutes whom.
    mutes: Table<Pair, Option<Muted>>,
    mute_counts: Table<UserId, MuteCount>,
    /// What users' own relations count.
    pub(super) own: Table<UserId, Own>,
    /// What is to be added to the counts of those who are followed: these rows are never loaded.
    fans: Table<UserId, Fans>,
    /// Writes that were accepted before they are done.
    pub operations: operations::store::Tables,
}

/// Which of these rows a batch needs.
#[derive(Debug, Default)]
pub struct RelationNeeds {
    /// Both directions of each pair.
    follows: BTreeSet<Pair>,
    /// Pairs that are only looked at.
    seen_pairs: BTreeSet<Pair>,
    /// Users of whom is asked whether they approve follows; their pairs are among the others.
    approvals: BTreeSet<UserId>,
    /// Users whose own relations may change.
    related: BTreeSet<UserId>,
    /// Pairs of whom the first may mute the second, or end that. Nothing of the second changes.
    mutes: BTreeSet<Pair>,
    /// Users whose mutes are counted, each with the time at which they must not have ended.
    mute_counts: BTreeSet<UserId>,
}

fn relation(block: Option<UnixMs>, follow: Option<&Follow>, request: Option<&Request>) -> Relation {
    match (block, follow, request) {
        (Some(_), ..) => Relation::Blocks,
        (None, Some(follow), _) => Relation::Follows(follow.options),
        (None, None, Some(request)) => Relation::Requests(request.options),
        (None, None, None) => Relation::Nothing,
    }
}

impl RelationRows {
    /// What two users are to each other, the first of the pair as the one who looks.
    #[must_use]
    pub fn pair_state(&self, pair: Pair) -> PairState {
        PairState { mine: self.relation(pair), theirs: self.relation(pair.reversed()) }
    }

    fn relation(&self, pair: Pair) -> Relation {
        relation(self.block(pair), self.follow(pair).as_ref(), self.request(pair).as_ref())
    }

    /// What the batch changed of what users are to each other.
    #[must_use]
    pub fn changed(&self) -> Vec<Changed> {
        let mut pairs: BTreeSet<_> = self.follows.changed().map(|(pair, _)| *pair).collect();
        pairs.extend(self.requests.changed().map(|(pair, _)| *pair));
        pairs.extend(self.blocks.changed().map(|(pair, _)| *pair));
        // The one who mutes is told something else of the other.
        pairs.extend(self.mutes.changed().map(|(pair, _)| *pair));
        let change = |pair: Pair| {
            let block = self.blocks.rows.get(&pair).and_then(|(loaded, _)| *loaded);
            let follow = self.follows.rows.get(&pair).and_then(|(loaded, _)| loaded.as_ref());
            let request = self.requests.rows.get(&pair).and_then(|(loaded, _)| loaded.as_ref());
            Changed { pair, before: relation(block, follow, request), after: self.relation(pair) }
        };
        pairs.into_iter().map(change).collect()
    }

    /// Whether the first of the pair blocks the second; needs [`need_block_seen`], or more.
    #[must_use]
    pub fn blocks(&self, pair: Pair) -> bool {
        self.block(pair).is_some()
    }

    /// Since when the first of the pair blocks the second.
    #[must_use]
    pub fn block(&self, pair: Pair) -> Option<UnixMs> {
        self.blocks.get(&pair)
    }

    /// How the first of the pair mutes the second, also where that has ended.
    #[must_use]
    pub fn mute(&self, pair: Pair) -> Option<Muted> {
        self.mutes.get(&pair)
    }

    /// Whether the first of the pair mutes the second now.
    #[must_use]
    pub fn mutes(&self, pair: Pair, now: UnixMs) -> bool {
        self.mute(pair).is_some_and(|muted| !muted.mute.has_ended(now))
    }

    /// How many others the user mutes, as of the time that was asked for.
    #[must_use]
    pub(super) fn mute_count(&self, user: UserId) -> MuteCount {
        self.mute_counts.get(&user)
    }

    /// What the first of the pair is told of the second, as a number.
    fn code(&self, pair: Pair) -> u8 {
        pair_codes::code(self.pair_state(pair)) | pair_codes::mute_code(self.mute(pair).map(|muted| muted.mute))
    }

    /// Whether writes of this pair are accepted, and not done, that a write comes after.
    #[must_use]
    pub fn has_pending(&self, pair: Pair, preceding: Preceding) -> bool {
        self.operations.has_pending(pair, preceding)
    }

    /// One follow as it is now.
    #[must_use]
    pub fn follow(&self, pair: Pair) -> Option<Follow> {
        self.follows.get(&pair)
    }

    /// One request as it is now.
    #[must_use]
    pub fn request(&self, pair: Pair) -> Option<Request> {
        self.requests.get(&pair)
    }

    /// Whether a user approves follows; needs [`need_approval`].
    #[must_use]
    pub fn approves(&self, user: UserId) -> bool {
        self.approving.contains(&user)
    }

    #[cfg(test)]
    pub(super) fn set_approves(&mut self, user: UserId, approves: bool) {
        if approves {
            self.approving.insert(user)
        } else {
            self.approving.remove(&user)
        };
    }

    /// What a user's own relations count.
    #[must_use]
    pub fn own(&self, user: UserId) -> Own {
        self.own.get(&user)
    }

    /// A follow, or a block, that changed is one removed and one made.
    async fn save_relations(&self, conn: &mut Conn, slot: i64) -> DbResult<()> {
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
        self.save_mutes(conn).await?;
        // Most follows change no more of these than the version, which is in the user's row.
        let own = self.own.rows.iter().filter(|(_, (loaded, now))| loaded.beside_following() != now.beside_following());
        let own = own.map(|(user, (loaded, now))| (loaded, (*user, *now)));
        let (known, new): (Vec<_>, Vec<_>) = own.partition(|(loaded, _)| loaded.beside_following() != Own::default());
        let rows = |own: Vec<(&Own, (UserId, Own))>| own.into_iter().map(|(_, row)| row).collect::<Vec<_>>();
        store::save_own(conn, &rows(known), &rows(new)).await?;
        request_store::save(conn, &self.requests).await?;
        request_store::save_approval_ends(conn, &self.approval_ends).await?;
        let fans: Vec<_> = self.fans.changed().map(|(user, fans)| (*user, *fans)).collect();
        if fans.is_empty() { Ok(()) } else { store::add_counts(conn, slot, &fans).await }
    }

    async fn save_mutes(&self, conn: &mut Conn) -> DbResult<()> {
        let (mut ended, mut set) = (Vec::new(), Vec::new());
        for (pair, now) in self.mutes.changed() {
            match now {
                Some(muted) => set.push((*pair, *muted)),
                None => ended.push(*pair),
            }
        }
        mute_store::delete(conn, &ended).await?;
        mute_store::save(conn, &set).await
    }

    /// What this batch adds to the counts of a user whom others follow.
    #[must_use]
    pub fn fans(&self, user: UserId) -> Fans {
        self.fans.get(&user)
    }

    pub(super) fn add_fans(&mut self, user: UserId, more: Fans) {
        let Fans { followers, mutuals, requests } = self.fans(user);
        let fans = Fans { followers: followers + more.followers, mutuals: mutuals + more.mutuals, requests: requests + more.requests };
        self.fans.set(&user, fans);
    }
}

impl RowSet for RelationRows {
    const ENTRY_ROWS: Option<EntryRows> = Some(EntryRows {
        select: "select u.user_id, {kind}, '',
        case when u.following_version > coalesce(c.following_version, 0) then u.following_version else c.following_version end,
        coalesce(c.blocks_version, 0), coalesce(c.mutes_version, 0), coalesce(c.requests_version, 0), 0, 0, cast(null as bytea)
    from {rows} r
    join users u on u.user_id = r.user_id
    left join relation_counts c on c.user_id = r.user_id
    where u.following_version > 0 or c.user_id is not null",
        part: |row| {
            let [following, blocks, mutes, requests, ..] = row.numbers;
            let versions = Versions { following, blocks, mutes, requests };
            (versions != Versions::default()).then(|| lists_part(versions))
        },
    });

    type Needs = RelationNeeds;

    fn statements() -> Vec<&'static Statement> {
        [store::statements().as_slice(), &mute_store::row_statements(), &request_store::statements()].concat()
    }

    async fn load(&mut self, pipeline: &Pipeline, core: &Core, needs: &RelationNeeds) -> DbResult<()> {
        // Whose row comes with this batch follows nobody yet: a follow is written together with it.
        let may_follow = |user: UserId| !core.is_new(user);
        let load =
            |pair: Pair| store::Load { pair, may_follow: may_follow(pair.follower), approves: needs.approvals.contains(&pair.follower) };
        let muted = needs.mutes.iter().flat_map(|pair| [*pair, pair.reversed()]);
        let pairs: BTreeSet<_> = needs.follows.union(&needs.seen_pairs).copied().chain(muted).collect();
        let pairs: Vec<_> = pairs.into_iter().map(load).collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let users: Vec<_> = needs.related.iter().copied().collect();
        let ((found, own), mute_counts) =
            try_join(store::load(pipeline, &pairs, &users), mute_store::count(pipeline, &needs.mute_counts)).await?;
        self.mute_counts.insert_loaded(mute_counts);
        for (pair, loaded) in found {
            match loaded {
                Loaded::Follow(follow) => self.follows.insert_loaded([(pair, Some(follow))]),
                Loaded::Request(request) => self.requests.insert_loaded([(pair, Some(request))]),
                Loaded::Approves => _ = self.approving.insert(pair.follower),
                Loaded::Block(since) => self.blocks.insert_loaded([(pair, Some(since))]),
                Loaded::Pending(first, last) => self.operations.insert_pending(pair, first, last),
                Loaded::Mute(muted) => self.mutes.insert_loaded([(pair, Some(muted))]),
            }
        }
        let mut own: BTreeMap<_, _> = own.into_iter().collect();
        for user in users {
            let versions = &mut own.entry(user).or_default().versions;
            versions.following = versions.following.max(core.user(user).following_version);
        }
        self.own.insert_loaded(own);
        Ok(())
    }

    /// Those of whom a user may begin to follow, as what was posted before that is not to be
    /// counted; also where there is a follow, which a command before may take back. Of a user who
    /// was not seen yet, and will not be in this batch, no count begins before the enrolment, so
    /// there they can be left out; an import is mostly of such.
    fn seen_heads(needs: &Needs, core: &Core, heads: &mut BTreeSet<StreamKey>) {
        let Some(own) = needs.find::<Self>() else { return };
        let counts = |user: UserId| core.user(user).is_enrolled() || needs.may_enrol(user);
        let begins = |pair: &&Pair| needs.has_user(pair.follower) && counts(pair.follower);
        heads.extend(own.follows.iter().filter(begins).map(|pair| StreamKey::posts(pair.followee)));
    }

    async fn save(&self, conn: &mut Conn, core: &Core, batch: Batch) -> DbResult<()> {
        self.save_relations(conn, batch.slot).await?;
        self.delete_received(conn, core).await?;
        self.operations.save(conn).await
    }

    fn settle(&mut self) {
        self.follows.settle();
        self.requests.settle();
        self.received.settle();
        self.approval_ends.settle();
        self.blocks.settle();
        self.mutes.settle();
        self.mute_counts.settle();
        self.own.settle();
        self.fans.settle();
        self.operations.settle();
    }

    fn undo(&mut self) {
        self.follows.undo();
        self.requests.undo();
        self.received.undo();
        self.approval_ends.undo();
        self.blocks.undo();
        self.mutes.undo();
        self.mute_counts.undo();
        self.own.undo();
        self.fans.undo();
        self.operations.undo();
    }

    fn parts(&self, parts: &mut EntryParts<'_>) {
        for (user, own) in self.own.changed() {
            parts.add(*user, || Some(lists_part(own.versions)));
        }
    }

    fn facts(needs: &RelationNeeds) -> Vec<UserId> {
        // Both directions of each pair are there, in order: so each of the two is a first one.
        let pairs: BTreeSet<_> = needs.follows.union(&needs.mutes).collect();
        let mut users: Vec<_> = pairs.into_iter().map(|pair| pair.follower).collect();
        users.dedup();
        users
    }

    fn facts_now(&self, needs: &RelationNeeds) -> Vec<(UserId, UserId, u8)> {
        needs.follows.union(&needs.mutes).map(|pair| (pair.follower, pair.followee, self.code(*pair))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_in_the_facts_of_both() {
        let user = |id: i64| UserId::try_from(id).unwrap();
        let mut needs = Needs::default();
        for (a, b) in [(1, 9), (1, 2), (5, 1)] {
            need_follow(&mut needs, Pair { follower: user(a), followee: user(b) });
        }
        need_block_seen(&mut needs, Pair { follower: user(7), followee: user(8) });
        assert_eq!(needs.users(), [user(1), user(5)]);
        assert_eq!(RelationRows::facts(needs.of::<RelationRows>()), [1, 2, 5, 9].map(user));

        let mut rows = RelationRows::default();
        let pair = Pair { follower: user(1), followee: user(2) };
        rows.follows.insert_loaded([(pair, None), (pair.reversed(), None)]);
        rows.blocks.insert_loaded([(pair, None), (pair.reversed(), None)]);
        rows.blocks.set(&pair, Some(UnixMs::default()));
        let mut needs = Needs::default();
        need_follow(&mut needs, pair);
        let facts_now = |rows: &RelationRows| rows.facts_now(needs.find::<RelationRows>().unwrap());
        assert_eq!(facts_now(&rows), [(user(1), user(2), 8), (user(2), user(1), 0)], "who is blocked is not told");
        rows.blocks = Table::default();
        rows.blocks.insert_loaded([(pair, Some(UnixMs::default()))]);
        assert_eq!(facts_now(&rows), [(user(1), user(2), 8), (user(2), user(1), 0)], "also where it was so before");
    }
}
