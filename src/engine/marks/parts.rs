//! How a cache entry holds a user's own row: `u` with enrolment, feed, direct messages, and the
//! marks as the row has them, and `s` with the settings. The other fields of an entry are the features' (their row
//! sets); `crate::engine::entries` lists all of them.

use std::iter::Peekable;

use super::Kind;
use super::settings::{self, LeftOut, ListVisibility};
use super::user_marks::{PackedMark, find, of_kind};
use super::users::{NOT_ENROLLED, User};
use crate::cache::Parts;

/// A field and its text.
pub type Part = (Box<str>, Box<str>);

/// The field of the user's own row.
const FIELD: &str = "u";

/// Whether an entry holds the same of both rows.
#[must_use]
pub fn shows_same(one: &User, other: &User) -> bool {
    let numbers = |row: &User| (row.enrolled, row.feed, row.direct_unread, row.direct_chats);
    numbers(one) == numbers(other) && one.marks == other.marks
}

/// The user's own row as an entry holds it.
#[must_use]
pub fn user_part(row: &User) -> Part {
    let numbers = [row.enrolled, row.feed, row.direct_unread, row.direct_chats];
    // Zeros at the end are left out, to save room.
    let said = 1 + numbers.iter().rposition(|number| *number != 0).unwrap_or(0);
    let numbers: Vec<_> = numbers.iter().take(said).map(i64::to_string).collect();
    (FIELD.into(), format!("{};{}", numbers.join(" "), row.marks.as_str()).into())
}

/// The field of the user's settings.
const SETTINGS: &str = "s";

/// The user's settings as an entry holds them.
#[must_use]
pub fn settings_part(row: &User) -> Part {
    (SETTINGS.into(), row.settings.as_str().into())
}

fn settings_of(parts: &Parts) -> &str {
    parts.get(SETTINGS).unwrap_or_default()
}

/// What the total leaves out (`counters.like`), sorted.
pub(crate) fn not_in_total(parts: &Parts) -> impl Iterator<Item = &str> {
    settings::not_in_total(settings_of(parts))
}

/// The names of a kind that the total leaves out.
pub(crate) fn left_out<'a>(parts: &'a Parts, kind: &str) -> LeftOut<'a> {
    LeftOut::new(not_in_total(parts), kind)
}

/// Whether others see which messages the user has read.
pub(crate) fn shares_receipts(parts: &Parts) -> bool {
    settings::shares_receipts(settings_of(parts))
}

/// Whether a follow of the user is a request at first.
pub(crate) fn approves_follows(parts: &Parts) -> bool {
    settings::approves_follows(settings_of(parts))
}

/// Whether the user is erased.
pub(crate) fn is_erased(parts: &Parts) -> bool {
    settings::is_erased(settings_of(parts))
}

/// Who may see the user's lists of follows.
pub(crate) fn lists(parts: &Parts) -> ListVisibility {
    settings::lists(settings_of(parts))
}

/// The four numbers of the user's own row, and the text of the marks.
fn user(parts: &Parts) -> ([i64; 4], &str) {
    let (numbers, marks) = parts.get(FIELD).and_then(|text| text.split_once(';')).unwrap_or_default();
    let mut numbers = numbers.split(' ');
    let mut next = |default| numbers.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    ([next(NOT_ENROLLED), next(0), next(0), next(0)], marks)
}

/// The head of the broadcast state at which the user was enrolled.
pub(crate) fn enrolled(parts: &Parts) -> i64 {
    user(parts).0[0]
}

/// The revision at which the list behind the feed changed last; 0 where there is no list.
pub(crate) fn feed(parts: &Parts) -> i64 {
    user(parts).0[1]
}

/// Direct messages: unread, from how many peers.
pub(crate) fn directs(parts: &Parts) -> (i64, i64) {
    let ([.., unread, peers], _) = user(parts);
    (unread, peers)
}

/// The user's counters, in the order of their names: name, unread, head.
pub(crate) fn counters(parts: &Parts) -> impl Iterator<Item = (&str, i64, i64)> {
    of_kind(user(parts).1, Kind::Counter).map(|packed| (packed.name, packed.unread(), packed.head))
}

/// The mark of a channel or a dot.
pub(crate) fn mark(parts: &Parts, kind: Kind, name: &str) -> i64 {
    find(user(parts).1, kind, name).map_or(0, |packed| packed.mark())
}

/// The marks of a kind, for one walk over the streams in the order of their names.
pub(crate) struct Positions<I: Iterator>(Peekable<I>);

/// The user's marks of channels or dots.
pub(crate) fn positions(parts: &Parts, kind: Kind) -> Positions<impl Iterator<Item = PackedMark<'_>>> {
    Positions(of_kind(user(parts).1, kind).peekable())
}

impl<'a, I: Iterator<Item = PackedMark<'a>>> Positions<I> {
    /// The mark of this stream; the names must come in their order.
    pub(crate) fn of(&mut self, name: &str) -> i64 {
        while self.0.next_if(|packed| packed.name < name).is_some() {}
        self.0.next_if(|packed| packed.name == name).map_or(0, |packed| packed.mark())
    }
}

/// The fields of an entry with this prefix, in the order of their names.
pub(crate) fn texts<'a>(parts: &'a Parts, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    parts.iter().filter_map(move |(field, text)| Some((field.strip_prefix(prefix)?, text)))
}
