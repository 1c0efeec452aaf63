//! The routes of dots.

use std::sync::Arc;

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
use crate::http::body::{Body, NoFields, in_range, present};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::http::served::Served;

/// What the handlers of dots work with.
#[derive(Debug)]
pub struct DotContext {
    pub lanes: Lanes,
    pub heads: Arc<Heads>,
}

pub fn routes() -> OpenApiRouter<Served<DotContext>> {
    OpenApiRouter::new().routes(routes!(light_dot)).routes(routes!(clear_dot))
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

/// Light a dot for all users
///
/// One write, regardless of the number of users.
#[utoipa::path(post, path = "/v1/dots/{dot}/light", tag = "dots",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("dot" = Name, Path, example = "mall")),
    request_body(content = NoFields, description = "Optional. It has no fields"),
    responses(
        (status = 200, body = LitDotOut)))]
async fn light_dot(state: Served<DotContext>, _: Service, path: PathParams, _: Body<NoFields>) -> Result<Answer> {
    let dot = path.name("dot")?;
    super::check_room(&state.heads.broadcast_state(), &dot)?;
    state.lanes.submit(Job { command: Arc::new(DotCommand::Light(dot)), key: None }).await
}

/// Clear a dot
///
/// Clears the dot for this user until it is lit again. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/dots/{dot}/clear", tag = "dots",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), ("dot" = Name, Path, example = "mall")),
    request_body(content = ClearDotIn, description = "Optional. Default: the current head"),
    responses(
        (status = 200, body = UserDotOut)))]
async fn clear_dot(state: Served<DotContext>, path: UserPath, body: Body<ClearDotIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let command = DotCommand::Clear { user: path.user, dot: path.name("dot")?, up_to };
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}
