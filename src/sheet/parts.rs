//! How a cache entry holds a user's own state: a short field and a text for each number. What users share is not in it; a sheet is both together.
//!
//! | field | text | what |
//! | --- | --- | --- |
//! | `c:mention` | `3 120` | a counter: unread, head |
//! | `b:system` | `57` | a channel of broadcasts: the mark |
//! | `d:mall` | `4` | a dot: the mark |
//! | `m:notice` | `1` | notifications of a type: unread (they were called messages once; the letter stays, as entries outlive an upgrade) |
//! | `e` | `812` | the enrolment: the head of the board then |
//! | `l` | `917 12` | the revisions at which the lists of those whom the user follows, and blocks, changed last |
//! | `f` | `918` | the revision at which the list behind the feed changed last |
//! | `g:42` | `120 1767225600123m 122-124` | a group: read up to, when the user was there last, `m` where it is muted, single messages above that are read; empty: not in it any more |
//! | `h` | `6 2` | direct messages: unread, from how many peers |

use crate::cache::{Entry, Parts};
use crate::clock::UnixMs;
use crate::groups::GroupMark;
use crate::ids::GroupId;
use crate::marks::snapshot::Snapshot;
use crate::marks::store::{NOT_ENROLLED, User};
use crate::marks::{Intervals, Kind, Mark, MarkKey};
use crate::relations::Versions;

/// A field and its text.
pub(crate) type Part = (Box<str>, Box<str>);

/// The kinds of marks that are forgotten with a user who was not seen for long.
pub const FORGOTTEN: [Kind; 2] = [Kind::Broadcast, Kind::Dot];

/// A mark as a part; None for those that no entry holds.
#[must_use]
pub fn part(key: &MarkKey, mark: &Mark) -> Option<Part> {
    let name = &key.name;
    match key.kind {
        Kind::Counter => Some((format!("c:{name}").into(), format!("{} {}", mark.unread(), mark.head()).into())),
        Kind::Broadcast => Some((format!("b:{name}").into(), mark.mark().to_string().into())),
        Kind::Dot => Some((format!("d:{name}").into(), mark.mark().to_string().into())),
        Kind::View | Kind::Post | Kind::Group | Kind::Board => None,
    }
}

/// How many notifications of a type are unread, as a part.
#[must_use]
pub fn notification_part(kind: &str, unread: i64) -> Part {
    (format!("m:{kind}").into(), unread.to_string().into())
}

/// How far the user has read a group, as a part; an empty one where the user has left it.
#[must_use]
pub fn group_part(group: GroupId, mark: Option<&GroupMark>) -> Part {
    let text = |mark: &GroupMark| {
        let (muted, space) = (if mark.muted { "m" } else { "" }, if mark.extra.is_empty() { "" } else { " " });
        format!("{} {}{muted}{space}{}", mark.read_seq, mark.at.0, mark.extra)
    };
    (format!("g:{group}").into(), mark.map(text).unwrap_or_default().into())
}

/// The groups of an entry.
pub(super) fn groups(parts: &Parts) -> impl Iterator<Item = (GroupId, GroupMark)> {
    parts.starting_with("g:").filter_map(|(group, text)| {
        let (read_seq, rest) = text.split_once(' ')?;
        let (at, extra) = rest.split_once(' ').unwrap_or((rest, ""));
        let (at, muted) = at.strip_suffix('m').map_or((at, false), |at| (at, true));
        let (read_seq, at) = (read_seq.parse().ok()?, UnixMs(at.parse().ok()?));
        Some((group.parse().ok()?, GroupMark { read_seq, extra: Intervals::parse(extra), muted, at }))
    })
}

/// Direct messages: unread, from how many peers.
pub(super) fn directs(parts: &Parts) -> (i64, i64) {
    let numbers = parts.get("h").and_then(|text| text.split_once(' '));
    numbers.and_then(|(unread, peers)| Some((unread.parse().ok()?, peers.parse().ok()?))).unwrap_or_default()
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

/// When the user's own lists changed last, as a part.
#[must_use]
pub fn lists_part(versions: Versions) -> Part {
    ("l".into(), format!("{} {}", versions.following, versions.blocks).into())
}

/// When the user's own lists changed last, as an entry has it.
#[must_use]
pub fn list_versions(entry: &Entry) -> Versions {
    let mut numbers = entry.parts.get("l").unwrap_or_default().split(' ').map(|text| number(Some(text), 0));
    Versions { following: numbers.next().unwrap_or(0), blocks: numbers.next().unwrap_or(0) }
}

/// What the cache may be filled with.
#[must_use]
pub fn entry_of(snapshot: &Snapshot) -> Entry {
    let mut parts: Parts = snapshot.marks.iter().filter_map(|(key, mark)| part(key, mark)).collect();
    parts.extend(snapshot.notifications.iter().map(|(kind, unread)| notification_part(kind, *unread)));
    // Left out where they say nothing, to save room.
    let says = |(field, _): &Part| match &**field {
        "e" => snapshot.row.is_enrolled(),
        "f" => snapshot.row.feed > 0,
        _ => snapshot.row.direct_chats > 0,
    };
    parts.extend(snapshot.groups.iter().map(|(group, mark)| group_part(*group, Some(mark))));
    parts.extend(user_parts(&snapshot.row).into_iter().filter(says));
    parts.extend(Some(snapshot.lists).filter(|lists| *lists != Versions::default()).map(lists_part));
    Entry { revision: snapshot.row.revision, parts }
}

/// The number in a part, from the first place on; `default` where there is none.
fn number(text: Option<&str>, default: i64) -> i64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The fields of an entry that hold one number each, with this prefix, in the order of their names.
pub(super) fn numbers<'a>(parts: &'a Parts, prefix: &'a str) -> impl Iterator<Item = (&'a str, i64)> {
    parts.iter().filter_map(move |(field, text)| Some((field.strip_prefix(prefix)?, text.parse().ok()?)))
}

/// The counters of an entry in the order of their names: name, unread, head.
pub(super) fn counters(parts: &Parts) -> impl Iterator<Item = (&str, i64, i64)> {
    parts.iter().filter_map(|(field, text)| {
        let (unread, head) = text.split_once(' ')?;
        Some((field.strip_prefix("c:")?, unread.parse::<i64>().ok()?.max(0), head.parse().ok()?))
    })
}

/// The head of the board at which the user was enrolled.
pub(super) fn enrolled(parts: &Parts) -> i64 {
    number(parts.get("e"), NOT_ENROLLED)
}

/// The revision at which the list behind the feed changed last; 0 where there is no list.
pub(super) fn feed(parts: &Parts) -> i64 {
    number(parts.get("f"), 0)
}

/// The mark of a channel or a dot.
pub(super) fn mark(parts: &Parts, prefix: &str, name: &str) -> i64 {
    number(parts.get(&format!("{prefix}{name}")), 0)
}
