//! The rows of `sent_requests`, `follow_requests` and `approval_ends`: what lanes write of them, and
//! their lists. A lane loads requests together with follows (`store.rs`).

use super::store::{pair_columns, received_columns};
use super::{Pair, Request};
use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Column, Conn, Db, DbResult, Statement, Type};
use crate::engine::lanes::Table;

const REQUEST: &[(&str, Type)] = &[("follower_id", Type::Int), ("followee_id", Type::Int), ("since", Type::Int)];
const PAGE: &[(&str, Type)] = &[("user_id", Type::Int), ("since", Type::Int), ("id", Type::Int), ("max_rows", Type::Int)];

static INSERT_SENT: Statement = Statement::insert(
    "sent_requests",
    &[
        ("follower_id", Type::Int),
        ("followee_id", Type::Int),
        ("since", Type::Int),
        ("secret", Type::Int),
        ("special", Type::Int),
        ("badge", Type::Text),
        ("badge_at", Type::Int),
    ],
);

static INSERT_RECEIVED: Statement = Statement::insert("follow_requests", REQUEST);

static DELETE_SENT: Statement = Statement::new(
    "delete from sent_requests
    where (follower_id, followee_id) in (select follower_id, followee_id from {rows} r)",
    REQUEST,
)
.by("follower_id");

static DELETE_RECEIVED: Statement = Statement::new(
    "delete from follow_requests
    where (followee_id, since, follower_id) in (select followee_id, since, follower_id from {rows} r)",
    REQUEST,
)
.by("followee_id");

/// Under the lock of the user's row. A later switch has a later time, also within a millisecond.
static BEGIN_ACCEPTING: Statement = Statement::new(
    "insert into approval_ends (user_id, since)
    select user_id, since
    from {rows} r
    where true
    on conflict (user_id) do update set
        since = case when excluded.since > approval_ends.since then excluded.since else approval_ends.since + 1 end",
    &[("user_id", Type::Int), ("since", Type::Int)],
);

static END_ACCEPTING: Statement = Statement::new(
    "delete from approval_ends
    where (user_id, since) in (select user_id, since from {rows} r)",
    &[("user_id", Type::Int), ("since", Type::Int)],
);

/// Users whose requests are being accepted, those first who switched first.
static ACCEPTING: Statement = Statement::one(
    "select user_id, since
    from approval_ends
    order by since, user_id
    limit $1",
    &[("max_rows", Type::Int)],
);

/// The oldest requests that a user has received.
static OLDEST: Statement = Statement::one(
    "select r.follower_id, r.since
    from follow_requests r
    where r.followee_id = $1
    order by r.since, r.follower_id
    limit $2",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
);

/// A page of the requests that a user has received, newest first.
pub(super) static RECEIVED: Statement = Statement::one(
    "select r.follower_id, r.since, cast(0 as bigint), cast(0 as bigint), cast(0 as bigint)
    from follow_requests r
    where r.followee_id = $1 and (r.since, r.follower_id) < ($2, $3)
    order by r.since desc, r.follower_id desc
    limit $4",
    PAGE,
);

/// A page of the requests that a user has sent, newest first.
pub(super) static SENT: Statement = Statement::one(
    "select r.followee_id, r.since, cast(0 as bigint), cast(0 as bigint), cast(0 as bigint)
    from sent_requests r
    where r.follower_id = $1 and r.since >= 0 and (r.since, r.followee_id) < ($2, $3)
    order by r.since desc, r.followee_id desc
    limit $4",
    PAGE,
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub(super) fn statements() -> [&'static Statement; 10] {
    [
        &INSERT_SENT,
        &INSERT_RECEIVED,
        &DELETE_SENT,
        &DELETE_RECEIVED,
        &BEGIN_ACCEPTING,
        &END_ACCEPTING,
        &ACCEPTING,
        &OLDEST,
        &RECEIVED,
        &SENT,
    ]
}

/// Whether all open requests of a user are accepted from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalChange {
    /// The user approves follows no longer, since this moment.
    Begin(UnixMs),
    /// There are none left since the switch of this moment, or the user approves follows again.
    End(UnixMs),
}

