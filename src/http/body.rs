//! Request bodies: bounded in length, each and all together, in time and depth, JSON only, and every
//! fault told with its place. `parse.rs` reads the JSON, `fields.rs` has what serde does not refuse by
//! itself, `strict.rs` finds what not every reader can hold.

mod fields;
mod idempotency_key;
mod parse;
mod strict;
#[cfg(test)]
mod tests;

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Version, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

pub use self::fields::{object, objects, present, raw_object, unique_map};
pub use self::idempotency_key::IdempotencyKey;
pub use self::parse::parse;

use self::idempotency_key::IDEMPOTENCY_KEY;
use self::parse::malformed;
use crate::base::error::{Code, Problem};
use crate::http::canonical::canonical;
use crate::http::context::{self, BodyRules};

/// How much of a body that is too long is read and thrown away, as a multiple of the limit: a client that sends all before it
/// listens would otherwise see a reset connection instead of the 413.
const DISCARD_FACTOR: usize = 8;

/// How much of a body is read and thrown away at most, where bodies may have so many bytes.
pub(crate) fn discarded_bytes(limit_bytes: usize) -> usize {
    limit_bytes.saturating_mul(DISCARD_FACTOR)
}

/// A JSON body, with the hash that tells whether a request with the same idempotency key is the
/// same request.
#[derive(Debug, Clone)]
pub struct Body<T> {
    /// What the body says.
    pub value: T,
    /// SHA-256 of the method, the path, and what the body says as JSON. Zeros where the request has
    /// no idempotency key, as nobody compares it.
    pub digest: [u8; 32],
}

/// An empty body, or `{}`.
#[derive(Debug, Clone, Copy, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoFields {}

/// Bounds a number of a body.
///
/// # Errors
/// A 422 problem that points to it.
pub(crate) fn in_range(value: i64, lowest: i64, highest: i64, pointer: impl FnOnce() -> String) -> Result<i64, Problem> {
    if (lowest..=highest).contains(&value) {
        return Ok(value);
    }
    Err(Problem::invalid(pointer(), format!("must be between {lowest} and {highest}")))
}

/// The most items of a batch.
pub(crate) const MAX_ITEMS: usize = 1000;

/// Bounds a list of a body by its length.
///
/// # Errors
/// A problem that names the list.
pub(crate) fn count_within(items: usize, most: usize, pointer: &str) -> Result<(), Problem> {
    if (1..=most).contains(&items) { Ok(()) } else { Err(Problem::invalid(pointer, format!("must have between 1 and {most} items"))) }
}

/// Bounds a text of a body by its characters.
///
/// # Errors
/// A 422 problem that points to it.
pub(crate) fn text_within(text: &str, least: usize, most: usize, pointer: &str) -> Result<(), Problem> {
    let length = text.chars().count();
    if (least..=most).contains(&length) {
        Ok(())
    } else {
        Err(Problem::invalid(pointer, format!("must have between {least} and {most} characters")))
    }
}

/// Why a body was refused. Where the rest of it was not read, an HTTP/1 connection is closed with
/// the answer.
#[derive(Debug)]
pub struct BodyRefusal {
    /// What the caller is told.
    pub problem: Problem,
    close: bool,
}

impl From<Problem> for BodyRefusal {
    fn from(problem: Problem) -> Self {
        Self { problem, close: false }
    }
}

