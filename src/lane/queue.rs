//! The queues of the lanes, and the loop that takes batches from them.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::RngExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::attempt::{Failure, Lane, Outcome};
use super::{Answer, Engines, Job, LaneConfig, Verdict, unknown_outcome};
use crate::db::is_transient;
use crate::error::{Code, Error, Fault, Problem};
use crate::idempotency::MAX_KEYS_PER_BATCH;

/// How long a command waits for an idempotency key that a transaction elsewhere holds.
const KEY_WAIT: Duration = Duration::from_secs(5);

/// How long a put-off command rests before it is tried again.
const KEY_PAUSE: Duration = Duration::from_millis(20);

/// How often a batch is tried again after a deadlock or the like, before it is split.
const MAX_TRIES: u32 = 4;

/// A job in the queue.
struct Ticket {
    job: Job,
    weight: u32,
    reply: oneshot::Sender<Verdict>,
    /// Room in the queue, given back when the job is answered.
    _room: OwnedSemaphorePermit,
    /// Until when it may be put off.
    put_off_until: Instant,
}

/// The front of the write path. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lanes {
    lanes: Arc<Vec<(mpsc::Sender<Ticket>, Arc<Semaphore>)>>,
    closing: CancellationToken,
    tasks: TaskTracker,
    timeout: Duration,
    max_weight: u32,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.job.fmt(f)
    }
}

impl Lanes {
    /// Starts the lanes.
    #[must_use]
    pub fn start(config: &LaneConfig, engines: &Engines) -> Self {
        let count = if engines.db.is_shared() { config.lanes } else { 1 };
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let first_slot = i64::from(rand::rng().random::<u32>());
        let lanes = (0..count)
            .map(|lane| {
                let (sender, receiver) = mpsc::channel(usize::try_from(config.lane_queue).unwrap_or(usize::MAX));
                let room = Arc::new(Semaphore::new(usize::try_from(config.lane_queue).unwrap_or(usize::MAX)));
                tasks.spawn(work(Lane::new(engines.clone(), first_slot + i64::from(lane)), receiver, config.lane_batch, closing.clone()));
                (sender, room)
            })
            .collect();
        tasks.close();
        let timeout = Duration::from_millis(config.write_timeout_ms);
        Self { lanes: Arc::new(lanes), closing, tasks, timeout, max_weight: config.lane_queue }
    }

    /// Queues a job and waits for its answer, which means that it is durable.
    ///
    /// # Errors
    /// The command's own problem; 503 when the queue is full, the server shuts down, a store is away, or the answer took too long.
    pub async fn submit(&self, job: Job) -> Verdict {
        let lanes = i64::try_from(self.lanes.len()).unwrap_or(1);
        let index = usize::try_from(job.command.lane_key().rem_euclid(lanes)).unwrap_or(0);
        let Some((sender, room)) = self.lanes.get(index) else {
            return Err(Fault::Bug("there are no lanes".to_owned()).into());
        };
        if self.closing.is_cancelled() {
            return Err(Problem::new(Code::ShuttingDown, "This node takes no more writes.").into());
        }
        let weight = job.command.weight().clamp(1, self.max_weight);
        let Ok(permit) = Arc::clone(room).try_acquire_many_owned(weight) else {
            metrics::counter!("headmark_lane_refused_total").increment(1);
            return Err(Problem::new(Code::Overloaded, "Too many writes are waiting.").into());
        };
        let (reply, answer) = oneshot::channel();
        let ticket = Ticket { job, weight, reply, _room: permit, put_off_until: Instant::now() + KEY_WAIT };
        if sender.try_send(ticket).is_err() {
            return Err(Problem::new(Code::ShuttingDown, "This node takes no more writes.").into());
        }
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Err(Fault::Bug("a lane dropped a job".to_owned()).into()),
            Err(_) => Err(unknown_outcome().into()),
        }
    }

    /// How much waits in the queues and in the lanes: the weights of all jobs that are not answered yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let room = usize::try_from(self.max_weight).unwrap_or(usize::MAX);
        self.lanes.iter().map(|(_, free)| room.saturating_sub(free.available_permits())).sum()
    }

    /// Takes no more jobs, finishes those that are queued, and returns when the lanes have stopped.
    pub async fn drain(&self) {
        self.closing.cancel();
        self.tasks.wait().await;
    }
}

/// A lane: takes batches until the queue is closed and empty.
async fn work(mut lane: Lane, mut queue: mpsc::Receiver<Ticket>, max_weight: u32, closing: CancellationToken) {
    // Opened ahead of the first job; a failure shows again with the job, where it is answered.
    lane.warm_up().await;
    let mut waiting = VecDeque::new();
    let mut resting = Resting { tickets: Vec::new(), until: Instant::now() };
    loop {
        let closed = take(&mut queue, &mut waiting, &mut resting, max_weight, &closing).await;
        if waiting.is_empty() && resting.tickets.is_empty() && closed {
            break;
        }
        let batch = pick(&mut waiting, max_weight);
        // A panic outside of a rule (which is caught where it runs) costs its batch, not the lane.
        let put_off = AssertUnwindSafe(run(&mut lane, batch)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("a lane panicked; it goes on with a new connection");
            lane.reset();
            Vec::new()
        });
        if !put_off.is_empty() {
            resting.tickets.extend(put_off);
            resting.until = Instant::now() + KEY_PAUSE;
        }
    }
}

