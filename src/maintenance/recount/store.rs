//! The statements of a recount. Each comparison is one statement, and so of one moment.

use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Statement, Type};
use crate::features::relations::{Fans, store as relations};

use super::distributed;
use super::{Difference, What};

/// How many findings are fetched at once.
pub(super) const PAGE: usize = 1000;

/// All users of whom there is any row that counts or is counted.
static NEXT_USERS: Statement = Statement::one(
    "select user_id from (
        select user_id from (select user_id from users where user_id > $1 order by user_id limit $2) a
        union select user_id from (select distinct user_id from marks where user_id > $1 order by user_id limit $2) b
        union select follower_id from (select distinct follower_id from following where follower_id > $1 order by follower_id limit $2) c
        union select followee_id from (select distinct followee_id from followers where followee_id > $1 order by followee_id limit $2) d
        union select user_id from (select distinct user_id from follower_counts where user_id > $1 order by user_id limit $2) e
        union select user_id from (select distinct user_id from directs where user_id > $1 order by user_id limit $2) f
        union select followee_id from (select distinct followee_id from secret_followers where followee_id > $1 order by followee_id limit $2) g
        union select user_id from (select distinct user_id from blocks where user_id > $1 order by user_id limit $2) h
        union select user_id from (select user_id from relation_counts where user_id > $1 order by user_id limit $2) i
        union select user_id from (select distinct user_id from notification_types where user_id > $1 order by user_id limit $2) j
        union select user_id from (select distinct user_id from notification_receivers where user_id > $1 order by user_id limit $2) k
        union select owner_id from (select owner_id from heads where owner_id > $1 and kind = 5 order by owner_id limit $2) l
        union select user_id from (select distinct user_id from posts where user_id > $1 order by user_id limit $2) m
        union select follower_id from (select distinct follower_id from sent_requests where follower_id > $1 order by follower_id limit $2) n
        union select followee_id from (select distinct followee_id from follow_requests where followee_id > $1 order by followee_id limit $2) o
        union select user_id from (select distinct user_id from memberships where user_id > $1 order by user_id limit $2) p
    ) ids
    order by user_id
    limit $2",
    &[("after", Type::Int), ("max_rows", Type::Int)],
);

/// Follows of these users that their followees' side lacks, after a place in the order of the key.
pub(super) static MISSING: Statement = Statement::new(
    "select f.follower_id, f.followee_id, f.since
    from {rows} r
    join following f on f.follower_id = r.user_id
    where (f.follower_id, f.followee_id) > (r.after_follower, r.after_followee)
        and (case when f.secret = 1 then (
            select count(*) from secret_followers b
            where b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
        ) else (
            select count(*) from followers b
            where b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
        ) end) = 0
    order by f.follower_id, f.followee_id
    limit 1000",
    &[("user_id", Type::Int), ("after_follower", Type::Int), ("after_followee", Type::Int)],
)
.distributed(distributed::MISSING)
.by("user_id");

/// The same for one followee. There is no index for this direction, so it reads all follows.
pub(super) static MISSING_OF: Statement = Statement::one(
    "select f.follower_id, f.followee_id, f.since
    from following f
    where f.followee_id = $1 and f.follower_id > $2
        and (case when f.secret = 1 then (
            select count(*) from secret_followers b
            where b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
        ) else (
            select count(*) from followers b
            where b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
        ) end) = 0
    order by f.follower_id
    limit 1000",
    &[("user_id", Type::Int), ("after_follower", Type::Int)],
)
.distributed(distributed::MISSING_OF);

/// Followers of these users that do not follow, or not since then, or in secret, after a place in
/// the order of the key.
pub(super) static EXTRA: Statement = Statement::new(
    "select b.follower_id, b.followee_id, b.since
    from {rows} r
    join followers b on b.followee_id = r.user_id
    where (b.followee_id, b.since, b.follower_id) > (r.after_followee, r.after_since, r.after_follower)
        and not exists (
            select 1 from following f
            where f.follower_id = b.follower_id and f.followee_id = b.followee_id and f.since = b.since and f.secret = 0
        )
    order by b.followee_id, b.since, b.follower_id
    limit 1000",
    EXTRA_PLACE,
)
.distributed(distributed::EXTRA)
.by("user_id");

/// The same of secret followers.
pub(super) static EXTRA_SECRET: Statement = Statement::new(
    "select b.follower_id, b.followee_id, b.since
    from {rows} r
    join secret_followers b on b.followee_id = r.user_id
    where (b.followee_id, b.since, b.follower_id) > (r.after_followee, r.after_since, r.after_follower)
        and not exists (
            select 1 from following f
            where f.follower_id = b.follower_id and f.followee_id = b.followee_id and f.since = b.since and f.secret = 1
        )
    order by b.followee_id, b.since, b.follower_id
    limit 1000",
    EXTRA_PLACE,
)
.distributed(distributed::EXTRA_SECRET)
.by("user_id");

pub(super) const EXTRA_PLACE: &[(&str, Type)] =
    &[("user_id", Type::Int), ("after_followee", Type::Int), ("after_since", Type::Int), ("after_follower", Type::Int)];
