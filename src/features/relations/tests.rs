//! The rule over the rows of a batch, against a naive model: what each of a few users is to each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::approvals::AcceptOpen;
use super::badge::Badges;
use super::command::{Bounds, import};
use super::state::{Act, Relation, Room, step};
use super::*;
use crate::base::error::{Code, Problem};
use crate::engine::lanes::{Command as _, Rows};
use crate::engine::marks::{Kind, MAX_RETRACTED_RUNS, Mark};
use crate::engine::pairs::STRIPES;
use crate::features::operations::Preceding;
use crate::features::relations::rows::RelationRows;
use crate::features::relations::rows::set_block;

const USERS: i64 = 5;
const LIMIT: i64 = 3;
const BLOCK_LIMIT: i64 = 2;

fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

fn pair(follower: i64, followee: i64) -> Pair {
    Pair { follower: user(follower), followee: user(followee) }
}

fn terms() -> Terms {
    Terms { max_following: LIMIT, max_blocks: BLOCK_LIMIT, badges: badges() }
}

fn badges() -> Badges {
    Badges { follower: Some("fans".parse().unwrap()), request: Some("asks".parse().unwrap()) }
}

#[derive(Debug, Clone)]
enum Op {
    Do(Pair, Act),
    Import(Vec<(Pair, Option<FollowOptions>, bool)>, bool),
    /// A user switches whether follows are approved. Off: open requests are accepted.
    Switch(UserId),
    /// A user reads the badges of new followers and requests.
    ReadBadges(UserId),
}

fn any_pair() -> impl Strategy<Value = Pair> {
    (1..=USERS, 1..USERS).prop_map(|(follower, step)| pair(follower, (follower - 1 + step) % USERS + 1))
}

fn options() -> impl Strategy<Value = FollowOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(secret, special)| FollowOptions { secret, special })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (any::<Option<bool>>(), any::<Option<bool>>()).prop_map(|(secret, special)| Act::Follow { secret, special }),
        2 => Just(Act::Unfollow),
        1 => Just(Act::RemoveFollower),
        2 => Just(Act::AcceptRequest),
        1 => Just(Act::RefuseRequest),
        1 => Just(Act::Block),
        1 => Just(Act::Unblock),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (any_pair(), act()).prop_map(|(pair, act)| Op::Do(pair, act)),
        2 => (prop::collection::vec((any_pair(), prop::option::weighted(0.7, options()), any::<bool>()), 0..6), any::<bool>()).prop_map(|(steps, limit)| Op::Import(steps, limit)),
        1 => (1..=USERS).prop_map(|id| Op::Switch(user(id))),
        2 => (1..=USERS).prop_map(|id| Op::ReadBadges(user(id))),
    ]
}

impl Op {
    fn apply(&self, rows: &mut Rows) -> Result<(), Problem> {
        let command = match self {
            Self::Do(pair, act) => {
                RelationCommand::Do { action: PairAction { pair: *pair, act: *act }, preceding: Preceding::All, terms: terms() }
            }
            Self::Import(steps, limited) => RelationCommand::Import {
                steps: steps
                    .iter()
                    .map(|(pair, options, requested)| FollowStep {
                        pair: *pair,
                        follow: options.map(|options| (UnixMs(5), options)),
                        requested: *requested,
                    })
                    .collect(),
                limit: limited.then_some(LIMIT),
                badges: badges(),
                events: false,
                lane_key: 1,
            },
            Self::Switch(user) => {
                let set = rows.get_mut::<RelationRows>();
                let approves = set.approves(*user);
                set.set_approves(*user, !approves);
                if !approves {
                    return Ok(());
                }
                let open = set.requests.rows.iter().filter(|(pair, _)| pair.followee == *user);
                let fans = open.filter_map(|(pair, (_, now))| Some((pair.follower, now.as_ref()?.since))).collect();
                return AcceptOpen { user: *user, since: UnixMs(1), fans, terms: terms() }.apply(rows, UnixMs(7)).map(drop);
            }
            Self::ReadBadges(user) => {
                for badge in [badges().follower, badges().request].into_iter().flatten() {
                    let mut mark = rows.mark(*user, Kind::Counter, &badge);
                    mark.read(None);
                    rows.set_mark(*user, Kind::Counter, &badge, mark);
                }
                return Ok(());
            }
        };
        command.apply(rows, UnixMs(7)).map(drop)
    }
}

