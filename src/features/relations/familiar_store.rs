//! What is read to find familiar followers: whom a user follows, whom these follow, and what they
//! have set.

use std::collections::{BTreeMap, HashSet};

use super::{Pair, distributed};
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::marks::{ListVisibility, UserSettings};

/// Whom a user follows for everybody to see, newest first. The index has these follows alone.
static NEWEST: Statement = Statement::one(
    "select f.followee_id
    from following f
    where f.follower_id = $1 and f.secret = 0
    order by f.since desc, f.followee_id desc
    limit $2",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// Which of the first column follow which of the second. The two are lists of their own; 0 fills the
/// shorter one up. Each pair is a look-up by the key: a join may choose to read all that one of them
/// follows. The second list is put aside, or each of the first would go through what fills it up.
static FOLLOWS: Statement = Statement::new(
    "with t as materialized (
        select r.followee_id from {rows} r where r.followee_id > 0
    )
    select p.follower_id, p.followee_id
    from (
        select r.follower_id, t.followee_id,
            coalesce((select 1 - f.secret from following f where f.follower_id = r.follower_id and f.followee_id = t.followee_id), 0) as follows
        from {rows} r
        cross join t
        where r.follower_id > 0
    ) p
    where p.follows = 1",
    &[("follower_id", Type::Int), ("followee_id", Type::Int)],
)
.distributed(distributed::FOLLOWS);

/// What these users have set, as far as they have.
static SETTINGS: Statement = Statement::new(
    "select u.user_id, u.settings
    from {rows} r
    join users u on u.user_id = r.user_id
    where u.settings <> ''",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&NEWEST, &FOLLOWS, &SETTINGS]
}

/// Up to `most` users whom this one follows for everybody to see, newest first.
pub(super) async fn newest(db: &Db, user: UserId, most: usize) -> DbResult<Vec<UserId>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows: Vec<(i64,)> = db.fetch(&NEWEST, &[user.get(), most].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().filter_map(|(id,)| UserId::try_from(id).ok()).collect())
}

/// What some users show of whom they follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ShownFollows {
    /// Who follows whom for everybody to see.
    pub(super) follows: HashSet<Pair>,
    /// Who may see the lists of the followers, where that is not everybody.
    pub(super) visibility: BTreeMap<UserId, ListVisibility>,
}

/// Which of `followers` follow which of `others`, and who may see their lists. That is read last, so
/// that nothing is shown of what was done behind a hidden list. It is read of all, so that the work
/// is the same whoever hides a list, and whatever that hides.
pub(super) async fn shown(db: &Db, followers: &[UserId], others: &[UserId]) -> DbResult<ShownFollows> {
    let rows = followers.len().max(others.len());
    let column = |users: &[UserId]| {
        let ids = users.iter().map(|user| user.get()).chain(std::iter::repeat(0)).take(rows);
        Column::Int(ids.collect())
    };
    let follows: Vec<(i64, i64)> = db.fetch(&FOLLOWS, &[column(followers), column(others)]).await?;
    let settings: Vec<(i64, String)> = db.fetch(&SETTINGS, &[Column::Int(followers.iter().map(|user| user.get()).collect())]).await?;
    let pair = |(follower, followee)| Some(Pair { follower: UserId::try_from(follower).ok()?, followee: UserId::try_from(followee).ok()? });
    let visibility =
        settings.into_iter().filter_map(|(user, text)| Some((UserId::try_from(user).ok()?, UserSettings::from_row(&text).lists())));
    Ok(ShownFollows {
        follows: follows.into_iter().filter_map(pair).collect(),
        visibility: visibility.filter(|(_, visibility)| *visibility != ListVisibility::All).collect(),
    })
}