pub(super) const PAIR: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int)];
pub(super) const ROW: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int), ("since", Type::Int)];

/// Looks again, as something may have changed before the pairs were locked.
pub(super) static ADD_MISSING: Statement = Statement::new(
    "insert into followers (followee_id, since, follower_id)
    select f.followee_id, f.since, f.follower_id
    from {rows} r
    join following f on f.follower_id = r.follower_id and f.followee_id = r.followee_id and f.secret = 0
    where not exists (
        select 1 from followers b
        where b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
    )",
    PAIR,
)
.distributed(distributed::ADD_MISSING)
.by("follower_id");

pub(super) static ADD_MISSING_SECRET: Statement = Statement::new(
    "insert into secret_followers (followee_id, since, follower_id)
    select f.followee_id, f.since, f.follower_id
    from {rows} r
    join following f on f.follower_id = r.follower_id and f.followee_id = r.followee_id and f.secret = 1
    where not exists (
        select 1 from secret_followers b
        where b.followee_id = f.followee_id and b.since = f.since and b.follower_id = f.follower_id
    )",
    PAIR,
)
.distributed(distributed::ADD_MISSING_SECRET)
.by("follower_id");

pub(super) static REMOVE_EXTRA: Statement = Statement::new(
    "delete from followers
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)
        and not exists (
            select 1 from following f
            where f.follower_id = followers.follower_id and f.followee_id = followers.followee_id and f.since = followers.since and f.secret = 0
        )",
    ROW,
).distributed(distributed::REMOVE_EXTRA).by("followee_id");

pub(super) static REMOVE_EXTRA_SECRET: Statement = Statement::new(
    "delete from secret_followers
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)
        and not exists (
            select 1 from following f
            where f.follower_id = secret_followers.follower_id and f.followee_id = secret_followers.followee_id
                and f.since = secret_followers.since and f.secret = 1
        )",
    ROW,
)
.distributed(distributed::REMOVE_EXTRA_SECRET)
.by("followee_id");

/// Every number of these users beside what it is to count, where any differs.
static COUNT: Statement = Statement::new(
    "select user_id, following, following_counted, followers, followers_counted, mutuals, mutuals_counted,
        secret, secret_counted, special, special_counted, blocked, blocked_counted
    from (
        select r.user_id,
            coalesce(u.following, 0) as following,
            (select count(*) from following f where f.follower_id = r.user_id) as following_counted,
            coalesce((select cast(sum(c.followers) as bigint) from follower_counts c where c.user_id = r.user_id), 0) as followers,
            (select count(*) from followers b where b.followee_id = r.user_id)
                + (select count(*) from secret_followers b where b.followee_id = r.user_id) as followers_counted,
            coalesce((select cast(sum(c.mutuals) as bigint) from follower_counts c where c.user_id = r.user_id), 0) as mutuals,
            (
                select count(*)
                from following f
                join following b on b.follower_id = f.followee_id and b.followee_id = f.follower_id
                where f.follower_id = r.user_id and f.secret + b.secret = 0
            ) as mutuals_counted,
            coalesce(o.secret, 0) as secret,
            (select count(*) from following f where f.follower_id = r.user_id and f.secret = 1) as secret_counted,
            coalesce(o.special, 0) as special,
            (select count(*) from following f where f.follower_id = r.user_id and f.special = 1) as special_counted,
            coalesce(o.blocked, 0) as blocked,
            (select count(*) from blocks b where b.user_id = r.user_id) as blocked_counted
        from {rows} r
        left join users u on u.user_id = r.user_id
        left join relation_counts o on o.user_id = r.user_id
    ) counted
    where following <> following_counted or followers <> followers_counted or mutuals <> mutuals_counted
        or secret <> secret_counted or special <> special_counted or blocked <> blocked_counted
    order by user_id",
    &[("user_id", Type::Int)],
)
.distributed(distributed::COUNT)
.by("user_id");

