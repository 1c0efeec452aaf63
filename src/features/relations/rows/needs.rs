//! Which rows of relations a batch needs.

use super::RelationRows;
use crate::base::ids::UserId;
use crate::engine::lanes::Needs;
use crate::engine::pairs::{Pair, need_approval_seen, need_pair, need_pair_seen};

/// What two users are to each other, to change what the first is to the second; with it the first
/// one's own row and counts, and the lock of the pair.
pub fn need_follow(needs: &mut Needs, pair: Pair) {
    needs.user_if_changed(pair.follower);
    need_pair(needs, pair);
    let needs = needs.of::<RelationRows>();
    needs.related.insert(pair.follower);
    needs.follows.extend([pair, pair.reversed()]);
}

/// Whether a user approves follows, beside [`need_follow`] of one who may follow that user.
pub fn need_approval(needs: &mut Needs, user: UserId) {
    need_approval_seen(needs, user);
    needs.of::<RelationRows>().approvals.insert(user);
}

/// The same to change both directions.
pub fn need_block(needs: &mut Needs, pair: Pair) {
    need_follow(needs, pair);
    need_follow(needs, pair.reversed());
}

/// What two users are to each other, only to look at it.
pub fn need_block_seen(needs: &mut Needs, pair: Pair) {
    need_pair_seen(needs, pair);
    needs.of::<RelationRows>().seen_pairs.extend([pair, pair.reversed()]);
}

/// The lock of a pair, and which writes of it are accepted and not done.
pub fn need_operations(needs: &mut Needs, pair: Pair) {
    need_pair(needs, pair);
    needs.of::<RelationRows>().seen_pairs.insert(pair.unordered());
}

/// Whether the first of a pair mutes the second, to change that; with it the first one's own row and
/// counts. The second cannot tell: the lock of the pair is only looked at, and neither its row nor
/// what it is told of the first is touched.
pub(in super::super) fn need_mute(needs: &mut Needs, pair: Pair) {
    needs.user(pair.follower);
    need_pair_seen(needs, pair);
    let needs = needs.of::<RelationRows>();
    needs.related.insert(pair.follower);
    needs.mutes.insert(pair);
    needs.mute_counts.insert(pair.follower);
}
