//! What is known of the request being served, for log lines and extractors.
//!
//! It is a task-local, not a tracing span: entering costs a few nanoseconds at any log level, while
//! a span that every error line could rely on would have to be formatted for every poll. The log
//! format (`telemetry`) adds these fields to each line.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::http::{HeaderValue, Method};
use tokio::task::futures::TaskLocalFuture;

use crate::base::error::Problem;
use crate::http::caller::Caller;
use crate::http::limit::Limiter;
use crate::http::places::Place;
use crate::http::traces::RequestSpan;

tokio::task_local! {
    // Boxed, as it changes places each time that the request goes on.
    static CURRENT: Box<Context>;
}

/// The bounds on a request's body, as the edge was configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyRules {
    /// How long a body may be.
    pub limit_bytes: usize,
    /// How long a body may take to arrive.
    pub timeout: Duration,
}

impl Default for BodyRules {
    fn default() -> Self {
        Self { limit_bytes: 1024 * 1024, timeout: Duration::from_secs(10) }
    }
}

/// A route as the document names it, such as `/v1/users/{user}/badges`.
#[derive(Debug, Clone)]
pub(crate) enum RouteName {
    /// The router has found it.
    Matched(MatchedPath),
    /// The request came without the router.
    Fixed(&'static str),
}

impl RouteName {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Matched(path) => path.as_str(),
            Self::Fixed(name) => name,
        }
    }
}

/// One request.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) request_id: HeaderValue,
    pub(crate) traceparent: Option<HeaderValue>,
    pub(crate) method: Method,
    pub(crate) route: Option<RouteName>,
    pub(crate) body_rules: BodyRules,
    pub(crate) caller: OnceCell<Caller>,
    /// Its span, while traces are sent anywhere. Boxed, since most requests have none and all are
    /// moved.
    pub(crate) span: Option<Box<RequestSpan>>,
    /// The limit of each caller, if there is one, and the address that the request comes from,
    /// known only then.
    pub(crate) limiter: Option<Arc<Limiter>>,
    pub(crate) peer: Option<IpAddr>,
    /// Its place among the requests in flight; the edge takes it out with the answer.
    pub(crate) place: RefCell<Option<Place>>,
    /// Whether it has taken a place to wait in.
    pub(crate) held: Cell<bool>,
}

/// What a request without a matching route is called in metrics and logs: its own path would be the
/// caller's to choose.
pub(crate) const UNMATCHED: &str = "unmatched";

impl Context {
    pub(crate) fn route(&self) -> &str {
        self.route.as_ref().map_or(UNMATCHED, RouteName::as_str)
    }

    /// Hands each field to `field`, as name and text.
    pub(crate) fn fields(&self, mut field: impl FnMut(&'static str, &str)) {
        field("request_id", self.request_id.to_str().unwrap_or_default());
        field("method", self.method.as_str());
        field("route", self.route());
        if let Some(span) = &self.span {
            field("trace_id", &span.trace_id().to_string());
        } else if let Some(trace_id) = self.traceparent.as_ref().and_then(trace_id) {
            field("trace_id", trace_id);
        }
        if let Some(caller) = self.caller.get() {
            field("caller", &caller.to_string());
        }
    }
}

/// The trace id of a W3C `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`.
fn trace_id(traceparent: &HeaderValue) -> Option<&str> {
    let mut parts = traceparent.to_str().ok()?.split('-');
    let (version, trace_id, parent) = (parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let well_formed = hex(version, 2) && version != "ff" && hex(trace_id, 32) && hex(parent, 16);
    (well_formed && trace_id.bytes().any(|b| b != b'0')).then_some(trace_id)
}

/// A future that runs as part of a request.
pub(crate) type Scoped<F> = TaskLocalFuture<Box<Context>, F>;

/// Runs a future as part of a request.
pub(crate) fn scope<F: Future>(context: Context, future: F) -> Scoped<F> {
    CURRENT.scope(Box::new(context), future)
}

/// Asks the request being served; `None` outside of one.
pub(crate) fn with<R>(ask: impl FnOnce(&Context) -> R) -> Option<R> {
    CURRENT.try_with(|context| ask(context)).ok()
}

/// The id of the request being served, as its response's `X-Request-Id` shows it.
#[must_use]
pub fn request_id() -> Option<String> {
    with(|context| context.request_id.to_str().unwrap_or_default().to_owned())
}

/// Notes who is calling, for the log, and counts the request against the bounds of that caller.
///
/// # Errors
/// A 429 problem.
pub(crate) fn note_caller(caller: &Caller) -> Result<(), Problem> {
    let counted = with(|context| {
        // A second extractor of one handler finds the same caller; the first note stands, and the
        // request counts once.
        if context.caller.set(caller.clone()).is_err() {
            return Ok(());
        }
        context.limiter.as_ref().map_or(Ok(()), |limiter| limiter.count(caller))?;
        context.place.borrow_mut().as_mut().map_or(Ok(()), |place| place.belongs_to(caller))
    });
    counted.unwrap_or(Ok(()))
}

/// Notes that the request waits, so that its time is counted apart from others'.
pub(crate) fn note_held() {
    let _ = with(|context| context.held.set(true));
}

/// Who calls, once that is known; `None` outside of a request.
pub(crate) fn caller() -> Option<Caller> {
    with(|context| context.caller.get().cloned()).flatten()
}

/// Counts a request with bad credentials against the limit of where it comes from.
///
/// # Errors
/// A 429 problem.
pub(crate) fn note_stranger() -> Result<(), Problem> {
    let counted = with(|context| match (&context.limiter, context.peer) {
        (Some(limiter), Some(peer)) => limiter.count_stranger(peer),
        _ => Ok(()),
    });
    counted.unwrap_or(Ok(()))
}

/// The bounds on the body of the request being served, or the defaults outside of the edge.
#[must_use]
pub fn body_rules() -> BodyRules {
    with(|context| context.body_rules).unwrap_or_default()
}

/// Counts so many more bytes of the body of the request being served.
///
/// # Errors
/// A 429 or 503 problem where there is no room for them.
pub(super) fn hold_body(bytes: usize) -> Result<(), Problem> {
    let held = with(|context| context.place.borrow_mut().as_mut().map_or(Ok(()), |place| place.hold_body(bytes)));
    // Outside of the edge nothing is bounded.
    held.unwrap_or(Ok(()))
}

/// The body of the request being served is no longer in memory.
pub(super) fn let_go_of_body() {
    let _ = with(|context| context.place.borrow_mut().as_mut().map(Place::let_go_of_body));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ids_are_taken_from_well_formed_headers_only() {
        let good = HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!(trace_id(&good), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        for bad in [
            "",
            "00-xyz-1-1",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(trace_id(&HeaderValue::from_static(bad)), None, "{bad}");
        }
    }
}
