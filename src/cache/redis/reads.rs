//! The connection that polls read over, and the lease under which they need not.
//!
//! Redis remembers which entries were read over this connection, and tells over it when one of them
//! changes (`CLIENT TRACKING`). What it tells and what it replies arrive in one order. So once a
//! command of a node is answered, the node knows of every change that came before that command.
//!
//! A node renews its lease again and again while it is polled. From the moment at which it *sent* a
//! renewal that is answered, it may answer polls from its copies for [`READ_LEASE`]. A writer answers
//! no earlier than that after its begin, if any other node holds a lease. Why that is enough:
//! `docs/adr/0021-read-leases.md`.
//!
//! A poll that comes while the lease has run out waits for the next renewal, with all others, instead
//! of asking for its user.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use deadpool_redis::redis::{Cmd, RedisError};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::copies::Copies;
use super::scripts::Form;
use super::shared::{Replies, Shared, is_unknown, unexpected_reply};
use super::tracking;
use super::wire::{self, Wire, away, run_of};
use crate::cache::{CacheError, READ_LEASE};

/// The pause between two renewals of the lease while polls come.
const RENEW_EVERY: Duration = Duration::from_millis(2);

/// How long a node that is not polled renews its lease.
const IDLE: Duration = Duration::from_secs(1);

/// Renewals that may be under way at once.
const RENEWALS_UNDER_WAY: usize = 4;

/// The pause after a renewal that failed. Until the next, polls ask Redis.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// Polls that may wait for a renewal; more ask Redis.
const MAX_WAITING: usize = 16_384;

/// A connection for reads.
pub(super) struct Connection {
    /// Tells it from those before it.
    pub(super) number: u64,
    wire: Wire,
    /// Whether Redis tells of changes over it.
    pub(super) tells: bool,
    closed: Arc<AtomicBool>,
    /// Whether an answer failed to come because it was closed, rather than late or an error.
    dropped: AtomicBool,
    made: Instant,
    /// When the lease ends, in nanoseconds since the connection was made.
    lease_ends: AtomicU64,
}

impl Connection {
    /// The time, in nanoseconds since it was made.
    pub(super) fn now(&self) -> u64 {
        nanos(self.made.elapsed())
    }

    /// The same if copies may be shown, else None. Ask before looking for a copy: one that was found
    /// before may have changed since.
    pub(super) fn leased_at(&self) -> Option<u64> {
        let now = self.now();
        (now < self.lease_ends.load(Ordering::Acquire)).then_some(now)
    }

    /// Whether an answer failed to come because it was closed, which does not tell that Redis is away.
    pub(super) fn was_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Asks for something.
    pub(super) async fn send(&self, shared: &Shared, commands: Vec<Cmd>, deadline: Instant) -> Result<Replies, CacheError> {
        let had = deadline.duration_since(Instant::now());
        let sent = shared.send(self.wire.clone(), commands, deadline).await;
        // One that had waited elsewhere until shortly before tells nothing about the connection.
        if had < shared.redis.timeout / 2 { sent } else { self.note(sent) }
    }

    /// Gives the connection up if it failed: were its other end gone without a word, it would only
    /// time out again. The next read makes another.
    fn note(&self, sent: Result<Replies, CacheError>) -> Result<Replies, CacheError> {
        let is_outage = |result: &Result<_, _>| result.as_ref().is_err_and(wire::is_outage);
        if sent.as_ref().map_or(true, |replies| replies.iter().any(is_outage)) {
            self.closed.store(true, Ordering::Release);
        }
        let is_dropped = |result: &Result<_, RedisError>| result.as_ref().is_err_and(RedisError::is_connection_dropped);
        if !self.wire.is_made_again() && sent.as_ref().is_ok_and(|replies| replies.iter().any(is_dropped)) {
            self.dropped.store(true, Ordering::Release);
        }
        sent
    }

    fn lease_until(&self, end: Instant) {
        self.lease_ends.fetch_max(nanos(end.duration_since(self.made)), Ordering::AcqRel);
    }
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The reads of a node.
pub(super) struct Reads {
    /// Where the connection and its lease are: a renewal, several hundred of which are made in a second,
    /// then wakes no other thread.
    thread: Handle,
    pub(super) copies: Arc<Copies>,
    current: ArcSwapOption<Connection>,
    connecting: tokio::sync::Mutex<()>,
    made: AtomicU64,
    /// Whether a poll came lately.
    polled: AtomicBool,
    /// Polls that wait for a renewal. They hear over which connection it was.
    waiting: Mutex<Vec<oneshot::Sender<u64>>>,
    /// Whether the last renewal failed: then nobody waits for the next.
    failing: AtomicBool,
    /// Told when the first poll waits, and when the first one comes after a pause.
    wanted: Notify,
    /// Room for renewals.
    under_way: Arc<Semaphore>,
}

impl Reads {
    pub(super) fn new(copies: Copies, thread: Handle) -> Self {
        Self {
            thread,
            copies: Arc::new(copies),
            current: ArcSwapOption::empty(),
            connecting: tokio::sync::Mutex::default(),
            made: AtomicU64::new(1),
            polled: AtomicBool::new(false),
            waiting: Mutex::default(),
            failing: AtomicBool::new(false),
            wanted: Notify::new(),
            under_way: Arc::new(Semaphore::new(RENEWALS_UNDER_WAY)),
        }
    }

    /// Gives the connection up. The next read makes another.
    pub(super) fn disconnect(&self) {
        self.current.store(None);
    }

    fn open(&self) -> Option<Arc<Connection>> {
        self.current.load_full().filter(|connection| !connection.closed.load(Ordering::Acquire))
    }

