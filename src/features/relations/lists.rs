//! Pages of a user's lists, and counts.
//!
//! A page of what everybody may see reads none of the rows that only some may: those have an index,
//! or a table, of their own. Where both are shown, a page is taken from each, and the two are
//! merged. So a page costs the same wherever it stands in a list, and its time tells nothing of
//! what is left out.

use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::marks::{ListVisibility, UserSettings};
use crate::http::pages::Position;

use super::distributed;
use super::request_store;
use super::state::FollowOptions;
use super::{Counts, Listed};

const PAGE: &[(&str, Type)] = &[("user_id", Type::Int), ("since", Type::Int), ("id", Type::Int), ("max_rows", Type::Int)];
const USER: &[(&str, Type)] = &[("user_id", Type::Int)];

/// Mutual is a number, 1 or 0, of one row at most: an `exists` Postgres may choose to answer by
/// making a hash of all follows there are, for a page of twenty. And it does not filter by
/// `secret`, or the index of public follows might serve, in which the followee stands last: then
/// all follows of each entry are gone through.
static PUBLIC_FOLLOWING: Statement = Statement::one(
    "select f.followee_id, f.since, f.secret, f.special,
        coalesce((select 1 - b.secret from following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id), 0)
    from following f
    where f.follower_id = $1 and f.secret = 0 and (f.since, f.followee_id) < ($2, $3)
    order by f.since desc, f.followee_id desc
    limit $4",
    PAGE,
)
.distributed(distributed::PUBLIC_FOLLOWING);

static SECRET_FOLLOWING: Statement = Statement::one(
    "select f.followee_id, f.since, f.secret, f.special, cast(0 as bigint)
    from following f
    where f.follower_id = $1 and f.secret = 1 and (f.since, f.followee_id) < ($2, $3)
    order by f.since desc, f.followee_id desc
    limit $4",
    PAGE,
);

static ALL_FOLLOWING: Statement = Statement::one(
    "select u.id, u.since, u.secret, u.special,
        (1 - u.secret) * coalesce((select 1 - b.secret from following b where b.follower_id = u.id and b.followee_id = $1), 0)
    from (
        select a.id, a.since, a.secret, a.special from (
            select f.followee_id as id, f.since, f.secret, f.special
            from following f
            where f.follower_id = $1 and f.secret = 0 and (f.since, f.followee_id) < ($2, $3)
            order by f.since desc, f.followee_id desc
            limit $4
        ) a
        union all
        select s.id, s.since, s.secret, s.special from (
            select f.followee_id as id, f.since, f.secret, f.special
            from following f
            where f.follower_id = $1 and f.secret = 1 and (f.since, f.followee_id) < ($2, $3)
            order by f.since desc, f.followee_id desc
            limit $4
        ) s
    ) u
    order by u.since desc, u.id desc
    limit $4",
    PAGE,
)
.distributed(distributed::ALL_FOLLOWING);

static SPECIAL: Statement = Statement::one(
    "select f.followee_id, f.since, f.secret, f.special,
        (1 - f.secret) * coalesce((select 1 - b.secret from following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id), 0)
    from following f
    where f.follower_id = $1 and f.special = 1 and (f.since, f.followee_id) < ($2, $3)
    order by f.since desc, f.followee_id desc
    limit $4",
    PAGE,
).distributed(distributed::SPECIAL);

static PUBLIC_FOLLOWERS: Statement = Statement::one(
    "select f.follower_id, f.since, cast(0 as bigint), cast(0 as bigint),
        coalesce((select 1 - b.secret from following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id), 0)
    from followers f
    where f.followee_id = $1 and (f.since, f.follower_id) < ($2, $3)
    order by f.since desc, f.follower_id desc
    limit $4",
    PAGE,
);

static ALL_FOLLOWERS: Statement = Statement::one(
    "select u.id, u.since, u.secret, cast(0 as bigint),
        (1 - u.secret) * coalesce((select 1 - b.secret from following b where b.follower_id = $1 and b.followee_id = u.id), 0)
    from (
        select a.id, a.since, a.secret from (
            select f.follower_id as id, f.since, cast(0 as bigint) as secret
            from followers f
            where f.followee_id = $1 and (f.since, f.follower_id) < ($2, $3)
            order by f.since desc, f.follower_id desc
            limit $4
        ) a
        union all
        select s.id, s.since, s.secret from (
            select f.follower_id as id, f.since, cast(1 as bigint) as secret
            from secret_followers f
            where f.followee_id = $1 and (f.since, f.follower_id) < ($2, $3)
            order by f.since desc, f.follower_id desc
            limit $4
        ) s
    ) u
    order by u.since desc, u.id desc
    limit $4",
    PAGE,
);

/// In the order of the user's own follows, of which it looks at no more than there are.
static MUTUALS: Statement = Statement::one(
    "select f.followee_id, f.since, f.secret, f.special, cast(1 as bigint)
    from following f
    where f.follower_id = $1 and f.secret = 0 and (f.since, f.followee_id) < ($2, $3)
        and coalesce((select 1 - b.secret from following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id), 0) = 1
    order by f.since desc, f.followee_id desc
    limit $4",
    PAGE,
)
.distributed(distributed::MUTUALS);

