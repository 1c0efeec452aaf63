//! All that differs between SQLite and Postgres in the SQL of this program: where bulk parameters
//! come from, and row locks.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::errors::DbResult;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, FromRow, Postgres, Sqlite};

/// The type of a parameter column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 64-bit integer.
    Int,
    /// Text, without NUL.
    Text,
    /// Text that people wrote to each other, as a [`Column::Text`]. It never stands in the text of
    /// a statement, which Postgres logs when the statement fails.
    Content,
    /// Any bytes.
    Bytes,
}

/// One parameter column: a value for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Integers.
    Int(Vec<i64>),
    /// Texts.
    Text(Vec<String>),
    /// Strings of bytes.
    Bytes(Vec<Vec<u8>>),
}

/// A statement over a table of parameters, named `{rows}` in its text, whose columns are `columns`
/// (or over a single row, see [`Statement::one`]).
///
/// `{rows}` becomes `unnest($1::bigint[], …)` on Postgres and a select over `json_each($1)` on
/// SQLite, where the whole table travels as one JSON text, with bytes in hexadecimal.
/// `{for update}` becomes a row lock on Postgres, and nothing on SQLite, whose one writer needs
/// none.
#[derive(Debug)]
pub struct Statement {
    text: StatementText,
    columns: &'static [(&'static str, Type)],
    scalar: bool,
    built: OnceLock<Built>,
}

/// The finished texts of a statement.
#[derive(Debug)]
struct Built {
    sqlite: String,
    postgres: String,
    /// For [`Statement::insert`]: how Postgres takes many rows at once.
    copy: Option<String>,
}

/// The text of a statement: one for both dialects, or one for each.
#[derive(Debug, Clone)]
pub enum StatementText {
    /// Both read it alike.
    Both(&'static str),
    /// The same, put together at the start.
    Composed(String),
    /// What cannot be said alike.
    Each {
        /// For SQLite.
        sqlite: &'static str,
        /// For Postgres.
        postgres: &'static str,
    },
    /// All of `{rows}` as new rows of this table, whose columns have the names of the parameters.
    Insert(&'static str),
}

impl Statement {
    /// A statement that both dialects read alike, but for `{rows}` and `{for update}`.
    #[must_use]
    pub const fn new(text: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Both(text), columns, scalar: false, built: OnceLock::new() }
    }

    /// A statement whose text is put together at the start.
    #[must_use]
    pub const fn composed(text: String, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Composed(text), columns, scalar: false, built: OnceLock::new() }
    }

