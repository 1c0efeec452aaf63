//! Makes jobs of what changed numbers without a write to the users' rows: messages of groups and
//! broadcasts, by their events, and broadcasts that have expired.
//!
//! The place that was reached moves in the transaction that writes the jobs, under its lock, so one
//! node at a time reads along, and none needs to tell another how far it is.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;

use super::context::PushContext;
use crate::base::clock::UnixMs;
use crate::base::ids::GroupId;
use crate::db::{Conn, DbResult, in_time};
use crate::engine::events::store::{self as events, EventRow};
use crate::engine::events::{EventType, EventTypes};
use crate::failpoint;
use crate::features::broadcasts::store::last_expired;
use crate::features::groups::push_members::{MAX_LOOKED_AT, with_push};
use crate::features::push::Scope;
use crate::features::push::store::{self, Progress};

/// What is read along.
const FOLLOWED: EventTypes = EventTypes::of(EventType::Broadcast).with(EventType::GroupMessage);

/// How many rows of events one transaction takes in.
const ROWS_AT_ONCE: i64 = 50;

/// Of how many groups one statement finds the members with a push device.
const GROUPS_AT_ONCE: usize = 500;

/// While nobody has a push device, the place is moved once for so many events.
const IDLE_EVENTS: i64 = 10_000;

/// What this node knows of the place that was reached. Another node may have moved it.
#[derive(Debug, Default)]
pub(super) struct Follower {
    seen: Option<Progress>,
}

/// An event that is read along.
#[derive(Deserialize)]
struct Followed<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    data: Subject,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    group_id: Option<GroupId>,
}

/// Whose numbers change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Causes {
    everybody: bool,
    groups: BTreeSet<GroupId>,
}

impl Causes {
    /// Takes in the events of a row after a number.
    fn take(&mut self, row: &EventRow, after: i64) -> serde_json::Result<()> {
        if row.content.is_empty() {
            return Ok(());
        }
        // Of other types nothing is looked at but the type.
        let events: Vec<&serde_json::value::RawValue> = serde_json::from_str(&row.content)?;
        for (_, event) in (row.first..).zip(events).filter(|(id, _)| *id > after) {
            let Ok(event) = serde_json::from_str::<Followed<'_>>(event.get()) else { continue };
            self.everybody |= event.r#type == EventType::Broadcast.name();
            if event.r#type == EventType::GroupMessage.name() {
                self.groups.extend(event.data.group_id);
            }
        }
        Ok(())
    }

    async fn scopes(self, conn: &mut Conn) -> DbResult<Vec<Scope>> {
        if self.everybody {
            return Ok(vec![Scope::All]);
        }
        let (groups, mut scopes, mut left) = (self.groups.into_iter().collect::<Vec<_>>(), Vec::new(), MAX_LOOKED_AT);
        for groups in groups.chunks(GROUPS_AT_ONCE) {
            scopes.extend(with_push(conn, groups, &mut left).await?.into_iter().map(Scope::Group));
        }
        // Rows are locked in the order of the key.
        scopes.sort_unstable();
        Ok(scopes)
    }
}

impl Follower {
    /// Takes in some of what happened; whether there may be more.
    pub(super) async fn round(&mut self, state: &PushContext) -> DbResult<bool> {
        let kept = in_time(events::kept(&state.db)).await?;
        let ended = state.ended_everywhere();
        let expired = last_expired(&state.db, self.seen.map_or(UnixMs(0), |seen| seen.expired_at), ended).await?;
        // A head below it is of another history: a restored database, or a failover that lost events. Then it goes on
        // from where the tables of that one say.
        if expired.is_none() && self.seen.is_some_and(|seen| seen.event_id == kept.head) {
            return Ok(false);
        }
        let is_used = !store::users_after(&state.db, 0, 1).await?.is_empty();
        let is_near = |seen: Progress| (0..IDLE_EVENTS).contains(&(kept.head - seen.event_id));
        if !is_used && expired.is_none() && self.seen.is_some_and(is_near) {
            // Nobody is to be told, and it goes on from nearly here in any case.
            return Ok(false);
        }
        let mut conn = state.db.connect().await?;
        conn.begin().await?;
        let Some(before) = store::lock_progress(&mut conn).await? else {
            conn.rollback().await?;
            return Ok(false);
        };
        let expired = expired.filter(|at| *at > before.expired_at);
        let after = Progress { event_id: before.event_id, expired_at: expired.unwrap_or(before.expired_at) };
        if !is_used {
            // Who has a push device from now on is told once in any case.
            let after = Progress { event_id: kept.head.max(before.event_id), ..after };
            self.seen = Some(after);
            if after.event_id - before.event_id >= IDLE_EVENTS || expired.is_some() {
                store::save_progress(&mut conn, after).await?;
            }
            return conn.commit().await.map(|()| false);
        }
        let taken = follow(&mut conn, state, (before, after)).await?;
        if taken.jobs > 0 {
            failpoint("push::before_follow");
        }
        conn.commit().await?;
        if taken.jobs > 0 {
            failpoint("push::after_follow");
        }
        self.seen = Some(taken.after);
        Ok(taken.more)
    }
}

/// What a transaction took in.
struct Taken {
    /// How far that is.
    after: Progress,
    /// For how many scopes there is a job now.
    jobs: usize,
    /// Whether there may be more.
    more: bool,
}

/// Writes the jobs of what happened, and how far that is.
async fn follow(conn: &mut Conn, state: &PushContext, (before, after): (Progress, Progress)) -> DbResult<Taken> {
    let mut causes = Causes { everybody: after.expired_at > before.expired_at, groups: BTreeSet::new() };
    let from = before.event_id;
    let rows = events::read_in(conn, from, FOLLOWED, ROWS_AT_ONCE).await?;
    // After the rows, as a sweep may go on in between.
    let floor = events::kept_in(conn).await?.floor;
    // What was swept since may have been about anybody.
    causes.everybody |= from < floor;
    for row in &rows {
        causes.take(row, from).map_err(|error| sqlx::Error::Decode(error.into()))?;
    }
    let after = Progress { event_id: rows.last().map_or(from, |row| row.last).max(floor), ..after };
    let due_at = state.told_at();
    let jobs: Vec<_> = causes.scopes(conn).await?.into_iter().map(|scope| (scope, due_at)).collect();
    store::add_jobs(conn, &jobs).await?;
    if after != before {
        store::save_progress(conn, after).await?;
    }
    Ok(Taken { after, jobs: jobs.len(), more: i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROWS_AT_ONCE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_those_after_the_place_that_was_reached() {
        let content = r#"[{"at":"x","type":"group_message","data":{"group_id":"9","seq":1}},
            {"at":"x","type":"member","data":{"group_id":"8","user_id":"1"}},
            {"at":"x","type":"group_message","data":{"group_id":"7","seq":1}},
            {"at":"x","type":"of_a_newer_version","data":[]},
            {"at":"x","type":"broadcast","data":{"channel":"news"}}]"#;
        let row = EventRow { first: 11, last: 15, content: content.to_owned() };
        let causes = |after| {
            let mut causes = Causes::default();
            causes.take(&row, after).unwrap();
            (causes.everybody, causes.groups.iter().map(|group| group.get()).collect::<Vec<_>>())
        };
        assert_eq!([10, 11, 13, 15].map(causes), [(true, vec![7, 9]), (true, vec![7]), (true, vec![]), (false, vec![])]);
    }
}
