//! The route of operations, and the preference that makes them.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::store::{self, Kept};
use super::{OperationId, OperationStatus, Operations};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Code, Error, Fault, Problem, Result};
use crate::db::Db;
use crate::engine::lanes::Answer;
use crate::http::answer::no_cache;
use crate::http::caller::Caller;
use crate::http::params::{NoParams, Query};
use crate::http::path::{LivingCaller, PathParams};
use crate::http::problem::ProblemOut;
use crate::http::served::Served;

static PREFER: HeaderName = HeaderName::from_static("prefer");
static PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const RESPOND_ASYNC: &str = "respond-async";

/// What operations are accepted and read with.
#[derive(Debug)]
pub struct OperationContext {
    pub db: Db,
    pub clock: Clock,
    /// The operations of this node.
    pub operations: Operations,
}

pub fn routes() -> OpenApiRouter<Served<OperationContext>> {
    OpenApiRouter::new().routes(routes!(get_operation))
}

/// The `Prefer` header (RFC 7240), of which `respond-async` is known; others are passed over, as
/// the RFC says.
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
    /// The status of the operation.
    status: OperationStatus,
    /// When the operation was accepted.
    created_at: UnixMs,
    /// When the operation was done or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    finished_at: Option<UnixMs>,
    /// The final response, if the operation is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    answer: Option<OperationAnswerOut>,
    /// The problem, if the operation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<ProblemOut>)]
    problem: Option<Box<RawValue>>,
}

/// The response that a synchronous write would have returned.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationAnswerOut {
    /// The HTTP status.
    #[schema(example = 200)]
    status: u16,
    /// The body; omitted if the response has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    body: Option<Box<RawValue>>,
}

/// The answer to a write that was accepted: says where to ask what came of it.
pub(crate) fn accepted(answer: Answer, id: &OperationId) -> Result<Response> {
    let mut response = located(answer, id)?;
    response.headers_mut().insert(PREFERENCE_APPLIED.clone(), HeaderValue::from_static(RESPOND_ASYNC));
    Ok(response)
}

/// The same to one that is always done later.
pub(crate) fn located(answer: Answer, id: &OperationId) -> Result<Response> {
    let mut response = answer.into_response();
    let location = format!("/v1/operations/{id}");
    let location = HeaderValue::try_from(location).map_err(|_| Fault::Bug("an operation's id is no header value".to_owned()))?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

/// Get an asynchronous operation
///
/// Returns the status of an asynchronous write: pending, done with the final response, or failed
/// with the problem. Available to the caller that sent the write. The operation of an erasure, or of
/// the deletion of a group, is available to all services.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "operations",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("id" = OperationId, Path, description = "The id from the Location of the 202 response")),
    responses(
        (status = 200, body = OperationOut)))]
async fn get_operation(
    state: Served<OperationContext>,
    LivingCaller(caller): LivingCaller,
    path: PathParams,
    _: Query<NoParams>,
) -> Result<Response> {
    let id: OperationId = path.get("id")?;
    // Of somebody else's it is not told whether it is there.
    let Some(kept) = store::read(&state.db, &id).await?.filter(|kept| may_read(&caller, kept)) else {
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
    Ok(no_cache(&out))
}

/// Any service may begin a removal, and a repeat names the operation that another one began.
fn may_read(caller: &Caller, kept: &Kept) -> bool {
    kept.caller == caller.id() || (kept.removes && matches!(caller, Caller::Service { .. }))
}

/// One that may have been there and is kept no longer is gone; another one never was, or is
/// somebody else's.
fn missing(state: &OperationContext, id: &OperationId) -> Problem {
    let config = &state.operations.config;
    if id.was_made() && id.time().0 < state.clock.now().0 - config.ttl_ms() {
        let detail = format!("The operation has expired. Results are kept for {} hours.", config.operation_ttl_hours);
        return Problem::new(Code::Gone, detail);
    }
    Problem::new(Code::NotFound, "This caller has no operation with this id.")
}
