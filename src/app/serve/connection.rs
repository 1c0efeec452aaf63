//! One connection, from its first byte to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as _, Incoming};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::AbortOnDropHandle;

use super::config::HttpConfig;
use super::ending::Ending;
use super::socket::Socket;

use crate::app::application::{self, Application};
use crate::http::body;
use crate::http::held;
use crate::http::limit::Peer;
use crate::http::streams;
use crate::http::watch::{Link, Serving, Watch};

/// Connections that are open.
pub(crate) const CONNECTIONS: &str = "headmark_http_connections";

/// How long the headers of a request may be together; beyond it, 431. There may be 100 of them,
/// which is hyper's own bound: to set it, even to the same, makes hyper take room for them from the
/// heap for each request.
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// How much of an answer HTTP/2 may queue for each request beyond what its caller's window allows.
const MAX_SEND_BUFFER_BYTES: usize = 64 * 1024;
/// How much of its body each HTTP/2 request may send before it is read, and all requests of a
/// connection together.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// A request with a longer body, or with one of unknown length, does not run on the thread of its
/// connection: to parse it and to answer it could hold up the others for milliseconds.
const MAX_BODY_BYTES_ON_THREAD: u64 = 4096;
/// How much a closed connection takes of what its client still sends, where the bodies that are
/// discarded are shorter.
const MIN_LINGER_BYTES: usize = 64 * 1024;
/// How often an HTTP/2 peer is asked whether it is still there, and how long it may take to say so,
/// or to take leave.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How many times within the shortest of its timeouts a connection is looked at whether it is over:
/// it may come late by as large a part.
const LOOKS: u32 = 8;

/// What all connections of a server share.
pub(super) struct Server {
    pub(super) app: Application,
    pub(super) ending: Arc<Ending>,
    builder: Builder<Streams>,
    header_timeout: Duration,
    send_timeout: Duration,
    linger_bytes: usize,
    limited: bool,
    main: Handle,
}

/// Where the requests of an HTTP/2 connection run: one connection may be all that a proxy opens, and
/// a single thread is not enough for it.
#[derive(Debug, Clone)]
struct Streams(Handle);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        self.0.spawn(streams::task(stream));
    }
}

impl Server {
    pub(super) fn new(app: Application, ending: Arc<Ending>, config: &HttpConfig, main: Handle) -> Self {
        let mut builder = Builder::new(Streams(main.clone()));
        let mut http1 = builder.http1();
        // A connection is looked at for that now and then.
        http1.header_read_timeout(None);
        // Bodies are small: one piece of memory with the headers is cheaper for the system to send
        // than two.
        http1.writev(false).max_buf_size(usize::try_from(MAX_HEADER_BYTES).unwrap_or(usize::MAX));
        let mut http2 = builder.http2();
        http2.timer(TokioTimer::new()).max_concurrent_streams(config.max_streams).max_header_list_size(MAX_HEADER_BYTES);
        http2.keep_alive_interval(PING_INTERVAL).keep_alive_timeout(PING_TIMEOUT).max_send_buf_size(MAX_SEND_BUFFER_BYTES);
        http2.initial_stream_window_size(STREAM_WINDOW_BYTES).initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let (header_timeout, send_timeout) = (config.header_timeout(), config.send_timeout());
        let linger_bytes = body::discarded_bytes(config.body_limit_bytes).max(MIN_LINGER_BYTES);
        let limited = config.rate.rate_limit > 0;
        Self { app, ending, builder, header_timeout, send_timeout, linger_bytes, limited, main }
    }

    fn look_every(&self) -> Duration {
        (self.header_timeout.min(self.send_timeout) / LOOKS).max(Duration::from_millis(1))
    }

    /// Whether an HTTP/2 connection has been without a request for too long.
    fn is_quiet(&self, watch: &Watch) -> bool {
        watch.quiet_for().is_some_and(|quiet| quiet > self.header_timeout)
    }

