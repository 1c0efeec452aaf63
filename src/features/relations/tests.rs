//! The rule over the rows of a batch, against a naive model: what each of a few users is to each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::command::{Bounds, import};
use super::state::{Act, Relation, Room, step};
use super::*;
use crate::base::error::{Code, Problem};
use crate::engine::lanes::{Command as _, Rows};
use crate::engine::marks::{Kind, MAX_RETRACTED_RUNS, Mark};
use crate::engine::pairs::STRIPES;
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
    Terms { max_following: LIMIT, max_blocks: BLOCK_LIMIT, badge: Some("fans".parse().unwrap()) }
}

#[derive(Debug, Clone)]
enum Op {
    Do(Pair, Act),
    Import(Vec<(Pair, Option<FollowOptions>)>, bool),
    /// A user reads the badge of new followers.
    ReadBadge(UserId),
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
        1 => Just(Act::Block),
        1 => Just(Act::Unblock),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (any_pair(), act()).prop_map(|(pair, act)| Op::Do(pair, act)),
        1 => (prop::collection::vec((any_pair(), prop::option::weighted(0.7, options())), 0..6), any::<bool>()).prop_map(|(steps, limit)| Op::Import(steps, limit)),
        1 => (1..=USERS).prop_map(|id| Op::ReadBadge(user(id))),
    ]
}

impl Op {
    fn apply(&self, rows: &mut Rows) -> Result<(), Problem> {
        let command = match self {
            Self::Do(pair, act) => RelationCommand::Do { action: PairAction { pair: *pair, act: *act }, terms: terms() },
            Self::Import(steps, limited) => RelationCommand::Import {
                steps: steps
                    .iter()
                    .map(|(pair, options)| FollowStep { pair: *pair, follow: options.map(|options| (UnixMs(5), options)) })
                    .collect(),
                limit: limited.then_some(LIMIT),
                badge: terms().badge,
                events: false,
                lane_key: 1,
            },
            Self::ReadBadge(user) => {
                let mut mark = badge_of(rows, *user);
                mark.read(None);
                rows.set_mark(*user, Kind::Counter, &terms().badge.unwrap(), mark);
                return Ok(());
            }
        };
        command.apply(rows, UnixMs(7)).map(drop)
    }
}

fn badge_of(rows: &Rows, user: UserId) -> Mark {
    rows.mark(user, Kind::Counter, &terms().badge.unwrap())
}

#[derive(Debug, Default, Clone)]
struct Naive {
    relations: BTreeMap<Pair, Relation>,
    /// Whose follows, made since the followee read the badge, are still there.
    fans: BTreeSet<Pair>,
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

    /// Returns whether the rule takes it.
    fn apply(&mut self, op: &Op) -> bool {
        match op {
            Op::Do(pair, act) => {
                let before = PairState { mine: self.relation(*pair), theirs: self.relation(pair.reversed()) };
                let me = pair.follower;
                let room = Room {
                    follow: self.followed_by(me) < LIMIT,
                    block: self.count(|pair, relation| pair.follower == me && relation == Relation::Blocks) < BLOCK_LIMIT,
                };
                let Ok(after) = step(before, *act, room) else { return false };
                if before.mine.options().is_none() && after.mine.options().is_some() {
                    self.fans.insert(*pair);
                }
                self.relations.insert(*pair, after.mine);
                self.relations.insert(pair.reversed(), after.theirs);
            }
            Op::Import(steps, limited) => {
                for (pair, options) in steps {
                    let blocked = [*pair, pair.reversed()].iter().any(|pair| self.relation(*pair) == Relation::Blocks);
                    let full = *limited && self.followed_by(pair.follower) >= LIMIT;
                    match (self.relation(*pair), options) {
                        (Relation::Nothing, Some(options)) if !blocked && !full => {
                            self.relations.insert(*pair, Relation::Follows(*options));
                        }
                        (Relation::Follows(_), None) => {
                            self.relations.remove(pair);
                        }
                        _ => {}
                    }
                    self.forget_fans();
                }
            }
            Op::ReadBadge(user) => self.fans.retain(|pair| pair.followee != *user),
        }
        self.forget_fans();
        true
    }

    /// Who follows no longer is no new follower.
    fn forget_fans(&mut self) {
        let relations = &self.relations;
        self.fans.retain(|pair| relations.get(pair).is_some_and(|relation| relation.options().is_some()));
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
                    prop_assert!([Code::FollowingLimit, Code::Blocked, Code::TooMany].contains(&problem.code));
                    rows.undo();
                }
            }
            for id in 1..=USERS {
                let me = user(id);
                prop_assert_eq!(rows.user(me).following, naive.followed_by(me));
                let mine = |is: fn(Relation) -> bool| naive.count(|pair, relation| pair.follower == me && is(relation));
                let own = rows.get::<RelationRows>().own(me);
                prop_assert_eq!(
                    (own.secret, own.special, own.blocked),
                    (
                        mine(|relation| relation.options().is_some_and(|options| options.secret)),
                        mine(|relation| relation.options().is_some_and(|options| options.special)),
                        mine(|relation| relation == Relation::Blocks),
                    )
                );
                let fans = Fans {
                    followers: naive.count(|pair, relation| pair.followee == me && relation.options().is_some()),
                    mutuals: naive.count(|pair, relation| pair.follower == me && relation.is_public() && naive.relation(pair.reversed()).is_public()),
                };
                prop_assert_eq!(rows.get::<RelationRows>().fans(me), fans);
                let new = naive.fans.iter().filter(|pair| pair.followee == me).count();
                prop_assert_eq!(badge_of(&rows, me).unread(), i64::try_from(new).unwrap(), "{:?}", badge_of(&rows, me));
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
        RelationCommand::Do { action, terms: terms.clone() }.apply(&mut rows, UnixMs(7)).unwrap();
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
    let done = import(&mut rows, &steps, Bounds { limit: Some(2), badge: None }, true, UnixMs(1));
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
    };
    rows.get_mut::<RelationRows>().operations.insert_pending(pair(1, 2), 7, 7);
    let steps = [step(1, 3, Some(1)), step(1, 2, Some(2)), step(1, 2, None), step(2, 1, Some(4)), step(1, 2, Some(5)), step(2, 3, Some(6))];
    let done = import(&mut rows, &steps, Bounds::default(), true, UnixMs(1));
    assert_eq!(
        done,
        ImportedFollows { followed: 2, waiting: vec![1, 2, 3, 4], ..ImportedFollows::default() },
        "either direction, and all of them"
    );
    assert_eq!((rows.get::<RelationRows>().follow(pair(1, 2)), rows.get::<RelationRows>().follow(pair(2, 1))), (None, None));
}
