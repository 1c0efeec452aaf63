//! The routes of the groups that a user is in: reading, and the list with what is unread in each.

use std::sync::OnceLock;

use axum::Json;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::chats::Which;
use super::http::{GroupContext, submit};
use super::lists;
use super::user_groups::{self, UserGroup, UserGroups};
use super::{GroupCommand, GroupSettingsOut, ReadStep, no_member};
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::{GroupId, MAX_HEAD, Seq, UserId};
use crate::engine::lanes::{Answer, after_commit};
use crate::features::level::{Level, LevelUntil};
use crate::http::body::{Body, NoFields, in_range, present};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::polling::{self, PolledValue, Resource, Seen, Version, WaitParams};
use crate::http::served::Served;

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<GroupContext>> {
    OpenApiRouter::new()
        .routes(routes!(list_user_groups))
        .routes(routes!(get_user_group))
        .routes(routes!(read_group))
        .routes(routes!(read_group_message))
        .routes(routes!(unread_group))
        .routes(routes!(put_group_settings))
}

/// How far a user has read a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadGroupIn {
    /// The head that the user saw; later items stay unread. By default, all current items are
    /// marked as read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
    up_to: Option<i64>,
}

/// From where on messages show as unread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnreadGroupIn {
    /// The first message to show as unread.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 118)]
    from: i64,
}

/// A member's settings of a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutGroupSettingsIn {
    /// What of the group `chats` and `total` count.
    level: Level,
    /// When the level ends and becomes `all` again, which must be in the future. By default, it
    /// does not end.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    until: Option<UnixMs>,
}

/// How far a user has read a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadGroupOut {
    /// The group.
    pub group_id: GroupId,
    /// The number of unread messages.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The message up to which the user has read.
    #[schema(minimum = 0, example = 117)]
    pub read_seq: i64,
    /// The number of messages ever sent.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// A group of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserGroupOut {
    /// The group.
    pub group_id: GroupId,
    /// The number of unread messages.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// How many of them mention the user, by name or with all members.
    #[schema(minimum = 0, example = 1)]
    pub mentions: i64,
    /// The number of messages ever sent; send it back as `up_to` to clear exactly what the user
    /// saw.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// The message up to which the user has read.
    #[schema(minimum = 0, example = 117)]
    pub read_seq: i64,
    /// The first unread message; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 118)]
    pub first_unread_seq: Option<i64>,
    /// When the user last read a new message or sent one; initially, when the user joined.
    pub last_access_at: UnixMs,
    /// What of the group `chats` and `total` count.
    pub level: Level,
    /// When the level ends; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level_until: Option<UnixMs>,
}

impl UserGroupOut {
    fn new(of: &UserGroup, now: UnixMs) -> Self {
        let UserGroup { group, mark, head, numbers, .. } = of;
        Self {
            group_id: *group,
            unread: numbers.unread,
            mentions: numbers.mentions,
            head: *head,
            read_seq: mark.read_seq,
            first_unread_seq: numbers.first,
            last_access_at: mark.at,
            level: mark.level.at(now),
            level_until: mark.level.ends_at(now),
        }
    }
}

/// Which page, and how long a poll may be held.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UserGroupsParams {
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

/// Marks, and counts what the batch could not.
async fn read(state: &GroupContext, user: UserId, group: GroupId, command: GroupCommand) -> Result<Response> {
    let answer = submit(state, command).await?;
    let step: ReadStep = answer.value()?;
    let unread = match step.unread {
        Some(unread) => unread,
        None => {
            let groups = user_groups::read(state, user, Which::One(group), Seen::revision_alone(step.revision)).await;
            let groups = groups.map_err(after_commit)?;
            groups.groups.first().map_or(0, |of| of.numbers.unread)
        }
    };
    let ReadStep { read_seq, head, revision, .. } = step;
    Ok(Json(ReadGroupOut { group_id: group, unread, read_seq, head, revision }).into_response())
}

/// Mark a group as read
///
/// Send back the `head` as `up_to` to clear exactly what the user saw. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/groups/{group}/read", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path)),
    request_body(content = ReadGroupIn, description = "Optional. Default: all current items"),
    responses(
        (status = 200, body = ReadGroupOut)))]
async fn read_group(state: Served<GroupContext>, path: UserPath, body: Body<ReadGroupIn>) -> Result<Response> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let (user, group) = (path.user, path.get("group")?);
    read(&state, user, group, GroupCommand::Read { user, group, up_to }).await
}

/// Mark one group message as read
///
/// Marks only this message, also out of order.
#[utoipa::path(post, path = "/v1/users/{user}/groups/{group}/messages/{seq}/read", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path), ("seq" = Seq, Path)),
    request_body(content = NoFields, description = "Optional"),
    responses(
        (status = 200, body = ReadGroupOut)))]
