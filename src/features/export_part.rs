//! What a feature adds to the export of a user: kinds of lines, each with the statement that reads
//! its rows and what its columns are called.
//!
//! To add a kind: an [`ExportPart`] in the feature's `exported.rs`, and the list there into
//! `maintenance/user_export/mod.rs`. `docs/reference/export.md` follows from it. A test finds tables
//! and columns that no part reads.

use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::clock::UnixMs;
use crate::base::ids::UserId;
use crate::db::{Cell, Cells, Column, Db, DbResult, Statement, Type, in_time};

/// How many rows a page has at most. Each is a few KiB, and rarely 64.
pub const MAX_ROWS: i64 = 200;

/// How long a page may be before its last row. What one row says is bounded by the write that made
/// it.
const MAX_PAGE_BYTES: usize = 256 * 1024;

/// A kind of line.
#[derive(Debug)]
pub struct ExportPart {
    /// Its `kind`.
    pub kind: &'static str,
    /// What it is, for the reference.
    pub about: &'static str,
    /// The tables whose rows it has.
    pub tables: &'static [&'static str],
    /// Where rows lie with something else than the user: what has some of the user's, by its key, of
    /// which the statement is asked one by one.
    pub owners: Option<&'static Statement>,
    /// Reads a page. Its parameters are the user, the owner if there are owners, the values of `key`
    /// in the last row before, and the number of rows.
    pub statement: &'static Statement,
    /// What the columns are called in a line.
    pub fields: &'static [Field],
    /// The columns by which the rows are sorted, from 0 on. None: there is one row at most.
    pub key: &'static [usize],
}

/// A column of a line.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub shown: Shown,
    /// What it is, for the reference.
    pub about: &'static str,
}

/// How a column is shown. What says nothing (0, an empty text) is left out.
#[derive(Debug, Clone, Copy)]
pub enum Shown {
    /// The id of a user, group or notification.
    Id,
    /// A number; 0 as well.
    Number,
    /// A number that says something from 1 on.
    Position,
    Time,
    /// Whether it is 1; false as well.
    Flag,
    Text,
    /// JSON as it is kept.
    Json,
    /// Something else.
    With(fn(&Cell) -> Option<Value>),
}

/// A column of a line.
#[must_use]
pub const fn field(name: &'static str, shown: Shown, about: &'static str) -> Field {
    Field { name, shown, about }
}

impl Shown {
    /// As JSON; None where it says nothing.
    fn json(self, cell: &Cell) -> Option<String> {
        let number = Some(cell.int()).filter(|number| *number != 0);
        let value = match self {
            Self::Id => Value::from(number?.to_string()),
            Self::Number => Value::from(cell.int()),
            Self::Position => Value::from(number.filter(|number| *number > 0)?),
            Self::Time => Value::from(UnixMs(number?).to_string()),
            Self::Flag => Value::from(cell.int() == 1),
            Self::Text => Value::from(Some(cell.text()).filter(|text| !text.is_empty())?),
            // Its sender may have broken it into lines. A line break inside a string is written otherwise.
            Self::Json => return serde_json::from_str::<&RawValue>(cell.text()).ok().map(|value| value.get().replace(['\n', '\r'], " ")),
            Self::With(show) => show(cell)?,
        };
        Some(value.to_string())
    }

    /// Its type, for the reference.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Number | Self::Position => "integer",
            Self::Time => "time",
            Self::Flag => "boolean",
            Self::Text => "string",
            Self::Json => "JSON",
            Self::With(_) => "see the text",
        }
    }
}

/// The place behind a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportPlace {
    /// Whose rows are read, where there are owners.
    owner: i64,
    /// What its key says; nothing before the first row.
    key: Vec<Cell>,
}

/// Some lines.
#[derive(Debug, Default)]
pub struct ExportPage {
    /// Lines with their ends.
    pub text: String,
    pub lines: u64,
    /// Where the next page begins; None behind the last one.
    pub next: Option<ExportPlace>,
}

impl ExportPart {
    /// The lines behind a place.
    ///
    /// # Errors
    /// When the database cannot be read in time.
    pub async fn page(&self, db: &Db, user: UserId, place: &ExportPlace) -> DbResult<ExportPage> {
        let owner = match self.owners {
            // Those behind the key are asked for first.
            Some(owners) if place.key.is_empty() => {
                let columns = [user.get(), place.owner].map(|value| Column::Int(vec![value]));
                let next: Vec<(i64,)> = in_time(db.fetch(owners, &columns)).await?;
                let Some((owner,)) = next.first() else { return Ok(ExportPage::default()) };
                *owner
            }
            _ => place.owner,
        };
        let rows: Vec<Cells> = in_time(db.fetch(self.statement, &self.parameters(user, owner, &place.key))).await?;
        let mut page = ExportPage::default();
        let mut written = 0;
        while page.text.len() < MAX_PAGE_BYTES
            && let Some(Cells(cells)) = rows.get(written)
        {
            self.write_line(&mut page.text, cells);
            written += 1;
        }
        page.lines = u64::try_from(written).unwrap_or(u64::MAX);
        let has_more = written < rows.len() || i64::try_from(written).is_ok_and(|rows| rows >= MAX_ROWS);
        page.next = match rows.get(..written).and_then(<[_]>::last) {
            Some(Cells(last)) if has_more && !self.key.is_empty() => {
                let key = self.key.iter().map(|at| last.get(*at).cloned().unwrap_or(Cell::Null)).collect();
                Some(ExportPlace { owner, key })
            }
            _ => self.owners.map(|_| ExportPlace { owner, key: Vec::new() }),
        };
        Ok(page)
    }

