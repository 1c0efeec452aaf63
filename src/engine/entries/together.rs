//! Reads of users' entries that share statements.
//!
//! A read that comes alone begins at once. While [`STATEMENTS`] are on their way, those who come wait,
//! and the next statement reads them together: the more of them there are, the less each one costs. No
//! read begins before it was asked for, so what it finds is as new as what a statement of its own finds.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::reader::EntryReader;
use crate::base::error::{Error, Fault};
use crate::base::ids::UserId;
use crate::cache::ReadEntry;
use crate::db::{Db, ErrorClass, MAX_READ, classify, in_time};
use crate::engine::turns::{Turns, overloaded};

/// How many statements are on their way at most. More of them would read fewer users each.
const STATEMENTS: usize = 2;

/// For how long a statement counts as one of these. One that takes longer must not hold up all the others:
/// then the turns alone say how many there are. Half of what a read waits for a statement, where that is less.
const PATIENCE: Duration = Duration::from_millis(50);

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
    /// Where it was asked for. Its statement runs there if it is the first of it, so that all threads have
    /// their share.
    runtime: Handle,
}

/// The reads of a node.
#[derive(Debug)]
pub(super) struct Together {
    db: Db,
    reader: &'static EntryReader,
    turns: Arc<Turns>,
    /// How many statements are on their way at most, and how many users one reads.
    most: (usize, usize),
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
    fn next(&mut self, (statements, users): (usize, usize)) -> Option<Vec<Asked>> {
        if self.running >= statements {
            return None;
        }
        let mut asked = Vec::new();
        while asked.len() < users
            && let Some(next) = self.waiting.pop_front()
        {
            // Nobody waits for an answer whose client has disconnected.
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

/// A statement on its way.
struct Running {
    reads: Arc<Together>,
    /// Whether it counts as one of those on their way.
    counts: bool,
}

impl Running {
    async fn run(mut self, asked: Vec<Asked>) {
        let reads = Arc::clone(&self.reads);
        let mut serve = pin!(reads.serve(asked));
        if tokio::time::timeout(PATIENCE.min(reads.turns.max_wait() / 2), &mut serve).await.is_err() {
            self.make_room();
            serve.await;
        }
        self.make_room();
    }

    /// From now on it does not count. Whether it did.
    fn leave(&mut self) -> bool {
        let counted = std::mem::take(&mut self.counts);
        self.reads.state().running -= usize::from(counted);
        counted
    }

    fn make_room(&mut self) {
        if self.leave() {
            self.reads.begin();
        }
    }
}

impl Drop for Running {
    /// A panic must not stop the others. At the end of the runtime nothing can begin any more, and waiting
    /// reads time out.
    fn drop(&mut self) {
        if self.leave() && std::thread::panicking() {
            self.reads.begin();
        }
    }
}

impl Together {
    pub(super) fn new(db: Db, reader: &'static EntryReader, turns: Arc<Turns>) -> Arc<Self> {
        // On Citus users share no statement: each shard has one of its own, and a worker that is away
        // must not be in the way of the others' users.
        let most = if db.is_distributed() { (usize::MAX, 1) } else { (STATEMENTS, USERS_AT_ONCE) };
        Arc::new(Self { db, reader, turns, most, state: Mutex::default() })
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
        self.add(Asked { user, found: sender, has_begun: Arc::clone(&has_begun), runtime: Handle::current() })?;
        self.begin();
        let answer = match tokio::time::timeout(self.turns.max_wait(), &mut found).await {
            Err(_) if has_begun.load(Ordering::Acquire) => tokio::time::timeout(MAX_READ, found).await,
            answer => answer,
        };
        answer.ok().and_then(Result::ok).unwrap_or_else(|| Err(Arc::new(overloaded())))
    }

    fn add(&self, asked: Asked) -> Result<(), Arc<Error>> {
        let mut state = self.state();
        // All wait for the same time, so the oldest time out first.
        while state.waiting.len() >= MAX_WAITING && state.waiting.front().is_some_and(|first| first.found.is_closed()) {
            state.waiting.pop_front();
        }
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
        let Some(asked) = self.state().next(self.most) else { return };
        let Some(runtime) = asked.first().map(|first| first.runtime.clone()) else { return };
        let running = Running { reads: Arc::clone(self), counts: true };
        runtime.spawn(running.run(asked));
    }

    async fn serve(&self, asked: Vec<Asked>) {
        let mut users: Vec<_> = asked.iter().map(|asked| asked.user).collect();
        users.sort_unstable();
        users.dedup();
        let all = self.ask_all(&users).await;
        for Asked { user, found, .. } in asked {
            let one = users.binary_search(&user).ok().and_then(|at| all.get(at)).cloned();
            // Its client may have disconnected.
            let _gone = found.send(one.unwrap_or_else(|| Err(Arc::new(overloaded()))));
        }
    }

    /// In the order of the users. What may have failed because of one of them is tried again with each of
    /// them alone.
    async fn ask_all(&self, users: &[UserId]) -> Vec<Found> {
        match self.ask(users).await {
            Ok(all) => all.into_iter().map(Ok).collect(),
            Err(error) if users.len() > 1 && may_be_of_one(&error) => {
                tracing::warn!("the database refused to read several users at once: reading each alone");
                let alone = async |user: &UserId| {
                    let mut found = self.ask(std::slice::from_ref(user)).await.map_err(Arc::new)?;
                    found.pop().ok_or_else(|| Arc::new(overloaded()))
                };
                join_all(users.iter().map(alone)).await
            }
            Err(error) => vec![Err(Arc::new(error)); users.len()],
        }
    }

    /// Reads these users (without repeats) in one statement, in their order.
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away or refuses.
    pub(super) async fn ask(&self, users: &[UserId]) -> Result<Vec<(bool, Arc<ReadEntry>)>, Error> {
        let _turn = self.turns.take().await?;
        let read = in_time(self.reader.read(&self.db, users)).await?;
        metrics::counter!("headmark_summary_sql_reads_total").increment(u64::try_from(users.len()).unwrap_or_default());
        metrics::counter!("headmark_summary_sql_statements_total").increment(1);
        Ok(read.into_iter().map(|rows| (rows.complete, Arc::new(ReadEntry::from(rows.entry)))).collect())
    }
}

/// Whether the database has refused this, and may do others.
fn may_be_of_one(error: &Error) -> bool {
    let Error::Fault(Fault::Db(error)) = error else { return false };
    !matches!(classify(error), ErrorClass::Unknown | ErrorClass::Outage)
}
