//! The route of the changes of a group's messages.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::{GroupContext, GroupPath};
use super::last_read::{LastRead, PageBody};
use super::message_changes::{self, ChangesExpired};
use crate::base::error::{Code, Problem, Result};
use crate::base::ids::GroupId;
use crate::http::pages;
use crate::http::params::{IfNoneMatch, Query};
use crate::http::polling::{self, Asked, PolledValue, Resource, Seen, Wakers};
use crate::http::served::Served;

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<GroupContext>> {
    OpenApiRouter::new().routes(routes!(list_group_message_changes))
}

/// Which changes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GroupMessageChangesParams {
    /// Return changes after this id. By default, changes start with the oldest one kept.
    #[param(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    after: Option<i64>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// Hold the request for up to this many seconds while there are no changes after `after`.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// A change of a group message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupMessageChangeOut {
    /// The id of the change. Ids increase in the order of the changes.
    #[schema(minimum = 1, example = 12)]
    pub id: i64,
    /// The number of the message in the group.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// True: the message was recalled.
    pub recalled: bool,
}

/// Changes of group messages, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupMessageChangesOut {
    /// The changes.
    pub items: Vec<GroupMessageChangeOut>,
    /// The value of `after` for the next request.
    #[schema(minimum = 0, example = 12)]
    pub next_after: i64,
    /// Whether there are more changes.
    pub has_more: bool,
}

/// List changes of group messages
///
/// Tells which earlier messages were recalled, in the order of the recalls. A member sees the
/// changes of messages sent since the last time the member joined. Changes expire with their
/// messages. The last 10,000 changes of a group are kept: returns 410 `cursor_expired` with
/// `earliest_seq` (an id of a change) if changes after `after` are no longer kept. Then read the
/// messages again. With `wait`, the request is held while there are no changes after `after`.
#[utoipa::path(get, path = "/v1/groups/{group}/messages/changes", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "cursor_expired"]))),
    params(("group" = GroupId, Path), GroupMessageChangesParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = GroupMessageChangesOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_group_message_changes(
    state: Served<GroupContext>,
    path: GroupPath,
    Query(params): Query<GroupMessageChangesParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (after, limit, wait) = (pages::after_of(params.after)?, pages::limit_of(params.limit)?, polling::wait_of(params.wait)?);
    let (user, changes) = (path.user(), (wait > 0).then(|| state.changes.listen(path.group)).flatten());
    let last = LastRead::new(&state, path.group, user, wait > 0);
    let read = |_: Seen| {
        let (state, path, last) = (&state, &path, &last);
        async move {
            let page = last.read(read(state, path, after, limit)).await?;
            Ok(PolledValue { version: Some(page.version), value: page, changes_at: None })
        }
    };
    let resource = Resource { read, write: |page: &PageBody| Ok(page.bytes.clone()) };
    let (asked, wakers) = (Asked { tags: &tags, about: None, wait }, Wakers { user, peer: None, also: changes, shared: true });
    polling::poll_after(&state.polling, asked, wakers, resource, |page| page.is_empty).await
}

async fn read(state: &GroupContext, path: &GroupPath, after: Option<i64>, limit: u32) -> Result<PageBody> {
    let since = path.view(&state.db).await?.since.unwrap_or(0);
    let rows = i64::from(limit) + 1;
    let read = message_changes::read(&state.db, path.group, after.unwrap_or(0), since, rows);
    let found = state.entries.in_turn(read).await?;
    let last = found.last;
    let page = message_changes::page(after, found, usize::try_from(limit).unwrap_or(usize::MAX));
    let page = page.map_err(|ChangesExpired(first)| {
        let detail = format!("Changes of messages of group {} before {first} are no longer kept. Read the messages again.", path.group);
        Problem::new(Code::CursorExpired, detail).kept_from(first)
    })?;
    let items: Vec<_> = page.changes.iter().map(|(id, seq)| GroupMessageChangeOut { id: *id, seq: *seq, recalled: true }).collect();
    let is_empty = items.is_empty();
    PageBody::new(&GroupMessageChangesOut { items, next_after: page.next_after, has_more: page.has_more }, last, is_empty)
}
