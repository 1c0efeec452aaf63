//! Request bodies: bounded in length, time and depth, JSON only, and every fault told with its
//! place.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::marker::PhantomData;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::base::error::{Code, Problem};
use crate::engine::idempotency::Key;
use crate::http::auth::Caller;
use crate::http::canonical::canonical;
use crate::http::context::{self, BodyRules};
use crate::http::problem;

/// How deep JSON may nest: what serde_json itself allows, also where it would not look (raw
/// values).
const MAX_DEPTH: usize = 127;
/// How much of a body that is too long is read and thrown away, as a multiple of the limit: a client that sends all before it
/// listens would otherwise see a reset connection instead of the 413.
const DISCARD_FACTOR: usize = 8;

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
pub struct Refusal {
    /// What the caller is told.
    pub problem: Problem,
    close: bool,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, close: false }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.problem.into_response();
        if self.close {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
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
async fn read(parts: &Parts, body: axum::body::Body, rules: BodyRules) -> Result<Vec<u8>, Refusal> {
    let close = parts.version < Version::HTTP_2;
    let too_large = |close| Refusal {
        problem: Problem::new(Code::BodyTooLarge, format!("The body must not exceed {} bytes.", rules.limit_bytes)),
        close,
    };
    let declared = body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let most = rules.limit_bytes.saturating_mul(DISCARD_FACTOR);
    let waits_for_leave = parts.headers.contains_key(header::EXPECT);
    if declared.is_some_and(|size| size > most || (size > rules.limit_bytes && waits_for_leave)) {
        return Err(too_large(close));
    }
    match tokio::time::timeout(rules.timeout, collect(body, rules.limit_bytes, most)).await {
        Ok(Ok(Collected::All(bytes))) => Ok(bytes),
        Ok(Ok(Collected::TooLong { at_end })) => Err(too_large(close && !at_end)),
        // The detail of the transport's error would tell the caller nothing that it does not know.
        Ok(Err(_)) => {
            Err(Refusal { problem: Problem::new(Code::MalformedRequest, "The body is incomplete or its framing is invalid."), close })
        }
        Err(_) => Err(timed_out(rules.timeout, close)),
    }
}

fn timed_out(timeout: Duration, close: bool) -> Refusal {
    let detail = format!("The body did not arrive within {} ms.", timeout.as_millis());
    Refusal { problem: Problem::new(Code::RequestTimeout, detail), close }
}

enum Collected {
    All(Vec<u8>),
    TooLong { at_end: bool },
}

async fn collect(mut body: axum::body::Body, limit: usize, most: usize) -> Result<Collected, axum::Error> {
    let mut bytes = Vec::new();
    let mut seen = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen > most {
            return Ok(Collected::TooLong { at_end: false });
        }
        if seen <= limit {
            bytes.extend_from_slice(&data);
        } else {
            bytes = Vec::new();
        }
    }
    Ok(if seen > limit { Collected::TooLong { at_end: true } } else { Collected::All(bytes) })
}

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

fn malformed(detail: &str) -> Problem {
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
    problem::pointer(&path)
}

/// Reads an optional field that is there, and refuses `null`: a client that lost its value must not
/// mean the default, which may be "everything": `#[serde(default, deserialize_with = "present")]`.
///
/// # Errors
/// The deserializer's own.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a list of objects. serde by itself takes an array for an object, whose values would then
/// be its fields in order: `#[serde(deserialize_with = "objects")]`.
///
/// # Errors
/// The deserializer's own, and one for what is no object.
pub fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Object<T>(T);

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Fields<T>(PhantomData<T>);

            impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
                type Value = T;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                    T::deserialize(MapAccessDeserializer::new(fields))
                }
            }

            deserializer.deserialize_map(Fields(PhantomData)).map(Self)
        }
    }

    Ok(Vec::<Object<T>>::deserialize(deserializer)?.into_iter().map(|object| object.0).collect())
}

/// Reads an object and keeps its text, with its numbers and the order of its fields. `null` is
/// refused, as [`present`] does: `#[serde(default, deserialize_with = "raw_object")]`.
///
/// # Errors
/// The deserializer's own, and one for what is no object.
pub fn raw_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if raw.get().starts_with('{') {
        return Ok(Some(raw));
    }
    let found = match raw.get().bytes().next() {
        Some(b'[') => Unexpected::Seq,
        Some(b'"') => Unexpected::Other("string"),
        Some(b'n') => Unexpected::Unit,
        Some(b't') => Unexpected::Bool(true),
        Some(b'f') => Unexpected::Bool(false),
        _ => Unexpected::Other("number"),
    };
    Err(D::Error::invalid_type(found, &"an object"))
}

/// Reads an object as a map, and refuses a key that is there twice, of which serde would silently
/// keep the last: `#[serde(default, deserialize_with = "unique_map")]`.
///
/// # Errors
/// The deserializer's own, and one for the second key.
pub fn unique_map<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    struct Unique<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de> + Ord + fmt::Display, V: Deserialize<'de>> Visitor<'de> for Unique<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry::<K, V>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(Unique(PhantomData))
}

/// The `Idempotency-Key` header: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 255, pattern = "^[!-~]+$", example = "comment-9001")]
pub struct IdempotencyKey(pub Option<String>);

impl IdempotencyKey {
    /// The key of this caller for the request with this digest.
    #[must_use]
    pub fn of(self, caller: &Caller, digest: &[u8; 32]) -> Option<Key> {
        let mut hex = String::with_capacity(64);
        for byte in digest {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        self.0.map(|key| Key { caller: caller.id(), key, digest: hex })
    }
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let bad = |detail| Problem::new(Code::InvalidHeader, "The header is invalid. See errors.").at("Idempotency-Key", detail);
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        if values.next().is_some() {
            return Err(bad("must not be repeated"));
        }
        let key = value.to_str().unwrap_or_default();
        if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(bad("must have 1 to 255 visible ASCII characters"));
        }
        Ok(Self(Some(key.to_owned())))
    }
}

#[cfg(test)]
mod tests;
