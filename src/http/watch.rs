//! What the task of a connection has to know about its requests and writes to end it in time.
//!
//! hyper bounds neither how long a caller takes to receive an answer nor how long an HTTP/2 connection
//! stays without a request. It would bound how long HTTP/1 headers take by a timer for each request,
//! which costs a fortieth of a poll. [`Watch`] keeps that from which `serve` decides all three.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::streams::{HttpStream, Streams};

/// How much of what it was given a socket must take within the time for it, again and again. A byte now
/// and then is no progress.
const PROGRESS_BYTES: usize = 64 * 1024;

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
    /// Since when the socket has taken less than it was given, or when it last had [`PROGRESS_BYTES`]
    /// of that, in milliseconds after `opened`, plus one; 0: it has taken all.
    blocked_ms: AtomicU64,
    /// How much it has taken since then.
    taken_bytes: AtomicUsize,
    /// The requests of an HTTP/1 connection: how many it has had, and how many it has now.
    requests: AtomicU64,
    serving: AtomicUsize,
    streams: Arc<Streams>,
}

impl Watch {
    pub(crate) fn new() -> Arc<Self> {
        let opened = Instant::now();
        Arc::new(Self {
            opened,
            begun: AtomicBool::new(false),
            ends_unbegun: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            last_answer: AtomicBool::new(false),
            blocked_ms: AtomicU64::new(0),
            taken_bytes: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            serving: AtomicUsize::new(0),
            streams: Arc::new(Streams::new(opened)),
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
            self.begin_wait();
        }
    }

    /// The socket has taken so much more. hyper may never hand a steady receiver all of a long answer, so
    /// each [`PROGRESS_BYTES`] have the time.
    pub(crate) fn written(&self, bytes: usize) {
        if self.blocked_ms.load(Ordering::Relaxed) == 0 {
            return;
        }
        let taken = self.taken_bytes.load(Ordering::Relaxed).saturating_add(bytes);
        if taken >= PROGRESS_BYTES {
            self.begin_wait();
        } else {
            self.taken_bytes.store(taken, Ordering::Relaxed);
        }
    }

    fn begin_wait(&self) {
        let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.taken_bytes.store(0, Ordering::Relaxed);
        self.blocked_ms.store(now_ms.saturating_add(1), Ordering::Relaxed);
    }

    /// The socket has taken all.
    pub(crate) fn flushed(&self) {
        if self.blocked_ms.load(Ordering::Relaxed) != 0 {
            self.blocked_ms.store(0, Ordering::Relaxed);
        }
    }

    /// For how long the socket has taken less than it was given, and less than [`PROGRESS_BYTES`] of that.
    pub(crate) fn blocked_for(&self) -> Duration {
        let blocked_ms = self.blocked_ms.load(Ordering::Relaxed);
        if blocked_ms == 0 { Duration::ZERO } else { self.opened.elapsed().saturating_sub(Duration::from_millis(blocked_ms - 1)) }
    }

    /// For how long the caller of an HTTP/2 connection has been receiving an answer, or a piece of a
    /// long one.
    pub(crate) fn receiving_for(&self) -> Duration {
        self.streams.receiving_for()
    }

    /// Ends the answers of an HTTP/2 connection that have been received for longer than this. Whether
    /// there is one that an earlier call could not end.
    pub(crate) fn give_up(&self, after: Duration) -> bool {
        self.streams.give_up(after)
    }

    /// For how long an HTTP/2 connection has had no request. None while it has one, and for HTTP/1.
    pub(crate) fn quiet_for(&self) -> Option<Duration> {
        self.streams.quiet_for().filter(|_| self.is_http2())
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
    pub(crate) fn begin(&self) -> HttpStream {
        HttpStream::begin(Arc::clone(&self.streams))
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
    fn a_socket_is_blocked_until_it_has_taken_all() {
        let watch = Watch::new();
        watch.blocked();
        std::thread::sleep(Duration::from_millis(20));
        watch.blocked();
        assert!(watch.blocked_for() >= Duration::from_millis(20), "the first time counts");
        watch.flushed();
        assert!(watch.blocked_for().is_zero());
    }

    #[test]
    fn the_time_begins_again_with_each_64_kib_that_a_blocked_socket_takes() {
        const PAUSE: Duration = Duration::from_millis(20);
        let watch = Watch::new();
        watch.written(PROGRESS_BYTES);
        assert!(watch.blocked_for().is_zero(), "it was not blocked");
        for _ in 0..2 {
            watch.blocked();
            std::thread::sleep(PAUSE);
            watch.written(PROGRESS_BYTES - 1);
            assert!(watch.blocked_for() >= PAUSE, "that was too little");
            let taken = Instant::now();
            watch.written(1);
            assert!(watch.blocked_for() <= taken.elapsed() + Duration::from_millis(1));
            assert_eq!(watch.awaited(), None, "the rest is not sent yet");
        }
        watch.written(PROGRESS_BYTES - 1);
        watch.flushed();
        watch.blocked();
        std::thread::sleep(PAUSE);
        watch.written(1);
        assert!(watch.blocked_for() >= PAUSE, "what it took before counts no more");
    }
}
