//! The places of requests in flight. A request holds one until its answer has been handed to the
//! socket, so the bound holds for bodies too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::HttpBody as _;
use axum::response::Response;

use super::held;
use super::shares::{Bounds, Share, Shares};
use super::watch::HttpStream;
use crate::base::error::{Code, Problem};
use crate::http::caller::Caller;

/// Requests refused because too many were in flight.
pub(crate) const REFUSED: &str = "headmark_http_overloaded_total";

/// Up to this length an answer to a caller without credentials holds no place: it costs no more
/// than a refusal.
const SHORT_BYTES: u64 = 1024;

/// From this length on an answer over HTTP/1 keeps its place.
const LONG_BYTES: u64 = 16 * 1024 + 1;

/// Long answers to callers without credentials may hold one place in so many: the documents must
/// not keep callers out who have some.
const ANONYMOUS_PART: usize = 2;

/// Requests of one end user that may be in flight, where that is not set.
pub(crate) const USUAL_PER_USER: usize = 100;

/// How many long answers of probes (`/metrics`) may be on their way: they are answered whatever
/// else is in flight, so they have places of their own.
const PROBE_PLACES: usize = 64;

/// The bounds on requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacesConfig {
    /// All of them, waiting polls included.
    pub total: usize,
    /// Those of one caller.
    pub per_caller: Bounds,
}

impl Default for PlacesConfig {
    fn default() -> Self {
        Self { total: 10_000, per_caller: Bounds::of(10_000, false, (None, None), USUAL_PER_USER) }
    }
}

/// The places of one server.
#[derive(Debug)]
pub(crate) struct Places {
    total: usize,
    taken: AtomicUsize,
    /// Those that answers to callers without credentials hold, and those of probes.
    anonymous: AtomicUsize,
    probes: AtomicUsize,
    shares: Arc<Shares>,
}

impl Places {
    pub(super) fn new(config: PlacesConfig) -> Arc<Self> {
        let detail = "This caller has reached its limit of concurrent requests. Try again when one completes.";
        let shares = Shares::new("in_flight", detail, config.per_caller);
        let free = || AtomicUsize::new(0);
        Arc::new(Self { total: config.total, taken: free(), anonymous: free(), probes: free(), shares })
    }

    /// Counts a request in, also one that is going to be refused, which is over at once.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        Place { places: Arc::clone(self), within: before < self.total, share: None, pool: None }
    }

    /// How many of a pool are held, and how many may be.
    fn pool(&self, pool: Pool) -> (&AtomicUsize, usize) {
        match pool {
            Pool::Anonymous => (&self.anonymous, self.total.div_ceil(ANONYMOUS_PART)),
            Pool::Probes => (&self.probes, PROBE_PLACES),
        }
    }
}

/// What a long answer to a caller without credentials counts against.
#[derive(Debug, Clone, Copy)]
enum Pool {
    Anonymous,
    Probes,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    within: bool,
    /// That of its caller, once it is known.
    share: Option<Share>,
    pool: Option<Pool>,
}

impl Place {
    /// Whether it is within the total.
    pub(super) fn is_within(&self) -> bool {
        self.within
    }

    /// Counts it against the bound of its caller too.
    ///
    /// # Errors
    /// A 429 problem.
    pub(super) fn belongs_to(&mut self, caller: &Caller) -> Result<(), Problem> {
        self.share = Some(self.places.shares.take(caller)?);
        Ok(())
    }

    /// Counts it against a pool too.
    fn hold_of(&mut self, pool: Pool) -> Result<(), Problem> {
        let (held, most) = self.places.pool(pool);
        let before = held.fetch_add(1, Ordering::Relaxed);
        // Dropping the place gives back what was taken too much.
        self.pool = Some(pool);
        if matches!(pool, Pool::Probes) {
            self.places.taken.fetch_sub(1, Ordering::Relaxed);
        }
        if before < most { Ok(()) } else { Err(overloaded()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let pool = self.pool.map(|pool| self.places.pool(pool).0);
        // Those of probes are beside the others.
        if !matches!(self.pool, Some(Pool::Probes)) {
            self.places.taken.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(held) = pool {
            held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Refuses a request for which there is no place.
pub(super) fn overloaded() -> Problem {
    metrics::counter!(REFUSED).increment(1);
    Problem::new(Code::Overloaded, "Too many requests are in flight. Try again shortly.")
}

/// The place that this answer keeps until it is sent, if it keeps one. `streams` says whether the
/// connection is HTTP/2, `probe` whether it is a probe's.
///
/// HTTP/1 copies a short answer into its connection's buffer at once, and a connection has one
/// answer at a time.
///
/// # Errors
/// A 503 problem, to be sent instead of a long answer to a caller without credentials.
pub(super) fn keep(place: Option<Place>, streams: bool, probe: bool, response: &Response) -> Result<Option<Place>, Problem> {
    let length = response.body().size_hint().lower();
    let shortest = if streams { 1 } else { LONG_BYTES };
    let Some(mut place) = place.filter(|_| length >= shortest) else { return Ok(None) };
    if place.share.is_none() {
        if length <= SHORT_BYTES {
            return Ok(None);
        }
        place.hold_of(if probe { Pool::Probes } else { Pool::Anonymous })?;
    }
    Ok(Some(place))
}

/// The answer, whose body keeps the place, and the stream of an HTTP/2 request, until it is sent.
pub(super) fn hold(place: Option<Place>, stream: Option<HttpStream>, response: Response) -> Response {
    if response.body().is_end_stream() || (place.is_none() && stream.is_none()) {
        return response;
    }
    let stream = stream.map(|mut stream| {
        stream.answered();
        stream
    });
    response.map(|body| held::hold(body, (place, stream)))
}
