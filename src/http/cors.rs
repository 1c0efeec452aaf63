//! Calls from pages of other origins (CORS), for the origins that are configured; with none this
//! module does nothing.
//!
//! tower-http makes the headers. What is here decides who gets them, and where: preflights are
//! answered inside of the edge, so that they have a request id and are counted; every other answer
//! gets its headers outside of it, so that what the edge itself refuses can be read by a page too.
//! To expose one more header: [`EXPOSED`].

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use tower::{Layer, Service};
use tower_http::cors::{self, AllowOrigin};

/// What a page may read of an answer, beyond what every page may.
const EXPOSED: [HeaderName; 8] = [
    header::ETAG,
    header::LINK,
    header::LOCATION,
    header::RETRY_AFTER,
    HeaderName::from_static("x-poll-interval"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("idempotent-replayed"),
    HeaderName::from_static("preference-applied"),
];
/// What a page may send, beyond what every page may.
const ALLOWED: [HeaderName; 8] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::IF_NONE_MATCH,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("prefer"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
/// How long a browser may keep the answer to a preflight. Some browsers keep none for longer.
const MAX_AGE: Duration = Duration::from_secs(2 * 3600);
/// How many origins may be listed: each request of a page is compared with all of them.
const MAX_ORIGINS: usize = 100;

/// The origins whose pages may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origins {
    /// No page of another origin.
    #[default]
    None,
    /// These, compared byte by byte.
    Listed(Arc<[HeaderValue]>),
    /// Every page.
    Any,
}

impl Origins {
    /// Reads a comma-separated list, or `*` alone. An empty text allows none.
    ///
    /// # Errors
    /// A sentence for the operator: which origin is none, and how it is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries: Vec<&str> = text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        match entries.as_slice() {
            [] => Ok(Self::None),
            ["*"] => Ok(Self::Any),
            entries if entries.contains(&"*") => Err("'*' stands for every origin, so it must be alone".to_owned()),
            entries if entries.len() > MAX_ORIGINS => Err(format!("at most {MAX_ORIGINS} origins may be listed")),
            entries => entries.iter().map(|entry| origin(entry)).collect::<Result<_, _>>().map(Self::Listed),
        }
    }

    /// Whether no page of another origin may call.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    pub(super) fn allow(&self, origin: &HeaderValue) -> bool {
        match self {
            Self::None => false,
            Self::Listed(origins) => origins.contains(origin),
            Self::Any => true,
        }
    }

    /// Answers the preflights of these origins; the layer to put on just inside of the edge.
    pub(crate) fn preflights(&self) -> CrossOriginLayer {
        CrossOriginLayer {
            origins: self.clone(),
            place: Place::Preflights,
            cors: self.cors().allow_methods(METHODS).allow_headers(ALLOWED).max_age(MAX_AGE),
        }
    }

    /// Adds the headers to every other answer for these origins; the layer to put on outside of the
    /// edge.
    pub(crate) fn answers(&self) -> CrossOriginLayer {
        CrossOriginLayer { origins: self.clone(), place: Place::Answers, cors: self.cors().expose_headers(EXPOSED).vary([header::ORIGIN]) }
    }

    /// Without `Access-Control-Allow-Credentials`: callers show who they are by a header of their
    /// own, never by a cookie.
    fn cors(&self) -> cors::CorsLayer {
        let allowed = match self {
            Self::None => AllowOrigin::list([]),
            Self::Listed(origins) => AllowOrigin::list(origins.iter().cloned()),
            Self::Any => AllowOrigin::any(),
        };
        cors::CorsLayer::new().allow_origin(allowed)
    }
}

