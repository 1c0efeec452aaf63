//! Which tables are partitioned, and by which column (`docs/adr/0023-partitions.md` says why the
//! others are not).

/// A table that is partitioned, and by which column. Every unique key of the table has the column
/// in it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Whose rows lie together.
    pub owner: &'static str,
}

impl Table {
    /// Whether its owners are numbers; else they are names.
    #[must_use]
    pub fn has_number(&self) -> bool {
        self.owner != "stream"
    }
}

const fn by(owner: &'static str, name: &'static str) -> Table {
    Table { name, owner }
}

/// In the order in which they are partitioned. `users` is last: it says what number all have.
pub const TABLES: [Table; 28] = [
    by("user_id", "marks"),
    by("user_id", "feed_snapshots"),
    by("owner_id", "heads"),
    by("user_id", "posts"),
    by("stream", "view_items"),
    by("follower_id", "following"),
    by("followee_id", "followers"),
    by("followee_id", "secret_followers"),
    by("follower_id", "sent_requests"),
    by("followee_id", "follow_requests"),
    by("user_id", "follower_counts"),
    by("user_id", "relation_counts"),
    by("user_id", "blocks"),
    by("user_id", "mutes"),
    by("notification_id", "notifications"),
    by("user_id", "notification_receivers"),
    by("user_id", "grouped_notifications"),
    by("user_id", "notification_types"),
    by("group_id", "chat_groups"),
    by("user_id", "memberships"),
    by("group_id", "group_messages"),
    by("group_id", "group_changes"),
    by("user_id", "group_log_members"),
    by("user_id", "inbox"),
    by("user_id", "directs"),
    by("user_id", "devices"),
    by("user_id", "push_users"),
    by("user_id", "users"),
];

/// The highest number: each statement locks every partition of its tables.
pub const MAX_PARTITIONS: u32 = 64;
