//! The route that exports a user.

use std::io;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{UserExport, UserExportContext};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::http::auth::Service;
use crate::http::params::{NoParams, Query};
use crate::http::path::AnyUserPath;
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<UserExportContext>> {
    OpenApiRouter::new().routes(routes!(export_user))
}

/// Export a user
///
/// Streams everything that is kept about the user, one JSON object a line, in a stable order: the
/// user's own row, relations, lists, chats, devices and requests. Each line has a `kind`; the
/// reference lists the fields of each. It contains who follows the user, and never who blocks or
/// mutes the user. The last line is `{"kind":"end","lines":n}`: without it the export is not
/// complete. It is not one snapshot. For a user never seen, the last line is the only one.
#[utoipa::path(get, path = "/v1/users/{user}/export", tag = "users",
    params(("user" = UserId, Path)),
    responses(
        (status = 200, body = String, content_type = "application/x-ndjson", description = "The lines",
            example = json!("{\"kind\":\"user\",\"user_id\":\"42\",\"revision\":918}\n{\"kind\":\"end\",\"lines\":1}\n"))))]
async fn export_user(state: Served<UserExportContext>, _: Service, path: AnyUserPath, _: Query<NoParams>) -> Result<Response> {
    let mut export = state.begin(path.user)?;
    // A database that is away is a problem, as long as nothing was sent.
    let first = export.next().await?.unwrap_or_default();
    let rest = stream::unfold(Some(export), more);
    let body = Body::from_stream(stream::once(async { Ok(first) }).chain(rest));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, body).into_response())
}

/// The next lines. An error ends the connection, so that the caller sees a cut even without the last
/// line.
async fn more(export: Option<UserExport>) -> Option<(io::Result<axum::body::Bytes>, Option<UserExport>)> {
    let mut export = export?;
    match export.next().await {
        Ok(lines) => Some((Ok(lines?), Some(export))),
        Err(error) => {
            tracing::warn!(%error, "an export of a user ends half way; the caller sees that its last line is missing");
            Some((Err(io::Error::other("the export was cut off")), None))
        }
    }
}
