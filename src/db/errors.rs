//! What an error of the database means for the work that met it: one answer, from which everybody
//! decides what to do.
//!
//! The table in `docs/subsystems/database.md` (Errors of the database) has every code by name; a
//! test reads it from there. To class a further code: a line in that table, and its place in
//! `of_postgres` or `of_sqlite`.

use crate::base::error::{Code, Fault, Problem};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// What a store function returns: the plain error of the driver, of which [`classify`] says what it
/// means.
pub type DbResult<T> = Result<T, sqlx::Error>;

/// What an error means. All but [`ErrorClass::Unknown`] say that the transaction changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Another transaction was in the way and is over: the same may succeed at once.
    Retry,
    /// Another transaction holds a lock, and still held it when the wait ended.
    Locked,
    /// It was too much for one transaction: too slow, or too large. Less at once may succeed.
    Split,
    /// The statement or its data are wrong: the same fails again.
    Refuse,
    /// The connection ended. If a commit was under way, nobody knows yet what became of it.
    Unknown,
    /// The database takes no work at the moment.
    Outage,
}

impl ErrorClass {
    /// Whether the same request may succeed later; if not, the error is a bug or bad data.
    #[must_use]
    pub fn may_pass(self) -> bool {
        self != Self::Refuse
    }
}

/// The code of a unique key that is there already, and what Postgres says of it.
const UNIQUE: &str = "23505";
const DUPLICATE: &str = "duplicate key value violates unique constraint";

/// What it says of a lock that is not freed in time, and of a statement that takes too long.
const LOCK_TIMEOUT: &str = "canceling statement due to lock timeout";
const STATEMENT_TIMEOUT: &str = "canceling statement due to statement timeout";

/// What the coordinator of Citus says of a worker that dies while it is at work, and of itself.
const LOST: [&str; 2] = ["server closed the connection unexpectedly", "postmaster was shut down"];

/// What it says of a file that may not grow, and where in it that is said: its messages may be in
/// another language.
const NO_ROOM: [&str; 2] = ["could not extend file", "could not write"];
const FILES: [&str; 3] = ["md.c", "fd.c", "buffile.c"];

/// What this error means.
#[must_use]
pub fn classify(error: &sqlx::Error) -> ErrorClass {
    match error {
        // The driver reports a connection that ends in the middle of an answer as a protocol error.
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => ErrorClass::Unknown,
        sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => ErrorClass::Outage,
        sqlx::Error::Database(database) => match (database.try_downcast_ref::<PgDatabaseError>(), database.code()) {
            (Some(error), _) if error.code() == "XX000" && error.severity() == PgSeverity::Error => {
                of_internal(error.message(), error.file())
            }
            (Some(error), _) => of_postgres(error.code(), matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)),
            (None, Some(code)) => code.parse().map_or(ErrorClass::Refuse, of_sqlite),
            (None, None) => ErrorClass::Refuse,
        },
        _ => ErrorClass::Refuse,
    }
}

/// What an error says to people. The driver's own words for an error of Postgres add a line of some source
/// file, or of a function.
#[must_use]
pub fn said(error: &sqlx::Error) -> String {
    let of_postgres = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    of_postgres.map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// Whether another transaction has just written a row of this table with the same key. A partition, or a
/// table of a worker, has a name that begins with the table's.
#[must_use]
pub fn is_duplicate(error: &sqlx::Error, table: &str) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    let Some(error) = error.try_downcast_ref::<PgDatabaseError>() else { return false };
    // Citus passes on what its workers say as a text alone.
    let constraint = error.constraint().filter(|_| error.code() == UNIQUE).or_else(|| duplicate_in(error.message()));
    constraint.and_then(|name| name.strip_prefix(table)).is_some_and(|rest| rest.starts_with('_'))
}

/// What follows the quote before the name of the constraint, where a message is of a key that is there.
fn duplicate_in(message: &str) -> Option<&str> {
    message.strip_prefix(DUPLICATE)?.strip_prefix(" \"")
}

