//! A stream that users share: one head for all, compared with a mark of each user's own.

use std::sync::Arc;

use super::{Intervals, Kind, Refused};
use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, MAX_HEAD, Name, UserId};

/// Which stream. The order is the order in which rows are locked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// Whose it is; 0 where it is nobody's.
    pub owner: i64,
    /// What sort of stream.
    pub kind: Kind,
    /// Which one of them: empty where the owner has one alone.
    pub name: Arc<str>,
}

impl StreamKey {
    /// All that ever happened to channels and dots.
    #[must_use]
    pub fn broadcast_state() -> Self {
        Self { owner: 0, kind: Kind::BroadcastState, name: Arc::from("") }
    }

    /// A channel of broadcasts.
    #[must_use]
    pub fn channel(name: &Name) -> Self {
        Self { owner: 0, kind: Kind::Broadcast, name: Arc::from(name.as_str()) }
    }

    /// A dot.
    #[must_use]
    pub fn dot(name: &Name) -> Self {
        Self { owner: 0, kind: Kind::Dot, name: Arc::from(name.as_str()) }
    }

    /// The posts of a creator.
    #[must_use]
    pub fn posts(creator: UserId) -> Self {
        Self { owner: creator.get(), kind: Kind::Post, name: Arc::from("") }
    }

    /// The messages of a group.
    #[must_use]
    pub fn group(group: GroupId) -> Self {
        Self { owner: group.get(), kind: Kind::Group, name: Arc::from("") }
    }

    /// A view, by its name in rows: `home:1`.
    #[must_use]
    pub fn view(stream: &str) -> Self {
        Self { owner: 0, kind: Kind::View, name: Arc::from(stream) }
    }
}

/// How many separate runs of positions that were taken back a shared stream keeps at hand. Users'
/// marks lie anywhere below the head, so what was taken back can never be forgotten: what does not
/// fit is counted from the rows of the things themselves, for the few whose mark is as far behind.
pub const MAX_SHARED_RUNS: usize = 200;

/// A shared stream, as its row has it. The default is one in which nothing ever happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// How many things ever happened in it.
    pub head: i64,
    /// The positions above the floor that were taken back.
    pub retracted: Intervals,
    /// Up to this position `retracted` does not tell. Of channels and dots: up to here they were
    /// deleted.
    pub floor: i64,
    /// Raised by each change.
    pub version: i64,
    /// For channels and dots: the head of the broadcast state when this head was raised last. For
    /// posts: how many of them are gone. For groups: 1 once the group is deleted.
    pub position: i64,
    /// When the head was raised last.
    pub at: UnixMs,
    /// Of a group: the newest positions that mention all its members, as many runs as
    /// [`mention_floor`] says.
    pub mention_all: Intervals,
}

/// How often something else changed in a stream than that one more thing happened in it: as often as before
/// means that nothing that was there has gone since.
#[must_use]
pub fn other_changes(stream: &Stream) -> i64 {
    stream.version - stream.head
}

/// How many separate runs of positions that mention all a group's stream keeps at hand.
pub const MAX_MENTION_ALL_RUNS: usize = 200;

/// Up to which position only the rows tell what mentions all, where the stream has these runs.
#[must_use]
pub fn mention_floor(mention_all: &Intervals) -> i64 {
    let is_full = mention_all.runs() >= MAX_MENTION_ALL_RUNS;
    mention_all.first().filter(|_| is_full).map_or(0, |first| first - 1)
}

impl Stream {
    /// One more thing happened; its position is the new head.
    ///
    /// # Errors
    /// [`Refused::HeadFull`].
    pub fn advance(&mut self, now: UnixMs) -> Result<i64, Refused> {
        if self.head >= MAX_HEAD {
            return Err(Refused::HeadFull);
        }
        self.head += 1;
        self.version += 1;
        // What is imported may be older than what is there.
        self.at = self.at.max(now);
        Ok(self.head)
    }

    /// The thing at this position, which is the head, mentions all.
    pub fn mention_all(&mut self, at: i64) {
        self.mention_all.insert(at, at);
        while self.mention_all.runs() > MAX_MENTION_ALL_RUNS {
            self.mention_all.drop_first();
        }
    }

    /// The thing at this position is gone: one less for those who had not read it. Once is enough;
    /// a second time changes nothing.
    pub fn retract(&mut self, at: i64) {
        if at < 1 || at > self.head || self.retracted.contains(at) {
            return;
        }
        self.version += 1;
        if at > self.floor {
            self.retracted.insert(at, at);
        }
        self.bound_runs();
    }

