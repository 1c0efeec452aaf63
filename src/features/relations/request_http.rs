//! The routes of requests to follow. A request is made and taken back by the routes of follows.

use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::{RelationContext, pair, write};
use super::lists::{self, List};
use super::state::Act;
use super::{ChangedRelationOut, Listed};
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::features::operations;
use crate::features::operations::http::Prefer;
use crate::http::body::{Body, NoFields};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<RelationContext>> {
    OpenApiRouter::new()
        .routes(routes!(list_follow_requests))
        .routes(routes!(list_sent_follow_requests))
        .routes(routes!(accept_follow_request, refuse_follow_request))
}

/// A user who has asked to follow another one, or who was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FollowRequestOut {
    /// The other user.
    pub user_id: UserId,
    /// When the request was made.
    pub since: UnixMs,
}

/// List the follow requests that a user has received
///
/// Newest first. Available to the user and to services.
#[utoipa::path(get, path = "/v1/users/{user}/follow-requests", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<FollowRequestOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_follow_requests(
    state: Served<RelationContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<PageParams>,
) -> Result<Response> {
    list(&state, &path, List::Requests, &uri, &params).await
}

/// List the follow requests that a user has sent
///
/// Newest first. Unfollow a user to withdraw a request. Available to the user and to services.
#[utoipa::path(get, path = "/v1/users/{user}/follow-requests/sent", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<FollowRequestOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_sent_follow_requests(
    state: Served<RelationContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<PageParams>,
) -> Result<Response> {
    list(&state, &path, List::SentRequests, &uri, &params).await
}

async fn list(state: &RelationContext, path: &UserPath, list: List, uri: &Uri, params: &PageParams) -> Result<Response> {
    let wanted = params.wanted(list.route(), path.user)?;
    let rows = state.entries.in_list_turn(lists::page(&state.db, list, path.user, wanted.after, wanted.rows())).await?;
    let position = |row: &Listed| Position { at: row.since.0, id: row.user.get() };
    pages::respond(uri, wanted, &rows, position, |row| FollowRequestOut { user_id: row.user, since: row.since })
}

/// Accept a follow request
///
/// The request becomes a follow that begins now. Returns the relation. If the other user follows too
/// many users, the response is 409 and the request stays.
#[utoipa::path(put, path = "/v1/users/{user}/follow-requests/{fan}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation", "not_found", "following_limit"]))),
    params(("user" = UserOrMe, Path), ("fan" = UserId, Path, description = "The user who has asked to follow", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    request_body(content = NoFields, description = "Optional"),
    responses(
        (status = 200, body = ChangedRelationOut),
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation")))))]
async fn accept_follow_request(state: Served<RelationContext>, path: UserPath, prefer: Prefer, _: Body<NoFields>) -> Result<Response> {
    let pair = pair(&path, "fan")?;
    write(&state, &path, prefer, pair, Act::AcceptRequest).await
}

/// Refuse a follow request
///
/// Removes the request without informing the other user. Returns 204 also if there was no request.
#[utoipa::path(delete, path = "/v1/users/{user}/follow-requests/{fan}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation"]))),
    params(("user" = UserOrMe, Path), ("fan" = UserId, Path, description = "The user who has asked to follow", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation"))),
        (status = 204, description = "Refused")))]
async fn refuse_follow_request(state: Served<RelationContext>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "fan")?;
    write(&state, &path, prefer, pair, Act::RefuseRequest).await
}
