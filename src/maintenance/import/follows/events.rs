//! A file of follows and unfollows: read whole, put in the order of time, and brought down to the
//! last word on each pair.
//!
//! What a pair was in between is gone before anybody could have seen it, and leaving it out makes
//! an import that is run again change nothing.

use crate::base::clock::UnixMs;
use crate::features::relations::state::FollowOptions;
use crate::features::relations::{FollowStep, Pair};

use super::line::Line;

/// The lines of such a file, in its order.
#[derive(Debug, Default)]
pub(super) struct Events {
    lines: Vec<Event>,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    pair: Pair,
    at: UnixMs,
    follow: bool,
    options: FollowOptions,
    requested: bool,
}

impl Events {
    pub(super) fn push(&mut self, line: Line) {
        self.lines.push(Event {
            pair: line.pair,
            at: line.at.unwrap_or(UnixMs(0)),
            follow: line.follow,
            options: line.options,
            requested: line.requested,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// One step for each pair, those of a follower together and in the order of time; and how many
    /// lines a later one has overtaken.
    pub(super) fn into_steps(mut self) -> (Vec<FollowStep>, u64) {
        // Stable: what happened at the same time stays in the order of the lines.
        self.lines.sort_by_key(|event| (event.pair, event.at));
        let lines = self.lines.len();
        let mut steps: Vec<(FollowStep, UnixMs)> = Vec::new();
        for event in self.lines {
            match steps.last_mut() {
                Some((step, last)) if step.pair == event.pair => {
                    // Following again changes how, not since when: the follow is as old as its
                    // first line.
                    step.follow = event.follow.then(|| (step.follow.map_or(event.at, |(since, _)| since), event.options));
                    step.requested = event.requested;
                    *last = event.at;
                }
                _ => {
                    let follow = event.follow.then_some((event.at, event.options));
                    steps.push((FollowStep { pair: event.pair, follow, requested: event.requested }, event.at));
                }
            }
        }
        // Unfollows make room for later follows under a limit.
        steps.sort_by_key(|(step, last)| (step.pair.follower, step.follow.map_or(*last, |(since, _)| since)));
        let overtaken = u64::try_from(lines - steps.len()).unwrap_or_default();
        (steps.into_iter().map(|(step, _)| step).collect(), overtaken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(lines: &[(i64, i64, i64, bool)]) -> (Vec<(i64, i64, Option<i64>)>, u64) {
        let mut events = Events::default();
        for (at, follower, followee, follow) in lines {
            let pair = Pair { follower: (*follower).try_into().unwrap(), followee: (*followee).try_into().unwrap() };
            events.push(Line { pair, at: Some(UnixMs(*at)), follow: *follow, options: FollowOptions::default(), requested: false });
        }
        let (steps, overtaken) = events.into_steps();
        (
            steps.iter().map(|step| (step.pair.follower.get(), step.pair.followee.get(), step.follow.map(|(at, _)| at.0))).collect(),
            overtaken,
        )
    }

    #[test]
    fn the_last_word_in_time_counts() {
        assert_eq!(steps(&[(3, 1, 2, true), (1, 1, 2, true), (2, 1, 2, false)]), (vec![(1, 2, Some(3))], 2));
        assert_eq!(steps(&[(3, 1, 2, false), (1, 1, 2, true)]), (vec![(1, 2, None)], 1));
        assert_eq!(steps(&[(5, 1, 2, true), (4, 1, 2, true), (9, 1, 2, true)]), (vec![(1, 2, Some(4))], 2), "as old as its first line");
        assert_eq!(steps(&[(5, 1, 2, true), (5, 1, 2, false)]), (vec![(1, 2, None)], 1), "at one time, the later line");
        assert_eq!(steps(&[(5, 1, 2, false), (5, 1, 2, true)]), (vec![(1, 2, Some(5))], 1));
    }

    #[test]
    fn steps_of_a_follower_are_in_the_order_of_time() {
        let lines = [(9, 2, 1, true), (7, 1, 3, true), (8, 1, 9, false), (2, 1, 9, true), (3, 1, 4, true), (1, 3, 1, true)];
        assert_eq!(steps(&lines), (vec![(1, 4, Some(3)), (1, 3, Some(7)), (1, 9, None), (2, 1, Some(9)), (3, 1, Some(1))], 1));
    }
}
