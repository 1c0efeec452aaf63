//! The rows of `following`, `followers`, `secret_followers`, `blocks`, `relation_counts` and
//! `follower_counts` that lanes load and write. What is read of them outside of lanes is in
//! `lists.rs`, `whole_lists.rs` and `lookup_store.rs`.

use futures_util::future::try_join;

use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Pipeline, Statement, Type};
use crate::engine::marks::UserSettings;
use crate::engine::pairs::Pair;

use super::state::FollowOptions;
use super::{Fans, Follow, Muted, Own, Raised, Request, Versions};
use crate::features::silence::Mute;

/// How many slots the count of a user's followers is spread over. As many lanes may add to it side
/// by side.
pub const SLOTS: i64 = 16;

const OWN: &[(&str, Type)] = &[
    ("user_id", Type::Int),
    ("secret", Type::Int),
    ("special", Type::Int),
    ("blocked", Type::Int),
    ("following_version", Type::Int),
    ("blocks_version", Type::Int),
    ("mutes_version", Type::Int),
    ("requests", Type::Int),
    ("requests_version", Type::Int),
];
const FOLLOW: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int), ("since", Type::Int)];

/// What there is of these pairs: follows (0) and requests (3) where the first may follow anybody,
/// blocks (1), the first and the last operation that are accepted and not done (2, of the lower id
/// first), and mutes (5); and what the first has set, where that is asked for (4). Where nobody blocks
/// or mutes anybody, nobody has asked to follow, or nothing is pending, as most often, no pair is
/// looked for: an import has thousands.
static LOAD: Statement = Statement::new(
    "select cast(0 as bigint), f.follower_id, f.followee_id, f.since, f.mark, f.secret, f.special, f.badge, f.badge_at
    from {rows} r
    join following f on f.follower_id = r.follower_id and f.followee_id = r.followee_id
    where r.may_follow = 1
    union all
    select cast(1 as bigint), b.user_id, b.target_id, b.since, 0, 0, 0, '', 0
    from {rows} r
    join blocks b on b.user_id = r.follower_id and b.target_id = r.followee_id
    where exists (select 1 from blocks)
    union all
    select cast(2 as bigint), p.low_id, p.high_id, p.first_seq, p.last_seq, 0, 0, '', 0
    from (
        select r.follower_id as low_id, r.followee_id as high_id,
            (select min(o.seq + 0) from operations o where o.low_id = r.follower_id and o.high_id = r.followee_id and o.status = 0) as first_seq,
            (select max(o.seq + 0) from operations o where o.low_id = r.follower_id and o.high_id = r.followee_id and o.status = 0) as last_seq
        from {rows} r
        where r.follower_id < r.followee_id and exists (select 1 from operations where status = 0)
    ) p
    where p.first_seq is not null
    union all
    select cast(3 as bigint), s.follower_id, s.followee_id, s.since, 0, s.secret, s.special, s.badge, s.badge_at
    from {rows} r
    join sent_requests s on s.follower_id = r.follower_id and s.followee_id = r.followee_id
    where r.may_follow = 1 and exists (select 1 from sent_requests)
    union all
    select cast(4 as bigint), u.user_id, r.followee_id, 0, 0, 0, 0, u.settings, 0
    from {rows} r
    join users u on u.user_id = r.follower_id
    where r.approves = 1 and u.settings <> ''
    union all
    select cast(5 as bigint), m.user_id, m.target_id, m.since, m.until, 0, 0, '', 0
    from {rows} r
    join mutes m on m.user_id = r.follower_id and m.target_id = r.followee_id
    where exists (select 1 from mutes)",
    &[("follower_id", Type::Int), ("followee_id", Type::Int), ("may_follow", Type::Int), ("approves", Type::Int)],
).by("follower_id");

static LOAD_OWN: Statement = Statement::new(
    "select c.user_id, c.secret, c.special, c.blocked, c.following_version, c.blocks_version, c.mutes_version, c.requests, c.requests_version
    from {rows} r
    join relation_counts c on c.user_id = r.user_id",
    &[("user_id", Type::Int)],
)
.by("user_id");

