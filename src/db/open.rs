//! Opening the database that the settings name, with every bound that it is to keep.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use secrecy::{ExposeSecret, SecretString};
use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Executor as _, PgConnection};

use super::conn::Conn;
use super::errors::said;
use super::folder::{self, SQLITE_FILE};
use super::large_tables::MAX_PARTITIONS;
use super::plans::Plans;
use super::pool::{MAX_FIRST_CONNECT, Opener, Pool};
use super::pooler;
use super::postgres::PgConn;
use super::{Db, DbResult, Owners, distributed, migrate, partitions};
use crate::base::secret::{path, secret};

/// Which stores, and how hard they may be used.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Stores")]
pub struct StoreConfig {
    /// The folder of the SQLite file. Not used if a database URL is set.
    #[arg(long, env = "HEADMARK_DATA_DIR", default_value = "./headmark-data")]
    pub data_dir: PathBuf,

    /// Postgres (15 or later), as `postgres://user:password@host/database`. Default: SQLite in the
    /// data folder.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_parser = secret)]
    pub database_url: Option<SecretString>,

    /// A file with the value of DATABASE_URL, such as a mounted secret. Set only one of the two.
    #[arg(long, env = "DATABASE_URL_FILE", value_name = "PATH", value_parser = path)]
    pub database_url_file: Option<PathBuf>,

    /// The number of database connections that each node keeps for reads and, from 4 on, for rare writes.
    #[arg(long, env = "HEADMARK_DB_CONNECTIONS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub db_connections: u32,

    /// How much of the SQLite file a connection that writes keeps in memory, in MiB.
    #[arg(long, env = "HEADMARK_SQLITE_CACHE_MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub sqlite_cache_mib: u32,

    /// The time limit for a statement on Postgres, in milliseconds. Must be below the lease of
    /// cache entries.
    #[arg(long, env = "HEADMARK_STATEMENT_TIMEOUT_MS", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(100..=4000))]
    pub statement_timeout_ms: u64,

    /// The number of hash partitions of each large table in a new Postgres database; 1 makes plain
    /// tables. A database with data keeps its number until `headmark migrate --repartition` changes
    /// it.
    #[arg(long, env = "HEADMARK_PARTITIONS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PARTITIONS)))]
    pub partitions: u32,

    /// How Postgres plans statements: `generic` (once, by indexes only), `custom` (at each execution,
    /// for its parameters, as Citus needs it), or `auto`: what the database needs.
    #[arg(long, env = "HEADMARK_PLANS", default_value = "auto", value_enum)]
    pub plans: Plans,

    /// The time limit for acquiring a database connection, in milliseconds.
    #[arg(long, env = "HEADMARK_DB_ACQUIRE_TIMEOUT_MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub db_acquire_timeout_ms: u64,
}

impl StoreConfig {
    /// The SQLite file, which must be there unless Postgres is named.
    pub(crate) fn existing(&self) -> Result<PathBuf, String> {
        let path = self.data_dir.join(SQLITE_FILE);
        if self.database_url.is_none() && !path.exists() {
            return Err(format!("there is no {}; name the folder with --data-dir, or the database with DATABASE_URL", path.display()));
        }
        Ok(path)
    }
}

impl Db {
    /// Opens what the settings name. On SQLite it also takes the data folder's lock, which is held
    /// until the returned file is dropped.
    ///
    /// # Errors
    /// A sentence for the operator: what could not be opened and why.
    pub async fn open(config: &StoreConfig) -> Result<(Self, Option<File>), String> {
        match &config.database_url {
            Some(url) => Ok((open_postgres(config, url).await?, None)),
            None => open_sqlite(config).await.map(|(db, lock)| (db, Some(lock))),
        }
    }

    /// Opens what is there already, for a command that mends it. The schema is taken as it is.
    ///
    /// # Errors
    /// As [`Db::open`]; and where there is no database, as with a folder that was misspelt.
    pub async fn open_existing(config: &StoreConfig) -> Result<(Self, Option<File>), String> {
        config.existing()?;
        Self::open(config).await
    }

    /// Brings the schema up to date, and partitions the tables of a new database. Tells where the rows
    /// of an owner are.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn prepare(&self, config: &StoreConfig) -> Result<Owners, String> {
        let failed = |error: MigrateError| format!("cannot migrate the database: {error}");
        let Self::Postgres { options, shards, .. } = self else {
            self.migrate().await.map_err(failed)?;
            return Ok(Owners::of_partitions(1));
        };
        // One connection for all: no other node is between these steps.
        let mut conn = migrate::connect(options).await.map_err(|error| failed(error.into()))?;
        migrate::up_to_date(&mut conn).await.map_err(failed)?;
        let owners = match shards {
            Some(shards) if config.partitions == 1 => {
                distributed::place_new_tables(&mut conn).await?;
                Owners::of_shards(Arc::clone(shards))
            }
            Some(_) => {
                return Err("HEADMARK_PARTITIONS cannot be used with Citus, which spreads the tables over its workers: unset it".to_owned());
            }
            None => {
                let stored = partitions::settled(&mut conn, config.partitions).await?;
                tell_of_others(stored, config.partitions);
                Owners::of_partitions(stored)
            }
        };
        // Its locks end with it.
        let _closed = conn.close().await;
        Ok(owners)
    }

    /// Opens what the settings name to read it, also while a server runs: on SQLite without the
    /// data folder's lock, as readers do not disturb its writer. The schema is taken as it is.
    ///
    /// # Errors
    /// A sentence for the operator: what could not be opened and why.
    pub async fn open_to_read(config: &StoreConfig) -> Result<Self, String> {
        if let Some(url) = &config.database_url {
            return open_postgres(config, url).await;
        }
        let path = config.existing()?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .busy_timeout(Duration::from_millis(config.db_acquire_timeout_ms))
            .disable_statement_logging();
        let reads = pool(config, Opener::Sqlite(options.clone()), 1);
        Ok(Self::Sqlite { reads, options })
    }
}

