//! From a listening socket to a drained stop: connections, their bounds, and the way they end.
//!
//! What hyper refuses by itself, before any route sees it, has no body and no problem in it: 400
//! (not HTTP), 414 (a request line that is too long), 431 (too many or too large headers). A header
//! that does not arrive in time has no answer at all.
//!
//! A stop has three steps. The port stays open while every answer announces the close of its
//! connection, so that clients go elsewhere without losing a request. Then the port closes, idle
//! connections with it, and requests in flight end. What is left is cut off.
//!
//! A graceful end of HTTP/2 waits for the peer to answer a PING, so a peer that has vanished holds
//! the drain to its timeout.

mod config;
mod connection;
mod ending;
pub(crate) mod files;
mod socket;
mod threads;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::coop::unconstrained;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::application::Application;
use crate::http::limit::Peer;
pub use config::HttpConfig;
pub(super) use config::address;
pub(crate) use connection::CONNECTIONS;
use connection::Server;
use ending::Ending;
pub use threads::{Runtimes, Threads};

/// The pause after a connection could not be accepted for a reason of ours, such as too many open
/// files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a server is told to stop.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Stop without losing a request: announce the close of each connection first.
    pub drain: CancellationToken,
    /// Close the port now. Requests in flight still end.
    pub close: CancellationToken,
}

/// Serves until `stop`, and then until requests in flight have ended; after the drain timeout it
/// cuts off the rest.
///
/// # Errors
/// None at present: a connection that cannot be accepted is logged and the next one tried.
pub async fn serve(
    listener: TcpListener,
    app: impl Into<Application>,
    config: HttpConfig,
    stop: Stop,
    threads: Arc<Threads>,
) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(config.max_connections));
    let ending = Arc::new(Ending::default());
    let server = Arc::new(Server::new(app.into(), Arc::clone(&ending), &config, threads.main().clone()));
    // Closed from the start, so that waiting for it ends as soon as no connection is left; it takes
    // new ones all the same.
    let connections = TaskTracker::new();
    connections.close();
    let begin = |(stream, peer, permit): Accepted| {
        if let Err(error) = stream.set_nodelay(config.tcp_nodelay) {
            // The peer has gone already; the connection will find out by itself.
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let server = Arc::clone(&server);
        threads.serve(&connections, stream, move |stream| connection::run(stream, Peer(peer.ip()), server, permit));
    };
    let mut closing = std::pin::pin!(until_all_are_told(&config, &stop, &ending, &connections));
    let drain_until = loop {
        tokio::select! {
            biased;
            until = &mut closing => break until,
            accepted = accept(&listener, &permits) => begin(accepted),
        }
    };
    // Those that the system has accepted already would see a reset. Unconstrained: after some dozens the
    // runtime would say of the next one that it is not there yet.
    while let Some(accepted) = unconstrained(accept(&listener, &permits)).now_or_never() {
        begin(accepted);
    }
    drop(listener);
    ending.drain();
    let left = drain_until.saturating_duration_since(Instant::now());
    if tokio::time::timeout(left, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "the drain timeout is over; cutting off what is left");
        ending.cut.cancel();
        connections.wait().await;
    }
    Ok(())
}

/// Resolves when the port may close, with the time at which the drain is over: once the drain delay
/// is over, and every connection has been told or has been idle for as long as it may.
async fn until_all_are_told(config: &HttpConfig, stop: &Stop, ending: &Ending, connections: &TaskTracker) -> Instant {
    let drain_timeout = Duration::from_millis(config.drain_timeout_ms);
    let announced = async {
        stop.drain.cancelled().await;
        ending.announce();
        tokio::time::sleep(Duration::from_millis(config.drain_delay_ms)).await;
    };
    tokio::select! {
        () = announced => {}
        () = stop.close.cancelled() => return Instant::now() + drain_timeout,
    }
    // The drain has begun: to close the port now does not make it longer.
    let until = Instant::now() + drain_timeout;
    let idle = Duration::from_millis(config.drain_idle_ms).min(drain_timeout);
    tokio::select! {
        () = connections.wait() => {}
        () = tokio::time::sleep(idle) => {}
        () = stop.close.cancelled() => {}
    }
    until
}

/// A connection, where it comes from, and its place among the open ones.
type Accepted = (TcpStream, SocketAddr, OwnedSemaphorePermit);

/// Waits for room, then for a connection.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> Accepted {
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

#[cfg(test)]
mod tests;
