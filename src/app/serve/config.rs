//! The HTTP server's settings.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::http::context::BodyRules;
use crate::http::cors::Origins;
use crate::http::edge::EdgeConfig;
use crate::http::limit::{Limiter, RateConfig};
use crate::http::places::{PlacesConfig, USUAL_BODY_BYTES, USUAL_PER_USER};
use crate::http::shares::Bounds;

/// How many connections operators may have open at once on their own listener: places that nobody else
/// takes.
const MAX_ADMIN_CONNECTIONS: usize = 1000;

/// The HTTP server's settings.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub struct HttpConfig {
    /// The address to listen on. Without credentials it must be a loopback address.
    #[arg(long, env = "HEADMARK_LISTEN", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,
    /// A second address to listen on, for operators: `/metrics`, `/readyz` and `/console` are then served
    /// there only. All other routes are served on both, as the console needs them. Default: none.
    #[arg(long, env = "HEADMARK_ADMIN_LISTEN", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,
    /// The time limit for receiving the headers of a request, in milliseconds. It is also the idle
    /// time limit of a connection: keep it above that of your load balancer (60 s is common).
    #[arg(long, env = "HEADMARK_HEADER_TIMEOUT_MS", default_value_t = 65_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub header_timeout_ms: u64,
    /// The time limit for receiving the body of a request, in milliseconds.
    #[arg(long, env = "HEADMARK_BODY_TIMEOUT_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub body_timeout_ms: u64,
    /// The maximum size of a request body, in bytes.
    #[arg(long, env = "HEADMARK_BODY_LIMIT_BYTES", default_value_t = 1024 * 1024)]
    pub body_limit_bytes: usize,
    /// The maximum size of the bodies of all requests in flight together, in bytes. Further requests
    /// with a body get 503. A service may hold nine tenths of it, a user a sixteenth, and either one the
    /// longest body; beyond that the caller gets 429. At least HEADMARK_BODY_LIMIT_BYTES.
    #[arg(long, env = "HEADMARK_MAX_BODY_BYTES_IN_FLIGHT", default_value_t = USUAL_BODY_BYTES)]
    pub max_body_bytes_in_flight: usize,
    /// The time limit for a client to receive a response, or each 64 KiB of a longer one (16 KiB over
    /// HTTP/2), in milliseconds. After that the server closes the connection, or resets the stream of
    /// HTTP/2.
    #[arg(long, env = "HEADMARK_SEND_TIMEOUT_MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub send_timeout_ms: u64,
    /// The time limit for requests in flight to finish when the server stops, in milliseconds.
    /// After that the server closes their connections.
    #[arg(long, env = "HEADMARK_DRAIN_TIMEOUT_MS", default_value_t = 25_000)]
    pub drain_timeout_ms: u64,
    /// The time for which the server still accepts requests after `/readyz` returns 503, in
    /// milliseconds, so that a load balancer notices. Responses announce the close of the
    /// connection.
    #[arg(long, env = "HEADMARK_DRAIN_DELAY_MS", default_value_t = 0)]
    pub drain_delay_ms: u64,
    /// The time for which the port then stays open for idle keep-alive connections, in
    /// milliseconds. Their next response has `Connection: close`. It ends early without open
    /// connections, and is part of HEADMARK_DRAIN_TIMEOUT_MS.
    #[arg(long, env = "HEADMARK_DRAIN_IDLE_MS", default_value_t = 5_000)]
    pub drain_idle_ms: u64,
    /// The maximum number of open connections. Further connections wait in the backlog of the
    /// operating system.
    #[arg(long, env = "HEADMARK_MAX_CONNECTIONS", default_value_t = 20_000, value_parser = at_least_one)]
    pub max_connections: usize,
    /// The maximum number of concurrent requests on an HTTP/2 connection.
    #[arg(long, env = "HEADMARK_MAX_STREAMS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_streams: u32,
    /// The maximum number of requests in flight, including waiting polls. Further requests get 503.
    /// A request is in flight until its response is sent.
    #[arg(long, env = "HEADMARK_MAX_IN_FLIGHT", default_value_t = 10_000, value_parser = at_least_one)]
    pub max_in_flight: usize,
    /// The maximum number of requests in flight for each service key. Further requests get 429.
    /// Must be below HEADMARK_MAX_IN_FLIGHT; default: nine tenths of it.
    #[arg(long, env = "HEADMARK_MAX_IN_FLIGHT_PER_SERVICE", value_parser = at_least_one)]
    pub max_in_flight_per_service: Option<usize>,
    /// The maximum number of requests in flight for each end user. Further requests get 429.
    /// Default: 100, or nine tenths of HEADMARK_MAX_IN_FLIGHT if that is less.
    #[arg(long, env = "HEADMARK_MAX_IN_FLIGHT_PER_USER", value_parser = at_least_one)]
    pub max_in_flight_per_user: Option<usize>,
    /// Send small packets immediately (TCP_NODELAY). Turn it off only for experiments.
    #[arg(long, env = "HEADMARK_TCP_NODELAY", default_value_t = true, action = clap::ArgAction::Set)]
    pub tcp_nodelay: bool,
    /// Origins whose web pages can call the server (CORS), comma-separated, each exactly as
    /// browsers send it (https://app.example). `*` allows all origins and requires credentials.
    /// Default: no origins.
    #[arg(long, env = "HEADMARK_CORS_ORIGINS", default_value = "", hide_default_value = true, value_parser = Origins::parse)]
    pub cors_origins: Origins,
    /// Compress responses of 1 KiB and more (gzip, zstd) for clients that accept it.
    #[arg(long, env = "HEADMARK_COMPRESSION", default_value_t = true, action = clap::ArgAction::Set)]
    pub compression: bool,
    /// How fast each caller may go.
    #[command(flatten)]
    pub rate: RateConfig,
}

