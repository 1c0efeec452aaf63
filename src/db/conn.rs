//! A connection: transactions, reads and writes.

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Executor, FromRow, SqliteConnection};

use super::column::Column;
use super::dialect::{self, Statement};
use super::errors::DbResult;
use super::postgres::{Done, PgConn, Wanted};
use super::sent::sent;
use super::sqlite;

/// A connection of its own, for one lane or one lock. Dropping it closes it.
#[derive(Debug)]
pub enum Conn {
    /// To the SQLite file.
    Sqlite(Box<SqliteConnection>),
    /// To Postgres.
    Postgres(Box<PgConn>),
}

impl Conn {
    /// Begins a transaction. On SQLite it takes the write lock at once; on Postgres it goes with
    /// the first statement.
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

    /// Commits, after whatever [`Conn::later`] has put off. Only an error of
    /// [`ErrorClass::Unknown`](super::ErrorClass::Unknown) leaves the outcome unknown: with any
    /// other one the database itself said no.
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
    pub async fn set_lock_timeout(&mut self, wait: Duration) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => conn.set_lock_timeout(wait).await,
        }
    }

    /// Forgets how statements are executed, so that each is planned again for what the tables hold
    /// now. SQLite plans by its schema alone.
    pub async fn forget_plans(&mut self) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => conn.execute("discard plans").await,
        }
    }

    /// The bytes of a page of SQLite's file; 0 on Postgres.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) async fn page_bytes(&mut self) -> DbResult<i64> {
        let Self::Sqlite(conn) = self else { return Ok(0) };
        let (bytes,): (i64,) = sqlx::query_as("pragma page_size").fetch_one(conn.as_mut()).await?;
        Ok(bytes)
    }

    /// Puts SQLite's log into its file where so many bytes of pages are not there yet, outside of a
    /// transaction, and says how many it put there. Readers go on meanwhile; what they still need stays
    /// in the log.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn shorten_log(&mut self, bytes: i64) -> DbResult<i64> {
        let page = self.page_bytes().await?;
        let Self::Sqlite(conn) = self else { return Ok(0) };
        let (_, log, before): (i64, i64, i64) = sqlx::query_as("pragma wal_checkpoint(noop)").fetch_one(conn.as_mut()).await?;
        if (log - before) * page < bytes {
            return Ok(0);
        }
        let (_, _, after): (i64, i64, i64) = sqlx::query_as("pragma wal_checkpoint(passive)").fetch_one(conn.as_mut()).await?;
        Ok((after - before) * page)
    }

    /// Puts SQLite's log into its file and empties it, unless somebody reads or writes meanwhile: whether it is empty.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) async fn empty_log(&mut self) -> DbResult<bool> {
        let Self::Sqlite(conn) = self else { return Ok(true) };
        // Writers go on beside this. So the other one, for which they wait, is short.
        sqlx::query("pragma wal_checkpoint(passive)").execute(conn.as_mut()).await?;
        let (busy, _, _): (i64, i64, i64) = sqlx::query_as("pragma wal_checkpoint(truncate)").fetch_one(conn.as_mut()).await?;
        Ok(busy == 0)
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
            Self::Sqlite(conn) => sqlite::query_as(statement, columns)?.fetch_all(conn.as_mut()).await,
            Self::Postgres(conn) => {
                if let Some((conn, answers)) = conn.at_once() {
                    return answers.of(1, dialect::postgres_query_as(statement, columns)?.fetch_all(conn)).await;
                }
                conn.add(statement, columns, Wanted::Rows);
                from_rows(conn.send().await?.pop())
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
            Self::Sqlite(conn) => Ok(sqlite::query(statement, columns)?.execute(conn.as_mut()).await?.rows_affected()),
            Self::Postgres(conn) => {
                if let Some((conn, answers)) = conn.at_once() {
                    return Ok(answers.of(1, dialect::postgres_query(statement, columns)?.execute(conn)).await?.rows_affected());
                }
                conn.add(statement, columns, Wanted::Rows);
                Ok(conn.send().await?.pop().unwrap_or_default().affected)
            }
        }
    }

    /// Writes rows in a transaction, or takes locks, where nothing needs to be known of it at once:
    /// on Postgres it goes together with the next statement that is waited for, which may be the
    /// commit, in one round trip. An error shows there.
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

    /// The same for a statement that must affect as many rows as it is given, or find them: if it
    /// does not, the next statement that is awaited fails with [`sqlx::Error::RowNotFound`], and
    /// nothing is committed.
    pub async fn later_all(&mut self, statement: &'static Statement, columns: &[Column]) -> DbResult<()> {
        let rows = u64::try_from(columns.first().map_or(0, Column::len)).unwrap_or(u64::MAX);
        match self {
            Self::Sqlite(conn) => {
                sent(1);
                match sqlite::count(conn, statement, columns).await? {
                    count if count == rows => Ok(()),
                    _ => Err(sqlx::Error::RowNotFound),
                }
            }
            Self::Postgres(conn) => {
                sent(1);
                conn.add(statement, columns, Wanted::All(rows));
                Ok(())
            }
        }
    }

    /// Sends what [`Conn::later`] has put off, and waits until it is done.
    ///
    /// # Errors
    /// The driver's own, for a statement that was put off until now.
    pub async fn send(&mut self) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => conn.sent().await.map(|_| ()),
        }
    }

    /// Sends what [`Conn::later`] has put off where it is much: so the time for it is that of the work, not
    /// of the commit, whose outcome would be unknown after it.
    ///
    /// # Errors
    /// The driver's own, for a statement that was put off until now.
    pub async fn send_much(&mut self) -> DbResult<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => conn.send_much().await,
        }
    }

    /// Has its statements take as long as they like: Postgres is told so by how the connection is opened.
    pub(super) fn be_patient(&mut self) {
        if let Self::Postgres(conn) = self {
            conn.be_patient();
        }
    }

    /// Whether row locks are needed: on SQLite the one writer has them all.
    #[must_use]
    pub fn locks_rows(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Whether rows of a transaction may be in several databases.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        matches!(self, Self::Postgres(conn) if conn.is_distributed())
    }

    /// Brings commits to their end that the coordinator of a distributed database decided and did not
    /// tell all workers of, as when it died in between. Outside of a transaction.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn finish_commits(&mut self) -> DbResult<()> {
        match self {
            Self::Postgres(conn) if conn.is_distributed() => conn.execute("select recover_prepared_transactions()").await,
            _ => Ok(()),
        }
    }

    /// Whether the connection still works.
    ///
    /// # Errors
    /// The driver's own, when it does not.
    pub async fn ping(&mut self) -> DbResult<()> {
        match self {
            Self::Sqlite(conn) => conn.ping().await,
            Self::Postgres(conn) => conn.ping().await,
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

fn from_rows<T: for<'r> FromRow<'r, PgRow>>(done: Option<Done>) -> DbResult<Vec<T>> {
    done.unwrap_or_default().rows.iter().map(T::from_row).collect()
}
