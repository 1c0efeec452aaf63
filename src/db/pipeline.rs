//! Statements of several loads in one round trip.
//!
//! Loads are futures over one [`Pipeline`], joined in the order in which their statements are to be
//! executed. Each goes on until it waits for rows. When all of them wait, what they asked for is
//! sent together, in the order in which it was asked for. So a load is written as if it were alone,
//! and there are as many round trips as the longest chain of statements that need each other's rows.
//!
//! On SQLite the statements are executed one after the other, in the same order.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use tokio::sync::oneshot;

use super::column::Column;
use super::conn::Conn;
use super::dialect::Statement;
use super::errors::DbResult;
use super::postgres::Wanted;
use super::sent::sent;
use super::sqlite;

/// What was asked for and not sent yet.
#[derive(Debug, Default)]
pub struct Pipeline(Mutex<Vec<Asked>>);

/// A statement that is to be sent.
#[derive(Debug)]
struct Asked {
    statement: &'static Statement,
    columns: Vec<Column>,
    /// Who waits for its rows, if anybody does.
    answer: Option<oneshot::Sender<Found>>,
}

impl Pipeline {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        // Every change is made in one step, so a poisoned lock guards whole data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads rows, or locks them, together with what others ask for.
    ///
    /// # Errors
    /// A row that is not what it should be. Where a statement fails, no load goes on.
    pub async fn fetch<T>(&self, statement: &'static Statement, columns: impl Into<Vec<Column>>) -> DbResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>,
    {
        let (answer, answered) = oneshot::channel();
        self.asked().push(Asked { statement, columns: columns.into(), answer: Some(answer) });
        answered.await.map_err(|_| sqlx::Error::WorkerCrashed)?.decode()
    }

    /// Writes rows, where nothing needs to be known of it: see [`Conn::later`].
    pub fn later(&self, statement: &'static Statement, columns: impl Into<Vec<Column>>) {
        self.asked().push(Asked { statement, columns: columns.into(), answer: None });
    }

    /// Brings loads over this pipeline to their end, in a transaction of this connection. They may
    /// wait for nothing else.
    ///
    /// # Errors
    /// That of the first statement that failed; none after it was executed.
    pub async fn run<T>(&self, conn: &mut Conn, loads: impl Future<Output = DbResult<T>>) -> DbResult<T> {
        let mut loads = pin!(loads);
        loop {
            let polled = poll_fn(|context| Poll::Ready(loads.as_mut().poll(context))).await;
            let asked = std::mem::take(&mut *self.asked());
            match polled {
                Poll::Ready(loaded) => {
                    // What nobody waits for goes with what comes next.
                    send(conn, asked).await?;
                    return loaded;
                }
                // The scheduler wants this task to pause.
                Poll::Pending if asked.is_empty() => tokio::task::yield_now().await,
                Poll::Pending => send(conn, asked).await?,
            }
        }
    }
}

/// The rows of a statement.
#[derive(Debug)]
enum Found {
    Sqlite(Vec<SqliteRow>),
    Postgres(Vec<PgRow>),
}

impl Found {
    fn decode<T>(self) -> DbResult<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>,
    {
        match self {
            Self::Sqlite(rows) => rows.iter().map(T::from_row).collect(),
            Self::Postgres(rows) => rows.iter().map(T::from_row).collect(),
        }
    }
}

/// Sends these statements, on Postgres in one round trip, and hands the rows to those who wait.
/// Where nobody waits for any, they are put off.
async fn send(conn: &mut Conn, asked: Vec<Asked>) -> DbResult<()> {
    let mut waiting = Vec::new();
    for Asked { statement, columns, answer } in asked {
        let Some(answer) = answer else {
            conn.later(statement, &columns).await?;
            continue;
        };
        sent(1);
        match conn {
            Conn::Sqlite(conn) => {
                let rows = sqlite::query(statement, &columns)?.fetch_all(conn.as_mut()).await?;
                // A load that is given up waits no more.
                let _ = answer.send(Found::Sqlite(rows));
            }
            Conn::Postgres(conn) => {
                conn.add(statement, &columns, Wanted::Rows);
                waiting.push(answer);
            }
        }
    }
    if let Conn::Postgres(conn) = conn
        && !waiting.is_empty()
    {
        for (answer, done) in waiting.into_iter().zip(conn.send().await?) {
            let _ = answer.send(Found::Postgres(done.rows));
        }
    }
    Ok(())
}
