//! Acts and imports over the rows of a batch.

use serde::{Deserialize, Serialize};

use super::state::{Act, Manner, Refusal, Room, Stance, Standing, step};
use super::{Follow, Imported, Pair, RelationOut, Step};
use crate::clock::UnixMs;
use crate::error::{Code, Problem};
use crate::events::Event;
use crate::ids::{Name, UserId};
use crate::lane::{self, Answer, Needs, Rows};
use crate::marks::{Kind, StreamKey};

/// One user does something about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deed {
    /// Who, and about whom.
    pub pair: Pair,
    /// What.
    pub act: Act,
}

/// What acts are held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// How many one may follow.
    pub max_following: i64,
    /// How many one may block.
    pub max_blocks: i64,
    /// The badge of the followee to raise.
    pub badge: Option<Name>,
}

/// A write to relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// One user does something about another.
    Do {
        /// What.
        deed: Deed,
        /// To what it is held.
        terms: Terms,
    },
    /// Many steps, in order; one that the limit or a block refuses is passed over, and one that must wait for what was accepted of its pair before is told. No badge is raised: what is imported is no news.
    Import {
        /// The steps.
        steps: Vec<Step>,
        /// How many each follower may follow, where that is to be kept.
        limit: Option<i64>,
        /// Whether readers of events are told.
        events: bool,
        /// Which lane.
        lane_key: i64,
    },
}

impl Deed {
    /// What applying it looks at or changes.
    pub fn needs(&self, terms: &Terms, needs: &mut Needs) {
        match self.act {
            Act::Follow { .. } => {
                needs.follow(self.pair);
                if let Some(badge) = &terms.badge {
                    needs.mark(self.pair.followee, Kind::Counter, badge);
                }
            }
            Act::Unfollow | Act::Unblock => needs.follow(self.pair),
            Act::RemoveFollower => needs.follow(self.pair.reversed()),
            Act::Block => needs.block(self.pair),
        }
    }
}

impl lane::Command for Command {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Do { deed, terms } => deed.needs(terms, needs),
            Self::Import { steps, .. } => steps.iter().for_each(|step| needs.follow(step.pair)),
        }
    }

    // By the lock of the pair: no two lanes of a node wait for each other's.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Do { deed, .. } => deed.pair.stripe(),
            Self::Import { lane_key, .. } => *lane_key,
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Import { steps, .. } => u32::try_from(steps.len()).unwrap_or(u32::MAX),
            Self::Do { .. } => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Do { deed, .. } if rows.has_pending(deed.pair) => Err(pending()),
            Self::Do { deed, terms } => apply_deed(rows, deed, terms, now),
            Self::Import { steps, limit, events, .. } => Answer::ok(&import(rows, steps, *limit, *events, now)),
        }
    }
}

/// Operations that were accepted earlier come first; whoever submitted this has them done and tries again.
fn pending() -> Problem {
    Problem::new(Code::OperationsPending, "Writes of the same two users were accepted before this one and are not done yet.")
}

/// Applies a deed: the rule over the pair, then the rows that follow from it.
///
/// # Errors
/// The problem that the caller gets.
pub fn apply_deed(rows: &mut Rows, deed: &Deed, terms: &Terms, now: UnixMs) -> Result<Answer, Problem> {
    let Deed { pair, act } = *deed;
    let me = pair.follower;
    let before = rows.standing(pair);
    let room = Room { follow: rows.user(me).following < terms.max_following, block: rows.own(me).blocked < terms.max_blocks };
    let after = step(before, act, room).map_err(|refusal| refused(refusal, me, terms))?;
    set(rows, pair, after.mine, now);
    set(rows, pair.reversed(), after.theirs, now);
    tell(rows, pair, before, after, now);
    if before.mine.manner().is_none()
        && after.mine.manner().is_some()
        && let Some(badge) = &terms.badge
    {
        raise(rows, pair.followee, badge);
    }
    match act {
        Act::Follow { .. } | Act::Block => Answer::ok(&RelationOut::new(pair.followee, after)),
        Act::Unfollow | Act::RemoveFollower | Act::Unblock => Ok(Answer::no_content()),
    }
}

