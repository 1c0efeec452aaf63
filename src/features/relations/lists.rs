//! What is read of relations outside of lanes: pages, whole lists, counts, and what users are to
//! others.
//!
//! A page of what everybody may see reads none of the rows that only some may: those have an index,
//! or a table, of their own. Where both are shown, a page is taken from each, and the two are
//! merged. So a page costs the same wherever it stands in a list, and its time tells nothing of
//! what is left out.

use std::collections::BTreeMap;

use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::cache::ListKey;
use crate::db::{Column, Db, DbResult, Statement, Type};
use crate::engine::marks::{ListVisibility, UserSettings};
use crate::http::pages::Position;

use super::distributed;
use super::request_store;
use super::state::{FollowOptions, PairState, Relation};
use super::{Counts, Listed, Pair};
use crate::features::silence::Mute;

const PAGE: &[(&str, Type)] = &[("user_id", Type::Int), ("since", Type::Int), ("id", Type::Int), ("max_rows", Type::Int)];
const USER: &[(&str, Type)] = &[("user_id", Type::Int)];
const WHOLE: &[(&str, Type)] = &[("user_id", Type::Int), ("max_rows", Type::Int)];

/// Which whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Related {
    /// Whom a user follows.
    Following,
    /// Whom a user blocks.
    Blocks,
    /// Whom a user mutes, also where that has ended.
    Mutes,
}

impl Related {
    pub(super) fn key(self) -> ListKey {
        match self {
            Self::Following => ListKey::Following,
            Self::Blocks => ListKey::Blocks,
            Self::Mutes => ListKey::Mutes,
        }
    }
}

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

/// Whom a user follows, and since when; the row of user 0 has the version of the list, so that they
/// belong together.
static WHOLE_FOLLOWING: Statement = Statement::one(
    "select cast(0 as bigint), coalesce((
        select case when u.following_version > coalesce(c.following_version, 0) then u.following_version else c.following_version end
        from users u
        left join relation_counts c on c.user_id = u.user_id
        where u.user_id = $1
    ), 0)
    union all
    select w.id, w.since from (select f.followee_id as id, f.since from following f where f.follower_id = $1 limit $2) w",
    WHOLE,
);

/// The same for blocks.
static WHOLE_BLOCKS: Statement = Statement::one(
    "select cast(0 as bigint), coalesce((select c.blocks_version from relation_counts c where c.user_id = $1), 0)
    union all
    select w.id, w.since from (select b.target_id as id, b.since from blocks b where b.user_id = $1 limit $2) w",
    WHOLE,
);

static SETTINGS: Statement = Statement::one("select u.settings from users u where u.user_id = $1", USER);
/// The same for mutes, with when they end (0: never).
static WHOLE_MUTES: Statement = Statement::one(
    "select cast(0 as bigint), coalesce((select c.mutes_version from relation_counts c where c.user_id = $1), 0), cast(0 as bigint)
    union all
    select w.id, w.since, w.until from (select m.target_id as id, m.since, m.until from mutes m where m.user_id = $1 limit $2) w",
    WHOLE,
);

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

/// What the two of each pair are to each other, as [`code`] has it: four keys are looked for, and
/// what the first is not told is not asked.
static LOOK: Statement = Statement::new(
    "select r.user_id, r.other_id,
        coalesce((select 1 + 2 * f.secret + 4 * f.special from following f where f.follower_id = r.user_id and f.followee_id = r.other_id), 0)
            + 8 * (select count(*) from blocks b where b.user_id = r.user_id and b.target_id = r.other_id)
            + coalesce((select case when m.until = 0 then 64 else 128 end from mutes m where m.user_id = r.user_id and m.target_id = r.other_id), 0)
            + 16 * coalesce((select 1 + 2 * f.secret from following f where f.follower_id = r.other_id and f.followee_id = r.user_id), 0)
            + coalesce((
                select 9 + 2 * q.secret + 4 * q.special from sent_requests q where q.follower_id = r.user_id and q.followee_id = r.other_id
            ), 0)
    from {rows} r",
    &[("user_id", Type::Int), ("other_id", Type::Int)],
).distributed(distributed::LOOK);

