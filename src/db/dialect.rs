//! All that differs between SQLite and Postgres in the SQL of this program: where bulk parameters come from, and row locks.

use std::fmt::Write as _;
use std::sync::OnceLock;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{FromRow, Postgres, Sqlite};

/// The type of a parameter column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 64-bit integer.
    Int,
    /// Text, without NUL.
    Text,
}

/// One parameter column: a value for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Integers.
    Int(Vec<i64>),
    /// Texts.
    Text(Vec<String>),
}

/// A statement over a table of parameters, named `{rows}` in its text, whose columns are `columns`.
///
/// `{rows}` becomes `unnest($1::bigint[], …)` on Postgres and a select over `json_each($1)` on SQLite, where the whole table travels as
/// one JSON text. `{for update}` becomes a row lock on Postgres, and nothing on SQLite, whose one writer needs none.
#[derive(Debug)]
pub struct Statement {
    text: StatementText,
    columns: &'static [(&'static str, Type)],
    built: OnceLock<(String, String)>,
}

/// The text of a statement: one for both dialects, or one for each.
#[derive(Debug, Clone, Copy)]
pub enum StatementText {
    /// Both read it alike.
    Both(&'static str),
    /// What cannot be said alike.
    Each {
        /// For SQLite.
        sqlite: &'static str,
        /// For Postgres.
        postgres: &'static str,
    },
}

impl Statement {
    /// A statement that both dialects read alike, but for `{rows}` and `{for update}`.
    #[must_use]
    pub const fn new(text: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Both(text), columns, built: OnceLock::new() }
    }

    /// A statement that must be said differently.
    #[must_use]
    pub const fn each(sqlite: &'static str, postgres: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Each { sqlite, postgres }, columns, built: OnceLock::new() }
    }

    /// The parameter table: a name and a type for each column.
    #[must_use]
    pub fn columns(&self) -> &'static [(&'static str, Type)] {
        self.columns
    }

    pub(super) fn sqlite(&'static self) -> &'static str {
        &self.built().0
    }

    pub(super) fn postgres(&'static self) -> &'static str {
        &self.built().1
    }

    fn built(&'static self) -> &'static (String, String) {
        self.built.get_or_init(|| {
            let (sqlite, postgres) = match self.text {
                StatementText::Both(text) => (text, text),
                StatementText::Each { sqlite, postgres } => (sqlite, postgres),
            };
            (
                sqlite.replace("{rows}", &self.sqlite_rows()).replace("{for update}", ""),
                postgres.replace("{rows}", &self.postgres_rows()).replace("{for update}", "for update"),
            )
        })
    }

    fn sqlite_rows(&self) -> String {
        let mut columns = String::new();
        for (at, (name, _)) in self.columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = write!(columns, "{comma}value ->> {at} as {name}");
        }
        format!("(select {columns} from json_each($1))")
    }

    fn postgres_rows(&self) -> String {
        let (mut arrays, mut names) = (String::new(), String::new());
        for (at, (name, kind)) in self.columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let array = match kind {
                Type::Int => "bigint[]",
                Type::Text => "text[]",
            };
            let _ = write!(arrays, "{comma}${}::{array}", at + 1);
            let _ = write!(names, "{comma}{name}");
        }
        format!("(select * from unnest({arrays}) as parameters ({names}))")
    }
}

/// The parameter table as SQLite takes it: a JSON array of rows, each an array.
fn json_rows(columns: &[Column]) -> String {
    let rows = columns.iter().map(Column::len).max().unwrap_or(0);
    let mut json = String::with_capacity(rows * columns.len() * 12 + 2);
    json.push('[');
    for row in 0..rows {
        json.push_str(if row == 0 { "[" } else { ",[" });
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            column.write_json(row, &mut json);
        }
        json.push(']');
    }
    json.push(']');
    json
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    fn write_json(&self, row: usize, json: &mut String) {
        match self {
            Self::Int(values) => {
                let _ = write!(json, "{}", values.get(row).copied().unwrap_or_default());
            }
            Self::Text(values) => {
                let text = values.get(row).map_or("", String::as_str);
                json.push_str(&serde_json::Value::from(text).to_string());
            }
        }
    }
}

pub(super) fn sqlite_query(sql: &'static str, columns: &[Column]) -> Query<'static, Sqlite, SqliteArguments> {
    let query = sqlx::query(sql);
    if columns.is_empty() { query } else { query.bind(json_rows(columns)) }
}

pub(super) fn sqlite_query_as<T>(sql: &'static str, columns: &[Column]) -> QueryAs<'static, Sqlite, T, SqliteArguments>
where
    T: for<'r> FromRow<'r, SqliteRow>,
{
    let query = sqlx::query_as(sql);
    if columns.is_empty() { query } else { query.bind(json_rows(columns)) }
}

pub(super) fn postgres_query<'q>(sql: &'static str, columns: &'q [Column]) -> Query<'q, Postgres, PgArguments> {
    columns.iter().fold(sqlx::query(sql), |query, column| match column {
        Column::Int(values) => query.bind(values.as_slice()),
        Column::Text(values) => query.bind(values.as_slice()),
    })
}

pub(super) fn postgres_query_as<'q, T>(sql: &'static str, columns: &'q [Column]) -> QueryAs<'q, Postgres, T, PgArguments>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    columns.iter().fold(sqlx::query_as(sql), |query, column| match column {
        Column::Int(values) => query.bind(values.as_slice()),
        Column::Text(values) => query.bind(values.as_slice()),
    })
}
