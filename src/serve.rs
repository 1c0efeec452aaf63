//! From a listening socket to a drained stop: connections, their bounds, and the way they end.
//!
//! What hyper refuses by itself, before any route sees it, has no body and no problem in it: 400 (not HTTP), 414 (a request line
//! that is too long), 431 (too many or too large headers). A header that does not arrive in time has no answer at all.
//!
//! A graceful end of HTTP/2 waits for the peer to answer a PING, so a peer that has vanished holds the drain to its timeout.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::rt::{Sleep as HyperSleep, Timer};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::http::context::BodyRules;
use crate::http::cors::Origins;
use crate::http::edge::EdgeConfig;
use crate::http::limit::{Limiter, Peer, RateConfig};

/// Connections that are open.
pub(crate) const CONNECTIONS: &str = "headmark_http_connections";

/// Requests that one HTTP/2 connection may have open.
const MAX_STREAMS: u32 = 200;
/// How long the headers of a request may be together; beyond it, 431. There may be 100 of them, which is hyper's own bound: to set it, even to the
/// same, makes hyper take room for them from the heap for each request.
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// How often an HTTP/2 peer is asked whether it is still there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How many times within the header timeout a connection is looked at whether it is over: it may come late by as large a part.
const LOOKS: u32 = 8;
/// The pause after a connection could not be accepted for a reason of ours, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// As long as HTTP/2's preface; until so much came it is not known what the client speaks.
const PREFACE_BYTES: usize = 24;

/// The HTTP server's settings.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpConfig {
    /// Address to listen on. Without credentials only a loopback address is taken.
    #[arg(long, env = "HEADMARK_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Milliseconds that a request's headers may take to arrive; a kept-alive HTTP/1 connection may be idle as long, so keep it above the
    /// idle time of a load balancer in front (60 s is common).
    #[arg(long, env = "HEADMARK_HEADER_TIMEOUT_MS", default_value_t = 65_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub header_timeout_ms: u64,
    /// Milliseconds that a request's body may take to arrive.
    #[arg(long, env = "HEADMARK_BODY_TIMEOUT_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub body_timeout_ms: u64,
    /// Bytes that a request's body may have.
    #[arg(long, env = "HEADMARK_BODY_LIMIT_BYTES", default_value_t = 1024 * 1024)]
    pub body_limit_bytes: usize,
    /// Milliseconds that requests in flight are given to end when the server stops; then they are cut off.
    #[arg(long, env = "HEADMARK_DRAIN_TIMEOUT_MS", default_value_t = 25_000)]
    pub drain_timeout_ms: u64,
    /// Milliseconds between `/readyz` turning 503 and the port closing, for a load balancer to see it.
    #[arg(long, env = "HEADMARK_DRAIN_DELAY_MS", default_value_t = 0)]
    pub drain_delay_ms: u64,
    /// Connections that may be open; more wait in the operating system's backlog.
    #[arg(long, env = "HEADMARK_MAX_CONNECTIONS", default_value_t = 20_000, value_parser = at_least_one)]
    pub max_connections: usize,
    /// Requests that may be in flight, waiting polls included; more are answered 503.
    #[arg(long, env = "HEADMARK_MAX_IN_FLIGHT", default_value_t = 10_000, value_parser = at_least_one)]
    pub max_in_flight: usize,
    /// Whether to send small packets at once (TCP_NODELAY); off only to try it.
    #[arg(long, env = "HEADMARK_TCP_NODELAY", default_value_t = true, action = clap::ArgAction::Set)]
    pub tcp_nodelay: bool,
    /// Origins whose web pages may call (CORS), comma-separated, each exactly as browsers send it (https://app.example); `*` for all,
    /// which needs credentials. Without any, no page of another origin may.
    #[arg(long, env = "HEADMARK_CORS_ORIGINS", default_value = "", hide_default_value = true, value_parser = Origins::parse)]
    pub cors_origins: Origins,
    /// Whether answers of 1 KiB and more are compressed (gzip, zstd) for callers who accept it.
    #[arg(long, env = "HEADMARK_COMPRESSION", default_value_t = true, action = clap::ArgAction::Set)]
    pub compression: bool,
    /// How fast each caller may go.
    #[command(flatten)]
    pub rate: RateConfig,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) if number > Semaphore::MAX_PERMITS => Err(format!("must be at most {}", Semaphore::MAX_PERMITS)),
        Ok(number) => Ok(number),
        Err(error) => Err(error.to_string()),
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            header_timeout_ms: 65_000,
            body_timeout_ms: 10_000,
            body_limit_bytes: 1024 * 1024,
            drain_timeout_ms: 25_000,
            drain_delay_ms: 0,
            max_connections: 20_000,
            max_in_flight: 10_000,
            tcp_nodelay: true,
            cors_origins: Origins::None,
            compression: true,
            rate: RateConfig::default(),
        }
    }
}

