//! The route of a user's list.

use std::sync::OnceLock;

use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::NotificationContext;
use super::lists::{self, Page};
use super::{NotificationEntryOut, Status};
use crate::base::error::{Error, Result};
use crate::base::ids::{Name, UserId};
use crate::engine::entries::State;
use crate::http::pages::{self, PageOut, PageParams, Position, Wanted};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::polling::{self, PolledValue, Resource, Seen, Version};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<NotificationContext>> {
    OpenApiRouter::new().routes(routes!(list_notifications))
}

/// Which entries of a user's list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListNotificationsParams {
    /// Return unread entries, unread ones that the user has not seen in the list, read ones, or all.
    #[param(nullable = false, inline)]
    status: Option<Status>,
    /// Return entries of this type. All types by default.
    #[param(nullable = false)]
    r#type: Option<Name>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
    /// Hold the request for up to this many seconds until the response differs from the one that
    /// `If-None-Match` names; then return 304. Requires that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// Which page.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    status: Status,
    kind: Option<&'a Name>,
    wanted: Wanted,
}

/// Poll a user's notifications
///
/// Newest first. An entry that a notification joins moves to the top: a client that walks through
/// the pages finds it there when it polls the first page again.
#[utoipa::path(get, path = "/v1/users/{user}/notifications", tag = "notifications",
    params(("user" = UserOrMe, Path), ListNotificationsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = PageOut<NotificationEntryOut>, headers(
            ("ETag" = String, description = "The version of the response"),
            ("Link" = String, description = "The next page, if any"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_notifications(
    state: Served<NotificationContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<ListNotificationsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let ListNotificationsParams { status, r#type: kind, limit, cursor, wait } = params;
    let (user, wait) = (path.user, polling::wait_of(wait)?);
    let wanted = PageParams { limit, cursor }.wanted("notifications", user)?;
    let asked = Asked { status: status.unwrap_or_default(), kind: kind.as_ref(), wanted };
    let read = |seen: Seen| {
        let (state, tags) = (&state, &tags);
        async move { read(state, user, asked, seen, tags).await }
    };
    let next = OnceLock::new();
    let write = |found: &Page| {
        let place = |entry: &lists::Listed| Position { at: entry.seq, id: 0 };
        let page = pages::page(wanted, &found.entries, place, |entry| NotificationEntryOut::new(entry, found.seen));
        next.get_or_init(|| page.next_cursor.clone());
        polling::json(&page)
    };
    let mut response = polling::poll_own(&state.polling, user, wait, &tags, Resource { read, write }).await?;
    pages::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}

/// Reads a page, not older than what the client has seen. Its tag is made from the user's revision,
/// which every change of the list raises, also an edit. Where the client has the answer already,
/// the list is not read.
async fn read(state: &NotificationContext, user: UserId, asked: Asked<'_>, seen: Seen, tags: &IfNoneMatch) -> Result<PolledValue<Page>> {
    let State::Current(entry) = state.entries.read(user, seen.revision()).await else { return Err(Error::store_unavailable()) };
    let (mut page, mut revision) = (Page::default(), entry.revision);
    if !tags.matches(&seen.tag(Version::from(revision))) {
        let Asked { status, kind, wanted } = asked;
        page = state.entries.in_turn(lists::page(&state.db, user, status, kind, wanted.after.at, wanted.rows())).await?;
        // What was written since the entry was read shows in the page, whose revision is of the same statement.
        revision = revision.max(page.revision);
    }
    Ok(PolledValue { value: page, version: Some(Version::from(revision)), changes_at: None })
}
