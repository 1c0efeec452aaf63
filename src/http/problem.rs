//! How errors are sent: problems as `application/problem+json` (RFC 9457), faults as a bare 500 or 503.

use axum::http::{HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use problem_details::ProblemDetails;
use serde::{Deserialize, Serialize};
use serde_path_to_error::{Path, Segment};
use utoipa::ToSchema;

use crate::base::error::{Code, Error, FieldError, Problem};

/// A problem (RFC 9457), media type `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(title = "Problem")]
pub struct ProblemOut {
    /// A URI reference that identifies the code.
    #[schema(example = "/problems/invalid_body")]
    pub r#type: String,
    /// The HTTP status.
    pub status: u16,
    /// A short title of the code.
    pub title: String,
    /// What went wrong in this request.
    pub detail: String,
    /// The stable, machine-readable error code.
    pub code: Code,
    /// For invalid input: the invalid values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// With `cursor_expired`: the oldest item that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 4001)]
    pub earliest_seq: Option<i64>,
}

/// What a problem carries beyond RFC 9457's own members.
#[derive(Debug, Serialize)]
struct Members {
    code: Code,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<FieldError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest_seq: Option<i64>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let kind = Uri::try_from(format!("/problems/{}", self.code.as_str())).unwrap_or_default();
        let details = ProblemDetails::from_status_code(self.code.status())
            .with_type(kind)
            .with_title(self.code.title())
            .with_detail(self.detail)
            .with_extensions(Members { code: self.code, errors: self.errors, earliest_seq: self.earliest_seq });
        let mut response = details.into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
        // For the log.
        response.extensions_mut().insert(self.code);
        response
    }
}

impl Problem {
    /// The body, as RFC 9457 has it.
    #[must_use]
    pub fn body(&self) -> ProblemOut {
        ProblemOut {
            r#type: format!("/problems/{}", self.code.as_str()),
            status: self.code.status().as_u16(),
            title: self.code.title().to_owned(),
            detail: self.detail.clone().into_owned(),
            code: self.code,
            errors: self.errors.clone(),
            earliest_seq: self.earliest_seq,
        }
    }
}

/// The keys and indexes that lead to the value that serde refused. serde reports a missing or
/// duplicate field at its parent.
pub(super) fn place(path: &Path, message: &str) -> Vec<String> {
    let segments = path.iter().map_while(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } | Segment::Enum { variant: key } => Some(key.clone()),
        Segment::Unknown => None,
    });
    let field = ["missing field `", "duplicate field `"].iter().find_map(|start| message.strip_prefix(start)?.split('`').next());
    segments.chain(field.map(str::to_owned)).map(|segment| segment_of(&segment)).collect()
}

/// A key as a pointer shows it: the caller chose it, and may have made it as long as the body.
pub(super) fn segment_of(key: &str) -> String {
    cut(key, 128)
}

/// An RFC 6901 pointer.
pub(super) fn pointer(segments: &[String]) -> String {
    segments.iter().map(|segment| format!("/{}", segment.replace('~', "~0").replace('/', "~1"))).collect()
}

/// serde's message without the names of Rust types, which come last.
pub(super) fn detail(message: &str) -> String {
    let text = match message.rsplit_once("expected ") {
        Some((found, "i64" | "u64" | "i32" | "u32" | "u8" | "usize")) => format!("{found}expected an integer"),
        Some((found, rest)) if rest.starts_with("struct ") => format!("{found}expected an object"),
        _ => message.to_owned(),
    };
    cut(&text, 300)
}

/// At most `max` characters of a text, which may quote the request.
pub(super) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        match self {
            Self::Problem(problem) => problem.into_response(),
            Self::Fault(fault) => {
                tracing::error!(?fault, "request failed");
                fault.problem().into_response()
            }
        }
    }
}
