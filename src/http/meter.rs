//! Counters and times of requests, with handles kept by route, so that a request formats and
//! allocates no label.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::http::{Method, StatusCode};
use metrics::{Counter, Histogram};

use crate::base::id_hash::IdHash;

/// Requests answered, by method, route and status.
pub(crate) const REQUESTS: &str = "headmark_http_requests_total";
/// Time to answer, by route, of requests that were not held.
pub(crate) const SECONDS: &str = "headmark_http_request_seconds";
/// Time to answer, by route, of those that were.
pub(crate) const HELD_SECONDS: &str = "headmark_http_held_seconds";

/// The methods that have a label of their own; a caller may make up others, and those share one.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "other"];
/// The statuses that are sent; others share the last place. 499 is a caller who hung up.
const STATUSES: [&str; 29] = [
    "200", "201", "202", "204", "206", "301", "302", "303", "304", "307", "308", "400", "401", "403", "404", "405", "408", "409", "410",
    "413", "415", "422", "429", "499", "500", "501", "503", "504", "other",
];

/// The handles of one route.
struct RouteMeter {
    seconds: Histogram,
    /// Made when it is first needed: few routes hold requests.
    held_seconds: OnceLock<Histogram>,
    /// By method and status; a handle is made when it is first needed, so that no series stands at
    /// 0 for ever.
    requests: [[OnceLock<Counter>; STATUSES.len()]; METHODS.len()],
}

/// The handles of all routes that were asked for; as many as the router has, and one more.
pub(super) struct Meter(ArcSwap<HashMap<Arc<str>, Arc<RouteMeter>, IdHash>>);

impl Meter {
    pub(super) fn new() -> Self {
        Self(ArcSwap::default())
    }

    pub(super) fn record(&self, route: &str, method: &Method, status: StatusCode, elapsed: Duration, held: bool) {
        if let Some(meter) = self.0.load().get(route) {
            return meter.record(route, method, status, elapsed, held);
        }
        let name: Arc<str> = Arc::from(route);
        let fresh = Arc::new(RouteMeter {
            seconds: metrics::histogram!(SECONDS, "route" => Arc::clone(&name)),
            held_seconds: OnceLock::new(),
            requests: std::array::from_fn(|_| std::array::from_fn(|_| OnceLock::new())),
        });
        fresh.record(route, method, status, elapsed, held);
        self.0.rcu(|routes| {
            let mut routes = HashMap::clone(routes);
            routes.entry(Arc::clone(&name)).or_insert_with(|| Arc::clone(&fresh));
            routes
        });
    }
}

impl RouteMeter {
    fn record(&self, route: &str, method: &Method, status: StatusCode, elapsed: Duration, held: bool) {
        let place = |labels: &[&str], wanted: &str| labels.iter().position(|label| *label == wanted).unwrap_or(labels.len() - 1);
        let (method_at, status_at) = (place(&METHODS, method.as_str()), place(&STATUSES, status.as_str()));
        let (Some(method), Some(status)) = (METHODS.get(method_at), STATUSES.get(status_at)) else { return };
        if let Some(counter) = self.requests.get(method_at).and_then(|by_status| by_status.get(status_at)) {
            counter
                .get_or_init(|| metrics::counter!(REQUESTS, "method" => *method, "route" => route.to_owned(), "status" => *status))
                .increment(1);
        }
        let seconds = match held {
            true => self.held_seconds.get_or_init(|| metrics::histogram!(HELD_SECONDS, "route" => route.to_owned())),
            false => &self.seconds,
        };
        seconds.record(elapsed.as_secs_f64());
    }
}
