//! Actions that are accepted before they are done, over the rows of a batch. `worker.rs` submits
//! them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use axum::http::StatusCode;

use super::command::{PairAction, Terms, apply_action};
use super::rows::{RelationRows, need_operations};
use crate::base::clock::UnixMs;
use crate::base::error::{Fault, Problem};
use crate::engine::erased;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::pairs::{Pair, need_named};
use crate::features::operations::{AcceptedOut, Operation, Outcome};

/// A write of operations: asynchronous actions.
#[derive(Debug, Clone)]
pub(super) enum DeferredCommand {
    /// One is accepted.
    Accept(Operation),
    /// Those of a pair are done, in order. The answer is how many.
    Drain {
        /// The pair, the lower id first.
        pair: Pair,
        /// What was pending when somebody looked, by number: it may have been done since, and more
        /// may have come.
        queue: Vec<(i64, PairAction)>,
        /// To what the actions are held.
        terms: Terms,
    },
}

impl lanes::Command for DeferredCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Accept(operation) => {
                need_operations(needs, operation.pair);
                need_named(needs, operation.pair.follower);
                need_named(needs, operation.pair.followee);
            }
            Self::Drain { pair, queue, terms } => {
                need_operations(needs, *pair);
                queue.iter().for_each(|(_, action)| action.needs(terms, needs));
            }
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::Accept(operation) => operation.pair.pair_lock(),
            Self::Drain { pair, .. } => pair.pair_lock(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Accept(operation) => vec![in_path(operation.pair.follower), in_path(operation.pair.followee)],
            // An operation of an erased user fails by itself.
            Self::Drain { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Accept(_) => 1,
            Self::Drain { queue, .. } => u32::try_from(queue.len()).unwrap_or(u32::MAX),
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Accept(operation) => {
                rows.get_mut::<RelationRows>().operations.accept(operation, now);
                Ok(Answer::accepted(AcceptedOut::new(operation.id.clone())))
            }
            Self::Drain { pair, queue, terms } => {
                // What has a lower number is done; what has a higher one than all of these came
                // after them, and is seen with the next look.
                let Some(first) = rows.get::<RelationRows>().operations.first_pending(*pair) else { return Ok(Answer::ok(0)) };
                let mut done = 0;
                let mut left = queue.iter().filter(|(seq, _)| *seq >= first).peekable();
                // One may stand before them that was not in sight.
                if left.peek().is_some_and(|(seq, _)| *seq == first) {
                    while let Some((seq, action)) = left.next() {
                        let next = left.peek().map(|(seq, _)| *seq);
                        finish(rows, *pair, (*seq, next), action, terms, now);
                        done += 1;
                    }
                }
                Ok(Answer::ok(done))
            }
        }
    }
}

/// Does one operation: its effect stays, or nothing of it does; what came of it is kept in either
/// case.
fn finish(rows: &mut Rows, pair: Pair, (seq, next): (i64, Option<i64>), action: &PairAction, terms: &Terms, now: UnixMs) {
    let is_erased = [pair.follower, pair.followee].into_iter().any(|user| rows.is_erased(user));
    let apply = |rows: &mut Rows| if is_erased { Err(erased::problem([])) } else { apply_action(rows, action, terms, now) };
    let applied = catch_unwind(AssertUnwindSafe(|| apply(rows)));
    let applied = applied.unwrap_or_else(|_| Err(Fault::Bug(String::new()).problem()));
    let applied = applied.and_then(|answer| Ok((StatusCode::from_u16(answer.status()).unwrap_or_default(), answer.json()?)));
    let outcome = match applied {
        Ok((status, body)) => {
            rows.settle();
            Outcome { status, body, at: now }
        }
        Err(problem) => {
            rows.undo();
            let body = serde_json::to_string(&problem.body()).unwrap_or_default();
            Outcome { status: problem.code.status(), body, at: now }
        }
    };
    rows.get_mut::<RelationRows>().operations.finish(pair, seq, next, outcome);
    rows.settle();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::operations::{OperationId, Preceding};
    use crate::features::relations::Badges;
    use crate::features::relations::state::Act;

    fn action(act: Act) -> PairAction {
        PairAction { pair: Pair { follower: 1.try_into().unwrap(), followee: 2.try_into().unwrap() }, act }
    }

    /// How many were done.
    fn drain(rows: &mut Rows, queue: &[(i64, Act)]) -> usize {
        use crate::engine::lanes::Command as _;
        let terms = Terms { max_following: 10, max_blocks: 10, badges: Badges::default() };
        let queue = queue.iter().map(|(seq, act)| (*seq, action(*act))).collect();
        let answer = DeferredCommand::Drain { pair: action(Act::Block).pair, queue, terms }.apply(rows, UnixMs(1)).unwrap();
        rows.settle();
        answer.json().unwrap().parse().unwrap()
    }

    const FOLLOW: Act = Act::Follow { secret: None, special: None };

    #[test]
    fn those_of_a_pair_are_done_in_order_and_once() {
        let pair = action(Act::Block).pair;
        let mut rows = Rows::new(crate::app::ROW_SETS);
        rows.get_mut::<RelationRows>().operations.insert_pending(pair, 3, 7);
        assert_eq!(drain(&mut rows, &[(5, Act::Block), (7, Act::Unblock)]), 0);
        assert!(
            rows.get::<RelationRows>().follow(pair).is_none() && !rows.get::<RelationRows>().blocks(pair),
            "3 was not in sight and comes first"
        );
        assert_eq!(drain(&mut rows, &[(1, Act::Block), (3, FOLLOW)]), 1);
        assert!(rows.get::<RelationRows>().follow(pair).is_some() && !rows.get::<RelationRows>().blocks(pair), "1 was done before");
        assert!(rows.get::<RelationRows>().has_pending(pair.reversed(), Preceding::All), "up to 7");
        assert_eq!(drain(&mut rows, &[(3, Act::Unfollow)]), 0);
        assert!(rows.get::<RelationRows>().follow(pair).is_some(), "done already");
    }

    #[test]
    fn what_came_after_those_in_sight_is_still_waited_for() {
        let pair = action(Act::Block).pair;
        let operation = Operation { id: OperationId::new(UnixMs(1)), caller: String::new(), pair, command: String::new(), node: 1 };
        let mut rows = Rows::new(crate::app::ROW_SETS);
        assert!(!rows.get::<RelationRows>().has_pending(pair, Preceding::All));
        rows.get_mut::<RelationRows>().operations.insert_pending(pair, 3, 3);
        rows.get_mut::<RelationRows>().operations.accept(&operation, UnixMs(1));
        rows.settle();
        drain(&mut rows, &[(3, FOLLOW)]);
        assert!(
            rows.get::<RelationRows>().follow(pair).is_some() && rows.get::<RelationRows>().has_pending(pair, Preceding::All),
            "the one of this batch has no number yet"
        );
        let mut rows = Rows::new(crate::app::ROW_SETS);
        rows.get_mut::<RelationRows>().operations.insert_pending(pair, 3, 3);
        drain(&mut rows, &[(3, FOLLOW)]);
        assert!(!rows.get::<RelationRows>().has_pending(pair, Preceding::All));
        rows.get_mut::<RelationRows>().operations.accept(&operation, UnixMs(1));
        rows.undo();
        assert!(!rows.get::<RelationRows>().has_pending(pair, Preceding::All));
    }
}
