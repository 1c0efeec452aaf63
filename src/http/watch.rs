//! What the task of a connection has to know about its requests and writes to end it in time.
//!
//! hyper bounds neither how long a caller takes to receive an answer nor how long an HTTP/2 connection
//! stays without a request. It would bound how long HTTP/1 headers take by a timer for each request,
//! which costs a fortieth of a poll. [`Watch`] keeps that from which `serve` decides all three.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One connection, as its socket, its requests and its task share it.
#[derive(Debug)]
pub(crate) struct Watch {
    opened: Instant,
    /// Whether it is known which HTTP it speaks.
    begun: AtomicBool,
    /// Whether it is to end where nothing was read yet.
    ends_unbegun: AtomicBool,
    /// Whether it began with HTTP/2's preface.
    http2: AtomicBool,
    /// Whether its next answer is to be the last.
    last_answer: AtomicBool,
    /// Since when the socket has taken less than it was given, in milliseconds after `opened`, plus
    /// one; 0: it has taken all.
    blocked_ms: AtomicU64,
    /// The requests of an HTTP/1 connection: how many it has had, and how many it has now.
    requests: AtomicU64,
    serving: AtomicUsize,
    streams: Mutex<Streams>,
}

/// The requests of an HTTP/2 connection.
#[derive(Debug)]
struct Streams {
    open: usize,
    /// When the last one ended, or the connection began.
    quiet_since: Instant,
    /// The number of the next answer.
    next: u64,
    /// The answers that are being sent, the oldest first.
    unsent: BTreeMap<u64, Instant>,
}

impl Watch {
    pub(crate) fn new() -> Arc<Self> {
        let opened = Instant::now();
        let streams = Mutex::new(Streams { open: 0, quiet_since: opened, next: 0, unsent: BTreeMap::new() });
        Arc::new(Self {
            opened,
            begun: AtomicBool::new(false),
            ends_unbegun: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            last_answer: AtomicBool::new(false),
            blocked_ms: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            serving: AtomicUsize::new(0),
            streams,
        })
    }

