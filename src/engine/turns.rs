//! How many statements of polls read the database at once: those beyond wait for a turn, and not for long.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::base::error::{Code, Error, Problem};

/// The turns of this node's polls to read the database.
#[derive(Debug)]
pub struct Turns {
    turns: Semaphore,
    wait: Duration,
}

impl Turns {
    /// So many at once; the others wait for so long.
    #[must_use]
    pub fn new(turns: u32, wait: Duration) -> Self {
        Self { turns: Semaphore::new(usize::try_from(turns).unwrap_or(usize::MAX)), wait }
    }

    /// Waits for a turn, which lasts until what is returned is dropped.
    ///
    /// # Errors
    /// 503 where none came in time.
    pub async fn take(&self) -> Result<SemaphorePermit<'_>, Error> {
        match tokio::time::timeout(self.wait, self.turns.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(overloaded()),
        }
    }

    /// How long one waits for a turn at most.
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        self.wait
    }
}

/// What is said where no turn came in time.
#[must_use]
pub fn overloaded() -> Error {
    Problem::new(Code::Overloaded, "Too many polls are reading the database. Try again shortly.").into()
}
