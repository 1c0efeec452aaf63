//! The truth: SQLite or Postgres behind one enum, [`Db`].
//!
//! A statement is a [`Statement`] beside its feature, written once: its parameters are the columns of a small table called `{rows}`, so
//! that every read and write is a bulk read or write. What must differ between the dialects lives in `dialect.rs`; how several statements
//! share a round trip to Postgres, in `postgres.rs`.
//!
//! To add a store: constants of [`Statement`] in the feature's `store.rs`, run with [`Db::fetch`] or inside a transaction of a [`Conn`].

mod dialect;
mod errors;
mod folder;
mod migrate;
mod open;
mod pool;
mod postgres;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection, Executor, FromRow, PgConnection, SqliteConnection};

pub use dialect::{Column, Statement, StatementText, Type};
pub use errors::{ErrorClass, classify};
pub(crate) use open::MAX_FIRST_CONNECT;
pub use open::StoreConfig;
use pool::Opener;
pub use pool::Pool;
pub use postgres::PgConn;
use postgres::{Done, Wanted};

/// What a store function returns: the plain error of the driver, of which [`classify`] says what it means.
pub type DbResult<T> = Result<T, sqlx::Error>;

/// From how many rows on [`Conn::insert`] copies on Postgres: for fewer, the further round trips of a copy take longer than they save.
pub const MIN_COPY_ROWS: usize = 500;

/// Counts what is sent to the database. Taken once, so that a statement costs one atomic addition: the recorder must be installed before the first one.
static SENT: LazyLock<metrics::Counter> = LazyLock::new(|| metrics::counter!("headmark_database_statements_total"));

/// The database of this process, chosen once at start.
#[derive(Debug, Clone)]
pub enum Db {
    /// One file in the data folder, held by this process alone.
    Sqlite {
        /// For reads: several connections (WAL lets them read beside the writer).
        reads: Arc<Pool>,
        /// How to open the one connection that writes.
        options: sqlx::sqlite::SqliteConnectOptions,
    },
    /// Postgres 15 or later.
    Postgres {
        /// For reads and for rare writes; lanes hold connections of their own.
        reads: Arc<Pool>,
        /// How to open a connection of one's own.
        options: sqlx::postgres::PgConnectOptions,
    },
}

/// A connection of its own, for one lane or one lock. Dropping it closes it.
#[derive(Debug)]
pub enum Conn {
    /// To the SQLite file.
    Sqlite(Box<SqliteConnection>),
    /// To Postgres.
    Postgres(Box<PgConn>),
}

impl Db {
    /// A connection of one's own.
    ///
    /// # Errors
    /// When the database is out of reach.
    pub async fn connect(&self) -> DbResult<Conn> {
        match self {
            Self::Sqlite { options, .. } => Opener::Sqlite(options.clone()).open().await,
            Self::Postgres { options, .. } => Opener::Postgres(options.clone()).open().await,
        }
    }

    /// A connection of one's own for a command that goes through whole tables: its statements may take their time.
    ///
    /// # Errors
    /// When the database is out of reach.
    pub async fn connect_patient(&self) -> DbResult<Conn> {
        match self {
            Self::Sqlite { .. } => self.connect().await,
            Self::Postgres { options, .. } => {
                let options = options.clone().options([("statement_timeout", "0")]);
                Ok(Conn::Postgres(Box::new(PgConn::new(PgConnection::connect_with(&options).await?))))
            }
        }
    }

