//! Mutes over the rows of a batch. Only rows of the user who mutes are touched.

use serde::Serialize;
use utoipa::ToSchema;

use super::command::{pending, set_silence};
use super::mute_store::MuteCount;
use super::rows::{RelationRows, need_mute, set_mute};
use super::{Muted, Pair, RelationOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::pairs::need_named;
use crate::features::inbox::rows::InboxRows;
use crate::features::operations::Preceding;
use crate::features::push;
use crate::features::silence::Mute;

/// How many mutes of a user may end by themselves. A user's entry lists the chats among them.
pub(super) const MAX_TIMED_MUTES: i64 = 1000;

/// A write to mutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MuteCommand {
    /// The first of the pair mutes the second.
    Mute {
        pair: Pair,
        mute: Mute,
        /// Which operations it comes after.
        preceding: Preceding,
        /// How many one may mute.
        max_mutes: i64,
    },
    /// No longer.
    Unmute { pair: Pair, preceding: Preceding },
    /// A mute that has ended goes.
    Sweep { pair: Pair },
}

impl MuteCommand {
    fn pair(self) -> Pair {
        match self {
            Self::Mute { pair, .. } | Self::Unmute { pair, .. } | Self::Sweep { pair } => pair,
        }
    }
}

/// The answer to a mute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct MutedOut {
    /// The relation.
    #[serde(flatten)]
    #[schema(inline)]
    pub relation: RelationOut,
    /// When the mute ends; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub until: Option<UnixMs>,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

impl lanes::Command for MuteCommand {
    fn needs(&self, needs: &mut Needs) {
        let pair = self.pair();
        need_mute(needs, pair);
        need_named(needs, pair.followee);
        needs.of::<InboxRows>().directs.insert((pair.follower, pair.followee));
    }

    // By the user: nothing of the other one is written.
    fn lane_key(&self) -> i64 {
        self.pair().follower.get()
    }

    fn names(&self) -> Names {
        match self {
            Self::Mute { pair, .. } | Self::Unmute { pair, .. } => vec![in_path(pair.follower), in_path(pair.followee)],
            Self::Sweep { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        1
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match *self {
            Self::Mute { pair, preceding, .. } | Self::Unmute { pair, preceding }
                if rows.get::<RelationRows>().has_pending(pair, preceding) =>
            {
                Err(pending())
            }
            Self::Mute { pair, mute, max_mutes, .. } => {
                put(rows, pair, mute, max_mutes, now)?;
                let relation = RelationOut::new(pair.followee, rows.get::<RelationRows>().pair_state(pair), true);
                Ok(Answer::ok(MutedOut { relation, until: mute.until, revision: rows.revision(pair.follower) }))
            }
            Self::Unmute { pair, .. } => {
                set(rows, pair, None, now);
                Ok(Answer::no_content())
            }
            Self::Sweep { pair } => {
                if rows.get::<RelationRows>().mute(pair).is_some_and(|muted| muted.mute.has_ended(now)) {
                    set(rows, pair, None, now);
                }
                Ok(Answer::no_content())
            }
        }
    }
}

/// One that has ended counts until it is swept, so that the limits bound the rows and the entry. A repeat
/// changes when the mute ends, and not since when it holds. One that has ended begins again.
fn put(rows: &mut Rows, pair: Pair, mute: Mute, max_mutes: i64, now: UnixMs) -> Result<(), Problem> {
    let before = rows.get::<RelationRows>().mute(pair);
    let since = before.filter(|before| !before.mute.has_ended(now)).map_or(now, |before| before.since);
    let count = rows.get::<RelationRows>().mute_count(pair.follower);
    let after = count.moved(MuteCount::of(before.map(|before| before.mute)), MuteCount::of(Some(mute)));
    let too_many =
        |most: i64, what: &str| Problem::new(Code::TooMany, format!("User {} has reached the limit of {most} {what}.", pair.follower));
    if after.all > count.all && after.all > max_mutes {
        return Err(too_many(max_mutes, "muted users"));
    }
    if after.timed > count.timed && after.timed > MAX_TIMED_MUTES {
        return Err(too_many(MAX_TIMED_MUTES, "mutes that end"));
    }
    set(rows, pair, Some(Muted { since, mute }), now);
    Ok(())
}

/// Brings the mute of a pair, and what the user is shown, to what it is from now on.
pub(super) fn set(rows: &mut Rows, pair: Pair, muted: Option<Muted>, now: UnixMs) {
    let before = rows.get::<RelationRows>().mute(pair);
    if before == muted {
        return;
    }
    let [was, is] = [before, muted].map(|muted| MuteCount::of(muted.map(|muted| muted.mute)));
    let count = rows.get::<RelationRows>().mute_count(pair.follower).moved(was, is);
    set_mute(rows, pair, muted, count);
    push::ends_at(rows, pair.follower, muted.and_then(|muted| muted.mute.until));
    set_silence(rows, pair, now, |silence| silence.mute = muted.map(|muted| muted.mute));
    // The list behind the feed says whose posts do not count.
    if rows.get::<RelationRows>().follow(pair).is_some() {
        rows.feed_changed(pair.follower);
    }
}