async fn read_group_message(state: Served<GroupContext>, path: UserPath, _body: Body<NoFields>) -> Result<Response> {
    let (user, group, seq) = (path.user, path.get("group")?, path.get::<Seq>("seq")?.get());
    read(&state, user, group, GroupCommand::ReadOne { user, group, seq }).await
}

/// Mark group messages as unread again
///
/// Messages of others from `from` on, which were not recalled, show as unread until the user reads
/// them. Reading up to a message moves that point forward; reading up to the head, and sending, end
/// it. `read_seq` and receipts do not change. Returns 409 `too_many` if more than 10,000 messages
/// that were read would be unread again.
#[utoipa::path(post, path = "/v1/users/{user}/groups/{group}/unread", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path)),
    request_body = UnreadGroupIn,
    responses(
        (status = 200, body = ReadGroupOut)))]
async fn unread_group(state: Served<GroupContext>, path: UserPath, body: Body<UnreadGroupIn>) -> Result<Response> {
    let from = in_range(body.value.from, 1, MAX_HEAD, || "/from".to_owned())?;
    let (user, group) = (path.user, path.get("group")?);
    read(&state, user, group, GroupCommand::Unread { user, group, from }).await
}

/// Update a user's settings of a group
///
/// At every level, the group keeps its own count. `chats` and `total` include all of it, its unread
/// mentions only, or nothing. At `until`, the level becomes `all` again, as for a member who rejoins.
#[utoipa::path(put, path = "/v1/users/{user}/groups/{group}/settings", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path)),
    request_body = PutGroupSettingsIn,
    responses(
        (status = 200, body = GroupSettingsOut)))]
async fn put_group_settings(state: Served<GroupContext>, path: UserPath, body: Body<PutGroupSettingsIn>) -> Result<Answer> {
    let PutGroupSettingsIn { level, until } = body.value;
    let level = LevelUntil::asked(level, until, state.clock.now())?;
    submit(&state, GroupCommand::SetLevel { user: path.user, group: path.get("group")?, level }).await
}

/// A reading with the version of its tag.
fn polled(value: UserGroups) -> PolledValue<UserGroups> {
    let (version, changes_at) = (Some(Version::new(value.revision, value.versions)), value.changes_at);
    PolledValue { value, version, changes_at }
}

/// Get a user's group
///
/// The unread counts of one group.
#[utoipa::path(get, path = "/v1/users/{user}/groups/{group}", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = UserGroupOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_user_group(
    state: Served<GroupContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (user, group, wait) = (path.user, path.get("group")?, polling::wait_of(params.wait)?);
    let read = |seen| {
        let state = state.clone();
        async move {
            let value = user_groups::read(&state, user, Which::One(group), seen).await?;
            if value.groups.is_empty() {
                lists::view_known(&state.db, group, Some(user)).await?;
                return Err(no_member(group, user).into());
            }
            Ok(polled(value))
        }
    };
    let write = |value: &UserGroups| polling::json(&value.groups.first().map(|of| UserGroupOut::new(of, value.now)));
    polling::poll(&state.polling, user, wait, &tags, Resource { read, write }).await
}

/// List a user's groups
///
/// Sorted by id, with the unread count of each group.
#[utoipa::path(get, path = "/v1/users/{user}/groups", tag = "groups",
    params(("user" = UserOrMe, Path), UserGroupsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = PageOut<UserGroupOut>, headers(
            ("Link" = String, description = "The next page, if any"),
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_user_groups(
    state: Served<GroupContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<UserGroupsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let UserGroupsParams { limit, cursor, wait } = params;
    let user = path.user;
    let (wanted, wait) = (PageParams { limit, cursor }.wanted("groups", user)?, polling::wait_of(wait)?);
    let read = |seen| {
        let state = state.clone();
        async move {
            let value = user_groups::read(&state, user, Which::All, seen).await?;
            Ok(polled(value))
        }
    };
    let next = OnceLock::new();
    let write = |value: &UserGroups| {
        let size = usize::try_from(wanted.rows()).unwrap_or(usize::MAX);
        let from = value.groups.partition_point(|of| of.group.get() <= wanted.after_id());
        let rows: Vec<_> = value.groups.iter().skip(from).take(size).collect();
        let page = pages::page(wanted, &rows, |of| Position { at: 0, id: of.group.get() }, |of| UserGroupOut::new(of, value.now));
        next.get_or_init(|| page.next_cursor.clone());
        polling::json(&page)
    };
    let mut response = polling::poll(&state.polling, user, wait, &tags, Resource { read, write }).await?;
    pages::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}