    /// The things up to this position are kept no longer, and count for nobody. Whether anything
    /// changed.
    pub fn expire(&mut self, up_to: i64) -> bool {
        let up_to = up_to.min(self.head);
        // Also of what was taken back before, nothing is left to mention anybody.
        let mentions = self.mention_all.first().is_some_and(|first| first <= up_to);
        if up_to < 1 || (self.retracted.count_within(0, up_to) == up_to && !mentions) {
            return false;
        }
        self.version += 1;
        self.mention_all.drop_up_to(up_to);
        // Below the floor only the rows tell, also of this.
        if up_to >= self.floor {
            self.floor = 0;
            self.retracted.insert(1, up_to);
            self.bound_runs();
        }
        true
    }

    /// Of a channel or a dot: it is deleted. Its head stays, so that it continues there when it is
    /// made again; up to there nothing counts, and nothing need be remembered.
    pub fn delete(&mut self) {
        if self.is_alive() {
            self.floor = self.head;
            self.retracted = Intervals::default();
            self.version += 1;
        }
    }

    /// Of a channel or a dot: whether there is one. Something happened since it was deleted last.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.head > self.floor
    }

    /// Of a group: it is deleted. All of it is gone.
    pub fn delete_group(&mut self) {
        self.expire(self.head);
        self.position = 1;
        self.version += 1;
    }

    /// Of a group: whether it is deleted.
    #[must_use]
    pub fn is_deleted_group(&self) -> bool {
        self.position > 0
    }

    fn bound_runs(&mut self) {
        while self.retracted.runs() > MAX_SHARED_RUNS {
            self.floor = self.retracted.drop_first().unwrap_or(self.floor);
        }
    }

    /// What lies above a mark and was neither taken back nor is in `own` (positions that do not
    /// count for this user, such as what it made itself). None where the mark lies below the floor,
    /// so that the rows must be asked.
    #[must_use]
    pub fn unread(&self, mark: i64, own: &Intervals) -> Option<i64> {
        if mark < self.floor {
            return None;
        }
        Some(unread(self.head, mark, &self.retracted, own))
    }
}

/// The rule: what lies above the mark, less what was taken back or does not count. Never negative,
/// also where a head that is a little old lies below the mark.
#[must_use]
pub fn unread(head: i64, mark: i64, retracted: &Intervals, own: &Intervals) -> i64 {
    let gone = if own.is_empty() { retracted.count_within(mark, head) } else { retracted.union(own).count_within(mark, head) };
    (head - mark - gone).max(0)
}

/// What of a stream counts for one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// How many positions are unread.
    pub unread: i64,
    /// How many of them mention the user.
    pub mentions: i64,
    /// The lowest of them.
    pub first: Option<i64>,
}

