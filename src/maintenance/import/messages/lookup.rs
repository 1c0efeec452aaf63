//! What the reader of a log asks the database, through outages as short as a lane bears.

use std::time::Instant;

use tokio::runtime::Handle;

use crate::db::{Db, DbResult, classify, said};
use crate::maintenance::import::{MAX_OUTAGE, PAUSE};

/// Asks from a thread of its own.
pub(super) struct Lookup {
    db: Db,
    runtime: Handle,
    /// Why the database did not answer.
    failed: Option<String>,
}

impl Lookup {
    pub(super) fn new(db: Db, runtime: Handle) -> Self {
        Self { db, runtime, failed: None }
    }

    /// # Errors
    /// A sentence, which [`Lookup::failure`] has too: why there is no answer.
    pub(super) fn ask<T>(&mut self, question: &impl AsyncFn(&Db) -> DbResult<T>) -> Result<T, String> {
        let began = Instant::now();
        let answer = self.runtime.block_on(async {
            loop {
                match question(&self.db).await {
                    Err(error) if classify(&error).may_pass() && began.elapsed() < MAX_OUTAGE => {
                        tracing::warn!(why = said(&error), "a look-up failed; trying again");
                        tokio::time::sleep(PAUSE).await;
                    }
                    answer => break answer,
                }
            }
        });
        answer.map_err(|error| {
            let why = said(&error);
            let why = format!("the database did not answer: {why}; what was imported before stays, and the import may be run again");
            self.failed = Some(why.clone());
            why
        })
    }

    /// Why the database did not answer, once.
    pub(super) fn failure(&mut self) -> Option<String> {
        self.failed.take()
    }
}
