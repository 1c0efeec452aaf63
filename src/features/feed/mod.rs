//! The feed: how much those whom a user follows have posted since the user last looked.
//!
//! ```text
//!   unread = Σ over the creators: what their streams hold above max(mark of the follow, mark in the snapshot)
//! ```
//!
//! A creator's posts are a shared stream ([`crate::engine::heads`]), one head for however many follow. A follow carries the head as it was when it was made; a
//! *snapshot* has the heads of all creators as they were when the user last looked. The higher of the two counts: so following, unfollowing, following again and
//! looking come out right in every order, and what is left in a snapshot of somebody who is no longer followed does no harm. A user who was not seen before looks,
//! so to say, when it is enrolled (`crate::features::users`).
//!
//! The list of a user, with its *version* (`users.feed`, the revision at which it changed last), is what `list.rs` keeps decoded: a cell of memory and a mark for
//! each creator. `horizon.rs` is what the token of a feed says. `snapshot.rs` is the form in which rows and Redis hold it, `store.rs` has the SQL, `http.rs` the
//! routes of posts; those of the feed itself stand beside the summary (`summary/feed_http.rs`).
//!
//! Every post has a row, so that its id counts once. Rows are kept for as long as is set from when they were written; after that an id counts as new and can no longer be
//! deleted, while the number of posts stays what it is. Rows of posts that are gone are kept for ever, as the streams keep only so many of their positions
//! at hand: a mark that lies further back is compared with these rows, and any user who never looks may have such a mark.

mod horizon;
pub mod http;
mod list;
pub mod rows;
mod snapshot;
pub mod store;
pub mod summary;

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::horizon::{Horizon, MAX_TOKEN_CHARS};
pub use self::list::{FeedCount, FeedList, Feeds, Term};
pub use self::snapshot::Snapshot;
use crate::base::clock::{DAY_MS, UnixMs};
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, UserId};
use crate::db::{Db, DbResult};
use crate::engine::events::{Event, PostEventOut};
use crate::engine::lanes::{self, Answer, Needs, Rows};
use crate::engine::marks::{Stream, StreamKey};
use crate::features::feed::rows::FeedRows;
use crate::features::feed::rows::need_post;
use crate::features::feed::rows::need_snapshot;

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

/// How many rows one round of the sweep removes.
const SWEEP_ROWS: i64 = 1000;

/// So many followees make a write heavier by one change: it carries their heads.
const FOLLOWEES_A_CHANGE: usize = 50;

/// How many creators a snapshot may have beside those that the user follows: of resets that meet changes of the list, or each other.
const MAX_OTHERS: usize = 5_000;

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
pub struct Imported {
    /// Posts that were not known before.
    pub posted: u64,
    /// Those that were.
    pub known: u64,
    /// Those that were deleted before.
    pub gone: u64,
    /// Those of creators who have as many as there can be.
    pub refused: u64,
}

impl std::ops::AddAssign for Imported {
    fn add_assign(&mut self, more: Self) {
        self.posted += more.posted;
        self.known += more.known;
        self.gone += more.gone;
        self.refused += more.refused;
    }
}

/// A write to posts or to a user's feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A creator posted.
    Post {
        /// The user.
        creator: UserId,
        /// What.
        post: ClientId,
    },
    /// A post is gone.
    Delete {
        /// Whose.
        creator: UserId,
        /// Which.
        post: ClientId,
    },
    /// A user has looked at the feed.
    Reset {
        /// The user.
        user: UserId,
        /// What was there to see.
        followed: Followed,
    },
    /// Many posts, in order.
    Import {
        /// Whose, and which.
        posts: Vec<(UserId, ClientId)>,
        /// Which lane.
        lane_key: i64,
    },
}

impl lanes::Command for Command {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Post { creator, post } | Self::Delete { creator, post } => need_post(needs, *creator, post.clone()),
            Self::Reset { user, .. } => need_snapshot(needs, *user),
            Self::Import { posts, .. } => posts.iter().for_each(|(creator, post)| need_post(needs, *creator, post.clone())),
        }
    }

    // By the creator, whose head every post locks.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Post { creator, .. } | Self::Delete { creator, .. } => creator.get(),
            Self::Reset { user, .. } => user.get(),
            Self::Import { lane_key, .. } => *lane_key,
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Post { .. } | Self::Delete { .. } => 1,
            Self::Reset { followed, .. } => followed.weight(),
            Self::Import { posts, .. } => u32::try_from(posts.len()).unwrap_or(u32::MAX),
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Post { creator, post } => put(rows, *creator, post, now),
            Self::Delete { creator, post } => delete(rows, *creator, post, now),
            Self::Reset { user, followed } => {
                look(rows, *user, followed)?;
                let (creators, revision) = (rows.user(*user).following, rows.revision(*user));
                Ok(Answer::ok(ResetFeedOut { unread: 0, creators, revision }))
            }
            Self::Import { posts, .. } => Ok(Answer::ok(take_over(rows, posts, now))),
        }
    }
}

