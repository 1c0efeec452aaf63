//! One pipeline of many reads: polls that arrive together cost one round trip, not one each. Over a
//! connection of its own (`pipe.rs`), or, with TLS and in a cluster, over one of the redis crate's.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::known::KnownEntry;
use super::pipe;
use super::read::{Answer, Read, Replied};
use super::scripts::read_hash;
use super::shared::{Shared, hgetall, unexpected_reply};
use super::wire::{self, away};
use crate::base::ids::UserId;
use crate::cache::CacheError;

/// Reads that may wait for one connection; more are refused at once.
const READS_WAITING: usize = 8192;

/// Reads in one pipeline.
const READS_PER_PIPELINE: usize = 128;

/// Pipelines under way at once on one connection of the crate's: while these are out, the next one
/// gathers.
const PIPELINES_IN_FLIGHT: usize = 4;

/// Reads that wait for a connection before the next one is used too: the more go together, the less
/// each costs.
const READS_TOGETHER: usize = 128;

/// The way to the readers, one for each read connection.
pub(super) struct ReadQueue {
    queues: Vec<mpsc::Sender<Read>>,
}

impl ReadQueue {
    /// Starts the readers, which end when the queue is dropped.
    pub(super) fn start(shared: &Arc<Shared>) -> Self {
        let node = wire::pipe_node(&shared.redis);
        let start_one = |connection: usize| {
            let (sender, receiver) = mpsc::channel(READS_WAITING);
            match &node {
                Some(node) => tokio::spawn(pipe::run(Arc::clone(shared), node.clone(), receiver)),
                None => tokio::spawn(gather(Arc::clone(shared), connection, receiver)),
            };
            sender
        };
        Self { queues: (0..shared.redis.connections.max(1)).map(start_one).collect() }
    }

    /// Asks for the user's whole hash.
    pub(super) fn ask(&self, user: UserId, known: Option<Arc<KnownEntry>>, deadline: Instant) -> Result<Asked, CacheError> {
        let waiting = |queue: &&mpsc::Sender<Read>| queue.max_capacity() - queue.capacity();
        let queue = self.queues.iter().find(|queue| waiting(queue) < READS_TOGETHER).or_else(|| self.queues.iter().min_by_key(waiting));
        let (reply, answer) = oneshot::channel();
        let read = Read { user, known: known.clone(), deadline, reply };
        if !matches!(queue.map(|queue| queue.try_send(read)), Some(Ok(()))) {
            return Err(CacheError::Away("read queue full".to_owned()));
        }
        Ok(Asked { user, known, answer })
    }
}

/// A read that is under way.
pub(super) struct Asked {
    pub(super) user: UserId,
    pub(super) known: Option<Arc<KnownEntry>>,
    answer: oneshot::Receiver<Answer>,
}

impl Asked {
    /// No timeout here: the reader answers by the deadline, and a timer for each poll costs more
    /// than its share of a pipeline.
    pub(super) async fn answer(&mut self) -> Answer {
        (&mut self.answer).await.unwrap_or_else(|_| Err(CacheError::Away("the reader has ended".to_owned())))
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
    // Anyone who stopped waiting needs no answer: after a stall, the queue is not worked off in
    // vain.
    let now = Instant::now();
    let (reads, late): (Vec<_>, Vec<_>) = reads.into_iter().filter(|read| !read.is_abandoned()).partition(|read| read.deadline > now);
    for read in late {
        read.answer(Err(CacheError::Away("no turn in time".to_owned())));
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
    match outcome {
        Ok(results) => {
            for (read, result) in reads.into_iter().zip(results) {
                read.answer(result.map(|value| Replied::Hash(read_hash(&value), None)).map_err(|error| away(&error)));
            }
        }
        Err(error) => reads.into_iter().for_each(|read| read.answer(Err(error.clone()))),
    }
}
