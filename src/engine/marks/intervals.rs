//! A set of positions as sorted, disjoint, non-adjacent runs; in a row as text: `117 119-121`.

use std::borrow::Cow;
use std::fmt;

/// A set of positions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// Reads the text of a row; what cannot be read is left out.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut set = Self::default();
        for run in text.split_ascii_whitespace() {
            let (from, to) = run.split_once('-').unwrap_or((run, run));
            if let (Ok(from), Ok(to)) = (from.parse(), to.parse()) {
                set.insert(from, to);
            }
        }
        set
    }

    /// How many positions are in the set.
    #[must_use]
    pub fn len(&self) -> i64 {
        self.0.iter().map(|(from, to)| to - from + 1).sum()
    }

    /// Whether no position is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many runs the set has.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.0.len()
    }

    /// Whether this position is in the set.
    #[must_use]
    pub fn contains(&self, at: i64) -> bool {
        let next = self.0.partition_point(|(from, _)| *from <= at);
        next.checked_sub(1).and_then(|i| self.0.get(i)).is_some_and(|(_, to)| at <= *to)
    }

    /// Adds the positions `from` to `to`, both included.
    pub fn insert(&mut self, from: i64, to: i64) {
        if from > to {
            return;
        }
        // The runs that overlap or touch become one.
        let first = self.0.partition_point(|(_, end)| end.saturating_add(1) < from);
        let after = self.0.partition_point(|(start, _)| *start <= to.saturating_add(1));
        let merged = self.0.drain(first..after.max(first)).fold((from, to), |(a, b), (start, end)| (a.min(start), b.max(end)));
        self.0.insert(first, merged);
    }

    /// Every position, in order.
    pub fn positions(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().flat_map(|(from, to)| *from..=*to)
    }

    /// The position of the `n`-th (from 1) number that is not in the set, counted downwards from
    /// `head`.
    #[must_use]
    pub fn nth_free_below(&self, head: i64, n: i64) -> i64 {
        let mut at = head;
        let mut left = n;
        for (from, to) in self.0.iter().rev() {
            let free = at - to;
            if left <= free {
                return at - left + 1;
            }
            left -= free;
            at = from - 1;
        }
        at - left + 1
    }

    /// How many positions of the set are above `above` and not above `up_to`.
    #[must_use]
    pub fn count_within(&self, above: i64, up_to: i64) -> i64 {
        let first = self.0.partition_point(|(_, to)| *to <= above);
        let within = self.0.iter().skip(first).take_while(|(from, _)| *from <= up_to);
        within.map(|(from, to)| (*to).min(up_to) - (*from).max(above + 1) + 1).sum()
    }

    /// The lowest position above this one that is not in the set.
    #[must_use]
    pub fn first_free_above(&self, at: i64) -> i64 {
        let next = self.0.partition_point(|(_, to)| *to <= at);
        match self.0.get(next) {
            Some((from, to)) if *from <= at + 1 => to + 1,
            _ => at + 1,
        }
    }

    /// The highest position up to this one that is not in the set.
    #[must_use]
    pub fn last_free_to(&self, at: i64) -> i64 {
        let next = self.0.partition_point(|(from, _)| *from <= at);
        match next.checked_sub(1).and_then(|i| self.0.get(i)) {
            Some((from, to)) if at <= *to => from - 1,
            _ => at,
        }
    }

    /// The runs within these positions, cut off at both.
    pub fn within(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let first = self.0.partition_point(|(_, end)| *end < from);
        let runs = self.0.iter().skip(first).take_while(move |(start, _)| *start <= to);
        runs.map(move |(start, end)| ((*start).max(from), (*end).min(to)))
    }

    /// Makes one run of the two lowest, with what lies between them.
    pub fn join_first(&mut self) {
        if let [(_, to), (from, _), ..] = self.0.as_slice() {
            self.insert(*to, *from);
        }
    }

    /// What is in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        other.0.iter().for_each(|(from, to)| all.insert(*from, *to));
        all
    }

    /// The same; neither is copied where the other is empty.
    #[must_use]
    pub fn with<'a>(&'a self, other: &'a Self) -> Cow<'a, Self> {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => Cow::Borrowed(other),
            (_, true) => Cow::Borrowed(self),
            _ => Cow::Owned(self.union(other)),
        }
    }

    /// The highest position in the set.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        self.0.last().map(|(_, to)| *to)
    }

    /// The lowest position in the set.
    #[must_use]
    pub fn first(&self) -> Option<i64> {
        self.0.first().map(|(from, _)| *from)
    }

    /// Removes the lowest run and returns where it ended.
    pub fn drop_first(&mut self) -> Option<i64> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0).1) }
    }

    /// Removes one position. Returns whether it was in the set.
    pub fn remove(&mut self, at: i64) -> bool {
        let next = self.0.partition_point(|(from, _)| *from <= at);
        let Some((index, (from, to))) = next.checked_sub(1).and_then(|i| Some((i, *self.0.get(i)?))) else { return false };
        if at > to {
            return false;
        }
        let rest = [(from, at - 1), (at + 1, to)].into_iter().filter(|(from, to)| from <= to);
        self.0.splice(index..=index, rest);
        true
    }

    /// Removes all positions up to and including `mark`.
    pub fn drop_up_to(&mut self, mark: i64) {
        self.0.retain(|(_, to)| *to > mark);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(mark + 1);
        }
    }

    /// Removes all positions above `head`.
    pub fn drop_above(&mut self, head: i64) {
        self.0.retain(|(from, _)| *from <= head);
        if let Some(last) = self.0.last_mut() {
            last.1 = last.1.min(head);
        }
    }

    /// Removes the run that begins at exactly this position and returns where it ended.
    pub fn take_run_at(&mut self, start: i64) -> Option<i64> {
        let (from, to) = *self.0.first()?;
        if from != start {
            return None;
        }
        self.0.remove(0);
        Some(to)
    }
}

impl fmt::Display for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (from, to)) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            if from == to { write!(f, "{space}{from}")? } else { write!(f, "{space}{from}-{to}")? }
        }
        Ok(())
    }
}
