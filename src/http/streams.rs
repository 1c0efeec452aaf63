//! The requests of an HTTP/2 connection, and which of their answers the caller is receiving.
//!
//! hyper waits for ever for a caller to take an answer. One that is late ends alone: its task is
//! dropped, and then h2 resets its stream. The other requests of the connection go on. They may be
//! those of other users behind the same proxy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, Abortable};

tokio::task_local! {
    /// What ends the task of this stream.
    static TASK: AbortHandle;
}

/// What the task of a stream runs, so that its answer can be given up.
pub(crate) fn task(stream: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let (abort, registration) = AbortHandle::new_pair();
    TASK.scope(abort, Abortable::new(stream, registration)).map(drop)
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Streams(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    open: usize,
    /// When the last one ended, or the connection began.
    quiet_since: Instant,
    /// The number of the next answer.
    next: u64,
    /// The answers that are being sent.
    unsent: BTreeMap<u64, Answer>,
}

/// An answer that is being sent.
#[derive(Debug)]
struct Answer {
    /// Since when the caller has been receiving, anew with each piece of a long answer. None while it has
    /// all that there is.
    since: Option<Instant>,
    /// How many pieces of a long answer are handed on and not sent yet.
    pieces: usize,
    /// What waits until there are none.
    waiting: Option<Waker>,
    /// None outside of the server.
    task: Option<AbortHandle>,
}

impl Streams {
    pub(super) fn new(opened: Instant) -> Self {
        Self(Mutex::new(Inner { open: 0, quiet_since: opened, next: 0, unsent: BTreeMap::new() }))
    }

    /// For how long there has been none. None while there is one.
    pub(super) fn quiet_for(&self) -> Option<Duration> {
        let inner = self.lock();
        (inner.open == 0).then(|| inner.quiet_since.elapsed())
    }

    /// For how long the caller has been receiving that of which it has taken nothing for longest.
    pub(super) fn receiving_for(&self) -> Duration {
        let since = self.lock().unsent.values().filter_map(|answer| answer.since).min();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Ends the tasks of the answers of which the caller has taken nothing for so long. Whether there is one
    /// that an earlier call ended and that is still here: h2 has all of it, and nobody else can take that
    /// back.
    pub(super) fn give_up(&self, after: Duration) -> bool {
        let is_late = |answer: &&Answer| answer.since.is_some_and(|since| since.elapsed() > after);
        let late: Vec<_> = self.lock().unsent.values().filter(is_late).filter_map(|answer| answer.task.clone()).collect();
        let (stuck, late): (Vec<_>, Vec<_>) = late.into_iter().partition(AbortHandle::is_aborted);
        for task in late {
            tracing::debug!("giving up an answer that its caller does not receive");
            task.abort();
        }
        !stuck.is_empty()
    }

    /// Nothing panics while it is locked, so a poisoned lock guards whole data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of an HTTP/2 connection; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct HttpStream {
    streams: Arc<Streams>,
    answer: Option<u64>,
}

impl HttpStream {
    pub(super) fn begin(streams: Arc<Streams>) -> Self {
        streams.lock().open += 1;
        Self { streams, answer: None }
    }

    /// Its answer is ready, and the time to receive it begins: all of a short one, or each piece of a
    /// long one, which this returns something for.
    pub(crate) fn answered(&mut self, is_long: bool) -> Option<Sending> {
        let task = TASK.try_with(AbortHandle::clone).ok();
        let since = (!is_long).then(Instant::now);
        let mut inner = self.streams.lock();
        let number = inner.next;
        inner.next += 1;
        inner.unsent.insert(number, Answer { since, pieces: 0, waiting: None, task });
        self.answer = Some(number);
        is_long.then(|| Sending { streams: Arc::clone(&self.streams), number })
    }
}

impl Drop for HttpStream {
    fn drop(&mut self) {
        let mut inner = self.streams.lock();
        inner.open = inner.open.saturating_sub(1);
        if let Some(number) = self.answer {
            inner.unsent.remove(&number);
        }
        if inner.open == 0 {
            inner.quiet_since = Instant::now();
        }
    }
}

/// A long answer on its way, which must not outlive its [`HttpStream`].
#[derive(Debug)]
pub(crate) struct Sending {
    streams: Arc<Streams>,
    number: u64,
}

impl Sending {
    /// One more piece is handed on. It is sent when what this returns is dropped.
    pub(crate) fn piece(&self) -> Unsent {
        if let Some(answer) = self.streams.lock().unsent.get_mut(&self.number) {
            answer.pieces += 1;
            answer.since.get_or_insert_with(Instant::now);
        }
        Unsent { streams: Arc::clone(&self.streams), number: self.number }
    }

    /// Waits until all pieces are sent.
    pub(crate) fn poll_sent(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.streams.lock();
        let Some(answer) = inner.unsent.get_mut(&self.number).filter(|answer| answer.pieces > 0) else { return Poll::Ready(()) };
        answer.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A piece of a long answer, until the socket has taken it.
#[derive(Debug)]
pub(crate) struct Unsent {
    streams: Arc<Streams>,
    number: u64,
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let waiting = self.streams.lock().unsent.get_mut(&self.number).and_then(|answer| {
            answer.pieces = answer.pieces.saturating_sub(1);
            answer.since = (answer.pieces > 0).then(Instant::now);
            answer.waiting.take_if(|_| answer.pieces == 0)
        });
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::watch::Watch;

    const PAUSE: Duration = Duration::from_millis(20);

    #[test]
    fn the_oldest_answer_counts_and_a_connection_is_quiet_without_requests() {
        let watch = Watch::new();
        assert_eq!(watch.quiet_for(), None, "HTTP/1 has a timeout of its own");
        watch.begins_http2();
        assert!(watch.quiet_for().is_some());
        let (mut first, mut second) = (watch.begin(), watch.begin());
        assert_eq!((watch.quiet_for(), watch.receiving_for()), (None, Duration::ZERO));
        assert!(first.answered(false).is_none());
        std::thread::sleep(PAUSE);
        let second_began = Instant::now();
        assert!(second.answered(false).is_none());
        assert!(watch.receiving_for() >= PAUSE);
        drop(first);
        assert!(watch.receiving_for() <= second_began.elapsed(), "the second is the oldest now");
        drop(second);
        assert!(watch.receiving_for().is_zero() && watch.quiet_for().is_some());
    }

    #[test]
    fn each_piece_of_a_long_answer_has_its_time_and_a_pause_has_none() {
        let watch = Watch::new();
        let mut stream = watch.begin();
        let sending = stream.answered(true).unwrap();
        std::thread::sleep(PAUSE);
        assert!(watch.receiving_for().is_zero(), "nothing is handed on");
        let pieces = [sending.piece(), sending.piece()];
        std::thread::sleep(PAUSE);
        assert!(watch.receiving_for() >= PAUSE);
        let [first, second] = pieces;
        let taken = Instant::now();
        drop(first);
        assert!(watch.receiving_for() <= taken.elapsed(), "a piece was sent");
        let cx = Context::from_waker(Waker::noop());
        assert!(sending.poll_sent(&cx).is_pending());
        drop(second);
        assert!(watch.receiving_for().is_zero() && sending.poll_sent(&cx).is_ready());
    }

    #[tokio::test]
    async fn only_the_task_of_a_late_answer_ends() {
        let watch = Watch::new();
        let run = |is_late: bool| {
            let watch = Arc::clone(&watch);
            tokio::spawn(task(async move {
                let mut stream = watch.begin();
                let sending = stream.answered(true);
                let _piece = sending.filter(|_| is_late).map(|sending| sending.piece());
                std::future::pending::<()>().await;
            }))
        };
        let (late, other) = (run(true), run(false));
        while watch.receiving_for().is_zero() {
            tokio::task::yield_now().await;
        }
        assert!(!watch.give_up(Duration::from_secs(60)));
        tokio::task::yield_now().await;
        assert!(!late.is_finished());
        assert!(!watch.give_up(Duration::ZERO), "however late it is, it is not given up before");
        late.await.unwrap();
        assert!(watch.receiving_for().is_zero() && watch.quiet_for().is_none() && !other.is_finished());
        assert!(!watch.give_up(Duration::ZERO));
    }

    #[tokio::test]
    async fn an_answer_whose_task_is_over_is_stuck_when_it_is_given_up_again() {
        let watch = Watch::new();
        let stream = Arc::new(Mutex::new(watch.begin()));
        let answered = Arc::clone(&stream);
        let end = task(async move { drop(answered.lock().unwrap().answered(false)) });
        end.await;
        std::thread::sleep(PAUSE);
        assert!(!watch.give_up(Duration::ZERO), "its task may be able to reset it");
        assert!(!watch.give_up(Duration::from_secs(60)), "it is not late");
        assert!(watch.give_up(Duration::ZERO));
    }
}
