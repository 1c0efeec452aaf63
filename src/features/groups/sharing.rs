//! Whether a user shares receipts: in each of the user's groups, which messages are hidden.
//!
//! Hiding begins at the first message that the user has not read, and ends at the group's head of
//! the moment when the user shares again. So it is a run of messages in each membership. A
//! membership that ends keeps its open run: it has no later messages. One that begins while the
//! user hides is hidden from its beginning (`members.rs`).

use super::Membership;
use super::rows::GroupRows;
use crate::base::ids::{GroupId, UserId};
use crate::engine::lanes::{Needs, Rows};
use crate::engine::marks::{Stream, StreamKey};

/// Asks for what [`set_sharing`] needs of these groups, which the caller found to be the user's.
pub fn need_memberships(needs: &mut Needs, user: UserId, groups: &[GroupId]) {
    for group in groups {
        needs.seen_head(StreamKey::group(*group));
        needs.of::<GroupRows>().members.insert((user, *group));
    }
}

/// Whether these are all groups that the user is in. Who joins or leaves writes the user's row,
/// which is locked.
#[must_use]
pub fn are_all(rows: &Rows, user: UserId, groups: &[GroupId]) -> bool {
    let is_in = |group: &GroupId| rows.get::<GroupRows>().latest(user, *group).is_some_and(|(_, of)| of.is_open());
    i64::try_from(groups.len()) == Ok(rows.user(user).chat_groups) && groups.iter().all(is_in)
}

/// The first message that the user has not read: neither recalled, nor read alone.
fn first_unread(of: &Membership, head: &Stream) -> i64 {
    let read = of.reading.read_seq();
    // Below the floor the head does not tell what was recalled. More is hidden then, and never less.
    if read < head.floor { read + 1 } else { of.reading.extra_runs().with(&head.retracted).first_free_above(read) }
}

/// From now on the user shares receipts in these groups, or hides them. They are each there once.
pub fn set_sharing(rows: &mut Rows, user: UserId, groups: &[GroupId], shares: bool) {
    for group in groups {
        let Some((span, mut of)) = rows.get::<GroupRows>().latest(user, *group).map(|(span, of)| (span, of.clone())) else { continue };
        if shares {
            of.hidden.end(rows.head(&StreamKey::group(*group)).head);
        } else {
            of.hidden.begin(first_unread(&of, &rows.head(&StreamKey::group(*group))));
        }
        rows.get_mut::<GroupRows>().set_membership(user, *group, span, of);
    }
}
