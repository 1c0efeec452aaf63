//! How answers to writes are sent.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::base::error::Problem;
use crate::engine::lanes::Answer;

/// Marks an answer that was given before.
static REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let (status, replayed) = (StatusCode::from_u16(self.status()).unwrap_or_default(), self.is_kept());
        let body = match self.json() {
            Ok(body) => body,
            Err(problem) => return Problem::into_response(problem),
        };
        if status == StatusCode::NO_CONTENT {
            return status.into_response();
        }
        let media = if status.is_client_error() { "application/problem+json" } else { "application/json" };
        let mut response = (status, [(header::CONTENT_TYPE, HeaderValue::from_static(media))], body).into_response();
        if status.is_client_error() {
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if replayed {
            response.headers_mut().insert(REPLAYED.clone(), HeaderValue::from_static("true"));
        }
        response
    }
}

/// What a client may keep, but must ask for again each time.
pub fn no_cache(out: &impl Serialize) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))], Json(out)).into_response()
}
