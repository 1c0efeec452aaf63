//! How relations are set in a batch, with the counts and versions that follow from them.

use super::super::mute_store::MuteCount;
use super::super::{Fans, Follow, Muted};
use super::RelationRows;
use crate::base::clock::UnixMs;
use crate::engine::lanes::Rows;
use crate::engine::pairs::Pair;

/// Sets, changes or removes a follow, takes every count along, and raises the follower's revision.
/// One that is the same changes nothing.
pub fn set_follow(rows: &mut Rows, pair: Pair, follow: Option<Follow>) {
    let before = rows.get::<RelationRows>().follow(pair);
    if before == follow {
        return;
    }
    let difference = |is: fn(&Follow) -> bool| i64::from(follow.as_ref().is_some_and(is)) - i64::from(before.as_ref().is_some_and(is));
    let step = difference(|_| true);
    let returned = rows.get::<RelationRows>().follow(pair.reversed()).is_some_and(|back| !back.options.secret);
    let mutual = if returned { difference(|follow| !follow.options.secret) } else { 0 };
    rows.revise(pair.follower, |row| row.following += step);
    rows.following_changed(pair.follower);
    if step != 0 {
        rows.feed_changed(pair.follower);
    }
    let mut own = rows.get::<RelationRows>().own(pair.follower);
    own.secret += difference(|follow| follow.options.secret);
    own.special += difference(|follow| follow.options.special);
    own.versions.following = rows.revision(pair.follower);
    let set = rows.get_mut::<RelationRows>();
    set.own.set(&pair.follower, own);
    set.add_fans(pair.followee, Fans { followers: step, mutuals: mutual, requests: 0 });
    set.add_fans(pair.follower, Fans { mutuals: mutual, ..Fans::default() });
    set.follows.set(&pair, follow);
}

/// Sets or removes a block, takes the count along, and raises the revision of the one who blocks.
/// What it severs is the caller's to remove.
pub fn set_block(rows: &mut Rows, pair: Pair, since: Option<UnixMs>) {
    let before = rows.get::<RelationRows>().block(pair);
    if before.is_some() == since.is_some() {
        return;
    }
    rows.revise(pair.follower, |_| {});
    let mut own = rows.get::<RelationRows>().own(pair.follower);
    own.blocked += if since.is_some() { 1 } else { -1 };
    own.versions.blocks = rows.revision(pair.follower);
    let set = rows.get_mut::<RelationRows>();
    set.own.set(&pair.follower, own);
    set.blocks.set(&pair, since);
}

/// Sets, changes or removes a mute, and raises the revision of the one who mutes. Its effects on what
/// the user is shown are the caller's to bring about.
pub(in super::super) fn set_mute(rows: &mut Rows, pair: Pair, muted: Option<Muted>, count: MuteCount) {
    rows.revise(pair.follower, |_| {});
    let mut own = rows.get::<RelationRows>().own(pair.follower);
    own.versions.mutes = rows.revision(pair.follower);
    let set = rows.get_mut::<RelationRows>();
    set.own.set(&pair.follower, own);
    set.mutes.set(&pair, muted);
    set.mute_counts.set(&pair.follower, count);
}