    /// Reads rows outside any transaction: one statement, one snapshot. Over a connection of the pool that turns out to be dead, as all are after a
    /// restart of Postgres, it is asked again over a new one.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn fetch<T>(&self, statement: &'static Statement, columns: &[Column]) -> DbResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        match self.fetch_pooled(statement, columns).await {
            Err(error) if classify(&error) == ErrorClass::Unknown => self.connect().await?.fetch(statement, columns).await,
            outcome => outcome,
        }
    }

    async fn fetch_pooled<T>(&self, statement: &'static Statement, columns: &[Column]) -> DbResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let mut lent = self.reads().acquire().await?;
        let outcome = lent.conn.fetch(statement, columns).await;
        // A statement that was refused leaves its connection as it was; after any other error nobody knows what is still to come over it.
        if match &outcome {
            Ok(_) => true,
            Err(error) => matches!(error, sqlx::Error::Database(_)) && classify(error) != ErrorClass::Unknown,
        } {
            lent.give_back();
        }
        outcome
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// The driver's own, when it does not.
    pub async fn ping(&self) -> DbResult<()> {
        let mut lent = self.reads().acquire().await?;
        let outcome = match &mut lent.conn {
            Conn::Sqlite(conn) => conn.execute("select 1").await.map(|_| ()),
            Conn::Postgres(conn) => conn.sent().await?.execute("select 1").await.map(|_| ()),
        };
        if outcome.is_ok() {
            lent.give_back();
        }
        outcome
    }

    fn reads(&self) -> &Arc<Pool> {
        match self {
            Self::Sqlite { reads, .. } | Self::Postgres { reads, .. } => reads,
        }
    }

    /// Whether several processes may share this database.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// Closes the pool and waits for its connections.
    pub async fn close(&self) {
        self.reads().close().await;
    }
}

