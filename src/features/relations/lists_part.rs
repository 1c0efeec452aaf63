//! When a user's own lists changed last, as a part of the user's entry in the cache.

use super::Versions;
use crate::cache::Entry;
use crate::engine::marks::parts::Part;

/// When the user's own lists changed last, as a part of an entry in the cache.
#[must_use]
pub(super) fn lists_part(versions: Versions) -> Part {
    let Versions { following, blocks, mutes, requests } = versions;
    let text = match (mutes, requests) {
        (0, 0) => format!("{following} {blocks}"),
        (_, 0) => format!("{following} {blocks} {mutes}"),
        _ => format!("{following} {blocks} {mutes} {requests}"),
    };
    ("l".into(), text.into())
}

/// When the user's own lists changed last, as an entry has it.
#[must_use]
pub(super) fn list_versions(entry: &Entry) -> Versions {
    let mut numbers = entry.parts.get("l").unwrap_or_default().split(' ').map(|text| text.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    Versions { following: next(), blocks: next(), mutes: next(), requests: next() }
}