/// For counts that were loaded, so that they are there: an update costs less than an insert that
/// meets a row.
static UPDATE_OWN: Statement = Statement::new(
    "update relation_counts
    set secret = r.secret,
        special = r.special,
        blocked = r.blocked,
        following_version = r.following_version,
        blocks_version = r.blocks_version,
        mutes_version = r.mutes_version,
        requests = r.requests,
        requests_version = r.requests_version
    from {rows} r
    where relation_counts.user_id = r.user_id",
    OWN,
)
.by("user_id");

static INSERT_OWN: Statement = Statement::new(
    "insert into relation_counts
        (user_id, secret, special, blocked, following_version, blocks_version, mutes_version, requests, requests_version)
    select user_id, secret, special, blocked, following_version, blocks_version, mutes_version, requests, requests_version
    from {rows} r
    where true
    on conflict (user_id) do update set
        secret = excluded.secret,
        special = excluded.special,
        blocked = excluded.blocked,
        following_version = excluded.following_version,
        blocks_version = excluded.blocks_version,
        mutes_version = excluded.mutes_version,
        requests = excluded.requests,
        requests_version = excluded.requests_version",
    OWN,
);

static INSERT_FOLLOWING: Statement = Statement::insert(
    "following",
    &[
        ("follower_id", Type::Int),
        ("followee_id", Type::Int),
        ("since", Type::Int),
        ("mark", Type::Int),
        ("secret", Type::Int),
        ("special", Type::Int),
        ("badge", Type::Text),
        ("badge_at", Type::Int),
    ],
);

static INSERT_FOLLOWERS: Statement = Statement::insert("followers", FOLLOW);

static INSERT_SECRET_FOLLOWERS: Statement = Statement::insert("secret_followers", FOLLOW);

static DELETE_FOLLOWING: Statement = Statement::new(
    "delete from following
    where (follower_id, followee_id) in (select follower_id, followee_id from {rows} r)",
    FOLLOW,
)
.by("follower_id");

static DELETE_FOLLOWERS: Statement = Statement::new(
    "delete from followers
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)",
    FOLLOW,
)
.by("followee_id");

static DELETE_SECRET_FOLLOWERS: Statement = Statement::new(
    "delete from secret_followers
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)",
    FOLLOW,
)
.by("followee_id");

static INSERT_BLOCKS: Statement = Statement::insert("blocks", &[("user_id", Type::Int), ("target_id", Type::Int), ("since", Type::Int)]);

static DELETE_BLOCKS: Statement = Statement::new(
    "delete from blocks
    where (user_id, target_id) in (select user_id, target_id from {rows} r)",
    &[("user_id", Type::Int), ("target_id", Type::Int)],
)
.by("user_id");

static ADD_COUNTS: Statement = Statement::new(
    "insert into follower_counts (user_id, slot, followers, mutuals, requests)
    select user_id, slot, followers, mutuals, requests
    from {rows} r
    where true
    order by user_id
    on conflict (user_id, slot) do update set
        followers = follower_counts.followers + excluded.followers,
        mutuals = follower_counts.mutuals + excluded.mutuals,
        requests = follower_counts.requests + excluded.requests",
    &[("user_id", Type::Int), ("slot", Type::Int), ("followers", Type::Int), ("mutuals", Type::Int), ("requests", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 13] {
    [
        &LOAD,
        &LOAD_OWN,
        &UPDATE_OWN,
        &INSERT_OWN,
        &INSERT_FOLLOWING,
        &INSERT_FOLLOWERS,
        &INSERT_SECRET_FOLLOWERS,
        &DELETE_FOLLOWING,
        &DELETE_FOLLOWERS,
        &DELETE_SECRET_FOLLOWERS,
        &INSERT_BLOCKS,
        &DELETE_BLOCKS,
        &ADD_COUNTS,
    ]
}

/// What is loaded of a direction of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded {
    Follow(Follow),
    Request(Request),
    /// The first approves follows.
    Approves,
    /// A block, since when.
    Block(UnixMs),
    /// The first and the last operation that are accepted and not done, by their numbers.
    Pending(i64, i64),
    Mute(Muted),
}

pub(super) fn pair_columns<'a>(pairs: impl Iterator<Item = &'a Pair> + Clone) -> [Column; 2] {
    [Column::Int(pairs.clone().map(|pair| pair.follower.get()).collect()), Column::Int(pairs.map(|pair| pair.followee.get()).collect())]
}