/// An internal error, by what Postgres says and the source file where it says so: Citus passes on
/// some errors of its workers as such, and Postgres has no other code for a file that may not grow,
/// as where a quota is reached.
fn of_internal(message: &str, file: Option<&str>) -> ErrorClass {
    match message {
        // As a worker says it while rows are copied to it.
        _ if message.starts_with(DUPLICATE) => ErrorClass::Retry,
        _ if message.starts_with(LOCK_TIMEOUT) => ErrorClass::Locked,
        _ if message.starts_with(STATEMENT_TIMEOUT) => ErrorClass::Split,
        _ if NO_ROOM.iter().any(|no_room| message.starts_with(no_room)) => ErrorClass::Outage,
        _ if file.and_then(|file| file.rsplit('/').next()).is_some_and(|file| FILES.contains(&file)) => ErrorClass::Outage,
        _ if LOST.iter().any(|lost| message.starts_with(lost)) => ErrorClass::Unknown,
        _ => ErrorClass::Refuse,
    }
}

/// By SQLSTATE. An error that ends the connection (FATAL) may have come after a commit.
fn of_postgres(code: &str, ends_connection: bool) -> ErrorClass {
    match code {
        // Said to anyone who connects: starting up, too many connections, no such user or database.
        "57P03" | "53300" | "3D000" => ErrorClass::Outage,
        code if code.starts_with("28") => ErrorClass::Outage,
        _ if ends_connection => ErrorClass::Unknown,
        // Shut down, crashed, idle for too long; completion unknown.
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" | "25P04" | "40003" => ErrorClass::Unknown,
        code if code.starts_with("08") => ErrorClass::Unknown,
        // Deadlock and serialization failure; a key that another transaction has just written: the
        // next try sees it.
        UNIQUE => ErrorClass::Retry,
        code if code.starts_with("40") => ErrorClass::Retry,
        "55P03" => ErrorClass::Locked,
        // Took too long; no memory for it; temporary files or the statement itself too large.
        "57014" | "53200" | "53400" => ErrorClass::Split,
        code if code.starts_with("54") => ErrorClass::Split,
        // Read-only, as a standby is after a failover.
        "25006" => ErrorClass::Outage,
        // Disk full and other resources; the system's own input and output.
        code if code.starts_with("53") || code.starts_with("58") => ErrorClass::Outage,
        _ => ErrorClass::Refuse,
    }
}

/// What SQLite says of a write that the system refused, other than for a full disk.
const WRITE_REFUSED: u32 = 10 | 3 << 8;

/// By result code; the low byte of an extended one is the primary code.
fn of_sqlite(code: u32) -> ErrorClass {
    if code == WRITE_REFUSED {
        // The last thing that a commit writes to the log is what makes it one, so it is none.
        return ErrorClass::Outage;
    }
    match code & 0xff {
        // Busy, locked.
        5 | 6 => ErrorClass::Locked,
        // Out of memory, too big.
        7 | 18 => ErrorClass::Split,
        // An input or output error: a commit may have reached the file.
        10 => ErrorClass::Unknown,
        // Read-only, interrupted, disk full, cannot open.
        8 | 9 | 13 | 14 => ErrorClass::Outage,
        _ => ErrorClass::Refuse,
    }
}