    pub(crate) fn begins(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// From now on nothing is waited for where nothing was read yet.
    pub(crate) fn end_unbegun(&self) {
        self.ends_unbegun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ends_unbegun(&self) -> bool {
        self.ends_unbegun.load(Ordering::Relaxed)
    }

    pub(crate) fn begins_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_http2(&self) -> bool {
        self.http2.load(Ordering::Relaxed)
    }

    /// From now on an answer over HTTP/1 says that it is the last.
    pub(crate) fn announce_close(&self) {
        self.last_answer.store(true, Ordering::Relaxed);
    }

    pub(crate) fn announces_close(&self) -> bool {
        self.last_answer.load(Ordering::Relaxed)
    }

    /// The socket has not taken all that it was given.
    pub(crate) fn blocked(&self) {
        if self.blocked_ms.load(Ordering::Relaxed) == 0 {
            let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.blocked_ms.store(now_ms.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// The socket has taken all.
    pub(crate) fn flushed(&self) {
        if self.blocked_ms.load(Ordering::Relaxed) != 0 {
            self.blocked_ms.store(0, Ordering::Relaxed);
        }
    }

    /// For how long the caller has been receiving what it was sent first.
    pub(crate) fn sending_for(&self) -> Duration {
        let blocked_ms = self.blocked_ms.load(Ordering::Relaxed);
        let blocked = if blocked_ms == 0 { None } else { Some(self.opened + Duration::from_millis(blocked_ms - 1)) };
        let oldest = self.streams().unsent.values().next().copied();
        [blocked, oldest].into_iter().flatten().min().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// For how long an HTTP/2 connection has had no request. None while it has one, and for HTTP/1.
    pub(crate) fn quiet_for(&self) -> Option<Duration> {
        let streams = self.streams();
        (self.is_http2() && streams.open == 0).then(|| streams.quiet_since.elapsed())
    }

    /// A request of HTTP/1 begins.
    pub(crate) fn serve(self: &Arc<Self>) -> Serving {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.serving.fetch_add(1, Ordering::Relaxed);
        Serving(Arc::clone(self))
    }

    /// Which request an HTTP/1 connection waits for, by how many it has had; None while it has one,
    /// or while its caller is receiving.
    pub(crate) fn awaited(&self) -> Option<u64> {
        let waits = self.serving.load(Ordering::Relaxed) == 0 && self.blocked_ms.load(Ordering::Relaxed) == 0 && !self.is_http2();
        waits.then(|| self.requests.load(Ordering::Relaxed))
    }

    /// A request of HTTP/2 begins.
    pub(crate) fn begin(self: &Arc<Self>) -> HttpStream {
        self.streams().open += 1;
        HttpStream { watch: Arc::clone(self), answer: None }
    }

    /// Nothing panics while it is locked, so a poisoned lock guards whole data.
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of an HTTP/1 connection; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Serving(Arc<Watch>);

impl Serving {
    /// Whether the answer is to say that it is the last.
    pub(crate) fn announces_close(&self) -> bool {
        self.0.announces_close()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.serving.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connection of an HTTP/2 request, put into the request by `serve`.
#[derive(Debug, Clone)]
pub(crate) struct Link(pub(crate) Arc<Watch>);

/// A request of an HTTP/2 connection; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HttpStream {
    watch: Arc<Watch>,
    answer: Option<u64>,
}

impl HttpStream {
    /// Its answer is ready, and the time to receive it begins.
    pub(crate) fn answered(&mut self) {
        let mut streams = self.watch.streams();
        let number = streams.next;
        streams.next += 1;
        streams.unsent.insert(number, Instant::now());
        self.answer = Some(number);
    }
}

impl Drop for HttpStream {
    fn drop(&mut self) {
        let mut streams = self.watch.streams();
        streams.open = streams.open.saturating_sub(1);
        if let Some(number) = self.answer {
            streams.unsent.remove(&number);
        }
        if streams.open == 0 {
            streams.quiet_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http1_connection_waits_for_the_next_request_while_it_has_none_and_its_caller_receives_nothing() {
        let watch = Watch::new();
        assert_eq!(watch.awaited(), Some(0));
        let first = watch.serve();
        assert_eq!(watch.awaited(), None);
        watch.blocked();
        drop(first);
        assert_eq!(watch.awaited(), None, "the answer is not sent yet");
        watch.flushed();
        assert_eq!(watch.awaited(), Some(1));
        watch.begins_http2();
        assert_eq!(watch.awaited(), None);
    }

    #[test]
    fn the_oldest_answer_counts_and_a_connection_is_quiet_without_requests() {
        let watch = Watch::new();
        assert_eq!(watch.quiet_for(), None, "HTTP/1 has a timeout of its own");
        watch.begins_http2();
        assert!(watch.quiet_for().is_some());
        let (mut first, mut second) = (watch.begin(), watch.begin());
        assert_eq!((watch.quiet_for(), watch.sending_for()), (None, Duration::ZERO));
        first.answered();
        std::thread::sleep(Duration::from_millis(20));
        let second_began = Instant::now();
        second.answered();
        assert!(watch.sending_for() >= Duration::from_millis(20));
        drop(first);
        assert!(watch.sending_for() <= second_began.elapsed(), "the second is the oldest now");
        drop(second);
        assert!(watch.sending_for().is_zero() && watch.quiet_for().is_some());
    }

    #[test]
    fn a_socket_is_blocked_until_it_has_taken_all() {
        let watch = Watch::new();
        watch.blocked();
        std::thread::sleep(Duration::from_millis(20));
        watch.blocked();
        assert!(watch.sending_for() >= Duration::from_millis(20), "the first time counts");
        watch.flushed();
        assert!(watch.sending_for().is_zero());
    }
}
