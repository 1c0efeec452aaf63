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
use crate::engine::marks::parts::{Part, mark_part, user_parts};
use crate::features::groups::part::group_part;
use crate::features::notifications::store::notification_part;
use crate::features::relations::Versions;
use crate::features::relations::rows::lists_part;
use crate::summary::snapshot::Snapshot;

/// What the cache may be filled with.
#[must_use]
pub fn entry_of(snapshot: &Snapshot) -> Entry {
    let mut parts: Parts = snapshot.marks.iter().filter_map(|(key, mark)| mark_part(key, mark)).collect();
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
