//! How many requests a second each caller may make: a token bucket for each, and nothing at all
//! while no limit is set.
//!
//! A request is counted where its caller becomes known ([`context::note_caller`](super::context)),
//! so what needs no credentials (probes, documents, preflights, unknown routes) is not limited.
//! Requests with bad credentials are counted against the address that they come from. To limit by
//! something else: a variant of [`Key`].

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::{DashMapStateStore, ShrinkableKeyedStateStore};
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use tokio_util::sync::CancellationToken;

use crate::base::error::{Code, Problem};
use crate::base::seldom::Seldom;
use crate::http::caller::Caller;

/// Requests refused because their caller made too many.
pub(crate) const LIMITED: &str = "headmark_http_rate_limited_total";

/// How often callers whose bucket is full again are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(1);
/// How often it is logged that there is no room for more callers.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// How fast each caller may go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rate limit")]
pub struct RateConfig {
    /// The maximum number of requests a second for each caller: a service key, a user, or the
    /// address of requests with bad credentials. Further requests get 429. Each node counts
    /// separately. 0: no limit.
    #[arg(long, env = "HEADMARK_RATE_LIMIT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub rate_limit: u32,
    /// The number of requests that a caller can make at once after a pause. Default: the requests
    /// of one second.
    #[arg(long, env = "HEADMARK_RATE_BURST", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate_burst: Option<u32>,
    /// The maximum number of callers to track. Beyond it, new callers are not limited until a
    /// tracked one becomes idle.
    #[arg(long, env = "HEADMARK_RATE_CALLERS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub rate_callers: u32,
}

impl Default for RateConfig {
    fn default() -> Self {
        Self { rate_limit: 0, rate_burst: None, rate_callers: 100_000 }
    }
}

/// The address of anyone who opened a connection; put into each of its requests while a limit is
/// set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What a bucket belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Caller(Caller),
    /// Somebody with bad credentials, at this address.
    Stranger(IpAddr),
}

/// The buckets, and the bound on how many there are.
#[derive(Debug)]
struct Buckets {
    kept: DashMapStateStore<Key>,
    /// How many are kept. The map itself counts by locking each of its shards.
    count: AtomicUsize,
    most: usize,
    /// Whether a caller found no room since this was last asked.
    was_full: Arc<AtomicBool>,
}

impl StateStore for Buckets {
    type Key = Key;

    fn measure_and_replace<T, F, E>(&self, key: &Key, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        if let Some(bucket) = self.kept.get(key) {
            return bucket.measure_and_replace(&NotKeyed::NonKey, decide);
        }
        if self.count.load(Ordering::Relaxed) >= self.most {
            self.was_full.store(true, Ordering::Relaxed);
            // As if its bucket were full: a busy node must not refuse newcomers for what others do.
            // The bound on requests in flight holds.
            return decide(None).map(|(allowed, _)| allowed);
        }
        let bucket = self.kept.entry(key.clone()).or_insert_with(|| {
            self.count.fetch_add(1, Ordering::Relaxed);
            Default::default()
        });
        bucket.measure_and_replace(&NotKeyed::NonKey, decide)
    }
}

impl ShrinkableKeyedStateStore<Key> for Buckets {
    fn retain_recent(&self, drop_below: Nanos) {
        self.kept.retain_recent(drop_below);
        self.count.store(self.kept.len(), Ordering::Relaxed);
    }

    fn len(&self) -> usize {
        self.kept.len()
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// The limit, with the bucket of each caller. `C` is the clock that refills them.
#[derive(Debug)]
pub struct Limiter<C: Clock = DefaultClock> {
    rate: RateLimiter<Key, Buckets, C, NoOpMiddleware<C::Instant>>,
    was_full: Arc<AtomicBool>,
}

impl Limiter {
    /// The limit that is configured, if one is.
    #[must_use]
    pub fn new(config: &RateConfig) -> Option<Arc<Self>> {
        Self::with_clock(config, DefaultClock::default()).map(Arc::new)
    }

    /// Forgets callers who have been quiet, until told to stop.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tick = tokio::time::interval(FORGET_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let warnings = Seldom::new(WARN_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => self.rate.retain_recent(),
            }
            if self.was_full.swap(false, Ordering::Relaxed) && warnings.may() {
                tracing::warn!("more callers at once than HEADMARK_RATE_CALLERS; those beyond it are not limited");
            }
        }
    }
}

