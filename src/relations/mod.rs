//! Who follows whom: follow, unfollow, the two lists, the counts, and what two users are to each other.
//!
//! A follow is two rows, one for each side's list, and a step of each side's count, in one transaction. That two users follow each other (mutual) is
//! derived from the rows of both directions. A pair is locked as a whole, whichever way it is changed, so that of two who act at once one comes
//! after the other. `http.rs` has the routes, `store.rs` the SQL.

pub mod export;
pub mod http;
pub mod import;
pub mod store;

use std::str::FromStr;

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::UnixMs;
use crate::error::{Code, Problem};
use crate::ids::{Invalid, Name, UserId};
use crate::lane::{self, Answer, Needs, Rows};
use crate::marks::{Kind, StreamKey};

/// How follows are bounded.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Relations")]
pub struct FollowLimit {
    /// How many users one may follow; beyond it a follow gets 409. Imported follows may exceed it.
    #[arg(long, env = "HEADMARK_MAX_FOLLOWING", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    pub max_following: i64,
}

/// How follows are bounded, and what they raise.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Relations")]
pub struct RelationConfig {
    /// How follows are bounded.
    #[command(flatten)]
    pub limit: FollowLimit,

    /// The badge that each new follower raises by one, such as `follower`, in the transaction of the follow. Unset: none.
    #[arg(long, env = "HEADMARK_FOLLOWER_BADGE", default_value = "", hide_default_value = true)]
    pub follower_badge: FollowerBadge,
}

/// The badge that new followers raise, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowerBadge(pub Option<Name>);

impl FromStr for FollowerBadge {
    type Err = Invalid;

    /// An empty name stands for none, as environment files often have it.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().is_empty() { Ok(Self(None)) } else { text.parse().map(|name| Self(Some(name))) }
    }
}

/// Two users, one of whom may follow the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// Who follows.
    pub follower: UserId,
    /// Who is followed.
    pub followee: UserId,
}

impl Pair {
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { follower: self.followee, followee: self.follower }
    }

    /// Which lock keeps others from changing this pair, in either direction: the same on every node and in every version.
    #[must_use]
    pub fn stripe(self) -> i64 {
        let (low, high) = (self.follower.min(self.followee).get(), self.follower.max(self.followee).get());
        // The finalizer of SplitMix64 (Steele, Lea, Flood 2014), twice: neighbouring ids must not share stripes by pattern. Written out, as the
        // library's own hashers may change from one release to the next, and nodes of two releases run side by side.
        let mix = |seed: u64| {
            let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            seed ^ (seed >> 31)
        };
        let hash = mix(mix(low.unsigned_abs()).wrapping_add(high.unsigned_abs()));
        i64::try_from(hash % store::STRIPES).unwrap_or_default()
    }
}

/// A follow, as its rows have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Follow {
    /// Since when.
    pub since: UnixMs,
    /// How much the followee had posted by then: the feed counts what came after it.
    pub mark: i64,
}

/// What is added to the counts of a user whom others follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fans {
    /// How many followers more, or less.
    pub followers: i64,
    /// How many mutual follows more, or less.
    pub mutuals: i64,
}

/// The counts of a user's relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = RelationCountsOut)]
pub struct Counts {
    /// How many the user follows: the length of the list `following`.
    #[schema(minimum = 0, example = 120)]
    pub following: i64,
    /// How many follow the user: the length of the list `followers`.
    #[schema(minimum = 0, example = 98)]
    pub followers: i64,
    /// How many of them go both ways.
    #[schema(minimum = 0, example = 40)]
    pub mutuals: i64,
}

/// An entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Who.
    pub user: UserId,
    /// Since when one follows the other.
    pub since: UnixMs,
    /// Whether both do.
    pub mutual: bool,
}

/// What another user is to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationOut {
    /// The other user.
    pub user_id: UserId,
    /// Whether the user follows the other.
    pub following: bool,
    /// Whether that is a secret: never yet.
    pub secret: bool,
    /// Whether the other is marked as special: never yet.
    pub special: bool,
    /// Whether the other follows the user.
    pub followed_by: bool,
    /// Whether both follow each other.
    pub mutual: bool,
    /// Whether the user blocks the other: never yet.
    pub blocking: bool,
}

impl RelationOut {
    fn new(other: UserId, following: bool, followed_by: bool) -> Self {
        Self { user_id: other, following, secret: false, special: false, followed_by, mutual: following && followed_by, blocking: false }
    }
}

