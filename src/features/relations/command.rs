//! Acts and imports over the rows of a batch.

use serde::{Deserialize, Serialize};

use super::badge::{self, Badges};
use super::requests;
use super::state::{Act, FollowOptions, PairState, Refusal, Relation, Room, step};
use super::{ChangedRelationOut, Follow, FollowStep, ImportedFollows, Pair, Raised, RelationOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;
use crate::engine::events::{Event, RelationEventOut};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::StreamKey;
use crate::engine::pairs::need_named;
use crate::features::inbox::rows::InboxRows;
use crate::features::inbox::set_direct_silence;
use crate::features::notifications::rows::NotificationRows;
use crate::features::operations::Preceding;
use crate::features::push;
use crate::features::relations::rows::RelationRows;
use crate::features::relations::rows::need_approval;
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
    /// How many one may follow, or have asked to.
    pub max_following: i64,
    /// How many one may block.
    pub max_blocks: i64,
    /// The badges of the followee that a new follower and a new request raise.
    pub badges: Badges,
}

/// A write to relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelationCommand {
    /// One user does something about another.
    Do {
        action: PairAction,
        /// Which operations it comes after.
        preceding: Preceding,
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
        /// The badges from which the end of a follow or request takes back what it had raised.
        badges: Badges,
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
        need_named(needs, there.follower);
        need_named(needs, there.followee);
        match self.act {
            Act::Follow { .. } => {
                need_follow(needs, there);
                need_approval(needs, there.followee);
                badge::need(needs, there, &terms.badges);
            }
            Act::Unfollow => {
                need_follow(needs, there);
                badge::need(needs, there, &terms.badges);
            }
            Act::RemoveFollower | Act::AcceptRequest | Act::RefuseRequest => {
                if self.act == Act::AcceptRequest {
                    // The answer has the revision of the user who accepts.
                    needs.user_if_changed(there.follower);
                }
                need_follow(needs, back);
                badge::need(needs, back, &terms.badges);
            }
            Act::Block => {
                need_block(needs, there);
                badge::need(needs, there, &terms.badges);
                badge::need(needs, back, &terms.badges);
                needs.of::<InboxRows>().directs.insert((there.follower, there.followee));
            }
            Act::Unblock => {
                need_follow(needs, there);
                needs.of::<InboxRows>().directs.insert((there.follower, there.followee));
            }
        }
    }
}

impl PairAction {
    /// The users whom it names.
    #[must_use]
    pub fn names(&self) -> Names {
        vec![in_path(self.pair.follower), in_path(self.pair.followee)]
    }
}

