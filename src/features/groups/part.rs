//! How a cache entry holds the groups of a user: `g:42` has `120 1767225600123m 122-124`, which is
//! read up to, when the user was there last, `m` where it is muted, and single messages above that
//! are read. An empty text: not in the group any more.

use super::GroupMark;
use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;
use crate::cache::Parts;
use crate::engine::marks::Intervals;
use crate::engine::marks::parts::Part;

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
pub fn groups(parts: &Parts) -> impl Iterator<Item = (GroupId, GroupMark)> {
    parts.starting_with("g:").filter_map(|(group, text)| {
        let (read_seq, rest) = text.split_once(' ')?;
        let (at, extra) = rest.split_once(' ').unwrap_or((rest, ""));
        let (at, muted) = at.strip_suffix('m').map_or((at, false), |at| (at, true));
        let (read_seq, at) = (read_seq.parse().ok()?, UnixMs(at.parse().ok()?));
        Some((group.parse().ok()?, GroupMark { read_seq, extra: Intervals::parse(extra), muted, at }))
    })
}
