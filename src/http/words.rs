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

/// The message, with JSON's words in place of Rust's.
pub(super) fn detail(message: &str) -> String {
    let mut text = message.replace("invalid type: map", "invalid type: object").replace("invalid type: sequence", "invalid type: array");
    if let Some(start) = text.find("expected struct ") {
        text.truncate(start);
        text.push_str("expected an object");
    }
    for (rust, json) in [("expected a map", "expected an object"), ("expected a sequence", "expected an array")] {
        text = text.replace(rust, json);
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
