//! All that differs between SQLite and Postgres in the SQL of this program: where bulk parameters
//! come from, and row locks.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::by_owner::by_owner;
use super::column::{Column, Type};
use super::errors::DbResult;
use super::sqlite_text::Texts;
use crate::base::hex;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::{Arguments as _, FromRow, Postgres};

/// A statement over a table of parameters, named `{rows}` in its text, whose columns are `columns`
/// (or over a single row, see [`Statement::one`]).
///
/// `{rows}` becomes `unnest($1::bigint[], …)` on Postgres and a select over `values (?, …), …` on
/// SQLite (`sqlite.rs`). `{for update}` becomes a row lock on Postgres, and nothing on SQLite,
/// whose one writer needs none. `{or fail}` is for an update of many rows in a transaction that is
/// undone as a whole if anything fails: SQLite then keeps no copy of each page that it changes, with
/// which it would undo the one statement. Postgres knows nothing of that kind.
#[derive(Debug)]
pub struct Statement {
    text: StatementText,
    columns: &'static [(&'static str, Type)],
    scalar: bool,
    /// The column that says whose rows they are.
    owner: Option<&'static str>,
    /// What Citus takes in place of the text for Postgres.
    distributed: Option<&'static str>,
    built: OnceLock<Built>,
}

/// The finished texts of a statement.
#[derive(Debug)]
struct Built {
    sqlite: Texts,
    postgres: String,
    /// On Citus.
    distributed: String,
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
    /// A statement that both dialects read alike, but for `{rows}`, `{for update}` and `{or fail}`.
    #[must_use]
    pub const fn new(text: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Both(text), columns, scalar: false, owner: None, distributed: None, built: OnceLock::new() }
    }

    /// A statement whose text is put together at the start.
    #[must_use]
    pub const fn composed(text: String, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Composed(text), columns, scalar: false, owner: None, distributed: None, built: OnceLock::new() }
    }

    /// A statement over one row of parameters, which stand in its text as `$1`, `$2`, … in the
    /// order of `columns`: for lists, whose order and limit the planners follow along an index only
    /// when they are plain parameters.
    #[must_use]
    pub const fn one(text: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Both(text), columns, scalar: true, owner: None, distributed: None, built: OnceLock::new() }
    }

    /// A statement that must be said differently.
    #[must_use]
    pub const fn each(sqlite: &'static str, postgres: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self {
            text: StatementText::Each { sqlite, postgres },
            columns,
            scalar: false,
            owner: None,
            distributed: None,
            built: OnceLock::new(),
        }
    }

    /// New rows of a table, whose columns have the names of the parameters.
    #[must_use]
    pub const fn insert(table: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Self { text: StatementText::Insert(table), columns, scalar: false, owner: None, distributed: None, built: OnceLock::new() }
    }

    /// The column of the parameter table that says whose rows they are, where its text equates it
    /// with columns. On a distributed database it is executed for the rows of each shard apart.
    #[must_use]
    pub const fn by(mut self, owner: &'static str) -> Self {
        self.owner = Some(owner);
        self
    }

    /// What a distributed database takes in place of the text for Postgres, which it cannot plan.
    #[must_use]
    pub const fn distributed(mut self, text: &'static str) -> Self {
        self.distributed = Some(text);
        self
    }

    /// The parameter table: a name and a type for each column.
    #[must_use]
    pub fn columns(&self) -> &'static [(&'static str, Type)] {
        self.columns
    }

    /// For a table of so many rows on SQLite: the text that takes it as JSON, and the text that is
    /// executed where that is another one.
    #[must_use]
    pub fn sqlite_texts(&'static self, rows: usize) -> (&'static str, Option<&'static str>) {
        let texts = &self.built().sqlite;
        (texts.json(self.columns), if self.scalar { None } else { texts.bound(self.columns, rows) })
    }

    pub(super) fn is_scalar(&self) -> bool {
        self.scalar
    }

    pub(super) fn sqlite(&'static self) -> &'static Texts {
        &self.built().sqlite
    }

    #[must_use]
    pub fn postgres(&'static self) -> &'static str {
        &self.built().postgres
    }

    /// The text for Postgres, distributed or not.
    pub fn text(&'static self, is_distributed: bool) -> &'static str {
        if is_distributed { &self.built().distributed } else { &self.built().postgres }
    }

    /// The place of the column that says whose rows they are.
    pub(super) fn owner(&self) -> Option<usize> {
        self.owner.and_then(|owner| self.columns.iter().position(|(name, _)| *name == owner))
    }

    fn built(&'static self) -> &'static Built {
        self.built.get_or_init(|| {
            let inserted;
            let (sqlite, postgres) = match &self.text {
                StatementText::Both(text) => (*text, *text),
                StatementText::Composed(text) => (text.as_str(), text.as_str()),
                StatementText::Each { sqlite, postgres } => (*sqlite, *postgres),
                StatementText::Insert(table) => {
                    let names: Vec<_> = self.columns.iter().map(|(name, _)| *name).collect();
                    let names = names.join(", ");
                    inserted = format!("insert into {table} ({names}) select {names} from {{rows}} r where true");
                    (inserted.as_str(), inserted.as_str())
                }
            };
            let rows = self.postgres_rows();
            let finished = |text: &str| text.replace("{rows}", &rows).replace("{for update}", "for update").replace("{or fail} ", "");
            let distributed = self.distributed.unwrap_or(postgres);
            let distributed = match (self.owner, self.owner()) {
                (Some(owner), Some(at)) => finished(&by_owner(distributed, owner, at + 1)),
                _ => finished(distributed),
            };
            let sqlite = sqlite.replace("{for update}", "").replace("{or fail}", "or fail");
            Built { sqlite: Texts::new(sqlite), postgres: finished(postgres), distributed }
        })
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

/// The types of a statement's parameters, and of further ones, as `prepare` takes them.
pub(super) fn postgres_types(statement: &'static Statement, further: &[&'static str]) -> String {
    let name = |kind: &Type| match (kind, statement.scalar) {
        (Type::Int, false) => "bigint[]",
        (Type::Text | Type::Content, false) => "text[]",
        (Type::Int, true) => "bigint",
        (Type::Text | Type::Content, true) => "text",
        (Type::Bytes, false) => "bytea[]",
        (Type::Bytes, true) => "bytea",
    };
    let names: Vec<_> = statement.columns.iter().map(|(_, kind)| name(kind)).chain(further.iter().copied()).collect();
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

impl Bound {
    pub(super) fn bytes(&self) -> usize {
        self.values.iter().map(String::len).sum()
    }
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
        Column::Int(values) if statement.scalar => {
            text.push_str(itoa::Buffer::new().format(values.first().copied().unwrap_or_default()));
        }
        Column::Text(values) if statement.scalar => push_quoted(values.first().map_or("", String::as_str), false, text),
        Column::Int(values) => {
            for (row, value) in values.iter().enumerate() {
                text.push(if row == 0 { '{' } else { ',' });
                text.push_str(itoa::Buffer::new().format(*value));
            }
            text.push_str(if values.is_empty() { "{}" } else { "}" });
        }
        Column::Bytes(values) if statement.scalar => {
            text.push_str("\\x");
            hex::push(values.first().map_or(&[], Vec::as_slice), text);
        }
        Column::Bytes(values) => {
            for (row, value) in values.iter().enumerate() {
                text.push_str(if row == 0 { "{\"\\\\x" } else { ",\"\\\\x" });
                hex::push(value, text);
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
            (postgres_types(&BULK, &[]), postgres_types(&ONE, &["bigint"]), postgres_types(&NONE, &[])),
            ("(bigint[], text[])".into(), "(bigint, text, bigint)".into(), String::new())
        );
    }

    #[test]
    fn sqlite_alone_is_told_to_fail() {
        static UPDATE: Statement = Statement::new("update {or fail} t set n = r.n from {rows} r", &[("n", Type::Int)]);
        assert!(UPDATE.sqlite_texts(1).0.starts_with("update or fail t set n = r.n from (select "));
        assert!(UPDATE.sqlite_texts(1).1.unwrap().starts_with("update or fail t set n = r.n from (select "));
        assert!(UPDATE.postgres().starts_with("update t set n = r.n from (select "));
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
        assert_eq!(postgres_types(&BULK, &[]), "(bigint[], text[])");
    }
}
