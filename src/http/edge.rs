//! The one middleware, around every route: request id, in-flight limit, guard of an open server,
//! panics, compression, metrics, logs.
//!
//! It is one service and not a stack of them, because every layer of a router boxes a future once
//! more, and a poll has about a microsecond to spare. Put it on last:
//! `router.fallback(unknown_route).method_not_allowed_fallback(method_not_allowed).layer(edge)`.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::response::Response;
use rand::Rng;
use tower::{Layer, Service};

use crate::base::error::{Code, Problem};
use crate::base::hex;
use crate::http::answering::{Accepts, Answering, Asked, Journal, X_REQUEST_ID};
use crate::http::compress;
use crate::http::context::{BodyRules, Context, RouteName};
use crate::http::cors::Origins;
use crate::http::limit::{Limiter, Peer};
use crate::http::origin;
use crate::http::places::{self, Places, PlacesConfig};
use crate::http::traces::Tracer;
use crate::http::watch::Link;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// How the routes of the interface begin.
const INTERFACE: &str = "/v1/";

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
pub struct EdgeLayer {
    shared: Arc<Shared>,
    route: Option<&'static str>,
}

/// What all routes of one server share.
struct Shared {
    config: EdgeConfig,
    places: Arc<Places>,
    journal: Arc<Journal>,
}

impl EdgeLayer {
    /// Sets up the edge, and the metrics' recorder if it does not stand yet.
    #[must_use]
    pub fn new(config: EdgeConfig) -> Self {
        let (places, journal) = (Places::new(config.places), Arc::new(Journal::new()));
        Self { shared: Arc::new(Shared { config, places, journal }), route: None }
    }

    /// The same edge for one route that is called without the router, under its name in the
    /// document.
    #[must_use]
    pub fn for_route(&self, name: &'static str) -> Self {
        Self { shared: Arc::clone(&self.shared), route: Some(name) }
    }
}

impl std::fmt::Debug for EdgeLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EdgeLayer").field("config", &self.shared.config).field("route", &self.route).finish()
    }
}

impl<S> Layer<S> for EdgeLayer {
    type Service = Edge<S>;

    fn layer(&self, inner: S) -> Edge<S> {
        Edge { inner, shared: Arc::clone(&self.shared), route: self.route }
    }
}

/// A route with the edge around it.
#[derive(Clone)]
pub struct Edge<S> {
    inner: S,
    shared: Arc<Shared>,
    /// Its name, where the router has not looked for it.
    route: Option<&'static str>,
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
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let started = Instant::now();
        let shared = &self.shared;
        let matched = || request.extensions().get::<MatchedPath>().cloned().map(RouteName::Matched);
        let route = self.route.map(RouteName::Fixed).or_else(matched);
        // Counted also where it is refused, which is over at once.
        let place = shared.places.enter(route.as_ref().map(RouteName::as_str));
        let stream = request.extensions().get::<Link>().map(|link| link.0.begin());
        let within = place.is_within();
        let span = shared.config.tracer.as_ref().and_then(|tracer| tracer.begin(&request, route.as_ref().map(RouteName::as_str)));
        let context = Context {
            request_id: request_id(request.headers()),
            traceparent: request.headers().get(TRACEPARENT).cloned(),
            method: request.method().clone(),
            route,
            body_rules: shared.config.body_rules,
            caller: std::cell::OnceCell::new(),
            span: span.map(Box::new),
            limiter: shared.config.limiter.clone(),
            peer: request.extensions().get::<Peer>().map(|peer| peer.0),
            place: std::cell::RefCell::new(Some(place)),
            held: std::cell::Cell::new(false),
        };
        let asked = Asked {
            started,
            stream,
            accepts: shared.accepts(request.headers()),
            depends_on_caller: request.uri().path().starts_with(INTERFACE),
            asked_to_wait: asks_to_wait(request.uri().query().unwrap_or_default()),
            span: tracing::debug_span!("request", request_id = ?context.request_id, method = %context.method, route = context.route()),
        };
        let route = shared.admit(within, &context, &request).map(|()| self.inner.call(request));
        Answering::new(Arc::clone(&shared.journal), context, asked, route)
    }
}

impl Shared {
    fn admit(&self, within: bool, context: &Context, request: &Request) -> Result<(), Problem> {
        origin::check_host(request.version(), request.headers())?;
        if self.config.open {
            origin::check(request.headers(), request.uri(), &self.config.origins)?;
        }
        // A refused preflight would hide from the page why; its answer, and a 405, take no work.
        if within || context.method == Method::OPTIONS { Ok(()) } else { Err(places::overloaded()) }
    }

    /// How this caller's answer may be compressed.
    fn accepts(&self, headers: &HeaderMap) -> Accepts {
        if self.config.compression { Accepts::Header(compress::wish(headers).cloned()) } else { Accepts::Off }
    }
}

fn asks_to_wait(query: &str) -> bool {
    query.as_bytes().split(|byte| *byte == b'&').any(|pair| pair.starts_with(b"wait="))
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
    HeaderValue::from_bytes(hex::digits(random).as_flattened()).unwrap_or_else(|_| HeaderValue::from_static("none"))
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
