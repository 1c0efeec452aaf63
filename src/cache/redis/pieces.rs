//! Long values in pieces, so that a user's hash stays compact.
//!
//! Redis keeps a hash in one piece of memory while no value is longer than 64 bytes
//! (`hash-max-listpack-value`); else it takes more than twice as much. A full piece says that another
//! one follows, in the field with the next number: `u`, `u+1`, `u+2`. The last one is short, or empty.
//! So a value that became shorter leaves pieces behind that nobody reads, until the next fill.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::packing::{pack, unpack};
use crate::cache::Parts;

/// How long a piece is.
const PIECE_BYTES: usize = 64;

/// A longer value stays whole: in so many pieces it would not be compact either.
const MAX_PIECES: usize = 16;

/// A part with its value as Redis holds it.
pub(super) struct Packed<'a> {
    field: &'a str,
    value: Cow<'a, [u8]>,
}

impl<'a> Packed<'a> {
    pub(super) fn new(field: &'a str, value: &'a str) -> Self {
        Self { field, value: pack(value) }
    }

    fn is_split(&self) -> bool {
        self.value.len() >= PIECE_BYTES && self.value.len() < PIECE_BYTES * MAX_PIECES
    }

    /// In how many pieces it is kept.
    pub(super) fn count(&self) -> usize {
        if self.is_split() { self.value.len() / PIECE_BYTES + 1 } else { 1 }
    }

    /// The fields and values in which it is kept.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (Cow<'a, str>, &[u8])> {
        let length = if self.is_split() { PIECE_BYTES } else { self.value.len() };
        (0..self.count()).map(move |at| {
            let piece = self.value.get(at * length..self.value.len().min((at + 1) * length)).unwrap_or_default();
            (if at == 0 { Cow::Borrowed(self.field) } else { Cow::Owned(format!("{}+{at}", self.field)) }, piece)
        })
    }
}

/// Pieces of values that have more than one, as they were found, in any order: by field and number.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<(String, usize), Vec<u8>>);

impl Pieces {
    /// Takes what a field of the hash holds: a whole value goes to the parts. None if it is not ours.
    pub(super) fn take(&mut self, field: &str, value: &[u8], parts: &mut Parts) -> Option<()> {
        let (field, at) = field.split_once('+').map_or((field, Some(0)), |(field, at)| (field, at.parse().ok()));
        let Some(at) = at else { return Some(()) };
        if at == 0 && value.len() != PIECE_BYTES {
            parts.insert(field, unpack(value)?);
        } else {
            self.0.insert((field.to_owned(), at), value.to_owned());
        }
        Some(())
    }

    /// Puts the values together. None if one is not ours.
    pub(super) fn join(self, parts: &mut Parts) -> Option<()> {
        let mut values: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for ((field, at), piece) in self.0 {
            if at == 0 {
                values.insert(field, piece);
                continue;
            }
            // All before this one are full, and so many: else it is left over from a longer value.
            if let Some(value) = values.get_mut(&field).filter(|value| value.len() == at * PIECE_BYTES) {
                value.extend(piece);
            }
        }
        values.iter().try_for_each(|(field, value)| {
            parts.insert(field, unpack(value)?);
            Some(())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As a hash that is written again and again, and read at the end.
    fn kept(values: &[String]) -> Parts {
        let mut hash = BTreeMap::new();
        for value in values {
            let packed = Packed::new("u", value);
            assert_eq!(packed.pieces().count(), packed.count());
            hash.extend(packed.pieces().map(|(field, piece)| (field.into_owned(), piece.to_owned())));
        }
        let (mut parts, mut pieces) = (Parts::new(), Pieces::default());
        for (field, value) in hash.iter().rev() {
            pieces.take(field, value, &mut parts).unwrap();
        }
        pieces.join(&mut parts).unwrap();
        parts
    }

    proptest! {
        #[test]
        fn the_last_value_is_read_whatever_was_there_before(lengths in proptest::collection::vec(0..300_usize, 1..6)) {
            let values: Vec<_> = lengths.iter().zip('a'..).map(|(length, char)| char.to_string().repeat(*length)).collect();
            let parts = kept(&values);
            prop_assert_eq!(parts.get("u"), values.last().map(String::as_str));
            prop_assert_eq!(parts.len(), 1);
        }
    }

    #[test]
    fn pieces_are_short_and_few() {
        for length in [0, 1, 63, 64, 65, 127, 128, 129, 64 * 16 - 1, 64 * 16, 5000] {
            let value = "x".repeat(length);
            let packed = Packed::new("u", &value);
            let pieces: Vec<_> = packed.pieces().collect();
            assert_eq!(pieces.iter().flat_map(|(_, piece)| *piece).copied().collect::<Vec<_>>(), value.as_bytes());
            let whole = length >= 64 * 16;
            assert_eq!(
                (pieces.len(), pieces.iter().all(|(_, piece)| piece.len() <= 64)),
                (if whole { 1 } else { length / 64 + 1 }, !whole),
                "{length}"
            );
            assert_eq!(kept(std::slice::from_ref(&value)).get("u"), Some(value.as_str()));
        }
        let accents = "é".repeat(60);
        assert_eq!(Packed::new("u", &accents).count(), 2, "a piece may end within a character");
        assert_eq!(kept(std::slice::from_ref(&accents)).get("u"), Some(accents.as_str()));
    }
}
