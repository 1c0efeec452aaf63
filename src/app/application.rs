//! What a connection hands its requests to: the router, and beside it the route that clients poll,
//! to which there is a shorter way.
//!
//! A router looks a path up, copies what it finds there, and keeps each route in a box that it
//! copies for each request. That was an eighth of the work of a poll that memory answers. So a poll goes
//! to its handler at once. The handler, what it takes from a request, and the edge around it are those
//! of the router, which answers the same poll in the same way.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{self, Method};
use axum::response::Response;
use axum::routing::future::RouteFuture;
use hyper::body::Incoming;
use tower::Service;
use tower::util::BoxCloneSyncService;

use crate::http::path::plain_user;
use crate::summary::http::POLL;

/// A route that is called without the router.
pub type Shortcut = BoxCloneSyncService<Request, Response, Infallible>;

/// All routes.
#[derive(Clone)]
pub struct Application {
    router: Router,
    poll: Option<Shortcut>,
}

impl std::fmt::Debug for Application {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Application").field("poll", &self.poll.is_some()).finish_non_exhaustive()
    }
}

impl From<Router> for Application {
    /// Of a router alone.
    fn from(router: Router) -> Self {
        Self { router, poll: None }
    }
}

impl Application {
    /// With the handler of `GET /v1/users/{user}/badges`.
    #[must_use]
    pub fn new(router: Router, poll: Shortcut) -> Self {
        Self { router, poll: Some(poll) }
    }

    /// Every route, polls included.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The answer to a request, which has to be awaited.
    pub(crate) fn call(&mut self, request: http::Request<Incoming>) -> Answer {
        // A body that is known to be empty needs no box.
        let request = request.map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(body) });
        match &mut self.poll {
            Some(poll) if is_poll(&request) => Answer::Poll(poll.call(request)),
            _ => Answer::Route(Service::call(&mut self.router, request)),
        }
    }
}

/// Whether it is a poll of a user's summary whose path needs no decoding.
fn is_poll(request: &Request) -> bool {
    let polled = POLL.strip_prefix("/v1/users/{user}/");
    request.method() == Method::GET && plain_user(request.uri()).is_some_and(|(user, rest)| polled == Some(rest) && !user.is_empty())
}

/// An answer in the making.
#[expect(clippy::large_enum_variant, reason = "a box would put on the heap what the router keeps off it")]
pub(crate) enum Answer {
    Route(RouteFuture<Infallible>),
    Poll(Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>),
}

impl Future for Answer {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Route(answer) => Pin::new(answer).poll(cx),
            Self::Poll(answer) => answer.as_mut().poll(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_polls_of_the_summary_take_the_shorter_way() {
        let is = |method: Method, path: &str| is_poll(&Request::builder().method(method).uri(path).body(Body::empty()).unwrap());
        for path in ["/v1/users/42/badges", "/v1/users/me/badges?wait=5", "/v1/users/x/badges"] {
            assert!(is(Method::GET, path), "{path}");
            assert!(!is(Method::HEAD, path) && !is(Method::POST, path) && !is(Method::OPTIONS, path), "{path}");
        }
        for path in [
            "/v1/users//badges",
            "/v1/users/42/badges/",
            "/v1/users/%34/badges",
            "/v1/users/42/badges/explain",
            "/v1/users/badges",
            "/badges",
        ] {
            assert!(!is(Method::GET, path), "{path}");
        }
    }
}
