//! Pages of a list in the order of names, as [`pages`](super::pages) has them of numbers: a cursor
//! is the last name that was shown.

use axum::Json;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::pages::{ListPrint, PageOut, add_link, bad_cursor, limit_of};
use crate::base::error::{Error, Problem};
use crate::base::ids::Name;

/// Which page.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NamePageParams {
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    pub limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^3[0-9a-f]{4}[a-z0-9][a-z0-9_.-]{0,63}$")]
    pub cursor: Option<String>,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedNames {
    /// The name that the page comes after; None: from the first.
    pub after: Option<Name>,
    limit: usize,
    list: ListPrint,
}

/// A version, the list, and the name.
fn cursor_of(name: &str, list: ListPrint) -> String {
    format!("3{list}{name}")
}

/// None for what is no cursor, or that of another list.
fn name_of(cursor: &str, list: ListPrint) -> Option<Name> {
    let (of, name) = cursor.strip_prefix('3')?.split_at_checked(4)?;
    (of == list.to_string()).then(|| name.parse().ok()).flatten()
}

impl NamePageParams {
    /// Checks the parameters for a list by its name.
    ///
    /// # Errors
    /// A 400 problem for a limit out of range or a cursor that is broken, or another list's.
    pub fn wanted(&self, list: &str) -> Result<WantedNames, Problem> {
        let (list, limit) = (ListPrint::new(list, ""), limit_of(self.limit)?);
        let after = self.cursor.as_deref().map(|cursor| name_of(cursor, list).ok_or_else(bad_cursor)).transpose()?;
        Ok(WantedNames { after, limit: usize::try_from(limit).unwrap_or(usize::MAX), list })
    }
}

/// Answers with a page of these, which come in the order of their names, after the name that the page
/// comes after.
///
/// # Errors
/// As [`add_link`].
pub fn respond<O: Serialize>(uri: &Uri, wanted: &WantedNames, items: impl Iterator<Item = (Name, O)>) -> Result<Response, Error> {
    let mut shown: Vec<_> = items.filter(|(name, _)| wanted.after.as_ref() < Some(name)).take(wanted.limit + 1).collect();
    let has_more = shown.len() > wanted.limit;
    shown.truncate(wanted.limit);
    let next_cursor = shown.last().filter(|_| has_more).map(|(name, _)| cursor_of(name.as_str(), wanted.list));
    let next = next_cursor.clone();
    let mut response = Json(PageOut { items: shown.into_iter().map(|(_, item)| item).collect(), next_cursor }).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    add_link(&mut response, uri, next.as_deref())?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_were_written_and_nothing_else_is() {
        let (dots, channels) = (ListPrint::new("dots", ""), ListPrint::new("broadcasts", ""));
        for name in ["a", "mall.red-1_x", &"z".repeat(64)] {
            let cursor = cursor_of(name, dots);
            assert_eq!(name_of(&cursor, dots), name.parse().ok());
            assert_eq!(name_of(&cursor, channels), None);
        }
        let good = cursor_of("mall", dots);
        let long = format!("{good}{}", "z".repeat(61));
        for bad in ["", "3", "mall", &good[..5], &good.replacen('3', "2", 1), &good.to_uppercase(), &format!("{good}:"), &long, "3éé"] {
            assert_eq!(name_of(bad, dots), None, "{bad}");
        }
    }
}