/// What became of a post that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    New,
    Known,
    Gone,
    /// The creator has as many as there can be.
    Full,
}

fn post(rows: &mut Rows, creator: UserId, id: &ClientId, now: UnixMs) -> Put {
    match rows.get::<FeedRows>().post(creator, id) {
        Some(post) if post.gone => Put::Gone,
        Some(_) => Put::Known,
        None => {
            let key = StreamKey::posts(creator);
            let mut stream = rows.head(&key);
            let Ok(seq) = stream.advance(now) else { return Put::Full };
            rows.set_head(&key, stream);
            rows.get_mut::<FeedRows>().set_post(creator, id, Post { seq, created_at: now, gone: false });
            Put::New
        }
    }
}

fn put(rows: &mut Rows, creator: UserId, id: &ClientId, now: UnixMs) -> Result<Answer, Problem> {
    let new = match post(rows, creator, id, now) {
        Put::New => {
            tell(rows, creator, id, false, now);
            true
        }
        Put::Known => false,
        Put::Gone => return Err(Problem::new(Code::Gone, "This post was deleted. Its id cannot be reused.")),
        Put::Full => return Err(Problem::new(Code::TooMany, "The creator has reached the highest possible head, 2^53-1.")),
    };
    let PostCountOut { posts, head } = PostCountOut::of(&rows.head(&StreamKey::posts(creator)));
    let out = PostOut { post_id: id.clone(), posts, head };
    Ok(if new { Answer::created(out) } else { Answer::ok(out) })
}

fn tell(rows: &mut Rows, creator: UserId, id: &ClientId, deleted: bool, now: UnixMs) {
    rows.event(now, &Event::Post(PostEventOut { user_id: creator, post_id: id.clone(), deleted }));
}

fn delete(rows: &mut Rows, creator: UserId, id: &ClientId, now: UnixMs) -> Result<Answer, Problem> {
    let Some(post) = rows.get::<FeedRows>().post(creator, id) else {
        return Err(Problem::new(Code::NotFound, "The creator has no post with this id, or the post has expired."));
    };
    if !post.gone {
        let key = StreamKey::posts(creator);
        let mut stream = rows.head(&key);
        stream.retract(post.seq);
        stream.position += 1;
        rows.set_head(&key, stream);
        rows.get_mut::<FeedRows>().set_post(creator, id, Post { gone: true, ..post });
        tell(rows, creator, id, true, now);
    }
    Ok(Answer::no_content())
}

fn take_over(rows: &mut Rows, posts: &[(UserId, ClientId)], now: UnixMs) -> Imported {
    let mut done = Imported::default();
    for (creator, id) in posts {
        match post(rows, *creator, id, now) {
            Put::New => {
                tell(rows, *creator, id, false, now);
                done.posted += 1;
            }
            Put::Known => done.known += 1,
            Put::Gone => done.gone += 1,
            Put::Full => done.refused += 1,
        }
    }
    done
}

/// The user has seen so much of those whom it follows. No mark goes back, whichever reset was read first. Creators who are no longer followed are dropped where that
/// is certain: where the list is still the one that was read. Else the snapshot may know of creators who were followed, and looked at, since.
///
/// # Errors
/// 503 where the list changed, and there are too many of those who may no longer be followed; nothing is changed then.
pub(crate) fn look(rows: &mut Rows, user: UserId, followed: &Followed) -> Result<(), Problem> {
    let (stored, row) = (rows.get::<FeedRows>().snapshot(user), rows.user(user));
    // What a newer version wrote in another form is replaced: these heads are as new, but for another look at the same moment.
    let before = Snapshot::decode(&stored).unwrap_or_default();
    let is_same_list = followed.version == row.feed;
    let seen = if is_same_list { followed.heads.raised_by(&before) } else { followed.heads.merged_with(&before) }.without_zeros();
    let follows = usize::try_from(row.following).unwrap_or_default();
    if !is_same_list && seen.len() > follows.saturating_add(MAX_OTHERS) {
        return Err(Problem::new(Code::Overloaded, "The following list of this user changes too fast. Try again shortly."));
    }
    let data = seen.encode();
    if *data != *stored {
        rows.get_mut::<FeedRows>().set_snapshot(user, data.into());
        rows.feed_changed(user);
    }
    Ok(())
}

