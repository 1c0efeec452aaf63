//! Whether a pooler (pgbouncer) stands between this node and Postgres. Lanes and the guard need
//! sessions of their own: they hold locks, prepared statements and settings in them. A pooler that
//! gives each transaction another session loses these without an error, so a node looks before it
//! starts.

use std::time::Duration;

use rand::RngExt as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

use super::{DbResult, said};

/// How long the look at a session may take while another connection has a transaction. A pooler with one
/// session to give away does not answer.
const MAX_LOOK: Duration = Duration::from_secs(5);

const CHANGES_SESSIONS: &str = "cannot use Postgres through a pooler (pgbouncer) that gives each transaction another session: \
    connect to Postgres itself";

const DROPS_SETTINGS: &str = "cannot use Postgres through a pooler (pgbouncer) that drops the settings of a connection, such as \
    statement_timeout: connect to Postgres itself";

/// Opens two connections, and looks whether a session stays the same, and has the settings that were asked
/// for. Returns both.
///
/// # Errors
/// A sentence for the operator.
pub(super) async fn checked(options: &PgConnectOptions, statement_timeout_ms: u64) -> Result<[PgConnection; 2], String> {
    let failed = |error: sqlx::Error| format!("cannot connect to Postgres at {}: {}", place(options), said(&error));
    let mut mine = PgConnection::connect_with(options).await.map_err(failed)?;
    let mut other = PgConnection::connect_with(options).await.map_err(failed)?;
    let timeout: String = ask(&mut mine, "select setting from pg_settings where name = 'statement_timeout'").await.map_err(failed)?;
    if timeout != statement_timeout_ms.to_string() {
        return Err(DROPS_SETTINGS.to_owned());
    }
    if stays(&mut mine, &mut other).await.map_err(failed)? { Ok([mine, other]) } else { Err(CHANGES_SESSIONS.to_owned()) }
}

/// Where Postgres is to be found, without the account.
fn place(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => format!("{}, port {}", socket.display(), options.get_port()),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

/// Whether a session is still there after another connection began a transaction, for which a pooler
/// takes the session that is free.
async fn stays(mine: &mut PgConnection, other: &mut PgConnection) -> DbResult<bool> {
    let word = format!("{:016x}", rand::rng().random::<u64>());
    ask(mine, &format!("select set_config('headmark.session', '{word}', false)")).await?;
    other.execute(sqlx::raw_sql("begin")).await?;
    let look = ask(mine, "select coalesce(current_setting('headmark.session', true), '')");
    let Ok(found) = tokio::time::timeout(MAX_LOOK, look).await else { return Ok(false) };
    let found = found?;
    other.execute(sqlx::raw_sql("rollback")).await?;
    Ok(found == word)
}

/// The one text that a statement selects. Nothing is prepared, which a pooler may not take.
async fn ask(conn: &mut PgConnection, sql: &str) -> DbResult<String> {
    conn.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await?.try_get(0)
}