    fn parameters(&self, user: UserId, owner: i64, key: &[Cell]) -> Vec<Column> {
        let columns = self.statement.columns();
        let (fixed, keys) = (1 + usize::from(self.owners.is_some()), self.key.len());
        let of_key = columns.iter().skip(fixed).take(keys).enumerate().map(|(at, (_, kind))| match (kind, key.get(at)) {
            (Type::Int, Some(cell)) => Column::Int(vec![cell.int()]),
            (Type::Int, None) => Column::Int(vec![i64::MIN]),
            (_, cell) => Column::Text(vec![cell.map_or("", Cell::text).to_owned()]),
        });
        let first = [user.get(), owner].into_iter().take(fixed).map(|value| Column::Int(vec![value]));
        let limit = columns.get(fixed + keys).map(|_| Column::Int(vec![MAX_ROWS]));
        first.chain(of_key).chain(limit).collect()
    }

    /// A line: the kind, and the columns that say something.
    fn write_line(&self, text: &mut String, cells: &[Cell]) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{{\"kind\":\"{}\"", self.kind);
        for (field, cell) in self.fields.iter().zip(cells) {
            if let Some(json) = field.shown.json(cell) {
                let _ = write!(text, ",\"{}\":{json}", field.name);
            }
        }
        text.push_str("}\n");
    }
}

/// The statements of these parts, for the suite that runs each on both engines.
#[must_use]
pub fn statements(parts: &'static [ExportPart]) -> Vec<&'static Statement> {
    parts.iter().flat_map(|part| part.owners.into_iter().chain([part.statement])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    static STATEMENT: Statement =
        Statement::one("select 1", &[("user_id", Type::Int), ("since", Type::Int), ("post_id", Type::Text), ("max_rows", Type::Int)]);

    static PART: ExportPart = ExportPart {
        kind: "thing",
        about: "",
        tables: &[],
        owners: None,
        statement: &STATEMENT,
        fields: &[
            field("user_id", Shown::Id, ""),
            field("count", Shown::Number, ""),
            field("head", Shown::Position, ""),
            field("at", Shown::Time, ""),
            field("is", Shown::Flag, ""),
            field("text", Shown::Text, ""),
            field("data", Shown::Json, ""),
            field("bytes", Shown::With(|cell| Some(Value::from(cell.bytes().len()))), ""),
        ],
        key: &[3, 5],
    };

    fn line(cells: &[Cell]) -> String {
        let mut text = String::new();
        PART.write_line(&mut text, cells);
        text
    }

    #[test]
    fn a_line_has_what_says_something() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let cells = [
            Cell::Int(42),
            Cell::Int(3),
            Cell::Int(7),
            Cell::Int(1),
            Cell::Int(1),
            text("it's \"\n"),
            text("{\r\n\"a\": 1,\n\"b\": \"\\n\"}"),
            Cell::Bytes(vec![1, 2]),
        ];
        let expected = r#"{"kind":"thing","user_id":"42","count":3,"head":7,"at":"1970-01-01T00:00:00.001Z","is":true,"text":"it's \"\n","data":{  "a": 1, "b": "\n"},"bytes":2}"#;
        assert_eq!(line(&cells), format!("{expected}\n"));
        let nothing = [Cell::Int(0), Cell::Int(0), Cell::Int(0), Cell::Int(0), Cell::Int(0), text(""), text(""), Cell::Null];
        assert_eq!(line(&nothing), "{\"kind\":\"thing\",\"count\":0,\"is\":false,\"bytes\":0}\n");
    }

    #[test]
    fn a_page_begins_behind_the_key_of_the_last_row() {
        let user = UserId::try_from(42).unwrap();
        let int = |value: i64| Column::Int(vec![value]);
        let text = |value: &str| Column::Text(vec![value.to_owned()]);
        assert_eq!(PART.parameters(user, 0, &[]), [int(42), int(i64::MIN), text(""), int(MAX_ROWS)]);
        assert_eq!(PART.parameters(user, 0, &[Cell::Int(5), Cell::Text("p".to_owned())]), [int(42), int(5), text("p"), int(MAX_ROWS)]);
    }
}