impl Db {
    /// A replica of Postgres that the settings name. It is connected to when it is first read.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn open_replica(config: &StoreConfig, url: &SecretString) -> Result<Self, String> {
        let options = postgres_options(config, url, "HEADMARK_REPLICA_URL")?
            .options(config.plans.settings(false).iter().copied())
            .options([("default_transaction_read_only", "on")]);
        let reads = pool(config, Opener::Postgres(options.clone(), None), config.db_connections);
        Ok(Self::Postgres { reads, options, shards: None })
    }
}

/// The bytes of a page of a new file; a file that is there keeps its own. A batch changes one row here and
/// one there, and each change writes a whole page to the log.
const PAGE_BYTES: u32 = 2048;

/// After how many bytes of pages a commit puts the log into the file. The lane does so before that, beside
/// its commits ([`Conn::shorten_log`](super::Conn::shorten_log)).
const LOG_BYTES: i64 = 128 << 20;

/// How many prepared statements a connection to SQLite keeps: each of a lane's for the numbers of
/// rows that its batches have (`sqlite.rs`).
const KEPT_STATEMENTS: usize = 512;

/// How many rows SQLite's thread may be ahead of their reader. If it has to wait after every few
/// rows, both threads sleep and wake all the time.
const ROWS_AHEAD: usize = 2048;

impl StoreConfig {
    /// Checks the address of Postgres, if there is one.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.database_url.as_ref().map_or(Ok(()), |url| check_url(self, url, "DATABASE_URL"))
    }
}

/// Whether the address in this variable is one of Postgres.
pub(super) fn check_url(config: &StoreConfig, url: &SecretString, variable: &str) -> Result<(), String> {
    postgres_options(config, url, variable).map(drop)
}

/// An address of Postgres; None where it is no such thing.
pub(super) fn address(url: &SecretString) -> Option<PgConnectOptions> {
    // The parser's error may repeat parts of the URL, so it is not shown. It takes any scheme.
    let text = Some(url.expose_secret()).filter(|url| url.starts_with("postgres://") || url.starts_with("postgresql://"))?;
    PgConnectOptions::from_str(text).ok()
}

/// How Postgres is connected to at the address in this variable.
fn postgres_options(config: &StoreConfig, url: &SecretString, variable: &str) -> Result<PgConnectOptions, String> {
    let options = address(url)
        .ok_or_else(|| format!("{variable} is not a valid postgres:// URL"))?
        .application_name("headmark")
        .options([
            ("statement_timeout", config.statement_timeout_ms.to_string()),
            ("lock_timeout", (config.statement_timeout_ms * 2 / 3).to_string()),
            ("idle_in_transaction_session_timeout", config.statement_timeout_ms.to_string()),
            // Every statement here is short. Compiling one costs many times what it takes, and a
            // list of a million entries, of which a page shows twenty, looks to the planner as if
            // it were worth it.
            ("jit", "off".to_owned()),
            // How the literals of `postgres.rs` are to be read.
            ("standard_conforming_strings", "on".to_owned()),
        ])
        .disable_statement_logging();
    Ok(options)
}

/// Says so where the tables have another number of partitions than the settings.
fn tell_of_others(stored: u32, asked: u32) {
    if stored == asked {
        return;
    }
    // By default it is one: nobody has asked for that.
    let or_move = if asked == 1 {
        String::new()
    } else {
        format!("; or, to move all rows to {asked}, stop all nodes and run `headmark migrate --repartition {asked}`")
    };
    tracing::warn!(
        "the tables of this database have {stored} partitions, not {asked} as HEADMARK_PARTITIONS says: set that to {stored}{or_move}"
    );
}

async fn open_postgres(config: &StoreConfig, url: &SecretString) -> Result<Db, String> {
    let options = postgres_options(config, url, "DATABASE_URL")?;
    let opened = async {
        // First: what others ask may fail through one in many ways.
        let [mut mine, other] = pooler::checked(&options, config.statement_timeout_ms).await?;
        let shards = distributed::inspect(&mut mine).await?.shards.map(Arc::new);
        let plans = config.plans.settings(shards.is_some());
        let options = options.options(plans.iter().copied());
        let reads = pool(config, Opener::Postgres(options.clone(), shards.clone()), config.db_connections);
        for mut conn in [mine, other] {
            set(&mut conn, plans).await.map_err(|error| format!("cannot connect to Postgres: {}", said(&error)))?;
            reads.begin_with(Conn::Postgres(Box::new(PgConn::new(conn, shards.clone()))));
        }
        Ok(Db::Postgres { reads, options, shards })
    };
    let late = |_| Err(format!("cannot connect to Postgres: no answer within {} s", MAX_FIRST_CONNECT.as_secs()));
    tokio::time::timeout(MAX_FIRST_CONNECT, opened).await.unwrap_or_else(late)
}

