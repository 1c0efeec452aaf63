//! The route of operations, and the preference that makes them.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Command, OperationId, OperationStatus, store};
use crate::auth::Caller;
use crate::clock::UnixMs;
use crate::error::{Code, Error, Fault, Problem, ProblemOut, Result};
use crate::http::params::{NoParams, Query};
use crate::http::path::PathParams;
use crate::lane::Job;
use crate::relations::Deed;
use crate::state::AppState;

static PREFER: HeaderName = HeaderName::from_static("prefer");
static PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const RESPOND_ASYNC: &str = "respond-async";

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_operation))
}

/// The `Prefer` header (RFC 7240), of which `respond-async` is known; others are passed over, as the RFC says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefer {
    /// Whether the caller would rather have an answer before the write is done.
    pub respond_async: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let values = parts.headers.get_all(&PREFER).iter().filter_map(|value| value.to_str().ok());
        // A preference may have a value and parameters, which this one has none of.
        let mut names = values.flat_map(|value| value.split(',')).map(|one| one.split([';', '=']).next().unwrap_or_default().trim());
        Ok(Self { respond_async: names.any(|name| name.eq_ignore_ascii_case(RESPOND_ASYNC)) })
    }
}

/// An operation.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationOut {
    /// The operation.
    operation_id: OperationId,
    /// How far it is.
    status: OperationStatus,
    /// When it was accepted.
    created_at: UnixMs,
    /// When it was done, or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    finished_at: Option<UnixMs>,
    /// Of one that is done: the final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    answer: Option<OperationAnswerOut>,
    /// Of one that failed: the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<ProblemOut>)]
    problem: Option<Box<RawValue>>,
}

/// What would have been answered at once.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationAnswerOut {
    /// HTTP status.
    #[schema(example = 200)]
    status: u16,
    /// The body; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    body: Option<Box<RawValue>>,
}

/// Accepts a deed, to be done later, and says where to ask what came of it.
pub(crate) async fn accept(state: &AppState, caller: &Caller, deed: Deed) -> Result<Response> {
    let operation = state.operations.begin(caller.id(), deed, state.clock.now())?;
    let location = format!("/v1/operations/{}", operation.id);
    let answer = state.lanes.submit(Job { command: Arc::new(Command::Accept(operation)), key: None }).await?;
    state.operations.accepted();
    let mut response = answer.into_response();
    let location = HeaderValue::try_from(location).map_err(|_| Fault::Bug("an operation's id is no header value".to_owned()))?;
    response.headers_mut().insert(header::LOCATION, location);
    response.headers_mut().insert(PREFERENCE_APPLIED.clone(), HeaderValue::from_static(RESPOND_ASYNC));
    Ok(response)
}

/// Ask for an operation
///
/// What came of an asynchronous write: pending, done with the final answer, or failed with the problem. For the caller who made it.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "operations",
    params(("id" = OperationId, Path, description = "From the Location of the 202")),
    responses(
        (status = 200, body = OperationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_operation(State(state): State<AppState>, caller: Caller, path: PathParams, _: Query<NoParams>) -> Result<Response> {
    let id: OperationId = path.get("id")?;
    // Of somebody else's it is not told whether it is there.
    let Some(kept) = store::read(&state.db, &id).await?.filter(|kept| kept.caller == caller.id()) else {
        return Err(missing(&state, &id).into());
    };
    let raw = |body: String| RawValue::from_string(body).map_err(|error| Error::from(Fault::Bug(error.to_string())));
    let (mut answer, mut problem) = (None, None);
    let mut status = OperationStatus::Pending;
    let finished_at = kept.outcome.as_ref().map(|outcome| outcome.at);
    if let Some(outcome) = kept.outcome {
        if outcome.status.is_success() {
            status = OperationStatus::Done;
            let body = if outcome.body.is_empty() { None } else { Some(raw(outcome.body)?) };
            answer = Some(OperationAnswerOut { status: outcome.status.as_u16(), body });
        } else {
            status = OperationStatus::Failed;
            problem = Some(raw(outcome.body)?);
        }
    }
    let out = OperationOut { operation_id: id, status, created_at: kept.created_at, finished_at, answer, problem };
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))], Json(out)).into_response())
}

/// One that may have been there and is kept no longer is gone; another one never was, or is somebody else's.
fn missing(state: &AppState, id: &OperationId) -> Problem {
    let config = &state.operations.config;
    if id.was_made() && id.time().0 < state.clock.now().0 - config.ttl_ms() {
        let detail = format!("What came of an operation is kept for {} hours.", config.operation_ttl_hours);
        return Problem::new(Code::Gone, detail);
    }
    Problem::new(Code::NotFound, "There is no such operation of this caller.")
}
