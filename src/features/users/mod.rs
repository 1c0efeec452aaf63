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
//! `settings.rs` has what a user may set, `settings_http.rs` its routes. `erase.rs` is what erases a
//! user, `erase_http.rs` its route.

pub mod erase;
pub mod erase_http;
pub mod exported;
pub mod settings;
pub mod settings_http;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::future::{BoxFuture, join_all};

use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::UserId;
use crate::base::recent::Recent;
use crate::db::{Column, Db, Statement, Type};
use crate::engine::entries::Entries;
use crate::engine::guard::{Guard, Trust};
use crate::engine::heads::{Heads, History};
use crate::engine::lanes::{self, Answer, Job, Lanes, Names, Needs, Rows, in_path};
use crate::features::feed::rows::need_snapshot;
use crate::features::feed::{self, Followed};
use crate::http::path::Witness;
use crate::http::polling::Polling;

/// How many users a node remembers to have seen today, at most; the half that it saw last for sure.
/// One that is not among them costs a look into the database.
const MAX_SEEN: usize = 2_000_000;

/// How long a request waits for the enrolment: should the database be away, the request goes on
/// without.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How often an enrolment is tried while the list of whom the user follows changes.
const MAX_TRIES: u32 = 4;

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

/// Those who were enrolled and not seen since before this day, and stand after this user, in the
/// order of the index.
static ABSENT: Statement = Statement::one(
    "select user_id
    from users
    where enrolled >= 0 and seen_day < $1
    order by seen_day, user_id
    limit $2",
    &[("before", Type::Int), ("max_rows", Type::Int)],
);

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    std::iter::once(&ABSENT).chain(erase::statements()).collect()
}

/// What forgets those who stay away.
#[derive(Debug)]
pub struct LastSeenContext {
    pub lanes: Lanes,
    pub db: Db,
    /// What answers polls: says when the node is to stop.
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// After how many days a user who stays away is forgotten.
    pub forget_after_days: i64,
}

/// Forgets those who stayed away for too long, in bounded rounds. Returns how many it was.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn forget_the_absent(state: &LastSeenContext) -> Result<u32> {
    let before = state.clock.now().day() - state.forget_after_days;
    let mut forgotten = 0_u32;
    while forgotten < FORGET_MOST && !state.polling.draining.is_cancelled() {
        let users: Vec<(i64,)> = state.db.fetch(&ABSENT, &[Column::Int(vec![before]), Column::Int(vec![FORGET_AT_ONCE])]).await?;
        let commands = users.iter().filter_map(|(user,)| Some(UserCommand::Forget { user: UserId::try_from(*user).ok()?, before }));
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

/// Notes who was seen.
#[derive(Debug)]
pub struct LastSeen {
    db: Db,
    lanes: Lanes,
    guard: Arc<Guard>,
    entries: Arc<Entries>,
    clock: Clock,
    heads: Arc<Heads>,
    /// The day on which each was last seen, and in which history of the database.
    seen: Recent<(i64, History)>,
}

impl LastSeen {
    /// Through these lanes.
    #[must_use]
    pub fn new(db: Db, lanes: Lanes, guard: Arc<Guard>, entries: Arc<Entries>, heads: Arc<Heads>, clock: Clock) -> Self {
        Self { db, lanes, guard, entries, clock, heads, seen: Recent::new(MAX_SEEN) }
    }

    /// Those whom this node saw today, in no order.
    #[must_use]
    pub fn seen_today(&self) -> Vec<UserId> {
        let today = self.clock.now().day();
        self.seen.users(|(day, _)| *day == today)
    }

    async fn note(&self, user: UserId, today: i64) {
        // It would only wait.
        if self.guard.trust() == Trust::Unsure {
            return;
        }
        let history = self.heads.history();
        match tokio::time::timeout(MAX_WAIT, self.see(user, today)).await {
            Ok(Ok(true)) => self.seen.insert(user, (today, history), 1),
            Ok(Ok(false)) => tracing::debug!("whom a user follows changes too fast for an enrolment"),
            // Until it comes off, by a later request, the user counts as new.
            Ok(Err(error)) => tracing::debug!(?error, "could not note that a user was seen"),
            Err(_) => tracing::debug!("noting that a user was seen takes too long"),
        }
    }

    /// Whether it is noted.
    async fn see(&self, user: UserId, day: i64) -> Result<bool, Error> {
        let mut followed = None;
        for _ in 0..MAX_TRIES {
            let job = Job { command: Arc::new(UserCommand::See { user, day, followed }), key: None };
            if self.lanes.submit(job).await?.value()? {
                return Ok(true);
            }
            followed = Some(feed::store::read_followed(&self.db, user).await?);
        }
        Ok(false)
    }
}

impl Witness for LastSeen {
    /// Enrols the user if that was not done yet. Once a day for each user and node it is a write,
    /// or a look whether one is needed.
    fn saw(&self, user: UserId) -> Option<BoxFuture<'_, ()>> {
        let today = self.clock.now().day();
        (self.seen.get(user) != Some((today, self.heads.history()))).then(|| Box::pin(self.note(user, today)) as BoxFuture<'_, ()>)
    }

    fn refuse_erased(&self, user: UserId) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(self.entries.refuse_erased(user))
    }

    fn refuse_erased_to_others(&self, user: UserId) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(self.entries.refuse_erased_to_others(user))
    }
}

/// What a user who is seen writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCommand {
    /// The user was seen. One who is to be enrolled and follows somebody needs `followed` for it,
    /// as of the present list: without it nothing is changed, and the answer is not empty.
    See {
        user: UserId,
        /// On which day.
        day: i64,
        /// Whom the user follows and what they had posted.
        followed: Option<Followed>,
    },
    /// The user was not seen since before this day: the marks of what everybody shares are
    /// forgotten.
    Forget {
        user: UserId,
        /// The first day of those that count as recent.
        before: i64,
    },
}

impl lanes::Command for UserCommand {
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::See { user, followed, .. } => {
                needs.enrolment(*user);
                if followed.is_some() {
                    need_snapshot(needs, *user);
                }
            }
            Self::Forget { user, .. } => needs.user(*user),
        }
    }

    fn lane_key(&self) -> i64 {
        match self {
            Self::See { user, .. } | Self::Forget { user, .. } => user.get(),
        }
    }

    fn names(&self) -> Names {
        match self {
            Self::See { user, .. } => vec![in_path(*user)],
            Self::Forget { .. } => Vec::new(),
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Self::See { followed: Some(followed), .. } => followed.weight(),
            Self::See { .. } | Self::Forget { .. } => 1,
        }
    }

    fn apply(&self, rows: &mut Rows, _now: UnixMs) -> Result<Answer, Problem> {
        match self {
            Self::See { user, day, followed } => {
                let row = rows.user(*user);
                if !row.is_enrolled() && row.following > 0 {
                    let Some(followed) = followed.as_ref().filter(|followed| followed.version == row.feed) else {
                        // Whom the user follows is needed, too.
                        return Ok(Answer::ok(false));
                    };
                    feed::look(rows, *user, followed)?;
                    // In any case: while the user was not enrolled, the list counted for nothing.
                    rows.feed_changed(*user);
                }
                rows.see_user(*user, *day);
            }
            Self::Forget { user, before } => {
                let row = rows.user(*user);
                // Looked at again under the lock: the user may have come back meanwhile.
                if row.is_enrolled() && row.seen_day < *before {
                    rows.forget_user(*user);
                }
            }
        }
        Ok(Answer::ok(true))
    }
}