/// An address to listen on.
///
/// # Errors
/// What it is to look like.
pub(in crate::app) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it needs an IP address and a port, as in 127.0.0.1:8080 or 0.0.0.0:8080".to_owned())
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
            admin_listen: None,
            header_timeout_ms: 65_000,
            body_timeout_ms: 10_000,
            body_limit_bytes: 1024 * 1024,
            max_body_bytes_in_flight: USUAL_BODY_BYTES,
            send_timeout_ms: 30_000,
            drain_timeout_ms: 25_000,
            drain_delay_ms: 0,
            drain_idle_ms: 5_000,
            max_connections: 20_000,
            max_streams: 100,
            max_in_flight: 10_000,
            max_in_flight_per_service: None,
            max_in_flight_per_user: None,
            tcp_nodelay: true,
            cors_origins: Origins::None,
            compression: true,
            rate: RateConfig::default(),
        }
    }
}

impl HttpConfig {
    /// How many connections operators may have open at once; 0 where they have no listener.
    #[must_use]
    pub fn max_admin_connections(&self) -> usize {
        self.admin_listen.map_or(0, |_| self.max_connections.min(MAX_ADMIN_CONNECTIONS))
    }

    /// How many connections may be open at once on all listeners.
    #[must_use]
    pub fn all_connections(&self) -> usize {
        self.max_connections.saturating_add(self.max_admin_connections())
    }

    /// The part that the edge enforces. `open` is
    /// [`Auth::is_open`](crate::http::auth::Auth::is_open).
    #[must_use]
    pub fn edge(&self, open: bool) -> EdgeConfig {
        let body_rules = BodyRules { limit_bytes: self.body_limit_bytes, timeout: Duration::from_millis(self.body_timeout_ms) };
        let set = (self.max_in_flight_per_service, self.max_in_flight_per_user);
        let per_caller = Bounds::of(self.max_in_flight, open, set, USUAL_PER_USER);
        let body_per_caller = PlacesConfig::body_bounds(self.max_body_bytes_in_flight, open, self.body_limit_bytes);
        let places = PlacesConfig { total: self.max_in_flight, per_caller, body_bytes: self.max_body_bytes_in_flight, body_per_caller };
        EdgeConfig {
            open,
            places,
            body_rules,
            origins: self.cors_origins.clone(),
            compression: self.compression,
            limiter: Limiter::new(&self.rate),
            tracer: None,
        }
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        if self.max_body_bytes_in_flight < self.body_limit_bytes {
            return Err(
                "HEADMARK_MAX_BODY_BYTES_IN_FLIGHT must be at least HEADMARK_BODY_LIMIT_BYTES, or no request could have the longest body."
                    .to_owned(),
            );
        }
        // Port 0 is another one each time.
        if self.admin_listen == Some(self.listen) && self.listen.port() != 0 {
            return Err("HEADMARK_ADMIN_LISTEN and HEADMARK_LISTEN are the same address: give operators another port.".to_owned());
        }
        let set = [
            ("HEADMARK_MAX_IN_FLIGHT_PER_SERVICE", self.max_in_flight_per_service),
            ("HEADMARK_MAX_IN_FLIGHT_PER_USER", self.max_in_flight_per_user),
        ];
        Bounds::check(("HEADMARK_MAX_IN_FLIGHT", self.max_in_flight), set)
    }

    pub(super) fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }

    pub(super) fn send_timeout(&self) -> Duration {
        Duration::from_millis(self.send_timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_have_connections_of_their_own() {
        let connections = |max_connections, admin_listen| {
            let config = HttpConfig { max_connections, admin_listen, ..HttpConfig::default() };
            (config.max_admin_connections(), config.all_connections())
        };
        let admin = Some(SocketAddr::from(([127, 0, 0, 1], 8081)));
        assert_eq!(connections(20_000, None), (0, 20_000));
        assert_eq!(connections(20_000, admin), (1000, 21_000));
        assert_eq!(connections(10, admin), (10, 20));
    }
}
