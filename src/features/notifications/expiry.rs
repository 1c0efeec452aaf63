//! Old notifications go, where a setting says so: the notification, and what each of its receivers
//! has of it, in one transaction. So `read_count` never counts a part of the receivers. An entry
//! goes with its last notification: a receiver who had not read it has one less at the same moment.
//! A list that shows the notification is another from then on, and so is the user's revision.
//!
//! Ids of notifications begin with their time, so the old ones are the lowest, and an id alone
//! tells whether its notification would still be kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;

use super::NotificationCommand;
use super::http::NotificationContext;
use crate::base::error::Result;
use crate::base::ids::{NotificationId, UserId};
use crate::db::{Column, DbResult, Statement, Type};
use crate::engine::lanes::Job;
use crate::features::rounds::Rounds;

/// How many old notifications one round of a sweep looks for.
const ROUND_NOTIFICATIONS: i64 = 500;

/// How many receivers the notifications have together that are removed at once; one notification
/// may have more.
const RECEIVERS_AT_ONCE: i64 = 1000;

static OLD: Statement = Statement::one(
    "select n.notification_id, n.recipients
    from notifications n
    where n.notification_id < $1
    order by n.notification_id
    limit $2",
    &[("kept_from", Type::Int), ("max_rows", Type::Int)],
);

/// Of entries that they began, and of entries that hold them.
static RECEIVERS: Statement = Statement::new(
    "select n.notification_id, n.user_id
    from {rows} r
    join notification_receivers n on n.notification_id = r.notification_id
    union
    select g.notification_id, g.user_id
    from {rows} r
    join grouped_notifications g on g.notification_id = r.notification_id",
    &[("notification_id", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 2] {
    [&OLD, &RECEIVERS]
}

/// Removes old notifications, in bounded rounds; the rest waits for the next sweep. Returns how
/// many it was.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep(state: &NotificationContext) -> Result<u64> {
    let kept_from = state.config.kept_from(state.clock.now());
    if kept_from == 0 {
        return Ok(0);
    }
    let (mut removed, mut rounds) = (0, Rounds::new(&state.polling.draining));
    while rounds.next().await {
        let old: Vec<(i64, i64)> = state.db.fetch(&OLD, &[kept_from, ROUND_NOTIFICATIONS].map(|value| Column::Int(vec![value]))).await?;
        let mut left = old.as_slice();
        while !left.is_empty() && !rounds.are_over() {
            let (together, rest) = left.split_at(how_many(left));
            removed += remove(state, together, kept_from).await?;
            left = rest;
        }
        if i64::try_from(old.len()).unwrap_or(i64::MAX) < ROUND_NOTIFICATIONS {
            break;
        }
    }
    Ok(removed)
}

/// How many of these notifications are removed at once: the first, and those after it that have few
/// receivers together with it.
fn how_many(notifications: &[(i64, i64)]) -> usize {
    let mut receivers = 0_i64;
    let within = notifications.iter().take_while(|(_, more)| {
        receivers = receivers.saturating_add(*more);
        receivers <= RECEIVERS_AT_ONCE
    });
    within.count().clamp(1, notifications.len().max(1))
}

async fn remove(state: &NotificationContext, notifications: &[(i64, i64)], kept_from: i64) -> Result<u64> {
    let mut recipients = recipients(state, notifications).await?;
    let command = |(id, _): &(i64, i64)| {
        let recipients = recipients.remove(id).unwrap_or_default();
        Some(NotificationCommand::Expire { id: NotificationId::try_from(*id).ok()?, recipients, kept_from })
    };
    let jobs: Vec<_> = notifications.iter().filter_map(command).map(|command| Job { command: Arc::new(command), key: None }).collect();
    let mut removed = 0;
    for outcome in join_all(jobs.into_iter().map(|job| state.lanes.submit(job))).await {
        outcome?;
        removed += 1;
    }
    Ok(removed)
}

/// To whom these notifications were sent. Read ahead of the transactions, which must know whose
/// rows to lock: they never become more.
async fn recipients(state: &NotificationContext, notifications: &[(i64, i64)]) -> DbResult<BTreeMap<i64, Vec<UserId>>> {
    let rows: Vec<(i64, i64)> = state.db.fetch(&RECEIVERS, &[Column::Int(notifications.iter().map(|(id, _)| *id).collect())]).await?;
    let mut recipients: BTreeMap<i64, Vec<UserId>> = BTreeMap::new();
    for (id, user) in rows {
        recipients.entry(id).or_default().extend(UserId::try_from(user).ok());
    }
    Ok(recipients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_notification_goes_alone_and_small_ones_together() {
        assert_eq!([how_many(&[(1, 10_000), (2, 1)]), how_many(&[(1, 1)]), how_many(&[(1, 400), (2, 600), (3, 1)])], [1, 1, 2]);
    }
}
