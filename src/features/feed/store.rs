//! The rows of `posts` and `feed_snapshots`, and a user's whole list as one statement.

use std::collections::HashMap;
use std::sync::Arc;

use super::distributed;
use super::horizon::{Horizon, Search, Stamp};
use super::snapshot::Snapshot;
use super::{FeedConfig, Followed, Post};
use crate::base::clock::{DAY_MS, UnixMs};
use crate::base::ids::{ClientId, UserId};
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};
use crate::engine::heads::Batch;

const POST_KEY: &[(&str, Type)] = &[("user_id", Type::Int), ("post_id", Type::Text)];
const USER: &[(&str, Type)] = &[("user_id", Type::Int)];

static LOAD_POSTS: Statement = Statement::new(
    "select p.user_id, p.post_id, p.seq, p.created_at, p.gone
    from {rows} r
    join posts p on p.user_id = r.user_id and p.post_id = r.post_id",
    POST_KEY,
)
.by("user_id");

/// The lane and the batch stay those that made the post: a deletion is no other post.
static SAVE_POSTS: Statement = Statement::new(
    "insert into posts (user_id, post_id, seq, created_at, gone, lane_id, batch)
    select user_id, post_id, seq, created_at, gone, lane_id, batch
    from {rows} r
    where true
    order by user_id, post_id
    on conflict (user_id, post_id) do update set
        seq = excluded.seq,
        created_at = excluded.created_at,
        gone = excluded.gone",
    &[
        ("user_id", Type::Int),
        ("post_id", Type::Text),
        ("seq", Type::Int),
        ("created_at", Type::Int),
        ("gone", Type::Int),
        ("lane_id", Type::Int),
        ("batch", Type::Int),
    ],
);

static LOAD_SNAPSHOTS: Statement = Statement::new(
    "select s.user_id, s.data
    from {rows} r
    join feed_snapshots s on s.user_id = r.user_id",
    USER,
)
.by("user_id");

static SAVE_SNAPSHOTS: Statement = Statement::new(
    "insert into feed_snapshots (user_id, data)
    select user_id, data
    from {rows} r
    where true
    order by user_id
    on conflict (user_id) do update set data = excluded.data",
    &[("user_id", Type::Int), ("data", Type::Bytes)],
);

static DELETE_SNAPSHOTS: Statement = Statement::new(
    "delete from feed_snapshots
    where user_id in (select user_id from {rows} r)",
    USER,
)
.by("user_id");

/// Whom these users follow.
static LOAD_FOLLOWEES: Statement = Statement::new(
    "select f.follower_id, f.followee_id
    from {rows} r
    join following f on f.follower_id = r.user_id",
    USER,
)
.by("user_id");

/// Whom a user follows, with how much each has posted; the first row (creator 0) has the version of
/// the list, so that they belong together. Each head is asked for by itself: as a join, planned
/// while there are few heads, it would compare each creator with all of them for as long as the
/// connection keeps the plan.
static FOLLOWED: Statement = Statement::one(
    "select 0 as creator_id, u.feed as head
    from users u
    where u.user_id = $1
    union all
    select f.followee_id, coalesce((select h.head from heads h where h.owner_id = f.followee_id and h.kind = 5 and h.name = ''), 0)
    from following f
    where f.follower_id = $1
    order by 1",
    USER,
)
.distributed(distributed::FOLLOWED);

/// Whom a user follows, with the mark of each follow (1); the first row (0) has the version of the list
/// and the snapshot; then (2) whom the user mutes, and until when.
static LIST: Statement = Statement::one(
    "select 0 as what, cast(0 as bigint) as creator_id, u.feed as mark, s.data
    from users u
    left join feed_snapshots s on s.user_id = u.user_id
    where u.user_id = $1
    union all
    select 1, f.followee_id, f.mark, null
    from following f
    where f.follower_id = $1
    union all
    select 2, m.target_id, m.until, null
    from mutes m
    where m.user_id = $1
    order by 1, 2",
    USER,
);

