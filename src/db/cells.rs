//! Rows whose columns are known at run time only.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column as _, Decode, FromRow, Row, Type, TypeInfo as _, ValueRef as _};

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    /// Its number; 0 for anything else.
    #[must_use]
    pub fn int(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { 0 }
    }

    /// Its text; empty for anything else.
    #[must_use]
    pub fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    /// Its bytes; none for anything else.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }
}

/// A row, column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells(pub Vec<Cell>);

/// Decodes each column as the type that its value says.
fn decode<'r, R>(row: &'r R) -> sqlx::Result<Cells>
where
    R: Row,
    usize: sqlx::ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    let cell = |at: usize| {
        let value = row.try_get_raw(at)?;
        if value.is_null() {
            return Ok(Cell::Null);
        }
        match value.type_info().name() {
            "INT8" | "INTEGER" => row.try_get(at).map(Cell::Int),
            "BYTEA" | "BLOB" => row.try_get(at).map(Cell::Bytes),
            _ => row.try_get(at).map(Cell::Text),
        }
    };
    row.columns().iter().map(|column| cell(column.ordinal())).collect::<sqlx::Result<_>>().map(Cells)
}

impl<'r> FromRow<'r, SqliteRow> for Cells {
    fn from_row(row: &'r SqliteRow) -> sqlx::Result<Self> {
        decode(row)
    }
}

impl<'r> FromRow<'r, PgRow> for Cells {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        decode(row)
    }
}