    /// Whether there is nothing to wait for: the caller does not take its answer, or does not take
    /// leave.
    fn is_over(&self, watch: &Watch) -> bool {
        let with_leave = |timeout: Duration| timeout + PING_TIMEOUT.min(timeout);
        watch.blocked_for() > self.send_timeout
            || watch.receiving_for() > with_leave(self.send_timeout)
            || watch.quiet_for().is_some_and(|quiet| quiet > with_leave(self.header_timeout))
    }
}

/// Serves one connection to its end.
pub(super) async fn run(stream: TcpStream, peer: Peer, server: Arc<Server>, _permit: OwnedSemaphorePermit) {
    let _open = OpenConnection::new();
    let (ending, watch, look_every) = (&server.ending, Watch::new(), server.look_every());
    let io = TokioIo::new(Socket::new(stream, server.header_timeout, server.linger_bytes, Arc::clone(&watch)));
    let (app, main) = (server.app.clone(), server.main.clone());
    let app = Named { app, main, peer: server.limited.then_some(peer), watch: Arc::clone(&watch) };
    let mut connection = pin!(server.builder.serve_connection(io, TowerToHyperService::new(app)));
    let mut announce = pin!(ending.announce.cancelled());
    let mut drain = pin!(ending.drain.cancelled());
    let mut cut = pin!(ending.cut.cancelled());
    let mut look = pin!(tokio::time::sleep(look_every));
    let (mut watching, mut closing) = (false, false);
    let mut head = AwaitedHead::new(server.header_timeout, look_every);
    poll_fn(|cx| {
        // One poll leaves this task's waker behind; a task's waker does not change.
        let first = !std::mem::replace(&mut watching, true);
        let mut leave = false;
        if first {
            let _ = (announce.as_mut().poll(cx), drain.as_mut().poll(cx));
        }
        if first || look.is_elapsed() {
            while look.as_mut().poll(cx).is_ready() {
                look.as_mut().reset(tokio::time::Instant::now() + look_every);
            }
            if server.is_over(&watch) || head.is_late(watch.awaited()) {
                tracing::debug!("closing a connection whose caller neither sends nor receives");
                return Poll::Ready(());
            }
            // One that keeps an answer which could not be reset takes leave, and so does one without requests.
            leave = watch.give_up(server.send_timeout) | server.is_quiet(&watch);
        }
        loop {
            if ending.is_announcing() {
                watch.announce_close();
            }
            // HTTP/2 can say goodbye at any time. HTTP/1 says it with an answer. What has said nothing yet
            // would be cut off with a request that is on its way.
            let goodbye = |leave| ending.is_draining() || (watch.is_http2() && (leave || ending.is_announcing()));
            if !watch.has_begun() {
                if ending.is_draining() {
                    watch.end_unbegun();
                }
            } else if goodbye(leave) && !std::mem::replace(&mut closing, true) {
                connection.as_mut().graceful_shutdown();
            }
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                if let Err(error) = result {
                    // Clients break off all the time, and what they did is not ours to mend.
                    tracing::debug!(%error, "a connection ended early");
                }
                return Poll::Ready(());
            }
            // It may have begun just now, or turned out to be HTTP/2.
            if closing || !watch.has_begun() || !goodbye(false) {
                break;
            }
        }
        if closing || ending.is_draining() { cut.as_mut().poll(cx) } else { Poll::Pending }
    })
    .await;
}

/// How long a connection has waited for the headers of its next request, in looks.
struct AwaitedHead {
    /// Which request that is, and at how many looks in a row it was awaited.
    request: Option<u64>,
    looks: u32,
    most: u32,
}

impl AwaitedHead {
    /// Headers are late after this time, or up to a look later.
    fn new(timeout: Duration, look_every: Duration) -> Self {
        let looks = timeout.as_nanos().div_ceil(look_every.as_nanos().max(1));
        // The wait may have begun just before the first of them.
        Self { request: None, looks: 0, most: u32::try_from(looks).unwrap_or(u32::MAX).saturating_add(1) }
    }

