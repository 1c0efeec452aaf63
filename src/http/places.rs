//! The places of requests in flight. A request holds one until its answer has been handed to the
//! socket, so the bound holds for bodies too.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::HttpBody as _;
use axum::response::Response;

use super::held;
use super::shares::{Bounds, Share, Shares};
use super::streams::HttpStream;
use crate::base::error::{Code, Problem};
use crate::http::caller::Caller;
use crate::http::{METRICS, PROBES};

/// Requests refused because too many were in flight, or too much of their bodies.
pub(crate) const REFUSED: &str = "headmark_http_overloaded_total";

/// Of these, the ones refused because of their bodies.
pub(crate) const BODIES_REFUSED: &str = "headmark_http_bodies_refused_total";

/// Up to this length an answer to a caller without credentials holds no place: it costs no more
/// than a refusal.
const SHORT_BYTES: u64 = 1024;

/// From this length on an answer over HTTP/1 keeps its place, and one over HTTP/2 has the time for
/// each of its pieces.
const LONG_BYTES: u64 = 16 * 1024 + 1;

/// Long answers to callers without credentials may hold one place in so many: the documents must
/// not keep callers out who have some.
const ANONYMOUS_PART: usize = 2;

/// Requests of one end user that may be in flight, where that is not set.
pub(crate) const USUAL_PER_USER: usize = 100;

/// Which part of the bytes of bodies one end user may hold.
const USERS_PART: usize = 16;

/// Bytes of bodies that may be in memory, where that is not set.
pub(crate) const USUAL_BODY_BYTES: usize = 256 * 1024 * 1024;

/// How many requests for `/metrics` may be in flight. Probes are answered whatever else is, so they have
/// places of their own; the answers of the others are short.
const PROBE_PLACES: usize = 64;

/// The bounds on requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacesConfig {
    /// All of them, waiting polls included.
    pub total: usize,
    /// Those of one caller.
    pub per_caller: Bounds,
    /// The bytes of their bodies, all together.
    pub body_bytes: usize,
    /// Those of one caller.
    pub body_per_caller: Bounds,
}

impl PlacesConfig {
    /// The part of so many bytes of bodies that each caller may hold: nine tenths for a service, a sixteenth for a user, and
    /// `longest`, the longest body, for either. An `open` server has one caller.
    #[must_use]
    pub fn body_bounds(body_bytes: usize, open: bool, longest: usize) -> Bounds {
        let Bounds { service, user } = Bounds::of(body_bytes, open, (None, None), body_bytes / USERS_PART);
        Bounds { service: service.max(longest), user: user.max(longest) }
    }
}

impl Default for PlacesConfig {
    fn default() -> Self {
        Self {
            total: 10_000,
            per_caller: Bounds::of(10_000, false, (None, None), USUAL_PER_USER),
            body_bytes: USUAL_BODY_BYTES,
            body_per_caller: Self::body_bounds(USUAL_BODY_BYTES, false, 1024 * 1024),
        }
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
    body_bytes: usize,
    /// The bytes of bodies that are in memory.
    bodies: AtomicUsize,
    body_shares: Arc<Shares>,
}

impl Places {
    pub(super) fn new(config: PlacesConfig) -> Arc<Self> {
        let detail = "This caller has reached its limit of concurrent requests. Try again when one completes.";
        let shares = Shares::new("in_flight", detail, config.per_caller);
        let free = || AtomicUsize::new(0);
        let detail = "The bodies of this caller's requests in flight are too large together. Try again when one completes.";
        let body_shares = Shares::new("bodies", detail, config.body_per_caller);
        let PlacesConfig { total, body_bytes, .. } = config;
        Arc::new(Self { total, taken: free(), anonymous: free(), probes: free(), shares, body_bytes, bodies: free(), body_shares })
    }

    /// Counts a request in, also one that is going to be refused, which is over at once. Probes are
    /// beside the others: while they wait, they take nobody's place.
    pub(super) fn enter(self: &Arc<Self>, route: Option<&str>) -> Place {
        let probe = route.filter(|route| PROBES.contains(route));
        let pool = probe.filter(|probe| *probe == METRICS).map(|_| Pool::Probes);
        let within = match (probe, pool) {
            (_, Some(pool)) => self.take(pool),
            (Some(_), None) => true,
            (None, None) => self.taken.fetch_add(1, Ordering::Relaxed) < self.total,
        };
        Place {
            places: Arc::clone(self),
            within,
            is_probe: probe.is_some(),
            share: None,
            pool,
            caller: None,
            body: 0,
            body_shares: Vec::new(),
        }
    }

    /// How many bytes of bodies are in memory.
    #[cfg(test)]
    pub(super) fn body_bytes_held(&self) -> usize {
        self.bodies.load(Ordering::Relaxed)
    }

