//! Distributing the tables over the workers of Citus.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::check::{LEADER, Placed, has_citus};
use crate::db::large_tables::TABLES;
use crate::db::locks::NODE_LOCK;
use crate::db::migrate::{self, wait_for_turn};
use crate::db::{Db, DbResult};

/// What became of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distributed {
    /// Its name.
    pub table: String,
    /// The column by whose hash its rows are spread; none for one that stays on the coordinator, as
    /// a table that takes part in the transactions of Citus.
    pub owner: Option<&'static str>,
}

/// A unique key that lacks the owner, which Citus refuses. The lock of the group keeps ordinals
/// unique.
const WIDEN: &str = "drop index if exists memberships_of_group;
    create unique index memberships_of_group on memberships (group_id, ordinal, span, user_id)";

impl Db {
    /// Distributes the tables of a Citus that are not yet, with their rows, while no node runs.
    /// `tell` hears of each. What was done stays done when it is interrupted.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub async fn distribute(&self, tell: impl FnMut(Distributed) + Send) -> Result<(), String> {
        let Self::Postgres { options, .. } = self else {
            return Err("SQLite cannot be distributed: name a Citus with DATABASE_URL".to_owned());
        };
        let failed = |error| format!("cannot distribute the tables: {error}");
        let mut conn = connect(options).await.map_err(failed)?;
        wait_for_turn(&mut conn).await.map_err(failed)?;
        may_distribute(&mut conn).await.map_err(failed)??;
        let done = place_all(&mut conn, tell).await.map_err(failed);
        // The locks end with it.
        let _closed = conn.close().await;
        done
    }
}

/// Places what a migration has made since. Only empty tables: one with rows was there before, in the
/// wrong place, and moving it is not done beside nodes. The connection has the turn.
///
/// # Errors
/// A sentence for the operator.
pub(in crate::db) async fn place_new_tables(conn: &mut PgConnection) -> Result<(), String> {
    let failed = |error| format!("cannot distribute the tables: {error}");
    conn.execute(LOCK_TIMEOUT).await.map_err(failed)?;
    for table in Placed::read(conn).await.map_err(failed)?.plain() {
        let filled = AssertSqlSafe(format!("select exists (select from {table})"));
        let (filled,): (bool,) = sqlx::query_as(filled).fetch_one(&mut *conn).await.map_err(failed)?;
        if filled {
            return Err(format!(
                "the table {table} of this Citus has rows and is in no place that Citus knows: stop all nodes and run `headmark migrate --distribute`"
            ));
        }
    }
    place_all(conn, |placed| tracing::info!(table = placed.table, "placed a new table")).await.map_err(failed)
}

/// How long a step waits for a lock.
const LOCK_TIMEOUT: &str = "set lock_timeout = '10s'";

async fn connect(options: &PgConnectOptions) -> DbResult<PgConnection> {
    let mut conn = migrate::connect(options).await?;
    conn.execute(LOCK_TIMEOUT).await?;
    Ok(conn)
}

/// Whether this is a Citus with workers that no node uses.
async fn may_distribute(conn: &mut PgConnection) -> DbResult<Result<(), String>> {
    if !has_citus(conn).await? {
        return Ok(Err("this Postgres is no Citus: `create extension citus` on it and on its workers first".to_owned()));
    }
    let (workers,): (i64,) = sqlx::query_as("select count(*) from citus_get_active_worker_nodes()").fetch_one(&mut *conn).await?;
    if workers == 0 {
        return Ok(Err("this Citus has no workers: `select citus_add_node('host', port)` for each first".to_owned()));
    }
    let (coordinator,): (bool,) =
        sqlx::query_as("select exists (select from pg_dist_node where groupid = 0)").fetch_one(&mut *conn).await?;
    if !coordinator {
        return Ok(Err("this Citus does not know its coordinator: `select citus_set_coordinator_host('host', port)` first".to_owned()));
    }
    let (mine,): (bool,) = sqlx::query_as("select pg_try_advisory_lock($1)").bind(NODE_LOCK).fetch_one(&mut *conn).await?;
    if !mine {
        return Ok(Err("a node uses this database: stop all nodes first".to_owned()));
    }
    // Also those on the way to another number.
    let partitioned = "select exists (select from pg_class c join pg_namespace s on s.oid = c.relnamespace
        where s.nspname = current_schema() and ((c.relname = any($1) and c.relkind = 'p') or c.relname = any($2)))";
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
    let moving: Vec<String> = TABLES.iter().map(|table| format!("{}_old", table.name)).collect();
    let (partitioned,): (bool,) = sqlx::query_as(partitioned).bind(names).bind(moving).fetch_one(conn).await?;
    let refused = "its tables are partitioned: run `headmark migrate --repartition 1` first";
    Ok(if partitioned { Err(refused.to_owned()) } else { Ok(()) })
}

/// Each table in a transaction of its own. The one that others lie beside is first.
async fn place_all(conn: &mut PgConnection, mut tell: impl FnMut(Distributed) + Send) -> DbResult<()> {
    let placed = Placed::read(conn).await?;
    for table in TABLES.iter().rev().filter(|table| placed.plain().iter().any(|plain| plain == table.name)) {
        let beside = if table.name == LEADER || !table.has_number() { "none" } else { LEADER };
        let widen = if table.name == "memberships" { WIDEN } else { "" };
        let sql = format!(
            "begin; {widen}; select create_distributed_table('{}', '{}', colocate_with => '{beside}'); commit",
            table.name, table.owner
        );
        conn.execute(AssertSqlSafe(sql)).await?;
        tell(Distributed { table: table.name.to_owned(), owner: Some(table.owner) });
    }
    for table in placed.plain().iter().filter(|plain| TABLES.iter().all(|table| table.name != **plain)) {
        sqlx::query("select citus_add_local_table_to_metadata($1::regclass)").bind(table).execute(&mut *conn).await?;
        tell(Distributed { table: table.clone(), owner: None });
    }
    Ok(())
}
