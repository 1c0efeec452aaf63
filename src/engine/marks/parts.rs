//! How a cache entry holds marks and a user's own row: a short field and a text for each number.
//! The other fields of an entry are the features' (their row sets); `crate::engine::entries` lists
//! all of them.

use crate::cache::Parts;
use crate::engine::marks::store::{NOT_ENROLLED, User};
use crate::engine::marks::{Kind, Mark, MarkKey};

/// A field and its text.
pub type Part = (Box<str>, Box<str>);

/// A mark as a part; None for those that no entry holds.
#[must_use]
pub fn mark_part(key: &MarkKey, mark: &Mark) -> Option<Part> {
    let name = &key.name;
    match key.kind {
        Kind::Counter => Some((format!("c:{name}").into(), format!("{} {}", mark.unread(), mark.head()).into())),
        Kind::Broadcast => Some((format!("b:{name}").into(), mark.mark().to_string().into())),
        Kind::Dot => Some((format!("d:{name}").into(), mark.mark().to_string().into())),
        Kind::View | Kind::Post | Kind::Group | Kind::BroadcastState => None,
    }
}

/// What the user's own row gives.
#[must_use]
pub fn user_parts(row: &User) -> [Part; 3] {
    [
        ("e".into(), row.enrolled.to_string().into()),
        ("f".into(), row.feed.to_string().into()),
        ("h".into(), format!("{} {}", row.direct_unread, row.direct_chats).into()),
    ]
}

/// Direct messages: unread, from how many peers.
pub(crate) fn directs(parts: &Parts) -> (i64, i64) {
    let numbers = parts.get("h").and_then(|text| text.split_once(' '));
    numbers.and_then(|(unread, peers)| Some((unread.parse().ok()?, peers.parse().ok()?))).unwrap_or_default()
}

/// The number in a part, from the first place on; `default` where there is none.
fn number(text: Option<&str>, default: i64) -> i64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The fields of an entry that hold one number each, with this prefix, in the order of their names.
pub(crate) fn numbers<'a>(parts: &'a Parts, prefix: &'a str) -> impl Iterator<Item = (&'a str, i64)> {
    parts.iter().filter_map(move |(field, text)| Some((field.strip_prefix(prefix)?, text.parse().ok()?)))
}

/// The fields of an entry that hold an unread number and a head each, with this prefix, in the
/// order of their names: name, unread, head.
pub(crate) fn counters<'a>(parts: &'a Parts, prefix: &'a str) -> impl Iterator<Item = (&'a str, i64, i64)> {
    parts.iter().filter_map(move |(field, text)| {
        let (unread, head) = text.split_once(' ')?;
        Some((field.strip_prefix(prefix)?, unread.parse::<i64>().ok()?.max(0), head.parse().ok()?))
    })
}

/// The head of the broadcast state at which the user was enrolled.
pub(crate) fn enrolled(parts: &Parts) -> i64 {
    number(parts.get("e"), NOT_ENROLLED)
}

/// The revision at which the list behind the feed changed last; 0 where there is no list.
pub(crate) fn feed(parts: &Parts) -> i64 {
    number(parts.get("f"), 0)
}

/// The mark of a channel or a dot.
pub(crate) fn mark(parts: &Parts, prefix: &str, name: &str) -> i64 {
    number(parts.get(&format!("{prefix}{name}")), 0)
}
