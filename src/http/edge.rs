//! The one middleware, around every route: request id, in-flight limit, guard of an open server,
//! panics, compression, metrics, logs.
//!
//! It is one service and not a stack of them, because every layer of a router boxes a future once
//! more, and a poll has about a microsecond to spare. Put it on last:
//! `router.fallback(unknown_route).method_not_allowed_fallback(method_not_allowed).layer(edge)`.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use rand::Rng;
use tower::{Layer, Service};
use tracing::Instrument;

use crate::base::error::{Code, Problem};
use crate::base::hex;
use crate::base::seldom::Seldom;
use crate::http::compress::{self, Encoding};
use crate::http::context::{self, BodyRules, Context};
use crate::http::cors::Origins;
use crate::http::limit::{Limiter, Peer};
use crate::http::meter::Meter;
use crate::http::places::{self, Places, PlacesConfig};
use crate::http::traces::Tracer;
use crate::http::watch::Link;
use crate::http::{PROBES, origin};

/// Panics that were caught and answered with 500.
pub(crate) const PANICS: &str = "headmark_http_panics_total";

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// What the routes of the interface answer depends on the caller: a shared cache must not give it
/// to another one.
const AUTHORIZATION: HeaderValue = HeaderValue::from_static("Authorization");
const INTERFACE: &str = "/v1/";
/// A request that takes longer is logged, unless it was asked to wait.
const SLOW: Duration = Duration::from_secs(1);
/// How often a 503 is logged as a warning.
const WARN_EVERY: Duration = Duration::from_secs(1);
/// What is logged for a caller who hung up; nobody receives it.
const CLOSED_BY_CALLER: u16 = 499;

/// How the edge is set up.
#[derive(Debug, Clone)]
pub struct EdgeConfig {
    /// Whether no credentials are configured, so that requests from web pages must be refused.
    pub open: bool,
    /// How many requests may be in flight, waiting polls included.
    pub places: PlacesConfig,
    /// The bounds on bodies, which the extractor enforces.
    pub body_rules: BodyRules,
    /// The origins whose pages may call, also an open server.
    pub origins: Origins,
    /// Whether long answers are compressed for callers who accept it.
    pub compression: bool,
    /// How fast each caller may go, if that is limited.
    pub limiter: Option<Arc<Limiter>>,
    /// What makes a span for each request, if they are sent anywhere.
    pub tracer: Option<Tracer>,
}

impl Default for EdgeConfig {
    fn default() -> Self {
        Self {
            open: false,
            places: PlacesConfig::default(),
            body_rules: BodyRules::default(),
            origins: Origins::None,
            compression: true,
            limiter: None,
            tracer: None,
        }
    }
}

/// The middleware, to give to [`axum::Router::layer`] after all routes and fallbacks.
#[derive(Clone)]
pub struct EdgeLayer(Arc<Shared>);

/// What all routes of one server share.
struct Shared {
    config: EdgeConfig,
    places: Arc<Places>,
    meter: Meter,
    /// Of 503, as overload must not become a flood of lines.
    warnings: Seldom,
}

impl EdgeLayer {
    /// Sets up the edge, and the metrics' recorder if it does not stand yet.
    #[must_use]
    pub fn new(config: EdgeConfig) -> Self {
        let (places, warnings) = (Places::new(config.places), Seldom::new(WARN_EVERY));
        Self(Arc::new(Shared { config, places, meter: Meter::new(), warnings }))
    }
}

impl std::fmt::Debug for EdgeLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EdgeLayer").field(&self.0.config).finish()
    }
}

impl<S> Layer<S> for EdgeLayer {
    type Service = Edge<S>;

    fn layer(&self, inner: S) -> Edge<S> {
        Edge { inner, shared: Arc::clone(&self.0) }
    }
}

/// A route with the edge around it.
#[derive(Clone)]
pub struct Edge<S> {
    inner: S,
    shared: Arc<Shared>,
}

impl<S> std::fmt::Debug for Edge<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}

