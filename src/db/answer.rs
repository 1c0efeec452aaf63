//! The time limit for an answer of Postgres. The driver has none: where the way to the database
//! swallows everything, as after a failover without a word, it waits for ever.
//!
//! Postgres ends each statement at its own limit (`statement_timeout`). So where there is no answer well
//! after that, there will be none, and the connection is lost.

use std::io::{Error as IoError, ErrorKind};
use std::time::Duration;

use super::errors::DbResult;

/// How long the answer to a statement may take: longer than Postgres executes any, which is 4 s at most
/// (`HEADMARK_STATEMENT_TIMEOUT_MS`).
const MAX_ANSWER: Duration = Duration::from_secs(6);

/// Whether a connection still answers.
#[derive(Debug)]
pub(super) struct Answers {
    /// The limit for each statement. None where they may take as long as they like, as those of commands that
    /// go through whole tables.
    limit: Option<Duration>,
    /// Whether an answer did not come. Nobody knows what is still to come over such a connection.
    is_lost: bool,
}

impl Default for Answers {
    fn default() -> Self {
        Self { limit: Some(MAX_ANSWER), is_lost: false }
    }
}

impl Answers {
    /// From now on there is no limit.
    pub(super) fn be_patient(&mut self) {
        self.limit = None;
    }

    /// What comes back of so many statements.
    ///
    /// # Errors
    /// Where no answer comes in time, and then for everything after it: one of a lost connection, which leaves the
    /// outcome of a write unknown ([`ErrorClass::Unknown`](super::ErrorClass::Unknown)).
    pub(super) async fn of<T>(&mut self, statements: u32, answer: impl Future<Output = DbResult<T>>) -> DbResult<T> {
        if self.is_lost {
            return Err(lost());
        }
        let Some(limit) = self.limit else { return answer.await };
        // Each statement of a text has the whole limit of Postgres.
        let Ok(answer) = tokio::time::timeout(limit.saturating_mul(statements.max(1)), answer).await else {
            self.is_lost = true;
            tracing::warn!("a connection to the database gives no answer; it is closed");
            return Err(lost());
        };
        answer
    }
}

fn lost() -> sqlx::Error {
    sqlx::Error::Io(IoError::new(ErrorKind::TimedOut, "the database gives no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{ErrorClass, classify};

    const LIMIT: Duration = Duration::from_millis(200);

    async fn late() -> DbResult<u32> {
        tokio::time::sleep(LIMIT * 3 / 2).await;
        Ok(1)
    }

    #[tokio::test]
    async fn a_connection_that_gives_no_answer_is_lost() {
        let mut answers = Answers { limit: Some(LIMIT), ..Answers::default() };
        assert_eq!(answers.of(2, late()).await.unwrap(), 1, "two statements take as long as two");
        assert_eq!(classify(&answers.of(1, late()).await.unwrap_err()), ErrorClass::Unknown);
        assert!(answers.of(1, async { Ok(()) }).await.is_err(), "what comes now may be the answer to another question");
        let mut patient = Answers { limit: Some(LIMIT), ..Answers::default() };
        patient.be_patient();
        assert_eq!(patient.of(1, late()).await.unwrap(), 1);
    }
}
