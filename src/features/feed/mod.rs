//! The feed: how much those whom a user follows have posted since the user last looked.
//!
//! ```text
//!   unread = Σ over the creators: what their streams hold above max(mark of the follow, mark in the snapshot)
//! ```
//!
//! A creator's posts are a shared stream ([`crate::engine::heads`]), one head for however many
//! follow. A follow carries the head as it was when it was made; a *snapshot* has the heads of all
//! creators as they were when the user last looked. The higher of the two counts: so following,
//! unfollowing, following again and looking come out right in every order, and what is left in a
//! snapshot of somebody who is no longer followed does no harm. A user who was not seen before
//! looks when it is enrolled (`crate::features::users`).
//!
//! The posts of a creator whom the user mutes do not count, while the mark of the follow and that in
//! the snapshot go on as ever: so they count again when the mute ends as if there had been none.
//!
//! The list of a user, with its *version* (`users.feed`, the revision at which it changed last), is
//! what `list.rs` keeps decoded (`followees.rs`): a cached head and a mark for each creator. `horizon.rs` is what
//! the token of a feed says. `snapshot.rs` is the form in which rows hold it, `shared_list.rs` that
//! in which Redis does, `store.rs`
//! has the SQL, `http.rs` the routes of posts; those of the feed itself stand beside the summary
//! (`summary/feed_http.rs`).
//!
//! Every post has a row, so that its id counts once. Rows are kept for as long as is set from when
//! they were written; after that an id counts as new and can no longer be deleted, while the number
//! of posts stays what it is. Rows of posts that are gone are kept for ever, as the streams keep
//! only so many of their positions at hand: a mark that lies further back is compared with these
//! rows, and any user who never looks may have such a mark.

mod command;
mod distributed;
pub mod erase;
pub mod exported;
mod followees;
mod horizon;
pub mod http;
mod list;
pub mod rows;
mod shared_list;
mod snapshot;
pub mod store;
pub mod summary;

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::command::FeedCommand;
pub(crate) use self::command::look;
pub use self::followees::{FeedList, Term};
pub use self::horizon::{Horizon, MAX_TOKEN_CHARS};
pub use self::list::{FeedCount, Feeds};
pub use self::snapshot::Snapshot;
pub use self::store::sweep;
use crate::base::clock::UnixMs;
use crate::base::ids::{ClientId, UserId};
use crate::engine::marks::Stream;

/// How the feed is kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Feed")]
pub struct FeedConfig {
    /// The memory for decoded following lists in this process, in bytes: 24 for each user that a
    /// polling user follows.
    #[arg(long, env = "HEADMARK_FEED_CACHE_BYTES", default_value_t = 256 << 20, value_parser = clap::value_parser!(u64).range(1 << 20..=1 << 40))]
    pub feed_cache_bytes: u64,

    /// The number of days for which the id of a post is kept. While it is kept, a repeat counts
    /// once and the post can be deleted. 0: forever.
    #[arg(long, env = "HEADMARK_POST_TTL_DAYS", default_value_t = 400, value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub post_ttl_days: u32,
}

/// So many followees make a write heavier by one change: it carries their heads.
const FOLLOWEES_A_CHANGE: usize = 50;

/// A post, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Post {
    /// Its position in the creator's stream.
    pub seq: i64,
    /// When the row was written.
    pub created_at: UnixMs,
    /// Whether the post was deleted.
    pub gone: bool,
}

/// Whom a user follows, and how much they have posted: what a look at the feed has seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Followed {
    /// The version of the list when it was read.
    pub version: i64,
    /// The head of each creator, also of those who never posted.
    pub heads: Snapshot,
}

impl Followed {
    /// How many changes a write stands for that carries this.
    #[must_use]
    pub(crate) fn weight(&self) -> u32 {
        u32::try_from(1 + self.heads.len() / FOLLOWEES_A_CHANGE).unwrap_or(u32::MAX)
    }
}

/// A post after a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PostOut {
    /// The post.
    pub post_id: ClientId,
    /// The number of posts of the creator.
    #[schema(minimum = 0, example = 118)]
    pub posts: i64,
    /// The total number, including read and removed ones.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
}

/// A post in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserPostOut {
    /// The creator.
    pub user_id: UserId,
    /// The post, and the creator's numbers.
    #[serde(flatten)]
    pub post: PostOut,
}

/// The registered posts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PostsOut {
    /// One result for each item, in the order of the request.
    pub items: Vec<UserPostOut>,
}

/// The number of posts of a creator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct PostCountOut {
    /// The number of posts.
    #[schema(minimum = 0, example = 118)]
    pub posts: i64,
    /// The number of posts ever made, including deleted and expired ones.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
}

impl PostCountOut {
    /// From the creator's stream, which counts those that are gone in its `position`.
    #[must_use]
    pub fn of(stream: &Stream) -> Self {
        Self { posts: (stream.head - stream.position).max(0), head: stream.head }
    }
}

/// The feed after a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct ResetFeedOut {
    /// The number of unread posts: those after the token.
    #[schema(minimum = 0, example = 0)]
    pub unread: i64,
    /// The number of users that the user follows.
    #[schema(minimum = 0, example = 120)]
    pub creators: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// What an import of posts did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ImportedPosts {
    /// Posts that were not known before.
    pub posted: u64,
    /// Those that were.
    pub known: u64,
    /// Those that were deleted before.
    pub gone: u64,
    /// Those of creators who have as many as there can be.
    pub refused: u64,
}

impl std::ops::AddAssign for ImportedPosts {
    fn add_assign(&mut self, more: Self) {
        self.posted += more.posted;
        self.known += more.known;
        self.gone += more.gone;
        self.refused += more.refused;
    }
}
