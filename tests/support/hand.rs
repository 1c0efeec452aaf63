//! Holds up the writes of a world, so that a test can let them pile up.

use std::path::Path;

use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, SqliteConnection};

use super::distributed;
use super::world::SQLITE_FILE;
use super::{Tier, World};

/// A connection of the test's own, which may write.
#[derive(Debug)]
pub enum Hand {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Hand {
    pub async fn on(world: &World) -> Self {
        match world.tier {
            Tier::Embedded => Self::Sqlite(SqliteConnectOptions::new().filename(world.dir.join(SQLITE_FILE)).connect().await.unwrap()),
            Tier::Server => Self::Postgres(PgConnection::connect(&world.database_url).await.unwrap()),
        }
    }

    /// Makes a database of an earlier version: with the migrations up to this one.
    pub async fn earlier(world: &World, last_migration: i64) -> Self {
        let folder = if world.tier == Tier::Embedded { "sqlite" } else { "postgres" };
        let migrations = Migrator::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder)).await.unwrap();
        match world.tier {
            Tier::Embedded => {
                let path = world.dir.join(SQLITE_FILE);
                // With the tables of this version.
                let _ = std::fs::remove_file(&path);
                let file = SqliteConnectOptions::new().filename(path).create_if_missing(true);
                let mut conn = file.connect().await.unwrap();
                migrations.run_direct(Some(last_migration), &mut conn, false).await.unwrap();
                Self::Sqlite(conn)
            }
            Tier::Server => {
                assert!(distributed::database().is_none(), "the tables of an earlier version are those of one Postgres");
                let mut conn = world.postgres().await;
                // The tables of this version, and its migrations.
                conn.execute("drop schema public cascade; create schema public").await.unwrap();
                migrations.run_direct(Some(last_migration), &mut conn, false).await.unwrap();
                Self::Postgres(conn)
            }
        }
    }

    /// The one text that a query selects.
    pub async fn text(&mut self, sql: &str) -> String {
        match self {
            Self::Sqlite(conn) => sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(conn).await,
            Self::Postgres(conn) => sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(conn).await,
        }
        .unwrap()
    }

    pub async fn run(&mut self, sql: &str) {
        match self {
            Self::Sqlite(conn) => drop(conn.execute(AssertSqlSafe(sql)).await.unwrap()),
            Self::Postgres(conn) => {
                let mut done = conn.execute(AssertSqlSafe(sql)).await;
                // What changes a table may meet a node that reads it and its partitions in another order.
                while done.as_ref().is_err_and(is_deadlock) {
                    done = conn.execute(AssertSqlSafe(sql)).await;
                }
                done.unwrap();
            }
        }
    }

    /// From here on anyone who writes for user 1 (on SQLite, anyone who writes) has to wait.
    pub async fn block(&mut self) {
        match self {
            Self::Sqlite(_) => self.run("begin immediate").await,
            Self::Postgres(_) => {
                self.run("begin").await;
                self.run(
                    "insert into users (user_id, revision) values (1, 0) on conflict (user_id) do update set revision = users.revision",
                )
                .await;
            }
        }
    }

    /// It goes on.
    pub async fn release(&mut self) {
        self.run("rollback").await;
    }

    /// How many connections of this world wait for a lock. SQLite does not tell.
    pub async fn waiting(&mut self) -> i64 {
        match self {
            Self::Sqlite(_) => 1,
            Self::Postgres(conn) => {
                let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
                let (waiting,): (i64,) = sqlx::query_as(sql).fetch_one(conn).await.unwrap();
                waiting
            }
        }
    }
}

fn is_deadlock(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "40P01")
}