fn badge_of(rows: &Rows, user: UserId) -> Mark {
    rows.mark(user, Kind::Counter, &badges().follower.unwrap())
}

fn request_badge_of(rows: &Rows, user: UserId) -> Mark {
    rows.mark(user, Kind::Counter, &badges().request.unwrap())
}

#[derive(Debug, Default, Clone)]
struct Naive {
    relations: BTreeMap<Pair, Relation>,
    /// Who approves follows.
    approving: BTreeSet<UserId>,
    /// Whose follows, made since the followee read the badge, are still there.
    fans: BTreeSet<Pair>,
    /// The same of requests.
    asks: BTreeSet<Pair>,
}

impl Naive {
    fn relation(&self, pair: Pair) -> Relation {
        self.relations.get(&pair).copied().unwrap_or_default()
    }

    fn count(&self, is: impl Fn(Pair, Relation) -> bool) -> i64 {
        i64::try_from(self.relations.iter().filter(|(pair, relation)| is(**pair, **relation)).count()).unwrap()
    }

    fn followed_by(&self, me: UserId) -> i64 {
        self.count(|pair, relation| pair.follower == me && relation.options().is_some())
    }

    fn asked_by(&self, me: UserId) -> i64 {
        self.count(|pair, relation| pair.follower == me && relation.requested().is_some())
    }

    /// One direction is this from now on, which is news to the followee.
    fn set(&mut self, pair: Pair, after: Relation) {
        let before = self.relations.insert(pair, after).unwrap_or_default();
        if before.options().is_none() && after.options().is_some() {
            self.fans.insert(pair);
        }
        if before.requested().is_none() && after.requested().is_some() {
            self.asks.insert(pair);
        }
    }

    fn import(&mut self, (pair, options, requested): (Pair, Option<FollowOptions>, bool), limited: bool) {
        let blocked = [pair, pair.reversed()].iter().any(|pair| self.relation(*pair) == Relation::Blocks);
        let me = pair.follower;
        let full = |others| limited && self.followed_by(me) + others >= LIMIT;
        let new = |options| if requested { Relation::Requests(options) } else { Relation::Follows(options) };
        match (self.relation(pair), options) {
            (Relation::Nothing, Some(options)) if !blocked && !full(self.asked_by(me)) => _ = self.relations.insert(pair, new(options)),
            (Relation::Requests(_), Some(options)) if !requested && !full(0) => _ = self.relations.insert(pair, new(options)),
            (Relation::Follows(_) | Relation::Requests(_), None) => _ = self.relations.remove(&pair),
            _ => {}
        }
    }

    /// Returns whether the rule takes it.
    fn apply(&mut self, op: &Op) -> bool {
        match op {
            Op::Do(pair, act) => {
                let before = PairState { mine: self.relation(*pair), theirs: self.relation(pair.reversed()) };
                let me = pair.follower;
                let room = Room {
                    follow: self.followed_by(me) + self.asked_by(me) < LIMIT,
                    accepted: self.followed_by(me) < LIMIT,
                    accepted_of_other: self.followed_by(pair.followee) < LIMIT,
                    block: self.count(|pair, relation| pair.follower == me && relation == Relation::Blocks) < BLOCK_LIMIT,
                };
                let approves = self.approving.contains(&pair.followee);
                let Ok(after) = step(before, *act, room, approves) else { return false };
                self.set(*pair, after.mine);
                self.set(pair.reversed(), after.theirs);
            }
            Op::Import(steps, limited) => {
                for step in steps {
                    self.import(*step, *limited);
                    self.forget_ended();
                }
            }
            Op::Switch(user) if self.approving.remove(user) => {
                for fan in (1..=USERS).map(self::user) {
                    let pair = Pair { follower: fan, followee: *user };
                    let Some(options) = self.relation(pair).requested() else { continue };
                    let has_room = self.followed_by(fan) < LIMIT;
                    self.set(pair, if has_room { Relation::Follows(options) } else { Relation::Nothing });
                }
            }
            Op::Switch(user) => _ = self.approving.insert(*user),
            Op::ReadBadges(user) => {
                self.fans.retain(|pair| pair.followee != *user);
                self.asks.retain(|pair| pair.followee != *user);
            }
        }
        self.forget_ended();
        true
    }

    /// Who follows no longer is no new follower, and what was answered or taken back no new request.
    fn forget_ended(&mut self) {
        let relations = &self.relations;
        self.fans.retain(|pair| relations.get(pair).is_some_and(|relation| relation.options().is_some()));
        self.asks.retain(|pair| relations.get(pair).is_some_and(|relation| relation.requested().is_some()));
    }

