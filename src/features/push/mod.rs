//! Users with a push device: services hear of every change of their numbers, by events of type
//! `unread`.
//!
//! The flag is in the user's own row (`UserSettings::has_push`), so the lane that raises a revision
//! writes the event itself, and other users cost nothing. What changes numbers *without* a write of
//! the user's row comes here:
//!
//! ```text
//!   broadcasts, messages ─▶ their events ─┐ (read along by one node)
//!   a notice expires ─────────────────────┤
//!   old messages go, a repair ────────────┴▶ unread_jobs: all users, or the members of a group ─▶ pages of users ─▶ unread
//!   a level or a mute ends ────────────────▶ push_users.due_at ────────────────────────────────▶ one user ──────▶ unread
//! ```
//!
//! A job is one row for each scope, however many causes it has, and a page moves it in the
//! transaction of its events. So a node that dies loses nothing, and nodes side by side do nothing
//! twice. `crate::maintenance::push` has what runs. What a feature calls is below: to add a time at
//! which numbers change by themselves, call [`ends_at`] where it is set, and let
//! `SummaryPart::changes_at` name it.

pub mod command;
mod due;
pub mod exported;
mod job;
pub mod rows;
pub mod store;

pub use self::job::{Job, SHOWN_EVERYWHERE_MS, Scope, shown_everywhere};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::engine::lanes::Rows;
use due::Due;
use rows::PushRows;

/// Whether the user has a push device, from now on. The first thing that services hear is the number
/// that there is; and a little later what changed while the flag was set.
pub fn set_push(rows: &mut Rows, user: UserId, push: bool, now: UnixMs) {
    if rows.user(user).settings.has_push() != push {
        rows.revise(user, |row| row.settings.set_push(push));
        rows.get_mut::<PushRows>().set_flag(user, push.then_some(now));
    }
}

/// The user's numbers change at this time without a write, as something ends that leaves them out: a
/// level, a mute. Nothing where the user has no push device.
pub fn ends_at(rows: &mut Rows, user: UserId, at: Option<UnixMs>) {
    if let Some(at) = at.filter(|_| rows.user(user).settings.has_push()) {
        rows.get_mut::<PushRows>().set_due(user, Due::AtLatest(at));
    }
}

/// Numbers of these users change with this batch, whose rows are not written, and no event tells
/// what it was.
pub fn numbers_changed(rows: &mut Rows, scope: Scope, now: UnixMs) {
    rows.get_mut::<PushRows>().add_job(scope, shown_everywhere(now));
}