    /// One more look, at which this request is awaited. Whether its headers are late.
    fn is_late(&mut self, request: Option<u64>) -> bool {
        let same = request.is_some() && request == self.request;
        self.looks = if same { self.looks.saturating_add(1) } else { u32::from(request.is_some()) };
        self.request = request;
        self.looks >= self.most
    }
}

/// The application, as one connection sees it: where it is needed, each request says where it comes
/// from.
#[derive(Clone)]
struct Named {
    app: Application,
    main: Handle,
    peer: Option<Peer>,
    watch: Arc<Watch>,
}

impl tower::Service<hyper::Request<Incoming>> for Named {
    type Response = Response;
    type Error = Infallible;
    type Future = Announcing;

    /// Always: what bounds requests is the edge.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: hyper::Request<Incoming>) -> Self::Future {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        let streams = request.version() == Version::HTTP_2;
        if streams {
            request.extensions_mut().insert(Link(Arc::clone(&self.watch)));
        }
        let serving = (!streams).then(|| self.watch.serve());
        let is_short = request.body().size_hint().upper().is_some_and(|bytes| bytes <= MAX_BODY_BYTES_ON_THREAD);
        let answer = self.app.call(request);
        let answer =
            if streams || is_short { Answer::Here(answer) } else { Answer::Elsewhere(AbortOnDropHandle::new(self.main.spawn(answer))) };
        Announcing { answer, serving }
    }
}

type Answered = Result<Response, Infallible>;

/// Where an answer is made.
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one, which a box would put on the heap")]
enum Answer {
    Here(application::Answer),
    /// In a task of the main runtime, which ends with this.
    Elsewhere(AbortOnDropHandle<Answered>),
}

impl Answer {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answered> {
        match self {
            Self::Here(answer) => Pin::new(answer).poll(cx),
            Self::Elsewhere(answer) => match ready!(Pin::new(answer).poll(cx)) {
                Ok(answered) => Poll::Ready(answered),
                // Its connection ends with it, as it does with one that panics here.
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                // The main runtime ends, and the process with it.
                Err(_) => Poll::Ready(Ok(StatusCode::SERVICE_UNAVAILABLE.into_response())),
            },
        }
    }
}

/// An answer, which over HTTP/1 says so when it is the last of its connection.
struct Announcing {
    answer: Answer,
    /// Over HTTP/1.
    serving: Option<Serving>,
}

impl Future for Announcing {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answered> {
        let Ok(mut response) = ready!(self.answer.poll(cx));
        let Some(serving) = self.serving.take() else { return Poll::Ready(Ok(response)) };
        if serving.announces_close() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // One that is streamed may pause.
        let streamed = response.body().size_hint().exact().is_none();
        Poll::Ready(Ok(if streamed { response.map(|body| held::hold(body, serving, None)) } else { response }))
    }
}

/// Counts a connection while it lives.
struct OpenConnection;

impl OpenConnection {
    fn new() -> Self {
        metrics::gauge!(CONNECTIONS).increment(1.0);
        Self
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::gauge!(CONNECTIONS).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_late_after_their_time_and_at_most_a_look_later() {
        let looks_until_late = |awaited: &dyn Fn(u32) -> Option<u64>| {
            let mut head = AwaitedHead::new(Duration::from_millis(800), Duration::from_millis(100));
            (1..100).find(|look| head.is_late(awaited(*look)))
        };
        assert_eq!(looks_until_late(&|_| Some(0)), Some(9), "800 ms lie between nine looks");
        assert_eq!(looks_until_late(&|look| Some(u64::from(look > 5))), Some(5 + 9), "a request came");
        assert_eq!(looks_until_late(&|look| (look != 8).then_some(7)), Some(8 + 9), "one was at work");
        assert_eq!(looks_until_late(&|look| Some(u64::from(look / 8))), None, "requests come in time");
        assert_eq!(looks_until_late(&|_| None), None, "nothing is awaited");
    }
}
