//! Acts and imports over the rows of a batch.

use serde::{Deserialize, Serialize};

use super::state::{Act, FollowOptions, PairState, Refusal, Relation, Room, step};
use super::{ChangedRelationOut, Follow, FollowStep, ImportedFollows, Pair, Raised, RelationOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{Name, UserId};
use crate::engine::events::{Event, RelationEventOut};
use crate::engine::lanes::{self, Answer, Needs, Rows};
use crate::engine::marks::{Kind, Refused, StreamKey};
use crate::features::inbox::rows::InboxRows;
use crate::features::inbox::set_direct_silence;
use crate::features::notifications::rows::NotificationRows;
use crate::features::relations::rows::RelationRows;
use crate::features::relations::rows::need_block;
use crate::features::relations::rows::need_follow;
use crate::features::relations::rows::set_block;
use crate::features::relations::rows::set_follow;
use crate::features::silence::Silence;

/// One user does something about another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PairAction {
    /// Who, and about whom.
    pub pair: Pair,
    pub act: Act,
}

/// What acts are held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// How many one may follow.
    pub max_following: i64,
    /// How many one may block.
    pub max_blocks: i64,
    /// The badge of the followee that a new follower raises.
    pub badge: Option<Name>,
}

/// A write to relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationCommand {
    /// One user does something about another.
    Do {
        action: PairAction,
        /// To what it is held.
        terms: Terms,
    },
    /// Many steps, in order; one that the limit or a block refuses is passed over, and one that
    /// must wait for what was accepted of its pair before is told. No badge is raised: what is
    /// imported is no news.
    Import {
        /// The steps.
        steps: Vec<FollowStep>,
        /// How many each follower may follow, where that is to be kept.
        limit: Option<i64>,
        /// The badge from which an unfollow takes back what the follow had raised.
        badge: Option<Name>,
        /// Whether readers of events are told.
        events: bool,
        /// Which lane.
        lane_key: i64,
    },
}

impl PairAction {
    /// What applying it looks at or changes.
    pub fn needs(&self, terms: &Terms, needs: &mut Needs) {
        let (there, back) = (self.pair, self.pair.reversed());
        match self.act {
            Act::Follow { .. } | Act::Unfollow => {
                need_follow(needs, there);
                badge_needs(there, terms.badge.as_ref(), needs);
            }
            Act::RemoveFollower => {
                need_follow(needs, back);
                badge_needs(back, terms.badge.as_ref(), needs);
            }
            Act::Block => {
                need_block(needs, there);
                badge_needs(there, terms.badge.as_ref(), needs);
                badge_needs(back, terms.badge.as_ref(), needs);
                needs.of::<InboxRows>().directs.insert((there.follower, there.followee));
            }
            Act::Unblock => {
                need_follow(needs, there);
                needs.of::<InboxRows>().directs.insert((there.follower, there.followee));
            }
        }
    }
}

/// What beginning or ending a follow looks at beside the follow.
fn badge_needs(pair: Pair, badge: Option<&Name>, needs: &mut Needs) {
    if let Some(badge) = badge {
        needs.mark(pair.followee, Kind::Counter, badge);
    }
}

impl lanes::Command for RelationCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Do { action, terms } => action.needs(terms, needs),
            Self::Import { steps, badge, .. } => {
                for step in steps {
                    need_follow(needs, step.pair);
                    if step.follow.is_none() {
                        badge_needs(step.pair, badge.as_ref(), needs);
                    }
                }
            }
        }
    }

    // By the lock of the pair: no two lanes of a node wait for each other's.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Do { action, .. } => action.pair.pair_lock(),
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
            Self::Do { action, .. } if rows.get::<RelationRows>().has_pending(action.pair) => Err(pending()),
            Self::Do { action, terms } => apply_action(rows, action, terms, now),
            Self::Import { steps, limit, badge, events, .. } => {
                let bounds = Bounds { limit: *limit, badge: badge.as_ref() };
                Ok(Answer::ok(import(rows, steps, bounds, *events, now)))
            }
        }
    }
}

