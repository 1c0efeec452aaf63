//! The rule against a naive model: a list of all things that ever happened, each read, gone or
//! unread.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Advance(i64),
    Read(Option<i64>),
    RetractAt(i64),
    RetractNewest(i64),
    Store,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..6i64).prop_map(Step::Advance),
        prop::option::of(0..60i64).prop_map(Step::Read),
        (0..60i64).prop_map(Step::RetractAt),
        (1..6i64).prop_map(Step::RetractNewest),
        Just(Step::Store),
    ];
    prop::collection::vec(step, 1..60)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Unread,
    Read,
    Gone,
}

/// Position `n` is `things[n - 1]`.
#[derive(Default)]
struct Naive {
    things: Vec<Thing>,
}

impl Naive {
    fn unread(&self) -> i64 {
        i64::try_from(self.things.iter().filter(|t| **t == Thing::Unread).count()).unwrap()
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Advance(by) => self.things.extend((0..by).map(|_| Thing::Unread)),
            Step::Read(up_to) => {
                let to = usize::try_from(up_to.unwrap_or(i64::MAX)).unwrap().min(self.things.len());
                self.things[..to].iter_mut().filter(|t| **t == Thing::Unread).for_each(|t| *t = Thing::Read);
            }
            Step::RetractAt(at) => {
                let at = usize::try_from(at).unwrap();
                if at >= 1 && at <= self.things.len() && self.things[at - 1] == Thing::Unread {
                    self.things[at - 1] = Thing::Gone;
                }
            }
            Step::RetractNewest(n) => {
                let n = usize::try_from(n).unwrap();
                self.things.iter_mut().rev().filter(|t| **t == Thing::Unread).take(n).for_each(|t| *t = Thing::Gone);
            }
            Step::Store => {}
        }
    }
}

proptest! {
    #[test]
    fn marks_agree_with_a_list_of_things(steps in steps()) {
        let (mut mark, mut naive) = (Mark::default(), Naive::default());
        for step in &steps {
            let (head_before, mark_before, unread_before) = (mark.head(), mark.mark(), mark.unread());
            match *step {
                Step::Advance(by) => mark.advance(by).unwrap(),
                Step::Read(up_to) => { mark.read(up_to); }
                Step::RetractAt(at) => match mark.retract_at(at) {
                    Ok(changed) => prop_assert_eq!(changed, mark.unread() != unread_before),
                    Err(refused) => {
                        prop_assert_eq!(refused, Refused::UnknownPosition);
                        prop_assert!(at < 1 || at > mark.head());
                    }
                },
                Step::RetractNewest(n) => {
                    let gone = mark.retract_newest(n).unwrap();
                    prop_assert_eq!(gone, unread_before - mark.unread());
                }
                Step::Store => mark = Mark::from_row(mark.head(), mark.mark(), &mark.retracted().to_string(), mark.at),
            }
            naive.apply(step);
            prop_assert_eq!(mark.unread(), naive.unread(), "after {:?} of {:?}", step, steps);
            prop_assert_eq!(usize::try_from(mark.head()).unwrap(), naive.things.len());
            prop_assert!(mark.mark() >= mark_before && mark.mark() <= mark.head() && mark.head() >= head_before);
        }
    }
}

#[test]
fn positions_are_kept_and_not_a_count() {
    let mut mark = Mark::default();
    mark.advance(115).unwrap();
    mark.read(Some(100));
    for at in [103, 105, 107, 115] {
        assert_eq!(mark.retract_at(at), Ok(true));
    }
    assert_eq!(mark.unread(), 11);
    mark.advance(5).unwrap();
    mark.read(Some(115));
    assert_eq!(mark.unread(), 5);
}

#[test]
fn runs_are_bounded_and_a_refusal_changes_nothing() {
    let mut mark = Mark::default();
    mark.advance(10_000).unwrap();
    let runs = i64::try_from(MAX_RETRACTED_RUNS).unwrap();
    for at in 1..=runs {
        mark.retract_at(at * 3).unwrap();
    }
    let before = mark.clone();
    assert_eq!(mark.retract_at(runs * 3 + 3), Err(Refused::TooManyRuns));
    assert_eq!(mark, before);
    assert_eq!(mark.retract_at(4), Ok(true), "joining a run needs no new one");
    mark.read(None);
    assert_eq!((mark.unread(), mark.retracted().runs()), (0, 0));
}

#[test]
fn heads_are_bounded() {
    let mut mark = Mark::from_row(MAX_HEAD - 1, 0, "", UnixMs(0));
    assert_eq!(mark.advance(2), Err(Refused::HeadFull));
    assert_eq!(mark.advance(1), Ok(()));
    assert_eq!(mark.unread(), MAX_HEAD);
}

#[test]
fn a_row_that_is_out_of_order_still_counts_right() {
    let mark = Mark::from_row(10, 12, "x 20 5-3 4", UnixMs(0));
    assert_eq!((mark.head(), mark.mark(), mark.unread()), (10, 10, 0));
    let mark = Mark::from_row(10, 2, "3-4 8 9 40", UnixMs(0));
    assert_eq!((mark.mark(), mark.unread(), mark.retracted().to_string()), (4, 4, "8-9".to_owned()));
}
