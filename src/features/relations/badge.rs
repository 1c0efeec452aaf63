//! The badges that new followers and new requests raise, and what takes that back.

use super::{Pair, Raised};
use crate::base::ids::{Name, UserId};
use crate::engine::lanes::{Needs, Rows};
use crate::engine::marks::{Kind, Refused};
use crate::features::badges::MAX_BADGES;

/// The badges of the user whom others follow, or ask to follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Badges {
    /// What a new follower raises.
    pub follower: Option<Name>,
    /// What a new request raises.
    pub request: Option<Name>,
}

/// What it takes to raise them for the second of the pair, or to take that back.
pub(super) fn need(needs: &mut Needs, pair: Pair, badges: &Badges) {
    // Counters are in the user's own row.
    if badges.follower.is_some() || badges.request.is_some() {
        needs.user_if_changed(pair.followee);
    }
}

/// Raises a badge. That it is full, or that there are too many, must not keep anybody from
/// following.
pub(super) fn raise(rows: &mut Rows, user: UserId, badge: &Name) -> Option<Raised> {
    let mut mark = rows.mark(user, Kind::Counter, badge);
    let room = rows.has_counter(user, badge) || rows.counters(user) < MAX_BADGES;
    if !room || mark.advance(1).is_err() {
        return None;
    }
    let at = mark.head();
    rows.set_mark(user, Kind::Counter, badge, mark);
    Some(Raised { badge: badge.clone(), at })
}

/// Takes back what was raised, if it is unread and still of this badge. Where the badge cannot
/// remember one more gap, the oldest unread one goes instead, which takes no room: so the number is
/// right, and nobody is kept from unfollowing. The follower who had raised that one takes nothing back
/// later, and then the number is one too high until the badge is read.
pub(super) fn take_back(rows: &mut Rows, user: UserId, raised: Option<&Raised>, badge: Option<&Name>) {
    let Some(raised) = raised.filter(|raised| Some(&raised.badge) == badge) else { return };
    let mut mark = rows.mark(user, Kind::Counter, &raised.badge);
    let taken = match mark.retract_at(raised.at) {
        Err(Refused::TooManyRuns) => mark.read(Some(mark.mark() + 1)),
        // The badge never was that high: somebody has changed its row, and there is nothing to take
        // back.
        taken => taken.unwrap_or(false),
    };
    if taken {
        rows.set_mark(user, Kind::Counter, &raised.badge, mark);
    }
}