/// Operations that were accepted earlier come first; anyone who submitted this has them done and
/// tries again.
pub(super) fn pending() -> Problem {
    Problem::new(Code::OperationsPending, "Earlier accepted writes of these two users are still pending. Try again shortly.")
}

/// Applies an action: the rule over the pair, then the rows that follow from it.
///
/// # Errors
/// The problem that the caller gets.
pub fn apply_action(rows: &mut Rows, action: &PairAction, terms: &Terms, now: UnixMs) -> Result<Answer, Problem> {
    let PairAction { pair, act } = *action;
    let me = pair.follower;
    let before = rows.get::<RelationRows>().pair_state(pair);
    let room = Room {
        follow: rows.user(me).following < terms.max_following,
        block: rows.get::<RelationRows>().own(me).blocked < terms.max_blocks,
    };
    let after = step(before, act, room).map_err(|refusal| refused(refusal, me, terms))?;
    set(rows, pair, after.mine, terms.badge.as_ref(), now);
    set(rows, pair.reversed(), after.theirs, terms.badge.as_ref(), now);
    tell(rows, pair, before, after, now);
    match act {
        Act::Follow { .. } | Act::Block => {
            let muting = rows.get::<RelationRows>().mutes(pair, now);
            let relation = RelationOut::new(pair.followee, after, muting);
            Ok(Answer::ok(ChangedRelationOut { relation, revision: rows.revision(me) }))
        }
        Act::Unfollow | Act::RemoveFollower | Act::Unblock => Ok(Answer::no_content()),
    }
}

fn refused(refusal: Refusal, me: UserId, terms: &Terms) -> Problem {
    match refusal {
        Refusal::Blocked => Problem::new(Code::Blocked, "One of these users blocks the other."),
        Refusal::FollowingLimit => over_limit(me, terms.max_following),
        Refusal::BlockLimit => {
            Problem::new(Code::TooMany, format!("User {me} has reached the limit of {} blocked users.", terms.max_blocks))
        }
    }
}

fn over_limit(follower: UserId, limit: i64) -> Problem {
    Problem::new(Code::FollowingLimit, format!("User {follower} has reached the limit of {limit} followed users."))
}

/// Brings the rows of one direction to what the rule says.
fn set(rows: &mut Rows, pair: Pair, relation: Relation, badge: Option<&Name>, now: UnixMs) {
    let blocks = relation == Relation::Blocks;
    if blocks != rows.get::<RelationRows>().blocks(pair) {
        set_block(rows, pair, blocks.then_some(now));
        set_silence(rows, pair, |silence| silence.blocked = blocks);
    }
    match (relation.options(), rows.get::<RelationRows>().follow(pair)) {
        (None, Some(follow)) => end(rows, pair, &follow, badge),
        (Some(options), Some(follow)) => {
            // Others would learn from the time since when there was a secret follow.
            let is_made_public = follow.options.secret && !options.secret;
            let since = if is_made_public { now } else { follow.since };
            set_follow(rows, pair, Some(Follow { options, since, ..follow }));
        }
        (Some(options), None) => {
            let raised = badge.and_then(|badge| raise(rows, pair.followee, badge));
            begin(rows, pair, options, now, raised);
        }
        (None, None) => {}
    }
}

/// What the first of a pair is shown of the second is silenced otherwise from now on: in the rest of the
/// batch too, whatever it loaded.
pub(super) fn set_silence(rows: &mut Rows, pair: Pair, change: impl Fn(&mut Silence)) {
    set_direct_silence(rows, pair.follower, pair.followee, &change);
    rows.get_mut::<NotificationRows>().set_silence(pair.follower, pair.followee, &change);
}

