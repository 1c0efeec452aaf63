//! How far a member has read, in one membership: up to a message, and single messages above it.
//!
//! This is all that receipts are made of: who has read a message is asked of the members' own rows,
//! so a message costs no byte for it, and who catches up on many messages writes one row. The
//! single messages are a roaring bitmap (Lemire et al., "Roaring Bitmaps: Implementation of an
//! Optimized Software Library", 2018), which is empty for anyone who reads from top to bottom.

use roaring::RoaringTreemap;

use crate::engine::marks::Intervals;

/// How many bytes the single messages of a membership may take. Reading up to them makes room.
pub const MAX_EXTRA_BYTES: usize = 32 * 1024;

/// Too many single messages, too far apart: more than [`MAX_EXTRA_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooScattered;

/// How far a member has read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    read_seq: i64,
    /// Above `read_seq + 1`: what is right above it is taken into it.
    extra: RoaringTreemap,
}

impl Reading {
    /// Nothing after this message is read.
    #[must_use]
    pub fn from_seq(read_seq: i64) -> Self {
        Self { read_seq: read_seq.max(0), extra: RoaringTreemap::new() }
    }

    /// As a row holds it.
    #[must_use]
    pub fn from_row(read_seq: i64, extra: &[u8]) -> Self {
        let extra = (!extra.is_empty()).then(|| RoaringTreemap::deserialize_from(extra));
        let extra = extra.and_then(|extra| {
            extra.inspect_err(|error| tracing::error!(%error, "a membership's bitmap cannot be read; its messages count as unread")).ok()
        });
        let mut this = Self { read_seq: read_seq.max(0), extra: extra.unwrap_or_default() };
        this.settle();
        this
    }

    /// The bitmap as a row holds it; nothing where no bit is set.
    #[must_use]
    pub fn extra_data(&self) -> Vec<u8> {
        let mut data = Vec::new();
        // Writing into memory does not fail.
        if !self.extra.is_empty() && self.extra.serialize_into(&mut data).is_err() {
            data.clear();
        }
        data
    }

    /// How many bytes the bitmap takes.
    #[must_use]
    pub fn extra_bytes(&self) -> usize {
        if self.extra.is_empty() { 0 } else { self.extra.serialized_size() }
    }

