//! Moves the rows of a filled database to another number of partitions, one table after the other,
//! in steps that each commit. No node runs meanwhile.
//!
//! A table is renamed, so that nothing has its name; its rows are copied in the order of its key; the
//! copy takes the name, and the old table goes, in one transaction. The catalog and the highest key
//! of the copy say how far that is. So the command goes on where it was stopped, whatever stopped
//! it, also with another number.

use std::time::Instant;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::schema::{self, Names, Schema, is_empty};
use super::take_node_lock;
use crate::db::large_tables::{TABLES, Table};
use crate::db::migrate::{connect, wait_for_turn};
use crate::db::{Db, DbResult};
use crate::failpoint;

/// What to do.
#[derive(Debug, Clone, Copy)]
pub struct Repartition {
    /// How many partitions each table is to have; with one it is a plain table.
    pub partitions: u32,
    /// How many rows a step copies, in a transaction of its own.
    pub rows_per_step: u32,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The table whose rows are being copied.
    pub table: &'static str,
    /// How many of them this run has copied.
    pub rows: u64,
    /// How long that took, in milliseconds.
    pub elapsed_ms: u64,
    /// Whether the copy has taken the table's place.
    pub is_done: bool,
}

impl Repartition {
    /// Runs it to its end.
    ///
    /// # Errors
    /// A sentence for the operator. What was done until then stays done.
    pub async fn run(self, db: &Db, mut tell: impl FnMut(Progress)) -> Result<(), String> {
        let Db::Postgres { options, .. } = db else { return Err("only Postgres has partitions".to_owned()) };
        if db.is_distributed() {
            return Err("the tables of a Citus lie on its workers already: partitions would bring all rows to the coordinator".to_owned());
        }
        let failed = |error| format!("cannot repartition the tables; to go on, run the command again: {error}");
        let mut conn = connect(options).await.map_err(failed)?;
        wait_for_turn(&mut conn).await.map_err(failed)?;
        if !take_node_lock(&mut conn).await.map_err(failed)? {
            return Err("a node or a command uses this database: stop all of them, then run this again".to_owned());
        }
        if let Some(name) = Schema::read(&mut conn).await.map_err(failed)?.in_the_way() {
            return Err(format!("there is a table {name}, a name that is needed while rows are moved: rename it, then run this again"));
        }
        for table in TABLES {
            self.move_table(&mut conn, table, &mut tell).await.map_err(failed)?;
        }
        // With it end the locks.
        let _closed = conn.close().await;
        Ok(())
    }

    async fn move_table(self, conn: &mut PgConnection, table: Table, tell: &mut impl FnMut(Progress)) -> DbResult<()> {
        if !self.begin(conn, table).await? {
            return Ok(());
        }
        failpoint("partitions::before_copy");
        let began = Instant::now();
        let mut progress = Progress { table: table.name, rows: 0, elapsed_ms: 0, is_done: false };
        let (first, next) = self.steps(conn, table).await?;
        let names = Names::of(table.name);
        // What is lost in a crash is copied again.
        conn.execute("set synchronous_commit = off").await?;
        let mut step = if is_empty(conn, &names.new).await? { first } else { next.clone() };
        loop {
            let copied = conn.execute(AssertSqlSafe(step)).await?.rows_affected();
            step = next.clone();
            progress.rows += copied;
            progress.elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            tell(progress);
            failpoint("partitions::after_step");
            if copied < u64::from(self.rows_per_step) {
                break;
            }
        }
        conn.execute(AssertSqlSafe(format!("set synchronous_commit = on; analyze {}", names.new))).await?;
        failpoint("partitions::before_swap");
        let mut transaction = conn.begin().await?;
        schema::swap(&mut transaction, table).await?;
        transaction.commit().await?;
        failpoint("partitions::after_swap");
        progress.is_done = true;
        tell(progress);
        Ok(())
    }

    /// Whether there are rows to move: then both tables are there, and none has the table's name.
    async fn begin(self, conn: &mut PgConnection, table: Table) -> DbResult<bool> {
        let Names { old, new } = Names::of(table.name);
        let schema = Schema::read(conn).await?;
        let (whole, before, after) = (schema.of(table.name), schema.of(&old), schema.of(&new));
        if whole == Some(self.partitions) || (before.is_some() && after == Some(self.partitions)) {
            return Ok(whole.is_none());
        }
        let mut transaction = conn.begin().await?;
        // An earlier run had another number.
        if before.is_some() {
            transaction.execute(AssertSqlSafe(format!("drop table if exists {new}"))).await?;
        } else {
            transaction.execute(AssertSqlSafe(format!("alter table {} rename to {old}", table.name))).await?;
        }
        let is_back = before == Some(self.partitions);
        if is_back {
            transaction.execute(AssertSqlSafe(format!("alter table {old} rename to {}", table.name))).await?;
        } else {
            schema::make(&mut transaction, table, self.partitions).await?;
        }
        transaction.commit().await?;
        Ok(!is_back)
    }

    /// The statement that copies the first rows, and the one that copies those behind the last.
    async fn steps(self, conn: &mut PgConnection, table: Table) -> DbResult<(String, String)> {
        let Names { old, new } = Names::of(table.name);
        let (columns, key) = (schema::columns(conn, &old).await?.join(", "), schema::key(conn, &old).await?);
        let last: Vec<_> = key.iter().map(|column| format!("{column} desc")).collect();
        let (key, last, rows) = (key.join(", "), last.join(", "), self.rows_per_step);
        let copy = format!("insert into {new} ({columns}) select {columns} from {old}");
        let next = format!("{copy} where ({key}) > (select {key} from {new} order by {last} limit 1) order by {key} limit {rows}");
        Ok((format!("{copy} order by {key} limit {rows}"), next))
    }
}
