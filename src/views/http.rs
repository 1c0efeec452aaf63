//! The routes of views.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Command, ViewCount, ViewItemOut, ViewKey, Visited};
use crate::auth::Service;
use crate::clock::UnixMs;
use crate::error::{Code, Error, Fault, Problem, ProblemOut, Result};
use crate::http::body::{Body, present};
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::ids::{ClientId, Name, UserId};
use crate::lane::{Answer, Job};
use crate::marks::MAX_HEAD;
use crate::poll::{self, Reading, Resource, Seen};
use crate::sheet::Wanted;
use crate::state::AppState;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(put_view_item, delete_view_item)).routes(routes!(access_view)).routes(routes!(get_view))
}

/// Something new in a view.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutViewItemIn {
    /// Who made it: to that user it does not count as unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    actor_id: Option<UserId>,
}

/// A visit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessViewIn {
    /// The head that the user was shown; what came after it stays unread. Without it, all that is there now is read. The first visit starts at the
    /// head whatever this says.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
    up_to: Option<i64>,
}

/// How long a poll may be held.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ViewParams {
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304. Needs that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// What a user has unread in a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserViewOut {
    /// The view's name.
    pub view: Name,
    /// The view's id.
    pub view_id: ClientId,
    /// How many items came since the last visit; 0 where there was none.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// How many items there ever were; sent back as `up_to`, it clears exactly what was shown.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// When the user was there last; left out where the user never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_access_at: Option<UnixMs>,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The view in a path.
fn view_key(params: &PathParams) -> Result<ViewKey, Problem> {
    Ok(ViewKey::new(params.name("view")?, params.get("view_id")?))
}

async fn submit(state: &AppState, command: Command) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

fn bug(error: impl std::fmt::Display) -> Error {
    Fault::Bug(error.to_string()).into()
}

/// Put an item into a view
///
/// Whoever visited the view before has one more unread, but for who made it. An id that is known changes nothing.
#[utoipa::path(put, path = "/v1/views/{view}/{view_id}/items/{item_id}", tag = "views",
    params(("view" = Name, Path), ("view_id" = ClientId, Path), ("item_id" = ClientId, Path)),
    request_body(content = PutViewItemIn, description = "May be left out"),
    responses(
        (status = 200, body = ViewItemOut, description = "The item was there before"),
        (status = 201, body = ViewItemOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn put_view_item(State(state): State<AppState>, _service: Service, path: PathParams, body: Body<PutViewItemIn>) -> Result<Answer> {
    submit(&state, Command::Put { view: view_key(&path)?, item: path.get("item_id")?, actor: body.value.actor_id }).await
}

/// Delete an item from a view
///
/// Whoever had it unread has one less. Also answers 204 when it was deleted before.
#[utoipa::path(delete, path = "/v1/views/{view}/{view_id}/items/{item_id}", tag = "views",
    params(("view" = Name, Path), ("view_id" = ClientId, Path), ("item_id" = ClientId, Path)),
    responses(
        (status = 204, description = "The item is not in the view"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn delete_view_item(State(state): State<AppState>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, Command::Delete { view: view_key(&path)?, item: path.get("item_id")? }).await
}

/// Visit a view
///
/// To be called on entering and on leaving. The first visit starts at the view's head.
#[utoipa::path(post, path = "/v1/users/{user}/views/{view}/{view_id}/access", tag = "views",
    params(("user" = UserOrMe, Path), ("view" = Name, Path), ("view_id" = ClientId, Path)),
    request_body(content = AccessViewIn, description = "May be left out: all that is there now"),
    responses(
        (status = 200, body = UserViewOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn access_view(State(state): State<AppState>, path: UserPath, body: Body<AccessViewIn>) -> Result<Response> {
    let (user, view, up_to) = (path.user, view_key(&path.params)?, body.value.up_to);
    if let Some(up_to) = up_to.filter(|up_to| !(0..=MAX_HEAD).contains(up_to)) {
        return Err(Problem::invalid("/up_to", format!("{up_to} is not from 0 to {MAX_HEAD}")).into());
    }
    let keep = state.views.visited_views;
    let answer = submit(&state, Command::Access { user, view: view.clone(), up_to, keep }).await?;
    let visited: Visited = serde_json::from_str(&answer.body).map_err(bug)?;
    let (unread, head) = match visited.unread {
        Some(unread) => (unread, visited.head),
        None => {
            let counted = state.sheets.views().count(user, visited.revision, std::slice::from_ref(&view)).await?;
            counted.first().map_or((0, visited.head), |count| (count.unread, count.head))
        }
    };
    let ViewKey { view, id: view_id, .. } = view;
    let last_access_at = Some(UnixMs(visited.at));
    Ok(Json(UserViewOut { view, view_id, unread, head, last_access_at, revision: visited.revision }).into_response())
}

/// Poll a view
///
/// What a visit would answer, without visiting. A view that was never visited is 0.
#[utoipa::path(get, path = "/v1/users/{user}/views/{view}/{view_id}", tag = "views",
    params(("user" = UserOrMe, Path), ("view" = Name, Path), ("view_id" = ClientId, Path), ViewParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = UserViewOut, headers(
            ("ETag" = String, description = "The version of the answer; none when it is only what was last known"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_view(State(state): State<AppState>, path: UserPath, Query(params): Query<ViewParams>, tags: IfNoneMatch) -> Result<Response> {
    let (user, view) = (path.user, view_key(&path.params)?);
    let wait = poll::wait_of(params.wait)?;
    let read = |seen: Seen| {
        let (state, view) = (state.clone(), &view);
        async move {
            let sheet = state.sheets.sheet_with(user, Wanted::NOTHING, std::slice::from_ref(view), seen).await;
            let version = sheet.version();
            let count = sheet.views.as_ref().and_then(|views| views.first().cloned());
            // Of a sheet other parts are known; here there is nothing else to show.
            let away = || Problem::new(Code::StoreUnavailable, "A store did not answer. Try again shortly.");
            Ok(Reading { value: (count.ok_or_else(away)?, sheet.revision()), version })
        }
    };
    let write = |(count, revision): &(ViewCount, i64)| {
        let ViewKey { view, id: view_id, .. } = view.clone();
        poll::json(&UserViewOut { view, view_id, unread: count.unread, head: count.head, last_access_at: count.at, revision: *revision })
    };
    poll::poll(&state, user, wait, &tags, Resource { read, write }).await
}
