//! The rows of `following`, `followers` and `follower_counts`, and the locks of pairs.

use crate::clock::UnixMs;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::ids::UserId;
use crate::page::Position;

use super::{Counts, Fans, Follow, Listed, Pair};

/// How many locks there are for pairs. An absent row cannot be locked, so a pair is locked by its stripe. All batches together hold no more locks than
/// there are stripes, which must stay well below what Postgres has room for (`max_locks_per_transaction` × `max_connections`, 6400 by default).
pub const STRIPES: u64 = 1024;

/// How many slots the count of a user's followers is spread over. As many lanes may add to it side by side.
pub const SLOTS: i64 = 16;

/// The first of the two numbers of these advisory locks ("pair" in ASCII); the second is the stripe.
const PAIR_LOCKS: i64 = 0x7061_6972;

const PAIR: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int)];
const FOLLOW: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int), ("since", Type::Int)];
const PAGE: &[(&str, Type)] = &[("user_id", Type::Int), ("since", Type::Int), ("id", Type::Int), ("max_rows", Type::Int)];

/// Taken in the order of the stripes; the inner query is not merged into the outer one, as it is ordered. SQLite's one writer needs no lock.
static LOCK_STRIPES: Statement = Statement::each(
    "select stripe from {rows} r where lock_class < 0",
    "select pg_advisory_xact_lock(cast(lock_class as integer), cast(stripe as integer))
    from (select lock_class, stripe from {rows} r order by stripe) sorted",
    &[("lock_class", Type::Int), ("stripe", Type::Int)],
);

static LOAD: Statement = Statement::new(
    "select f.follower_id, f.followee_id, f.since, f.mark
    from {rows} r
    join following f on f.follower_id = r.follower_id and f.followee_id = r.followee_id",
    PAIR,
);

static INSERT_FOLLOWING: Statement =
    Statement::insert("following", &[("follower_id", Type::Int), ("followee_id", Type::Int), ("since", Type::Int), ("mark", Type::Int)]);

static INSERT_FOLLOWERS: Statement = Statement::insert("followers", FOLLOW);

static DELETE_FOLLOWING: Statement = Statement::new(
    "delete from following
    where (follower_id, followee_id) in (select follower_id, followee_id from {rows} r)",
    FOLLOW,
);

static DELETE_FOLLOWERS: Statement = Statement::new(
    "delete from followers
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)",
    FOLLOW,
);

static ADD_COUNTS: Statement = Statement::new(
    "insert into follower_counts (user_id, slot, followers, mutuals)
    select user_id, slot, followers, mutuals
    from {rows} r
    where true
    order by user_id
    on conflict (user_id, slot) do update set
        followers = follower_counts.followers + excluded.followers,
        mutuals = follower_counts.mutuals + excluded.mutuals",
    &[("user_id", Type::Int), ("slot", Type::Int), ("followers", Type::Int), ("mutuals", Type::Int)],
);

static COUNTS: Statement = Statement::new(
    "select r.user_id,
        coalesce((select u.following from users u where u.user_id = r.user_id), 0),
        coalesce((select cast(sum(c.followers) as bigint) from follower_counts c where c.user_id = r.user_id), 0),
        coalesce((select cast(sum(c.mutuals) as bigint) from follower_counts c where c.user_id = r.user_id), 0)
    from {rows} r",
    &[("user_id", Type::Int)],
);

/// Mutual is a count, which is 0 or 1: an `exists` Postgres may choose to answer by making a hash of all follows there are, for a page of twenty.
static PAGE_OF_FOLLOWING: Statement = Statement::one(
    "select f.followee_id, f.since, (select count(*) from following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id)
    from following f
    where f.follower_id = $1 and (f.since, f.followee_id) < ($2, $3)
    order by f.since desc, f.followee_id desc
    limit $4",
    PAGE,
);

static PAGE_OF_FOLLOWERS: Statement = Statement::one(
    "select f.follower_id, f.since, (select count(*) from following b where b.follower_id = f.followee_id and b.followee_id = f.follower_id)
    from followers f
    where f.followee_id = $1 and (f.since, f.follower_id) < ($2, $3)
    order by f.since desc, f.follower_id desc
    limit $4",
    PAGE,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 10] {
    [
        &LOCK_STRIPES,
        &LOAD,
        &INSERT_FOLLOWING,
        &INSERT_FOLLOWERS,
        &DELETE_FOLLOWING,
        &DELETE_FOLLOWERS,
        &ADD_COUNTS,
        &COUNTS,
        &PAGE_OF_FOLLOWING,
        &PAGE_OF_FOLLOWERS,
    ]
}

/// Which of a user's two lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Whom the user follows.
    Following,
    /// Who follows the user.
    Followers,
}

