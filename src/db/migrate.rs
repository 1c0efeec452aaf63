//! Brings the schema up to date, also beside nodes that serve.
//!
//! On Postgres a migration waits for a lock only for a moment and is then tried again: what waits
//! for a table's strongest lock holds up everybody who comes after it. An index on a table that is
//! in use is made concurrently, in a migration of its own:
//!
//! ```sql
//! -- no-transaction
//! create index concurrently if not exists marks_name on marks (name)
//! ```
//!
//! To add a migration: see `CONTRIBUTING.md` (A migration). A test refuses an
//! index that would stop writes.

use std::time::Duration;

use sqlx::migrate::{Migrate as _, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqlSafeStr as _, SqliteConnection};
use tokio::time::Instant;

use super::first_answer::first_answer;
use super::index::{self, ConcurrentIndex};
use super::large_tables::TABLES;
use super::locks::TURN;
use super::{Db, DbResult, ErrorClass, classify, watched};

/// A migration: its version, what it is, and its SQL.
type File = (i64, &'static str, &'static str);

// `SQLITE` and `POSTGRES`, the files of `migrations/` by version.
include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// What a migration begins with that cannot run in a transaction.
const NO_TRANSACTION: &str = "-- no-transaction";

fn migrator(files: &[File]) -> Migrator {
    let migration = |(version, description, sql): &File| {
        let no_transaction = sql.starts_with(NO_TRANSACTION);
        Migration::new(*version, (*description).into(), MigrationType::Simple, sql.into_sql_str(), no_transaction)
    };
    Migrator::with_migrations(files.iter().map(migration).collect())
}

/// The last migration that this program knows.
pub(super) fn last_version(is_postgres: bool) -> i64 {
    let files = if is_postgres { POSTGRES } else { SQLITE };
    files.iter().map(|(version, ..)| *version).max().unwrap_or(0)
}

/// The pause between two looks whether it is this node's turn.
const TURN_PAUSE: Duration = Duration::from_millis(100);

/// How long a migration waits for a lock, and others behind it, before it gives way.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// How long it gives way.
const LOCK_PAUSE: Duration = Duration::from_secs(2);

/// How long it is tried.
const MAX_LOCKED: Duration = Duration::from_secs(300);

impl Db {
    /// Brings the schema up to date. A schema that a newer version has migrated further is left as
    /// it is: migrations only add, so that old and new nodes run side by side during an upgrade;
    /// the changelog names the versions where that does not hold. Safe to call from several nodes
    /// at once (an advisory lock on Postgres; the data folder's lock on SQLite).
    ///
    /// # Errors
    /// When the database is out of reach, a migration fails, or a lock is held for too long.
    pub async fn migrate(&self) -> Result<(), MigrateError> {
        self.migrate_with(match self {
            Self::Sqlite { .. } => migrator(SQLITE),
            Self::Postgres { .. } => migrator(POSTGRES),
        })
        .await
    }

    /// The same by these migrations.
    ///
    /// # Errors
    /// As [`Db::migrate`].
    pub async fn migrate_with(&self, mut migrations: Migrator) -> Result<(), MigrateError> {
        match self {
            Self::Sqlite { options, .. } => {
                migrations.set_ignore_missing(true);
                let mut conn = SqliteConnection::connect_with(options).await?;
                migrations.run_direct(None, &mut conn, false).await
            }
            Self::Postgres { options, .. } => {
                let mut conn = connect(options).await?;
                let outcome = migrate_postgres(&mut conn, migrations).await;
                // The lock of this node's turn ends with it.
                let _closed = conn.close().await;
                outcome
            }
        }
    }
}

/// A connection for what changes the schema. Its session holds locks that keep other nodes waiting,
/// so Postgres must notice when nobody is at its other end.
pub(super) async fn connect(options: &PgConnectOptions) -> DbResult<PgConnection> {
    let opened = async {
        let mut conn = PgConnection::connect_with(&watched(options)).await?;
        // A migration may take longer than any request; and the notice that a table is there already is
        // no news.
        conn.execute("set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; set client_min_messages = warning").await?;
        Ok::<_, sqlx::Error>(conn)
    };
    first_answer(opened).await
}

/// Brings the schema up to date over this connection of [`connect`], which keeps the turn.
pub(super) async fn up_to_date(conn: &mut PgConnection) -> Result<(), MigrateError> {
    migrate_postgres(conn, migrator(POSTGRES)).await?;
    conn.execute("reset lock_timeout").await.map(drop).map_err(MigrateError::from)
}