fn begin(rows: &mut Rows, pair: Pair, options: FollowOptions, since: UnixMs, raised: Option<Raised>) {
    let mark = rows.head(&StreamKey::posts(pair.followee)).head;
    set_follow(rows, pair, Some(Follow { since, mark, options, raised }));
}

fn end(rows: &mut Rows, pair: Pair, follow: &Follow, badge: Option<&Name>) {
    set_follow(rows, pair, None);
    if let Some(raised) = follow.raised.as_ref().filter(|raised| Some(&raised.badge) == badge) {
        take_back(rows, pair.followee, raised);
    }
}

/// Tells the readers of events of each direction that changed.
fn tell(rows: &mut Rows, pair: Pair, before: PairState, after: PairState, now: UnixMs) {
    for (pair, before, after) in [(pair, before.mine, after.mine), (pair.reversed(), before.theirs, after.theirs)] {
        if before != after {
            rows.event(now, &event(pair, after));
        }
    }
}

/// What the first of a pair is to the second now.
fn event(pair: Pair, relation: Relation) -> Event {
    let options = relation.options();
    Event::Relation(RelationEventOut {
        user_id: pair.follower,
        target_id: pair.followee,
        following: options.is_some(),
        secret: options.is_some_and(|options| options.secret),
        special: options.is_some_and(|options| options.special),
        blocking: relation == Relation::Blocks,
    })
}

/// Raises the badge of a new follower. That a badge is full, or that there are too many, must not
/// keep anybody from following.
fn raise(rows: &mut Rows, user: UserId, badge: &Name) -> Option<Raised> {
    let mut mark = rows.mark(user, Kind::Counter, badge);
    let room = mark.head() > 0 || rows.counters(user) < crate::features::badges::MAX_BADGES;
    if !room || mark.advance(1).is_err() {
        return None;
    }
    let at = mark.head();
    rows.set_mark(user, Kind::Counter, badge, mark);
    Some(Raised { badge: badge.clone(), at })
}

/// Takes back what a follow had raised, if it is unread. Where the badge cannot remember one more
/// gap, the oldest unread one goes instead, which takes no room: the number is right, and nobody is
/// kept from unfollowing.
fn take_back(rows: &mut Rows, user: UserId, raised: &Raised) {
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

/// To what an import is held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds<'a> {
    /// How many each follower may follow.
    pub(super) limit: Option<i64>,
    /// The badge from which an unfollow takes back.
    pub(super) badge: Option<&'a Name>,
}

/// A follow that is there stays as it is, also where the step names other options. A step of a pair
/// with writes that were accepted and are not done comes after those: it is left for later, with
/// all steps of the pair that follow it.
pub(super) fn import(rows: &mut Rows, steps: &[FollowStep], bounds: Bounds<'_>, events: bool, now: UnixMs) -> ImportedFollows {
    let mut done = ImportedFollows::default();
    for (at, step) in steps.iter().enumerate() {
        if rows.get::<RelationRows>().has_pending(step.pair) {
            done.waiting.push(at);
            continue;
        }
        let before = rows.get::<RelationRows>().pair_state(step.pair);
        match (before.mine.options(), step.follow) {
            (None, Some(_)) if before.mine == Relation::Blocks || before.theirs == Relation::Blocks => done.blocked += 1,
            (None, Some(_)) if bounds.limit.is_some_and(|limit| rows.user(step.pair.follower).following >= limit) => done.over_limit += 1,
            (None, Some((since, options))) => {
                begin(rows, step.pair, options, since, None);
                done.followed += 1;
            }
            (Some(_), None) => {
                if let Some(follow) = rows.get::<RelationRows>().follow(step.pair) {
                    end(rows, step.pair, &follow, bounds.badge);
                }
                done.unfollowed += 1;
            }
            (Some(_), Some(_)) | (None, None) => done.known += 1,
        }
        if events {
            let after = rows.get::<RelationRows>().pair_state(step.pair);
            tell(rows, step.pair, before, after, now);
        }
    }
    done
}
