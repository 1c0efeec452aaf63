//! Old rows of inboxes go, and devices that stayed away for very long.
//!
//! A sweep walks the old rows in the order of their age, and has a command for each user whose rows
//! it meets: the rows go under the lock of the user's own row, the lowest first and without leaving
//! one out, so that what is kept stays one run up to the head. What a living device has yet to
//! fetch stays. The walk passes such rows by, and goes on in the next sweep where the last one
//! stopped, so that they cannot keep it from the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use super::http::InboxContext;
use super::{InboxCommand, devices};
use crate::base::clock::{DAY_MS, UnixMs};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::db::{Column, DbResult, Statement, Type};
use crate::engine::lanes::Job;

/// How many old rows one round of a sweep looks at.
const ROUND_ROWS: i64 = 1000;

/// How many rows of a user one command removes, and how many rows those commands remove together
/// that are sent at once.
const USER_ROWS: i64 = 500;

/// How many rounds one sweep has at most.
const ROUNDS: u32 = 100;

/// How often in one round a user with more rows than a command removes is looked at again.
const AGAIN: u32 = 20;

/// After how many days a device that was not seen is forgotten.
const DEVICE_DAYS: i64 = 365;

/// How many devices one round of their sweep removes.
const DEVICE_ROWS: i64 = 1000;

static OLD: Statement = Statement::one(
    "select i.put_at, i.user_id
    from inbox i
    where (i.put_at, i.user_id) > ($1, $2) and i.put_at < $3
    order by i.put_at, i.user_id
    limit $4",
    &[("after_at", Type::Int), ("after_user", Type::Int), ("before", Type::Int), ("max_rows", Type::Int)],
);

/// The lowest and the last row of each user, and up to where the devices that were seen since have
/// fetched; -1: there are none.
static BOUNDS: Statement = Statement::new(
    "select r.user_id,
        coalesce((select i.seq from inbox i where i.user_id = r.user_id order by i.seq limit 1), 0),
        coalesce((select u.inbox_seq from users u where u.user_id = r.user_id), 0),
        coalesce((select min(d.seq) from devices d where d.user_id = r.user_id and d.seen_at >= r.before), -1)
    from {rows} r",
    &[("user_id", Type::Int), ("before", Type::Int)],
);

/// The lowest row of each user within these that is not old; one beyond them where all are.
static YOUNG: Statement = Statement::new(
    "select r.user_id, r.first_seq, coalesce((
        select i.seq
        from inbox i
        where i.user_id = r.user_id and i.seq >= r.first_seq and i.seq <= r.last_seq and i.put_at >= r.before
        order by i.seq
        limit 1
    ), r.last_seq + 1)
    from {rows} r",
    &[("user_id", Type::Int), ("first_seq", Type::Int), ("last_seq", Type::Int), ("before", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    [&OLD, &BOUNDS, &YOUNG]
}

/// Where a walk through the old rows is: the age and the user of the last one that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    at: i64,
    user: i64,
}

impl Default for Walk {
    fn default() -> Self {
        Self { at: i64::MIN, user: 0 }
    }
}

/// What of a user's inbox goes.
struct Old {
    user: i64,
    first: i64,
    last: i64,
    /// Which of those that are sent at once.
    together: i64,
}

impl Old {
    fn rows(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// Removes old rows, in bounded rounds, and goes on from where the walk is; at the end it begins
/// again. Returns up to how many rows were removed.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep(state: &InboxContext, walk: &mut Walk) -> Result<u64> {
    let before = state.config.oldest(state.clock.now());
    let mut removed = 0;
    for _ in 0..ROUNDS {
        if state.polling.draining.is_cancelled() {
            break;
        }
        let columns = [walk.at, walk.user, before.0, ROUND_ROWS].map(|value| Column::Int(vec![value]));
        let rows: Vec<(i64, i64)> = state.db.fetch(&OLD, &columns).await?;
        let users: BTreeSet<i64> = rows.iter().map(|(_, user)| *user).collect();
        if !users.is_empty() {
            removed += remove_old(state, users, before).await?;
        }
        match rows.last() {
            Some((at, user)) if i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROUND_ROWS => *walk = Walk { at: *at, user: *user },
            _ => {
                *walk = Walk::default();
                break;
            }
        }
    }
    Ok(removed)
}

/// Removes what is old of these users' inboxes.
async fn remove_old(state: &InboxContext, mut users: BTreeSet<i64>, before: UnixMs) -> Result<u64> {
    let mut removed = 0;
    for _ in 0..AGAIN {
        let old = find_old(state, &users, before).await?;
        if old.is_empty() || state.polling.draining.is_cancelled() {
            break;
        }
        for together in old.chunk_by(|one, next| one.together == next.together) {
            removed += remove(state, together, before).await?;
        }
        users = old.iter().filter(|old| old.rows() >= USER_ROWS).map(|old| old.user).collect();
    }
    Ok(removed)
}

async fn remove(state: &InboxContext, old: &[Old], before: UnixMs) -> Result<u64> {
    let command = |old: &Old| {
        let rows = u32::try_from(old.rows()).unwrap_or(u32::MAX);
        Some(InboxCommand::Expire { user: UserId::try_from(old.user).ok()?, up_to: old.last, rows, seen_since: before })
    };
    let jobs = old.iter().filter_map(command).map(|command| state.lanes.submit(Job { command: Arc::new(command), key: None }));
    for outcome in join_all(jobs).await {
        outcome?;
    }
    Ok(old.iter().map(|old| u64::try_from(old.rows()).unwrap_or_default()).sum())
}

async fn find_old(state: &InboxContext, users: &BTreeSet<i64>, before: UnixMs) -> Result<Vec<Old>> {
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [users.iter().copied().collect(), vec![before.0; users.len()]].map(Column::Int);
    let bounds: Vec<(i64, i64, i64, i64)> = state.db.fetch(&BOUNDS, &columns).await?;
    let within = |(user, first, head, fetched): (i64, i64, i64, i64)| {
        // Not beyond what is there now: what comes later is not old.
        let last = head.min(first + USER_ROWS - 1);
        let last = if fetched < 0 { last } else { fetched.min(last) };
        if first >= 1 && last >= first { Some((user, first, last)) } else { None }
    };
    let within: Vec<_> = bounds.into_iter().filter_map(within).collect();
    if within.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [
        within.iter().map(|(user, ..)| *user).collect(),
        within.iter().map(|(_, first, _)| *first).collect(),
        within.iter().map(|(.., last)| *last).collect(),
        vec![before.0; within.len()],
    ];
    let young: Vec<(i64, i64, i64)> = state.db.fetch(&YOUNG, &columns.map(Column::Int)).await?;
    let mut before_it = 0;
    let old = young.into_iter().filter(|(_, first, young)| young > first).map(|(user, first, young)| {
        let together = before_it / USER_ROWS;
        before_it += young - first;
        Old { user, first, last: young - 1, together }
    });
    Ok(old.collect())
}

/// Forgets some devices that were not seen for very long; returns how many. Call again while it
/// returns any.
pub async fn sweep_devices(state: &InboxContext) -> DbResult<u64> {
    let before = UnixMs(state.clock.now().0 - DEVICE_DAYS.max(i64::from(state.config.inbox_days)) * DAY_MS);
    devices::sweep(&state.db, before, DEVICE_ROWS).await
}
