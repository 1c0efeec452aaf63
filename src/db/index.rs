//! An index that is made beside writes. Postgres makes none on a partitioned table: there is one
//! made on each partition, and then the table's own, to which they are attached.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::DbResult;

/// The partitions of a table; none where it is plain.
pub(super) async fn partitions(conn: &mut PgConnection, table: &str) -> DbResult<Vec<String>> {
    let sql = "select c.relname::text
        from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        where i.inhparent = to_regclass($1)
        order by c.oid";
    let found: Vec<(String,)> = sqlx::query_as(sql).bind(table).fetch_all(conn).await?;
    Ok(found.into_iter().map(|(partition,)| partition).collect())
}

/// An index of a table as a migration says it: `create {kind} concurrently if not exists {name} on
/// {table} {rest}`.
#[derive(Debug)]
pub(super) struct ConcurrentIndex {
    /// `index` or `unique index`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) table: String,
    /// What follows the table.
    pub(super) rest: String,
}

impl ConcurrentIndex {
    /// Makes it on each of these partitions, and on the table. Done again, it goes on where it was
    /// stopped.
    ///
    /// # Errors
    /// Where a lock of the table, or of an index, does not come within `wait`; and others of the driver.
    pub(super) async fn make(&self, conn: &mut PgConnection, partitions: &[String], wait: Duration) -> DbResult<()> {
        let Self { kind, name, table, rest } = self;
        // Each holds up writers, as long as it waits: so not for long, and one after the other.
        let mut attach = vec![format!("create {kind} if not exists {name} on only {table} {rest}")];
        for partition in partitions {
            let part = format!("{partition}_{name}");
            drop_unfinished(conn, &part).await?;
            conn.execute(AssertSqlSafe(format!("create {kind} concurrently if not exists {part} on {partition} {rest}"))).await?;
            attach.push(format!("alter index {name} attach partition {part}"));
        }
        conn.execute(AssertSqlSafe(format!("set lock_timeout = {}", wait.as_millis()))).await?;
        for step in attach {
            conn.execute(AssertSqlSafe(step)).await?;
        }
        Ok(())
    }
}

/// An index that was begun and not finished is there, but not used.
pub(super) async fn drop_unfinished(conn: &mut PgConnection, index: &str) -> DbResult<()> {
    let unfinished = "select 1 from pg_index where indexrelid = to_regclass($1) and not indisvalid";
    if sqlx::query(unfinished).bind(index).fetch_optional(&mut *conn).await?.is_some() {
        tracing::info!(index, "dropping an index that was not finished");
        conn.execute(AssertSqlSafe(format!("drop index concurrently if exists {index}"))).await?;
    }
    Ok(())
}
