//! A connection to Postgres that keeps what can wait and sends it together with what cannot, as one
//! text: many statements, one round trip.
//!
//! Each statement is prepared once for the connection, and executed by its name with its parameters
//! as literals. Within such a text every statement has a snapshot of its own, just as if it had
//! been sent alone, and the first error ends the text.
//!
//! Postgres writes the text of a statement that fails to its log, and shows it in
//! `pg_stat_activity`. So contents ([`Type::Content`](super::Type)) are not literals: a statement
//! with bound parameters goes ahead and leaves them in settings of the session, where the text
//! finds them. That costs one more round trip for a text that writes contents, however many.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection as _, Either, Executor as _, PgConnection, SqlSafeStr};

use super::answer::Answers;
use super::column::Column;
use super::dialect::{Bound, Statement};
use super::errors::DbResult;
use super::shards::Shards;
use super::{dialect, sent};

/// From how many bytes on what waits goes ahead of the commit. A batch of 1,000 increments has fewer, and
/// so stays one message.
const MUCH_BYTES: usize = 128 << 10;

/// A connection with what waits to be sent over it.
#[derive(Debug)]
pub struct PgConn {
    conn: PgConnection,
    answers: Answers,
    waiting: Waiting,
    /// The names of the statements that are prepared.
    prepared: HashMap<Prepared, u64>,
    /// Never given out twice, so that it does not matter what an error has left unprepared.
    next_name: u64,
    /// Where the rows are, on a distributed database.
    shards: Option<Arc<Shards>>,
    /// How long a statement of a transaction waits for a lock; None: as connections begin.
    lock_wait: Option<Duration>,
}

/// A statement by its address, and whether it counts its rows.
type Prepared = (usize, bool);

/// Statements that were not sent yet.
#[derive(Debug, Default)]
struct Waiting {
    text: String,
    /// What is wanted of each statement of the text.
    wanted: Vec<Wanted>,
    /// The contents that the text finds in settings of the session.
    bound: Vec<Bound>,
    begins: bool,
    /// How many statements of the text may take long: not those that begin, prepare or tidy up.
    executes: u32,
}

/// What is wanted of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// That it is done.
    Nothing,
    /// That it is prepared, under this name.
    Prepared(Prepared, u64),
    /// That it affects or finds so many rows: else it fails, and none after it is executed.
    All(u64),
    /// Its rows, and how many it affected.
    Rows,
    /// Those of a further shard.
    MoreRows,
}

impl Waiting {
    fn add(&mut self, wanted: Wanted) -> &mut String {
        if !self.text.is_empty() {
            self.text.push(';');
        }
        self.wanted.push(wanted);
        &mut self.text
    }

    /// Under which name the text prepares a statement, if it does.
    fn name_of(&self, statement: Prepared) -> Option<u64> {
        self.wanted.iter().find_map(|wanted| match wanted {
            Wanted::Prepared(of, name) if *of == statement => Some(*name),
            _ => None,
        })
    }
}

/// What Postgres says, and operators read in its log, where a statement affects or finds fewer rows
/// than it must.
const MISSED: &str = "another writer was faster, this one tries again";

/// The statement with a last parameter for how many rows it must affect. SQL has no statement that
/// fails on a condition, so this casts a text that is not a number; the count keeps the
/// planner from doing so ahead of time.
fn counting(statement: &'static Statement, sql: &str) -> String {
    let count = statement.columns().len() + 1;
    let returning = if sql.starts_with("select") { "" } else { " returning 1" };
    format!(
        "with affected as ({sql}{returning})
        select case when count(*) = ${count} then 1 else cast('{MISSED}: ' || count(*) as bigint) end from affected"
    )
}

/// The error of a statement that affected or found fewer rows than it must.
fn missed(error: sqlx::Error) -> sqlx::Error {
    let is_missed = error.as_database_error().is_some_and(|error| error.message().contains(MISSED));
    if is_missed { sqlx::Error::RowNotFound } else { error }
}

/// What one of the statements did whose rows were wanted.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) rows: Vec<PgRow>,
    pub(super) affected: u64,
}