/// Writes what a batch changed: a request that changed is one removed and one made.
pub(super) async fn save(conn: &mut Conn, requests: &Table<Pair, Option<Request>>) -> DbResult<()> {
    let (mut gone, mut made) = (Vec::new(), Vec::new());
    for (pair, (loaded, now)) in requests.rows.iter().filter(|(_, (loaded, now))| loaded != now) {
        gone.extend(loaded.as_ref().map(|request| (*pair, request)));
        made.extend(now.as_ref().map(|request| (*pair, request)));
    }
    if !gone.is_empty() {
        conn.later(&DELETE_SENT, &columns(&gone)).await?;
        conn.later(&DELETE_RECEIVED, &columns(&gone)).await?;
    }
    if !made.is_empty() {
        let column = |value: fn(&Request) -> i64| Column::Int(made.iter().map(|(_, request)| value(request)).collect());
        let badge = |request: &Request| request.raised.as_ref().map_or_else(String::new, |raised| raised.badge.to_string());
        let [followers, followees, since] = columns(&made);
        let sent = [
            followers,
            followees,
            since,
            column(|request| i64::from(request.options.secret)),
            column(|request| i64::from(request.options.special)),
            Column::Text(made.iter().map(|(_, request)| badge(request)).collect()),
            column(|request| request.raised.as_ref().map_or(0, |raised| raised.at)),
        ];
        conn.later(&INSERT_SENT, &sent).await?;
        conn.later(&INSERT_RECEIVED, &columns(&made)).await?;
    }
    Ok(())
}

/// Removes what those have of these requests who are asked, each with since when.
pub(super) async fn delete_received(conn: &mut Conn, rows: &[(Pair, UnixMs)]) -> DbResult<()> {
    conn.later(&DELETE_RECEIVED, &received_columns(rows)).await
}

fn columns(requests: &[(Pair, &Request)]) -> [Column; 3] {
    let [followers, followees] = pair_columns(requests.iter().map(|(pair, _)| pair));
    [followers, followees, Column::Int(requests.iter().map(|(_, request)| request.since.0).collect())]
}

/// Writes whose requests are being accepted.
pub(super) async fn save_approval_ends(conn: &mut Conn, changes: &Table<UserId, Option<ApprovalChange>>) -> DbResult<()> {
    let (mut begun, mut ended) = (Vec::new(), Vec::new());
    for (user, change) in changes.changed() {
        match change {
            Some(ApprovalChange::Begin(since)) => begun.push((*user, *since)),
            Some(ApprovalChange::End(since)) => ended.push((*user, *since)),
            None => {}
        }
    }
    for (statement, users) in [(&BEGIN_ACCEPTING, begun), (&END_ACCEPTING, ended)] {
        if !users.is_empty() {
            let ids = Column::Int(users.iter().map(|(user, _)| user.get()).collect());
            conn.later(statement, &[ids, Column::Int(users.iter().map(|(_, since)| since.0).collect())]).await?;
        }
    }
    Ok(())
}

/// Some of the users whose requests are being accepted, each with the time of the switch.
pub(super) async fn accepting(db: &Db, most: i64) -> DbResult<Vec<(UserId, UnixMs)>> {
    let rows: Vec<(i64, i64)> = db.fetch(&ACCEPTING, &[Column::Int(vec![most])]).await?;
    Ok(rows.into_iter().filter_map(|(user, since)| Some((UserId::try_from(user).ok()?, UnixMs(since)))).collect())
}

/// Who has asked to follow a user, and waits longest: with since when.
pub(super) async fn oldest(db: &Db, user: UserId, most: i64) -> DbResult<Vec<(UserId, UnixMs)>> {
    let rows: Vec<(i64, i64)> = db.fetch(&OLDEST, &[Column::Int(vec![user.get()]), Column::Int(vec![most])]).await?;
    Ok(rows.into_iter().filter_map(|(fan, since)| Some((UserId::try_from(fan).ok()?, UnixMs(since)))).collect())
}
