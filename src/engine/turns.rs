//! How many statements of polls read the database at once: those beyond wait for a turn, and not for long.

use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::base::error::{Code, Error, Problem};

/// The turns of this node's polls to read the database.
#[derive(Debug)]
pub struct Turns {
    turns: Semaphore,
    /// Of these, those that lists and look-ups may have.
    lists: Semaphore,
    wait: Duration,
}

/// The turn of a list, which lasts until this is dropped.
#[derive(Debug)]
pub struct ListTurn<'a> {
    _of_all: SemaphorePermit<'a>,
    _of_lists: SemaphorePermit<'a>,
}

impl Turns {
    /// So many at once; the others wait for so long. Lists and look-ups may have half of them.
    #[must_use]
    pub fn new(turns: u32, wait: Duration) -> Self {
        let places = |turns: u32| Semaphore::new(usize::try_from(turns).unwrap_or(usize::MAX));
        Self { turns: places(turns), lists: places((turns / 2).max(1)), wait }
    }

    /// Waits for a turn, which lasts until what is returned is dropped.
    ///
    /// # Errors
    /// 503 where none came in time.
    pub async fn take(&self) -> Result<SemaphorePermit<'_>, Error> {
        at_latest(Instant::now() + self.wait, self.turns.acquire()).await
    }

    /// The same for what is no poll of a user's own numbers, such as a list: however many of these come, half of
    /// the turns are left to polls.
    ///
    /// # Errors
    /// 503 where none came in time.
    pub async fn take_for_list(&self) -> Result<ListTurn<'_>, Error> {
        let give_up = Instant::now() + self.wait;
        let of_lists = at_latest(give_up, self.lists.acquire()).await?;
        Ok(ListTurn { _of_all: at_latest(give_up, self.turns.acquire()).await?, _of_lists: of_lists })
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

/// What is said where no turn came in time.
#[must_use]
pub fn overloaded() -> Error {
    Problem::new(Code::Overloaded, "Too many polls are reading the database. Try again shortly.").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lists_leave_half_of_the_turns_to_polls() {
        let turns = Turns::new(4, Duration::from_millis(10));
        let lists = (turns.take_for_list().await.unwrap(), turns.take_for_list().await.unwrap());
        assert!(turns.take_for_list().await.is_err());
        let polls = (turns.take().await.unwrap(), turns.take().await.unwrap());
        assert!(turns.take().await.is_err());
        drop(lists.0);
        assert!(turns.take_for_list().await.is_ok());
        assert!(turns.take().await.is_ok());
        drop((lists.1, polls));
        let turns = Turns::new(1, Duration::from_millis(10));
        assert!(turns.take_for_list().await.is_ok(), "one of one");
    }
}