    /// The single messages that are read, from this one to that one.
    pub fn extra_within(&self, from: i64, to: i64) -> impl Iterator<Item = i64> + '_ {
        let mut all = self.extra.iter();
        all.advance_to(u64::try_from(from).unwrap_or(0));
        all.filter_map(|seq| i64::try_from(seq).ok()).take_while(move |seq| *seq <= to)
    }

    /// How many single messages are read from this one to that one.
    #[must_use]
    pub fn extra_count(&self, from: i64, to: i64) -> i64 {
        let up_to = |seq: i64| u64::try_from(seq).map_or(0, |seq| self.extra.rank(seq));
        i64::try_from(up_to(to).saturating_sub(up_to(from - 1))).unwrap_or(i64::MAX)
    }

    /// Up to which message all is read.
    #[must_use]
    pub fn read_seq(&self) -> i64 {
        self.read_seq
    }

    /// How many single messages above it are read.
    #[must_use]
    pub fn extra_len(&self) -> i64 {
        i64::try_from(self.extra.len()).unwrap_or(i64::MAX)
    }

    /// Whether a message is read.
    #[must_use]
    pub fn has_read(&self, seq: i64) -> bool {
        seq <= self.read_seq || u64::try_from(seq).is_ok_and(|seq| self.extra.contains(seq))
    }

    /// The single messages as runs.
    #[must_use]
    pub fn extra_runs(&self) -> Intervals {
        let mut runs = Intervals::default();
        self.extra.iter().filter_map(|seq| i64::try_from(seq).ok()).for_each(|seq| runs.insert(seq, seq));
        runs
    }

    /// All up to this message is read. Never moves backwards. Returns whether anything changed.
    pub fn read_up_to(&mut self, seq: i64) -> bool {
        if seq <= self.read_seq {
            return false;
        }
        self.read_seq = seq;
        self.settle();
        true
    }

    /// This message alone is read. Returns whether that is new.
    ///
    /// # Errors
    /// [`TooScattered`]; then nothing has changed.
    pub fn read_one(&mut self, seq: i64) -> Result<bool, TooScattered> {
        if self.has_read(seq) {
            return Ok(false);
        }
        let Ok(bit) = u64::try_from(seq) else { return Ok(false) };
        self.extra.insert(bit);
        self.settle();
        if self.extra.serialized_size() > MAX_EXTRA_BYTES {
            self.extra.remove(bit);
            return Err(TooScattered);
        }
        Ok(true)
    }

    /// The same, but nothing from this message on is read, aside from the member's `own` messages.
    ///
    /// # Errors
    /// [`TooScattered`].
    pub fn unread_from(&self, from: i64, own: impl IntoIterator<Item = i64>) -> Result<Self, TooScattered> {
        let from = from.max(1);
        let mut this = Self { read_seq: self.read_seq.min(from - 1), extra: self.extra.clone() };
        let first = u64::try_from(from).unwrap_or(u64::MAX);
        this.extra.remove_range(first..);
        this.extra.extend(own.into_iter().filter_map(|seq| u64::try_from(seq).ok()).filter(|seq| *seq >= first));
        this.settle();
        if this.extra.serialized_size() > MAX_EXTRA_BYTES { Err(TooScattered) } else { Ok(this) }
    }

    /// Forgets what lies below, and takes in what lies right above.
    fn settle(&mut self) {
        let up_to = u64::try_from(self.read_seq).unwrap_or(0);
        self.extra.remove_range(0..=up_to);
        while let Some(first) = self.extra.min().filter(|first| i64::try_from(*first).is_ok_and(|first| first == self.read_seq + 1)) {
            self.extra.remove(first);
            self.read_seq += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        UpTo(i64),
        One(i64),
        UnreadFrom(i64, BTreeSet<i64>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let own = prop::collection::btree_set(1..80_i64, 0..5);
        prop_oneof![
            1 => (0..80_i64).prop_map(Step::UpTo),
            3 => (1..80_i64).prop_map(Step::One),
            1 => (1..80_i64, own).prop_map(|(from, own)| Step::UnreadFrom(from, own)),
        ]
    }

    proptest! {
        #[test]
        fn a_reading_is_a_set(from in 0..20_i64, steps in prop::collection::vec(step(), 0..60)) {
            let (mut reading, mut model) = (Reading::from_seq(from), (1..=from).collect::<BTreeSet<_>>());
            for step in steps {
                match step {
                    Step::UpTo(seq) => {
                        let changed = reading.read_up_to(seq);
                        // A step to what is read already by single messages changes nothing.
                        let new = (1..=seq).any(|seq| model.insert(seq));
                        model.extend(1..=seq.max(0));
                        prop_assert!(!new || changed);
                    }
                    Step::One(seq) => prop_assert_eq!(reading.read_one(seq), Ok(model.insert(seq))),
                    Step::UnreadFrom(from, own) => {
                        model.retain(|seq| *seq < from);
                        model.extend(own.iter().filter(|seq| **seq >= from));
                        reading = reading.unread_from(from, own).unwrap();
                    }
                }
                reading = Reading::from_row(reading.read_seq(), &reading.extra_data());
                for seq in 1..90 {
                    prop_assert_eq!(reading.has_read(seq), model.contains(&seq));
                }
                prop_assert!(!reading.has_read(reading.read_seq() + 1), "what is right above is taken in");
                prop_assert_eq!(reading.extra_runs().len(), reading.extra_len());
            }
        }
    }

    #[test]
    fn what_is_scattered_too_far_is_refused() {
        let mut reading = Reading::default();
        let refused = (1..).map(|n| n * 70_000).find(|seq| reading.read_one(*seq).is_err()).unwrap();
        let before = reading.clone();
        assert_eq!(reading.read_one(refused + 70_000), Err(TooScattered));
        assert_eq!(reading, before);
        assert!(reading.extra_data().len() <= MAX_EXTRA_BYTES);
        assert!(reading.read_up_to(refused) && reading.extra_data().is_empty());
    }

    #[test]
    fn a_broken_bitmap_counts_as_unread() {
        let reading = Reading::from_row(7, &[1, 2, 3]);
        assert!(reading.has_read(7) && !reading.has_read(8));
    }
}