impl Fault {
    /// Whether trying again later may work, because of the state that the store is in; else it is a
    /// bug or bad data.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Db(error) => classify(error).may_pass(),
            Self::Bug(_) => false,
        }
    }

    /// What the caller is told of it: nothing of the inside.
    #[must_use]
    pub fn problem(&self) -> Problem {
        if self.may_pass() {
            Problem::new(Code::StoreUnavailable, "A store did not respond. Nothing was changed. Try again shortly.")
        } else {
            Problem::new(Code::InternalError, "The server logged the error with the X-Request-Id of this request.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = include_str!("../../docs/subsystems/database.md");

    fn class(name: &str) -> ErrorClass {
        match name {
            "retry" => ErrorClass::Retry,
            "locked" => ErrorClass::Locked,
            "split" => ErrorClass::Split,
            "refuse" => ErrorClass::Refuse,
            "unknown" => ErrorClass::Unknown,
            "outage" => ErrorClass::Outage,
            other => panic!("the table has a class {other}"),
        }
    }

    /// The rows of the table: class, codes of Postgres, codes of SQLite.
    fn table() -> Vec<(ErrorClass, Vec<String>, Vec<u32>)> {
        let (_, section) = DOCS.split_once("## Errors of the database").expect("the section");
        let rows = section.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).take_while(|line| line.starts_with('|'));
        let codes = |cached_head: &str| cached_head.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        rows.map(|row| {
            let cached_heads: Vec<&str> = row.split('|').map(str::trim).collect();
            (class(cached_heads[1]), codes(cached_heads[2]), codes(cached_heads[3]).iter().map(|code| code.parse().unwrap()).collect())
        })
        .collect()
    }

    #[test]
    fn every_code_has_the_class_of_the_table_in_the_docs() {
        let table = table();
        assert_eq!(table.len(), 6, "a row for each class");
        for (class, postgres, sqlite) in table {
            for code in postgres {
                // A class of codes (`08…`) goes by its first two characters.
                let code = code.replace('…', "000");
                assert_eq!(of_postgres(&code, false), class, "{code}");
            }
            for code in sqlite {
                assert_eq!(of_sqlite(code), class, "{code}");
                let extended = if code > 0xff { code } else { code | 0x400 };
                assert_eq!(of_sqlite(extended), class, "{code}, extended");
            }
        }
    }

    #[test]
    fn what_ends_the_connection_leaves_a_commit_in_doubt() {
        for code in ["57P01", "57P02", "25P03", "25P04", "57P05", "XX000", "57014", "40001", "53200"] {
            assert_eq!(of_postgres(code, true), ErrorClass::Unknown, "{code}");
        }
        for code in ["57P03", "53300", "28P01", "3D000"] {
            assert_eq!(of_postgres(code, true), ErrorClass::Outage, "{code} comes before any statement");
        }
    }

    #[test]
    fn what_citus_passes_on_has_the_class_of_what_it_says() {
        let lost = "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally";
        assert_eq!(of_internal(lost, None), ErrorClass::Unknown);
        assert_eq!(of_internal("postmaster was shut down, exiting", None), ErrorClass::Unknown);
        let duplicate = "duplicate key value violates unique constraint \"users_pkey_102008\"";
        assert_eq!((of_internal(duplicate, None), duplicate_in(duplicate)), (ErrorClass::Retry, Some("users_pkey_102008\"")));
        assert_eq!(duplicate_in(LOCK_TIMEOUT), None);
        assert_eq!(of_internal("canceling statement due to lock timeout", None), ErrorClass::Locked);
        assert_eq!(of_internal("canceling statement due to statement timeout", None), ErrorClass::Split);
        assert_eq!(of_internal("cache lookup failed", None), ErrorClass::Refuse);
    }

    #[test]
    fn a_file_that_may_not_grow_is_an_outage() {
        assert_eq!(of_internal("could not extend file \"base/5/16400\": File too large", None), ErrorClass::Outage);
        assert_eq!(of_internal("could not write block 3 in file \"base/5/16400\": Disk quota exceeded", None), ErrorClass::Outage);
        let german = "konnte Datei \"base/5/16400\" nicht erweitern: Datei zu groß";
        assert_eq!(of_internal(german, Some("md.c")), ErrorClass::Outage);
        assert_eq!(of_internal("relation 16400 ist nicht da", Some("relcache.c")), ErrorClass::Refuse);
    }

    #[test]
    fn the_drivers_own_errors_have_a_class() {
        let io = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(classify(&io), ErrorClass::Unknown);
        assert_eq!(classify(&sqlx::Error::Protocol("ended".to_owned())), ErrorClass::Unknown);
        assert_eq!(classify(&sqlx::Error::WorkerCrashed), ErrorClass::Unknown);
        assert_eq!(classify(&sqlx::Error::PoolTimedOut), ErrorClass::Outage);
        assert_eq!(classify(&sqlx::Error::PoolClosed), ErrorClass::Outage);
        assert_eq!(classify(&sqlx::Error::RowNotFound), ErrorClass::Refuse);
        assert_eq!(classify(&sqlx::Error::ColumnNotFound("a".to_owned())), ErrorClass::Refuse);
    }
}
