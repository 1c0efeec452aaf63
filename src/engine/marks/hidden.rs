//! The positions of a stream of which a user hides whether they are read: runs, the last of which
//! is open while the user hides what is read.

use super::{Intervals, Switches};
use crate::base::ids::MAX_HEAD;

/// How many separate runs are kept. Above it, the oldest two become one: the user may hide more
/// than was asked for, and never less.
pub const MAX_HIDDEN_RUNS: usize = 100;

/// What a user hides in one stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hidden {
    /// How often the user began or ended to hide.
    changes: i64,
    runs: Intervals,
}

impl Hidden {
    /// What a row holds.
    #[must_use]
    pub fn from_row(text: &str) -> Self {
        let (changes, runs) = text.split_once(';').unwrap_or_default();
        Self { changes: changes.parse().unwrap_or(0), runs: Intervals::parse(runs) }
    }

    /// What a row holds.
    #[must_use]
    pub fn to_row(&self) -> String {
        if *self == Self::default() { String::new() } else { format!("{};{}", self.changes, self.runs) }
    }

    /// How often the user began or ended to hide.
    #[must_use]
    pub fn changes(&self) -> i64 {
        self.changes
    }

    /// Whether the user hides whether this position is read.
    #[must_use]
    pub fn hides(&self, at: i64) -> bool {
        self.runs.contains(at)
    }

    /// The hidden runs within these positions.
    pub fn within(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.runs.within(from, to)
    }

    /// Hides this position and all after it.
    pub fn begin(&mut self, from: i64) {
        self.changes += 1;
        self.open(from);
    }

    fn open(&mut self, from: i64) {
        self.runs.insert(from, MAX_HEAD);
        if self.runs.runs() > MAX_HIDDEN_RUNS {
            self.runs.join_first();
        }
    }

    /// Takes over what the user has switched since the last time. The user has read up to `read`
    /// since before those switches, so whatever began to be hidden begins there.
    pub fn follow(&mut self, switches: Switches, read: i64) {
        if switches.count == self.changes {
            return;
        }
        self.changes = switches.count;
        self.open(read + 1);
        if !switches.hides() {
            self.runs.drop_above(switches.shared_from);
        }
    }

    /// The last position up to this one that is not hidden.
    #[must_use]
    pub fn last_shown(&self, up_to: i64) -> i64 {
        self.runs.last_free_to(up_to)
    }

    /// What comes after this head is not hidden.
    pub fn end(&mut self, head: i64) {
        self.changes += 1;
        self.runs.drop_above(head);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_hidden_is_a_set(turns in prop::collection::vec((0..30_i64, 0..5_i64), 0..20)) {
            let (mut hidden, mut model, mut head) = (Hidden::default(), BTreeSet::new(), 0);
            for (behind, more) in turns {
                // The user begins at the first unread message, and ends some messages later.
                let from = (head - behind).max(0) + 1;
                hidden.begin(from);
                prop_assert!(hidden.hides(from) && hidden.hides(MAX_HEAD));
                head += more;
                hidden.end(head);
                model.extend(from..=head);
                hidden = Hidden::from_row(&hidden.to_row());
                for at in 1..=head + 3 {
                    prop_assert_eq!(hidden.hides(at), model.contains(&at), "{}", at);
                }
                let within: BTreeSet<_> = hidden.within(3, head - 2).flat_map(|(from, to)| from..=to).collect();
                prop_assert_eq!(within, model.iter().copied().filter(|at| (3..=head - 2).contains(at)).collect());
            }
        }
    }

    #[derive(Debug, Clone, Copy)]
    enum Act {
        Arrive,
        Switch,
        Read(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        prop::collection::vec(prop_oneof![3 => Just(Act::Arrive), 2 => Just(Act::Switch), 2 => (0..40_usize).prop_map(Act::Read)], 0..60)
    }

    proptest! {
        #[test]
        fn a_stream_that_follows_late_hides_the_same(acts in acts()) {
            let (mut hidden, mut switches, mut read) = (Hidden::default(), Switches::default(), 0);
            // Of each position whether it is hidden.
            let mut model: Vec<bool> = Vec::new();
            for act in acts {
                let head = i64::try_from(model.len()).unwrap();
                match act {
                    Act::Arrive => model.push(switches.hides()),
                    Act::Switch => {
                        switches.count += 1;
                        if switches.hides() {
                            model.iter_mut().skip(usize::try_from(read).unwrap()).for_each(|hides| *hides = true);
                        } else {
                            switches.shared_from = head;
                        }
                    }
                    Act::Read(to) if i64::try_from(to).unwrap().min(head) > read => {
                        hidden.follow(switches, read);
                        read = i64::try_from(to).unwrap().min(head);
                        hidden = Hidden::from_row(&hidden.to_row());
                    }
                    Act::Read(_) => {}
                }
                let mut shown = hidden.clone();
                shown.follow(switches, read);
                for (at, hides) in (1..).zip(&model) {
                    prop_assert_eq!(shown.hides(at), *hides, "{} {:?}", at, shown);
                }
                let last = (1..=read).rev().find(|at| !shown.hides(*at)).unwrap_or(0);
                prop_assert_eq!(shown.last_shown(read), last);
            }
        }
    }

    #[test]
    fn above_the_bound_more_is_hidden_and_never_less() {
        let mut hidden = Hidden::default();
        for n in 1..=300 {
            hidden.begin(n * 10);
            hidden.end(n * 10 + 1);
        }
        assert!((1..=300).all(|n| hidden.hides(n * 10) && hidden.hides(n * 10 + 1)));
        assert_eq!((hidden.within(1, MAX_HEAD).count(), hidden.changes()), (MAX_HIDDEN_RUNS, 600));
        assert!(!hidden.hides(9) && hidden.hides(15) && !hidden.hides(2995), "the oldest became one");
        assert_eq!(Hidden::from_row(""), Hidden::default());
        assert_eq!(Hidden::default().to_row(), "");
    }
}
