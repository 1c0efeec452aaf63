//! The two sides of requests to follow, as `store.rs` has those of follows: `sent_requests` is the truth, and a row of
//! `follow_requests` that is missing or too much is repaired.

use super::distributed;
use super::store::{EXTRA_PLACE, PAIR, ROW};
use crate::db::{Statement, Type};

/// Requests that these users have sent and that the other side lacks, after a place in the order of the key.
pub(super) static MISSING: Statement = Statement::new(
    "select s.follower_id, s.followee_id, s.since
    from {rows} r
    join sent_requests s on s.follower_id = r.user_id
    where (s.follower_id, s.followee_id) > (r.after_follower, r.after_followee)
        and not exists (
            select 1 from follow_requests q
            where q.followee_id = s.followee_id and q.since = s.since and q.follower_id = s.follower_id
        )
    order by s.follower_id, s.followee_id
    limit 1000",
    &[("user_id", Type::Int), ("after_follower", Type::Int), ("after_followee", Type::Int)],
)
.distributed(distributed::MISSING_REQUESTS)
.by("user_id");

/// The same of one user who is asked. There is no index for this direction, so it reads all requests.
pub(super) static MISSING_OF: Statement = Statement::one(
    "select s.follower_id, s.followee_id, s.since
    from sent_requests s
    where s.followee_id = $1 and s.follower_id > $2
        and not exists (
            select 1 from follow_requests q
            where q.followee_id = s.followee_id and q.since = s.since and q.follower_id = s.follower_id
        )
    order by s.follower_id
    limit 1000",
    &[("user_id", Type::Int), ("after_follower", Type::Int)],
)
.distributed(distributed::MISSING_REQUESTS_OF);

/// Requests that these users have received of others who have not sent them, or not then, after a place in the order of
/// the key.
pub(super) static EXTRA: Statement = Statement::new(
    "select q.follower_id, q.followee_id, q.since
    from {rows} r
    join follow_requests q on q.followee_id = r.user_id
    where (q.followee_id, q.since, q.follower_id) > (r.after_followee, r.after_since, r.after_follower)
        and not exists (
            select 1 from sent_requests s
            where s.follower_id = q.follower_id and s.followee_id = q.followee_id and s.since = q.since
        )
    order by q.followee_id, q.since, q.follower_id
    limit 1000",
    EXTRA_PLACE,
)
.distributed(distributed::EXTRA_REQUESTS)
.by("user_id");

/// Looks again, as something may have changed before the pairs were locked.
pub(super) static ADD_MISSING: Statement = Statement::new(
    "insert into follow_requests (followee_id, since, follower_id)
    select s.followee_id, s.since, s.follower_id
    from {rows} r
    join sent_requests s on s.follower_id = r.follower_id and s.followee_id = r.followee_id
    where not exists (
        select 1 from follow_requests q
        where q.followee_id = s.followee_id and q.since = s.since and q.follower_id = s.follower_id
    )",
    PAIR,
)
.distributed(distributed::ADD_MISSING_REQUESTS)
.by("follower_id");

pub(super) static REMOVE_EXTRA: Statement = Statement::new(
    "delete from follow_requests
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)
        and not exists (
            select 1 from sent_requests s
            where s.follower_id = follow_requests.follower_id and s.followee_id = follow_requests.followee_id
                and s.since = follow_requests.since
        )",
    ROW,
)
.distributed(distributed::REMOVE_EXTRA_REQUESTS)
.by("followee_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 5] {
    [&MISSING, &MISSING_OF, &EXTRA, &ADD_MISSING, &REMOVE_EXTRA]
}