impl IntoResponse for BodyRefusal {
    fn into_response(self) -> Response {
        let mut response = self.problem.into_response();
        if self.close {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = BodyRefusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, BodyRefusal> {
        let (parts, body) = request.into_parts();
        // Ignored, `?up_to=5` without a body would mark everything as read.
        if parts.uri.query().is_some_and(|query| !query.is_empty()) {
            let detail = "This route does not accept query parameters. Send the values in the body.";
            return Err(Problem::new(Code::InvalidQuery, detail).into());
        }
        let is_json = content_type(&parts.headers)?;
        let bytes = read(&parts, body, context::body_rules()).await?;
        if bytes.is_empty() {
            // Declared as JSON it is a body that was lost on the way, which must not mean the
            // default: that may be "everything".
            if is_json {
                return Err(malformed("The body is empty, but its content type is JSON. Send {} or omit Content-Type.").into());
            }
            return Ok(Self { value: parse(b"{}")?, digest: digest(&parts, b"{}") });
        }
        if !is_json {
            return Err(media_type("The content type must be application/json.").into());
        }
        Ok(Self { value: parse(&bytes)?, digest: digest(&parts, &bytes) })
    }
}

/// The digest of a request whose body was parsed, if an idempotency key will ask for it.
fn digest(parts: &Parts, body: &[u8]) -> [u8; 32] {
    if !parts.headers.contains_key(IDEMPOTENCY_KEY) {
        return [0; 32];
    }
    // Neither a method nor a path can hold a newline, so no two requests run together.
    let hash = Sha256::new().chain_update(parts.method.as_str()).chain_update("\n").chain_update(parts.uri.path());
    hash.chain_update("\n").chain_update(canonical(body)).finalize().into()
}

fn media_type(detail: &'static str) -> Problem {
    Problem::new(Code::UnsupportedMediaType, detail)
}

/// Whether the body is declared as JSON; `false` when nothing is declared.
fn content_type(headers: &HeaderMap) -> Result<bool, Problem> {
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(media_type("Compressed request bodies are not supported."));
    }
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(value) = values.next() else { return Ok(false) };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let json = essence == "application/json"
        || essence.split_once('/').is_some_and(|(kind, sub)| !kind.is_empty() && sub.len() > 5 && sub.ends_with("+json"));
    if !json || values.next().is_some() {
        return Err(media_type("The content type must be application/json."));
    }
    for parameter in parts {
        let charset = parameter.split_once('=').filter(|(name, _)| name.trim() == "charset").map(|(_, charset)| charset.trim());
        if charset.is_some_and(|charset| !matches!(charset.trim_matches('"'), "utf-8" | "utf8")) {
            return Err(media_type("The charset of JSON must be UTF-8."));
        }
    }
    Ok(true)
}

/// Reads the whole body within its bounds.
async fn read(parts: &Parts, body: axum::body::Body, rules: BodyRules) -> Result<Vec<u8>, BodyRefusal> {
    let close = parts.version < Version::HTTP_2;
    let too_large = |close| BodyRefusal {
        problem: Problem::new(Code::BodyTooLarge, format!("The body must not exceed {} bytes.", rules.limit_bytes)),
        close,
    };
    let declared = body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let most = discarded_bytes(rules.limit_bytes);
    let waits_for_leave = parts.headers.contains_key(header::EXPECT);
    if declared.is_some_and(|size| size > most || (size > rules.limit_bytes && waits_for_leave)) {
        return Err(too_large(close));
    }
    match tokio::time::timeout(rules.timeout, collect(body, rules.limit_bytes, most)).await {
        Ok(Ok(Collected::All(bytes))) => Ok(bytes),
        Ok(Ok(Collected::TooLong { at_end })) => Err(too_large(close && !at_end)),
        Ok(Ok(Collected::NoRoom(problem))) => Err(problem.into()),
        // The detail of the transport's error would tell the caller nothing that it does not know.
        Ok(Err(_)) => {
            Err(BodyRefusal { problem: Problem::new(Code::MalformedRequest, "The body is incomplete or its framing is invalid."), close })
        }
        Err(_) => Err(timed_out(rules.timeout, close)),
    }
}

fn timed_out(timeout: Duration, close: bool) -> BodyRefusal {
    let detail = format!("The body did not arrive within {} ms.", timeout.as_millis());
    BodyRefusal { problem: Problem::new(Code::RequestTimeout, detail), close }
}

enum Collected {
    All(Vec<u8>),
    TooLong {
        at_end: bool,
    },
    /// With the other bodies it would be too much. It was read to its end.
    NoRoom(Problem),
}

async fn collect(mut body: axum::body::Body, limit: usize, most: usize) -> Result<Collected, axum::Error> {
    let mut bytes = Vec::new();
    let (mut seen, mut room) = (0_usize, Ok(()));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen > most {
            return Ok(Collected::TooLong { at_end: false });
        }
        if room.is_ok() && seen <= limit {
            room = make_room(&mut bytes, seen, limit);
        }
        if room.is_ok() && seen <= limit {
            bytes.extend_from_slice(&data);
        } else if bytes.capacity() > 0 {
            bytes = Vec::new();
            context::let_go_of_body();
        }
    }
    Ok(match room {
        _ if seen > limit => Collected::TooLong { at_end: true },
        Ok(()) => Collected::All(bytes),
        Err(problem) => Collected::NoRoom(problem),
    })
}

/// Makes room for a body of this length, and counts it first. A body takes what it needs as it comes:
/// were its declared length taken at once, callers who send nothing could keep all others out. It
/// never waits for room, as requests that hold a part would wait for each other.
fn make_room(bytes: &mut Vec<u8>, length: usize, limit: usize) -> Result<(), Problem> {
    let capacity = bytes.capacity();
    if length <= capacity {
        return Ok(());
    }
    let grown = length.max(capacity.saturating_mul(2).min(limit));
    context::hold_body(grown - capacity)?;
    bytes.reserve_exact(grown - bytes.len());
    Ok(())
}