async fn migrate_postgres(conn: &mut PgConnection, mut migrations: Migrator) -> Result<(), MigrateError> {
    migrations.set_ignore_missing(true);
    // The driver's own lock is waited for inside a statement, and an index that is made concurrently
    // waits for all statements: each would wait for the other.
    migrations.set_locking(false);
    wait_for_turn(conn).await?;
    let mut tried = Tried::default();
    loop {
        match apply(conn, &migrations).await {
            Err(error) if is_in_the_way(&error) && tried.again(version_of(&error), Instant::now()) => {
                tracing::warn!(%error, "a migration waits for a lock that another transaction holds; trying again");
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Since when which migration is tried. Those before it may have taken their time.
#[derive(Debug, Default)]
struct Tried(Option<(Option<i64>, Instant)>);

impl Tried {
    /// Whether it is to be tried again.
    fn again(&mut self, version: Option<i64>, now: Instant) -> bool {
        let since = match self.0 {
            Some((before, since)) if before == version => since,
            _ => now,
        };
        self.0 = Some((version, since));
        now - since < MAX_LOCKED
    }
}

/// Which migration failed, if one did.
fn version_of(error: &MigrateError) -> Option<i64> {
    match error {
        MigrateError::ExecuteMigration(_, version) => Some(*version),
        _ => None,
    }
}

/// Waits outside of any statement, for as long as another node takes. Each look has an end.
pub(super) async fn wait_for_turn(conn: &mut PgConnection) -> DbResult<()> {
    let mut told = false;
    loop {
        if first_answer(takes_turn(conn)).await? {
            return Ok(());
        }
        if !std::mem::replace(&mut told, true) {
            tracing::warn!("another node migrates the database; waiting for it");
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
}

async fn takes_turn(conn: &mut PgConnection) -> DbResult<bool> {
    let (mine,): (bool,) = sqlx::query_as("select pg_try_advisory_lock($1)").bind(TURN).fetch_one(conn).await?;
    Ok(mine)
}

async fn apply(conn: &mut PgConnection, migrations: &Migrator) -> Result<(), MigrateError> {
    conn.ensure_migrations_table(&migrations.table_name).await?;
    let applied = conn.list_applied_migrations(&migrations.table_name).await?;
    let is_new = |migration: &&Migration| applied.iter().all(|old| old.version != migration.version);
    if migrations.iter().any(|migration| is_new(&migration)) {
        refuse_moving(conn).await?;
    }
    for migration in migrations.iter().filter(is_new) {
        // An index that is made concurrently waits for transactions that run, and holds up nobody.
        let wait = if migration.no_tx { Duration::ZERO } else { LOCK_TIMEOUT };
        conn.execute(AssertSqlSafe(format!("set lock_timeout = {}", wait.as_millis()))).await?;
        let is_made = match concurrent_index(migration) {
            Some(index) => {
                make_on_partitions(conn, &index).await.map_err(|error| MigrateError::ExecuteMigration(error, migration.version))?
            }
            None => false,
        };
        migrations.run_direct(Some(migration.version), conn, is_made).await?;
    }
    migrations.run_direct(None, conn, false).await
}

/// One of these tables whose rows are being moved to another number of partitions: nothing has its name meanwhile.
/// The schema is found by its name. A cast of the name to `regnamespace` would read it as SQL does:
/// without quotes, so in lower case.
const MOVING: &str = "select t.name
    from unnest($1::text[]) t (name)
    join pg_namespace s on s.nspname = current_schema()
    where exists (select 1 from pg_class o where o.relname = t.name || '_old' and o.relnamespace = s.oid)
        and exists (select 1 from pg_class n where n.relname = t.name || '_new' and n.relnamespace = s.oid)
        and not exists (select 1 from pg_class w where w.relname = t.name and w.relnamespace = s.oid)
    limit 1";

/// Refuses to migrate while the rows of a table are being moved: only the version that began it knows its columns.
async fn refuse_moving(conn: &mut PgConnection) -> Result<(), MigrateError> {
    let tables: Vec<_> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    let moving: Option<(String,)> = sqlx::query_as(MOVING).bind(tables).fetch_optional(conn).await?;
    let Some((table,)) = moving else { return Ok(()) };
    let why = format!(
        "the rows of {table} are on their way to other partitions: with the version that began it, run `headmark migrate --repartition` to its end first"
    );
    Err(MigrateError::Execute(sqlx::Error::Configuration(why.into())))
}

/// Makes the index where its table is partitioned; returns whether it is.
async fn make_on_partitions(conn: &mut PgConnection, made: &ConcurrentIndex) -> DbResult<bool> {
    let partitions = index::partitions(conn, &made.table).await?;
    if partitions.is_empty() {
        index::drop_unfinished(conn, &made.name).await?;
        return Ok(false);
    }
    made.make(conn, &partitions, LOCK_TIMEOUT).await?;
    Ok(true)
}

fn is_in_the_way(error: &MigrateError) -> bool {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            matches!(classify(error), ErrorClass::Locked | ErrorClass::Retry)
        }
        _ => false,
    }
}

/// The text of a migration without comments.
fn without_comments(migration: &Migration) -> String {
    migration.sql.as_str().lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| c.is_whitespace() || c == '(' || c == ';').filter(|word| !word.is_empty()).collect()
}

/// The index that a migration makes concurrently.
fn concurrent_index(migration: &Migration) -> Option<ConcurrentIndex> {
    let text = without_comments(migration);
    let at = text.to_ascii_lowercase().find("concurrently")?;
    let (before, after) = text.split_at_checked(at)?;
    let is_unique = words(before).iter().any(|word| word.eq_ignore_ascii_case("unique"));
    let is_name = |word: &&str| !["concurrently", "if", "not", "exists"].contains(&word.to_ascii_lowercase().as_str());
    let names: Vec<_> = words(after).into_iter().filter(is_name).collect();
    let (&name, &table) = (names.first()?, names.get(2)?);
    let on = after.split_once(name)?.1.trim_start();
    let rest = on.get(2..)?.trim_start().strip_prefix(table)?.trim().trim_end_matches(';');
    let kind = if is_unique { "unique index" } else { "index" };
    Some(ConcurrentIndex { kind, name: name.to_owned(), table: table.to_owned(), rest: rest.to_owned() })
}

/// From this version on migrations must pass [`check`]; those before it are from before the first
/// release.
#[cfg(test)]
const FIRST_CHECKED: i64 = 21;

/// Why a migration would stop the writes of nodes that serve.
#[cfg(test)]
fn check(migration: &Migration) -> Result<(), String> {
    let text = without_comments(migration).to_ascii_lowercase();
    let words = words(&text);
    let made: Vec<&str> = words.windows(3).filter(|three| three[..2] == ["create", "table"]).map(|three| three[2]).collect();
    let mut indexes = 0;
    for (at, word) in words.iter().enumerate().filter(|(_, word)| **word == "index") {
        if !matches!(words.get(at.wrapping_sub(1)), Some(&"create" | &"unique")) {
            continue;
        }
        indexes += 1;
        let table = words[at..].iter().skip_while(|word| **word != "on").nth(1).copied().unwrap_or_default();
        let concurrent = words.get(at + 1..at + 5) == Some(&["concurrently", "if", "not", "exists"][..]);
        let harmless = made.contains(&table) || (concurrent && migration.no_tx);
        if !harmless {
            return Err(format!(
                "{}: {word} on {table}: begin with `-- no-transaction`, use `concurrently if not exists`",
                migration.version
            ));
        }
    }
    let creates = words.iter().filter(|word| ["create", "alter", "insert", "update", "delete", "drop"].contains(word)).count();
    if migration.no_tx && (indexes, creates) != (1, 1) {
        return Err(format!("{}: a migration without transaction is one index alone", migration.version));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(sql: &'static str) -> Migration {
        migrator(&[(1, "test", sql)]).iter().next().unwrap().clone()
    }

    #[test]
    fn an_index_of_a_table_in_use_is_made_concurrently() {
        let passes = |sql| check(&migration(sql)).is_ok();
        assert!(passes("create table a (b bigint); create index a_b on a (b);"), "nobody uses a new table");
        assert!(passes("-- no-transaction\ncreate index concurrently if not exists a_b on a (b)"));
        assert!(passes("-- no-transaction\ncreate unique index concurrently if not exists a_b on a(b);"));
        assert!(passes("alter table a add column b bigint not null default 0;"));
        assert!(!passes("create index a_b on a (b);"));
        assert!(!passes("create unique index a_b on a (b);"));
        assert!(!passes("create index concurrently if not exists a_b on a (b)"), "not in a transaction");
        assert!(!passes("-- no-transaction\ncreate index concurrently a_b on a (b)"), "the second try finds the first one's");
        assert!(!passes("-- no-transaction\ncreate index concurrently if not exists a_b on a (b); alter table a add c bigint"));
        assert!(!passes("-- no-transaction\nalter table a add c bigint"));
    }

    #[test]
    fn an_index_is_found() {
        let said =
            |sql| concurrent_index(&migration(sql)).map(|index| format!("{} {} {} {}", index.kind, index.name, index.table, index.rest));
        let plain = "-- no-transaction\n-- why a is\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a_b on a (b)";
        assert_eq!(said(plain).as_deref(), Some("index a_b a (b)"));
        let unique = "-- no-transaction\ncreate unique index concurrently if not exists data_b on data(a, b)\n    where data > 0;";
        assert_eq!(said(unique).as_deref(), Some("unique index data_b data (a, b)\n    where data > 0"));
        assert_eq!(said("-- concurrently x\ncreate index a_b on a (b)"), None);
    }

    #[test]
    fn every_migration_lets_nodes_write() {
        for migration in migrator(POSTGRES).iter().filter(|migration| migration.version >= FIRST_CHECKED) {
            check(migration).unwrap();
        }
    }

    #[test]
    fn both_engines_have_the_same_migrations() {
        let names = |files: &[File]| files.iter().map(|(version, name, _)| (*version, (*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(names(SQLITE), names(POSTGRES));
        assert_eq!(names(SQLITE).first(), Some(&(1, "frame".to_owned())));
    }
}