/// Gives a connection that is open the settings that others begin with.
async fn set(conn: &mut PgConnection, settings: &[(&str, &str)]) -> DbResult<()> {
    let each: Vec<String> = settings.iter().map(|(name, value)| format!("set {name} = '{value}'")).collect();
    conn.execute(sqlx::raw_sql(AssertSqlSafe(each.join("; ")))).await.map(drop)
}

async fn open_sqlite(config: &StoreConfig) -> Result<(Db, File), String> {
    let dir = &config.data_dir;
    let lock = folder::make(dir)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(format!(
                "another headmark is using the data folder {}; stop it, or give this one its own --data-dir",
                dir.display()
            ));
        }
        Err(TryLockError::Error(error)) => return Err(format!("cannot lock the data folder {}: {error}", dir.display())),
    }
    folder::close_to_others(dir)?;
    let options = SqliteConnectOptions::new()
        .filename(dir.join(SQLITE_FILE))
        .create_if_missing(true)
        .page_size(PAGE_BYTES)
        .journal_mode(SqliteJournalMode::Wal)
        // FULL: an acknowledged write survives a power cut, not only the process.
        .synchronous(SqliteSynchronous::Full)
        // What a statement is to undo should it fail half way, which else goes to a file for each
        // batch.
        .pragma("temp_store", "memory")
        // What is deleted, by an erasure or as it is no longer kept, leaves the file too.
        .pragma("secure_delete", "on")
        .statement_cache_capacity(KEPT_STATEMENTS)
        .row_buffer_size(ROWS_AHEAD)
        .busy_timeout(Duration::from_millis(config.db_acquire_timeout_ms))
        .foreign_keys(false)
        .disable_statement_logging();
    let reads = pool(config, Opener::Sqlite(options.clone()), config.db_connections.min(8));
    let page_bytes = async {
        reads.open_first().await?;
        let mut first = reads.acquire().await?;
        let bytes = first.conn.page_bytes().await?;
        first.give_back();
        Ok(bytes)
    };
    let page_bytes = page_bytes.await.map_err(|error: sqlx::Error| format!("cannot open the SQLite file in {}: {error}", dir.display()))?;
    let options = options.pragma("wal_autocheckpoint", (LOG_BYTES / page_bytes).to_string());
    // After a read that took long, the log is much larger; it shrinks when it begins from the start again.
    let options = options.pragma("journal_size_limit", (2 * LOG_BYTES).to_string());
    // Where it is negative it counts KiB. Only who writes needs it: reads are few beside the cache
    // of entries, and the operating system has the file for them.
    let options = options.pragma("cache_size", (-1024 * i64::from(config.sqlite_cache_mib)).to_string());
    Ok((Db::Sqlite { reads, options }, lock))
}

fn pool(config: &StoreConfig, opener: Opener, connections: u32) -> Arc<Pool> {
    Arc::new(Pool::new(opener, connections, Duration::from_millis(config.db_acquire_timeout_ms)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sqlx::Connection as _;

    use super::*;
    use crate::db::Conn;

    #[derive(Parser)]
    struct Settings {
        #[command(flatten)]
        store: StoreConfig,
    }

    #[tokio::test]
    async fn the_log_is_as_long_whatever_the_pages_of_the_file() {
        let folder = std::env::temp_dir().join(format!("headmark-pages-{}", std::process::id()));
        for (before, bytes) in [(None, i64::from(PAGE_BYTES)), (Some(4096), 4096), (Some(65_536), 65_536)] {
            let dir = folder.join(bytes.to_string());
            std::fs::create_dir_all(&dir).unwrap();
            if let Some(bytes) = before {
                let made = SqliteConnectOptions::new().filename(dir.join(SQLITE_FILE)).create_if_missing(true).page_size(bytes);
                let made = made.journal_mode(SqliteJournalMode::Wal).connect().await.unwrap();
                made.close().await.unwrap();
            }
            let settings = Settings::parse_from(["test", "--data-dir", dir.to_str().unwrap()]);
            let (db, _lock) = open_sqlite(&settings.store).await.unwrap();
            assert_eq!(db.read_connections(), 8, "no more than that, whatever the setting");
            let mut conn = db.connect().await.unwrap();
            assert_eq!(conn.page_bytes().await.unwrap(), bytes);
            let Conn::Sqlite(conn) = &mut conn else { panic!("SQLite") };
            let (pages,): (i64,) = sqlx::query_as("pragma wal_autocheckpoint").fetch_one(conn.as_mut()).await.unwrap();
            assert_eq!(pages * bytes, LOG_BYTES);
            db.close().await;
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