pub(super) fn received_columns(rows: &[(Pair, UnixMs)]) -> [Column; 3] {
    let [followers, followees] = pair_columns(rows.iter().map(|(pair, _)| pair));
    [followers, followees, Column::Int(rows.iter().map(|(_, since)| since.0).collect())]
}

/// A pair to load.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub pair: Pair,
    /// Whether the first may follow anybody.
    pub may_follow: bool,
    /// Whether it is asked if the first approves follows.
    pub approves: bool,
}

/// A row of [`LOAD_OWN`].
type OwnRow = (i64, i64, i64, i64, i64, i64, i64, i64, i64);

/// A row of [`LOAD`].
type Row = (i64, i64, i64, i64, i64, i64, i64, String, i64);

fn loaded_of_row((what, first, second, since, mark, secret, special, badge, badge_at): Row) -> Option<(Pair, Loaded)> {
    let pair = Pair { follower: UserId::try_from(first).ok()?, followee: UserId::try_from(second).ok()? };
    let options = FollowOptions { secret: secret == 1, special: special == 1 };
    let since_ms = UnixMs(since);
    let raised = || badge.parse().ok().map(|badge| Raised { badge, at: badge_at });
    let loaded = match what {
        0 => Loaded::Follow(Follow { since: since_ms, mark, options, raised: raised() }),
        1 => Loaded::Block(since_ms),
        3 => Loaded::Request(Request { since: since_ms, options, raised: raised() }),
        4 if UserSettings::from_row(&badge).approves_follows() => Loaded::Approves,
        4 => return None,
        5 => Loaded::Mute(Muted { since: since_ms, mute: Mute::from_row(mark) }),
        _ => Loaded::Pending(since, mark),
    };
    Some((pair, loaded))
}

/// What a batch finds: what there is of its pairs, and what the relations of its users count.
pub type Found = (Vec<(Pair, Loaded)>, Vec<(UserId, Own)>);

/// Loads what there is of these pairs, and the counts of these users; what is missing is left out.
pub async fn load(pipeline: &Pipeline, pairs: &[Load], users: &[UserId]) -> DbResult<Found> {
    let [followers, followees] = pair_columns(pairs.iter().map(|load| &load.pair));
    let column = |flag: fn(&Load) -> bool| Column::Int(pairs.iter().map(|load| i64::from(flag(load))).collect());
    let (may_follow, approves) = (column(|load| load.may_follow), column(|load| load.approves));
    let (pairs, users) = ([followers, followees, may_follow, approves], [Column::Int(users.iter().map(|user| user.get()).collect())]);
    let (found, own): (Vec<Row>, Vec<OwnRow>) = try_join(pipeline.fetch(&LOAD, pairs), pipeline.fetch(&LOAD_OWN, users)).await?;
    let own_of_row = |(user, secret, special, blocked, following, blocks, mutes, requests, version): OwnRow| {
        let versions = Versions { following, blocks, mutes, requests: version };
        Some((UserId::try_from(user).ok()?, Own { secret, special, blocked, requests, versions }))
    };
    Ok((found.into_iter().filter_map(loaded_of_row).collect(), own.into_iter().filter_map(own_of_row).collect()))
}

/// Writes what these users' relations count, where it was loaded and where nothing was.
pub async fn save_own(conn: &mut Conn, known: &[(UserId, Own)], new: &[(UserId, Own)]) -> DbResult<()> {
    for (statement, users) in [(&UPDATE_OWN, known), (&INSERT_OWN, new)] {
        let column = |value: fn(&Own) -> i64| Column::Int(users.iter().map(|(_, own)| value(own)).collect());
        let columns = [
            Column::Int(users.iter().map(|(user, _)| user.get()).collect()),
            column(|own| own.secret),
            column(|own| own.special),
            column(|own| own.blocked),
            column(|own| own.versions.following),
            column(|own| own.versions.blocks),
            column(|own| own.versions.mutes),
            column(|own| own.requests),
            column(|own| own.versions.requests),
        ];
        if !users.is_empty() {
            conn.later(statement, &columns).await?;
        }
    }
    Ok(())
}

fn follow_columns<'a>(follows: impl Iterator<Item = &'a (Pair, Follow)> + Clone) -> [Column; 3] {
    let [followers, followees] = pair_columns(follows.clone().map(|(pair, _)| pair));
    [followers, followees, Column::Int(follows.map(|(_, follow)| follow.since.0).collect())]
}