/// Locks pairs against each other for the rest of the transaction, by their stripes (sorted, without repeats). The first thing that a transaction
/// does, so that the order of the locks is also the order of the transactions' numbers.
///
/// # Errors
/// The driver's own.
pub async fn lock_stripes(conn: &mut Conn, stripes: &[i64]) -> DbResult<()> {
    if conn.locks_rows() && !stripes.is_empty() {
        conn.later(&LOCK_STRIPES, &[Column::Int(vec![PAIR_LOCKS; stripes.len()]), Column::Int(stripes.to_vec())]).await?;
    }
    Ok(())
}

fn pair_columns<'a>(pairs: impl Iterator<Item = &'a Pair> + Clone) -> [Column; 2] {
    [Column::Int(pairs.clone().map(|pair| pair.follower.get()).collect()), Column::Int(pairs.map(|pair| pair.followee.get()).collect())]
}

fn follow_of_row((follower, followee, since, mark): (i64, i64, i64, i64)) -> Option<(Pair, Option<Follow>)> {
    let pair = Pair { follower: UserId::try_from(follower).ok()?, followee: UserId::try_from(followee).ok()? };
    Some((pair, Some(Follow { since: UnixMs(since), mark })))
}

/// Loads these follows inside a transaction; the missing ones are left out.
///
/// # Errors
/// The driver's own.
pub async fn load(conn: &mut Conn, pairs: &[Pair]) -> DbResult<Vec<(Pair, Option<Follow>)>> {
    let rows = conn.fetch(&LOAD, &pair_columns(pairs.iter())).await?;
    Ok(rows.into_iter().filter_map(follow_of_row).collect())
}

/// Reads these follows as of one moment; the missing ones are left out.
///
/// # Errors
/// The driver's own.
pub async fn read(db: &Db, pairs: &[Pair]) -> DbResult<Vec<(Pair, Option<Follow>)>> {
    let rows = db.fetch(&LOAD, &pair_columns(pairs.iter())).await?;
    Ok(rows.into_iter().filter_map(follow_of_row).collect())
}

fn follow_columns(follows: &[(Pair, Follow)]) -> [Column; 3] {
    let [followers, followees] = pair_columns(follows.iter().map(|(pair, _)| pair));
    [followers, followees, Column::Int(follows.iter().map(|(_, follow)| follow.since.0).collect())]
}

/// Writes these follows, which are not there yet.
///
/// # Errors
/// The driver's own.
pub async fn insert(conn: &mut Conn, follows: &[(Pair, Follow)]) -> DbResult<()> {
    let columns = follow_columns(follows);
    let [followers, followees, since] = columns.clone();
    let marks = Column::Int(follows.iter().map(|(_, follow)| follow.mark).collect());
    conn.insert(&INSERT_FOLLOWING, &[followers, followees, since, marks]).await?;
    conn.insert(&INSERT_FOLLOWERS, &columns).await
}

/// Removes these follows, which are there.
///
/// # Errors
/// The driver's own.
pub async fn delete(conn: &mut Conn, follows: &[(Pair, Follow)]) -> DbResult<()> {
    let columns = follow_columns(follows);
    conn.later(&DELETE_FOLLOWING, &columns).await?;
    conn.later(&DELETE_FOLLOWERS, &columns).await
}

/// Adds to the counts of these users, in one slot.
///
/// # Errors
/// The driver's own.
pub async fn add_counts(conn: &mut Conn, slot: i64, changes: &[(UserId, Fans)]) -> DbResult<()> {
    let columns = [
        Column::Int(changes.iter().map(|(user, _)| user.get()).collect()),
        Column::Int(vec![slot.rem_euclid(SLOTS); changes.len()]),
        Column::Int(changes.iter().map(|(_, fans)| fans.followers).collect()),
        Column::Int(changes.iter().map(|(_, fans)| fans.mutuals).collect()),
    ];
    conn.later(&ADD_COUNTS, &columns).await
}

/// The counts of one user; zeros for one without rows.
///
/// # Errors
/// The driver's own.
pub async fn counts(db: &Db, user: UserId) -> DbResult<Counts> {
    let rows: Vec<(i64, i64, i64, i64)> = db.fetch(&COUNTS, &[Column::Int(vec![user.get()])]).await?;
    let (_, following, followers, mutuals) = rows.into_iter().next().unwrap_or_default();
    Ok(Counts { following, followers, mutuals })
}

/// Up to `limit` entries of a list that stand after the position, newest first.
///
/// # Errors
/// The driver's own.
pub async fn page(db: &Db, list: List, user: UserId, after: Position, limit: i64) -> DbResult<Vec<Listed>> {
    let statement = match list {
        List::Following => &PAGE_OF_FOLLOWING,
        List::Followers => &PAGE_OF_FOLLOWERS,
    };
    let columns = [user.get(), after.at, after.id, limit].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64, i64)> = db.fetch(statement, &columns).await?;
    Ok(rows.into_iter().filter_map(listed).collect())
}

fn listed((user, since, mutual): (i64, i64, i64)) -> Option<Listed> {
    Some(Listed { user: UserId::try_from(user).ok()?, since: UnixMs(since), mutual: mutual == 1 })
}