/// How many posts of a creator are gone between a mark and a head.
static GONE: Statement = Statement::new(
    "select r.user_id, (select count(*) from posts p where p.user_id = r.user_id and p.gone = 1 and p.seq > r.mark and p.seq <= r.head)
    from {rows} r",
    &[("user_id", Type::Int), ("mark", Type::Int), ("head", Type::Int)],
)
.by("user_id");

/// The heads of these creators, with who raised or changed each last. Each is asked for by itself on Postgres, for the
/// reason that [`FOLLOWED`] has: planned while there are few heads, a join took seconds for some thousand creators.
static WRITTEN_HEADS: Statement = Statement::each(
    distributed::WRITTEN_HEADS,
    "select h.owner_id, h.head, h.lane_id, h.batch, h.at
    from {rows} r
    cross join lateral (
        select a.owner_id, a.head, a.lane_id, a.batch, a.at
        from heads a
        where a.owner_id = r.user_id and a.kind = 5 and a.name = ''
        limit 1
    ) h",
    USER,
)
.distributed(distributed::WRITTEN_HEADS)
.by("user_id");

/// Who wrote these posts.
static WRITTEN_POSTS: Statement = Statement::new(
    "select p.user_id, p.seq, p.lane_id, p.batch, p.created_at
    from {rows} r
    join posts p on p.user_id = r.user_id and p.seq = r.seq",
    &[("user_id", Type::Int), ("seq", Type::Int)],
)
.by("user_id");

