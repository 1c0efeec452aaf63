//! What is written to posts and feeds: the commands, and the rule of each over the rows of a batch.

use super::rows::{FeedRows, need_look, need_post};
use super::{Followed, ImportedPosts, Post, PostCountOut, PostOut, PostsOut, ResetFeedOut, Snapshot, UserPostOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem};
use crate::base::ids::{ClientId, UserId};
use crate::engine::events::{Event, PostEventOut};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows, in_path};
use crate::engine::marks::StreamKey;

/// How many creators a snapshot may have beside those that the user follows: of resets that meet
/// changes of the list, or each other.
const MAX_OTHERS: usize = 5_000;

/// A write to posts or to a user's feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedCommand {
    /// A creator posted.
    Post { creator: UserId, post: ClientId },
    /// Creators posted: all or nothing.
    PostMany(Vec<(UserId, ClientId)>),
    /// A post is gone.
    Delete {
        creator: UserId,
        /// Which.
        post: ClientId,
    },
    /// A user has looked at the feed.
    Reset {
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

impl lanes::Command for FeedCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Post { creator, post } | Self::Delete { creator, post } => need_post(needs, *creator, post.clone()),
            Self::Reset { user, followed } => need_look(needs, *user, followed),
            Self::PostMany(posts) | Self::Import { posts, .. } => {
                posts.iter().for_each(|(creator, post)| need_post(needs, *creator, post.clone()));
            }
        }
    }

    // By the creator, whose head every post locks.
    fn lane_key(&self) -> i64 {
        match self {
            Self::Post { creator, .. } | Self::Delete { creator, .. } => creator.get(),
            Self::PostMany(posts) => posts.first().map_or(0, |(creator, _)| creator.get()),
            Self::Reset { user, .. } => user.get(),
            Self::Import { lane_key, .. } => *lane_key,
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::Post { creator, .. } | Self::Delete { creator, .. } => vec![in_path(*creator)],
            Self::PostMany(posts) => {
                posts.iter().enumerate().map(|(at, (creator, _))| (*creator, format!("/items/{at}/user_id"))).collect()
            }
            Self::Reset { user, .. } => vec![in_path(*user)],
            // Its lines are passed over one by one.
            Self::Import { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::Post { .. } | Self::Delete { .. } => 1,
            Self::Reset { followed, .. } => followed.weight(),
            Self::PostMany(posts) | Self::Import { posts, .. } => u32::try_from(posts.len()).unwrap_or(u32::MAX),
        }
    }

    fn by_user(&self) -> Option<UserId> {
        match self {
            Self::Reset { user, .. } => Some(*user),
            Self::Post { .. } | Self::Delete { .. } | Self::PostMany(_) | Self::Import { .. } => None,
        }
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::Post { creator, post } => {
                let (is_new, out) = put(rows, *creator, post, now)?;
                Ok(if is_new { Answer::created(out) } else { Answer::ok(out) })
            }
            Self::PostMany(posts) => Ok(Answer::ok(put_many(rows, posts, now)?)),
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

/// Returns whether the post is new, and what it is now.
fn put(rows: &mut Rows, creator: UserId, id: &ClientId, now: UnixMs) -> Result<(bool, PostOut), Problem> {
    let is_new = match post(rows, creator, id, now) {
        Put::New => {
            tell(rows, creator, id, false, now);
            true
        }
        Put::Known => false,
        Put::Gone => return Err(Problem::new(Code::Gone, "This post was deleted. Its id cannot be reused.")),
        Put::Full => return Err(Problem::new(Code::TooMany, "The creator has reached the highest possible head, 2^53-1.")),
    };
    let PostCountOut { posts, head } = PostCountOut::of(&rows.head(&StreamKey::posts(creator)));
    Ok((is_new, PostOut { post_id: id.clone(), posts, head }))
}

fn put_many(rows: &mut Rows, posts: &[(UserId, ClientId)], now: UnixMs) -> Result<PostsOut, Problem> {
    let put = |(at, (creator, id)): (usize, &(UserId, ClientId))| {
        let located = |problem: Problem| problem.at(format!("/items/{at}/post_id"), "cannot be registered");
        let (_, post) = put(rows, *creator, id, now).map_err(located)?;
        Ok(UserPostOut { user_id: *creator, post })
    };
    Ok(PostsOut { items: posts.iter().enumerate().map(put).collect::<Result<_, Problem>>()? })
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

fn take_over(rows: &mut Rows, posts: &[(UserId, ClientId)], now: UnixMs) -> ImportedPosts {
    let mut done = ImportedPosts::default();
    for (creator, id) in posts {
        if rows.is_erased(*creator) {
            done.refused += 1;
            continue;
        }
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

/// The user has seen so much of those whom it follows. No mark goes back, whichever reset was read
/// first. Creators who are no longer followed are dropped where that is certain: where the list is
/// still the one that was read. Else the snapshot may know of creators who were followed, and
/// looked at, since.
///
/// Nothing is added for a creator who is no longer followed. So no erased creator comes back: the end
/// of the follow waits for the lock of the user's row, and an erasure walks through all snapshots only
/// after it.
///
/// # Errors
/// 503 where the list changed, and there are too many of those who may no longer be followed;
/// nothing is changed then.
pub(crate) fn look(rows: &mut Rows, user: UserId, followed: &Followed) -> Result<(), Problem> {
    let (stored, row) = (rows.get::<FeedRows>().snapshot(user), rows.user(user));
    // What a newer version wrote in another form is replaced: these heads are as new, but for
    // another look at the same moment.
    let before = Snapshot::decode(&stored).unwrap_or_default();
    let is_same_list = followed.version == row.feed;
    let seen = if is_same_list {
        followed.heads.raised_by(&before)
    } else {
        rows.get::<FeedRows>().still_followed(user, &followed.heads).merged_with(&before)
    }
    .without_zeros();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lanes::Command as _;

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
    fn a_look_adds_nobody_who_is_no_longer_followed() {
        let mut rows = Rows::new(crate::app::ROW_SETS);
        let first = read(&rows, &[(2, 5), (3, 9)]);
        looked(&mut rows, &first);
        let late = read(&rows, &[(2, 6), (3, 9), (4, 1)]);
        rows.feed_changed(user(1));
        rows.settle();
        rows.get_mut::<FeedRows>().followees.insert(user(1), [user(2), user(5)].into());
        looked(&mut rows, &late);
        assert_eq!(seen(&rows), [(2, 6), (3, 9)], "3 was there before");
        rows.get_mut::<FeedRows>().followees.insert(user(1), [].into());
        looked(&mut rows, &late);
        assert_eq!(seen(&rows), [(2, 6), (3, 9)]);
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
    fn a_reset_has_its_part_of_the_room_of_its_user() {
        let reset = |creators: i64| {
            let heads = Snapshot::new((2..2 + creators).map(|creator| (user(creator), 1)).collect());
            let reset = FeedCommand::Reset { user: user(1), followed: Followed { version: 0, heads } };
            (reset.by_user(), reset.weight())
        };
        assert_eq!([0, 5000].map(reset), [(Some(user(1)), 1), (Some(user(1)), 101)]);
    }

    #[test]
    fn a_post_counts_once_and_goes_once() {
        let (mut rows, creator, id) = (Rows::new(crate::app::ROW_SETS), user(9), "p".parse::<ClientId>().unwrap());
        assert_eq!(delete(&mut rows, creator, &id, UnixMs(0)).unwrap_err().code, Code::NotFound);
        let status = |answer: Result<Answer, Problem>| answer.map(|answer| answer.status()).map_err(|problem| problem.code);
        let is_new = |rows: &mut Rows, at| put(rows, creator, &id, UnixMs(at)).map(|(is_new, _)| is_new);
        assert_eq!([1, 2].map(|at| is_new(&mut rows, at)), [Ok(true), Ok(false)]);
        let count = |rows: &Rows| PostCountOut::of(&rows.head(&StreamKey::posts(creator)));
        assert_eq!(count(&rows), PostCountOut { posts: 1, head: 1 });
        for _ in 0..2 {
            assert_eq!(status(delete(&mut rows, creator, &id, UnixMs(0))), Ok(204));
            assert_eq!(count(&rows), PostCountOut { posts: 0, head: 1 });
        }
        assert_eq!(put(&mut rows, creator, &id, UnixMs(3)).unwrap_err().code, Code::Gone);
        let more = ["p", "q", "q"].map(|id| (creator, id.parse().unwrap()));
        assert_eq!(take_over(&mut rows, &more, UnixMs(4)), ImportedPosts { posted: 1, known: 1, gone: 1, refused: 0 });
    }
}
