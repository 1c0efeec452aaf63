//! What an operator may want to know of a database, for `headmark doctor`.

use std::collections::BTreeMap;

use sqlx::{Connection as _, PgConnection, SqliteConnection};

use super::first_answer::first_answer;
use super::migrate::last_version;
use super::{Db, DbResult};

/// What was found out about a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DbFacts {
    /// The version of the server or the library.
    pub version: String,
    /// Settings by name; none of SQLite.
    pub settings: BTreeMap<String, String>,
    /// The last migration that it has, 0 for none; and the last one that this program knows.
    pub migrated: i64,
    pub known: i64,
    /// What its clock shows, in milliseconds since 1970; None of SQLite.
    pub now_ms: Option<i64>,
    /// Whether it is a standby, which takes no writes.
    pub is_standby: bool,
    /// How many connections of clients it has now.
    pub connections: i64,
    /// What an integrity check found to be wrong; only of SQLite.
    pub damage: Option<String>,
}

/// The settings of Postgres that matter.
const SETTINGS: [&str; 8] = [
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "autovacuum",
    "max_connections",
    "max_prepared_transactions",
    "max_locks_per_transaction",
    "server_version_num",
];

impl Db {
    /// Looks at the database. It only reads.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn facts(&self) -> DbResult<DbFacts> {
        match self {
            Self::Sqlite { options, .. } => {
                let mut conn = SqliteConnection::connect_with(options).await?;
                let facts = of_sqlite(&mut conn).await?;
                conn.close().await.map(|()| facts)
            }
            Self::Postgres { options, .. } => {
                let looked = async {
                    let mut conn = PgConnection::connect_with(options).await?;
                    let facts = of_postgres(&mut conn).await?;
                    conn.close().await.map(|()| facts)
                };
                first_answer(looked).await
            }
        }
    }

    /// The last migration of a schema that a newer version has made; None of one that this program knows.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn newer_migration(&self) -> DbResult<Option<i64>> {
        let ((migrated,), known): ((i64,), i64) = match self {
            Self::Sqlite { options, .. } => {
                let mut conn = SqliteConnection::connect_with(options).await?;
                let migrated = sqlx::query_as(MIGRATED).fetch_one(&mut conn).await?;
                conn.close().await?;
                (migrated, last_version(false))
            }
            Self::Postgres { options, .. } => {
                let looked = async {
                    let mut conn = PgConnection::connect_with(options).await?;
                    let migrated: (i64,) = sqlx::query_as(MIGRATED).fetch_one(&mut conn).await?;
                    conn.close().await.map(|()| migrated)
                };
                (first_answer(looked).await?, last_version(true))
            }
        };
        Ok((migrated > known).then_some(migrated))
    }
}

async fn of_sqlite(conn: &mut SqliteConnection) -> DbResult<DbFacts> {
    let (version,): (String,) = sqlx::query_as("select sqlite_version()").fetch_one(&mut *conn).await?;
    let (check,): (String,) = sqlx::query_as("pragma quick_check(1)").fetch_one(&mut *conn).await?;
    let (has_table,): (i64,) =
        sqlx::query_as("select count(*) from sqlite_master where name = '_sqlx_migrations'").fetch_one(&mut *conn).await?;
    let migrated = if has_table == 0 { 0 } else { sqlx::query_as::<_, (i64,)>(MIGRATED).fetch_one(&mut *conn).await?.0 };
    let damage = (check != "ok").then_some(check);
    Ok(DbFacts { version, migrated, known: last_version(false), damage, ..DbFacts::default() })
}

const MIGRATED: &str = "select cast(coalesce(max(version), 0) as bigint) from _sqlx_migrations";

async fn of_postgres(conn: &mut PgConnection) -> DbResult<DbFacts> {
    let names: Vec<String> = SETTINGS.map(str::to_owned).into();
    let settings: Vec<(String, String)> =
        sqlx::query_as("select name, setting from pg_settings where name = any($1)").bind(names).fetch_all(&mut *conn).await?;
    // Other processes of Postgres take no place of `max_connections`. An account without privileges is not
    // told their type. Only clients, and what works for them, have both a database and a user.
    let facts = "select current_setting('server_version'), cast(extract(epoch from clock_timestamp()) * 1000 as bigint),
        pg_is_in_recovery(), to_regclass('_sqlx_migrations') is not null,
        (select count(*) from pg_stat_activity
            where datid is not null and usesysid is not null and coalesce(backend_type, 'client backend') = 'client backend')";
    let (version, now_ms, is_standby, has_table, connections): (String, i64, bool, bool, i64) =
        sqlx::query_as(facts).fetch_one(&mut *conn).await?;
    let migrated = if has_table { sqlx::query_as::<_, (i64,)>(MIGRATED).fetch_one(&mut *conn).await?.0 } else { 0 };
    Ok(DbFacts {
        version,
        settings: settings.into_iter().collect(),
        migrated,
        known: last_version(true),
        now_ms: Some(now_ms),
        is_standby,
        connections,
        damage: None,
    })
}
