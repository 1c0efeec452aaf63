//! What changes the rows of a batch together: an inbox or a direct chat with the sums in its user's
//! own row.

use super::rows::InboxRows;
use super::{Direct, GroupRun, Item};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::engine::lanes::Rows;
use crate::features::level::LevelUntil;
use crate::features::silence::Silence;

/// Puts an item into a user's inbox, whose own row must have been asked for
/// ([`Needs::user`](crate::engine::lanes::Needs::user)), and raises the user's revision. Returns
/// its number: the one after the last.
pub(super) fn append_inbox(rows: &mut Rows, user: UserId, item: Item, now: UnixMs) -> i64 {
    // Its inbox is being removed, or is gone.
    if rows.is_erased(user) {
        return rows.user(user).inbox_seq;
    }
    rows.revise(user, |row| row.inbox_seq += 1);
    let seq = rows.user(user).inbox_seq;
    rows.get_mut::<InboxRows>().put(user, seq, item, now);
    seq
}

/// Puts a group's messages into a user's inbox, one after the other, as [`append_inbox`] does with one
/// item. Returns the number of the last one.
pub fn append_runs(rows: &mut Rows, user: UserId, runs: &[GroupRun], now: UnixMs) -> i64 {
    let mut seq = rows.user(user).inbox_seq;
    if rows.is_erased(user) {
        return seq;
    }
    for run in runs {
        rows.get_mut::<InboxRows>().put_run(user, seq, run.clone(), now);
        seq += run.rows();
    }
    rows.revise(user, |row| row.inbox_seq = seq);
    seq
}

/// Sets a side of a direct chat, takes the sums in the user's own row along, and raises the user's
/// revision. The same as before changes nothing.
///
/// Sums count the chat by its level: one that has ended is [`Level::All`](crate::features::level::Level)
/// from this write on.
pub(super) fn set_direct(rows: &mut Rows, user: UserId, peer: UserId, mut direct: Direct, now: UnixMs) {
    let before = rows.get::<InboxRows>().direct(user, peer);
    if before == direct {
        return;
    }
    if direct.level.has_ended(now) {
        direct.level = LevelUntil::default();
    }
    if direct.read_seq != before.read_seq {
        direct.hidden.follow(rows.user(user).settings.switches(), before.read_seq);
    }
    change_direct(rows, user, peer, |inbox| inbox.set_direct(user, peer, direct));
}

/// Of a chat whose peer is erased nothing is unread from now on, however long its rows and the chat itself are left.
pub fn end_unread(rows: &mut Rows, user: UserId, peer: UserId, now: UnixMs) {
    // The chats of an erased user go with its inbox, and one that has gone must not come back.
    if rows.is_erased(user) {
        return;
    }
    let mut direct = rows.get::<InboxRows>().direct(user, peer);
    direct.end_unread();
    set_direct(rows, user, peer, direct, now);
}

/// The user blocks or mutes the peer, or no longer: while it does, the chat counts in no sum. With the
/// chat itself nothing happens, so that all is as if there had been none of it once it ends.
pub fn set_direct_silence(rows: &mut Rows, user: UserId, peer: UserId, silence: impl Fn(&mut Silence)) {
    change_direct(rows, user, peer, |inbox| inbox.set_silence(user, peer, silence));
}

/// Changes a side of a direct chat, takes the sums in the user's own row along, and raises the
/// user's revision.
fn change_direct(rows: &mut Rows, user: UserId, peer: UserId, change: impl FnOnce(&mut InboxRows)) {
    let old = rows.get::<InboxRows>().counted(user, peer);
    change(rows.get_mut());
    let new = rows.get::<InboxRows>().counted(user, peer);
    rows.revise(user, |row| {
        row.direct_unread += new - old;
        row.direct_chats += i64::from(new > 0) - i64::from(old > 0);
    });
}