impl PgConn {
    pub(super) fn new(conn: PgConnection, shards: Option<Arc<Shards>>) -> Self {
        let (answers, waiting) = (Answers::default(), Waiting::default());
        Self { conn, answers, waiting, prepared: HashMap::new(), next_name: 0, shards, lock_wait: None }
    }

    /// Its statements may take as long as they like.
    pub(super) fn be_patient(&mut self) {
        self.answers.be_patient();
    }

    /// The connection itself, if nothing waits, and a statement needs to be executed only once; and
    /// what has to wait for its answer.
    pub(super) fn at_once(&mut self) -> Option<(&mut PgConnection, &mut Answers)> {
        if self.waiting.text.is_empty() && self.shards.is_none() { Some((&mut self.conn, &mut self.answers)) } else { None }
    }

    pub(super) fn is_distributed(&self) -> bool {
        self.shards.is_some()
    }

    /// The connection itself, once everything is sent that waited; and what has to wait for its answer.
    pub(super) async fn sent(&mut self) -> DbResult<(&mut PgConnection, &mut Answers)> {
        if !self.waiting.text.is_empty() {
            self.send().await?;
        }
        Ok((&mut self.conn, &mut self.answers))
    }

    /// Executes a text that is no [`Statement`], once everything is sent that waited.
    pub(super) async fn execute(&mut self, text: impl SqlSafeStr + Send) -> DbResult<()> {
        let (conn, answers) = self.sent().await?;
        answers.of(1, conn.execute(text.into_sql_str())).await.map(|_| ())
    }

    /// Whether it still works.
    pub(super) async fn ping(&mut self) -> DbResult<()> {
        let (conn, answers) = self.sent().await?;
        answers.of(1, conn.ping()).await
    }

    /// Sets how long a statement waits for a lock.
    pub(super) async fn set_lock_timeout(&mut self, wait: Duration) -> DbResult<()> {
        let text = format!("set lock_timeout = {}", wait.as_millis());
        self.execute(AssertSqlSafe(text)).await?;
        self.lock_wait = Some(wait);
        Ok(())
    }

    pub(super) fn begin(&mut self) {
        self.waiting = Waiting { begins: true, ..Waiting::default() };
        self.waiting.add(Wanted::Nothing).push_str("begin");
    }

    /// Adds a statement to what waits: on a distributed database, for each shard that has rows of it.
    pub(super) fn add(&mut self, statement: &'static Statement, columns: &[Column], wanted: Wanted) {
        let owners = statement.owner().and_then(|at| columns.get(at));
        let split = match (&self.shards, owners) {
            (Some(shards), Some(Column::Int(owners))) => shards.split(owners),
            _ => None,
        };
        let Some(split) = split else { return self.add_one(statement, columns, wanted) };
        for (part, rows) in split.into_iter().enumerate() {
            let columns: Vec<_> = columns.iter().map(|column| column.pick(&rows)).collect();
            let wanted = match wanted {
                Wanted::All(_) => Wanted::All(rows.len().try_into().unwrap_or(u64::MAX)),
                Wanted::Rows if part > 0 => Wanted::MoreRows,
                wanted => wanted,
            };
            self.add_one(statement, &columns, wanted);
        }
    }

    fn add_one(&mut self, statement: &'static Statement, columns: &[Column], wanted: Wanted) {
        let prepared = (std::ptr::from_ref(statement).addr(), matches!(wanted, Wanted::All(_)));
        let preparing = || self.waiting.name_of(prepared);
        let name = self.prepared.get(&prepared).copied().or_else(preparing).unwrap_or_else(|| {
            let name = self.next_name;
            self.next_name += 1;
            let sql = statement.text(self.shards.is_some());
            let (types, sql) = match wanted {
                Wanted::All(_) => (dialect::postgres_types(statement, &["bigint"]), counting(statement, sql)),
                _ => (dialect::postgres_types(statement, &[]), sql.to_owned()),
            };
            // Writing to a String cannot fail.
            let _ = write!(self.waiting.add(Wanted::Prepared(prepared, name)), "prepare hm{name}{types} as {sql}");
            name
        });
        let before = self.waiting.bound.len();
        let mut bound = std::mem::take(&mut self.waiting.bound);
        self.waiting.executes += 1;
        let text = self.waiting.add(wanted);
        let _ = write!(text, "execute hm{name}");
        dialect::write_parameters(statement, columns, text, &mut bound);
        if let Wanted::All(rows) = wanted {
            text.truncate(text.len() - 1);
            let _ = write!(text, ",{rows})");
        }
        if bound.len() > before {
            self.waiting.add(Wanted::Nothing).push_str(&dialect::unbind(before, bound.len()));
        }
        self.waiting.bound = bound;
    }