impl HttpConfig {
    /// The part that the edge enforces. `open` is [`Auth::is_open`](crate::auth::Auth::is_open).
    #[must_use]
    pub fn edge(&self, open: bool) -> EdgeConfig {
        let body_rules = BodyRules { limit_bytes: self.body_limit_bytes, timeout: Duration::from_millis(self.body_timeout_ms) };
        EdgeConfig {
            open,
            max_in_flight: self.max_in_flight,
            body_rules,
            origins: self.cors_origins.clone(),
            compression: self.compression,
            limiter: Limiter::new(&self.rate),
            tracer: None,
        }
    }

    fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }
}

/// The end, as connections see it.
struct Ending {
    /// Set before `drain` is cancelled: a connection looks here on every poll, and registers with the token only once, because
    /// asking the token takes a lock that all connections share.
    draining: AtomicBool,
    drain: CancellationToken,
    /// Cut off whatever is left.
    cut: CancellationToken,
}

/// Serves until `shutdown`, then stops accepting, lets requests in flight end, and after the drain timeout cuts off the rest.
///
/// # Errors
/// None at present: a connection that cannot be accepted is logged and the next one tried.
pub async fn serve(listener: TcpListener, app: Router, config: HttpConfig, shutdown: CancellationToken) -> io::Result<()> {
    let builder = Arc::new(builder(&config));
    let permits = Arc::new(Semaphore::new(config.max_connections));
    let ending = Arc::new(Ending { draining: AtomicBool::new(false), drain: CancellationToken::new(), cut: CancellationToken::new() });
    let connections = TaskTracker::new();
    let limited = config.rate.rate_limit > 0;
    loop {
        let (stream, peer, permit) = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        if let Err(error) = stream.set_nodelay(config.tcp_nodelay) {
            // The peer has gone already; the connection will find out by itself.
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let io = TokioIo::new(FirstBytes::new(stream, config.header_timeout()));
        let app = Named { app: app.clone(), peer: limited.then_some(Peer(peer.ip())) };
        let look_every = (config.header_timeout() / LOOKS).max(Duration::from_millis(1));
        connections.spawn(run(io, look_every, Arc::clone(&builder), app, Arc::clone(&ending), permit));
    }
    drop(listener);
    ending.draining.store(true, Ordering::Release);
    ending.drain.cancel();
    connections.close();
    if tokio::time::timeout(Duration::from_millis(config.drain_timeout_ms), connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "the drain timeout is over; cutting off what is left");
        ending.cut.cancel();
        connections.wait().await;
    }
    Ok(())
}

fn builder(config: &HttpConfig) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let mut http1 = builder.http1();
    http1.timer(SeldomTimer).header_read_timeout(config.header_timeout());
    // Bodies are small: one piece of memory with the headers is cheaper for the system to send than two.
    http1.writev(false).max_buf_size(usize::try_from(MAX_HEADER_BYTES).unwrap_or(usize::MAX));
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_concurrent_streams(MAX_STREAMS).max_header_list_size(MAX_HEADER_BYTES);
    http2.keep_alive_interval(PING_INTERVAL).keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// Waits for room, then for a connection.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    loop {
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            // The semaphore is never closed.
            std::future::pending::<()>().await;
            continue;
        };
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, permit),
            Err(error) if is_peers_fault(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_peers_fault(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused)
}