fn refused(refusal: Refusal, me: UserId, terms: &Terms) -> Problem {
    match refusal {
        Refusal::Blocked => Problem::new(Code::Blocked, "One of the two users blocks the other."),
        Refusal::FollowingLimit => over_limit(me, terms.max_following),
        Refusal::BlockLimit => {
            Problem::new(Code::TooMany, format!("User {me} blocks {} users already, which is the most.", terms.max_blocks))
        }
    }
}

fn over_limit(follower: UserId, limit: i64) -> Problem {
    Problem::new(Code::FollowingLimit, format!("User {follower} follows {limit} users already, which is the most."))
}

/// Brings the rows of one direction to what the rule says.
fn set(rows: &mut Rows, pair: Pair, stance: Stance, now: UnixMs) {
    match (stance, rows.block(pair)) {
        (Stance::Blocks, None) => rows.set_block(pair, Some(now)),
        (Stance::Nothing | Stance::Follows(_), Some(_)) => rows.set_block(pair, None),
        _ => {}
    }
    match (stance.manner(), rows.follow(pair)) {
        (None, Some(_)) => rows.set_follow(pair, None),
        (Some(manner), Some(follow)) => rows.set_follow(pair, Some(Follow { manner, ..follow })),
        (Some(manner), None) => begin(rows, pair, manner, now),
        (None, None) => {}
    }
}

fn begin(rows: &mut Rows, pair: Pair, manner: Manner, since: UnixMs) {
    let mark = rows.head(&StreamKey::posts(pair.followee)).head;
    rows.set_follow(pair, Some(Follow { since, mark, manner }));
}

/// Tells the readers of events of each direction that changed.
fn tell(rows: &mut Rows, pair: Pair, before: Standing, after: Standing, now: UnixMs) {
    for (pair, before, after) in [(pair, before.mine, after.mine), (pair.reversed(), before.theirs, after.theirs)] {
        if before != after {
            rows.event(now, &Event::relation(pair, after));
        }
    }
}

/// Raises the badge of a new follower. That a badge is full, or that there are too many, must not keep anybody from following.
fn raise(rows: &mut Rows, user: UserId, badge: &Name) {
    let mut mark = rows.mark(user, Kind::Counter, badge);
    let room = mark.head() > 0 || rows.user(user).counters < crate::badges::MAX_BADGES;
    if room && mark.advance(1).is_ok() {
        rows.set_mark(user, Kind::Counter, badge, mark);
    }
}

/// A follow that is there stays as it is, also where the step names another manner. A step of a pair with writes that were accepted and are not done comes after those: it is
/// left for later, with all steps of the pair that follow it.
pub(super) fn import(rows: &mut Rows, steps: &[Step], limit: Option<i64>, events: bool, now: UnixMs) -> Imported {
    let mut done = Imported::default();
    for (at, step) in steps.iter().enumerate() {
        if rows.has_pending(step.pair) {
            done.waiting.push(at);
            continue;
        }
        let before = rows.standing(step.pair);
        match (before.mine.manner(), step.follow) {
            (None, Some(_)) if before.mine == Stance::Blocks || before.theirs == Stance::Blocks => done.blocked += 1,
            (None, Some(_)) if limit.is_some_and(|limit| rows.user(step.pair.follower).following >= limit) => done.over_limit += 1,
            (None, Some((since, manner))) => {
                begin(rows, step.pair, manner, since);
                done.followed += 1;
            }
            (Some(_), None) => {
                rows.set_follow(step.pair, None);
                done.unfollowed += 1;
            }
            (Some(_), Some(_)) | (None, None) => done.known += 1,
        }
        if events {
            let after = rows.standing(step.pair);
            tell(rows, step.pair, before, after, now);
        }
    }
    done
}
