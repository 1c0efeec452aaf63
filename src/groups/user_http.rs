//! The routes of the groups that a user is in: reading, and the list with what is unread in each.

use std::sync::OnceLock;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::submit;
use super::{Command, GroupSettingsOut, ReadStep};
use crate::clock::UnixMs;
use crate::error::{Error, Fault, ProblemOut, Result};
use crate::http::body::{Body, NoFields, in_range, present};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::ids::{GroupId, Seq, UserId};
use crate::lane::Answer;
use crate::marks::MAX_HEAD;
use crate::page::{self, PageOut, PageParams, Position};
use crate::poll::{self, Reading, Resource, Seen, Version};
use crate::sheet::{UserGroup, UserGroups};
use crate::state::AppState;

/// The routes of this part.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_user_groups))
        .routes(routes!(read_group))
        .routes(routes!(read_group_message))
        .routes(routes!(put_group_settings))
}

/// How far a group was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadGroupIn {
    /// The head that the user was shown; what came after it stays unread. Without it, all that is there now is read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
    up_to: Option<i64>,
}

/// A member's settings of a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutGroupSettingsIn {
    /// Whether the group is to count in neither `chats` nor the total.
    muted: bool,
}

/// How far a user has read a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadGroupOut {
    /// The group.
    pub group_id: GroupId,
    /// How many messages the user has not read.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// Up to which message all is read.
    #[schema(minimum = 0, example = 117)]
    pub read_seq: i64,
    /// How many messages there ever were.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A group that a user is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserGroupOut {
    /// The group.
    pub group_id: GroupId,
    /// How many messages the user has not read.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// How many messages there ever were; sent back as `up_to`, it clears exactly what was shown.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// Up to which message all is read.
    #[schema(minimum = 0, example = 117)]
    pub read_seq: i64,
    /// When the user last read something new there or sent; at first, when the user joined.
    pub last_access_at: UnixMs,
    /// Whether it counts in neither `chats` nor the total.
    pub muted: bool,
}

impl From<&UserGroup> for UserGroupOut {
    fn from(of: &UserGroup) -> Self {
        let UserGroup { group, mark, head, unread } = of;
        let (read_seq, last_access_at, muted) = (mark.read_seq, mark.at, mark.muted);
        Self { group_id: *group, unread: *unread, head: *head, read_seq, last_access_at, muted }
    }
}

/// Which page, and how long a poll may be held.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UserGroupsParams {
    /// How many entries at most.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304. Needs that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

fn bug(error: impl std::fmt::Display) -> Error {
    Fault::Bug(error.to_string()).into()
}

/// Marks, and counts what the batch could not.
async fn read(state: &AppState, user: UserId, group: GroupId, command: Command) -> Result<Response> {
    let answer = submit(state, command).await?;
    let step: ReadStep = serde_json::from_str(&answer.body).map_err(bug)?;
    let unread = match step.unread {
        Some(unread) => unread,
        None => {
            let groups = state.sheets.groups(user, Seen::revision_alone(step.revision)).await?;
            groups.groups.iter().find(|of| of.group == group).map_or(0, |of| of.unread)
        }
    };
    let ReadStep { read_seq, head, revision, .. } = step;
    Ok(Json(ReadGroupOut { group_id: group, unread, read_seq, head, revision }).into_response())
}

/// Mark a group as read
///
/// Clears what the user was shown: send back the `head` as `up_to`. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/groups/{group}/read", tag = "groups",
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path)),
    request_body(content = ReadGroupIn, description = "May be left out: all that is there now"),
    responses(
        (status = 200, body = ReadGroupOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn read_group(State(state): State<AppState>, path: UserPath, body: Body<ReadGroupIn>) -> Result<Response> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let (user, group) = (path.user, path.get("group")?);
    read(&state, user, group, Command::Read { user, group, up_to }).await
}

/// Mark one message of a group as read
///
/// This one alone, out of order.
#[utoipa::path(post, path = "/v1/users/{user}/groups/{group}/messages/{seq}/read", tag = "groups",
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path), ("seq" = Seq, Path)),
    request_body(content = NoFields, description = "May be left out"),
    responses(
        (status = 200, body = ReadGroupOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn read_group_message(State(state): State<AppState>, path: UserPath, _body: Body<NoFields>) -> Result<Response> {
    let (user, group, seq) = (path.user, path.get("group")?, path.get::<Seq>("seq")?.get());
    read(&state, user, group, Command::ReadOne { user, group, seq }).await
}

/// Mute a group
///
/// It keeps its own number, and counts in neither `chats` nor the total.
#[utoipa::path(put, path = "/v1/users/{user}/groups/{group}/settings", tag = "groups",
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path)),
    request_body = PutGroupSettingsIn,
    responses(
        (status = 200, body = GroupSettingsOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn put_group_settings(State(state): State<AppState>, path: UserPath, body: Body<PutGroupSettingsIn>) -> Result<Answer> {
    submit(&state, Command::Mute { user: path.user, group: path.get("group")?, muted: body.value.muted }).await
}

/// List the groups of a user
///
/// With what is unread in each, in the order of their ids.
#[utoipa::path(get, path = "/v1/users/{user}/groups", tag = "groups",
    params(("user" = UserOrMe, Path), UserGroupsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = PageOut<UserGroupOut>, headers(
            ("Link" = String, description = "The next page, where there is one"),
            ("ETag" = String, description = "The version of the answer"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_user_groups(
    State(state): State<AppState>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<UserGroupsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let UserGroupsParams { limit, cursor, wait } = params;
    let user = path.user;
    let (wanted, wait) = (PageParams { limit, cursor }.wanted("groups", user)?, poll::wait_of(wait)?);
    let read = |seen| {
        let state = state.clone();
        async move {
            let value = state.sheets.groups(user, seen).await?;
            let version = Some(Version::new(value.revision, value.versions));
            Ok(Reading { value, version })
        }
    };
    let next = OnceLock::new();
    let write = |value: &UserGroups| {
        let size = usize::try_from(wanted.rows()).unwrap_or(usize::MAX);
        let from = value.groups.partition_point(|of| of.group.get() <= wanted.after_id());
        let rows: Vec<_> = value.groups.iter().skip(from).take(size).collect();
        let page = page::page(wanted, &rows, |of| Position { at: 0, id: of.group.get() }, |of| UserGroupOut::from(*of));
        next.get_or_init(|| page.next_cursor.clone());
        poll::json(&page)
    };
    let mut response = poll::poll(&state, user, wait, &tags, Resource { read, write }).await?;
    page::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}