/// Jobs whose idempotency key was taken elsewhere: they rest while the others go on.
struct Resting {
    tickets: Vec<Ticket>,
    until: Instant,
}

/// Fills `waiting` with what the queue holds; waits only while there is nothing at all. Returns whether the queue is closed and empty.
async fn take(
    queue: &mut mpsc::Receiver<Ticket>,
    waiting: &mut VecDeque<Ticket>,
    resting: &mut Resting,
    max_weight: u32,
    closing: &CancellationToken,
) -> bool {
    if closing.is_cancelled() {
        queue.close();
    }
    if waiting.is_empty() {
        tokio::select! {
            Some(ticket) = queue.recv() => waiting.push_back(ticket),
            () = tokio::time::sleep_until(resting.until), if !resting.tickets.is_empty() => {}
            () = closing.cancelled(), if !queue.is_closed() => queue.close(),
            else => return true,
        }
    }
    if Instant::now() >= resting.until {
        waiting.extend(resting.tickets.drain(..));
    }
    let mut weight: u32 = waiting.iter().map(|ticket| ticket.weight).sum();
    while weight < max_weight {
        match queue.try_recv() {
            Ok(ticket) => {
                weight = weight.saturating_add(ticket.weight);
                waiting.push_back(ticket);
            }
            Err(mpsc::error::TryRecvError::Empty) => return false,
            Err(mpsc::error::TryRecvError::Disconnected) => return true,
        }
    }
    false
}

/// The next batch: in order, up to the bounds on weight and keys, but always at least one job. A caller that is gone is passed over.
fn pick(waiting: &mut VecDeque<Ticket>, max_weight: u32) -> Vec<Ticket> {
    let (mut batch, mut weight, mut keys) = (Vec::new(), 0_u32, 0);
    while let Some(ticket) = waiting.pop_front() {
        if ticket.reply.is_closed() {
            continue;
        }
        let keyed = usize::from(ticket.job.key.is_some());
        let over = weight.saturating_add(ticket.weight) > max_weight || keys + keyed > MAX_KEYS_PER_BATCH;
        if over && !batch.is_empty() {
            waiting.push_front(ticket);
            break;
        }
        weight = weight.saturating_add(ticket.weight);
        keys += keyed;
        batch.push(ticket);
    }
    batch
}

/// Commits a batch, and answers its callers; returns the tickets that were put off. What the store refuses is split in halves until the one
/// at fault stands alone.
async fn run(lane: &mut Lane, batch: Vec<Ticket>) -> Vec<Ticket> {
    let (mut put_off, mut todo) = (Vec::new(), vec![batch]);
    while let Some(mut batch) = todo.pop() {
        if batch.is_empty() {
            continue;
        }
        let jobs: Vec<Job> = batch.iter().map(|ticket| ticket.job.clone()).collect();
        match with_retries(lane, &jobs).await {
            Ok(outcomes) => {
                for (ticket, outcome) in batch.into_iter().zip(outcomes) {
                    settle(ticket, outcome, &mut put_off);
                }
            }
            Err(Failure::Store(error)) if batch.len() > 1 && !crate::db::is_outage(&error) => {
                tracing::warn!(%error, jobs = batch.len(), "splitting a batch that the database refused");
                metrics::counter!("headmark_lane_splits_total").increment(1);
                let second = batch.split_off(batch.len() / 2);
                todo.push(second);
                todo.push(batch);
            }
            Err(failure) => {
                tracing::error!(?failure, jobs = batch.len(), "a batch failed");
                for ticket in batch {
                    answer(ticket, Err(failure.answer()));
                }
            }
        }
    }
    put_off
}

/// Tries a batch until it is committed, or until trying again at once makes no sense.
async fn with_retries(lane: &mut Lane, jobs: &[Job]) -> Result<Vec<Outcome>, Failure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let failure = match lane.attempt(jobs).await {
            Ok(outcomes) => return Ok(outcomes),
            Err(failure) => failure,
        };
        let again = match &failure {
            Failure::Store(error) => is_transient(error) || (crate::db::is_outage(error) && lane.lost_connection()),
            Failure::TooSlow | Failure::NotCommitted => true,
            Failure::CacheAway(error) => {
                tracing::warn!(%error, "the cache cannot be touched");
                lane.engines().guard.enter_bypass().await.is_ok()
            }
            Failure::NotHolder | Failure::Unknown => false,
        };
        if !again || tries >= MAX_TRIES {
            return Err(failure);
        }
        metrics::counter!("headmark_lane_retries_total").increment(1);
        tokio::time::sleep(Duration::from_millis(u64::from(tries) * 5)).await;
    }
}

fn settle(ticket: Ticket, outcome: Outcome, put_off: &mut Vec<Ticket>) {
    match outcome {
        Outcome::Answered(verdict) => answer(ticket, verdict),
        Outcome::KeyTaken if Instant::now() < ticket.put_off_until => put_off.push(ticket),
        Outcome::KeyTaken => {
            let detail = "A request with this Idempotency-Key is still running; try again shortly.";
            answer(ticket, Err(Problem::new(Code::IdempotencyInProgress, detail).into()));
        }
    }
}

fn answer(ticket: Ticket, verdict: Result<Answer, Error>) {
    // A caller who hung up is not waiting: the write stays.
    let _ = ticket.reply.send(verdict);
}
