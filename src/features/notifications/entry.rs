//! An entry of a user's list, and the numbers that it adds to.

use std::sync::Arc;

use super::Notification;
use crate::base::clock::UnixMs;
use crate::base::ids::{NotificationId, UserId};

/// How many notifications an entry has at most. The next one begins a new entry.
pub const MAX_IN_ENTRY: i64 = 1000;

/// Whose entry, and its id.
pub(super) type EntryKey = (UserId, NotificationId);

/// The numbers of a type: whose, and which type.
pub(super) type TypeKey = (UserId, Arc<str>);

/// The entries that notifications of a type and group key join: whose, and by what.
pub(super) type OpenKey = (UserId, Arc<str>, Arc<str>);

/// A notification in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) withdrawn: bool,
    pub(super) notification: Arc<Notification>,
}

/// An entry of a user's list. Its id is that of its first notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the list: that of the last notification that joined it. Below 0: see [`Entry::silenced`].
    pub seq: i64,
    pub kind: Arc<str>,
    /// What notifications join it by; empty: none do.
    pub group_key: Arc<str>,
    /// How many notifications are in it.
    pub notifications: i64,
    /// When its first notification was sent; 0 where an earlier version did not say.
    pub created_at: UnixMs,
    /// When the last notification joined it; 0 where an earlier version did not say.
    pub updated_at: UnixMs,
    /// When the user has read it; 0: not yet.
    pub read_at: UnixMs,
    /// Whether it is in the user's list no longer.
    pub gone: bool,
}

impl Entry {
    /// The row of a receiver who silences the actor. No list ever shows it. It says that the user is a recipient, so
    /// that there is one less once the user is erased. Its seq is not taken from the list, whose numbers stay.
    #[must_use]
    pub fn silenced(id: NotificationId, kind: &Arc<str>, now: UnixMs) -> Self {
        let (kind, group_key, read_at) = (Arc::clone(kind), Arc::from(""), UnixMs(0));
        Self { seq: -id.get(), kind, group_key, notifications: 0, created_at: now, updated_at: now, read_at, gone: true }
    }

    /// Whether it is the row of a receiver who silenced the actor.
    #[must_use]
    pub fn is_silenced(&self) -> bool {
        self.seq < 0
    }

    /// Whether it counts.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.read_at == UnixMs(0) && !self.gone
    }

    /// Whether notifications of this type and key join it.
    #[must_use]
    pub fn is_open_for(&self, kind: &str, group_key: &str) -> bool {
        self.is_unread() && &*self.kind == kind && &*self.group_key == group_key
    }

    /// What it adds to the numbers of its type, where the user has seen the list up to this seq.
    #[must_use]
    pub fn counted(&self, seen_up_to: i64) -> Count {
        let is_seen = self.is_unread() && self.seq <= seen_up_to;
        Count { unread: i64::from(self.is_unread()), seen: i64::from(is_seen) }
    }
}

/// A notification of an entry with a group key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped {
    /// Which entry it is in.
    pub entry: NotificationId,
    /// The place that the entry moved to when it came.
    pub seq: i64,
    /// Whose act it tells of; 0: nobody's.
    pub actor: i64,
}

/// How many entries of a type a user has not read, and how many of these the user has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub unread: i64,
    pub seen: i64,
}

impl Count {
    /// How many of those that are unread the user has not seen either.
    #[must_use]
    pub fn unseen(self) -> i64 {
        (self.unread - self.seen).max(0)
    }

    /// After an entry that counted as `before` counts as `after`.
    #[must_use]
    pub fn moved(self, before: Self, after: Self) -> Self {
        let unread = (self.unread + after.unread - before.unread).max(0);
        Self { unread, seen: (self.seen + after.seen - before.seen).clamp(0, unread) }
    }
}