/// Those that are gone stay: see the module of the feed.
/// Looked at again whether it was deleted meanwhile, as then its row is needed.
static SWEEP: Statement = Statement::one(
    "delete from posts
    where (user_id, post_id) in (
        select p.user_id, p.post_id
        from posts p
        where p.created_at < $1 and p.gone = 0
        order by p.created_at
        limit $2
    ) and gone = 0",
    &[("oldest", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 12] {
    [
        &LOAD_POSTS,
        &SAVE_POSTS,
        &LOAD_SNAPSHOTS,
        &SAVE_SNAPSHOTS,
        &DELETE_SNAPSHOTS,
        &LOAD_FOLLOWEES,
        &FOLLOWED,
        &LIST,
        &GONE,
        &WRITTEN_HEADS,
        &WRITTEN_POSTS,
        &SWEEP,
    ]
}

fn users(users: &[UserId]) -> Column {
    Column::Int(users.iter().map(|user| user.get()).collect())
}

/// A key of `posts` and its row.
pub type PostRow = ((UserId, ClientId), Option<Post>);

/// Loads these posts inside a transaction; the missing ones are left out.
pub async fn load_posts(pipeline: &Pipeline, keys: &[(UserId, ClientId)]) -> DbResult<Vec<PostRow>> {
    let columns = [
        Column::Int(keys.iter().map(|(creator, _)| creator.get()).collect()),
        Column::Text(keys.iter().map(|(_, post)| post.as_str().to_owned()).collect()),
    ];
    let rows: Vec<(i64, String, i64, i64, i64)> = pipeline.fetch(&LOAD_POSTS, columns).await?;
    let post = |(creator, post, seq, created_at, gone): (i64, String, i64, i64, i64)| {
        let key = (UserId::try_from(creator).ok()?, post.parse().ok()?);
        Some((key, Some(Post { seq, created_at: UnixMs(created_at), gone: gone == 1 })))
    };
    Ok(rows.into_iter().filter_map(post).collect())
}

/// Writes these posts.
pub async fn save_posts(conn: &mut Conn, posts: &[(&(UserId, ClientId), Post)], batch: Batch) -> DbResult<()> {
    let columns = [
        Column::Int(posts.iter().map(|((creator, _), _)| creator.get()).collect()),
        Column::Text(posts.iter().map(|((_, id), _)| id.as_str().to_owned()).collect()),
        Column::Int(posts.iter().map(|(_, post)| post.seq).collect()),
        Column::Int(posts.iter().map(|(_, post)| post.created_at.0).collect()),
        Column::Int(posts.iter().map(|(_, post)| i64::from(post.gone)).collect()),
        Column::Int(vec![batch.lane_id; posts.len()]),
        Column::Int(vec![batch.batch; posts.len()]),
    ];
    conn.later(&SAVE_POSTS, &columns).await
}

/// Loads these users' snapshots inside a transaction; the missing ones are left out.
pub async fn load_snapshots(pipeline: &Pipeline, of: &[UserId]) -> DbResult<Vec<(UserId, Arc<[u8]>)>> {
    let rows: Vec<(i64, Vec<u8>)> = pipeline.fetch(&LOAD_SNAPSHOTS, [users(of)]).await?;
    Ok(rows.into_iter().filter_map(|(user, data)| Some((UserId::try_from(user).ok()?, data.into()))).collect())
}

/// Loads whom these users follow inside a transaction: each user with one of them.
pub async fn load_followees(pipeline: &Pipeline, of: &[UserId]) -> DbResult<Vec<(UserId, UserId)>> {
    let rows: Vec<(i64, i64)> = pipeline.fetch(&LOAD_FOLLOWEES, [users(of)]).await?;
    let follow = |(user, creator): (i64, i64)| Some((UserId::try_from(user).ok()?, UserId::try_from(creator).ok()?));
    Ok(rows.into_iter().filter_map(follow).collect())
}

/// Writes these users' snapshots.
pub async fn save_snapshots(conn: &mut Conn, snapshots: &[(UserId, Arc<[u8]>)]) -> DbResult<()> {
    let columns = [
        Column::Int(snapshots.iter().map(|(user, _)| user.get()).collect()),
        Column::Bytes(snapshots.iter().map(|(_, data)| data.to_vec()).collect()),
    ];
    conn.later(&SAVE_SNAPSHOTS, &columns).await
}

/// Removes these users' snapshots.
pub async fn delete_snapshots(conn: &mut Conn, of: &[UserId]) -> DbResult<()> {
    conn.later(&DELETE_SNAPSHOTS, &[users(of)]).await
}

/// Whom a user follows and how much they have posted, as of one moment.
pub async fn read_followed(db: &Db, user: UserId) -> DbResult<Followed> {
    let rows: Vec<(i64, i64)> = db.fetch(&FOLLOWED, &[users(&[user])]).await?;
    let version = rows.first().filter(|(creator, _)| *creator == 0).map_or(0, |(_, version)| *version);
    let heads = rows.into_iter().filter_map(|(creator, head)| Some((UserId::try_from(creator).ok()?, head)));
    Ok(Followed { version, heads: Snapshot::new(heads.collect()) })
}

/// Whom a user follows and how much they had posted at a horizon.
pub async fn read_followed_at(db: &Db, user: UserId, horizon: &Horizon) -> DbResult<Followed> {
    let followed = read_followed(db, user).await?;
    let creators: Vec<_> = followed.heads.iter().map(|(creator, _)| creator).collect();
    let counted: HashMap<_, _> = horizon.counted.iter().collect();
    let (mut heads, mut searches) = (Vec::with_capacity(creators.len()), Vec::new());
    for (creator, head, stamp) in written_heads(db, &creators).await? {
        match counted.get(&creator) {
            Some(counted) => heads.push((creator, head.min(*counted))),
            None if horizon.covers(stamp) => heads.push((creator, head)),
            None => searches.push((creator, Search::up_to(head))),
        }
    }
    search(db, &mut searches, horizon).await?;
    heads.extend(searches.iter().map(|(creator, search)| (*creator, search.head())));
    Ok(Followed { version: followed.version, heads: Snapshot::new(heads) })
}

/// The heads of these creators, with who changed each last.
async fn written_heads(db: &Db, creators: &[UserId]) -> DbResult<Vec<(UserId, i64, Stamp)>> {
    if creators.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<(i64, i64, i64, i64, i64)> = db.fetch(&WRITTEN_HEADS, &[users(creators)]).await?;
    let head = |(creator, head, lane_id, batch, at): (i64, i64, i64, i64, i64)| {
        Some((UserId::try_from(creator).ok()?, head, Stamp { lane_id, batch, at: UnixMs(at) }))
    };
    Ok(rows.into_iter().filter_map(head).collect())
}

/// Brings these searches to their ends, one statement for a step of all of them. There are as many
/// steps as a head has bits at most, and twice that where the horizon is far below.
async fn search(db: &Db, searches: &mut [(UserId, Search)], horizon: &Horizon) -> DbResult<()> {
    loop {
        let asked: Vec<_> = searches.iter().filter_map(|(creator, search)| Some((creator.get(), search.next()?))).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let columns =
            [Column::Int(asked.iter().map(|(creator, _)| *creator).collect()), Column::Int(asked.iter().map(|(_, seq)| *seq).collect())];
        let rows: Vec<(i64, i64, i64, i64, i64)> = db.fetch(&WRITTEN_POSTS, &columns).await?;
        let stamp = |(creator, _, lane_id, batch, at): (i64, i64, i64, i64, i64)| (creator, Stamp { lane_id, batch, at: UnixMs(at) });
        let found: HashMap<_, _> = rows.into_iter().map(stamp).collect();
        for (creator, search) in searches.iter_mut() {
            if let Some(seq) = search.next() {
                // A row that is kept no longer is older than any token that is taken.
                search.tell(seq, found.get(&creator.get()).is_none_or(|stamp| horizon.covers(*stamp)));
            }
        }
    }
}

/// A user's list as SQL has it: its version, whom the user follows with the mark of the follow, and
/// the snapshot as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRows {
    /// The revision at which it changed last.
    pub version: i64,
    /// The follows.
    pub follows: Snapshot,
    /// The snapshot; empty where there is none.
    pub snapshot: Vec<u8>,
    /// Those of the creators whom the user mutes, each with the time at which that ends; 0: never.
    pub muted: Snapshot,
}

/// Reads a user's list, as of one moment.
pub async fn read_list(db: &Db, user: UserId) -> DbResult<ListRows> {
    let rows: Vec<(i32, i64, i64, Option<Vec<u8>>)> = db.fetch(&LIST, &[users(&[user])]).await?;
    let (mut version, mut snapshot, mut follows, mut muted) = (0, Vec::new(), Vec::with_capacity(rows.len()), Vec::new());
    for (what, creator, mark, data) in rows {
        match (what, UserId::try_from(creator)) {
            (1, Ok(creator)) => follows.push((creator, mark)),
            (2, Ok(creator)) => muted.push((creator, mark)),
            _ => (version, snapshot) = (mark, data.unwrap_or_default()),
        }
    }
    // In the order of the creators.
    muted.retain(|(creator, _)| follows.binary_search_by_key(creator, |(followed, _)| *followed).is_ok());
    Ok(ListRows { version, follows: Snapshot::new(follows), snapshot, muted: Snapshot::new(muted) })
}

/// How many posts of each creator are gone above its mark and up to its head; given creator, mark
/// and head.
pub async fn gone(db: &Db, creators: &[(UserId, i64, i64)]) -> DbResult<Vec<(UserId, i64)>> {
    let columns = [
        Column::Int(creators.iter().map(|(creator, ..)| creator.get()).collect()),
        Column::Int(creators.iter().map(|(_, mark, _)| *mark).collect()),
        Column::Int(creators.iter().map(|(.., head)| *head).collect()),
    ];
    let rows: Vec<(i64, i64)> = db.fetch(&GONE, &columns).await?;
    Ok(rows.into_iter().filter_map(|(creator, gone)| Some((UserId::try_from(creator).ok()?, gone))).collect())
}

/// How many rows one round of the sweep removes.
const SWEEP_ROWS: i64 = 1000;

/// Removes some posts that are kept no longer; returns how many. Call again while it returns any.
pub async fn sweep(db: &Db, config: &FeedConfig, now: UnixMs) -> DbResult<u64> {
    if config.post_ttl_days == 0 {
        return Ok(0);
    }
    let oldest = now.0 - i64::from(config.post_ttl_days) * DAY_MS;
    db.run(&SWEEP, &[Column::Int(vec![oldest]), Column::Int(vec![SWEEP_ROWS])]).await
}
