//! The routes of dots.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Command, LitDotOut, UserDotOut};
use crate::auth::Service;
use crate::error::{ProblemOut, Result};
use crate::http::body::{Body, NoFields, in_range, present};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::ids::Name;
use crate::lane::{Answer, Job};
use crate::marks::MAX_HEAD;
use crate::state::AppState;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(light_dot)).routes(routes!(clear_dot))
}

/// What a user has seen of a dot.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearDotIn {
    /// The head that the user was shown: if it was lit again since, it stays lit. Without it, it is cleared whatever lit it.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 4)]
    up_to: Option<i64>,
}

/// Light a dot for everybody
///
/// One write, however many users there are.
#[utoipa::path(post, path = "/v1/dots/{dot}/light", tag = "dots",
    params(("dot" = Name, Path, example = "mall")),
    request_body(content = NoFields, description = "May be left out: there is nothing to say"),
    responses(
        (status = 200, body = LitDotOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn light_dot(State(state): State<AppState>, _: Service, path: PathParams, _: Body<NoFields>) -> Result<Answer> {
    let dot = path.name("dot")?;
    super::check_room(&state.heads.board(), &dot)?;
    state.lanes.submit(Job { command: Arc::new(Command::Light(dot)), key: None }).await
}

/// Clear a dot
///
/// For this user, until it is lit again. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/dots/{dot}/clear", tag = "dots",
    params(("user" = UserOrMe, Path), ("dot" = Name, Path, example = "mall")),
    request_body(content = ClearDotIn, description = "May be left out: whatever lit it until now"),
    responses(
        (status = 200, body = UserDotOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn clear_dot(State(state): State<AppState>, path: UserPath, body: Body<ClearDotIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let command = Command::Clear { user: path.user, dot: path.name("dot")?, up_to };
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}