    /// Sends all that waits, and returns what the statements did whose rows are wanted. An error is
    /// that of the first statement that failed; none after it was executed.
    pub(super) async fn send(&mut self) -> DbResult<Vec<Done>> {
        let waiting = std::mem::take(&mut self.waiting);
        let begins_on_workers = self.lock_wait.filter(|_| waiting.begins && self.shards.is_some());
        let Self { conn, prepared, .. } = self;
        self.answers.of(waiting.executes, send(conn, prepared, waiting, begins_on_workers)).await
    }

    /// Sends what waits, where it is much.
    pub(super) async fn send_much(&mut self) -> DbResult<()> {
        let bytes = self.waiting.text.len() + self.waiting.bound.iter().map(Bound::bytes).sum::<usize>();
        if bytes < MUCH_BYTES { Ok(()) } else { self.send().await.map(|_| ()) }
    }

    /// Sends what waits, and with it the commit.
    pub(super) async fn commit(&mut self) -> DbResult<()> {
        self.waiting.add(Wanted::Nothing).push_str("commit");
        self.send().await.map(|_| ())
    }

    /// Tells the other end that this is over.
    pub(super) async fn close(self) -> DbResult<()> {
        self.conn.close().await
    }

    /// Forgets what waits. A transaction that never began needs no more.
    pub(super) async fn rollback(&mut self) -> DbResult<()> {
        if std::mem::take(&mut self.waiting).begins {
            return Ok(());
        }
        self.execute("rollback").await
    }
}

/// Begins a transaction in which workers wait for locks only as long as the coordinator does. They
/// are told the whole text that has the setting in it, so it goes alone.
async fn begin_on_workers(conn: &mut PgConnection, wait: Duration) -> DbResult<()> {
    conn.execute("begin").await?;
    let text = format!("set local lock_timeout = {}", wait.as_millis());
    conn.execute(AssertSqlSafe(text)).await.map(|_| ())
}

/// Sends all that waits, and returns what the statements did whose rows are wanted. What was prepared is in `prepared`
/// then, also where a later statement has failed: no rollback takes it back.
/// Where workers are to be told how long to wait for locks, it begins with that.
async fn send(
    conn: &mut PgConnection,
    prepared: &mut HashMap<Prepared, u64>,
    waiting: Waiting,
    lock_wait: Option<Duration>,
) -> DbResult<Vec<Done>> {
    let Waiting { mut text, wanted, bound, .. } = waiting;
    if !bound.is_empty() {
        sent::sent(1);
        let (text, arguments) = dialect::bind(bound)?;
        sqlx::query_with(AssertSqlSafe(text), arguments).execute(&mut *conn).await?;
    }
    let mut wanted = wanted.into_iter();
    if let Some(wait) = lock_wait {
        begin_on_workers(conn, wait).await?;
        text.drain(..text.find(';').map_or(text.len(), |end| end + 1));
        wanted.next();
    }
    let (mut all, mut rows): (Vec<Done>, _) = (Vec::new(), Vec::new());
    let mut answers = conn.fetch_many(sqlx::raw_sql(AssertSqlSafe(text)));
    while let Some(answer) = answers.try_next().await.map_err(missed)? {
        match answer {
            Either::Right(row) => rows.push(row),
            // The end of a statement.
            Either::Left(result) => {
                let (rows, affected) = (std::mem::take(&mut rows), result.rows_affected());
                match wanted.next() {
                    Some(Wanted::Rows) => all.push(Done { rows, affected }),
                    Some(Wanted::MoreRows) => {
                        if let Some(done) = all.last_mut() {
                            done.rows.extend(rows);
                            done.affected += affected;
                        }
                    }
                    Some(Wanted::Prepared(statement, name)) => _ = prepared.insert(statement, name),
                    Some(Wanted::Nothing | Wanted::All(_)) | None => {}
                }
            }
        }
    }
    Ok(all)
}