/// The numbers of what lies above the mark and is not in `gone`.
#[must_use]
pub fn numbers(head: i64, mark: i64, gone: &Intervals, mentioning: &Intervals) -> Numbers {
    let count = |set: &Intervals| set.count_within(mark, head);
    let unread = (head - mark - count(gone)).max(0);
    if unread == 0 {
        return Numbers::default();
    }
    let mentions = if mentioning.is_empty() { 0 } else { count(&mentioning.with(gone)) - count(gone) };
    Numbers { unread, mentions, first: Some(gone.first_free_above(mark)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Happen,
        Retract(i64),
        Expire(i64),
        MentionAll,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let at = 0..80_i64;
        let step = prop_oneof![6 => Just(Step::Happen), 2 => Just(Step::MentionAll), 2 => at.clone().prop_map(Step::Retract), 1 => at.prop_map(Step::Expire)];
        prop::collection::vec(step, 0..120)
    }

    proptest! {
        #[test]
        fn a_stream_counts_like_a_set(steps in steps(), mark in 0..90_i64, own in prop::collection::btree_set(1..90_i64, 0..10)) {
            let (mut stream, mut there, mut all) = (Stream::default(), BTreeSet::new(), BTreeSet::new());
            for step in steps {
                let (before, gone) = (other_changes(&stream), stream.head - i64::try_from(there.len()).unwrap());
                match step {
                    Step::Happen => { there.insert(stream.advance(UnixMs(1)).unwrap()); }
                    Step::MentionAll => {
                        let at = stream.advance(UnixMs(1)).unwrap();
                        stream.mention_all(at);
                        there.insert(at);
                        all.insert(at);
                    }
                    Step::Retract(at) => { stream.retract(at); there.remove(&at); }
                    Step::Expire(up_to) => {
                        let (before, counted, mentioned) = (stream.version, there.len(), all.len());
                        let changed = stream.expire(up_to);
                        there.retain(|at| *at > up_to);
                        all.retain(|at| *at > up_to);
                        let is_less = there.len() < counted || all.len() < mentioned;
                        prop_assert_eq!((stream.version > before, changed), (changed, is_less));
                    }
                }
                let is_less = stream.head - i64::try_from(there.len()).unwrap() > gone;
                prop_assert!(other_changes(&stream) >= before + i64::from(is_less), "what goes is another change, and none comes back");
            }
            let mut intervals = Intervals::default();
            own.iter().for_each(|at| intervals.insert(*at, *at));
            let left = there.iter().filter(|at| **at > mark && !own.contains(at)).count();
            let left = i64::try_from(left).unwrap();
            prop_assert_eq!(stream.unread(mark, &intervals), Some(left));
            let first = there.iter().copied().find(|at| *at > mark && !own.contains(at));
            let mentions = there.iter().filter(|at| **at > mark && !own.contains(at) && all.contains(at)).count();
            let counted = numbers(stream.head, mark, &stream.retracted.union(&intervals), &stream.mention_all);
            prop_assert_eq!(counted, Numbers { unread: left, mentions: i64::try_from(mentions).unwrap(), first });
        }
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_rows() {
        let mut stream = Stream::default();
        let runs = i64::try_from(MAX_SHARED_RUNS).unwrap();
        for _ in 0..2 * runs + 10 {
            stream.advance(UnixMs(1)).unwrap();
        }
        (1..=runs + 2).for_each(|n| stream.retract(2 * n));
        assert_eq!(stream.floor, 4, "the two lowest runs are no longer here");
        assert_eq!(stream.unread(3, &Intervals::default()), None);
        assert_eq!(stream.unread(4, &Intervals::default()), Some(2 * runs + 6 - runs));
        let version = stream.version;
        stream.retract(2);
        assert_eq!((stream.floor, stream.version), (4, version + 1), "below the floor only the rows can tell whether it was there");
    }

    #[test]
    fn what_is_deleted_continues_its_head() {
        let mut stream = Stream::default();
        stream.delete();
        assert_eq!((stream.is_alive(), stream.version), (false, 0), "there was none");
        (0..3).for_each(|_| _ = stream.advance(UnixMs(1)).unwrap());
        stream.retract(2);
        stream.delete();
        assert_eq!((stream.is_alive(), stream.head, stream.floor, stream.version), (false, 3, 3, 5));
        stream.delete();
        assert_eq!((stream.version, stream.retracted.is_empty()), (5, true));
        assert_eq!((stream.advance(UnixMs(2)).unwrap(), stream.is_alive(), stream.floor), (4, true, 3));
    }

    #[test]
    fn mentions_of_all_that_do_not_fit_are_left_to_the_rows() {
        let mut stream = Stream::default();
        let runs = i64::try_from(MAX_MENTION_ALL_RUNS).unwrap();
        for n in 1..=2 * (runs + 1) {
            stream.advance(UnixMs(1)).unwrap();
            if n % 2 == 0 {
                stream.mention_all(n);
            }
            let floor = mention_floor(&stream.mention_all);
            let known = (1..=n).filter(|at| at % 2 == 0 && *at > floor);
            assert!(known.into_iter().all(|at| stream.mention_all.contains(at)), "{n}");
        }
        assert_eq!(mention_floor(&stream.mention_all), 3);
        stream.expire(5);
        assert_eq!(mention_floor(&stream.mention_all), 0, "what is not known has expired");
    }

    #[test]
    fn what_expires_makes_room_and_takes_the_floor_away() {
        let none = Intervals::default();
        let mut stream = Stream::default();
        let runs = i64::try_from(MAX_SHARED_RUNS).unwrap();
        for _ in 0..2 * runs + 10 {
            stream.advance(UnixMs(1)).unwrap();
        }
        (1..=runs + 2).for_each(|n| stream.retract(2 * n));
        assert!(stream.expire(3), "below the floor the rows tell");
        assert_eq!((stream.floor, stream.unread(0, &none), stream.unread(4, &none)), (4, None, Some(runs + 6)));
        assert!(stream.expire(5));
        assert_eq!((stream.floor, stream.retracted.runs(), stream.unread(0, &none)), (0, MAX_SHARED_RUNS, Some(runs + 5)));
        assert!(!stream.expire(6), "it was taken back before");
        stream.retract(2 * runs + 8);
        assert_eq!((stream.floor, stream.unread(0, &none), stream.unread(6, &none)), (6, None, Some(runs + 4)));
        assert!(stream.expire(9) && stream.expire(i64::MAX) && !stream.expire(1));
        assert_eq!((stream.floor, stream.retracted.runs(), stream.unread(0, &none), stream.head), (0, 1, Some(0), 2 * runs + 10));
    }

    #[test]
    fn a_head_that_is_a_little_old_is_not_negative() {
        assert_eq!(unread(3, 5, &Intervals::default(), &Intervals::default()), 0);
    }
}
