//! The two sides of follows and of requests: which rows one of them lacks, and how they are repaired.

use std::collections::BTreeSet;

use super::store::Row;
use super::{What, requests, store};
use crate::base::ids::UserId;
use crate::db::{Column, Conn, DbResult, Statement};
use crate::engine::pairs::{Pair, lock_pairs};

/// A comparison of the two sides of follows or requests: the rows that one of them lacks.
#[derive(Clone, Copy)]
pub(super) enum Sides {
    /// What these users follow.
    Following,
    /// Who follows this user.
    FollowersOf(i64),
    /// Who follows these users, to them.
    Followers,
    SecretFollowers,
    /// Whom these users have asked.
    Sent,
    /// Who has asked this user.
    RequestsOf(i64),
    /// Who has asked these users, to them.
    Requests,
}

impl Sides {
    /// Of all users, what others follow is seen from their side.
    pub(super) fn all(user: Option<i64>) -> Vec<Self> {
        let of_one = user.into_iter().flat_map(|user| [Self::FollowersOf(user), Self::RequestsOf(user)]);
        [Self::Following, Self::Followers, Self::SecretFollowers, Self::Sent, Self::Requests].into_iter().chain(of_one).collect()
    }

    pub(super) fn what(self) -> What {
        match self {
            Self::Following | Self::FollowersOf(_) => What::Missing,
            Self::Followers | Self::SecretFollowers => What::Extra,
            Self::Sent | Self::RequestsOf(_) => What::MissingRequest,
            Self::Requests => What::ExtraRequest,
        }
    }

    /// The rows of these users after a place.
    pub(super) async fn page(self, conn: &mut Conn, users: &[i64], after: Row) -> DbResult<Vec<Row>> {
        let (follower, followee, since) = after;
        let statement = match self {
            Self::Following => &store::MISSING,
            Self::FollowersOf(_) => &store::MISSING_OF,
            Self::Followers => &store::EXTRA,
            Self::SecretFollowers => &store::EXTRA_SECRET,
            Self::Sent => &requests::MISSING,
            Self::RequestsOf(_) => &requests::MISSING_OF,
            Self::Requests => &requests::EXTRA,
        };
        let all = |value: i64| vec![value; users.len()];
        let columns = match self {
            Self::Following | Self::Sent => vec![users.to_vec(), all(follower), all(followee)],
            Self::FollowersOf(user) | Self::RequestsOf(user) => vec![vec![user], vec![follower]],
            Self::Followers | Self::SecretFollowers | Self::Requests => vec![users.to_vec(), all(followee), all(since), all(follower)],
        };
        conn.fetch(statement, &columns.into_iter().map(Column::Int).collect::<Vec<_>>()).await
    }
}

/// Locks these pairs, and makes the side of those who are followed or asked agree with the other, inside a
/// transaction.
pub(super) async fn repair_rows(conn: &mut Conn, what: What, rows: &[Row]) -> DbResult<()> {
    let pair = |row: &Row| Some(Pair { follower: UserId::try_from(row.0).ok()?, followee: UserId::try_from(row.1).ok()? });
    let pair_locks: BTreeSet<_> = rows.iter().filter_map(pair).map(Pair::pair_lock).collect();
    lock_pairs(conn, pair_locks).await?;
    let columns: [Vec<i64>; 3] =
        [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect(), rows.iter().map(|row| row.2).collect()];
    let [followers, followees, since] = columns.map(Column::Int);
    let (pairs, rows) = (vec![followers.clone(), followees.clone()], vec![followers, followees, since]);
    let (columns, statements): (_, &[&'static Statement]) = match what {
        What::Missing => (pairs, &[&store::ADD_MISSING, &store::ADD_MISSING_SECRET]),
        What::MissingRequest => (pairs, &[&requests::ADD_MISSING]),
        What::ExtraRequest => (rows, &[&requests::REMOVE_EXTRA]),
        _ => (rows, &[&store::REMOVE_EXTRA, &store::REMOVE_EXTRA_SECRET]),
    };
    for statement in statements {
        conn.run(statement, &columns).await?;
    }
    Ok(())
}
