//! Whole lists, with the revision at which each changed last.

use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::cache::ListKey;
use crate::db::{Column, Db, DbResult, Statement, Type};

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

/// Whom a user follows, and since when; the row of user 0 has the version of the list, so that they
/// belong together. The row of user -1 has their number: where they are too many, no other is read.
static WHOLE_FOLLOWING: Statement = Statement::one(
    "select cast(0 as bigint), coalesce((
        select case when u.following_version > coalesce(c.following_version, 0) then u.following_version else c.following_version end
        from users u
        left join relation_counts c on c.user_id = u.user_id
        where u.user_id = $1
    ), 0)
    union all
    select cast(-1 as bigint), coalesce((select u.following from users u where u.user_id = $1), 0)
    union all
    select w.id, w.since from (
        select f.followee_id as id, f.since
        from following f
        where f.follower_id = $1 and (select u.following from users u where u.user_id = $1) < $2
        limit $2
    ) w",
    WHOLE,
);

/// The same for blocks.
static WHOLE_BLOCKS: Statement = Statement::one(
    "select cast(0 as bigint), coalesce((select c.blocks_version from relation_counts c where c.user_id = $1), 0)
    union all
    select w.id, w.since from (select b.target_id as id, b.since from blocks b where b.user_id = $1 limit $2) w",
    WHOLE,
);

/// The same for mutes, with when they end (0: never).
static WHOLE_MUTES: Statement = Statement::one(
    "select cast(0 as bigint), coalesce((select c.mutes_version from relation_counts c where c.user_id = $1), 0), cast(0 as bigint)
    union all
    select w.id, w.since, w.until from (select m.target_id as id, m.since, m.until from mutes m where m.user_id = $1 limit $2) w",
    WHOLE,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&WHOLE_FOLLOWING, &WHOLE_BLOCKS, &WHOLE_MUTES]
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
    /// Whether there are more than were asked for, of which then some or none are here.
    pub is_cut: bool,
}

/// A whole list, with its version, as of one moment, if it is not longer than `most`.
pub async fn whole(db: &Db, user: UserId, related: Related, most: usize) -> DbResult<Whole> {
    let columns = Column::one_row(&[user.get(), i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1)]);
    let never = |(id, since): (i64, i64)| (id, since, 0);
    let mut rows: Vec<(i64, i64, i64)> = match related {
        Related::Following => db.fetch(&WHOLE_FOLLOWING, &columns).await?.into_iter().map(never).collect(),
        Related::Blocks => db.fetch(&WHOLE_BLOCKS, &columns).await?.into_iter().map(never).collect(),
        Related::Mutes => db.fetch(&WHOLE_MUTES, &columns).await?,
    };
    let said = |wanted: i64| rows.iter().find(|(id, ..)| *id == wanted).map(|(_, said, _)| *said);
    let (version, count) = (said(0).unwrap_or(0), said(-1));
    rows.sort_unstable_by_key(|(id, since, _)| std::cmp::Reverse((*since, *id)));
    let users = || rows.iter().filter_map(|(id, _, until)| Some((UserId::try_from(*id).ok()?, *until)));
    let ends = users().filter(|(_, until)| *until > 0).map(|(id, until)| (id, UnixMs(until)));
    let (ids, ends): (Vec<_>, _) = (users().map(|(id, _)| id).collect(), ends.collect());
    let is_cut = ids.len() > most || count.is_some_and(|count| usize::try_from(count).unwrap_or(0) > most);
    Ok(Whole { version, ids, ends, is_cut })
}
