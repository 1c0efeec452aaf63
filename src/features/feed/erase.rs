//! What is left of feeds when a user is erased: its posts and its own snapshot go, and snapshots of
//! others name it no longer, also of those who unfollowed it long ago.

use super::rows::{FeedRows, need_snapshot};
use super::snapshot::Snapshot;
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::UserId;
use crate::db::{Column, Statement, Type, in_time};
use crate::engine::heads;
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::features::removals::{Engines, Place, Progress, Step, delete_own, delete_pages, user_of};

/// How many snapshots one batch reads: each may have thousands of creators.
const SNAPSHOTS_AT_ONCE: i64 = 100;

static POSTS: [Statement; 1] = [Statement::one(
    "delete from posts
    where user_id = $1 and post_id in (select p.post_id from posts p where p.user_id = $1 order by p.post_id limit $2)",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
)];

static OWN: [Statement; 2] = [
    Statement::one("delete from feed_snapshots where user_id = $1", &[("user_id", Type::Int)]),
    Statement::one("delete from heads where owner_id = $1 and kind = 5 and name = ''", &[("user_id", Type::Int)]),
];

static SNAPSHOTS: Statement = Statement::one(
    "select s.user_id, s.data
    from feed_snapshots s
    where s.user_id > $1
    order by s.user_id
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    std::iter::once(&SNAPSHOTS).chain(&POSTS).chain(&OWN).collect()
}

/// The steps that remove a user as a creator and as a reader.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        delete_pages("posts", &["posts"], &POSTS),
        delete_own("feed", &["heads"], &OWN),
        Step::new("head_changes", &["head_changes"], |engines, subject, place| async move {
            let next = in_time(heads::erased::forget_creator(&engines.db, user_of(subject)?, place.id)).await?;
            Ok(next.map_or(Progress::Done, |lane| Progress::More(Place::id(lane))))
        }),
        Step::new("feed_snapshots", &["feed_snapshots"], |engines, subject, place| async move {
            forget_in_snapshots(&engines, user_of(subject)?, place.id).await
        }),
    ]
}

async fn forget_in_snapshots(engines: &Engines, creator: UserId, after: i64) -> Result<Progress> {
    let columns = [after, SNAPSHOTS_AT_ONCE].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, Vec<u8>)> = in_time(engines.db.fetch(&SNAPSHOTS, &columns)).await?;
    let names = |data: &[u8]| Snapshot::decode(data).is_some_and(|snapshot| snapshot.iter().any(|(of, _)| of == creator));
    let users: Vec<_> = rows.iter().filter(|(_, data)| names(data)).filter_map(|(user, _)| UserId::try_from(*user).ok()).collect();
    if !users.is_empty() {
        engines.submit(ForgetCreator { creator, users }).await?;
    }
    let is_full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= SNAPSHOTS_AT_ONCE;
    Ok(rows.last().filter(|_| is_full).map_or(Progress::Done, |(user, _)| Progress::More(Place::id(*user))))
}

/// The snapshots of these users name a creator no longer. None of them follows it, so no number changes.
#[derive(Debug, Clone)]
struct ForgetCreator {
    creator: UserId,
    users: Vec<UserId>,
}

impl lanes::Command for ForgetCreator {
    fn needs(&self, needs: &mut Needs) {
        self.users.iter().for_each(|user| need_snapshot(needs, *user));
    }

    fn lane_key(&self) -> i64 {
        self.users.first().map_or(0, |user| user.get())
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.users.len()).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, _now: UnixMs) -> Result<Answer, Problem> {
        for user in &self.users {
            let Some(before) = Snapshot::decode(&rows.get::<FeedRows>().snapshot(*user)) else { continue };
            let left = Snapshot::new(before.iter().filter(|(of, _)| *of != self.creator).collect());
            if left.len() < before.len() {
                rows.get_mut::<FeedRows>().set_snapshot(*user, left.encode().into());
            }
        }
        Ok(Answer::no_content())
    }
}
