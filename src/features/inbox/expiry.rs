//! Old rows of inboxes go (`crate::features::old_rows` has the walk), and devices that stayed away
//! for very long. What a living device has yet to fetch stays.
//!
//! The walk goes through all users and looks at the first row of each. An index by age would cost
//! a fifth of what it takes to put a message of a group into an inbox.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use super::http::InboxContext;
use super::{InboxCommand, devices};
use crate::base::clock::{DAY_MS, UnixMs};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::db::{Column, DbResult, Statement, Type};
use crate::engine::lanes::{self, Job};
pub use crate::features::old_rows::Walk;
use crate::features::old_rows::{OWNER_ROWS, Old, OldRows, PAGE, Page, Sweep, Swept, ahead, old_within};

/// After how many days a device that was not seen is forgotten.
const DEVICE_DAYS: i64 = 365;

/// How many users one statement looks at: where their rows are on a disk alone, it takes a read or two for each.
const LOOK_AT_ONCE: usize = 250;

/// How many devices one round of their sweep removes.
const DEVICE_ROWS: i64 = 1000;

static USERS: Statement = Statement::one(
    "select user_id from users where user_id > $1 order by user_id limit $2",
    &[("after_user", Type::Int), ("max_rows", Type::Int)],
);

/// Those of these users whose first row is old. Where a later row is older, as another node put it
/// there, it waits for the first; but for none so far ahead that a clock was fast.
static OLD: Statement = Statement::new(
    "select r.user_id
    from {rows} r
    where (select i.put_at from inbox i where i.user_id = r.user_id and i.put_at <= r.ahead order by i.seq limit 1) < r.before",
    &[("user_id", Type::Int), ("before", Type::Int), ("ahead", Type::Int)],
)
.by("user_id");

/// The lowest and the last row of each user, and up to where the devices that were seen since have
/// fetched; -1: there are none.
static BOUNDS: Statement = Statement::new(
    "select r.user_id,
        coalesce((select i.seq from inbox i where i.user_id = r.user_id order by i.seq limit 1), 0),
        coalesce((select u.inbox_seq from users u where u.user_id = r.user_id), 0),
        coalesce((select min(d.seq) from devices d where d.user_id = r.user_id and d.seen_at >= r.before and d.seq >= 0), -1)
    from {rows} r",
    &[("user_id", Type::Int), ("before", Type::Int)],
)
.by("user_id");

/// The lowest row of each user within these that is not old; one beyond them where all are. One so far
/// ahead that a clock was fast keeps nothing: it goes with an old one behind it.
static YOUNG: Statement = Statement::new(
    "select r.user_id, r.first_seq, coalesce((
        select i.seq
        from inbox i
        where i.user_id = r.user_id and i.seq >= r.first_seq and i.seq <= r.last_seq and i.put_at >= r.before
        and (i.put_at <= r.ahead or coalesce((
            select n.put_at
            from inbox n
            where n.user_id = r.user_id and n.seq > i.seq and n.put_at <= r.ahead
            order by n.seq
            limit 1
        ), r.before) >= r.before)
        order by i.seq
        limit 1
    ), r.last_seq + 1)
    from {rows} r",
    &[("user_id", Type::Int), ("first_seq", Type::Int), ("last_seq", Type::Int), ("before", Type::Int), ("ahead", Type::Int)],
)
.by("user_id");

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 4] {
    [&USERS, &OLD, &BOUNDS, &YOUNG]
}

impl OldRows for InboxContext {
    async fn page(&self, after: Walk, before: UnixMs) -> DbResult<Page> {
        let users: Vec<(i64,)> = self.db.fetch(&USERS, &[after.owner, PAGE].map(|value| Column::Int(vec![value]))).await?;
        let mut old = BTreeSet::new();
        for some in users.chunks(LOOK_AT_ONCE) {
            let users = some.iter().map(|(user,)| *user).collect();
            let columns = [users, vec![before.0; some.len()], vec![ahead(&self.clock); some.len()]].map(Column::Int);
            let found: Vec<(i64,)> = self.db.fetch(&OLD, &columns).await?;
            old.extend(found.into_iter().map(|(user,)| user));
        }
        let looked_at: Vec<_> = users.into_iter().map(|(owner,)| Walk { owner, ..after }).collect();
        Ok(Page::new(old, &looked_at))
    }

    async fn find(&self, users: &BTreeSet<i64>, before: UnixMs) -> DbResult<Vec<Old>> {
        let columns = [users.iter().copied().collect(), vec![before.0; users.len()]].map(Column::Int);
        let bounds: Vec<(i64, i64, i64, i64)> = self.db.fetch(&BOUNDS, &columns).await?;
        let within = |(user, first, head, fetched): (i64, i64, i64, i64)| {
            // Not beyond what is there now: what comes later is not old.
            let last = head.min(first + OWNER_ROWS - 1);
            let last = if fetched < 0 { last } else { fetched.min(last) };
            (first >= 1 && last >= first).then_some(Old { owner: user, first, last })
        };
        let within = bounds.into_iter().filter_map(within).collect();
        old_within(&self.db, &YOUNG, within, before, &self.clock).await
    }

    fn command(&self, old: &Old, before: UnixMs) -> Option<Arc<dyn lanes::Command>> {
        let rows = u32::try_from(old.rows()).unwrap_or(u32::MAX);
        let user = UserId::try_from(old.owner).ok()?;
        Some(Arc::new(InboxCommand::Expire { user, up_to: old.last, rows, seen_since: before }))
    }
}

/// Removes old rows, in bounded rounds, and goes on from where the walk is.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep(state: &InboxContext, walk: &mut Walk) -> Result<Swept> {
    let before = state.config.oldest(state.clock.now());
    Sweep { lanes: &state.lanes, draining: &state.polling.draining, before }.run(state, walk).await
}

/// Forgets some devices that were not seen for very long; returns how many. Call again while it
/// returns any.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep_devices(state: &InboxContext) -> Result<u64> {
    let before = UnixMs(state.clock.now().0 - DEVICE_DAYS.max(i64::from(state.config.inbox_days)) * DAY_MS);
    let old = devices::old(&state.db, before, DEVICE_ROWS).await?;
    let command = |(user, device)| Job { command: Arc::new(InboxCommand::ForgetDevice { user, device, before }), key: None };
    let commands = old.into_iter().map(|of| state.lanes.submit(command(of)));
    let mut forgotten = 0;
    for outcome in join_all(commands).await {
        forgotten += u64::from(outcome?.value::<bool>()?);
    }
    Ok(forgotten)
}