impl lanes::Command for RelationCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Do { action, terms, .. } => action.needs(terms, needs),
            Self::Import { steps, badges, .. } => {
                for step in steps {
                    need_follow(needs, step.pair);
                    need_named(needs, step.pair.followee);
                    // A follow may end a request.
                    let follower = badges.follower.clone().filter(|_| step.follow.is_none());
                    badge::need(needs, step.pair, &Badges { follower, ..badges.clone() });
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

    fn names(&self) -> Names {
        match self {
            Self::Do { action, .. } => action.names(),
            // Its lines are passed over one by one.
            Self::Import { .. } => Vec::new(),
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
            Self::Do { action, preceding, .. } if rows.get::<RelationRows>().has_pending(action.pair, *preceding) => Err(pending()),
            Self::Do { action, terms, .. } => apply_action(rows, action, terms, now),
            Self::Import { steps, limit, badges, events, .. } => {
                let bounds = Bounds { limit: *limit, badges };
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
    let before = rows.get::<RelationRows>().pair_state(pair);
    let approves = rows.get::<RelationRows>().approves(pair.followee);
    let after = step(before, act, room(rows, pair, terms), approves).map_err(|refusal| refused(refusal, pair, terms))?;
    set(rows, pair, after.mine, &terms.badges, now);
    set(rows, pair.reversed(), after.theirs, &terms.badges, now);
    tell(rows, pair, before, after, now);
    match act {
        Act::Follow { .. } | Act::AcceptRequest | Act::Block => {
            let muting = rows.get::<RelationRows>().mutes(pair, now);
            let relation = RelationOut::new(pair.followee, after, muting);
            Ok(Answer::ok(ChangedRelationOut { relation, revision: rows.revision(pair.follower) }))
        }
        Act::Unfollow | Act::RemoveFollower | Act::RefuseRequest | Act::Unblock => Ok(Answer::no_content()),
    }
}

fn room(rows: &Rows, Pair { follower: me, followee: other }: Pair, terms: &Terms) -> Room {
    let (following, own) = (|user| rows.user(user).following, rows.get::<RelationRows>().own(me));
    Room {
        follow: following(me) + own.requests < terms.max_following,
        accepted: following(me) < terms.max_following,
        accepted_of_other: following(other) < terms.max_following,
        block: own.blocked < terms.max_blocks,
    }
}

fn refused(refusal: Refusal, pair: Pair, terms: &Terms) -> Problem {
    let me = pair.follower;
    match refusal {
        Refusal::Blocked => Problem::new(Code::Blocked, "One of these users blocks the other."),
        Refusal::NoRequest => Problem::new(Code::NotFound, "This user has not asked to follow."),
        Refusal::FollowingLimit => over_limit(me, terms.max_following),
        Refusal::FollowingLimitOfOther => over_limit(pair.followee, terms.max_following),
        Refusal::BlockLimit => {
            Problem::new(Code::TooMany, format!("User {me} has reached the limit of {} blocked users.", terms.max_blocks))
        }
    }
}

fn over_limit(follower: UserId, limit: i64) -> Problem {
    Problem::new(Code::FollowingLimit, format!("User {follower} has reached the limit of {limit} followed users."))
}

/// Brings the rows of one direction to what the rule says.
fn set(rows: &mut Rows, pair: Pair, relation: Relation, badges: &Badges, now: UnixMs) {
    let blocks = relation == Relation::Blocks;
    if blocks != rows.get::<RelationRows>().blocks(pair) {
        set_block(rows, pair, blocks.then_some(now));
        set_silence(rows, pair, now, |silence| silence.blocked = blocks);
    }
    requests::set(rows, pair, relation.requested(), badges.request.as_ref(), now);
    match (relation.options(), rows.get::<RelationRows>().follow(pair)) {
        (None, Some(follow)) => end(rows, pair, &follow, badges),
        (Some(options), Some(follow)) => {
            // Others would learn from the time since when there was a secret follow.
            let is_made_public = follow.options.secret && !options.secret;
            let since = if is_made_public { now } else { follow.since };
            set_follow(rows, pair, Some(Follow { options, since, ..follow }));
        }
        (Some(options), None) => {
            let raised = badges.follower.as_ref().and_then(|badge| badge::raise(rows, pair.followee, badge));
            begin(rows, pair, options, now, raised);
        }
        (None, None) => {}
    }
}

/// What the first of a pair is shown of the second is silenced otherwise from now on: in the rest of the
/// batch too, whatever it loaded. The level of their chat may end by itself now, which a block had
/// hidden.
pub(super) fn set_silence(rows: &mut Rows, pair: Pair, now: UnixMs, change: impl Fn(&mut Silence)) {
    set_direct_silence(rows, pair.follower, pair.followee, &change);
    rows.get_mut::<NotificationRows>().set_silence(pair.follower, pair.followee, &change);
    let (_, until) = rows.get::<InboxRows>().level(pair.follower, pair.followee, now);
    push::ends_at(rows, pair.follower, until);
}

fn begin(rows: &mut Rows, pair: Pair, options: FollowOptions, since: UnixMs, raised: Option<Raised>) {
    let mark = rows.head(&StreamKey::posts(pair.followee)).head;
    set_follow(rows, pair, Some(Follow { since, mark, options, raised }));
}

pub(super) fn end(rows: &mut Rows, pair: Pair, follow: &Follow, badges: &Badges) {
    set_follow(rows, pair, None);
    badge::take_back(rows, pair.followee, follow.raised.as_ref(), badges.follower.as_ref());
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
    let options = relation.options().or(relation.requested());
    Event::Relation(RelationEventOut {
        user_id: pair.follower,
        target_id: pair.followee,
        following: relation.options().is_some(),
        requested: relation.requested().is_some(),
        secret: options.is_some_and(|options| options.secret),
        special: options.is_some_and(|options| options.special),
        blocking: relation == Relation::Blocks,
    })
}

/// To what an import is held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// How many each follower may follow, or have asked to.
    pub(super) limit: Option<i64>,
    /// The badges from which the end of a follow or request takes back.
    pub(super) badges: &'a Badges,
}

/// A follow that is there stays as it is, also where the step names other options, and so does a
/// request, unless the step accepts it: nobody is asked about an imported follow. A step of a pair
/// with writes that were accepted and are not done comes after those: it is left for later, with
/// all steps of the pair that follow it.
pub(super) fn import(rows: &mut Rows, steps: &[FollowStep], bounds: Bounds<'_>, events: bool, now: UnixMs) -> ImportedFollows {
    let mut done = ImportedFollows::default();
    for (at, step) in steps.iter().enumerate() {
        if rows.get::<RelationRows>().has_pending(step.pair, Preceding::All) {
            done.waiting.push(at);
            continue;
        }
        if rows.is_erased(step.pair.follower) || rows.is_erased(step.pair.followee) {
            done.blocked += 1;
            continue;
        }
        let before = rows.get::<RelationRows>().pair_state(step.pair);
        import_step(rows, *step, before, bounds, &mut done);
        if events {
            let after = rows.get::<RelationRows>().pair_state(step.pair);
            tell(rows, step.pair, before, after, now);
        }
    }
    done
}

fn import_step(rows: &mut Rows, step: FollowStep, before: PairState, bounds: Bounds<'_>, done: &mut ImportedFollows) {
    let FollowStep { pair, follow, requested } = step;
    let end_request = |rows: &mut Rows| requests::end(rows, pair, bounds.badges.request.as_ref());
    match (before.mine, follow) {
        (Relation::Blocks, Some(_)) => done.blocked += 1,
        (Relation::Nothing, Some(_)) if before.theirs == Relation::Blocks => done.blocked += 1,
        (Relation::Follows(_), Some(_)) | (Relation::Nothing | Relation::Blocks, None) => done.known += 1,
        (Relation::Requests(_), Some(_)) if requested => done.known += 1,
        (Relation::Nothing | Relation::Requests(_), Some((since, options))) => {
            let me = pair.follower;
            let others = if before.mine == Relation::Nothing { rows.get::<RelationRows>().own(me).requests } else { 0 };
            if bounds.limit.is_some_and(|limit| rows.user(me).following + others >= limit) {
                done.over_limit += 1;
                return;
            }
            end_request(rows);
            if requested {
                requests::begin(rows, pair, options, since, None);
            } else {
                begin(rows, pair, options, since, None);
            }
            done.followed += 1;
        }
        (Relation::Follows(_), None) => {
            if let Some(follow) = rows.get::<RelationRows>().follow(pair) {
                end(rows, pair, &follow, bounds.badges);
            }
            done.unfollowed += 1;
        }
        (Relation::Requests(_), None) => {
            end_request(rows);
            done.unfollowed += 1;
        }
    }
}