impl Conn {
    /// Begins a transaction. On SQLite it takes the write lock at once; on Postgres it goes with the first statement.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn begin(&mut self) -> DbResult<()> {
        sent(1);
        match self {
            Self::Sqlite(conn) => conn.execute("begin immediate").await.map(|_| ()),
            Self::Postgres(conn) => {
                conn.begin();
                Ok(())
            }
        }
    }

    /// Commits, after whatever [`Conn::later`] has put off. Only an error of [`ErrorClass::Unknown`]
    /// leaves the outcome unknown: with any other one the database itself said no.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn commit(&mut self) -> DbResult<()> {
        sent(1);
        match self {
            Self::Sqlite(conn) => conn.execute("commit").await.map(|_| ()),
            Self::Postgres(conn) => conn.commit().await,
        }
    }

    /// Undoes the open transaction.
    ///
    /// # Errors
    /// The driver's own; then the connection should be dropped, which undoes it too.
    pub async fn rollback(&mut self) -> DbResult<()> {
        sent(1);
        match self {
            Self::Sqlite(conn) => conn.execute("rollback").await.map(|_| ()),
            Self::Postgres(conn) => conn.rollback().await,
        }
    }

    /// Sets how long a statement waits for a lock. SQLite has one lock for all, and its own wait.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn set_lock_timeout(&mut self, wait: Duration) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => {
                let text = format!("set lock_timeout = {}", wait.as_millis());
                conn.sent().await?.execute(AssertSqlSafe(text)).await.map(|_| ())
            }
        }
    }

    /// Forgets how statements are executed, so that each is planned anew for what the tables hold now. SQLite plans by its schema alone.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn forget_plans(&mut self) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => conn.sent().await?.execute("discard plans").await.map(|_| ()),
        }
    }

    /// Reads rows.
    ///
    /// # Errors
    /// The driver's own, for this or for a statement that was put off until now.
    pub async fn fetch<T>(&mut self, statement: &'static Statement, columns: &[Column]) -> DbResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        sent(1);
        match self {
            Self::Sqlite(conn) => dialect::sqlite_query_as(statement, columns)?.fetch_all(conn.as_mut()).await,
            Self::Postgres(conn) => {
                if let Some(conn) = conn.at_once() {
                    return dialect::postgres_query_as(statement, columns)?.fetch_all(conn).await;
                }
                conn.add(statement, columns, Wanted::Rows);
                from_rows(conn.send().await?.pop())
            }
        }
    }

    /// Reads rows with two statements, one after the other, on Postgres in one round trip.
    ///
    /// # Errors
    /// The driver's own, for these or for a statement that was put off until now.
    pub async fn fetch_both<A, B>(
        &mut self,
        first: (&'static Statement, &[Column]),
        second: (&'static Statement, &[Column]),
    ) -> DbResult<(Vec<A>, Vec<B>)>
    where
        A: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
        B: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        match self {
            Self::Sqlite(_) => Ok((self.fetch(first.0, first.1).await?, self.fetch(second.0, second.1).await?)),
            Self::Postgres(conn) => {
                sent(2);
                conn.add(first.0, first.1, Wanted::Rows);
                conn.add(second.0, second.1, Wanted::Rows);
                let mut done = conn.send().await?;
                let second = from_rows(done.pop())?;
                Ok((from_rows(done.pop())?, second))
            }
        }
    }

    /// Writes rows; returns how many were affected.
    ///
    /// # Errors
    /// The driver's own, for this or for a statement that was put off until now.
    pub async fn run(&mut self, statement: &'static Statement, columns: &[Column]) -> DbResult<u64> {
        sent(1);
        match self {
            Self::Sqlite(conn) => Ok(dialect::sqlite_query(statement, columns)?.execute(conn.as_mut()).await?.rows_affected()),
            Self::Postgres(conn) => {
                if let Some(conn) = conn.at_once() {
                    return Ok(dialect::postgres_query(statement, columns)?.execute(conn).await?.rows_affected());
                }
                conn.add(statement, columns, Wanted::Rows);
                Ok(conn.send().await?.pop().unwrap_or_default().affected)
            }
        }
    }

    /// Writes rows in a transaction, or takes locks, where nothing needs to be known of it at once: on Postgres it goes together with the next statement that
    /// is waited for, which may be the commit, in one round trip. An error shows there.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn later(&mut self, statement: &'static Statement, columns: &[Column]) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => self.run(statement, columns).await.map(|_| ()),
            Self::Postgres(conn) => {
                sent(1);
                conn.add(statement, columns, Wanted::Nothing);
                Ok(())
            }
        }
    }

    /// The same for a statement that must affect one row: if it does not, whatever is waited for next fails with [`sqlx::Error::RowNotFound`], and
    /// nothing is committed.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn later_one(&mut self, statement: &'static Statement, columns: &[Column]) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => match self.run(statement, columns).await? {
                1 => Ok(()),
                _ => Err(sqlx::Error::RowNotFound),
            },
            Self::Postgres(conn) => {
                sent(1);
                conn.add(statement, columns, Wanted::One);
                Ok(())
            }
        }
    }

    /// Writes new rows in a transaction, of which none may be there yet: as [`Conn::later`] does, or where they are many by `copy` on Postgres.
    ///
    /// # Errors
    /// The driver's own, for this or for a statement that was put off until now.
    pub async fn insert(&mut self, statement: &'static Statement, columns: &[Column]) -> DbResult<()> {
        let rows = columns.first().map_or(0, Column::len);
        match (self, statement.copy()) {
            (Self::Postgres(conn), Some(copy)) if rows >= MIN_COPY_ROWS => {
                sent(1);
                let bytes = dialect::copy_rows(columns).map_err(sqlx::Error::Encode)?;
                let mut stream = conn.sent().await?.copy_in_raw(copy).await?;
                stream.send(bytes).await?;
                stream.finish().await.map(|_| ())
            }
            (this, _) => this.later(statement, columns).await,
        }
    }

    /// Whether row locks are needed: on SQLite the one writer has them all.
    #[must_use]
    pub fn locks_rows(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Whether the connection still works.
    ///
    /// # Errors
    /// The driver's own, when it does not.
    pub async fn ping(&mut self) -> DbResult<()> {
        match self {
            Self::Sqlite(conn) => conn.ping().await,
            Self::Postgres(conn) => conn.sent().await?.ping().await,
        }
    }

    /// Tells the other end that this is over. What fails of it would have been closed anyway.
    pub(crate) async fn close(self) {
        let _closed = match self {
            Self::Sqlite(conn) => conn.close().await,
            Self::Postgres(conn) => conn.close().await,
        };
    }
}

/// So many statements are sent.
fn sent(statements: u64) {
    SENT.increment(statements);
}

fn from_rows<T: for<'r> FromRow<'r, PgRow>>(done: Option<Done>) -> DbResult<Vec<T>> {
    done.unwrap_or_default().rows.iter().map(T::from_row).collect()
}
