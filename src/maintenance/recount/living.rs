//! A recount leaves out users who are erased. While their rows go, no number tells how many are left. And a row of
//! `users` that a repair made for one of them would stay for ever.

use std::collections::HashSet;

use crate::base::ids::UserId;
use crate::db::{Conn, DbResult, Pipeline};
use crate::engine::erased;
use crate::engine::marks::users::{User, insert_users, lock_users, read_users};

/// Those of these users who are not erased, as of now: without a lock.
pub(super) async fn living(conn: &mut Conn, users: Vec<i64>) -> DbResult<Vec<i64>> {
    let (ids, pipeline) = (ids(&users), Pipeline::default());
    let found = pipeline.run(conn, read_users(&pipeline, &ids)).await?;
    let gone = gone(conn, &ids, &found).await?;
    Ok(users.into_iter().filter(|user| !gone.contains(user)).collect())
}

/// Locks the rows of those of these users (sorted, without repeats) who are not erased, makes the missing ones, and
/// returns whose they are.
///
/// # Errors
/// The driver's own, and [`sqlx::Error::RowNotFound`] where a user was erased meanwhile: then it is tried again.
pub(super) async fn lock_living(conn: &mut Conn, users: &[i64]) -> DbResult<Vec<i64>> {
    let (ids, pipeline) = (ids(users), Pipeline::default());
    let found = pipeline.run(conn, lock_users(&pipeline, &ids)).await?;
    let gone = gone(conn, &ids, &found).await?;
    let living: Vec<_> = ids.into_iter().filter(|user| !gone.contains(&user.get())).collect();
    let there: HashSet<_> = found.iter().map(|(user, _)| *user).collect();
    let missing: Vec<_> = living.iter().copied().filter(|user| !there.contains(user)).collect();
    let row = User::default();
    insert_users(conn, &missing.iter().map(|user| (*user, &row, &row)).collect::<Vec<_>>(), 0).await?;
    // While the insert waited for others, a missing user may have been erased, row and all. From the insert on an
    // erasure waits for the row.
    if !pipeline.run(conn, erased::find(&pipeline, &missing)).await?.is_empty() {
        return Err(sqlx::Error::RowNotFound);
    }
    Ok(living.into_iter().map(UserId::get).collect())
}

fn ids(users: &[i64]) -> Vec<UserId> {
    users.iter().filter_map(|user| UserId::try_from(*user).ok()).collect()
}

/// Those of these users whose rows say that they are erased, and those who were and have none any more.
async fn gone(conn: &mut Conn, users: &[UserId], found: &[(UserId, User)]) -> DbResult<HashSet<i64>> {
    let there: HashSet<_> = found.iter().map(|(user, _)| *user).collect();
    let missing: Vec<_> = users.iter().copied().filter(|user| !there.contains(user)).collect();
    let pipeline = Pipeline::default();
    let erased = pipeline.run(conn, erased::find(&pipeline, &missing)).await?.into_iter().map(|(user, _)| user);
    let going = found.iter().filter(|(_, row)| row.settings.is_erased()).map(|(user, _)| *user);
    Ok(erased.chain(going).map(UserId::get).collect())
}
