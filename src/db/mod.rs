//! The truth: SQLite or Postgres behind one enum, [`Db`].
//!
//! A statement is a [`Statement`] beside its feature, written once: its parameters are the columns
//! of a small table called `{rows}`, so that every read and write is a bulk read or write. What
//! must differ between the dialects lives in `dialect.rs`; a connection, in `conn.rs`; how several
//! statements share a round trip to Postgres, in `postgres.rs`; how loads that know nothing of each
//! other do so, in `pipeline.rs`.
//!
//! To add a store: constants of [`Statement`] in the feature's `store.rs`, run with [`Db::fetch`] or
//! [`Db::run`], or inside a transaction of a [`Conn`].

mod answer;
mod borrowed;
mod by_owner;
mod cells;
mod column;
mod conn;
mod dialect;
mod distributed;
mod errors;
mod explain;
mod facts;
mod first_answer;
mod folder;
mod index;
mod large_tables;
mod locks;
mod migrate;
mod open;
mod owner_hash;
mod owners;
mod partitions;
mod pipeline;
mod plans;
mod pool;
mod pooler;
mod postgres;
mod replica;
mod sent;
mod shards;
mod sqlite;
mod sqlite_text;
mod unverified;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgRow};
use sqlx::sqlite::SqliteRow;
use sqlx::{Executor, FromRow};

pub use borrowed::Borrowed;
pub use cells::{Cell, Cells};
pub use column::{Column, Type};
pub use conn::Conn;
pub use dialect::{Statement, StatementText};
pub use distributed::Distributed;
pub use errors::{DbResult, ErrorClass, classify, is_duplicate, said};
pub use facts::DbFacts;
pub use folder::SQLITE_FILE;
pub use large_tables::{MAX_PARTITIONS, TABLES, Table};
pub(crate) use locks::NODE_LOCK;
pub use open::StoreConfig;
pub use owners::Owners;
pub use partitions::{Progress, Repartition};
pub use pipeline::Pipeline;
pub use plans::Plans;
pub(crate) use pool::MAX_FIRST_CONNECT;
use pool::Opener;
pub use pool::Pool;
pub use postgres::PgConn;
pub use replica::{PageReads, Replica, ReplicaConfig, ReplicaState, look_at_replica, statements as replica_statements};
pub use shards::Shards;
pub use unverified::unverified;

/// How soon Postgres notices that nobody is at the other end of a connection: after 4 s of silence
/// it asks, three times, every 2 s. (An answer of its own that nobody takes it gives up as soon.)
const WATCHED: [(&str, &str); 4] =
    [("tcp_keepalives_idle", "4"), ("tcp_keepalives_interval", "2"), ("tcp_keepalives_count", "3"), ("tcp_user_timeout", "10000")];

/// How to open a connection that Postgres watches.
fn watched(options: &PgConnectOptions) -> PgConnectOptions {
    options.clone().options(WATCHED)
}

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
        options: PgConnectOptions,
        /// Where the rows are, if the database is distributed.
        shards: Option<Arc<Shards>>,
    },
}

/// How often [`Db::empty_log`] tries, and the pause between two tries.
const LOG_TRIES: u32 = 20;
const LOG_PAUSE: Duration = Duration::from_millis(50);

impl Db {
    /// A connection of one's own.
    ///
    /// # Errors
    /// When the database is out of reach.
    pub async fn connect(&self) -> DbResult<Conn> {
        match self {
            Self::Sqlite { options, .. } => Opener::Sqlite(options.clone()).open().await,
            Self::Postgres { options, shards, .. } => Opener::Postgres(options.clone(), shards.clone()).open().await,
        }
    }

    /// Puts SQLite's log into its file and empties it. Both hold what was deleted until then. It needs a moment in which
    /// nobody reads or writes, and tries some times: whether the log is empty.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn empty_log(&self) -> DbResult<bool> {
        let Self::Sqlite { options, .. } = self else { return Ok(true) };
        let mut conn = Opener::Sqlite(options.clone().busy_timeout(Duration::ZERO)).open().await?;
        for _ in 0..LOG_TRIES {
            if conn.empty_log().await? {
                return Ok(true);
            }
            tokio::time::sleep(LOG_PAUSE).await;
        }
        Ok(false)
    }

    /// A connection of one's own for a command that goes through whole tables: its statements may
    /// take their time.
    ///
    /// # Errors
    /// When the database is out of reach.
    pub async fn connect_patient(&self) -> DbResult<Conn> {
        match self {
            Self::Sqlite { .. } => self.connect().await,
            Self::Postgres { options, shards, .. } => {
                let options = options.clone().options([("statement_timeout", "0")]);
                let mut conn = Opener::Postgres(options, shards.clone()).open().await?;
                conn.be_patient();
                Ok(conn)
            }
        }
    }

    /// A connection of one's own for what a session holds: Postgres notices within some 10 s that
    /// nobody is at its other end, also where it is not told, and then lets go of it. By default that
    /// takes two hours. Over a Unix socket it is always told.
    ///
    /// # Errors
    /// When the database is out of reach.
    pub async fn connect_watched(&self) -> DbResult<Conn> {
        match self {
            Self::Sqlite { .. } => self.connect().await,
            Self::Postgres { options, shards, .. } => Opener::Postgres(watched(options), shards.clone()).open().await,
        }
    }

    /// Reads rows outside any transaction: one statement, one snapshot. Over a connection of the
    /// pool that turns out to be dead, as all are after a restart of Postgres, it is asked again
    /// over a new one.
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
        // A statement that was refused leaves its connection as it was; after any other error
        // nobody knows what is still to come over it.
        if match &outcome {
            Ok(_) => true,
            Err(error) => matches!(error, sqlx::Error::Database(_)) && classify(error) != ErrorClass::Unknown,
        } {
            lent.give_back();
        }
        outcome
    }

    /// Writes outside any transaction: one statement, a rare one. It is not asked again, as it may have been done.
    pub async fn run(&self, statement: &'static Statement, columns: &[Column]) -> DbResult<u64> {
        let mut conn = self.borrow().await?;
        let outcome = conn.run(statement, columns).await;
        conn.give_back_after(&outcome);
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
            Conn::Postgres(conn) => conn.execute("select 1").await,
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

    /// How many reads outside of lanes may run at once.
    #[must_use]
    pub fn read_connections(&self) -> usize {
        self.reads().size()
    }

    /// Whether several processes may share this database.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// Whether its tables are spread over the workers of Citus.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        matches!(self, Self::Postgres { shards: Some(_), .. })
    }

    /// From here on nothing is read over a connection of before: it may be to a server that is no longer the database.
    pub fn renew_connections(&self) {
        self.reads().renew();
    }

    /// How often that happened. Code that keeps a connection of its own opens a new one when this has changed.
    #[must_use]
    pub fn renewals(&self) -> u64 {
        self.reads().generation()
    }

    /// Closes the pool and waits for its connections.
    pub async fn close(&self) {
        self.reads().close().await;
    }
}

/// How long any read may take: a network that swallows everything must not hold a caller for ever.
pub const MAX_READ: Duration = Duration::from_secs(4);

/// What a read finds within [`MAX_READ`].
pub async fn in_time<T>(read: impl Future<Output = DbResult<T>>) -> DbResult<T> {
    tokio::time::timeout(MAX_READ, read).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}
