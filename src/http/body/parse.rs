//! Reads the JSON of a body, and says where what is wrong.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use super::strict::Strict;
use crate::base::error::{Code, Problem};
use crate::http::problem;

/// How deep JSON may nest: what serde_json itself allows, also where it would not look (raw
/// values).
const MAX_DEPTH: usize = 127;

/// Reads a JSON object strictly.
///
/// # Errors
/// A 400 problem for what is not JSON, a 422 problem with a pointer for JSON that is not a `T`.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|e| malformed(&format!("The body is not valid UTF-8 at byte {}.", e.valid_up_to())))?;
    let found = scan(bytes);
    if found.depth > MAX_DEPTH {
        return Err(malformed(&format!("The body must not nest deeper than {MAX_DEPTH} levels.")));
    }
    let is_object = bytes.iter().find(|b| !b.is_ascii_whitespace()).is_none_or(|b| *b == b'{');
    if is_object && !found.nul {
        // Twice on failure, once on success: keeping track of the path costs an allocation for
        // every key.
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            Err(error) if !is_of_values(&error) => return Err(malformed(&error.to_string())),
            Err(_) => {}
        }
    }
    // A value can be wrong before the place where the syntax is; then the syntax is what the caller
    // must mend first.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(malformed(&error.to_string()));
    }
    // The same goes for a string that is not Unicode, also in a value whose text is kept.
    if let Err(error) = serde_json::from_str::<Strict>(text)
        && !is_of_values(&error)
    {
        return Err(malformed(&error.to_string()));
    }
    if !is_object {
        return Err(Problem::invalid("", "must be a JSON object"));
    }
    if found.nul {
        return Err(Problem::invalid(nul_pointer(text), "must not contain the character U+0000"));
    }
    Err(invalid::<T>(text))
}

/// Whether it is JSON, but says what cannot be meant: a number may be written that no computer
/// holds.
fn is_of_values(error: &serde_json::Error) -> bool {
    error.classify() == Category::Data || error.to_string().starts_with("number out of range")
}

pub(super) fn malformed(detail: &str) -> Problem {
    Problem::new(Code::MalformedJson, problem::cut(detail, 300))
}

fn invalid<T: DeserializeOwned>(text: &str) -> Problem {
    let mut json = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut json) else {
        return Problem::invalid("", "is invalid");
    };
    let inner = error.inner();
    let message = inner.to_string();
    let place = format!(" at line {} column {}", inner.line(), inner.column());
    let message = message.strip_suffix(place.as_str()).unwrap_or(&message);
    Problem::invalid(problem::pointer(&problem::place(error.path(), message)), problem::detail(message))
}

struct Scan {
    depth: usize,
    nul: bool,
}

/// What no `T` may meet, in one pass over the bytes: nesting that a later reader's stack pays for,
/// and U+0000, which Postgres cannot store. On malformed JSON the finding may be off; the parser
/// refuses that anyway.
fn scan(bytes: &[u8]) -> Scan {
    let (mut depth, mut deepest, mut in_string, mut nul) = (0_usize, 0_usize, false, false);
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match (in_string, byte) {
            (_, b'"') => in_string = !in_string,
            (true, b'\\') => nul |= bytes.next() == Some(&b'u') && bytes.as_slice().starts_with(b"0000"),
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Scan { depth: deepest, nul }
}

/// Where the first text with U+0000 is.
fn nul_pointer(text: &str) -> String {
    fn find(value: &serde_json::Value, path: &mut Vec<String>) -> bool {
        let mut visit = |key: String, child: &serde_json::Value| {
            path.push(key);
            let found = path.last().is_some_and(|key| key.contains('\0')) || find(child, path);
            if !found {
                path.pop();
            }
            found
        };
        match value {
            serde_json::Value::String(text) => text.contains('\0'),
            serde_json::Value::Array(items) => items.iter().enumerate().any(|(at, item)| visit(at.to_string(), item)),
            serde_json::Value::Object(fields) => fields.iter().any(|(key, field)| visit(key.clone(), field)),
            _ => false,
        }
    }
    let mut path = Vec::new();
    if let Ok(value) = serde_json::from_str(text) {
        find(&value, &mut path);
    }
    problem::pointer(&path.iter().map(|key| problem::segment_of(key)).collect::<Vec<_>>())
}