impl<C: Clock> Limiter<C> {
    fn with_clock(config: &RateConfig, clock: C) -> Option<Self> {
        let a_second = NonZeroU32::new(config.rate_limit)?;
        let burst = config.rate_burst.and_then(NonZeroU32::new).unwrap_or(a_second);
        let was_full = Arc::new(AtomicBool::new(false));
        let most = usize::try_from(config.rate_callers).unwrap_or(usize::MAX);
        let buckets = Buckets { kept: DashMapStateStore::default(), count: AtomicUsize::new(0), most, was_full: Arc::clone(&was_full) };
        Some(Self { rate: RateLimiter::new(Quota::per_second(a_second).allow_burst(burst), buckets, clock), was_full })
    }

    /// Counts a request of this caller.
    pub(super) fn count(&self, caller: &Caller) -> Result<(), Problem> {
        self.check(&Key::Caller(caller.clone()))
    }

    /// Counts a request with bad credentials.
    pub(super) fn count_stranger(&self, peer: IpAddr) -> Result<(), Problem> {
        self.check(&Key::Stranger(network(peer)))
    }

    fn check(&self, key: &Key) -> Result<(), Problem> {
        self.rate.check_key(key).map_err(|until| {
            metrics::counter!(LIMITED).increment(1);
            let wait = until.wait_time_from(self.rate.clock().now());
            // Whole seconds, and the last begun one counts: who comes back then is let in.
            let wait_s = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
            let problem = Problem::new(Code::RateLimited, "Too many requests from this caller. Try again after Retry-After seconds.");
            Problem { retry_after_s: Some(wait_s), ..problem }
        })
    }
}

/// Anyone who has one IPv6 address has the other 2^64 of its network too.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limiter(limit: u32, burst: Option<u32>, callers: u32) -> (Limiter<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let config = RateConfig { rate_limit: limit, rate_burst: burst, rate_callers: callers };
        (Limiter::with_clock(&config, clock.clone()).unwrap(), clock)
    }

    fn service(name: &str) -> Caller {
        Caller::Service { name: name.into() }
    }

    #[test]
    fn each_caller_has_a_bucket_that_fills_again() {
        let (limiter, clock) = limiter(2, None, 10);
        let (web, alice) = (service("web"), Caller::User { id: 42.try_into().unwrap() });
        assert!(limiter.count(&web).is_ok() && limiter.count(&web).is_ok());
        let problem = limiter.count(&web).unwrap_err();
        assert_eq!((problem.code, problem.retry_after_s), (Code::RateLimited, Some(1)));
        assert!(limiter.count(&alice).is_ok(), "another caller's requests are its own");
        assert!(limiter.count_stranger([192, 0, 2, 1].into()).is_ok());
        clock.advance(Duration::from_millis(499));
        assert!(limiter.count(&web).is_err());
        clock.advance(Duration::from_millis(1));
        assert!(limiter.count(&web).is_ok() && limiter.count(&web).is_err(), "one every half second");
        clock.advance(Duration::from_secs(60));
        assert!(
            limiter.count(&web).is_ok() && limiter.count(&web).is_ok() && limiter.count(&web).is_err(),
            "no more than a burst is saved up"
        );
    }

    #[test]
    fn the_burst_may_be_larger_or_smaller_than_a_second() {
        for (limit, burst, at_once) in [(1, None, 1), (1, Some(5), 5), (100, Some(1), 1), (3, None, 3)] {
            let (limiter, clock) = limiter(limit, burst, 10);
            let taken = (0..20).take_while(|_| limiter.count(&service("web")).is_ok()).count();
            assert_eq!(taken, at_once, "{limit} {burst:?}");
            let problem = limiter.count(&service("web")).unwrap_err();
            clock.advance(Duration::from_secs(problem.retry_after_s.unwrap().into()));
            assert!(limiter.count(&service("web")).is_ok(), "who waits as told is let in");
        }
    }

    #[test]
    fn the_callers_kept_are_bounded_and_the_quiet_ones_forgotten() {
        let (limiter, clock) = limiter(1, None, 2);
        for name in ["a", "b", "c", "c", "c"] {
            assert!(limiter.count(&service(name)).is_ok(), "{name}: beyond the bound a caller is not limited");
        }
        assert!(limiter.count(&service("a")).is_err(), "who is kept is limited all the same");
        assert_eq!(limiter.rate.len(), 2);
        assert!(limiter.was_full.load(Ordering::Relaxed));
        limiter.rate.retain_recent();
        assert_eq!(limiter.rate.len(), 2, "whose bucket is not full yet is not forgotten");
        clock.advance(Duration::from_secs(3));
        limiter.rate.retain_recent();
        assert_eq!(limiter.rate.len(), 0);
        assert!(limiter.count(&service("c")).is_ok() && limiter.count(&service("c")).is_err(), "there is room again");
    }

    #[test]
    fn no_limit_is_no_limiter_and_a_network_is_one_stranger() {
        assert!(Limiter::new(&RateConfig::default()).is_none());
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:192.0.2.1", "192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    }
}