static BLOCKS: Statement = Statement::one(
    "select b.target_id, b.since, cast(0 as bigint), cast(0 as bigint), cast(0 as bigint)
    from blocks b
    where b.user_id = $1 and b.since >= 0 and (b.since, b.target_id) < ($2, $3)
    order by b.since desc, b.target_id desc
    limit $4",
    PAGE,
);

static SETTINGS: Statement = Statement::one("select u.settings from users u where u.user_id = $1", USER);
static COUNTS: Statement = Statement::one(
    "select
        coalesce((select u.following from users u where u.user_id = $1), 0),
        coalesce((select cast(sum(c.followers) as bigint) from follower_counts c where c.user_id = $1), 0),
        coalesce((select cast(sum(c.mutuals) as bigint) from follower_counts c where c.user_id = $1), 0),
        coalesce((select c.secret from relation_counts c where c.user_id = $1), 0),
        coalesce((select c.special from relation_counts c where c.user_id = $1), 0),
        coalesce((select c.blocked from relation_counts c where c.user_id = $1), 0),
        coalesce((select cast(sum(c.requests) as bigint) from follower_counts c where c.user_id = $1), 0),
        coalesce((select c.requests from relation_counts c where c.user_id = $1), 0)",
    USER,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 10] {
    [
        &PUBLIC_FOLLOWING,
        &SECRET_FOLLOWING,
        &ALL_FOLLOWING,
        &SPECIAL,
        &PUBLIC_FOLLOWERS,
        &ALL_FOLLOWERS,
        &MUTUALS,
        &BLOCKS,
        &SETTINGS,
        &COUNTS,
    ]
}

/// One of a user's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum List {
    /// Whom the user follows, for everybody to see.
    PublicFollowing,
    /// Whom the user follows in secret.
    SecretFollowing,
    Following,
    /// Who of them is special.
    Special,
    /// Who follows the user, for everybody to see.
    PublicFollowers,
    /// Who follows the user.
    Followers,
    /// Whom the user follows and who follows back, for everybody to see.
    Mutuals,
    Blocks,
    /// Who has asked to follow the user.
    Requests,
    /// Whom the user has asked to follow.
    SentRequests,
}

impl List {
    /// As its route has it, whatever is shown of it: by this a cursor is told from another list's.
    #[must_use]
    pub fn route(self) -> &'static str {
        match self {
            Self::PublicFollowing | Self::SecretFollowing | Self::Following => "following",
            Self::Special => "special",
            Self::PublicFollowers | Self::Followers => "followers",
            Self::Mutuals => "mutuals",
            Self::Blocks => "blocks",
            Self::Requests => "follow-requests",
            Self::SentRequests => "follow-requests/sent",
        }
    }
}

/// Up to `limit` entries of a list that stand after the position, newest first.
pub async fn page(db: &Db, list: List, user: UserId, after: Position, limit: i64) -> DbResult<Vec<Listed>> {
    let statement = match list {
        List::PublicFollowing => &PUBLIC_FOLLOWING,
        List::SecretFollowing => &SECRET_FOLLOWING,
        List::Following => &ALL_FOLLOWING,
        List::Special => &SPECIAL,
        List::PublicFollowers => &PUBLIC_FOLLOWERS,
        List::Followers => &ALL_FOLLOWERS,
        List::Mutuals => &MUTUALS,
        List::Blocks => &BLOCKS,
        List::Requests => &request_store::RECEIVED,
        List::SentRequests => &request_store::SENT,
    };
    let rows: Vec<(i64, i64, i64, i64, i64)> = db.fetch(statement, &Column::one_row(&[user.get(), after.at, after.id, limit])).await?;
    Ok(rows.into_iter().filter_map(listed).collect())
}

/// Some of a list, as others are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPage {
    pub rows: Vec<Listed>,
    /// Who may see it.
    pub visibility: ListVisibility,
}

/// The same as [`page`], for others. Who may see it is read afterwards: what was done behind a list
/// that is hidden by then is not shown.
pub async fn page_for_others(db: &Db, list: List, user: UserId, after: Position, limit: i64) -> DbResult<ShownPage> {
    let rows = page(db, list, user, after, limit).await?;
    let settings: Vec<(String,)> = db.fetch(&SETTINGS, &Column::one_row(&[user.get()])).await?;
    let visibility = settings.first().map(|(text,)| UserSettings::from_row(text).lists()).unwrap_or_default();
    Ok(ShownPage { rows, visibility })
}

fn listed((user, since, secret, special, mutual): (i64, i64, i64, i64, i64)) -> Option<Listed> {
    let options = FollowOptions { secret: secret == 1, special: special == 1 };
    Some(Listed { user: UserId::try_from(user).ok()?, since: UnixMs(since), options, mutual: mutual == 1 })
}

/// A row of [`COUNTS`].
type CountsRow = (i64, i64, i64, i64, i64, i64, i64, i64);

/// The counts of one user as of one moment; zeros for one without rows.
pub async fn counts(db: &Db, user: UserId) -> DbResult<Counts> {
    let rows: Vec<CountsRow> = db.fetch(&COUNTS, &Column::one_row(&[user.get()])).await?;
    let (following, followers, mutuals, secret, special, blocked, requests, requests_sent) = rows.into_iter().next().unwrap_or_default();
    Ok(Counts { following, followers, mutuals, secret, special, blocked, requests, requests_sent })
}
