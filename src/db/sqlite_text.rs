//! The text of a statement for SQLite: with a place for each value of the table of parameters, or with
//! one for all of it as JSON.

use std::sync::OnceLock;

use super::column::Type;

/// For how many rows there is a text. The last one is enough for a batch of a lane; more rows, as
/// one large request may have, go as JSON.
const SIZES: [usize; 6] = [1, 8, 32, 128, 512, 2048];

/// How many parameters a statement may have (`SQLITE_MAX_VARIABLE_NUMBER`).
const MAX_PARAMETERS: usize = 32_766;

/// The texts of a statement for SQLite, each made when it is first needed.
#[derive(Debug)]
pub(super) struct Texts {
    /// With `{rows}`.
    source: String,
    json: OnceLock<String>,
    sized: [OnceLock<String>; SIZES.len()],
}

impl Texts {
    pub(super) const fn new(source: String) -> Self {
        Self { source, json: OnceLock::new(), sized: [const { OnceLock::new() }; SIZES.len()] }
    }

    /// Whether it changes nothing.
    pub(super) fn is_read(&self) -> bool {
        self.source.starts_with("select")
    }

    /// The text for a table that travels as JSON, and for a statement that has none.
    pub(super) fn json(&self, columns: &[(&str, Type)]) -> &str {
        self.json.get_or_init(|| self.source.replace("{rows}", &json_table(columns)))
    }

    /// The text with places for so many rows, if there is one.
    pub(super) fn bound(&self, columns: &[(&str, Type)], rows: usize) -> Option<&str> {
        // The places have no numbers, so the table can stand only once, and beside no others.
        if self.source.matches("{rows}").count() != 1 || self.source.contains(['$', '?']) {
            return None;
        }
        let (size, text) = SIZES.iter().zip(&self.sized).find(|(size, _)| **size >= rows)?;
        if size * columns.len() > MAX_PARAMETERS {
            return None;
        }
        Some(text.get_or_init(|| self.source.replace("{rows}", &bound_table(columns, *size))))
    }
}

fn json_table(columns: &[(&str, Type)]) -> String {
    let columns = columns.iter().enumerate().map(|(at, (name, kind))| match kind {
        Type::Int | Type::Text | Type::Content => format!("value ->> {at} as {name}"),
        Type::Bytes => format!("unhex(value ->> {at}) as {name}"),
    });
    format!("(select {} from json_each($1))", columns.collect::<Vec<_>>().join(", "))
}

fn bound_table(columns: &[(&str, Type)], size: usize) -> String {
    let names = columns.iter().enumerate().map(|(at, (name, _))| format!("column{} as {name}", at + 1));
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    format!("(select {} from (values {}) where column1 is not null)", names.collect::<Vec<_>>().join(", "), vec![row; size].join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &[(&str, Type)] = &[("id", Type::Int), ("data", Type::Bytes)];

    #[test]
    fn a_text_has_places_for_the_next_size() {
        let texts = Texts::new("select 1 from {rows} r".to_owned());
        assert_eq!(
            texts.bound(PAIR, 0),
            Some("select 1 from (select column1 as id, column2 as data from (values (?,?)) where column1 is not null) r")
        );
        for (rows, size) in [(1, 1), (2, 8), (8, 8), (9, 32), (513, 2048), (2048, 2048)] {
            assert_eq!(texts.bound(PAIR, rows).unwrap().matches("(?,?)").count(), size, "{rows} rows");
        }
        assert_eq!(texts.bound(PAIR, 2049), None, "too many rows");
        assert_eq!(texts.bound(&[("n", Type::Int); 16], 513), None, "too many parameters");
    }

    #[test]
    fn a_table_that_does_not_stand_alone_goes_as_json() {
        for text in ["select 1", "select 1 from {rows} r, {rows} s", "select $1 from {rows} r", "select ? from {rows} r"] {
            assert_eq!(Texts::new(text.to_owned()).bound(PAIR, 1), None, "{text}");
        }
    }
}