/// A timer for hyper that looks at the clock when its connection is polled, and wakes nobody: [`run`] polls each connection now and then. hyper sets a
/// timeout anew for every request, and to enter each with the runtime and take it out again was measured at some percent of a poll.
#[derive(Debug, Clone, Copy)]
struct SeldomTimer;

struct SeldomSleep(Instant);

impl Timer for SeldomTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn HyperSleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn HyperSleep>> {
        Box::pin(SeldomSleep(deadline))
    }
}

impl HyperSleep for SeldomSleep {}

impl Future for SeldomSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Serves one connection to its end.
async fn run(
    io: TokioIo<FirstBytes>,
    look_every: Duration,
    builder: Arc<Builder<TokioExecutor>>,
    app: Named,
    ending: Arc<Ending>,
    _permit: OwnedSemaphorePermit,
) {
    let _open = OpenConnection::new();
    let mut connection = pin!(builder.serve_connection(io, TowerToHyperService::new(app)));
    let mut drain = pin!(ending.drain.cancelled());
    let mut cut = pin!(ending.cut.cancelled());
    let mut look = pin!(tokio::time::sleep(look_every));
    let (mut watching, mut draining) = (false, false);
    poll_fn(|cx| {
        // One poll leaves this task's waker behind; a task's waker does not change.
        let first = !std::mem::replace(&mut watching, true);
        if first || look.is_elapsed() {
            while look.as_mut().poll(cx).is_ready() {
                look.as_mut().reset(tokio::time::Instant::now() + look_every);
            }
        }
        if !draining {
            let told = first && drain.as_mut().poll(cx).is_ready();
            if told || ending.draining.load(Ordering::Acquire) {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
        if let Poll::Ready(result) = connection.as_mut().poll(cx) {
            if let Err(error) = result {
                // Clients break off all the time, and what they did is not ours to mend.
                tracing::debug!(%error, "a connection ended early");
            }
            return Poll::Ready(());
        }
        if draining { cut.as_mut().poll(cx) } else { Poll::Pending }
    })
    .await;
}

/// The application, as one connection sees it: where a limit needs it, each request says where it comes from.
#[derive(Clone)]
struct Named {
    app: Router,
    peer: Option<Peer>,
}

impl tower::Service<hyper::Request<Incoming>> for Named {
    type Response = Response;
    type Error = Infallible;
    type Future = <Router as tower::Service<hyper::Request<Incoming>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        tower::Service::<hyper::Request<Incoming>>::poll_ready(&mut self.app, cx)
    }

    fn call(&mut self, mut request: hyper::Request<Incoming>) -> Self::Future {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        self.app.call(request)
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

/// A connection whose first bytes must come in time. The header timeout does not run until it is known which HTTP the client
/// speaks, so a client that sends nothing, or `P` alone, would keep its place for ever.
struct FirstBytes {
    stream: TcpStream,
    waiting: Option<(Pin<Box<Sleep>>, usize)>,
}

impl FirstBytes {
    fn new(stream: TcpStream, timeout: Duration) -> Self {
        Self { stream, waiting: Some((Box::pin(tokio::time::sleep(timeout)), PREFACE_BYTES)) }
    }
}

impl AsyncRead for FirstBytes {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let Some((timer, missing)) = &mut this.waiting else { return read };
        if read.is_pending() {
            return timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        *missing = missing.saturating_sub(buf.filled().len() - before);
        if *missing == 0 {
            this.waiting = None;
        }
        read
    }
}

impl AsyncWrite for FirstBytes {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Resolves when the process is asked to stop, by SIGTERM or SIGINT.
pub async fn shutdown_signal() {
    let interrupted = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "cannot listen for SIGINT; the server stops by SIGTERM only");
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(error) => {
                tracing::error!(%error, "cannot listen for SIGTERM; the server stops by SIGINT only");
                std::future::pending::<()>().await;
            }
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}

#[cfg(test)]
mod tests;
