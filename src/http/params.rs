//! What comes beside path and body: the query, and conditions on what the client already has.

use std::borrow::Cow;
use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use serde::de::DeserializeOwned;

use crate::base::error::Problem;
use crate::base::fingerprint::Fingerprint;
use crate::http::path::split_at;
use crate::http::problem;

/// The query as a `T`, which denies unknown fields: a misspelt, repeated or invalid parameter is a
/// 400 problem that names it.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        query(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn query<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let mut seen: Vec<Cow<'_, str>> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = split_at(pair, b'=').unwrap_or((pair, ""));
        let name = decode(name).ok_or_else(|| bad("", "the name must be valid UTF-8 after percent-decoding"))?;
        if decode(value).is_none() {
            return Err(bad(&name, "must be valid UTF-8 after percent-decoding, without U+0000"));
        }
        if seen.contains(&name) {
            return Err(bad(&name, "must not be repeated"));
        }
        if seen.len() >= MAX_PARAMETERS {
            return Err(bad(&name, "exceeds the limit of 32 parameters"));
        }
        seen.push(name);
    }
    let pairs = || serde_urlencoded::Deserializer::new(form_urlencoded::parse(text.as_bytes()));
    // Read once more where something is wrong, to say what: most queries are right.
    T::deserialize(pairs()).or_else(|_| serde_path_to_error::deserialize(pairs())).map_err(|error| {
        let message = error.inner().to_string();
        bad(&problem::place(error.path(), &message).join("."), &problem::detail(&message))
    })
}

/// The query of a route that takes none: a parameter meant for another route is not passed over in
/// silence.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// How many parameters a query may have; no route knows as many.
const MAX_PARAMETERS: usize = 32;

fn bad(name: &str, detail: &str) -> Problem {
    Problem::query(problem::cut(name, 128), detail)
}

/// One name or value of a query, strictly: serde_urlencoded would put U+FFFD for what is not UTF-8.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'+' | b'%' | 0)) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
                digit(bytes.next())? * 16 + digit(bytes.next())?
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok().filter(|text| !text.contains('\0')).map(Cow::Owned)
}

/// The `If-None-Match` header, and of which resource it names answers. A malformed one counts as
/// absent, so that a broken cache costs a body and not an error.
#[derive(Debug, Clone, Default)]
pub struct IfNoneMatch {
    condition: Condition,
    resource: Fingerprint,
}

#[derive(Debug, Clone, Default)]
enum Condition {
    #[default]
    Absent,
    Any,
    /// A single entity tag, as nearly everybody sends it.
    Tag(HeaderValue),
    /// Checked: a list of entity tags.
    Tags(HeaderValue),
}

impl IfNoneMatch {
    /// Whether the client already has the answer with this tag (weak comparison; `*` matches
    /// whatever there is).
    #[must_use]
    pub fn matches(&self, etag: &str) -> bool {
        match &self.condition {
            Condition::Absent => false,
            Condition::Any => true,
            Condition::Tag(tag) => opaque(tag.as_bytes()) == opaque(etag.as_bytes()),
            Condition::Tags(_) => self.tags().any(|tag| opaque(tag.as_bytes()) == opaque(etag.as_bytes())),
        }
    }

    /// Whether the header is there, and well-formed.
    #[must_use]
    pub fn is_present(&self) -> bool {
        !matches!(self.condition, Condition::Absent)
    }

    /// The tags as they were sent, quotes and `W/` included; none for `*`.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let (one, list) = match &self.condition {
            Condition::Tag(tag) => (tag.to_str().ok(), ""),
            Condition::Tags(list) => (None, list.to_str().unwrap_or_default()),
            Condition::Absent | Condition::Any => (None, ""),
        };
        one.into_iter().chain(Tags { rest: list }.map_while(Result::ok))
    }

    /// The resource that was asked for: its path and its query. Two ways to name the same user are
    /// one resource, and how long to wait is no part of it.
    #[must_use]
    pub fn resource(&self) -> Fingerprint {
        self.resource
    }

    /// A header alone, of no resource.
    #[must_use]
    pub fn parse(value: HeaderValue) -> Self {
        Self { condition: Condition::parse(value), resource: Fingerprint::default() }
    }
}

/// A tag without its mark of weakness.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether it is a single tag without blanks, well-formed.
fn is_one_tag(value: &[u8]) -> bool {
    let inside = opaque(value).strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inside.is_some_and(|inside| inside.iter().fold(true, |good, byte| good & (byte.is_ascii_graphic() & (*byte != b'"'))))
}

impl Condition {
    fn parse(value: HeaderValue) -> Self {
        if is_one_tag(value.as_bytes()) {
            return Self::Tag(value);
        }
        let Ok(text) = value.to_str() else { return Self::Absent };
        if text.trim() == "*" {
            return Self::Any;
        }
        let mut tags = Tags { rest: text }.peekable();
        if tags.peek().is_none() || !tags.all(|tag| tag.is_ok()) {
            return Self::Absent;
        }
        Self::Tags(value)
    }

    fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::IF_NONE_MATCH).iter();
        let Some(first) = values.next() else { return Self::Absent };
        let mut rest = values.peekable();
        if rest.peek().is_none() {
            return Self::parse(first.clone());
        }
        // Several lines mean one list.
        let mut joined = first.as_bytes().to_vec();
        for value in rest {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(value.as_bytes());
        }
        HeaderValue::from_bytes(&joined).map(Self::parse).unwrap_or_default()
    }
}

/// A fingerprint of path and query, without the user in the path (who may be written as an id or as
/// `me`) and without `wait`.
#[must_use]
pub fn resource(uri: &Uri) -> Fingerprint {
    let mut resource = Fingerprint::default();
    match uri.path().strip_prefix("/v1/users/").and_then(|rest| split_at(rest, b'/')) {
        Some((_user, rest)) => resource.add_bytes(rest.as_bytes()),
        None => resource.add_bytes(uri.path().as_bytes()),
    }
    let pairs = uri.query().unwrap_or_default().as_bytes().split(|byte| *byte == b'&');
    for pair in pairs.filter(|pair| !pair.is_empty() && !pair.starts_with(b"wait=")) {
        resource.add_bytes(b"&");
        resource.add_bytes(pair);
    }
    resource
}

/// Walks a list of entity tags, which may hold commas inside their quotes; stops at the first that
/// is malformed.
struct Tags<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<&'a str, ()>;

    fn next(&mut self) -> Option<Self::Item> {
        let list = self.rest.trim_start_matches([' ', '\t', ',']);
        if list.is_empty() {
            return None;
        }
        self.rest = "";
        let Some(opaque) = list.strip_prefix("W/").unwrap_or(list).strip_prefix('"') else { return Some(Err(())) };
        let Some((_, after)) = opaque.split_once('"') else { return Some(Err(())) };
        let after_blanks = after.trim_start_matches([' ', '\t']);
        if !after_blanks.is_empty() && !after_blanks.starts_with(',') {
            return Some(Err(()));
        }
        self.rest = after_blanks;
        Some(list.get(..list.len() - after.len()).ok_or(()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { condition: Condition::of(&parts.headers), resource: resource(&parts.uri) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Code;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Page {
        limit: Option<u32>,
        cursor: Option<String>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct After {
        #[serde(rename = "after")]
        _after: u64,
    }

    #[test]
    fn a_good_query_is_read_and_a_bad_one_names_the_parameter() {
        let page: Page = query("limit=7&cursor=a%20b+c%C3%A9").unwrap();
        assert_eq!((page.limit, page.cursor.as_deref()), (Some(7), Some("a b cé")));
        assert_eq!(query::<Page>("").unwrap().limit, None);
        let many = (0..40).map(|n| format!("p{n}=1")).collect::<Vec<_>>().join("&");
        for (bad, pointer) in [
            ("limit=x", "limit"),
            ("limit=-1", "limit"),
            ("limt=1", "limt"),
            ("limit=1&limit=1", "limit"),
            ("limit=1&lim%69t=2", "limit"),
            ("cursor=%ff", "cursor"),
            ("cursor=%zz", "cursor"),
            ("cursor=%", "cursor"),
            ("cursor=%00", "cursor"),
            (many.as_str(), "p32"),
        ] {
            let problem = query::<Page>(bad).unwrap_err();
            assert_eq!((problem.code, problem.errors[0].pointer.as_str()), (Code::InvalidQuery, pointer), "{bad}: {problem:?}");
        }
        assert_eq!(query::<After>("").unwrap_err().errors[0].pointer, "after");
    }

    fn header(text: &str) -> IfNoneMatch {
        IfNoneMatch::parse(HeaderValue::from_str(text).unwrap())
    }

    #[test]
    fn tags_compare_weakly() {
        for (sent, tag, matches) in [
            ("\"a\"", "W/\"a\"", true),
            ("W/\"a\"", "\"a\"", true),
            ("W/\"a\" , \"b,c\",W/\"d\"", "W/\"b,c\"", true),
            ("W/\"a\", \"b,c\"", "W/\"b\"", false),
            ("*", "W/\"a\"", true),
            ("a", "a", false),
            ("\"a", "\"a", false),
            ("\"a\" \"b\"", "\"a\"", false),
            ("", "", false),
        ] {
            assert_eq!(header(sent).matches(tag), matches, "{sent}");
        }
        assert_eq!(header("W/\"a\", \"b,c\"").tags().collect::<Vec<_>>(), ["W/\"a\"", "\"b,c\""]);
        let of = |uri: &str| resource(&uri.parse().unwrap()).finish();
        for same in ["/v1/users/7/badges?cap=9&wait=5", "/v1/users/7/badges?wait=5&cap=9", "/v1/users/me/badges?cap=9"] {
            assert_eq!(of(same), of("/v1/users/7/badges?cap=9"), "{same}");
        }
        for other in ["/v1/users/7/badges", "/v1/users/7/badges?cap=99", "/v1/users/7/feed?cap=9", "/v1/groups/7/badges?cap=9"] {
            assert_ne!(of(other), of("/v1/users/7/badges?cap=9"), "{other}");
        }
        assert!(!header("junk").is_present() && !IfNoneMatch::default().is_present() && header("*").is_present());
    }
}
