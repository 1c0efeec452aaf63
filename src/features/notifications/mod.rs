//! Notifications (site mail, system notices, "Ann and 12 others liked your post"): one row for each
//! notification, one for each entry of a receiver's list, and the numbers of unread and seen entries
//! for each user and type.
//!
//! A notification without a group key is an entry of its own for each receiver. One with a group key
//! joins the receiver's unread entry of the same type and key, or begins one, and has a row beside
//! it in `grouped_notifications`, by which it is withdrawn. The id of an entry is that of its first
//! notification. How many actors an entry has, who they are, and which notification is the newest
//! that is left is counted from these rows when the list is read, so it cannot drift.
//!
//! An entry's row keeps whether the receiver has read it, also when the receiver has deleted it or
//! its last notification was withdrawn. So `read_count` is a count of rows. Every change is made
//! under the lock of the receiver's own row in `users`, which also gives the seqs: in the order of
//! commits.
//!
//! Receivers who block or mute the actor when it is sent get no entry (`silenced.rs`), and a row that
//! no list has, so that the number of recipients falls when they are erased.
//!
//! `command.rs` has the commands, `rules.rs` and `many.rs` their rules, `http.rs`, `list_http.rs`
//! and `mark_http.rs` the routes, `rows.rs` the rows of batches, `store.rs`, `sent_store.rs`,
//! `grouped_store.rs` and `type_store.rs` their statements,
//! `lists.rs` and `reads.rs` what is read beside them, `expiry.rs` how long they are kept.

mod command;
mod config;
mod content;
mod distributed;
mod entry;
pub mod erase;
pub mod expiry;
pub mod exported;
mod grouped_store;
pub mod http;
pub mod list_http;
pub mod lists;
mod many;
pub mod mark_http;
mod out;
pub mod reads;
pub mod rows;
mod rules;
mod sent_store;
mod silenced;
mod store;
pub mod summary;
#[cfg(test)]
mod tests;
mod type_store;

use rand::RngExt as _;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::ids::{Name, NotificationId, UserId};

pub use command::{NewNotification, NotificationCommand};
pub use config::NotificationConfig;
pub use content::{Content, Edit, Notification};
pub use entry::{Count, Entry, Grouped, MAX_IN_ENTRY};
pub use many::Which;
pub use out::{
    DeletedNotificationOut, NotificationCountOut, NotificationEntryOut, NotificationOut, ReadNotificationOut, ReadNotificationsOut,
    SeenNotificationsOut,
};

/// Of how many types a user may have numbers. One of which nothing is unread makes room for another.
pub const MAX_TYPES: i64 = 100;

/// How many recipients a notification may have.
pub const MAX_RECIPIENTS: usize = 10_000;

/// How many characters a title may have.
pub const MAX_TITLE_CHARS: usize = 200;

/// How many characters a content may have.
pub const MAX_CONTENT_CHARS: usize = 10_000;

/// How many bytes of JSON the data may have.
pub const MAX_DATA_BYTES: usize = 16 * 1024;

/// How many entries one request may name.
pub const MAX_NAMED: usize = 1000;

/// How many notifications the first transaction of a request reads that names none: more than most
/// users have unread.
pub const FIRST_ROWS: i64 = 200;

/// How many each further transaction of that request reads.
pub const MORE_ROWS: i64 = 2000;

/// How many ids a new notification may choose from: the first that is free. That one was given out
/// before happens once in a great while; several never.
const CANDIDATES: usize = 3;

/// Bits of an id that are random; above them is the time.
const RANDOM_BITS: u32 = 20;

/// The entries to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Those that were not read.
    Unread,
    /// Those of them that the user has not seen in the list.
    Unseen,
    /// Those that were read.
    Read,
    /// All of them.
    #[default]
    All,
}

/// Unread entries of a user: the oldest, up to a bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    pub user: UserId,
    /// Of which type; None: of all.
    pub kind: Option<Name>,
    /// Up to which seq.
    pub up_to: i64,
    /// The number of ids.
    pub rows: i64,
}

/// The lowest id that a notification of this time may have.
fn first_id(at: UnixMs) -> i64 {
    (at.0.max(0) << RANDOM_BITS) & i64::MAX
}

/// Ids that a notification sent now may have: the time and some chance, so that no sender waits for
/// another to get a number.
#[must_use]
pub fn candidates(now: UnixMs) -> Vec<NotificationId> {
    let time = first_id(UnixMs(now.0.max(1)));
    let chance = || i64::from(rand::rng().random_range(0..1_u32 << RANDOM_BITS));
    (0..CANDIDATES).filter_map(|_| NotificationId::try_from(time | chance()).ok()).collect()
}
