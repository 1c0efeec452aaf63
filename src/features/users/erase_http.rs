//! The route that erases a user.

use std::sync::Arc;

use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::erase::EraseUser;
use super::settings_http::UserContext;
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::engine::lanes::{Answer, Job};
use crate::features::operations::http::located;
use crate::features::operations::{AcceptedOut, OperationId};
use crate::http::auth::Service;
use crate::http::params::{NoParams, Query};
use crate::http::path::PathParams;
use crate::http::served::Served;

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<UserContext>> {
    OpenApiRouter::new().routes(routes!(erase_user))
}

/// Erase a user
///
/// From the response on, every route about the user returns 410 `erased`, and so does every request
/// that names it. Everything that names the user is then removed in the background; poll the operation
/// in `Location` to learn when that is done. The id cannot be used again. A repeat returns the same
/// operation.
#[utoipa::path(delete, path = "/v1/users/{user}", tag = "users",
    params(("user" = UserId, Path)),
    responses(
        (status = 202, body = AcceptedOut, headers(("Location" = String, description = "The operation")))))]
async fn erase_user(state: Served<UserContext>, service: Service, path: PathParams, _: Query<NoParams>) -> Result<Response> {
    let operation = OperationId::new(state.clock.now());
    let user = path.get("user")?;
    let command = EraseUser { user, operation, caller: service.caller().id() };
    let accepted: AcceptedOut = state.lanes.submit(Job { command: Arc::new(command), key: None }).await?.value()?;
    state.entries.forget_not_erased(user);
    let id = accepted.operation_id.clone();
    located(Answer::accepted(accepted), &id)
}
