//! The fields of a line of CSV: which columns a file has, and the values that all files have in
//! common.

use csv::ByteRecord;

use crate::base::clock::{Clock, DAY_MS, UnixMs};
use crate::base::ids::UserId;

/// The last moment that is the year 9999 everywhere on earth, beyond which times cannot be shown.
const MAX_UNIX_MS: i64 = 253_402_207_200_999;

/// The column whose values are taken as they are, blanks included.
const EXACT: &str = "content";

/// How much of a value that cannot be read is shown.
const MAX_SHOWN: usize = 40;

/// Where in a line each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// The columns that there may be.
    known: &'static [&'static str],
    /// For each field of a line the index of its column in `known`.
    order: Vec<usize>,
}

impl Columns {
    /// Reads the first line. Some columns must be there; `example` is such a line.
    ///
    /// # Errors
    /// A sentence: which column is unknown, missing, or there twice.
    pub(crate) fn from_header(header: &ByteRecord, known: &'static [&'static str], needed: &[&str], example: &str) -> Result<Self, String> {
        let help = format!("the first line must name the columns, as in `{example}`");
        let mut order = Vec::new();
        for name in header {
            let name = std::str::from_utf8(name).map_err(|_| format!("{help}; it is not UTF-8"))?;
            let name = value(name.trim_start_matches('\u{feff}'));
            let Some(column) = known.iter().position(|known| known.eq_ignore_ascii_case(name)) else {
                return Err(format!("{help}; it has '{}', and known are {}", shown(name), known.join(", ")));
            };
            if order.contains(&column) {
                return Err(format!("{help}, each once; it has '{name}' twice"));
            }
            order.push(column);
        }
        let this = Self { known, order };
        match needed.iter().find(|name| !this.has(name)) {
            Some(name) => Err(format!("{help}; there is no '{name}'")),
            None => Ok(this),
        }
    }

    /// Whether the file has this column.
    #[must_use]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.order.iter().any(|column| self.known.get(*column) == Some(&name))
    }

    /// The values of a line in the order of the known columns; None for a column that the file has
    /// not.
    ///
    /// # Errors
    /// A sentence: why the line cannot be taken.
    pub(crate) fn values<'a, const N: usize>(&self, record: &'a ByteRecord) -> Result<[Option<&'a str>; N], String> {
        if record.len() != self.order.len() {
            return Err(format!("has {} fields, not {}", record.len(), self.order.len()));
        }
        let mut values = [None; N];
        for (field, column) in record.iter().zip(&self.order) {
            let field = std::str::from_utf8(field).map_err(|_| "is not UTF-8".to_owned())?;
            if let Some(slot) = values.get_mut(*column) {
                *slot = Some(if self.known.get(*column) == Some(&EXACT) { field } else { value(field) });
            }
        }
        Ok(values)
    }
}

/// A field without the blanks around it, and without quotation marks that stand after blanks.
fn value(field: &str) -> &str {
    let field = field.trim_ascii();
    field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field)
}

/// The fields of a line of CSV.
#[cfg(test)]
pub(crate) fn record(line: &[u8]) -> ByteRecord {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let record = reader.byte_records().next();
    record.map_or_else(ByteRecord::new, |record| record.unwrap())
}

/// A value for a message: its beginning, without control characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect()
}

/// An id with the offset added.
pub(crate) fn id(column: &str, text: &str, offset: i64) -> Result<UserId, String> {
    let number = if text.starts_with('+') { None } else { text.parse::<i64>().ok() };
    let number = number.ok_or_else(|| format!("has '{}' as {column}, which is not an id", shown(text)))?;
    let shifted = number.checked_add(offset).and_then(|id| UserId::try_from(id).ok());
    shifted.ok_or_else(|| match offset {
        0 => format!("has {number} as {column}; ids must be between 1 and 9223372036854775807 (--id-offset shifts them)"),
        _ => format!("has {number} as {column}, which with {offset} added must be between 1 and 9223372036854775807"),
    })
}

/// How far ahead of this machine's clock that of another one may have been.
const AHEAD_MS: i64 = DAY_MS;

/// Unix seconds, with or without a fraction, or RFC 3339; from 1970 to now. What lies in the future would be kept until
/// then, whatever is set.
pub(crate) fn time(text: &str) -> Result<UnixMs, String> {
    let latest = Clock::System.now().0 + AHEAD_MS;
    let at = unix_seconds(text).or_else(|| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond));
    match at {
        Some(at) if (0..=latest).contains(&at) => Ok(UnixMs(at)),
        Some(at) if (0..=MAX_UNIX_MS).contains(&at) => Err(format!("has {} as timestamp, which is in the future", shown(text))),
        Some(at) if (0..=MAX_UNIX_MS).contains(&(at / 1000)) => {
            Err(format!("has {} as timestamp, which is after the year 9999; times are in seconds, not milliseconds", shown(text)))
        }
        Some(_) => Err(format!("has {} as timestamp, which must be between 1970 and 9999", shown(text))),
        None => Err(format!("has '{}' as timestamp, which is neither Unix seconds nor RFC 3339", shown(text))),
    }
}

fn unix_seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole.strip_prefix('-').unwrap_or(whole)) || !digits(fraction) {
        return None;
    }
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(millis.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_rfc_3339() {
        for (text, at) in [
            ("1671916715", 1_671_916_715_000),
            ("1671916715.25", 1_671_916_715_250),
            ("1671916715.1239", 1_671_916_715_123),
            ("2022-12-24T21:18:35Z", 1_671_916_715_000),
            ("2022-12-24T22:18:35.250+01:00", 1_671_916_715_250),
        ] {
            assert_eq!(time(text), Ok(UnixMs(at)), "{text}");
        }
        let now = Clock::System.now();
        assert!(time(&now.to_string()).is_ok());
        for (text, says) in
            [("4070908800", "in the future"), ("9999-12-30T22:00:00.999Z", "in the future"), ("1671916715000", "in seconds")]
        {
            assert!(time(text).unwrap_err().contains(says), "{text}");
        }
    }
}
