//! Long values in pieces, so that a user's hash stays compact.
//!
//! Redis keeps a hash in one piece of memory while no value is longer than 64 bytes
//! (`hash-max-listpack-value`); else it takes more than twice as much. A full piece says that another
//! one follows, in the field with the next number: `u`, `u+1`, `u+2`. The last one is short, or empty.
//! So a value that became shorter leaves pieces behind that nobody reads, until the next fill.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::cache::Parts;

/// How long a piece is.
const PIECE_BYTES: usize = 64;

/// A longer value stays whole: in so many pieces it would not be compact either.
const MAX_PIECES: usize = 16;

/// The fields and values in which a part is kept.
pub(super) fn split<'a>(field: &'a str, value: &'a str) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> {
    let is_split = value.len() >= PIECE_BYTES && value.len() < PIECE_BYTES * MAX_PIECES && value.is_ascii();
    let (pieces, length) = if is_split { (value.len() / PIECE_BYTES + 1, PIECE_BYTES) } else { (1, value.len()) };
    (0..pieces).map(move |at| {
        let piece = value.get(at * length..value.len().min((at + 1) * length)).unwrap_or_default();
        (if at == 0 { Cow::Borrowed(field) } else { Cow::Owned(format!("{field}+{at}")) }, piece)
    })
}

/// Further pieces as they were found, in any order: by field and number.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<(String, usize), String>);

impl Pieces {
    /// Takes a field that is a further piece of another; whether it is one.
    pub(super) fn take(&mut self, field: &str, value: &str) -> bool {
        let Some((field, at)) = field.split_once('+') else { return false };
        if let Ok(at) = at.parse() {
            self.0.insert((field.to_owned(), at), value.to_owned());
        }
        true
    }

    /// Puts the values together.
    pub(super) fn join(self, parts: &mut Parts) {
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        for ((field, at), piece) in &self.0 {
            // A value that is no ASCII was never split.
            let Some(first) = parts.get(field).filter(|first| first.is_ascii()) else { continue };
            let value = values.entry(field).or_insert_with(|| first.to_owned());
            // All before this one are full, and so many: else it is left over from a longer value.
            if value.len() == at * PIECE_BYTES {
                value.push_str(piece);
            }
        }
        let values: Vec<_> = values.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
        values.iter().for_each(|(field, value)| parts.insert(field, value));
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
            hash.extend(split("u", value).map(|(field, piece)| (field.into_owned(), piece.to_owned())));
        }
        let (mut parts, mut pieces) = (Parts::new(), Pieces::default());
        for (field, value) in hash.iter().rev() {
            if !pieces.take(field, value) {
                parts.insert(field, value);
            }
        }
        pieces.join(&mut parts);
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
            let pieces: Vec<_> = split("u", &value).collect();
            assert_eq!(pieces.iter().map(|(_, piece)| *piece).collect::<String>(), value);
            let whole = length >= 64 * 16;
            assert_eq!(
                (pieces.len(), pieces.iter().all(|(_, piece)| piece.len() <= 64)),
                (if whole { 1 } else { length / 64 + 1 }, !whole),
                "{length}"
            );
            assert_eq!(kept(std::slice::from_ref(&value)).get("u"), Some(value.as_str()));
        }
        let accents = "é".repeat(60);
        assert_eq!(split("u", &accents).count(), 1, "a piece is a text");
    }
}
