//! The users for whom something has ended that left a number out: a level, a mute.

use std::sync::Arc;

use futures_util::future::join_all;

use super::context::PushContext;
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::db::in_time;
use crate::engine::lanes;
use crate::failpoint;
use crate::features::push::command::EndedTurn;
use crate::features::push::store::{self, DuePlace};
use crate::summary::Wanted;

/// How many users have their turn at once.
const USERS_AT_ONCE: i64 = 50;

/// The kinds of counts that change by themselves, for one user alone.
const KINDS: &str = "chats,notifications";

/// Goes through the users for whom something has ended. One whose turn does not succeed keeps its place
/// and is passed, so that it holds up nobody; it is tried again from the beginning.
#[derive(Debug, Default)]
pub(super) struct Turns {
    after: DuePlace,
}

impl Turns {
    /// Whether there may be more users in this pass.
    pub(super) fn is_under_way(&self) -> bool {
        self.after != DuePlace::default()
    }

    /// The next users have their turn.
    pub(super) async fn round(&mut self, state: &PushContext) -> Result<()> {
        let told_until = state.ended_everywhere();
        let users = in_time(store::due_users(&state.db, told_until, self.after, USERS_AT_ONCE)).await?;
        let is_full = i64::try_from(users.len()).unwrap_or(i64::MAX) >= USERS_AT_ONCE;
        self.after = users.last().map(|(place, _)| *place).filter(|_| is_full).unwrap_or_default();
        let outcomes = join_all(users.into_iter().map(|(_, user)| turn(state, user, told_until))).await;
        outcomes.into_iter().collect()
    }
}

/// Tells what has ended for a user by a time, and notes when something ends next. Where the user's rows
/// change in between, it is the user's turn again.
async fn turn(state: &PushContext, user: UserId, told_until: UnixMs) -> Result<()> {
    let Ok(wanted) = Wanted::parse(Some(KINDS), None) else { return Ok(()) };
    let summaries = &state.summaries;
    // As of then: what has ended since, by this clock, may not have ended yet by the clock of another
    // node. It gets a turn of its own.
    let summary = summaries.put_together(user, summaries.entries.read(user, 0).await, wanted, &[], told_until).await;
    if summary.is_degraded() {
        return Ok(());
    }
    let next = summary.changes_at().filter(|at| *at > told_until);
    failpoint("push::before_turn");
    let command = Arc::new(EndedTurn { user, revision: summary.revision(), next });
    let told: bool = state.lanes.submit(lanes::Job { command, key: None }).await?.value()?;
    failpoint("push::after_turn");
    if !told {
        tracing::debug!("what ends next for a user has changed meanwhile");
    }
    Ok(())
}