/// The same of requests to follow.
static COUNT_REQUESTS: Statement = Statement::new(
    "select user_id, requests, requests_counted, sent, sent_counted
    from (
        select r.user_id,
            coalesce((select cast(sum(c.requests) as bigint) from follower_counts c where c.user_id = r.user_id), 0) as requests,
            (select count(*) from follow_requests q where q.followee_id = r.user_id) as requests_counted,
            coalesce((select c.requests from relation_counts c where c.user_id = r.user_id), 0) as sent,
            (select count(*) from sent_requests q where q.follower_id = r.user_id) as sent_counted
        from {rows} r
    ) counted
    where requests <> requests_counted or sent <> sent_counted
    order by user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// Under the lock of the user's row, as lanes write it.
static ADD_TO_OWN: Statement = Statement::new(
    "insert into relation_counts (user_id, secret, special, blocked, following_version, blocks_version, requests, requests_version)
    select user_id, secret, special, blocked, 0, 0, requests, 0
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set
        secret = relation_counts.secret + excluded.secret,
        special = relation_counts.special + excluded.special,
        blocked = relation_counts.blocked + excluded.blocked,
        requests = relation_counts.requests + excluded.requests",
    &[("user_id", Type::Int), ("secret", Type::Int), ("special", Type::Int), ("blocked", Type::Int), ("requests", Type::Int)],
);

static ADD_TO_USERS: Statement = Statement::new(
    "insert into users (user_id, version, revision, following)
    select user_id, 1, 0, following
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set
        version = users.version + 1,
        following = users.following + excluded.following",
    &[("user_id", Type::Int), ("following", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 13] {
    [
        &NEXT_USERS,
        &MISSING,
        &MISSING_OF,
        &EXTRA,
        &EXTRA_SECRET,
        &ADD_MISSING,
        &ADD_MISSING_SECRET,
        &REMOVE_EXTRA,
        &REMOVE_EXTRA_SECRET,
        &COUNT,
        &COUNT_REQUESTS,
        &ADD_TO_USERS,
        &ADD_TO_OWN,
    ]
}

/// A row of either side: who, whom, since when.
pub(super) type Row = (i64, i64, i64);

pub(super) async fn next_users(conn: &mut Conn, after: i64, max_rows: i64) -> DbResult<Vec<i64>> {
    let rows: Vec<(i64,)> = conn.fetch(&NEXT_USERS, &[after, max_rows].map(|value| Column::Int(vec![value]))).await?;
    Ok(rows.into_iter().map(|(user,)| user).collect())
}

/// All numbers of a user, stored and counted.
type Numbers = (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64);

pub(super) async fn count(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<Difference>> {
    let rows: Vec<Numbers> = conn.fetch(&COUNT, &[Column::Int(users.to_vec())]).await?;
    let differences = |row: Numbers| {
        let difference = |what, stored, counted| Difference::new(row.0, what, stored, counted);
        [
            difference(What::Following, row.1, row.2),
            difference(What::Followers, row.3, row.4),
            difference(What::Mutuals, row.5, row.6),
            difference(What::Secret, row.7, row.8),
            difference(What::Special, row.9, row.10),
            difference(What::Blocked, row.11, row.12),
        ]
    };
    let requests: Vec<(i64, i64, i64, i64, i64)> = conn.fetch(&COUNT_REQUESTS, &[Column::Int(users.to_vec())]).await?;
    let requests = requests.into_iter().flat_map(|(user, received, received_counted, sent, sent_counted)| {
        [Difference::new(user, What::Requests, received, received_counted), Difference::new(user, What::SentRequests, sent, sent_counted)]
    });
    Ok(rows.into_iter().flat_map(differences).chain(requests).filter(|found| found.stored != found.counted).collect())
}

/// What is to be added to the numbers of a user.
#[derive(Default)]
struct Added {
    following: i64,
    fans: Fans,
    secret: i64,
    special: i64,
    blocked: i64,
    sent: i64,
}

impl Added {
    fn own(&self) -> bool {
        (self.secret, self.special, self.blocked, self.sent) != (0, 0, 0, 0)
    }
}

/// Adds what is missing (or takes away what is too much), inside a transaction; users first, then
/// what their relations count, then the counts of followers, each in the order of the users.
pub(super) async fn repair_numbers(conn: &mut Conn, found: &[Difference]) -> DbResult<()> {
    let mut users: std::collections::BTreeMap<i64, Added> = std::collections::BTreeMap::new();
    for difference in found {
        let by = difference.missing();
        let added = users.entry(difference.user).or_default();
        match difference.what {
            What::Following => added.following += by,
            What::Followers => added.fans.followers += by,
            What::Mutuals => added.fans.mutuals += by,
            What::Secret => added.secret += by,
            What::Special => added.special += by,
            What::Blocked => added.blocked += by,
            What::Requests => added.fans.requests += by,
            What::SentRequests => added.sent += by,
            _ => {}
        }
    }
    let column = |these: &[(&i64, &Added)], value: fn(&Added) -> i64| Column::Int(these.iter().map(|(_, added)| value(added)).collect());
    let ids = |these: &[(&i64, &Added)]| Column::Int(these.iter().map(|(user, _)| **user).collect());
    let rows: Vec<_> = users.iter().filter(|(_, added)| added.following != 0 || added.own()).collect();
    if !rows.is_empty() {
        let columns = [ids(&rows), column(&rows, |added| added.following)];
        conn.run(&ADD_TO_USERS, &columns).await?;
    }
    let own: Vec<_> = users.iter().filter(|(_, added)| added.own()).collect();
    if !own.is_empty() {
        let columns = [
            ids(&own),
            column(&own, |added| added.secret),
            column(&own, |added| added.special),
            column(&own, |added| added.blocked),
            column(&own, |added| added.sent),
        ];
        conn.run(&ADD_TO_OWN, &columns).await?;
    }
    let fans = |(user, added): (&i64, &Added)| {
        UserId::try_from(*user).ok().filter(|_| added.fans != Fans::default()).map(|user| (user, added.fans))
    };
    let fans: Vec<_> = users.iter().filter_map(fans).collect();
    if fans.is_empty() { Ok(()) } else { relations::add_counts(conn, 0, &fans).await }
}
