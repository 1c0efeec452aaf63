//! How a table of parameters goes to SQLite: as bound values, or as one JSON text.
//!
//! Bound values cost less than JSON, which SQLite parses for each column of each row.
//! The text has places for a few fixed numbers of rows, so that it is prepared once for each; rows
//! that are not there are NULL, which no parameter can be, and are left out. It is one statement
//! over one table either way, so it means the same whatever the statement does with the rows.

use sqlx::error::BoxDynError;
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, FromRow, Sqlite, SqliteConnection};

use super::column::Column;
use super::dialect::Statement;
use super::errors::DbResult;
use crate::base::hex;

/// The parameter table as JSON: an array of rows, each an array, with bytes in hexadecimal.
fn json_rows(columns: &[Column], rows: usize) -> String {
    let mut json = String::with_capacity(rows * columns.len() * 12 + 2);
    json.push('[');
    for row in 0..rows {
        json.push_str(if row == 0 { "[" } else { ",[" });
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            write_json(column, row, &mut json);
        }
        json.push(']');
    }
    json.push(']');
    json
}

fn write_json(column: &Column, row: usize, json: &mut String) {
    match column {
        Column::Int(values) => json.push_str(&values.get(row).copied().unwrap_or_default().to_string()),
        Column::Text(values) => {
            let text = values.get(row).map_or("", String::as_str);
            json.push_str(&serde_json::Value::from(text).to_string());
        }
        Column::Bytes(values) => {
            json.push('"');
            hex::push(values.get(row).map_or(&[], Vec::as_slice), json);
            json.push('"');
        }
    }
}

/// Which text, and what is bound in it.
fn query_parts(statement: &'static Statement, columns: &[Column]) -> Result<(&'static str, SqliteArguments), BoxDynError> {
    let mut arguments = SqliteArguments::default();
    let (texts, names) = (statement.sqlite(), statement.columns());
    if columns.is_empty() {
        return Ok((texts.json(names), arguments));
    }
    if statement.is_scalar() {
        for column in columns {
            match column {
                Column::Int(values) => arguments.add(values.first().copied())?,
                Column::Text(values) => arguments.add(values.first().cloned())?,
                Column::Bytes(values) => arguments.add(values.first().cloned())?,
            }
        }
        return Ok((texts.json(names), arguments));
    }
    let rows = columns.iter().map(Column::len).max().unwrap_or(0);
    let Some(text) = texts.bound(names, rows) else {
        arguments.add(json_rows(columns, rows))?;
        return Ok((texts.json(names), arguments));
    };
    arguments.reserve(rows * columns.len(), 0);
    for row in 0..rows {
        for column in columns {
            add_value(column, row, &mut arguments)?;
        }
    }
    // What is bound to no place is NULL.
    Ok((text, arguments))
}

fn add_value(column: &Column, row: usize, arguments: &mut SqliteArguments) -> Result<(), BoxDynError> {
    match column {
        Column::Int(values) => arguments.add(values.get(row).copied().unwrap_or_default()),
        Column::Text(values) => arguments.add(values.get(row).cloned().unwrap_or_default()),
        Column::Bytes(values) => arguments.add(values.get(row).cloned().unwrap_or_default()),
    }
}

pub(super) fn query(statement: &'static Statement, columns: &[Column]) -> DbResult<Query<'static, Sqlite, SqliteArguments>> {
    let (text, arguments) = query_parts(statement, columns).map_err(sqlx::Error::Encode)?;
    Ok(sqlx::query_with(text, arguments))
}

/// Executes a statement; returns how many rows it affected, or found.
pub(super) async fn count(conn: &mut SqliteConnection, statement: &'static Statement, columns: &[Column]) -> DbResult<u64> {
    let query = query(statement, columns)?;
    if statement.sqlite().is_read() {
        let found = query.fetch_all(conn).await?.len();
        return Ok(u64::try_from(found).unwrap_or(u64::MAX));
    }
    Ok(query.execute(conn).await?.rows_affected())
}

pub(super) fn query_as<T>(statement: &'static Statement, columns: &[Column]) -> DbResult<QueryAs<'static, Sqlite, T, SqliteArguments>>
where
    T: for<'r> FromRow<'r, SqliteRow>,
{
    let (text, arguments) = query_parts(statement, columns).map_err(sqlx::Error::Encode)?;
    Ok(sqlx::query_as_with(text, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_travel_as_hexadecimal() {
        let columns = [Column::Int(vec![1, 2, 3]), Column::Bytes(vec![vec![0, 0x7f, 0xff], vec![], vec![0x0a]])];
        assert_eq!(json_rows(&columns, 3), r#"[[1,"007fff"],[2,""],[3,"0a"]]"#);
    }
}