/// All others to whom a user is something, or who are something to the user, as [`code`] has it in
/// parts; of each sort up to so many.
static RELATED: Statement = Statement::one(
    "select a.id, a.code from (
        select f.followee_id as id, 1 + 2 * f.secret + 4 * f.special as code from following f where f.follower_id = $1 limit $2
    ) a
    union all
    select b.id, b.code from (select b.target_id as id, cast(8 as bigint) as code from blocks b where b.user_id = $1 limit $2) b
    union all
    select c.id, c.code from (select f.follower_id as id, cast(16 as bigint) as code from followers f where f.followee_id = $1 limit $2) c
    union all
    select d.id, d.code from (select f.follower_id as id, cast(48 as bigint) as code from secret_followers f where f.followee_id = $1 limit $2) d
    union all
    select e.id, e.code from (
        select q.followee_id as id, 9 + 2 * q.secret + 4 * q.special as code from sent_requests q where q.follower_id = $1 limit $2
    ) e
    union all
    select g.id, g.code from (
        select m.target_id as id, case when m.until = 0 then cast(64 as bigint) else 128 end as code from mutes m where m.user_id = $1 limit $2
    ) g",
    WHOLE,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 15] {
    [
        &PUBLIC_FOLLOWING,
        &SECRET_FOLLOWING,
        &ALL_FOLLOWING,
        &SPECIAL,
        &PUBLIC_FOLLOWERS,
        &ALL_FOLLOWERS,
        &MUTUALS,
        &BLOCKS,
        &WHOLE_FOLLOWING,
        &WHOLE_BLOCKS,
        &SETTINGS,
        &WHOLE_MUTES,
        &COUNTS,
        &LOOK,
        &RELATED,
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

fn one(values: &[i64]) -> Vec<Column> {
    values.iter().map(|value| Column::Int(vec![*value])).collect()
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
    let rows: Vec<(i64, i64, i64, i64, i64)> = db.fetch(statement, &one(&[user.get(), after.at, after.id, limit])).await?;
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
    let settings: Vec<(String,)> = db.fetch(&SETTINGS, &one(&[user.get()])).await?;
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
    let rows: Vec<CountsRow> = db.fetch(&COUNTS, &one(&[user.get()])).await?;
    let (following, followers, mutuals, secret, special, blocked, requests, requests_sent) = rows.into_iter().next().unwrap_or_default();
    Ok(Counts { following, followers, mutuals, secret, special, blocked, requests, requests_sent })
}

/// A whole list as SQL has it.
#[derive(Debug, Default)]
pub struct Whole {
    /// The revision at which it changed last.
    pub version: i64,
    /// Who is on it, newest first.
    pub ids: Vec<UserId>,
    /// Of mutes: those that end.
    pub ends: Vec<(UserId, UnixMs)>,
}

/// A whole list, with its version, as of one moment; of one that is longer than `most`, some of it,
/// one more than that.
pub async fn whole(db: &Db, user: UserId, related: Related, most: usize) -> DbResult<Whole> {
    let columns = one(&[user.get(), i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1)]);
    let never = |(id, since): (i64, i64)| (id, since, 0);
    let mut rows: Vec<(i64, i64, i64)> = match related {
        Related::Following => db.fetch(&WHOLE_FOLLOWING, &columns).await?.into_iter().map(never).collect(),
        Related::Blocks => db.fetch(&WHOLE_BLOCKS, &columns).await?.into_iter().map(never).collect(),
        Related::Mutes => db.fetch(&WHOLE_MUTES, &columns).await?,
    };
    let version = rows.iter().find(|(id, ..)| *id == 0).map_or(0, |(_, version, _)| *version);
    rows.sort_unstable_by_key(|(id, since, _)| std::cmp::Reverse((*since, *id)));
    let users = || rows.iter().filter_map(|(id, _, until)| Some((UserId::try_from(*id).ok()?, *until)));
    let ends = users().filter(|(_, until)| *until > 0).map(|(id, until)| (id, UnixMs(until)));
    Ok(Whole { version, ids: users().map(|(id, _)| id).collect(), ends: ends.collect() })
}

/// What the two of each pair are to each other, as the first of it sees that, as a number; as of
/// one moment.
pub async fn look(db: &Db, pairs: &[Pair]) -> DbResult<Vec<(Pair, u8)>> {
    let columns = [
        Column::Int(pairs.iter().map(|pair| pair.follower.get()).collect()),
        Column::Int(pairs.iter().map(|pair| pair.followee.get()).collect()),
    ];
    let rows: Vec<(i64, i64, i64)> = db.fetch(&LOOK, &columns).await?;
    let found = |(user, other, code): (i64, i64, i64)| {
        let pair = Pair { follower: UserId::try_from(user).ok()?, followee: UserId::try_from(other).ok()? };
        Some((pair, u8::try_from(code).ok()?))
    };
    Ok(rows.into_iter().filter_map(found).collect())
}

/// All others of whom [`look`] would tell something else than 0, in the order of their ids, as of
/// one moment; None where there are more than `most`.
pub async fn related(db: &Db, user: UserId, most: usize) -> DbResult<Option<Vec<(UserId, u8)>>> {
    let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let rows: Vec<(i64, i64)> = db.fetch(&RELATED, &one(&[user.get(), limit])).await?;
    let mut others: BTreeMap<UserId, u8> = BTreeMap::new();
    for (id, code) in rows {
        let (Ok(other), Ok(code)) = (UserId::try_from(id), u8::try_from(code)) else { continue };
        *others.entry(other).or_default() |= code;
    }
    Ok((others.len() <= most).then(|| others.into_iter().collect()))
}

/// One mutes the other, for ever or until the time that the row has.
pub(super) const MUTES: u8 = 64;
pub(super) const MUTES_UNTIL: u8 = 128;

/// How far the bits of the other direction stand to the left.
const THEIRS: u32 = 4;

/// A follow and a block together, which there never are: a request in place of a follow, of one's own.
const REQUEST: u8 = 1 + 8;

/// What two users are to each other as a number, as one of them sees that. For each direction: 1
/// for a follow, 2 more if it is secret. Of one's own: 4 more if the other is special, 8 for a
/// block, and both for a request, with the same for its options. The other direction counts
/// sixteenfold; whom the other one blocks or has asked to follow, and who is special to it, is not
/// told.
#[must_use]
pub fn code(pair_state: PairState) -> u8 {
    let options = |options: FollowOptions| 2 * u8::from(options.secret) + 4 * u8::from(options.special);
    let mine = match pair_state.mine {
        Relation::Nothing => 0,
        Relation::Requests(of) => REQUEST + options(of),
        Relation::Follows(of) => 1 + options(of),
        Relation::Blocks => 8,
    };
    let theirs = pair_state.theirs.options().map_or(0, |of| 1 + options(FollowOptions { special: false, ..of }));
    mine + (theirs << THEIRS)
}

/// What a mute adds to such a number. It may have ended: then the row says so, or is gone.
#[must_use]
pub fn mute_code(mute: Option<Mute>) -> u8 {
    match mute {
        None => 0,
        Some(Mute { until: None }) => MUTES,
        Some(Mute { until: Some(_) }) => MUTES_UNTIL,
    }
}

/// What such a number says.
#[must_use]
pub fn pair_state(code: u8) -> PairState {
    let options = |bits: u8| FollowOptions { secret: bits & 2 != 0, special: bits & 4 != 0 };
    let relation = |bits: u8| match bits {
        _ if bits & REQUEST == REQUEST => Relation::Requests(options(bits)),
        _ if bits & 8 != 0 => Relation::Blocks,
        _ if bits & 1 != 0 => Relation::Follows(options(bits)),
        _ => Relation::Nothing,
    };
    PairState { mine: relation(code & 15), theirs: relation((code >> THEIRS) & 3) }
}