/// Removes some posts that are kept no longer; returns how many. Call again while it returns any.
///
/// # Errors
/// The driver's own.
pub async fn sweep(db: &Db, config: &FeedConfig, now: UnixMs) -> DbResult<u64> {
    if config.post_ttl_days == 0 {
        return Ok(0);
    }
    store::sweep(db, UnixMs(now.0 - i64::from(config.post_ttl_days) * DAY_MS), SWEEP_ROWS).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    /// What was read of the list as it is now.
    fn read(rows: &Rows, marks: &[(i64, i64)]) -> Followed {
        let heads = Snapshot::new(marks.iter().map(|(creator, mark)| (user(*creator), *mark)).collect());
        Followed { version: rows.user(user(1)).feed, heads }
    }

    fn looked(rows: &mut Rows, followed: &Followed) {
        look(rows, user(1), followed).unwrap();
        rows.settle();
    }

    fn seen(rows: &Rows) -> Vec<(i64, i64)> {
        Snapshot::decode(&rows.get::<FeedRows>().snapshot(user(1))).unwrap().iter().map(|(creator, mark)| (creator.get(), mark)).collect()
    }

    #[test]
    fn a_look_never_takes_a_mark_back() {
        let mut rows = Rows::new(crate::app::ROW_SETS);
        let first = read(&rows, &[(2, 5), (3, 9), (4, 0)]);
        looked(&mut rows, &first);
        assert_eq!((seen(&rows), rows.user(user(1)).feed, rows.revision(user(1))), (vec![(2, 5), (3, 9)], 1, 1));
        let same = read(&rows, &[(2, 5), (3, 9), (4, 0)]);
        looked(&mut rows, &same);
        assert_eq!(rows.revision(user(1)), 1, "what changes nothing is no new revision");
        let early = read(&rows, &[(2, 6), (4, 0)]);
        let late = read(&rows, &[(2, 7), (4, 3), (5, 1)]);
        looked(&mut rows, &late);
        assert_eq!(seen(&rows), [(2, 7), (4, 3), (5, 1)], "creator 3 is no longer followed");
        // Read before the one above, when nobody followed creator 5 yet, and coming after it.
        looked(&mut rows, &early);
        assert_eq!((seen(&rows), rows.revision(user(1))), (vec![(2, 7), (4, 3), (5, 1)], 2));
        let calm = read(&rows, &[(2, 8), (4, 3)]);
        looked(&mut rows, &calm);
        assert_eq!(seen(&rows), [(2, 8), (4, 3)], "the next one drops who is no longer followed");
    }

    #[test]
    fn a_snapshot_does_not_grow_without_bound() {
        let most = i64::try_from(MAX_OTHERS).unwrap();
        let mut rows = Rows::new(crate::app::ROW_SETS);
        let early = Followed { version: -1, ..read(&rows, &[(1_000_000, 1)]) };
        let all: Vec<_> = (2..2 + most).map(|creator| (creator, 1)).collect();
        let all = read(&rows, &all);
        looked(&mut rows, &all);
        assert_eq!(look(&mut rows, user(1), &early).unwrap_err().code, Code::Overloaded);
        rows.undo();
        assert_eq!(seen(&rows).len(), MAX_OTHERS);
        rows.revise(user(1), |row| row.following = 1);
        looked(&mut rows, &early);
        assert_eq!(seen(&rows).len(), MAX_OTHERS + 1, "whom the user follows has room beside them");
    }

    #[test]
    fn a_post_counts_once_and_goes_once() {
        let (mut rows, creator, id) = (Rows::new(crate::app::ROW_SETS), user(9), "p".parse::<ClientId>().unwrap());
        assert_eq!(delete(&mut rows, creator, &id, UnixMs(0)).unwrap_err().code, Code::NotFound);
        let status = |answer: Result<Answer, Problem>| answer.map(|answer| answer.status()).map_err(|problem| problem.code);
        assert_eq!([1, 2].map(|at| status(put(&mut rows, creator, &id, UnixMs(at)))), [Ok(201), Ok(200)]);
        let count = |rows: &Rows| PostCountOut::of(&rows.head(&StreamKey::posts(creator)));
        assert_eq!(count(&rows), PostCountOut { posts: 1, head: 1 });
        for _ in 0..2 {
            assert_eq!(status(delete(&mut rows, creator, &id, UnixMs(0))), Ok(204));
            assert_eq!(count(&rows), PostCountOut { posts: 0, head: 1 });
        }
        assert_eq!(status(put(&mut rows, creator, &id, UnixMs(3))), Err(Code::Gone));
        let more = ["p", "q", "q"].map(|id| (creator, id.parse().unwrap()));
        assert_eq!(take_over(&mut rows, &more, UnixMs(4)), Imported { posted: 1, known: 1, gone: 1, refused: 0 });
    }
}