/// One origin exactly as browsers send it, or how it should have been written: one that never
/// matches would be found out late.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let wrong = |why: &str| Err(format!("'{text}' {why}"));
    if text == "null" {
        return wrong("cannot be allowed: every local file and every sandboxed page has it");
    }
    let Some((scheme, authority)) = text.split_once("://") else {
        return wrong("is not an origin: begin with the scheme, as in https://app.example");
    };
    if authority.contains(['/', '?', '#']) {
        return wrong("is not an origin: end with the host or the port, without a slash or a path, as in https://app.example");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let of_scheme = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let of_host = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    let well_formed = !scheme.is_empty() && scheme.bytes().all(of_scheme) && !host.is_empty() && host.bytes().all(of_host);
    if !well_formed || port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return wrong("is not an origin: write scheme, host and optional port, as in https://app.example:8443");
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return wrong("would never match: browsers send an origin in lower case");
    }
    if matches!((scheme, port), ("http", Some("80")) | ("https", Some("443"))) {
        return wrong("would never match: browsers leave out the usual port of a scheme");
    }
    HeaderValue::from_str(text).or_else(|_| wrong("cannot stand in a header"))
}

/// Which answers a layer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Preflights,
    Answers,
}

/// One of the two layers that [`Origins`] makes.
#[derive(Debug, Clone)]
pub(crate) struct CrossOriginLayer {
    origins: Origins,
    place: Place,
    cors: cors::CorsLayer,
}

impl<S: Clone> Layer<S> for CrossOriginLayer {
    type Service = CrossOrigin<S>;

    fn layer(&self, inner: S) -> CrossOrigin<S> {
        CrossOrigin { origins: self.origins.clone(), place: self.place, cors: self.cors.layer(inner.clone()), plain: inner }
    }
}

/// A route with one of the two layers around it.
#[derive(Debug, Clone)]
pub(crate) struct CrossOrigin<S> {
    origins: Origins,
    place: Place,
    cors: cors::Cors<S>,
    plain: S,
}

impl<S> Service<Request> for CrossOrigin<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self.plain.poll_ready(cx) {
            Poll::Ready(Ok(())) => self.cors.poll_ready(cx),
            other => other,
        }
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let allowed = request.headers().get(header::ORIGIN).is_some_and(|origin| self.origins.allow(origin));
        let options = request.method() == Method::OPTIONS;
        match self.place {
            Place::Preflights if allowed && options && is_preflight(request.headers()) => Box::pin(self.cors.call(request)),
            Place::Answers if allowed && !options => Box::pin(self.cors.call(request)),
            Place::Answers if !options => Box::pin(varied(self.plain.call(request))),
            _ => Box::pin(self.plain.call(request)),
        }
    }
}

fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// A shared cache must not give an answer without the headers to a page that would get them.
async fn varied(answer: impl Future<Output = Result<Response, Infallible>>) -> Result<Response, Infallible> {
    let mut response = answer.await?;
    response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_taken_as_browsers_send_them() {
        for good in [
            "https://app.example",
            "http://localhost:3000",
            "https://a.example, https://b.example:8443",
            "http://[::1]:3000",
            "capacitor://localhost",
        ] {
            let origins = Origins::parse(good).unwrap();
            for one in good.split(", ") {
                assert!(origins.allow(&HeaderValue::from_str(one).unwrap()), "{one}");
                assert!(!origins.allow(&HeaderValue::from_str(&format!("{one}0")).unwrap()), "{one}");
            }
        }
        assert_eq!(Origins::parse(""), Ok(Origins::None));
        assert_eq!(Origins::parse(" * "), Ok(Origins::Any));
    }

    #[test]
    fn what_is_no_origin_is_refused_with_the_reason() {
        let many = vec!["https://app.example"; MAX_ORIGINS + 1].join(",");
        for (bad, says) in [
            ("app.example", "begin with the scheme"),
            ("https://app.example/", "without a slash"),
            ("https://app.example/path", "without a slash"),
            ("https://App.example", "lower case"),
            ("https://app.example:443", "usual port"),
            ("http://app.example:80", "usual port"),
            ("https://app.example:x", "scheme, host"),
            ("https://", "scheme, host"),
            ("https://user@app.example", "scheme, host"),
            ("https://bücher.example", "scheme, host"),
            ("https://*.example", "scheme, host"),
            ("null", "sandboxed"),
            ("*,https://app.example", "alone"),
            (&many, "at most"),
        ] {
            let why = Origins::parse(bad).unwrap_err();
            assert!(why.contains(says), "{bad:.40}: {why}");
        }
    }
}
