//! What users are to others, read from SQL as numbers ([`pair_codes`](super::pair_codes)).

use std::collections::BTreeMap;

use super::{Pair, distributed};
use crate::base::ids::UserId;
use crate::db::{Column, Db, DbResult, Statement, Type};

/// What the two of each pair are to each other, as [`code`](super::pair_codes::code) has it: four keys
/// are looked for, and what the first is not told is not asked.
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

/// All others to whom a user is something, or who are something to the user, as
/// [`code`](super::pair_codes::code) has it in parts; of each sort up to so many.
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
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&LOOK, &RELATED]
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
    let rows: Vec<(i64, i64)> = db.fetch(&RELATED, &Column::one_row(&[user.get(), limit])).await?;
    let mut others: BTreeMap<UserId, u8> = BTreeMap::new();
    for (id, code) in rows {
        let (Ok(other), Ok(code)) = (UserId::try_from(id), u8::try_from(code)) else { continue };
        *others.entry(other).or_default() |= code;
    }
    Ok((others.len() <= most).then(|| others.into_iter().collect()))
}
