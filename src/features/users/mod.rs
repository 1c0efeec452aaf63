//! Who was seen: the first request on a user's own routes enrols the user, and the day of the last
//! one is kept, so that those who stay away can be forgotten.
//!
//! Enrolment is one number: the head of the broadcast state at that moment. What was on the
//! broadcast state before it does not count for this user, in any channel and for any dot, also in
//! those that are made later. What those posted whom the user followed already (an import, or a
//! user who was forgotten) is likewise seen from then on: the enrolment carries their heads, read
//! before, and takes effect only if the list is still the one that was read. To everything else a
//! user needs no creation.
//!
//! `last_seen.rs` notes who was seen, with the command in `command.rs`; `waiting.rs` has the users whose
//! day is yet to be noted. `settings.rs` has what a user may set, `settings_http.rs` its routes. `erase.rs` is what
//! erases a user, `erase_http.rs` its route.

mod command;
pub mod erase;
pub mod erase_http;
pub mod exported;
mod last_seen;
pub mod settings;
pub mod settings_http;
mod waiting;

use std::sync::Arc;

use clap::Args;
use futures_util::future::join_all;

pub use self::command::UserCommand;
pub use self::last_seen::LastSeen;
use crate::base::clock::{Clock, DAY_MS, UnixMs};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::db::{Column, Db, Statement, Type};
use crate::engine::lanes::{Job, Lanes};
use crate::features::rounds::Rounds;
use crate::http::polling::Polling;

/// Users that are forgotten by one statement's finding.
const FORGET_AT_ONCE: i64 = 500;

/// How many are forgotten in one sweep; the rest waits for the next.
const FORGET_MOST: u32 = 20_000;

/// When those who stay away are forgotten.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Polls")]
pub struct LastSeenConfig {
    /// The number of days without a request after which the server forgets a user's marks of
    /// broadcasts, dots and feed. After that the user counts as new for those.
    #[arg(long, env = "HEADMARK_FORGET_AFTER_DAYS", default_value_t = 30, value_parser = clap::value_parser!(i64).range(1..=36_500))]
    pub forget_after_days: i64,
}

/// Enrolled users who were not seen on this day or later, in the order of the index. Within a day the order is
/// free: else each round would sort all users of that day.
static ABSENT: Statement = Statement::one(
    "select user_id
    from users
    where enrolled >= 0 and seen_day < $1
    order by seen_day
    limit $2",
    &[("before", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [&ABSENT, last_seen::statement()].into_iter().chain(erase::statements()).collect()
}

/// What forgets those who stay away.
#[derive(Debug)]
pub struct LastSeenContext {
    pub lanes: Lanes,
    pub db: Db,
    /// Whom this node has seen.
    pub last_seen: Arc<LastSeen>,
    /// What answers polls: says when the node is to stop.
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// After how many days a user who stays away is forgotten.
    pub forget_after_days: i64,
}

/// Forgets those who stayed away for too long, in bounded rounds, and returns their number. It leaves out
/// those whose day this node is yet to note.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn forget_the_absent(state: &LastSeenContext) -> Result<u32> {
    // Not at midnight, when nodes have many users to note, whom other nodes do not know of.
    let before = UnixMs(state.clock.now().0 - DAY_MS / 2).day() - state.forget_after_days;
    let (mut forgotten, mut rounds) = (0_u32, Rounds::small(&state.polling.draining));
    while forgotten < FORGET_MOST && rounds.next().await {
        let users: Vec<(i64,)> = state.db.fetch(&ABSENT, &[Column::Int(vec![before]), Column::Int(vec![FORGET_AT_ONCE])]).await?;
        let users = users.into_iter().filter_map(|(user,)| UserId::try_from(user).ok()).filter(|user| !state.last_seen.is_waiting(*user));
        let commands = users.map(|user| UserCommand::Forget { user, before });
        let jobs: Vec<_> = commands.map(|command| state.lanes.submit(Job { command: Arc::new(command), key: None })).collect();
        if jobs.is_empty() {
            break;
        }
        for outcome in join_all(jobs).await {
            outcome?;
            forgotten += 1;
        }
    }
    Ok(forgotten)
}
