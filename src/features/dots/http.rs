//! The routes of dots.

use std::sync::Arc;

use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{DotCommand, LitDotOut, UserDotOut};
use crate::base::error::Result;
use crate::base::ids::{MAX_HEAD, Name};
use crate::engine::heads::Heads;
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::http::auth::Service;
use crate::http::body::{Body, IdempotencyKey, NoFields, in_range, present};
use crate::http::name_pages::{self, NamePageParams};
use crate::http::pages::PageOut;
use crate::http::params::{NoParams, Query};
use crate::http::path::{LivingCaller, PathParams, UserOrMe, UserPath};
use crate::http::served::Served;

/// What the handlers of dots work with.
#[derive(Debug)]
pub struct DotContext {
    pub lanes: Lanes,
    pub heads: Arc<Heads>,
}

pub fn routes() -> OpenApiRouter<Served<DotContext>> {
    OpenApiRouter::new().routes(routes!(list_dots)).routes(routes!(light_dot)).routes(routes!(delete_dot)).routes(routes!(clear_dot))
}

/// How far a user has seen a dot.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearDotIn {
    /// The head that the user saw. If the dot was lit again since, it stays lit. By default, the
    /// dot is cleared.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 4)]
    up_to: Option<i64>,
}

/// List the dots
///
/// In the order of their names, without deleted dots.
#[utoipa::path(get, path = "/v1/dots", tag = "dots",
    params(NamePageParams),
    responses(
        (status = 200, body = PageOut<LitDotOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_dots(
    state: Served<DotContext>,
    LivingCaller(caller): LivingCaller,
    uri: Uri,
    Query(params): Query<NamePageParams>,
) -> Result<Response> {
    let wanted = params.wanted("dots")?;
    let broadcast_state = state.heads.broadcast_state_to_list(caller.is_service()).await?;
    let dots = broadcast_state.dots.iter().filter_map(|(name, dot)| {
        let name: Name = name.parse().ok()?;
        Some((name.clone(), LitDotOut { dot: name, head: dot.head, lit_at: dot.lit_at }))
    });
    name_pages::respond(&uri, &wanted, dots)
}

/// Delete a dot
///
/// The dot is dark for all users and leaves the unread summary. If it is lit again, its `head`
/// continues, so it is lit for all users. Returns 204 also if there is no such dot.
#[utoipa::path(delete, path = "/v1/dots/{dot}", tag = "dots",
    params(("dot" = Name, Path, example = "mall")),
    responses(
        (status = 204, description = "Deleted")))]
async fn delete_dot(state: Served<DotContext>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(DotCommand::Delete(path.name("dot")?)), key: None }).await
}

/// Light a dot for all users
///
/// One write, regardless of the number of users.
#[utoipa::path(post, path = "/v1/dots/{dot}/light", tag = "dots",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("dot" = Name, Path, example = "mall"),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body(content = NoFields, description = "Optional. It has no fields"),
    responses(
        (status = 200, body = LitDotOut)))]
async fn light_dot(
    state: Served<DotContext>,
    service: Service,
    path: PathParams,
    key: IdempotencyKey,
    body: Body<NoFields>,
) -> Result<Answer> {
    let command = Arc::new(DotCommand::Light(path.name("dot")?));
    state.lanes.submit(Job { command, key: key.of(&service.caller(), &body.digest) }).await
}

/// Clear a dot
///
/// Clears the dot for this user until it is lit again. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/dots/{dot}/clear", tag = "dots",
    params(("user" = UserOrMe, Path), ("dot" = Name, Path, example = "mall")),
    request_body(content = ClearDotIn, description = "Optional. Default: the current head"),
    responses(
        (status = 200, body = UserDotOut)))]
async fn clear_dot(state: Served<DotContext>, path: UserPath, body: Body<ClearDotIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let deleted = state.heads.broadcast_state().deleted.clone();
    let command = DotCommand::Clear { user: path.user, dot: path.name("dot")?, up_to, deleted };
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}
