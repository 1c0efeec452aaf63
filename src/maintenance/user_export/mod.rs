//! Everything that is kept about a user, as lines of JSON.
//!
//! Each feature says which lines it has ([`ExportPart`]). They are read page by page, each page when
//! the one before has been taken, so an export holds one page at a time and no connection while the
//! caller is slow. It is not one snapshot: what changes meanwhile may be in it or not.
//!
//! The last line says how many came before it. Without it an export is not whole.

pub mod http;

use std::sync::Arc;

use axum::body::Bytes;
use clap::Args;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;
use crate::db::{Db, DbResult, Statement};
use crate::features::export_part::{self, ExportPart, ExportPlace};
use crate::features::{feed, groups, inbox, notifications, operations, push, relations, users, views};

/// How many users are exported at once.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Users")]
pub struct UserExportConfig {
    /// The maximum number of exports of users (`GET /v1/users/{user}/export`) at once. Further ones
    /// get 503.
    #[arg(long, env = "HEADMARK_USER_EXPORTS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub user_exports: u32,
}

/// The lines of an export, in their order.
#[must_use]
pub fn parts() -> Vec<&'static ExportPart> {
    LISTS.iter().flat_map(|list| list.iter()).collect()
}

const LISTS: [&[ExportPart]; 9] = [
    users::exported::PARTS,
    views::exported::PARTS,
    feed::exported::PARTS,
    relations::exported::PARTS,
    notifications::exported::PARTS,
    groups::exported::PARTS,
    inbox::exported::PARTS,
    push::exported::PARTS,
    operations::exported::PARTS,
];

/// Every statement of exports, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    LISTS.iter().flat_map(|list| export_part::statements(list)).collect()
}

/// Tables without a line, and why.
pub const NOT_EXPORTED: &[(&str, &str)] = &[
    ("events", "what they tell of the user is in the other lines, or is what others keep secret from the user"),
    ("notices", "broadcasts go to everybody"),
    ("view_items", "an item belongs to its view; it names who made it, by which nobody looks it up"),
    ("erased_users", "hashes of the ids of users of whom nothing else is kept"),
    ("removals", "what is being removed, of users who cannot be exported any more"),
    ("chat_groups", "of a group, not of a user"),
    ("group_channels", "of a group, not of a user"),
    ("group_changes", "recalls of messages, which say so themselves"),
    ("group_deliveries", "of a group, not of a user"),
    ("delivery_jobs", "of a group, not of a user"),
    ("head_changes", "what lanes tell other nodes"),
    ("lanes", "of a node"),
    ("cache_guard", "of the installation"),
    ("cache_bypasses", "of a node"),
    ("replica_beats", "of a node"),
    ("event_head", "of the installation"),
    ("inbox_epoch", "of the installation"),
    ("unread_jobs", "of a group, or of all users"),
    ("unread_progress", "of the installation"),
];

/// Rows that no line has though they name the user, of tables that have lines, and why.
pub const ROWS_LEFT_OUT: &[(&str, &str)] = &[
    ("notifications", "those that tell others what the user did: they belong to their receivers, and no index has who acted"),
    ("grouped_notifications", "the same, in an entry with a group key"),
    ("devices", "the row without an id: how far devices that are gone had read, which the other user's receipts tell"),
];

/// Columns that no line has, of tables that have lines, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("users.version", "names the last write of the row"),
    ("users.feed", "a revision by which caches tell lists apart"),
    ("users.following_version", "a revision by which caches tell lists apart"),
    ("relation_counts.following_version", "a revision by which caches tell lists apart"),
    ("relation_counts.blocks_version", "a revision by which caches tell lists apart"),
    ("relation_counts.mutes_version", "a revision by which caches tell lists apart"),
    ("relation_counts.requests_version", "a revision by which caches tell lists apart"),
    ("follower_counts.slot", "a part of a sum"),
    ("posts.lane_id", "which lane made the post"),
    ("posts.batch", "which lane made the post"),
    ("heads.retracted", "deleted posts, which say so themselves"),
    ("heads.floor", "how far back those are kept here"),
    ("heads.version", "by which caches tell heads apart"),
    ("heads.lane_id", "which lane changed it last"),
    ("heads.batch", "which lane changed it last"),
    ("heads.mention_all", "of groups alone"),
    ("following.badge", "which of the other user's badges the follow raised"),
    ("following.badge_at", "which of the other user's badges the follow raised"),
    ("sent_requests.badge", "which of the other user's badges the request raised"),
    ("sent_requests.badge_at", "which of the other user's badges the request raised"),
    ("group_messages.written", "how the message was delivered"),
    ("group_log_members.events", "hashes by which an import knows its lines"),
    ("inbox.peer_seq", "how many messages the other user had sent by then"),
    ("inbox.other_seq", "a number in the other user's inbox"),
    ("notifications.recipients", "who else received it"),
    ("operations.low_id", "the pair that the command names"),
    ("operations.high_id", "the pair that the command names"),
    ("operations.node_id", "of a node"),
    ("idempotency_keys.digest", "a hash of the request"),
];

/// What exports users.
#[derive(Debug)]
pub struct UserExportContext {
    db: Db,
    places: Arc<Semaphore>,
}

impl UserExportContext {
    #[must_use]
    pub fn new(config: &UserExportConfig, db: Db) -> Self {
        let places = usize::try_from(config.user_exports).unwrap_or(Semaphore::MAX_PERMITS);
        Self { db, places: Arc::new(Semaphore::new(places)) }
    }

    /// An export of this user, if there is room for one more.
    ///
    /// # Errors
    /// 503 where there is none.
    fn begin(&self, user: UserId) -> Result<UserExport, Problem> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(Problem::new(Code::Overloaded, "Too many users are being exported. Try again when an export completes."));
        };
        Ok(UserExport { db: self.db.clone(), user, parts: parts().into_iter(), part: None, lines: 0, is_over: false, _place: place })
    }
}

/// An export under way.
#[derive(Debug)]
struct UserExport {
    db: Db,
    user: UserId,
    /// What comes after the present part.
    parts: std::vec::IntoIter<&'static ExportPart>,
    /// What is being read, and how far that is.
    part: Option<(&'static ExportPart, ExportPlace)>,
    lines: u64,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl UserExport {
    /// The next lines; None behind the last one.
    async fn next(&mut self) -> DbResult<Option<Bytes>> {
        while !self.is_over {
            let Some((part, place)) = self.part.take().or_else(|| Some((self.parts.next()?, ExportPlace::default()))) else {
                self.is_over = true;
                return Ok(Some(format!("{{\"kind\":\"end\",\"lines\":{}}}\n", self.lines).into()));
            };
            let page = part.page(&self.db, self.user, &place).await?;
            self.lines += page.lines;
            self.part = page.next.map(|next| (part, next));
            if page.lines > 0 {
                return Ok(Some(page.text.into()));
            }
        }
        Ok(None)
    }
}