    fn mine(&self, me: UserId) -> Vec<(Pair, Relation)> {
        self.relations
            .iter()
            .filter(|(pair, relation)| pair.follower == me && **relation != Relation::Nothing)
            .map(|(pair, relation)| (*pair, *relation))
            .collect()
    }
}

proptest! {
    #[test]
    fn counts_are_the_lengths_of_the_lists_whatever_happens(ops in prop::collection::vec(op(), 1..60)) {
        let (mut rows, mut naive) = (Rows::new(crate::app::ROW_SETS), Naive::default());
        for op in &ops {
            let before: Vec<_> = (1..=USERS).map(|id| rows.revision(user(id))).collect();
            let known = naive.clone();
            let taken = naive.apply(op);
            match op.apply(&mut rows) {
                Ok(_) => { prop_assert!(taken, "{:?}", op); rows.settle(); }
                Err(problem) => {
                    prop_assert!(!taken);
                    prop_assert!([Code::FollowingLimit, Code::Blocked, Code::TooMany, Code::NotFound].contains(&problem.code));
                    rows.undo();
                }
            }
            for id in 1..=USERS {
                let me = user(id);
                prop_assert_eq!(rows.user(me).following, naive.followed_by(me));
                let mine = |is: fn(Relation) -> bool| naive.count(|pair, relation| pair.follower == me && is(relation));
                let own = rows.get::<RelationRows>().own(me);
                prop_assert_eq!(
                    (own.requests, own.secret, own.special, own.blocked),
                    (
                        naive.asked_by(me),
                        mine(|relation| relation.options().is_some_and(|options| options.secret)),
                        mine(|relation| relation.options().is_some_and(|options| options.special)),
                        mine(|relation| relation == Relation::Blocks),
                    )
                );
                let fans = Fans {
                    followers: naive.count(|pair, relation| pair.followee == me && relation.options().is_some()),
                    mutuals: naive.count(|pair, relation| pair.follower == me && relation.is_public() && naive.relation(pair.reversed()).is_public()),
                    requests: naive.count(|pair, relation| pair.followee == me && relation.requested().is_some()),
                };
                prop_assert_eq!(rows.get::<RelationRows>().fans(me), fans);
                for (news, badge) in [(&naive.fans, badge_of(&rows, me)), (&naive.asks, request_badge_of(&rows, me))] {
                    let new = news.iter().filter(|pair| pair.followee == me).count();
                    prop_assert_eq!(badge.unread(), i64::try_from(new).unwrap(), "{:?}", badge);
                }
                if known.mine(me) != naive.mine(me) {
                    prop_assert!(rows.revision(me) > before[usize::try_from(id - 1).unwrap()], "one's own rows changed");
                    prop_assert_eq!(own.versions.relations(), rows.revision(me), "and the lists are of another version");
                }
                for other in (1..=USERS).filter(|other| *other != id) {
                    prop_assert_eq!(rows.get::<RelationRows>().pair_state(pair(id, other)).mine, naive.relation(pair(id, other)));
                    prop_assert!(!(rows.get::<RelationRows>().blocks(pair(id, other)) && rows.get::<RelationRows>().follow(pair(other, id)).is_some()), "a block leaves no follow behind");
                }
            }
        }
    }
}

#[test]
fn a_badge_that_cannot_remember_one_more_gap_keeps_nobody_from_unfollowing() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    let fans = i64::try_from(MAX_RETRACTED_RUNS).unwrap() * 2 + 4;
    let terms = Terms { max_following: 1, ..terms() };
    let mut act = |follower, act| {
        let action = PairAction { pair: pair(follower, 1), act };
        RelationCommand::Do { action, preceding: Preceding::All, terms: terms.clone() }.apply(&mut rows, UnixMs(7)).unwrap();
        rows.settle();
        badge_of(&rows, user(1)).unread()
    };
    for fan in 2..2 + fans {
        assert_eq!(act(fan, Act::Follow { secret: None, special: None }), fan - 1);
    }
    for (gone, fan) in (2..2 + fans).skip(1).step_by(2).enumerate() {
        assert_eq!(act(fan, Act::Unfollow), fans - i64::try_from(gone).unwrap() - 1, "{fan}");
    }
}

