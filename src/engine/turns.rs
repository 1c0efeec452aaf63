//! How many statements of polls read the database at once: those beyond wait for a turn, and not for long.

use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::own_turns::OwnTurns;
use crate::base::error::{Code, Error, Problem};
use crate::base::ids::UserId;
use crate::db::{DbResult, in_time};

/// The turns of this node's polls to read the database.
#[derive(Debug)]
pub struct Turns {
    turns: Semaphore,
    /// Of these, those that lists and look-ups may have.
    lists: Semaphore,
    /// Each user's own turn for reads that take long.
    own: OwnTurns,
    wait: Duration,
}

impl Turns {
    /// So many at once; the others wait for so long. Lists and look-ups may have half of them, and no more than half of
    /// the connections: one that has a turn may still wait for a connection, and so would all polls, and the looks at
    /// heads that tell whether polls are current.
    #[must_use]
    pub fn new(turns: u32, connections: usize, wait: Duration) -> Self {
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let lists = (turns.min(connections) / 2).max(1);
        Self { turns: Semaphore::new(turns), lists: Semaphore::new(lists), own: OwnTurns::new(1), wait }
    }

    /// Waits for a turn, which lasts until what is returned is dropped.
    ///
    /// # Errors
    /// 503 where none came in time.
    pub async fn take(&self) -> Result<SemaphorePermit<'_>, Error> {
        at_latest(Instant::now() + self.wait, self.turns.acquire()).await
    }

    /// Reads in a turn, and for no longer than any read may take.
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away.
    pub async fn read<T>(&self, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        let _turn = self.take().await?;
        Ok(in_time(read).await?)
    }

    /// The same for what is no poll of a user's own numbers, such as a list: however many of these come, half of
    /// the turns, and of the connections, are left to polls.
    ///
    /// # Errors
    /// When no turn comes in time, or the database is away.
    pub async fn read_list<T>(&self, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        self.read_list_by(Instant::now() + self.wait, read).await
    }

    /// The same for what takes long and what a user may ask for many times at once: of each user one is read after the
    /// other, so that none has all turns of lists.
    ///
    /// # Errors
    /// As above; 429 where another one of the user takes too long.
    pub async fn read_long_list<T>(&self, user: UserId, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        let give_up = Instant::now() + self.wait;
        let _own = self.own.take(user, 1, give_up).await.ok_or_else(busy)?;
        self.read_list_by(give_up, read).await
    }

    async fn read_list_by<T>(&self, give_up: Instant, read: impl Future<Output = DbResult<T>>) -> Result<T, Error> {
        let _of_lists = at_latest(give_up, self.lists.acquire()).await?;
        let _turn = at_latest(give_up, self.turns.acquire()).await?;
        Ok(in_time(read).await?)
    }

    /// How long one waits for a turn at most.
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        self.wait
    }
}

async fn at_latest<'a>(
    give_up: Instant,
    turn: impl Future<Output = Result<SemaphorePermit<'a>, AcquireError>>,
) -> Result<SemaphorePermit<'a>, Error> {
    match tokio::time::timeout_at(give_up, turn).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(overloaded()),
    }
}

fn busy() -> Error {
    Problem::new(Code::RateLimited, "Another such request of this user is under way. Try again when it completes.").into()
}

/// What is said where no turn came in time.
#[must_use]
pub fn overloaded() -> Error {
    Problem::new(Code::Overloaded, "Too many polls are reading the database. Try again shortly.").into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn lists_leave_half_of_the_turns_to_polls() {
        let turns = Arc::new(Turns::new(4, 16, Duration::from_millis(10)));
        let list = async || {
            let (begun, has_begun) = tokio::sync::oneshot::channel();
            let read = async move {
                begun.send(()).unwrap();
                std::future::pending::<DbResult<()>>().await
            };
            let turns = Arc::clone(&turns);
            let reading = tokio::spawn(async move { turns.read_list(read).await }).abort_handle();
            has_begun.await.unwrap();
            reading
        };
        let lists = [list().await, list().await];
        assert!(turns.read_list(async { Ok(()) }).await.is_err());
        let polls = (turns.take().await.unwrap(), turns.take().await.unwrap());
        assert!(turns.take().await.is_err());
        lists[0].abort();
        while turns.read_list(async { Ok(()) }).await.is_err() {}
        assert!(turns.take().await.is_ok());
        drop(polls);
        assert!(Turns::new(1, 16, Duration::from_millis(10)).read_list(async { Ok(()) }).await.is_ok(), "one of one");
    }

    #[tokio::test]
    async fn a_user_has_one_long_read_at_a_time() {
        let turns = Turns::new(8, 16, Duration::from_millis(10));
        let user = |id: i64| UserId::try_from(id).unwrap();
        let outcome = turns.read_long_list(user(1), async {
            let refused = turns.read_long_list(user(1), async { Ok(()) }).await.unwrap_err();
            assert!(matches!(refused, Error::Problem(problem) if problem.code == Code::RateLimited));
            assert!(turns.read_long_list(user(2), async { Ok(()) }).await.is_ok());
            Ok(())
        });
        outcome.await.unwrap();
        assert!(turns.read_long_list(user(1), async { Ok(()) }).await.is_ok(), "the first one is over");
    }

    #[test]
    fn lists_leave_half_of_the_connections_too() {
        for (turns, connections, lists) in [(32, 16, 8), (32, 8, 4), (32, 3, 1), (32, 1, 1), (6, 16, 3), (1, 16, 1)] {
            let found = Turns::new(turns, connections, Duration::ZERO).lists.available_permits();
            assert_eq!(found, lists, "{turns} turns, {connections} connections");
        }
    }
}