/// Those that are secret, and the others, as columns; None where there are none.
fn by_secrecy(follows: &[(Pair, Follow)]) -> [Option<[Column; 3]>; 2] {
    [true, false].map(|secret| {
        let these = follows.iter().filter(move |(_, follow)| follow.options.secret == secret);
        these.clone().next().map(|_| follow_columns(these))
    })
}

/// Writes these follows, which are not there yet.
pub async fn insert(conn: &mut Conn, follows: &[(Pair, Follow)]) -> DbResult<()> {
    if follows.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&Follow) -> i64| Column::Int(follows.iter().map(|(_, follow)| value(follow)).collect());
    let [followers, followees, since] = follow_columns(follows.iter());
    let (secret, special) = (column(|follow| i64::from(follow.options.secret)), column(|follow| i64::from(follow.options.special)));
    let badge = |follow: &Follow| follow.raised.as_ref().map_or_else(String::new, |raised| raised.badge.to_string());
    let badges = Column::Text(follows.iter().map(|(_, follow)| badge(follow)).collect());
    let badge_at = column(|follow| follow.raised.as_ref().map_or(0, |raised| raised.at));
    let columns = [followers, followees, since, column(|follow| follow.mark), secret, special, badges, badge_at];
    conn.later(&INSERT_FOLLOWING, &columns).await?;
    let [secret, public] = by_secrecy(follows);
    if let Some(columns) = public {
        conn.later(&INSERT_FOLLOWERS, &columns).await?;
    }
    if let Some(columns) = secret {
        conn.later(&INSERT_SECRET_FOLLOWERS, &columns).await?;
    }
    Ok(())
}

/// Removes these follows, which are there.
pub async fn delete(conn: &mut Conn, follows: &[(Pair, Follow)]) -> DbResult<()> {
    if follows.is_empty() {
        return Ok(());
    }
    conn.later(&DELETE_FOLLOWING, &follow_columns(follows.iter())).await?;
    let [secret, public] = by_secrecy(follows);
    if let Some(columns) = public {
        conn.later(&DELETE_FOLLOWERS, &columns).await?;
    }
    if let Some(columns) = secret {
        conn.later(&DELETE_SECRET_FOLLOWERS, &columns).await?;
    }
    Ok(())
}

/// Removes what followees have of these follows, each with since when, public or secret.
pub(super) async fn delete_received(conn: &mut Conn, rows: &[(Pair, UnixMs)]) -> DbResult<()> {
    let columns = received_columns(rows);
    conn.later(&DELETE_FOLLOWERS, &columns).await?;
    conn.later(&DELETE_SECRET_FOLLOWERS, &columns).await
}

/// Writes these blocks, which are not there yet.
pub async fn insert_blocks(conn: &mut Conn, blocks: &[(Pair, UnixMs)]) -> DbResult<()> {
    if blocks.is_empty() {
        return Ok(());
    }
    let [users, targets] = pair_columns(blocks.iter().map(|(pair, _)| pair));
    conn.later(&INSERT_BLOCKS, &[users, targets, Column::Int(blocks.iter().map(|(_, since)| since.0).collect())]).await
}

/// Removes these blocks, which are there.
pub async fn delete_blocks(conn: &mut Conn, blocks: &[Pair]) -> DbResult<()> {
    if blocks.is_empty() { Ok(()) } else { conn.later(&DELETE_BLOCKS, &pair_columns(blocks.iter())).await }
}

/// Adds to the counts of these users, in one slot.
pub async fn add_counts(conn: &mut Conn, slot: i64, changes: &[(UserId, Fans)]) -> DbResult<()> {
    let columns = [
        Column::Int(changes.iter().map(|(user, _)| user.get()).collect()),
        Column::Int(vec![slot.rem_euclid(SLOTS); changes.len()]),
        Column::Int(changes.iter().map(|(_, fans)| fans.followers).collect()),
        Column::Int(changes.iter().map(|(_, fans)| fans.mutuals).collect()),
        Column::Int(changes.iter().map(|(_, fans)| fans.requests).collect()),
    ];
    conn.later(&ADD_COUNTS, &columns).await
}
