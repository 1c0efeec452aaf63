//! The rule against a naive model: a set of pairs.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::lane::Command as _;

const USERS: i64 = 5;
const LIMIT: i64 = 3;

fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

fn pair(follower: i64, followee: i64) -> Pair {
    Pair { follower: user(follower), followee: user(followee) }
}

#[derive(Debug, Clone)]
enum Op {
    Follow(Pair),
    Unfollow(Pair),
    Import(Vec<(Pair, bool)>, bool),
}

fn any_pair() -> impl Strategy<Value = Pair> {
    (1..=USERS, 1..USERS).prop_map(|(follower, step)| pair(follower, (follower - 1 + step) % USERS + 1))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => any_pair().prop_map(Op::Follow),
        2 => any_pair().prop_map(Op::Unfollow),
        1 => (prop::collection::vec((any_pair(), prop::bool::weighted(0.7)), 0..6), any::<bool>()).prop_map(|(steps, limit)| Op::Import(steps, limit)),
    ]
}

impl Op {
    fn command(&self) -> Command {
        match self {
            Self::Follow(pair) => Command::Follow { pair: *pair, limit: LIMIT, badge: Some("fans".parse().unwrap()) },
            Self::Unfollow(pair) => Command::Unfollow(*pair),
            Self::Import(steps, limited) => Command::Import {
                steps: steps.iter().map(|(pair, follow)| Step { pair: *pair, follow: follow.then_some(UnixMs(5)) }).collect(),
                limit: limited.then_some(LIMIT),
                lane_key: 1,
            },
        }
    }
}

#[derive(Debug, Default, Clone)]
struct Naive {
    follows: BTreeSet<Pair>,
    /// New followers of each user, for the badge.
    fans: std::collections::BTreeMap<UserId, i64>,
}

impl Naive {
    fn count(&self, is: impl Fn(&Pair) -> bool) -> i64 {
        i64::try_from(self.follows.iter().filter(|pair| is(pair)).count()).unwrap()
    }

    fn has_room(&self, follower: UserId) -> bool {
        self.count(|pair| pair.follower == follower) < LIMIT
    }

    /// Returns whether the rule takes it.
    fn apply(&mut self, op: &Op) -> bool {
        match op {
            Op::Follow(pair) if self.follows.contains(pair) => true,
            Op::Follow(pair) if !self.has_room(pair.follower) => false,
            Op::Follow(pair) => {
                *self.fans.entry(pair.followee).or_default() += 1;
                self.follows.insert(*pair)
            }
            Op::Unfollow(pair) => {
                self.follows.remove(pair);
                true
            }
            Op::Import(steps, limited) => {
                for (pair, follow) in steps {
                    match follow {
                        false => drop(self.follows.remove(pair)),
                        true if *limited && !self.has_room(pair.follower) => {}
                        true => drop(self.follows.insert(*pair)),
                    }
                }
                true
            }
        }
    }
}

proptest! {
    #[test]
    fn counts_are_the_lengths_of_the_lists_whatever_happens(ops in prop::collection::vec(op(), 1..60)) {
        let (mut rows, mut naive) = (Rows::default(), Naive::default());
        for op in &ops {
            let before: Vec<_> = (1..=USERS).map(|id| rows.revision(user(id))).collect();
            let known = naive.clone();
            let taken = naive.apply(op);
            match op.command().apply(&mut rows, UnixMs(7)) {
                Ok(_) => { prop_assert!(taken, "{:?}", op); rows.settle(); }
                Err(problem) => { prop_assert!(!taken); prop_assert_eq!(problem.code, Code::FollowingLimit); rows.undo(); }
            }
            for id in 1..=USERS {
                let me = user(id);
                prop_assert_eq!(rows.user(me).following, naive.count(|pair| pair.follower == me));
                let fans = Fans { followers: naive.count(|pair| pair.followee == me), mutuals: naive.count(|pair| pair.follower == me && naive.follows.contains(&pair.reversed())) };
                prop_assert_eq!(rows.fans(me), fans);
                prop_assert_eq!(rows.mark(me, Kind::Counter, &"fans".parse().unwrap()).head(), naive.fans.get(&me).copied().unwrap_or_default());
                let mine = |naive: &Naive| naive.follows.iter().filter(|pair| pair.follower == me).copied().collect::<Vec<_>>();
                if mine(&known) != mine(&naive) {
                    prop_assert!(rows.revision(me) > before[usize::try_from(id - 1).unwrap()], "one's own rows changed");
                }
                for other in (1..=USERS).filter(|other| *other != id) {
                    prop_assert_eq!(rows.follow(pair(id, other)).is_some(), naive.follows.contains(&pair(id, other)));
                }
            }
        }
    }
}

#[test]
fn both_directions_of_a_pair_have_one_lock_and_pairs_spread_over_all() {
    let mut load = vec![0; usize::try_from(store::STRIPES).unwrap()];
    for follower in 1..=64 {
        for followee in 65..=320 {
            let stripe = pair(follower, followee).stripe();
            assert_eq!(stripe, pair(followee, follower).stripe());
            load[usize::try_from(stripe).unwrap()] += 1;
        }
    }
    assert!(load.iter().all(|pairs| (1..=48).contains(pairs)), "16 pairs on each: {:?}", load.iter().max());
    // For ever: nodes of two versions must lock the same.
    assert_eq!([pair(1, 2).stripe(), pair(42, 7).stripe(), pair(i64::MAX, 1).stripe()], [747, 736, 955]);
}

#[test]
fn an_import_says_what_it_did() {
    let mut rows = Rows::default();
    let step = |follower, followee, since: Option<i64>| Step { pair: pair(follower, followee), follow: since.map(UnixMs) };
    let steps = vec![
        step(1, 2, Some(5)),
        step(1, 2, Some(6)),
        step(1, 3, None),
        step(1, 3, Some(7)),
        step(1, 4, Some(8)),
        step(1, 2, None),
        step(1, 4, Some(9)),
    ];
    let done = import(&mut rows, &steps, Some(2));
    assert_eq!(done, Imported { followed: 3, unfollowed: 1, known: 2, over_limit: 1 });
    assert_eq!(rows.follow(pair(1, 3)), Some(Follow { since: UnixMs(7), mark: 0 }), "the first time stays");
    assert_eq!(rows.follow(pair(1, 4)), Some(Follow { since: UnixMs(9), mark: 0 }));
}
