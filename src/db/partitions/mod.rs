//! Large tables on Postgres are hash-partitioned by their owner, where `HEADMARK_PARTITIONS` asks
//! for it (`docs/adr/0023-partitions.md`). With one partition they are plain tables. SQLite has
//! plain tables only.
//!
//! The catalog of Postgres says how many partitions a database has, and which tables are on their
//! way to another number: nothing else remembers it. Migrations make plain tables. [`settled`]
//! then partitions what is empty; `moving.rs` moves the rows of a filled database.
//!
//! An index that a migration makes beside writes goes to each partition (`src/db/index.rs`).
//!
//! To add a table: a line in `src/db/large_tables.rs`. The test that reads the plans of all statements
//! (`tests/guarantees/plans.rs`) shows which of its statements visit all partitions.

mod moving;
mod schema;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

pub use self::moving::{Progress, Repartition};
use self::schema::{Names, Schema, is_empty};
use super::DbResult;
use super::large_tables::TABLES;
use super::locks::NODE_LOCK;

/// What nodes and commands say between two runs of the command that moves rows.
fn under_way(target: u32) -> String {
    format!("the tables are being repartitioned: run `headmark migrate --repartition {target}` to its end first")
}

/// Partitions what may be partitioned at once: all tables of a database without rows that no node
/// uses, to the number that is asked for; else tables that a migration has just made, to the number
/// that the database has. Tells the number that they have then. The connection has the turn.
///
/// # Errors
/// A sentence for the operator.
pub(super) async fn settled(conn: &mut PgConnection, asked: u32) -> Result<u32, String> {
    settle(conn, asked).await.map_err(|error| format!("cannot partition the tables: {error}"))?.map_err(under_way)
}

/// Takes the node lock for this connection alone, unless a node or another command has it.
async fn take_node_lock(conn: &mut PgConnection) -> DbResult<bool> {
    let (mine,): (bool,) = sqlx::query_as("select pg_try_advisory_lock($1)").bind(NODE_LOCK).fetch_one(conn).await?;
    Ok(mine)
}

/// The number of the tables; an error inside is the one to which rows are being moved.
async fn settle(conn: &mut PgConnection, asked: u32) -> DbResult<Result<u32, u32>> {
    let mut schema = Schema::read(conn).await?;
    if schema.all_have(asked) {
        return Ok(Ok(asked));
    }
    if are_empty(conn, &schema).await? && take_node_lock(conn).await? {
        partition_empty(conn, &schema, asked).await?;
        conn.execute(AssertSqlSafe(format!("select pg_advisory_unlock({NODE_LOCK})"))).await?;
        return Ok(Ok(asked));
    }
    let stored = schema.stored();
    // What a migration has just made.
    for table in TABLES {
        if schema.of(table.name) == Some(1) && stored > 1 && is_empty(conn, table.name).await? {
            schema::partition_empty(conn, table, stored).await?;
        }
    }
    schema = Schema::read(conn).await?;
    Ok(if schema.all_have(stored) { Ok(stored) } else { Err(schema.target()) })
}

async fn partition_empty(conn: &mut PgConnection, schema: &Schema, number: u32) -> DbResult<()> {
    for table in TABLES {
        if schema.of(table.name) != Some(number) {
            schema::partition_empty(conn, table, number).await?;
        }
    }
    Ok(())
}

/// Whether no table has a row. A table that is not there is on its way, with rows.
async fn are_empty(conn: &mut PgConnection, schema: &Schema) -> DbResult<bool> {
    // The last is filled first.
    for table in TABLES.iter().rev() {
        if schema.of(table.name).is_none() || schema.of(&Names::of(table.name).old).is_some() || !is_empty(conn, table.name).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
