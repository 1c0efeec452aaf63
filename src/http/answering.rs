//! The answer to a request in the making: what the edge does around the route, and what is noted of
//! the request once it is over.
//!
//! The future is written by hand. One that is made of `async` blocks is moved, with all that it
//! holds, each time that one of them wraps another. For a poll that took as long as finding its
//! answer.

use std::any::Any;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use pin_project_lite::pin_project;
use tracing::Span;

use crate::base::error::{Code, Problem};
use crate::base::seldom::Seldom;
use crate::http::compress::{self, Encoding};
use crate::http::context::{self, Context, Scoped};
use crate::http::meter::Meter;
use crate::http::places;
use crate::http::streams::HttpStream;

/// Panics that were caught and answered with 500.
pub(crate) const PANICS: &str = "headmark_http_panics_total";

pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// What the routes of the interface answer depends on the caller: a shared cache must not give it
/// to another one.
const AUTHORIZATION: HeaderValue = HeaderValue::from_static("Authorization");
/// The same of a 304, which stands for an answer that may be compressed. One value for both, as a second
/// one would take memory.
const ENCODING_AND_AUTHORIZATION: HeaderValue = HeaderValue::from_static("accept-encoding, Authorization");
/// A request that takes longer is logged, unless it was asked to wait.
const SLOW: Duration = Duration::from_secs(1);
/// How often a 503 is logged as a warning.
const WARN_EVERY: Duration = Duration::from_secs(1);
/// What is logged for a caller who hung up; nobody receives it.
const CLOSED_BY_CALLER: u16 = 499;

/// What is noted of each request: metrics, and a line of the log.
pub(super) struct Journal {
    meter: Meter,
    /// Of 503, as overload must not become a flood of lines.
    warnings: Seldom,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self { meter: Meter::new(), warnings: Seldom::new(WARN_EVERY) }
    }

    fn note(&self, status: StatusCode, elapsed: Duration, asked_to_wait: bool, code: Option<Code>) {
        let _ = context::with(|context| {
            self.meter.record(context.route(), &context.method, status, elapsed, context.held.get());
            if let Some(span) = &context.span {
                span.end(status);
            }
        });
        let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let status = status.as_u16();
        match status {
            503 if self.warnings.may() => {
                let code = code.map(Code::as_str);
                tracing::warn!(status, code, duration_ms, "request refused; at most one such line a second");
            }
            503 => tracing::debug!(status, duration_ms, "request refused"),
            500.. => tracing::error!(status, duration_ms, "request failed"),
            _ if elapsed > SLOW && !asked_to_wait => tracing::warn!(status, duration_ms, "slow request"),
            _ => tracing::debug!(status, duration_ms, "request answered"),
        }
    }
}

/// What the edge knows of a request before its route answers.
pub(super) struct Asked {
    pub(super) started: Instant,
    /// Its connection, where that is HTTP/2.
    pub(super) stream: Option<HttpStream>,
    pub(super) accepts: Accepts,
    pub(super) depends_on_caller: bool,
    pub(super) asked_to_wait: bool,
    /// Below debug level it is off and costs a comparison; log lines carry the request's fields
    /// without it.
    pub(super) span: Span,
}

/// Whether an answer may be compressed, and how.
pub(super) enum Accepts {
    /// The server does not compress.
    Off,
    /// The header that says how, if there is one. It is read only for a long answer.
    Header(Option<HeaderValue>),
}

/// How far the answer is.
enum Step<F> {
    /// The request is refused. Boxed, as a step changes places.
    Refused(Box<Problem>),
    /// The route is at work.
    Serving(Pin<Box<F>>),
    /// The answer is being compressed.
    Compressing(Pin<Box<dyn Future<Output = Response> + Send>>),
    Over,
}

pin_project! {
    /// The answer to one request, in the making.
    pub struct Answering<F> where F: Future<Output = Result<Response, Infallible>> {
        #[pin]
        making: Scoped<Making<F>>,
    }
}

struct Making<F> {
    journal: Arc<Journal>,
    asked: Asked,
    step: Step<F>,
}

impl<F: Future<Output = Result<Response, Infallible>>> Answering<F> {
    /// By the route, or the problem for which it is not asked.
    pub(super) fn new(journal: Arc<Journal>, context: Context, asked: Asked, route: Result<F, Problem>) -> Self {
        let step = match route {
            Ok(future) => Step::Serving(Box::pin(future)),
            Err(problem) => Step::Refused(Box::new(problem)),
        };
        Self { making: context::scope(context, Making { journal, asked, step }) }
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Answering<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.project().making.poll(cx)
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Making<F> {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let making = &mut *self;
        let span = making.asked.span.clone();
        let _entered = span.enter();
        loop {
            let response = match std::mem::replace(&mut making.step, Step::Over) {
                Step::Refused(problem) => problem.into_response(),
                Step::Serving(mut route) => match catch_unwind(AssertUnwindSafe(|| route.as_mut().poll(cx))) {
                    Ok(Poll::Ready(Ok(response))) => response,
                    Ok(Poll::Pending) => {
                        making.step = Step::Serving(route);
                        return Poll::Pending;
                    }
                    Err(payload) => panicked(&*payload),
                },
                Step::Compressing(mut compressed) => {
                    let Poll::Ready(response) = compressed.as_mut().poll(cx) else {
                        making.step = Step::Compressing(compressed);
                        return Poll::Pending;
                    };
                    return Poll::Ready(Ok(making.finish(response)));
                }
                // Nobody polls a future again that is over.
                Step::Over => return Poll::Pending,
            };
            match &making.asked.accepts {
                Accepts::Header(accepts) if compress::is_long(&response) => {
                    let encoding = accepts.as_ref().and_then(Encoding::preferred);
                    making.step = Step::Compressing(Box::pin(compress::compress(encoding, response)));
                }
                _ => return Poll::Ready(Ok(making.finish(response))),
            }
        }
    }
}

impl<F> Making<F> {
    /// Adds the headers that every answer has, notes the request, and keeps its place for as long as
    /// the answer needs it.
    fn finish(&mut self, mut response: Response) -> Response {
        let stream = self.asked.stream.take();
        let (place, request_id) = context::with(|context| (context.place.take(), context.request_id.clone())).unzip();
        let place = places::keep(place.flatten(), stream.is_some(), &response).unwrap_or_else(|problem| {
            response = problem.into_response();
            None
        });
        let confirms = response.status() == StatusCode::NOT_MODIFIED && matches!(self.asked.accepts, Accepts::Header(_));
        let headers = response.headers_mut();
        if let Some(request_id) = request_id {
            headers.insert(X_REQUEST_ID, request_id);
        }
        if self.asked.depends_on_caller {
            headers.append(header::VARY, if confirms { ENCODING_AND_AUTHORIZATION } else { AUTHORIZATION });
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        let code = response.extensions().get::<Code>().copied();
        self.journal.note(response.status(), self.asked.started.elapsed(), self.asked.asked_to_wait, code);
        places::hold(place, stream, response)
    }
}

/// Counts a request whose caller hung up.
impl<F> Drop for Making<F> {
    fn drop(&mut self) {
        if !matches!(self.step, Step::Over) {
            let status = StatusCode::from_u16(CLOSED_BY_CALLER).unwrap_or_default();
            let _entered = self.asked.span.enter();
            self.journal.note(status, self.asked.started.elapsed(), true, None);
        }
    }
}

fn panicked(payload: &(dyn Any + Send)) -> Response {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("no text"), "a handler panicked");
    metrics::counter!(PANICS).increment(1);
    Problem::new(Code::InternalError, "The server logged the error with the X-Request-Id of this request.").into_response()
}