    /// How many of a pool are held, and how many may be.
    fn pool(&self, pool: Pool) -> (&AtomicUsize, usize) {
        match pool {
            Pool::Anonymous => (&self.anonymous, self.total.div_ceil(ANONYMOUS_PART)),
            Pool::Probes => (&self.probes, PROBE_PLACES),
        }
    }

    /// Counts one more of a pool. Whether there was room for it.
    fn take(&self, pool: Pool) -> bool {
        let (held, most) = self.pool(pool);
        held.fetch_add(1, Ordering::Relaxed) < most
    }
}

/// What `/metrics`, and a long answer to a caller without credentials, counts against.
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
    is_probe: bool,
    /// That of its caller, once it is known.
    share: Option<Share>,
    pool: Option<Pool>,
    /// Who asks, once it is known.
    caller: Option<Caller>,
    /// How many bytes of its body it holds.
    body: usize,
    /// The same, of its caller's part.
    body_shares: Vec<Share>,
}

impl Place {
    /// Whether it is within the total, or that of `/metrics`.
    pub(super) fn is_within(&self) -> bool {
        self.within
    }

    /// Counts it against the bound of its caller too.
    ///
    /// # Errors
    /// A 429 problem.
    pub(super) fn belongs_to(&mut self, caller: &Caller) -> Result<(), Problem> {
        self.share = Some(self.places.shares.take(caller)?);
        self.caller = Some(caller.clone());
        Ok(())
    }

    /// Counts more bytes of its body, if there is room for them. If there is none, the body is not kept.
    ///
    /// # Errors
    /// A 429 problem where its caller has too much, a 503 problem where all together have.
    pub(super) fn hold_body(&mut self, bytes: usize) -> Result<(), Problem> {
        let most = self.places.body_bytes;
        let grown = |held: usize| held.checked_add(bytes).filter(|held| *held <= most);
        let held = self.places.bodies.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        held.map_err(|_| no_room_for_body())?;
        self.body += bytes;
        if let Some(caller) = &self.caller {
            match self.places.body_shares.take_many(caller, bytes) {
                Ok(share) => self.body_shares.push(share),
                Err(problem) => {
                    self.let_go_of_body();
                    return Err(problem);
                }
            }
        }
        Ok(())
    }

    /// Its body is no longer in memory.
    pub(super) fn let_go_of_body(&mut self) {
        // Most requests have none, and are spared the atomic.
        if self.body > 0 {
            self.places.bodies.fetch_sub(std::mem::take(&mut self.body), Ordering::Relaxed);
        }
        self.body_shares.clear();
    }

    /// Counts it against a pool too, unless it is in one.
    fn hold_of(&mut self, pool: Pool) -> Result<(), Problem> {
        if self.pool.is_some() {
            return Ok(());
        }
        // Dropping the place gives back what was taken too much.
        self.pool = Some(pool);
        if self.places.take(pool) { Ok(()) } else { Err(overloaded()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.let_go_of_body();
        let pool = self.pool.map(|pool| self.places.pool(pool).0);
        if !self.is_probe {
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

/// Refuses a request for whose body there is no room.
fn no_room_for_body() -> Problem {
    metrics::counter!(REFUSED).increment(1);
    metrics::counter!(BODIES_REFUSED).increment(1);
    Problem::new(Code::Overloaded, "The bodies of the requests in flight are too large. Try again shortly.")
}

/// The place that this answer keeps until it is sent, if it keeps one. `streams` says whether the
/// connection is HTTP/2.
///
/// HTTP/1 copies a short answer into its connection's buffer at once, and a connection has one
/// answer at a time.
///
/// # Errors
/// A 503 problem, to be sent instead of a long answer to a caller without credentials.
pub(super) fn keep(place: Option<Place>, streams: bool, response: &Response) -> Result<Option<Place>, Problem> {
    let length = response.body().size_hint().lower();
    let shortest = if streams { 1 } else { LONG_BYTES };
    let Some(mut place) = place.filter(|_| length >= shortest) else { return Ok(None) };
    place.let_go_of_body();
    if place.share.is_none() {
        if length <= SHORT_BYTES {
            return Ok(None);
        }
        place.hold_of(if place.is_probe { Pool::Probes } else { Pool::Anonymous })?;
    }
    Ok(Some(place))
}

/// The answer, whose body keeps the place, and the stream of an HTTP/2 request, until it is sent.
pub(super) fn hold(place: Option<Place>, mut stream: Option<HttpStream>, response: Response) -> Response {
    if response.body().is_end_stream() || (place.is_none() && stream.is_none()) {
        return response;
    }
    let is_long = response.body().size_hint().upper().is_none_or(|bytes| bytes >= LONG_BYTES);
    let sending = stream.as_mut().and_then(|stream| stream.answered(is_long));
    response.map(|body| held::hold(body, (place, stream), sending))
}
