//! The rows of `mutes`: what lanes load and write, the list, and what has ended.

use std::collections::BTreeSet;

use super::{Muted, Pair};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Pipeline, Statement, Type};
use crate::features::silence::Mute;
use crate::http::pages::Position;

const PAIR: &[(&str, Type)] = &[("user_id", Type::Int), ("target_id", Type::Int)];
const PAGE: &[(&str, Type)] =
    &[("user_id", Type::Int), ("since", Type::Int), ("id", Type::Int), ("max_rows", Type::Int), ("now", Type::Int)];

/// How many others users mute, and how many of these mutes end, with those that have ended and are
/// not swept yet.
static COUNT: Statement = Statement::new(
    "select r.user_id,
        (select count(*) from mutes m where m.user_id = r.user_id),
        (select count(*) from mutes m where m.user_id = r.user_id and m.until > 0)
    from {rows} r",
    &[("user_id", Type::Int)],
)
.by("user_id");

static SAVE: Statement = Statement::new(
    "insert into mutes (user_id, target_id, since, until)
    select user_id, target_id, since, until
    from {rows} r
    where true
    order by user_id, target_id
    on conflict (user_id, target_id) do update set since = excluded.since, until = excluded.until",
    &[("user_id", Type::Int), ("target_id", Type::Int), ("since", Type::Int), ("until", Type::Int)],
);

static DELETE: Statement = Statement::new(
    "delete from mutes
    where (user_id, target_id) in (select user_id, target_id from {rows} r)",
    PAIR,
)
.by("user_id");

static LIST: Statement = Statement::one(
    "select m.target_id, m.since, m.until
    from mutes m
    where m.user_id = $1 and m.since >= 0 and (m.since, m.target_id) < ($2, $3) and (m.until = 0 or m.until > $5)
    order by m.since desc, m.target_id desc
    limit $4",
    PAGE,
);

/// Until when these pairs are muted.
static UNTIL: Statement = Statement::new(
    "select m.user_id, m.target_id, m.until
    from {rows} r
    join mutes m on m.user_id = r.user_id and m.target_id = r.target_id",
    PAIR,
)
.by("user_id");

static ENDED: Statement = Statement::one(
    "select m.user_id, m.target_id
    from mutes m
    where m.until > 0 and m.until <= $1
    order by m.until, m.user_id, m.target_id
    limit $2",
    &[("now", Type::Int), ("max_rows", Type::Int)],
);

/// The statements of batches, for the suite that runs each on both engines.
pub(super) fn row_statements() -> [&'static Statement; 3] {
    [&COUNT, &SAVE, &DELETE]
}

/// The other statements of this file, for the same suite.
pub(super) fn statements() -> [&'static Statement; 3] {
    [&LIST, &UNTIL, &ENDED]
}

/// How many others a user mutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MuteCount {
    pub(super) all: i64,
    /// How many of these mutes end.
    pub(super) timed: i64,
}

impl MuteCount {
    /// What one mute adds.
    pub(super) fn of(mute: Option<Mute>) -> Self {
        match mute {
            Some(Mute { until }) => Self { all: 1, timed: i64::from(until.is_some()) },
            None => Self::default(),
        }
    }

    /// After a mute that counted as `before` counts as `after`.
    pub(super) fn moved(self, before: Self, after: Self) -> Self {
        Self { all: self.all + after.all - before.all, timed: self.timed + after.timed - before.timed }
    }
}

fn pairs<'a>(pairs: impl Iterator<Item = &'a Pair> + Clone) -> [Column; 2] {
    [Column::Int(pairs.clone().map(|pair| pair.follower.get()).collect()), Column::Int(pairs.map(|pair| pair.followee.get()).collect())]
}

pub(super) async fn count(pipeline: &Pipeline, users: &BTreeSet<UserId>) -> DbResult<Vec<(UserId, MuteCount)>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [Column::Int(users.iter().map(|user| user.get()).collect())];
    let rows: Vec<(i64, i64, i64)> = pipeline.fetch(&COUNT, columns).await?;
    Ok(rows.into_iter().filter_map(|(user, all, timed)| Some((UserId::try_from(user).ok()?, MuteCount { all, timed }))).collect())
}

pub(super) async fn save(conn: &mut Conn, mutes: &[(Pair, Muted)]) -> DbResult<()> {
    if mutes.is_empty() {
        return Ok(());
    }
    let [users, targets] = pairs(mutes.iter().map(|(pair, _)| pair));
    let since = Column::Int(mutes.iter().map(|(_, muted)| muted.since.0).collect());
    let until = Column::Int(mutes.iter().map(|(_, muted)| muted.mute.row()).collect());
    conn.later(&SAVE, &[users, targets, since, until]).await
}

pub(super) async fn delete(conn: &mut Conn, ended: &[Pair]) -> DbResult<()> {
    if ended.is_empty() { Ok(()) } else { conn.later(&DELETE, &pairs(ended.iter())).await }
}

/// Up to `limit` mutes of a user that stand after the position, newest first, without those that have
/// ended.
pub(super) async fn page(db: &Db, user: UserId, after: Position, limit: i64, now: UnixMs) -> DbResult<Vec<(UserId, Muted)>> {
    let columns = [user.get(), after.at, after.id, limit, now.0].map(|value| Column::Int(vec![value]));
    let rows: Vec<(i64, i64, i64)> = db.fetch(&LIST, &columns).await?;
    let muted =
        |(target, since, until)| Some((UserId::try_from(target).ok()?, Muted { since: UnixMs(since), mute: Mute::from_row(until) }));
    Ok(rows.into_iter().filter_map(muted).collect())
}

/// The mutes of these pairs; those that are none are left out.
pub(super) async fn of_pairs(db: &Db, these: &[Pair]) -> DbResult<Vec<(Pair, Mute)>> {
    let rows: Vec<(i64, i64, i64)> = db.fetch(&UNTIL, &pairs(these.iter())).await?;
    let mute = |(user, target, until)| {
        Some((Pair { follower: UserId::try_from(user).ok()?, followee: UserId::try_from(target).ok()? }, Mute::from_row(until)))
    };
    Ok(rows.into_iter().filter_map(mute).collect())
}

/// Some mutes that have ended, those that ended first first.
pub(super) async fn ended(db: &Db, now: UnixMs, limit: i64) -> DbResult<Vec<Pair>> {
    let rows: Vec<(i64, i64)> = db.fetch(&ENDED, &[now.0, limit].map(|value| Column::Int(vec![value]))).await?;
    let pair = |(user, target)| Some(Pair { follower: UserId::try_from(user).ok()?, followee: UserId::try_from(target).ok()? });
    Ok(rows.into_iter().filter_map(pair).collect())
}
