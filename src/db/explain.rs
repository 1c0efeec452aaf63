//! How Postgres executes a statement, for the suite, which reads the plans of all of them.

use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use super::column::Column;
use super::conn::Conn;
use super::dialect::{self, Statement};
use super::errors::DbResult;

impl Conn {
    /// The plan of a statement as JSON, prepared as a lane prepares it. With `analyze` the statement
    /// is executed, and the plan says how often each of its nodes was. None on SQLite.
    ///
    /// # Errors
    /// The driver's own.
    pub async fn explain(&mut self, statement: &'static Statement, columns: &[Column], analyze: bool) -> DbResult<Option<String>> {
        let Self::Postgres(conn) = self else { return Ok(None) };
        let sql = statement.text(conn.is_distributed());
        let (conn, _) = conn.sent().await?;
        let types = dialect::postgres_types(statement, &[]);
        // Never given out twice, as one that fails stays.
        let name = format!("explained_{}_{analyze}", std::ptr::from_ref(statement).addr());
        let (mut text, mut bound) = (String::new(), Vec::new());
        // Writing to a String cannot fail.
        let _ = write!(text, "prepare {name}{types} as {sql}; explain (analyze {analyze}, format json) execute {name}");
        dialect::write_parameters(statement, columns, &mut text, &mut bound);
        if !bound.is_empty() {
            let (text, arguments) = dialect::bind(bound)?;
            sqlx::query_with(AssertSqlSafe(text), arguments).execute(&mut *conn).await?;
        }
        conn.fetch_one(sqlx::raw_sql(AssertSqlSafe(text))).await?.try_get_unchecked(0).map(Some)
    }
}