/// A step of an import: a follow that was made, or taken back, at some time elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Who and whom.
    pub pair: Pair,
    /// When the follow was made; None takes it back.
    pub follow: Option<UnixMs>,
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// Follows that were not there before.
    pub followed: u64,
    /// Follows that were taken back.
    pub unfollowed: u64,
    /// Steps that found things as they wanted them.
    pub known: u64,
    /// Follows beyond the limit.
    pub over_limit: u64,
}

impl std::ops::AddAssign for Imported {
    fn add_assign(&mut self, more: Self) {
        self.followed += more.followed;
        self.unfollowed += more.unfollowed;
        self.known += more.known;
        self.over_limit += more.over_limit;
    }
}

/// A write to relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// One follows another.
    Follow {
        /// Who and whom.
        pair: Pair,
        /// How many the follower may follow.
        limit: i64,
        /// The badge of the followee to raise.
        badge: Option<Name>,
    },
    /// One follows another no longer.
    Unfollow(Pair),
    /// Many steps, in order; one that the limit refuses is passed over. No badge is raised: what is imported is no news.
    Import {
        /// The steps.
        steps: Vec<Step>,
        /// How many each follower may follow, where that is to be kept.
        limit: Option<i64>,
        /// Which lane.
        lane_key: i64,
    },
}

impl lane::Command for Command {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Follow { pair, badge, .. } => {
                needs.follow(*pair);
                if let Some(badge) = badge {
                    needs.mark(pair.followee, Kind::Counter, badge);
                }
            }
            Self::Unfollow(pair) => needs.follow(*pair),
            Self::Import { steps, .. } => steps.iter().for_each(|step| needs.follow(step.pair)),
        }
    }

    // By the follower, whose own row every change locks.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Follow { pair, .. } | Self::Unfollow(pair) => pair.follower.get(),
            Self::Import { lane_key, .. } => *lane_key,
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Import { steps, .. } => u32::try_from(steps.len()).unwrap_or(u32::MAX),
            _ => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Follow { pair, limit, badge } => {
                if rows.follow(*pair).is_none() {
                    follow(rows, *pair, now, Some(*limit))?;
                    if let Some(badge) = badge {
                        raise(rows, pair.followee, badge);
                    }
                }
                let followed_by = rows.follow(pair.reversed()).is_some();
                Answer::ok(&RelationOut::new(pair.followee, true, followed_by))
            }
            Self::Unfollow(pair) => {
                rows.set_follow(*pair, None);
                Ok(Answer::no_content())
            }
            Self::Import { steps, limit, .. } => Answer::ok(&import(rows, steps, *limit)),
        }
    }
}

fn follow(rows: &mut Rows, pair: Pair, since: UnixMs, limit: Option<i64>) -> Result<(), Problem> {
    if let Some(limit) = limit.filter(|limit| rows.user(pair.follower).following >= *limit) {
        let detail = format!("User {} follows {limit} users already, which is the most.", pair.follower);
        return Err(Problem::new(Code::FollowingLimit, detail));
    }
    let mark = rows.head(&StreamKey::posts(pair.followee)).head;
    rows.set_follow(pair, Some(Follow { since, mark }));
    Ok(())
}

/// Raises the badge of a new follower. That a badge is full, or that there are too many, must not keep anybody from following.
fn raise(rows: &mut Rows, user: UserId, badge: &Name) {
    let mut mark = rows.mark(user, Kind::Counter, badge);
    let room = mark.head() > 0 || rows.user(user).counters < crate::badges::MAX_BADGES;
    if room && mark.advance(1).is_ok() {
        rows.set_mark(user, Kind::Counter, badge, mark);
    }
}

fn import(rows: &mut Rows, steps: &[Step], limit: Option<i64>) -> Imported {
    let mut done = Imported::default();
    for step in steps {
        match (rows.follow(step.pair), step.follow) {
            (None, Some(since)) => match follow(rows, step.pair, since, limit) {
                Ok(()) => done.followed += 1,
                Err(_) => done.over_limit += 1,
            },
            (Some(_), None) => {
                rows.set_follow(step.pair, None);
                done.unfollowed += 1;
            }
            (Some(_), Some(_)) | (None, None) => done.known += 1,
        }
    }
    done
}

#[cfg(test)]
mod tests;
