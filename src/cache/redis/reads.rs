//! One pipeline of many reads: polls that arrive together cost one round trip, not one each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deadpool_redis::redis::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::{Shared, away, hgetall, unexpected_reply};
use crate::cache::CacheError;
use crate::ids::UserId;

/// Reads that may wait for one connection; more are refused at once.
const READS_WAITING: usize = 8192;

/// Reads in one pipeline.
const READS_PER_PIPELINE: usize = 128;

/// Pipelines under way at once on one connection: while these are out, the next one gathers.
const PIPELINES_IN_FLIGHT: usize = 4;

struct Read {
    user: UserId,
    deadline: Instant,
    reply: oneshot::Sender<Result<Value, CacheError>>,
}

/// The way to the readers, one for each read connection.
pub(super) struct ReadQueue {
    queues: Vec<mpsc::Sender<Read>>,
    next: AtomicUsize,
}

impl ReadQueue {
    /// Starts the readers, which end when the queue is dropped.
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let start_one = |connection: usize| {
            let (sender, receiver) = mpsc::channel(READS_WAITING);
            tokio::spawn(gather(Arc::clone(shared), connection, receiver));
            sender
        };
        let connections = shared.links.load().reads.len();
        Self { queues: (0..connections).map(start_one).collect(), next: AtomicUsize::new(0) }
    }

    /// The user's whole hash, as Redis sent it.
    pub(super) async fn read(&self, user: UserId, deadline: Instant) -> Result<Value, CacheError> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let queue = turn.checked_rem(self.queues.len()).and_then(|at| self.queues.get(at));
        let (reply, answer) = oneshot::channel();
        let queued = queue.map(|queue| queue.try_send(Read { user, deadline, reply }));
        if !matches!(queued, Some(Ok(()))) {
            return Err(CacheError::Away("read queue full".to_owned()));
        }
        // No timeout here: each pipeline ends by the deadline of its oldest read, so that the ones behind it have their turn before their own. A timer for each
        // poll costs more than its share of a pipeline.
        answer.await.unwrap_or_else(|_| Err(CacheError::Away("the reader has ended".to_owned())))
    }
}

/// Takes all that is waiting and sends it, again and again.
async fn gather(shared: Arc<Shared>, connection: usize, mut queue: mpsc::Receiver<Read>) {
    let in_flight = Arc::new(Semaphore::new(PIPELINES_IN_FLIGHT));
    loop {
        let Ok(permit) = Arc::clone(&in_flight).acquire_owned().await else { return };
        let mut reads = Vec::with_capacity(READS_PER_PIPELINE);
        if queue.recv_many(&mut reads, READS_PER_PIPELINE).await == 0 {
            return;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            answer(&shared, connection, reads).await;
            drop(permit);
        });
    }
}

async fn answer(shared: &Shared, connection: usize, reads: Vec<Read>) {
    // Whoever stopped waiting needs no answer: after a stall, the queue is not worked off in vain.
    let now = Instant::now();
    let (reads, late): (Vec<_>, Vec<_>) = reads.into_iter().filter(|read| !read.reply.is_closed()).partition(|read| read.deadline > now);
    for read in late {
        let _gone = read.reply.send(Err(CacheError::Away("no turn in time".to_owned())));
    }
    if reads.is_empty() {
        return;
    }
    let deadline = reads.iter().map(|read| read.deadline).min().unwrap_or_else(|| shared.deadline());
    let commands = reads.iter().map(|read| hgetall(&shared.key(read.user))).collect();
    let wire = shared.links.load().reads.get(connection).cloned();
    let outcome = match wire {
        Some(wire) => shared.send(wire, commands, deadline).await,
        None => Err(unexpected_reply()),
    };
    // A caller that has gone in the meantime makes its send fail, which is right to ignore.
    match outcome {
        Ok(results) => {
            for (read, result) in reads.into_iter().zip(results) {
                let _gone = read.reply.send(result.map_err(|error| away(&error)));
            }
        }
        Err(error) => {
            for read in reads {
                let _gone = read.reply.send(Err(error.clone()));
            }
        }
    }
}
