//! Pages of a list: `?limit=` and `?cursor=` in, items, `next_cursor` and a `Link` header out.
//!
//! Keyset: a cursor names the last entry that was shown, by its place in the list's order, so what
//! comes and goes between two pages neither repeats nor skips an entry that stays. A list asks its
//! store for one entry more than the page holds, and hands all to [`respond`].

use std::fmt::{self, Write as _};

use axum::Json;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::base::error::{Code, Error, Problem};
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::MAX_HEAD;

/// The most entries of a page.
pub const MAX_LIMIT: u32 = 100;

/// The entries of a page for which no limit was given.
pub const DEFAULT_LIMIT: u32 = 20;

/// Which page.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageParams {
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    pub cursor: Option<String>,
}

/// A place in a list that is sorted by two numbers, the first of which is most often a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The first number.
    pub at: i64,
    /// The second one, which tells apart entries with the same first.
    pub id: i64,
}

impl Position {
    /// Before every entry of a list that shows the highest first.
    pub const TOP: Self = Self { at: i64::MAX, id: i64::MAX };

    /// As clients hold it: a version, the list, and the two numbers in hex.
    fn cursor(self, list: ListPrint) -> String {
        format!("2{list}{:016x}{:016x}", self.at.cast_unsigned(), self.id.cast_unsigned())
    }

    /// None for what is no cursor, or that of another list.
    fn from_cursor(cursor: &str, list: ListPrint) -> Option<Self> {
        let digits = cursor.strip_prefix('2').filter(|rest| rest.len() == 36)?;
        if !digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        let number = |hex: &str| u64::from_str_radix(hex, 16).ok().map(u64::cast_signed);
        let (of, numbers) = digits.split_at_checked(4)?;
        let (at, id) = numbers.split_at_checked(16)?;
        (u16::from_str_radix(of, 16).ok()? == list.0).then_some(Self { at: number(at)?, id: number(id)? })
    }
}

/// Whose list of what: a cursor of another one would silently begin anywhere, or be at the end. A
/// print of 16 bits, for mistakes; nothing is kept secret by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListPrint(u16);

/// Four hex digits.
impl fmt::Display for ListPrint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

impl ListPrint {
    pub(super) fn new(list: &str, of: impl fmt::Display) -> Self {
        let mut print = Fingerprint::default();
        // Writing to a print cannot fail.
        let _ = write!(print, "{list} {of}");
        Self((print.finish() & u64::from(u16::MAX)).try_into().unwrap_or_default())
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The entry that the page comes after.
    pub after: Position,
    /// How many entries.
    pub limit: u32,
    list: ListPrint,
}

impl Wanted {
    /// For a list that shows the lowest id first: the id that the page comes after.
    #[must_use]
    pub fn after_id(self) -> i64 {
        if self.after == Position::TOP { 0 } else { self.after.id }
    }

    /// How many entries to ask the store for: one more than the page holds, which tells whether
    /// another page follows.
    #[must_use]
    pub fn rows(self) -> i64 {
        i64::from(self.limit) + 1
    }
}

/// How many entries a page is to have at most.
///
/// # Errors
/// A problem where that is not from 1 to [`MAX_LIMIT`].
pub fn limit_of(limit: Option<u32>) -> Result<u32, Problem> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) { Ok(limit) } else { Err(Problem::query("limit", format!("must be between 1 and {MAX_LIMIT}"))) }
}

/// The cursor is broken, or another list's.
pub(super) fn bad_cursor() -> Problem {
    let detail = "Use next_cursor from the previous page of the same list, unchanged.";
    Problem::new(Code::InvalidCursor, detail).at("cursor", "is not a cursor of this list")
}

/// The number that a list goes on after.
///
/// # Errors
/// A problem where that is not from 0 to [`MAX_HEAD`].
pub fn after_of(after: Option<i64>) -> Result<Option<i64>, Problem> {
    match after {
        Some(after) if !(0..=MAX_HEAD).contains(&after) => Err(Problem::query("after", format!("must be between 0 and {MAX_HEAD}"))),
        after => Ok(after),
    }
}