#[test]
fn both_directions_of_a_pair_have_one_lock_and_pairs_spread_over_all() {
    let mut load = vec![0; usize::try_from(STRIPES).unwrap()];
    for follower in 1..=64 {
        for followee in 65..=320 {
            let pair_lock = pair(follower, followee).pair_lock();
            assert_eq!(pair_lock, pair(followee, follower).pair_lock());
            load[usize::try_from(pair_lock).unwrap()] += 1;
        }
    }
    assert!(load.iter().all(|pairs| (1..=48).contains(pairs)), "16 pairs on each: {:?}", load.iter().max());
    // For ever: nodes of two versions must lock the same.
    assert_eq!([pair(1, 2).pair_lock(), pair(42, 7).pair_lock(), pair(i64::MAX, 1).pair_lock()], [747, 736, 955]);
}

#[test]
fn an_import_says_what_it_did() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    let secret = FollowOptions { secret: true, special: false };
    let step = |follower, followee, since: Option<i64>| FollowStep {
        pair: pair(follower, followee),
        follow: since.map(|since| (UnixMs(since), if since == 9 { secret } else { FollowOptions::default() })),
        requested: false,
    };
    set_block(&mut rows, pair(5, 1), Some(UnixMs(1)));
    let steps = vec![
        step(1, 2, Some(5)),
        step(1, 2, Some(6)),
        step(1, 3, None),
        step(1, 3, Some(7)),
        step(1, 4, Some(8)),
        step(1, 2, None),
        step(1, 5, Some(1)),
        step(1, 4, Some(9)),
    ];
    let done = import(&mut rows, &steps, Bounds { limit: Some(2), badges: &Badges::default() }, true, UnixMs(1));
    assert_eq!(done, ImportedFollows { followed: 3, unfollowed: 1, known: 2, over_limit: 1, blocked: 1, ..ImportedFollows::default() });
    assert_eq!(
        rows.get::<RelationRows>().follow(pair(1, 3)),
        Some(Follow { since: UnixMs(7), mark: 0, options: FollowOptions::default(), raised: None }),
        "the first time stays"
    );
    assert_eq!(rows.get::<RelationRows>().follow(pair(1, 4)), Some(Follow { since: UnixMs(9), mark: 0, options: secret, raised: None }));
    assert!(rows.has_events());
}

#[test]
fn an_import_does_nothing_before_what_was_accepted_of_a_pair() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    let step = |follower, followee, since: Option<i64>| FollowStep {
        pair: pair(follower, followee),
        follow: since.map(|since| (UnixMs(since), FollowOptions::default())),
        requested: false,
    };
    rows.get_mut::<RelationRows>().operations.insert_pending(pair(1, 2), 7, 7);
    let steps = [step(1, 3, Some(1)), step(1, 2, Some(2)), step(1, 2, None), step(2, 1, Some(4)), step(1, 2, Some(5)), step(2, 3, Some(6))];
    let done = import(&mut rows, &steps, Bounds { limit: None, badges: &Badges::default() }, true, UnixMs(1));
    assert_eq!(
        done,
        ImportedFollows { followed: 2, waiting: vec![1, 2, 3, 4], ..ImportedFollows::default() },
        "either direction, and all of them"
    );
    assert_eq!((rows.get::<RelationRows>().follow(pair(1, 2)), rows.get::<RelationRows>().follow(pair(2, 1))), (None, None));
}

#[test]
fn an_open_request_of_or_to_an_erased_user_becomes_no_follow() {
    for erased in [1, 2] {
        let mut rows = Rows::new(crate::app::ROW_SETS);
        for fan in [2, 3] {
            super::requests::begin(&mut rows, pair(fan, 1), FollowOptions::default(), UnixMs(1), None);
        }
        rows.erase(user(erased));
        rows.settle();
        let fans = vec![(user(2), UnixMs(1)), (user(3), UnixMs(1))];
        AcceptOpen { user: user(1), since: UnixMs(1), fans, terms: terms() }.apply(&mut rows, UnixMs(7)).unwrap();
        let set = rows.get::<RelationRows>();
        assert_eq!(set.follow(pair(2, 1)), None, "neither from nor to who was erased");
        assert_eq!(set.follow(pair(3, 1)).is_some(), erased == 2);
        let open = |fan| set.request(pair(fan, 1)).is_some();
        // What is left of an erased user's requests ends with the user's other relations.
        assert_eq!([open(2), open(3)], [erased == 1; 2]);
        assert_eq!(rows.has_events(), erased == 2, "user_erased was the last that is told of the user");
    }
}
