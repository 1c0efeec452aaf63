//! What serde says of invalid input, in words for the caller: where it is, and what is wrong, without the names of our types.

use serde_path_to_error::{Path, Segment};

/// How much of a message is shown; it may quote the input, which may be long.
const MAX_DETAIL_CHARS: usize = 300;
/// How much of one segment of a pointer is shown.
const MAX_SEGMENT_CHARS: usize = 128;

/// The segments that lead to the value at fault. serde reports a missing or duplicate field at its parent: it is added here.
pub(super) fn segments(path: &Path, message: &str) -> Vec<String> {
    let mut segments: Vec<String> = path
        .iter()
        .map_while(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(cut(key, MAX_SEGMENT_CHARS)),
            Segment::Enum { variant } => Some(cut(variant, MAX_SEGMENT_CHARS)),
            Segment::Unknown => None,
        })
        .collect();
    for reported_at_parent in ["missing field `", "duplicate field `"] {
        if let Some(field) = message.strip_prefix(reported_at_parent).and_then(|rest| rest.split('`').next()) {
            segments.push(cut(field, MAX_SEGMENT_CHARS));
        }
    }
    segments
}

/// An RFC 6901 pointer.
pub(super) fn pointer(segments: &[String]) -> String {
    segments.iter().map(|segment| format!("/{}", segment.replace('~', "~0").replace('/', "~1"))).collect()
}

/// What Rust says, and what JSON and its users do. The first that is found at the end of a message takes its place; what the input is quoted with comes before.
const ENDS: [(&str, &str); 17] = [
    ("expected a map", "expected an object"),
    ("expected a sequence", "expected an array"),
    ("expected i64", "expected an integer"),
    ("expected u64", "expected an integer from 0"),
    ("expected i32", "expected an integer"),
    ("expected u32", "expected an integer from 0"),
    ("expected u8", "expected an integer from 0"),
    ("expected usize", "expected an integer from 0"),
    ("expected a boolean", "expected true or false"),
    ("there are no fields", "none is expected"),
    ("invalid digit found in string", "not an integer"),
    ("cannot parse integer from empty string", "not an integer: it is empty"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("provided string was not `true` or `false`", "not `true` or `false`"),
    ("invalid float literal", "not a number"),
    ("number out of range", "the number is out of range"),
];

/// The same for how messages begin.
const BEGINNINGS: [(&str, &str); 5] = [
    ("invalid type: map", "invalid type: object"),
    ("invalid type: sequence", "invalid type: array"),
    ("invalid type: unit value", "invalid type: null"),
    ("invalid type: floating point", "invalid type: number"),
    ("unknown variant", "unknown value"),
];

/// The message, with JSON's words in place of Rust's.
pub(super) fn detail(message: &str) -> String {
    let mut text = message.to_owned();
    if let Some((rust, json)) = BEGINNINGS.iter().find(|(rust, _)| text.starts_with(rust)) {
        text.replace_range(..rust.len(), json);
    }
    if let Some(start) = text.rfind("expected struct ") {
        text.truncate(start);
        text.push_str("expected an object");
    }
    if let Some((rust, json)) = ENDS.iter().find(|(rust, _)| text.ends_with(rust)) {
        text.replace_range(text.len() - rust.len().., json);
    }
    cut(&text, MAX_DETAIL_CHARS)
}

/// At most `max` characters of a text.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_rust_become_words_of_json() {
        let said = [
            ("invalid type: string \"1\", expected i64", "invalid type: string \"1\", expected an integer"),
            ("invalid type: floating point `1e+23`, expected i64", "invalid type: number `1e+23`, expected an integer"),
            ("invalid type: map, expected struct IncrementIn", "invalid type: object, expected an object"),
            ("invalid value: integer `-1`, expected u32", "invalid value: integer `-1`, expected an integer from 0"),
            ("invalid digit found in string", "not an integer"),
            ("unknown variant `x`, expected `read` or `unread`", "unknown value `x`, expected `read` or `unread`"),
            ("unknown field `x`, there are no fields", "unknown field `x`, none is expected"),
            ("what is quoted stays: expected i64, so", "what is quoted stays: expected i64, so"),
        ];
        for (rust, json) in said {
            assert_eq!(detail(rust), json);
        }
    }
}
