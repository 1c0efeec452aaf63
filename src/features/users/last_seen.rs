//! Notes who was seen, and when.
//!
//! A user who is not enrolled waits for the enrolment. The others wait for nothing: their day is noted
//! behind the request, many at once, at a limited rate that leaves room for other writes. A day begins
//! for everybody at one moment, and a node that starts has seen nobody.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::command::UserCommand;
use super::waiting::Waiting;
use crate::base::clock::Clock;
use crate::base::error::{Error, Problem};
use crate::base::ids::UserId;
use crate::base::recent::Recent;
use crate::db::{Column, Db, Statement, Type, in_time};
use crate::engine::entries::{Entries, State};
use crate::engine::guard::{Guard, Trust};
use crate::engine::heads::{Heads, History};
use crate::engine::lanes::{Job, Lanes};
use crate::engine::marks::parts::{enrolled, is_erased};
use crate::engine::marks::users::NOT_ENROLLED;
use crate::features::feed;
use crate::http::path::Witness;

/// How many users a node remembers to have seen today, at most; the half that it saw last for sure.
/// One that is not among them costs a look into the database.
const MAX_SEEN: usize = 2_000_000;

/// How long a request waits for the enrolment: should the database be away, the request goes on
/// without.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// How often an enrolment is tried while the list of whom the user follows changes.
const MAX_TRIES: u32 = 4;

/// Of how many users the day is noted at once, and the pause before the next ones.
const NOTED_AT_ONCE: usize = 500;
const PAUSE: Duration = Duration::from_millis(100);

/// The pause while the database cannot be asked.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Those of these users of whom nothing is to be noted on this day.
static NOTED: Statement = Statement::new(
    "select r.user_id
    from {rows} r
    join users u on u.user_id = r.user_id
    where u.enrolled >= 0 and u.seen_day >= r.day",
    &[("user_id", Type::Int), ("day", Type::Int)],
)
.by("user_id");

/// The statement of this file, for the suite that runs each on both engines.
pub(super) fn statement() -> &'static Statement {
    &NOTED
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
    /// Whose day is yet to be noted.
    waiting: Mutex<Waiting>,
    wake: Notify,
    /// Held while some are noted, so that a node that stops waits for them.
    turn: tokio::sync::Mutex<()>,
}

impl LastSeen {
    /// Through these lanes.
    #[must_use]
    pub fn new(db: Db, lanes: Lanes, guard: Arc<Guard>, entries: Arc<Entries>, heads: Arc<Heads>, clock: Clock) -> Self {
        Self {
            db,
            lanes,
            guard,
            entries,
            clock,
            heads,
            seen: Recent::new(MAX_SEEN),
            waiting: Mutex::default(),
            wake: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Those whom this node saw today, in no order.
    #[must_use]
    pub fn seen_today(&self) -> Vec<UserId> {
        let today = self.clock.now().day();
        self.seen.users(|(day, _)| *day == today)
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is yet to be noted that the user was seen, on any day.
    #[must_use]
    pub fn is_waiting(&self, user: UserId) -> bool {
        self.waiting().has(user, 0)
    }

    /// Notes the days of users who were seen, until told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let work = async {
            loop {
                self.wake.notified().await;
                // So that there are many at once.
                tokio::time::sleep(PAUSE).await;
                while let Some(noted) = self.note_some().await {
                    tokio::time::sleep(if noted { PAUSE } else { LONG_PAUSE }).await;
                }
            }
        };
        stop.run_until_cancelled(work).await;
    }

    /// Before the node stops: notes the days of all who wait, without a pause, as far as that goes.
    pub async fn note_all(&self) {
        while self.note_some().await == Some(true) {}
    }

    /// Notes the days of some who wait, after those whose turn it is; false if that is not possible now, None if nobody waits.
    async fn note_some(&self) -> Option<bool> {
        let _turn = self.turn.lock().await;
        let users = self.waiting().take(NOTED_AT_ONCE);
        if users.is_empty() {
            return None;
        }
        let history = self.heads.history();
        let columns =
            [Column::Int(users.iter().map(|(user, _)| user.get()).collect()), Column::Int(users.iter().map(|(_, day)| *day).collect())];
        let noted = match self.guard.trust() {
            Trust::Unsure => None,
            Trust::Full | Trust::Bypass => in_time(self.db.fetch::<(i64,)>(&NOTED, &columns)).await.ok(),
        };
        let Some(noted) = noted else {
            tracing::debug!("cannot look now who was seen today");
            self.waiting().put_back(&users);
            return Some(false);
        };
        let noted: HashSet<i64> = noted.into_iter().map(|(user,)| user).collect();
        let note = async |(user, day): (UserId, i64)| {
            if noted.contains(&user.get()) {
                self.seen.insert(user, (day, history), 1);
            } else {
                self.note(user, day).await;
            }
            self.waiting().end(user, day);
        };
        join_all(users.into_iter().map(note)).await;
        Some(true)
    }

    /// Of a user who was not seen today, as far as this node knows.
    async fn meet(&self, user: UserId, today: i64) {
        // Without the database it would only wait.
        if self.guard.trust() == Trust::Unsure || self.waiting().has(user, today) {
            return;
        }
        match self.entries.read(user, 0).await {
            // Its requests are refused.
            State::Current(entry) | State::LastKnown(entry) if is_erased(&entry.parts) => {}
            State::Current(entry) | State::LastKnown(entry) if enrolled(&entry.parts) != NOT_ENROLLED => {
                self.waiting().add(user, today);
                self.wake.notify_one();
            }
            State::Current(_) => self.note(user, today).await,
            // Until it is known, by a later request, the user counts as new.
            State::LastKnown(_) | State::Unknown => {}
        }
    }

    async fn note(&self, user: UserId, today: i64) {
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
    /// Enrols the user if that was not done yet. Once a day for each user and node it is noted that the
    /// user was seen, or looked whether it is.
    fn saw(&self, user: UserId) -> Option<BoxFuture<'_, ()>> {
        let today = self.clock.now().day();
        if self.seen.get(user) == Some((today, self.heads.history())) {
            return None;
        }
        Some(Box::pin(async move {
            if tokio::time::timeout(MAX_WAIT, self.meet(user, today)).await.is_err() {
                tracing::debug!("looking who was seen takes too long");
            }
        }))
    }

    fn refuse_erased(&self, user: UserId) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(self.entries.refuse_erased(user))
    }

    fn refuse_erased_to_others(&self, user: UserId) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(self.entries.refuse_erased_to_others(user))
    }
}