impl<S> Service<Request> for Edge<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let started = Instant::now();
        let shared = Arc::clone(&self.shared);
        // Counted also where it is refused, which is over at once.
        let place = shared.places.enter();
        let stream = request.extensions().get::<Link>().map(|link| link.0.begin());
        let within = place.is_within();
        let context = Context {
            request_id: request_id(request.headers()),
            traceparent: request.headers().get(TRACEPARENT).cloned(),
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            body_rules: shared.config.body_rules,
            caller: std::cell::OnceCell::new(),
            span: shared.config.tracer.as_ref().and_then(|tracer| tracer.begin(&request)).map(Box::new),
            limiter: shared.config.limiter.clone(),
            peer: request.extensions().get::<Peer>().map(|peer| peer.0),
            place: std::cell::RefCell::new(Some(place)),
            held: std::cell::Cell::new(false),
        };
        let accepted = if shared.config.compression { Encoding::accepted(request.headers()) } else { None };
        let depends_on_caller = request.uri().path().starts_with(INTERFACE);
        let asked_to_wait = request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("wait=")));
        let admitted = shared.admit(within, &context, &request).map(|()| self.inner.call(request));
        // Below debug level the span is off and costs a comparison; log lines carry the request's
        // fields without it.
        let span = tracing::debug_span!("request", request_id = ?context.request_id, method = %context.method, route = context.route());
        let served = context::scope(context, async move {
            let shared = &*shared;
            let unfinished = Unfinished { shared, started };
            let mut response = match admitted {
                Ok(future) => match AssertUnwindSafe(future).catch_unwind().await {
                    Ok(Ok(response)) => response,
                    Ok(Err(never)) => match never {},
                    Err(payload) => panicked(&*payload),
                },
                Err(problem) => problem.into_response(),
            };
            std::mem::forget(unfinished);
            if shared.config.compression && compress::is_long(&response) {
                // Boxed, so that polls need not carry its room.
                response = Box::pin(compress::compress(accepted, response)).await;
            }
            let found = context::with(|context| (context.place.take(), PROBES.contains(&context.route())));
            let (place, probe) = found.unwrap_or_default();
            let place = places::keep(place, stream.is_some(), probe, &response).unwrap_or_else(|problem| {
                response = problem.into_response();
                None
            });
            let request_id = context::with(|context| context.request_id.clone());
            if let Some(request_id) = request_id {
                response.headers_mut().insert(X_REQUEST_ID, request_id);
            }
            if depends_on_caller {
                response.headers_mut().append(header::VARY, AUTHORIZATION);
            }
            response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
            let code = response.extensions().get::<Code>().copied();
            shared.finish(response.status(), started.elapsed(), asked_to_wait, code);
            Ok(places::hold(place, stream, response))
        });
        if span.is_disabled() { Box::pin(served) } else { Box::pin(served.instrument(span)) }
    }
}

/// Counts a request whose caller hung up; forgotten when the answer is there.
struct Unfinished<'a> {
    shared: &'a Shared,
    started: Instant,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let status = StatusCode::from_u16(CLOSED_BY_CALLER).unwrap_or_default();
        self.shared.finish(status, self.started.elapsed(), true, None);
    }
}

impl Shared {
    fn admit(&self, within: bool, context: &Context, request: &Request) -> Result<(), Problem> {
        origin::check_host(request.version(), request.headers())?;
        if self.config.open {
            origin::check(request.headers(), request.uri(), &self.config.origins)?;
        }
        // A refused preflight would hide from the page why; its answer, and a 405, take no work.
        let always = context.method == Method::OPTIONS || PROBES.contains(&context.route());
        if within || always { Ok(()) } else { Err(places::overloaded()) }
    }

    fn finish(&self, status: StatusCode, elapsed: Duration, asked_to_wait: bool, code: Option<Code>) {
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

fn panicked(payload: &(dyn Any + Send)) -> Response {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("no text"), "a handler panicked");
    metrics::counter!(PANICS).increment(1);
    Problem::new(Code::InternalError, "The server logged the error with the X-Request-Id of this request.").into_response()
}

/// The caller's own id, when it is fit for a log line and a header; else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let fit = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        (1..=128).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
    };
    headers.get(X_REQUEST_ID).filter(fit).cloned().unwrap_or_else(new_request_id)
}

/// 128 random bits in hex. An id is only ever compared with itself, so no test needs to set it.
fn new_request_id() -> HeaderValue {
    let mut random = [0_u8; 16];
    rand::rng().fill_bytes(&mut random);
    let mut text = String::new();
    hex::push(&random, &mut text);
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("none"))
}

/// Answers what no route matches; for [`axum::Router::fallback`].
pub async fn unknown_route(method: Method, uri: Uri) -> Problem {
    let path = super::problem::cut(uri.path(), 200);
    Problem::new(Code::UnknownRoute, format!("No route matches {} {path}.", super::problem::cut(method.as_str(), 32)))
}

/// Answers a method that a route does not take; for [`axum::Router::method_not_allowed_fallback`],
/// which adds `Allow`.
pub async fn method_not_allowed(method: Method) -> Problem {
    let method = super::problem::cut(method.as_str(), 32);
    Problem::new(Code::MethodNotAllowed, format!("This route does not support {method}. See the Allow header."))
}

#[cfg(test)]
mod tests;
