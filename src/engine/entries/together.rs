//! Reads of users' entries that share statements.
//!
//! A read that comes alone begins at once. While [`STATEMENTS`] are on their way, those who come wait,
//! and the next statement reads them together: the more of them there are, the less each one costs. No
//! read begins before it was asked for, so what it finds is as new as what a statement of its own finds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::reader::EntryReader;
use crate::base::error::Error;
use crate::base::ids::UserId;
use crate::cache::ReadEntry;
use crate::db::{Db, MAX_READ, in_time};
use crate::engine::turns::{Turns, overloaded};

/// How many statements are on their way at most. More of them would read fewer users each.
const STATEMENTS: usize = 2;

/// How many users one statement reads at most, so that nobody waits long for the others' rows.
const USERS_AT_ONCE: usize = 32;

/// How many wait at most.
const MAX_WAITING: usize = 20_000;

/// A user's entry, and whether it is complete, so that the cache may be filled with it.
pub(super) type Found = Result<(bool, Arc<ReadEntry>), Arc<Error>>;

/// A read that waits for a statement.
#[derive(Debug)]
struct Asked {
    user: UserId,
    /// Who waits for it.
    found: oneshot::Sender<Found>,
    /// Whether its statement is on its way.
    has_begun: Arc<AtomicBool>,
}

/// The reads of a node.
#[derive(Debug)]
pub(super) struct Together {
    db: Db,
    reader: &'static EntryReader,
    turns: Arc<Turns>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they came.
    waiting: VecDeque<Asked>,
    /// How many statements are on their way.
    running: usize,
}

impl State {
    /// Whom the next statement reads; None if there is nobody, or if enough statements are on their way.
    fn next(&mut self) -> Option<Vec<Asked>> {
        if self.running == STATEMENTS {
            return None;
        }
        let mut asked = Vec::new();
        while asked.len() < USERS_AT_ONCE
            && let Some(next) = self.waiting.pop_front()
        {
            // Not for those who have gone.
            if !next.found.is_closed() {
                next.has_begun.store(true, Ordering::Release);
                asked.push(next);
            }
        }
        if asked.is_empty() {
            return None;
        }
        self.running += 1;
        Some(asked)
    }
}

/// A statement on its way. However it ends, the next one begins.
struct Running(Arc<Together>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.begin();
    }
}

/// Counts users that one statement has read.
pub(super) fn count(users: usize) {
    metrics::counter!("headmark_summary_sql_reads_total").increment(u64::try_from(users).unwrap_or_default());
    metrics::counter!("headmark_summary_sql_statements_total").increment(1);
}

impl Together {
    pub(super) fn new(db: Db, reader: &'static EntryReader, turns: Arc<Turns>) -> Arc<Self> {
        Arc::new(Self { db, reader, turns, state: Mutex::default() })
    }

    /// Every change is made in one step, so a poisoned lock guards whole data.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one user. It waits for a statement no longer than a statement waits for its turn.
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away.
    pub(super) async fn read(self: &Arc<Self>, user: UserId) -> Found {
        let (sender, mut found) = oneshot::channel();
        let has_begun = Arc::new(AtomicBool::new(false));
        self.add(Asked { user, found: sender, has_begun: Arc::clone(&has_begun) })?;
        self.begin();
        let answer = match tokio::time::timeout(self.turns.max_wait(), &mut found).await {
            Err(_) if has_begun.load(Ordering::Acquire) => tokio::time::timeout(MAX_READ, found).await,
            answer => answer,
        };
        answer.ok().and_then(Result::ok).unwrap_or_else(|| Err(Arc::new(overloaded())))
    }

    fn add(&self, asked: Asked) -> Result<(), Arc<Error>> {
        let mut state = self.state();
        if state.waiting.len() >= MAX_WAITING {
            return Err(Arc::new(overloaded()));
        }
        state.waiting.push_back(asked);
        Ok(())
    }

    /// Reads one user in a statement of its own, which ends when it is waited for no longer: while it is
    /// not sure that the database answers, nobody else is to wait for it.
    pub(super) async fn read_alone(&self, user: UserId) -> Result<Arc<ReadEntry>, Error> {
        let found = self.ask(&[user]).await?.pop();
        found.map(|(_, entry)| entry).ok_or_else(overloaded)
    }

    /// Begins a statement if somebody waits for one that may begin. In a task of its own: whoever asked
    /// first may go before the others have their answers.
    fn begin(self: &Arc<Self>) {
        let Some(asked) = self.state().next() else { return };
        let running = Running(Arc::clone(self));
        // There is none only where the node ends.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { running.0.serve(asked).await });
        }
    }

    async fn serve(&self, asked: Vec<Asked>) {
        let mut users: Vec<_> = asked.iter().map(|asked| asked.user).collect();
        users.sort_unstable();
        users.dedup();
        let all = self.ask(&users).await.map_err(Arc::new);
        for Asked { user, found, .. } in asked {
            let one = all.as_ref().map_err(Arc::clone).and_then(|all| {
                let at = users.binary_search(&user).ok();
                at.and_then(|at| all.get(at)).cloned().ok_or_else(|| Arc::new(overloaded()))
            });
            // Whoever has gone needs no answer.
            let _gone = found.send(one);
        }
    }

    /// In the order of the users.
    async fn ask(&self, users: &[UserId]) -> Result<Vec<(bool, Arc<ReadEntry>)>, Error> {
        let _turn = self.turns.take().await?;
        let read = in_time(self.reader.read(&self.db, users)).await?;
        count(users.len());
        Ok(read.into_iter().map(|rows| (rows.complete, Arc::new(ReadEntry::from(rows.entry)))).collect())
    }
}