    /// A statement over one row of parameters, which stand in its text as `$1`, `$2`, … in the
    /// order of `columns`: for lists, whose order and limit the planners follow along an index only
    /// when they are plain parameters.
    #[must_use]
    pub const fn one(text: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Both(text), columns, scalar: true, built: OnceLock::new() }
    }

    /// A statement that must be said differently.
    #[must_use]
    pub const fn each(sqlite: &'static str, postgres: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Each { sqlite, postgres }, columns, scalar: false, built: OnceLock::new() }
    }

    /// New rows of a table, whose columns have the names of the parameters: by `insert`, or where
    /// they are many and [`Conn::insert`] is used, by `copy` on Postgres.
    ///
    /// [`Conn::insert`]: super::Conn::insert
    #[must_use]
    pub const fn insert(table: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Insert(table), columns, scalar: false, built: OnceLock::new() }
    }

    /// The parameter table: a name and a type for each column.
    #[must_use]
    pub fn columns(&self) -> &'static [(&'static str, Type)] {
        self.columns
    }

    pub(super) fn sqlite(&'static self) -> &'static str {
        &self.built().sqlite
    }

    pub(super) fn postgres(&'static self) -> &'static str {
        &self.built().postgres
    }

    pub(super) fn copy(&'static self) -> Option<&'static str> {
        self.built().copy.as_deref()
    }

    fn built(&'static self) -> &'static Built {
        self.built.get_or_init(|| {
            let inserted;
            let (sqlite, postgres, copy) = match &self.text {
                StatementText::Both(text) => (*text, *text, None),
                StatementText::Composed(text) => (text.as_str(), text.as_str(), None),
                StatementText::Each { sqlite, postgres } => (*sqlite, *postgres, None),
                StatementText::Insert(table) => {
                    let names: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
                    let names = names.join(", ");
                    inserted = format!("insert into {table} ({names}) select {names} from {{rows}} r where true");
                    (inserted.as_str(), inserted.as_str(), Some(format!("copy {table} ({names}) from stdin (format binary)")))
                }
            };
            Built {
                sqlite: sqlite.replace("{rows}", &self.sqlite_rows()).replace("{for update}", ""),
                postgres: postgres.replace("{rows}", &self.postgres_rows()).replace("{for update}", "for update"),
                copy,
            }
        })
    }

    fn sqlite_rows(&self) -> String {
        let mut columns = String::new();
        for (at, (name, kind)) in self.columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = match kind {
                Type::Int | Type::Text | Type::Content => write!(columns, "{comma}value ->> {at} as {name}"),
                Type::Bytes => write!(columns, "{comma}unhex(value ->> {at}) as {name}"),
            };
        }
        format!("(select {columns} from json_each($1))")
    }

    fn postgres_rows(&self) -> String {
        let (mut arrays, mut names) = (String::new(), String::new());
        for (at, (name, kind)) in self.columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let array = match kind {
                Type::Int => "bigint[]",
                Type::Text | Type::Content => "text[]",
                Type::Bytes => "bytea[]",
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
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::Bytes(values) => values.len(),
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
            Self::Bytes(values) => {
                json.push('"');
                push_hex(values.get(row).map_or(&[], Vec::as_slice), json);
                json.push('"');
            }
        }
    }
}

fn push_hex(bytes: &[u8], text: &mut String) {
    text.extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit));
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

impl Column {
    fn write_copy(&self, row: usize, bytes: &mut Vec<u8>) -> Result<(), BoxDynError> {
        match self {
            Self::Int(values) => {
                bytes.extend_from_slice(&8_i32.to_be_bytes());
                bytes.extend_from_slice(&values.get(row).copied().unwrap_or_default().to_be_bytes());
            }
            Self::Text(values) => {
                let text = values.get(row).map_or("", String::as_str);
                bytes.extend_from_slice(&i32::try_from(text.len())?.to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
            Self::Bytes(values) => {
                let value = values.get(row).map_or(&[][..], |value| value);
                bytes.extend_from_slice(&i32::try_from(value.len())?.to_be_bytes());
                bytes.extend_from_slice(value);
            }
        }
        Ok(())
    }
}

/// How a stream of rows begins in the binary format of `copy`: the signature, no flags, no
/// extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// How it ends.
const COPY_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();

/// Rows in the binary format of `copy`: each field is its length, and a number with its highest
/// byte first, or a text or bytes as they are.
pub(super) fn copy_rows(columns: &[Column]) -> Result<Vec<u8>, BoxDynError> {
    let fields = i16::try_from(columns.len())?.to_be_bytes();
    let rows = columns.first().map_or(0, Column::len);
    if columns.iter().any(|column| column.len() != rows) {
        return Err("the columns differ in length".into());
    }
    let mut bytes = Vec::with_capacity(COPY_HEADER.len() + rows * (2 + 12 * columns.len()) + COPY_TRAILER.len());
    bytes.extend_from_slice(COPY_HEADER);
    for row in 0..rows {
        bytes.extend_from_slice(&fields);
        for column in columns {
            column.write_copy(row, &mut bytes)?;
        }
    }
    bytes.extend_from_slice(&COPY_TRAILER);
    Ok(bytes)
}

fn sqlite_arguments(statement: &'static Statement, columns: &[Column]) -> Result<SqliteArguments, BoxDynError> {
    let mut arguments = SqliteArguments::default();
    if !statement.scalar && !columns.is_empty() {
        arguments.add(json_rows(columns))?;
        return Ok(arguments);
    }
    for column in columns {
        match column {
            Column::Int(values) => arguments.add(values.first().copied())?,
            Column::Text(values) => arguments.add(values.first().cloned())?,
            Column::Bytes(values) => arguments.add(values.first().cloned())?,
        }
    }
    Ok(arguments)
}

fn postgres_arguments(statement: &'static Statement, columns: &[Column]) -> Result<PgArguments, BoxDynError> {
    let mut arguments = PgArguments::default();
    for column in columns {
        match column {
            Column::Int(values) if statement.scalar => arguments.add(values.first().copied())?,
            Column::Text(values) if statement.scalar => arguments.add(values.first())?,
            Column::Bytes(values) if statement.scalar => arguments.add(values.first())?,
            Column::Int(values) => arguments.add(values.as_slice())?,
            Column::Text(values) => arguments.add(values.as_slice())?,
            Column::Bytes(values) => arguments.add(values.as_slice())?,
        }
    }
    Ok(arguments)
}

pub(super) fn sqlite_query(statement: &'static Statement, columns: &[Column]) -> DbResult<Query<'static, Sqlite, SqliteArguments>> {
    Ok(sqlx::query_with(statement.sqlite(), sqlite_arguments(statement, columns).map_err(sqlx::Error::Encode)?))
}

pub(super) fn sqlite_query_as<T>(
    statement: &'static Statement,
    columns: &[Column],
) -> DbResult<QueryAs<'static, Sqlite, T, SqliteArguments>>
where
    T: for<'r> FromRow<'r, SqliteRow>,
{
    Ok(sqlx::query_as_with(statement.sqlite(), sqlite_arguments(statement, columns).map_err(sqlx::Error::Encode)?))
}

pub(super) fn postgres_query(statement: &'static Statement, columns: &[Column]) -> DbResult<Query<'static, Postgres, PgArguments>> {
    Ok(sqlx::query_with(statement.postgres(), postgres_arguments(statement, columns).map_err(sqlx::Error::Encode)?))
}

pub(super) fn postgres_query_as<T>(
    statement: &'static Statement,
    columns: &[Column],
) -> DbResult<QueryAs<'static, Postgres, T, PgArguments>>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    Ok(sqlx::query_as_with(statement.postgres(), postgres_arguments(statement, columns).map_err(sqlx::Error::Encode)?))
}

/// The types of a statement's parameters, as `prepare` takes them.
pub(super) fn postgres_types(statement: &'static Statement) -> String {
    let name = |kind: &Type| match (kind, statement.scalar) {
        (Type::Int, false) => "bigint[]",
        (Type::Text | Type::Content, false) => "text[]",
        (Type::Int, true) => "bigint",
        (Type::Text | Type::Content, true) => "text",
        (Type::Bytes, false) => "bytea[]",
        (Type::Bytes, true) => "bytea",
    };
    let names: Vec<_> = statement.columns.iter().map(|(_, kind)| name(kind)).collect();
    if names.is_empty() { String::new() } else { format!("({})", names.join(", ")) }
}

/// The parameters as `execute` takes them: literals, which are read with
/// `standard_conforming_strings`, as every connection sets it. Contents are left to `bound`, and
/// the text has where they are found once [`bind`] was sent.
pub(super) fn write_parameters(statement: &'static Statement, columns: &[Column], text: &mut String, bound: &mut Vec<Bound>) {
    for (at, column) in columns.iter().enumerate() {
        text.push(if at == 0 { '(' } else { ',' });
        match (column, statement.columns.get(at)) {
            (Column::Text(values), Some((_, Type::Content))) => {
                let _ = write!(text, "current_setting('{}')", bound_name(bound.len()));
                text.push_str(if statement.scalar { "" } else { "::text[]" });
                bound.push(Bound { values: values.clone(), scalar: statement.scalar });
            }
            _ => write_literal(statement, column, text),
        }
    }
    if !columns.is_empty() {
        text.push(')');
    }
}

/// Contents that go to Postgres as bound parameters, ahead of the text that uses them.
#[derive(Debug)]
pub(super) struct Bound {
    values: Vec<String>,
    scalar: bool,
}

/// The setting of the session that holds them on the way.
fn bound_name(at: usize) -> String {
    format!("headmark.bound_{at}")
}

/// The statement that puts contents where a text finds them.
pub(super) fn bind(bound: Vec<Bound>) -> DbResult<(String, PgArguments)> {
    let (mut text, mut arguments) = (String::from("select "), PgArguments::default());
    for (at, Bound { values, scalar }) in bound.into_iter().enumerate() {
        let (comma, name, cast) = (if at == 0 { "" } else { ", " }, bound_name(at), if scalar { "" } else { "[]::text" });
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}set_config('{name}', ${}::text{cast}, false)", at + 1);
        if scalar { arguments.add(values.into_iter().next()) } else { arguments.add(values) }.map_err(sqlx::Error::Encode)?;
    }
    Ok((text, arguments))
}

/// The statement that forgets contents from number `from` up to `to`, so that the session does not
/// hold them longer than it must.
pub(super) fn unbind(from: usize, to: usize) -> String {
    let forget = (from..to).map(|at| format!("set_config('{}', '', false)", bound_name(at)));
    format!("select {}", forget.collect::<Vec<_>>().join(", "))
}

fn write_literal(statement: &'static Statement, column: &Column, text: &mut String) {
    text.push('\'');
    match column {
        // Writing to a String cannot fail.
        Column::Int(values) if statement.scalar => {
            let _ = write!(text, "{}", values.first().copied().unwrap_or_default());
        }
        Column::Text(values) if statement.scalar => push_quoted(values.first().map_or("", String::as_str), false, text),
        Column::Int(values) => {
            for (row, value) in values.iter().enumerate() {
                let _ = write!(text, "{}{value}", if row == 0 { '{' } else { ',' });
            }
            text.push_str(if values.is_empty() { "{}" } else { "}" });
        }
        Column::Bytes(values) if statement.scalar => {
            text.push_str("\\x");
            push_hex(values.first().map_or(&[], Vec::as_slice), text);
        }
        Column::Bytes(values) => {
            for (row, value) in values.iter().enumerate() {
                text.push_str(if row == 0 { "{\"\\\\x" } else { ",\"\\\\x" });
                push_hex(value, text);
                text.push('"');
            }
            text.push_str(if values.is_empty() { "{}" } else { "}" });
        }
        Column::Text(values) => {
            for (row, value) in values.iter().enumerate() {
                text.push_str(if row == 0 { "{\"" } else { ",\"" });
                push_quoted(value, true, text);
                text.push('"');
            }
            text.push_str(if values.is_empty() { "{}" } else { "}" });
        }
    }
    text.push('\'');
}

/// The inside of a literal, and of an element of an array in one.
fn push_quoted(value: &str, in_array: bool, text: &mut String) {
    for char in value.chars() {
        match char {
            '\'' => text.push('\''),
            '"' | '\\' if in_array => text.push('\\'),
            _ => {}
        }
        text.push(char);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_quoted() {
        static BULK: Statement = Statement::new("select 1 from {rows} r", &[("id", Type::Int), ("name", Type::Text)]);
        static ONE: Statement = Statement::one("select $1, $2", &[("id", Type::Int), ("name", Type::Text)]);
        static NONE: Statement = Statement::new("select 1", &[]);
        let literals = |statement, columns: &[Column]| {
            let (mut text, mut bound) = (String::new(), Vec::new());
            write_parameters(statement, columns, &mut text, &mut bound);
            assert!(bound.is_empty());
            text
        };
        let names = Column::Text(vec!["it's".to_owned(), "\"\\".to_owned(), String::new()]);
        let columns = [Column::Int(vec![1, -2]), names.clone()];
        assert_eq!(literals(&BULK, &columns), "('{1,-2}','{\"it''s\",\"\\\"\\\\\",\"\"}')");
        assert_eq!(literals(&BULK, &[Column::Int(vec![]), Column::Text(vec![])]), "('{}','{}')");
        assert_eq!(literals(&ONE, &[Column::Int(vec![-7]), names]), "('-7','it''s')");
        assert_eq!(literals(&NONE, &[]), "");
        static BLOBS: Statement = Statement::new("select 1 from {rows} r", &[("data", Type::Bytes)]);
        static BLOB: Statement = Statement::one("select $1", &[("data", Type::Bytes)]);
        let bytes = [Column::Bytes(vec![vec![0, 0xff], vec![]])];
        assert_eq!((literals(&BLOBS, &bytes), literals(&BLOB, &bytes)), (r#"('{"\\x00ff","\\x"}')"#.to_owned(), r"('\x00ff')".to_owned()));
        assert_eq!(
            (postgres_types(&BULK), postgres_types(&ONE), postgres_types(&NONE)),
            ("(bigint[], text[])".into(), "(bigint, text)".into(), String::new())
        );
    }

    #[test]
    fn contents_are_bound_and_never_in_the_text() {
        static BULK: Statement = Statement::new("select 1 from {rows} r", &[("id", Type::Int), ("content", Type::Content)]);
        static ONE: Statement = Statement::one("select $1", &[("content", Type::Content)]);
        let (mut text, mut bound) = (String::new(), Vec::new());
        let contents = Column::Text(vec!["hush".to_owned(), "it's".to_owned()]);
        write_parameters(&BULK, &[Column::Int(vec![1, 2]), contents.clone()], &mut text, &mut bound);
        write_parameters(&ONE, &[contents], &mut text, &mut bound);
        assert_eq!(text, "('{1,2}',current_setting('headmark.bound_0')::text[])(current_setting('headmark.bound_1'))");
        let (text, _) = bind(bound).unwrap();
        assert_eq!(text, "select set_config('headmark.bound_0', $1::text[]::text, false), set_config('headmark.bound_1', $2::text, false)");
        assert_eq!(unbind(0, 1), "select set_config('headmark.bound_0', '', false)");
        assert_eq!(postgres_types(&BULK), "(bigint[], text[])");
    }

    #[test]
    fn bytes_travel_as_hexadecimal() {
        let columns = [Column::Int(vec![1, 2, 3]), Column::Bytes(vec![vec![0, 0x7f, 0xff], vec![], vec![0x0a]])];
        assert_eq!(json_rows(&columns), r#"[[1,"007fff"],[2,""],[3,"0a"]]"#);
    }

    #[test]
    fn rows_are_copied_as_the_format_has_them() {
        let bytes = copy_rows(&[Column::Int(vec![1, -2]), Column::Int(vec![3, i64::MAX])]).unwrap();
        let field = |value: i64| [8_i32.to_be_bytes().as_slice(), &value.to_be_bytes()].concat();
        let header = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
        let expected = [header, vec![0, 2], field(1), field(3), vec![0, 2], field(-2), field(i64::MAX), vec![0xff, 0xff]].concat();
        assert_eq!(bytes, expected);
        assert!(copy_rows(&[Column::Int(vec![1]), Column::Int(vec![])]).is_err());
        let texts = copy_rows(&[Column::Text(vec!["né".to_owned(), String::new()])]).unwrap();
        assert_eq!(texts[19..texts.len() - 2], [0, 1, 0, 0, 0, 3, b'n', 0xc3, 0xa9, 0, 1, 0, 0, 0, 0]);
    }
}