    /// The connection, made if need be.
    pub(super) async fn connection(&self, shared: &Shared, deadline: Instant) -> Result<Arc<Connection>, CacheError> {
        shared.check_look()?;
        let connection = match self.open() {
            Some(connection) => connection,
            // Boxed, so that the many polls that need it not need not carry its room.
            None => Box::pin(self.connect(shared, deadline)).await?,
        };
        if !self.polled.load(Ordering::Relaxed) {
            self.polled.store(true, Ordering::Relaxed);
            self.wanted.notify_one();
        }
        Ok(connection)
    }

    async fn connect(&self, shared: &Shared, deadline: Instant) -> Result<Arc<Connection>, CacheError> {
        let connect = async {
            let _one = self.connecting.lock().await;
            if let Some(connection) = self.open() {
                return Ok(connection);
            }
            shared.breaker.check()?;
            shared.run.check()?;
            let (closed, copies) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.copies));
            let heard = tracking::hear(copies, Arc::clone(&closed), shared.key_frame());
            let redis = shared.redis.clone();
            let connecting = self.thread.spawn(async move { wire::connect_reads(&redis, heard).await });
            let connected = AbortOnDropHandle::new(connecting).await.map_err(|error| CacheError::Away(error.to_string()))?;
            let (wire, tells) = connected.map_err(|error| {
                if wire::is_outage(&error) {
                    shared.failed(&error.to_string());
                }
                away(&error)
            })?;
            let texts = wire.clone().server_info().await.map_err(|error| away(&error))?;
            shared.run.check_connection(&run_of(&texts).ok_or_else(unexpected_reply)?)?;
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let (dropped, lease_ends) = (AtomicBool::new(false), AtomicU64::new(0));
            let connection = Arc::new(Connection { number, wire, tells, closed, dropped, made: Instant::now(), lease_ends });
            self.current.store(Some(Arc::clone(&connection)));
            Ok(connection)
        };
        match tokio::time::timeout_at(deadline, connect).await {
            Ok(connection) => connection,
            Err(_) => {
                shared.failed("no connection in time");
                Err(CacheError::Away("no connection in time".to_owned()))
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<oneshot::Sender<u64>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a renewal that is sent from now on. Over which connection; None if there is none in
    /// time.
    pub(super) async fn renewed(&self, deadline: Instant) -> Option<u64> {
        let (done, renewed) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.len() >= MAX_WAITING || self.failing.load(Ordering::Relaxed) {
                return None;
            }
            if waiting.is_empty() {
                self.wanted.notify_one();
            }
            waiting.push(done);
        }
        // There must be time left to ask Redis instead.
        let now = Instant::now();
        tokio::time::timeout_at(now + deadline.duration_since(now) / 2, renewed).await.ok()?.ok()
    }

    /// Renews the lease as long as polls come, until aborted.
    pub(super) async fn run(self: Arc<Self>, shared: Arc<Shared>) {
        loop {
            let polled = self.polled.swap(false, Ordering::Relaxed) || !self.waiting().is_empty();
            if !polled {
                self.wanted.notified().await;
            }
            let end = Instant::now() + IDLE;
            while Instant::now() < end {
                // A renewal does not wait for the one before it: on a busy machine their answers may
                // take longer than the pause.
                let Ok(room) = Arc::clone(&self.under_way).acquire_owned().await else { return };
                tokio::spawn(Arc::clone(&self).renew_for_all(Arc::clone(&shared), room));
                if self.failing.load(Ordering::Relaxed) {
                    tokio::time::sleep(FAILED_PAUSE).await;
                }
                let _poll = tokio::time::timeout(RENEW_EVERY, self.wanted.notified()).await;
            }
        }
    }

    /// Renews it for the polls that wait by now.
    async fn renew_for_all(self: Arc<Self>, shared: Arc<Shared>, room: OwnedSemaphorePermit) {
        let waiting = std::mem::take(&mut *self.waiting());
        match self.renew(&shared).await {
            Ok(connection) => {
                self.failing.store(false, Ordering::Relaxed);
                waiting.into_iter().for_each(|poll| answer(poll, connection));
            }
            Err(error) => {
                tracing::debug!(%error, "the read lease was not renewed");
                drop(waiting);
                self.refuse_waiting();
            }
        }
        drop(room);
    }

    /// Until the next renewal nobody waits, nor do those who came meanwhile.
    fn refuse_waiting(&self) {
        let mut waiting = self.waiting();
        self.failing.store(true, Ordering::Relaxed);
        waiting.clear();
    }

    /// Renews it once. Over which connection.
    async fn renew(&self, shared: &Shared) -> Result<u64, CacheError> {
        let connection = self.open().filter(|connection| connection.tells);
        let connection = connection.ok_or_else(|| CacheError::Away("no connection".to_owned()))?;
        for form in [Form::Hash, Form::Text] {
            let call = vec![shared.scripts.read_lease(form, shared.node).ok_or_else(unexpected_reply)?];
            let sent = Instant::now();
            let replies = connection.note(shared.send_uncounted(connection.wire.clone(), call, shared.deadline()).await)?;
            match replies.first() {
                Some(Ok(_)) => {
                    connection.lease_until(sent + READ_LEASE);
                    return Ok(connection.number);
                }
                // A replica, say, that was a master: it would tell of changes too late.
                Some(result @ Err(error)) if !is_unknown(result) => {
                    connection.closed.store(true, Ordering::Release);
                    return Err(away(error));
                }
                _ => {}
            }
        }
        Err(unexpected_reply())
    }
}

fn answer(poll: oneshot::Sender<u64>, connection: u64) {
    // A caller that has gone in the meantime makes this fail, which is right to ignore.
    let _gone = poll.send(connection);
}
