//! A step of a removal, as a feature brings it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Fault, Result};
use crate::base::ids::UserId;
use crate::cache::Cache;
use crate::db::{Column, Db, Statement, in_time};
use crate::engine::events::Publisher;
use crate::engine::lanes::{Command, Job, Lanes};

/// How far a step is: its own to say. It begins at the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub id: i64,
    pub seq: i64,
    pub name: String,
}

impl Place {
    /// After this id.
    #[must_use]
    pub fn id(id: i64) -> Self {
        Self { id, ..Self::default() }
    }

    /// After this id and number.
    #[must_use]
    pub fn of(id: i64, seq: i64) -> Self {
        Self { id, seq, ..Self::default() }
    }
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is left: the next step begins.
    Done,
    /// There may be more.
    More(Place),
    /// There is more, but not at once: something must pass first, which is over at this time. The step may be asked
    /// earlier.
    Later(Place, UnixMs),
}

impl Progress {
    /// A batch that found so many rows, of which a full one has `most`. Those that it found are gone,
    /// so the next one begins at the same place.
    #[must_use]
    pub fn after(found: usize, most: i64) -> Self {
        let is_full = i64::try_from(found).unwrap_or(i64::MAX) >= most;
        if is_full { Self::More(Place::default()) } else { Self::Done }
    }
}

/// What steps work with.
#[derive(Debug)]
pub struct Engines {
    pub db: Db,
    pub lanes: Lanes,
    pub cache: Arc<Cache>,
    pub events: Arc<Publisher>,
    pub clock: Clock,
}

impl Engines {
    /// Has a lane do this.
    ///
    /// # Errors
    /// What the lane answers.
    pub async fn submit(&self, command: impl Command + 'static) -> Result<()> {
        self.lanes.submit(Job { command: Arc::new(command), key: None }).await.map(|_| ())
    }
}

type Batch = dyn Fn(Arc<Engines>, i64, Place) -> BoxFuture<'static, Result<Progress>> + Send + Sync;

/// A step of a removal.
pub struct Step {
    /// Rows of `removals` have it, so it stays for ever.
    pub name: &'static str,
    /// The tables of which it removes or changes all rows that name what is removed.
    pub tables: &'static [&'static str],
    batch: Box<Batch>,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("name", &self.name).field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl Step {
    /// A step whose batches are done by this: for what is removed, by its id, from a place on. A batch
    /// is bounded, and may be done twice.
    pub fn new<F>(
        name: &'static str,
        tables: &'static [&'static str],
        batch: impl Fn(Arc<Engines>, i64, Place) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Progress>> + Send + 'static,
    {
        Self { name, tables, batch: Box::new(move |engines, subject, place| Box::pin(batch(engines, subject, place))) }
    }

    /// Does one batch.
    ///
    /// # Errors
    /// Those of the stores. Then it is tried again.
    pub async fn batch(&self, engines: Arc<Engines>, subject: i64, place: Place) -> Result<Progress> {
        (self.batch)(engines, subject, place).await
    }
}

/// The user that a removal is about.
///
/// # Errors
/// A fault where it is no user, which is a bug.
pub fn user_of(subject: i64) -> Result<UserId> {
    UserId::try_from(subject).map_err(|rule| Fault::Bug(format!("a removal of user {subject}: {rule}")).into())
}

/// A step that removes rows which belong to what is removed, by statements over its id alone. Nobody
/// else writes them any more, so no lane is needed, and there are few enough for one statement.
#[must_use]
pub fn delete_own(name: &'static str, tables: &'static [&'static str], statements: &'static [Statement]) -> Step {
    Step::new(name, tables, move |engines, subject, _| async move {
        for statement in statements {
            in_time(engines.db.run(statement, &[Column::Int(vec![subject])])).await?;
        }
        Ok(Progress::Done)
    })
}

/// How many rows [`delete_pages`] removes at once.
const OWN_ROWS: i64 = 1000;

/// The same where they may be many: each statement removes some, and takes how many that is at most.
#[must_use]
pub fn delete_pages(name: &'static str, tables: &'static [&'static str], statements: &'static [Statement]) -> Step {
    Step::new(name, tables, move |engines, subject, _| async move {
        let mut removed = 0;
        for statement in statements {
            let columns = [subject, OWN_ROWS].map(|value| Column::Int(vec![value]));
            removed += in_time(engines.db.run(statement, &columns)).await?;
        }
        Ok(if removed > 0 { Progress::More(Place::default()) } else { Progress::Done })
    })
}
