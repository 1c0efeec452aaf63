//! Errors, in two kinds that never mix: a [`Problem`] is what the caller did or can do something
//! about and is shown as `application/problem+json` (RFC 9457, `http/problem.rs`); a [`Fault`] is
//! ours, is logged, and shows nothing of its inside.
//!
//! To add a problem: a [`Code`] with its status and title here; a constructor where it is used
//! often.

use std::borrow::Cow;
use std::fmt;

use axum::http::StatusCode;
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

impl Error {
    /// What is answered where a store is away and a guess will not do.
    #[must_use]
    pub fn store_unavailable() -> Self {
        Problem::store_unavailable().into()
    }
}

/// An error of ours: a store, a bug, the machine.
pub enum Fault {
    /// The database failed or is away.
    Db(sqlx::Error),
    /// Something that should not happen; the text is for the log alone.
    Bug(String),
}

/// An error of a database for the log, without the row that it is about: the driver shows all that Postgres says, and
/// its details of a refused row quote the row's contents.
pub struct WithoutRow<'e>(pub &'e sqlx::Error);

impl fmt::Debug for WithoutRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(error) = self.0.as_database_error() else { return fmt::Debug::fmt(self.0, f) };
        let mut shown = f.debug_struct("Database");
        shown.field("code", &error.code()).field("message", &error.message());
        shown.field("table", &error.table()).field("constraint", &error.constraint()).finish()
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Db(error) => f.debug_tuple("Db").field(&WithoutRow(error)).finish(),
            Self::Bug(what) => f.debug_tuple("Bug").field(what).finish(),
        }
    }
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
        /// The stable, machine-readable error code.
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

            /// A short title, the same for every problem of this kind.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

codes! {
    MalformedJson = BAD_REQUEST, "Invalid JSON";
    MalformedRequest = BAD_REQUEST, "Malformed request";
    InvalidPath = BAD_REQUEST, "Invalid path parameter";
    InvalidQuery = BAD_REQUEST, "Invalid query parameter";
    WaitNeedsTag = BAD_REQUEST, "If-None-Match required";
    InvalidHeader = BAD_REQUEST, "Invalid header";
    InvalidCursor = BAD_REQUEST, "Invalid cursor";
    Unauthorized = UNAUTHORIZED, "Unauthorized";
    Forbidden = FORBIDDEN, "Forbidden";
    ReceiptsHidden = FORBIDDEN, "Receipts hidden";
    ListsHidden = FORBIDDEN, "Lists hidden";
    Blocked = FORBIDDEN, "User blocked";
    CrossOrigin = FORBIDDEN, "Cross-origin request not allowed";
    UnknownRoute = NOT_FOUND, "Route not found";
    NotFound = NOT_FOUND, "Not found";
    MethodNotAllowed = METHOD_NOT_ALLOWED, "Method not allowed";
    RequestTimeout = REQUEST_TIMEOUT, "Request timeout";
    FollowingLimit = CONFLICT, "Following limit reached";
    ReceiptsDisabled = CONFLICT, "Receipts disabled";
    TooLarge = CONFLICT, "Result too large";
    TooMany = CONFLICT, "Limit reached";
    IdempotencyInProgress = CONFLICT, "Request in progress";
    Gone = GONE, "Gone";
    Erased = GONE, "User erased";
    InboxReset = GONE, "Inbox reset";
    CursorExpired = GONE, "Cursor expired";
    BodyTooLarge = PAYLOAD_TOO_LARGE, "Request body too large";
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    InvalidBody = UNPROCESSABLE_ENTITY, "Invalid request body";
    SelfRelation = UNPROCESSABLE_ENTITY, "Self-relation not allowed";
    IdempotencyKeyReused = UNPROCESSABLE_ENTITY, "Idempotency key reused";
    RateLimited = TOO_MANY_REQUESTS, "Rate limit exceeded";
    Overloaded = SERVICE_UNAVAILABLE, "Server overloaded";
    StoreUnavailable = SERVICE_UNAVAILABLE, "Storage unavailable";
    OperationsPending = SERVICE_UNAVAILABLE, "Earlier writes pending";
    OutcomeUnknown = SERVICE_UNAVAILABLE, "Write outcome unknown";
    ShuttingDown = SERVICE_UNAVAILABLE, "Server shutting down";
    InternalError = INTERNAL_SERVER_ERROR, "Internal server error";
}

impl Code {
    /// The kind as it stands in JSON.
    #[must_use]
    pub fn as_str(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// An invalid value: its location (an RFC 6901 pointer into the body, or the name of a parameter)
/// and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// A JSON pointer into the body, or the name of a query or path parameter.
    #[schema(example = "/items/3/by")]
    pub pointer: String,
    /// What is wrong with the value.
    pub detail: String,
}

/// An error that the caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its kind, from which status, type and title follow.
    pub code: Code,
    /// What went wrong in this request.
    pub detail: Cow<'static, str>,
    /// The values at fault, for invalid input.
    pub errors: Vec<FieldError>,
    /// When trying again makes sense, in seconds.
    pub retry_after_s: Option<u32>,
    /// With 410: the lowest seq that is still kept.
    pub earliest_seq: Option<i64>,
}

impl Problem {
    /// A problem of this kind. 429 and 503 ask for a second's pause unless told otherwise.
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let pause = matches!(code.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        Self { code, detail: detail.into(), errors: Vec::new(), retry_after_s: pause.then_some(1), earliest_seq: None }
    }

    /// What is answered where a store is away and a guess will not do.
    pub fn store_unavailable() -> Self {
        Self::new(Code::StoreUnavailable, "A store did not respond. Try again shortly.")
    }

    /// A 422 for one value of the body. `pointer` is an RFC 6901 pointer.
    pub fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidBody, "One or more values are invalid. See errors.").at(pointer, detail)
    }

    /// A 400 for one value of the query, by its name.
    pub fn query(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidQuery, "One or more values are invalid. See errors.").at(name, detail)
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
}