impl PageParams {
    /// Checks the parameters for a list by its name, and whose it is.
    ///
    /// # Errors
    /// A 400 problem for a limit out of range or a cursor that is broken, or another list's.
    pub fn wanted(&self, list: &str, of: impl fmt::Display) -> Result<Wanted, Problem> {
        let (list, limit) = (ListPrint::new(list, of), limit_of(self.limit)?);
        let after = match &self.cursor {
            None => Position::TOP,
            Some(cursor) => Position::from_cursor(cursor, list).ok_or_else(bad_cursor)?,
        };
        Ok(Wanted { after, limit, list })
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PageOut<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; null on the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

/// A page, given up to one entry more than it holds.
pub fn page<T, O>(wanted: Wanted, rows: &[T], position: impl Fn(&T) -> Position, out: impl Fn(&T) -> O) -> PageOut<O> {
    let size = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let shown = rows.get(..size).unwrap_or(rows);
    let next_cursor = shown.last().filter(|_| rows.len() > size).map(|last| position(last).cursor(wanted.list));
    PageOut { items: shown.iter().map(out).collect(), next_cursor }
}

/// Adds the link to the next page to an answer. `uri` is the request's own, from which the link is
/// made.
///
/// # Errors
/// None that a request could cause: the link is a valid header value, being made of a valid
/// address.
pub fn add_link(response: &mut Response, uri: &Uri, next_cursor: Option<&str>) -> Result<(), Error> {
    if let Some(cursor) = next_cursor {
        let link = HeaderValue::try_from(link(uri, cursor))
            .map_err(|_| crate::base::error::Fault::Bug("a link that is no header value".to_owned()))?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(())
}

/// Answers with a page, given up to one entry more than it holds.
///
/// # Errors
/// As [`add_link`].
pub fn respond<T, O: Serialize>(
    uri: &Uri,
    wanted: Wanted,
    rows: &[T],
    position: impl Fn(&T) -> Position,
    out: impl Fn(&T) -> O,
) -> Result<Response, Error> {
    let page = page(wanted, rows, position, out);
    let next = page.next_cursor.clone();
    let mut response = Json(page).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    add_link(&mut response, uri, next.as_deref())?;
    Ok(response)
}

/// RFC 8288, relative to the request: the server need not know under which name the client reaches
/// it.
fn link(uri: &Uri, cursor: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        // Who has no tag of the next page yet cannot wait for it to change.
        if !["cursor", "wait"].contains(&name.as_ref()) {
            query.append_pair(&name, &value);
        }
    }
    query.append_pair("cursor", cursor);
    format!("<{}?{}>; rel=\"next\"", uri.path(), query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written_and_nothing_else_is() {
        let [list, owner, name] = [("followers", 7), ("followers", 8), ("following", 7)].map(|(list, of)| ListPrint::new(list, of));
        for position in [Position { at: 1_700_000_000_123, id: 42 }, Position::TOP, Position { at: -1, id: 0 }] {
            assert_eq!(Position::from_cursor(&position.cursor(list), list), Some(position));
            assert_eq!([owner, name].map(|other| Position::from_cursor(&position.cursor(list), other)), [None, None]);
        }
        let good = Position { at: 10, id: 11 }.cursor(list);
        let (longer, shorter, other) = (format!("{good}0"), good.split_at(36).0, good.replacen('2', "1", 1));
        for bad in [
            "",
            "2",
            "abc",
            &longer,
            shorter,
            &other,
            &good.to_uppercase(),
            &format!("2{}", "é".repeat(18)),
            &format!("2+{}", "0".repeat(35)),
        ] {
            assert_eq!(Position::from_cursor(bad, list), None, "{bad}");
        }
    }

    #[test]
    fn the_link_keeps_what_else_was_asked() {
        let uri = Uri::from_static("/v1/users/me/followers?limit=7&cursor=old&curso%72=older");
        assert_eq!(link(&uri, "new"), "</v1/users/me/followers?limit=7&cursor=new>; rel=\"next\"");
        let held = Uri::from_static("/v1/users/1/chats?wait=30&limit=7");
        assert_eq!(link(&held, "n"), "</v1/users/1/chats?limit=7&cursor=n>; rel=\"next\"", "a poll of it needs its own tag");
        assert_eq!(link(&Uri::from_static("/v1/users/1/following"), "n"), "</v1/users/1/following?cursor=n>; rel=\"next\"");
    }
}
