//! Errors, in two kinds that never mix: a [`Problem`] is what the caller did or can do something about and is shown as
//! `application/problem+json` (RFC 9457); a [`Fault`] is ours, is logged, and shows nothing of its inside.
//!
//! To add a problem: a [`Code`] with its status and title here; a constructor where it is used often.

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use problem_details::ProblemDetails;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Either kind of error, as handlers and engines return it.
#[derive(Debug)]
pub enum Error {
    /// The caller's: shown as it is.
    Problem(Box<Problem>),
    /// Ours: logged, and shown as a bare 500 or 503.
    Fault(Fault),
}

/// An error of ours: a store, a bug, the machine.
#[derive(Debug)]
pub enum Fault {
    /// The database failed or is away.
    Db(sqlx::Error),
    /// Something that should not happen; the text is for the log alone.
    Bug(String),
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Fault(Fault::Db(error))
    }
}

macro_rules! codes {
    ($($variant:ident = $status:ident, $title:literal;)*) => {
        /// The stable, machine-readable kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $(#[doc = $title] $variant,)*
        }

        impl Code {
            /// The HTTP status that this kind is sent with.
            #[must_use]
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// The short sentence that is the same for every problem of this kind.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    MalformedJson = BAD_REQUEST, "The body is not well-formed JSON";
    MalformedRequest = BAD_REQUEST, "The request cannot be read";
    InvalidPath = BAD_REQUEST, "A value in the path is not valid";
    InvalidQuery = BAD_REQUEST, "A query parameter is not valid";
    WaitNeedsTag = BAD_REQUEST, "A request that waits needs If-None-Match";
    InvalidHeader = BAD_REQUEST, "A header is not valid";
    InvalidCursor = BAD_REQUEST, "The cursor is not one that this server gave";
    Unauthorized = UNAUTHORIZED, "Credentials are missing or not valid";
    Forbidden = FORBIDDEN, "These credentials do not allow this";
    Blocked = FORBIDDEN, "A block between the two users forbids it";
    CrossOrigin = FORBIDDEN, "A page of another origin may not call an open server";
    UnknownRoute = NOT_FOUND, "There is no such route";
    NotFound = NOT_FOUND, "There is no such thing";
    MethodNotAllowed = METHOD_NOT_ALLOWED, "The route does not take this method";
    RequestTimeout = REQUEST_TIMEOUT, "The request did not arrive in time";
    FollowingLimit = CONFLICT, "The user follows as many as one may";
    ReceiptsDisabled = CONFLICT, "The group keeps no receipts";
    TooLarge = CONFLICT, "It is too large to be answered in this form";
    TooMany = CONFLICT, "A limit on how many there may be is reached";
    IdempotencyInProgress = CONFLICT, "A request with this idempotency key is still running";
    Gone = GONE, "It is gone and does not come back";
    InboxReset = GONE, "The inbox is numbered anew";
    CursorExpired = GONE, "What comes after it is kept no longer";
    BodyTooLarge = PAYLOAD_TOO_LARGE, "The body is too large";
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "The body must be JSON";
    InvalidBody = UNPROCESSABLE_ENTITY, "The body is well-formed but not valid";
    SelfRelation = UNPROCESSABLE_ENTITY, "A relation is between two different users";
    IdempotencyKeyReused = UNPROCESSABLE_ENTITY, "The idempotency key was used with another request";
    RateLimited = TOO_MANY_REQUESTS, "The caller makes too many requests";
    Overloaded = SERVICE_UNAVAILABLE, "The server is at its limit";
    StoreUnavailable = SERVICE_UNAVAILABLE, "A store is not reachable";
    OperationsPending = SERVICE_UNAVAILABLE, "Writes that were accepted earlier are not done yet";
    OutcomeUnknown = SERVICE_UNAVAILABLE, "It is not known yet whether the write took effect";
    ShuttingDown = SERVICE_UNAVAILABLE, "The server is shutting down";
    InternalError = INTERNAL_SERVER_ERROR, "An error on the server's side";
}

impl Code {
    /// The kind as it stands in JSON.
    #[must_use]
    pub fn as_str(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// One invalid value: where it is (RFC 6901 pointer into the body, or the name of a parameter) and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// A JSON pointer into the body; for a query or path parameter, its name.
    #[schema(example = "/items/3/by")]
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

/// An error that the caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its kind, from which status, type and title follow.
    pub code: Code,
    /// What went wrong this time.
    pub detail: Cow<'static, str>,
    /// The values at fault, for invalid input.
    pub errors: Vec<FieldError>,
    /// When trying again makes sense, in seconds.
    pub retry_after_s: Option<u32>,
    /// For what is kept no longer: the first that is.
    pub earliest_seq: Option<i64>,
}

impl Problem {
    /// A problem of this kind. 429 and 503 ask for a second's pause unless told otherwise.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let pause = matches!(code.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        Self { code, detail: detail.into(), errors: Vec::new(), retry_after_s: pause.then_some(1), earliest_seq: None }
    }

    /// A 422 for one value of the body. `pointer` is an RFC 6901 pointer.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidBody, "See errors.").at(pointer, detail)
    }

    /// A 422 for one value of the query, by its name.
    pub fn query(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidQuery, "See errors.").at(name, detail)
    }

    /// The same with one more value at fault.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        self.errors.push(FieldError { pointer: pointer.into(), detail: detail.into() });
        self
    }

    /// The same with the first that is still kept.
    #[must_use]
    pub fn kept_from(self, seq: i64) -> Self {
        Self { earliest_seq: Some(seq), ..self }
    }

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

/// A problem as it is sent (RFC 9457), media type `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(title = "Problem")]
pub struct ProblemOut {
    /// A reference that names the kind.
    #[schema(example = "/problems/invalid_body")]
    pub r#type: String,
    /// The HTTP status again.
    pub status: u16,
    /// The kind in words.
    pub title: String,
    /// What went wrong this time.
    pub detail: String,
    /// The kind for machines; stable.
    pub code: Code,
    /// For invalid input, each value at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// With `cursor_expired`: the first row that is still kept.
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
        response
    }
}

impl Fault {
    /// Whether trying again later may work, because of the state that the store is in; else it is a
    /// bug or bad data.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Db(error) => crate::db::classify(error).may_pass(),
            Self::Bug(_) => false,
        }
    }

    /// What the caller is told of it: nothing of the inside.
    #[must_use]
    pub fn problem(&self) -> Problem {
        if self.may_pass() {
            Problem::new(Code::StoreUnavailable, "A store did not answer; nothing was changed. Try again shortly.")
        } else {
            Problem::new(Code::InternalError, "The error was logged under this request's X-Request-Id.")
        }
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
