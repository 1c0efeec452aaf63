//! The rules of groups and their members, over the rows of a batch.

use serde::Serialize;

use super::refused::{deleted, no_member, unknown};
use super::rows::GroupRows;
use super::{Delivery, Group, GroupOut, MAX_GROUPS, MAX_MEMBERS, MemberOut, Membership, Reading};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{GroupId, UserId};
use crate::engine::events::{Event, MemberEventOut};
use crate::engine::lanes::{Answer, Rows};
use crate::engine::marks::{Hidden, Intervals, StreamKey};
use crate::features::level::{Level, LevelUntil};
use crate::features::push::{self, Scope};

/// A group that is there.
pub(super) fn known(rows: &Rows, id: GroupId) -> Result<Group, Problem> {
    let group = rows.get::<GroupRows>().group(id).ok_or_else(|| unknown(id))?;
    if group.deleted { Err(deleted(id)) } else { Ok(group) }
}

/// The user's membership now.
pub(super) fn member(rows: &Rows, group: GroupId, user: UserId) -> Result<(i64, Membership), Problem> {
    known(rows, group)?;
    let latest = rows.get::<GroupRows>().latest(user, group).filter(|(_, of)| of.is_open());
    latest.map(|(span, of)| (span, of.clone())).ok_or_else(|| no_member(group, user))
}

pub(super) fn put(
    rows: &mut Rows,
    id: GroupId,
    delivery: Option<Delivery>,
    receipts: Option<bool>,
    now: UnixMs,
) -> Result<Answer, Problem> {
    let before = rows.get::<GroupRows>().group(id);
    if before.is_some_and(|group| group.deleted) {
        return Err(deleted(id));
    }
    let base = before.unwrap_or(Group { receipts: true, created_at: now, ..Group::default() });
    let group = Group { delivery: delivery.unwrap_or(base.delivery), receipts: receipts.unwrap_or(base.receipts), ..base };
    rows.get_mut::<GroupRows>().set_group(id, group);
    if before.is_some() && base.delivery == Delivery::Read && group.delivery == Delivery::Write {
        // Who reads along for push devices passes by groups that deliver by writing.
        push::numbers_changed(rows, Scope::Group(id), now);
    }
    let out = GroupOut::new(id, &group, rows.head(&StreamKey::group(id)).head);
    if before.is_none() { Ok(Answer::created(out)) } else { Ok(Answer::ok(out)) }
}

/// Returns the member, and whether it is one only now. `pointer` is the place in the request, for
/// what is refused.
pub(super) fn join(rows: &mut Rows, id: GroupId, user: UserId, now: UnixMs, pointer: &str) -> Result<(MemberOut, bool), Problem> {
    let mut group = known(rows, id)?;
    let out = |of: &Membership| MemberOut { user_id: user, ordinal: of.ordinal, joined_at: of.joined_at };
    let (span, before) = match rows.get::<GroupRows>().latest(user, id) {
        Some((_, of)) if of.is_open() => return Ok((out(of), false)),
        Some((span, of)) => (span, Some(of.ordinal)),
        None => (0, None),
    };
    let too_many = |detail: String| {
        let problem = Problem::new(Code::TooMany, detail);
        if pointer.is_empty() { problem } else { problem.at(pointer, "cannot join") }
    };
    if group.members >= MAX_MEMBERS {
        return Err(too_many(format!("Group {id} has reached the limit of {MAX_MEMBERS} members.")));
    }
    if rows.user(user).chat_groups >= MAX_GROUPS {
        return Err(too_many(format!("User {user} has reached the limit of {MAX_GROUPS} groups.")));
    }
    let ordinal = before.unwrap_or_else(|| {
        group.ordinals += 1;
        group.ordinals
    });
    group.members += 1;
    rows.get_mut::<GroupRows>().set_group(id, group);
    let from_seq = rows.head(&StreamKey::group(id)).head;
    let mut hidden = Hidden::default();
    if !rows.user(user).settings.shares_receipts() {
        hidden.begin(from_seq + 1);
    }
    let of = Membership {
        ordinal,
        from_seq,
        to_seq: None,
        reading: Reading::from_seq(from_seq),
        again: None,
        mentions: Intervals::default(),
        level: LevelUntil::default(),
        joined_at: now,
        at: now,
        hidden,
    };
    let member = out(&of);
    rows.get_mut::<GroupRows>().set_membership(user, id, span + 1, of);
    rows.revise(user, |row| row.chat_groups += 1);
    Ok((member, true))
}

/// Returns whether the user was a member.
pub(super) fn leave(rows: &mut Rows, id: GroupId, user: UserId, now: UnixMs) -> Result<bool, Problem> {
    known(rows, id)?;
    Ok(end_membership(rows, id, user, now))
}

/// Ends the user's membership, if the user is a member.
pub(super) fn end_membership(rows: &mut Rows, id: GroupId, user: UserId, now: UnixMs) -> bool {
    let Some(group) = rows.get::<GroupRows>().group(id) else { return false };
    let open = rows.get::<GroupRows>().latest(user, id).filter(|(_, of)| of.is_open());
    let Some((span, of)) = open.map(|(span, of)| (span, of.clone())) else { return false };
    let to_seq = Some(rows.head(&StreamKey::group(id)).head);
    rows.get_mut::<GroupRows>().set_membership(
        user,
        id,
        span,
        Membership { to_seq, again: None, mentions: Intervals::default(), level: LevelUntil::default(), at: now, ..of },
    );
    rows.get_mut::<GroupRows>().set_group(id, Group { members: group.members - 1, ..group });
    rows.revise(user, |row| row.chat_groups -= 1);
    true
}

/// Tells those who read events that somebody is a member from now on, or no longer; None: nothing
/// has changed.
pub(super) fn tell(rows: &mut Rows, now: UnixMs, group_id: GroupId, user_id: UserId, member: Option<bool>) {
    if let Some(member) = member {
        rows.event(now, &Event::Member(MemberEventOut { group_id, user_id, member }));
    }
}

/// A member's settings of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct GroupSettingsOut {
    /// The group.
    pub group_id: GroupId,
    /// What of the group `chats` and `total` count.
    pub level: Level,
    /// When the level ends; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level_until: Option<UnixMs>,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

pub(super) fn set_level(rows: &mut Rows, user: UserId, id: GroupId, level: LevelUntil) -> Result<Answer, Problem> {
    let (span, of) = member(rows, id, user)?;
    if of.level != level {
        rows.get_mut::<GroupRows>().set_membership(user, id, span, Membership { level, ..of });
        rows.revise(user, |_| {});
        push::ends_at(rows, user, level.until());
    }
    let (level, level_until) = (level.set(), level.until());
    Ok(Answer::ok(GroupSettingsOut { group_id: id, level, level_until, revision: rows.revision(user) }))
}
