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

use super::aside::Aside;
use super::batch::{self, KEY_PAUSE, Left};
use super::finish::Finisher;
use super::known_users::KnownUsers;
use super::lane::Lane;
use super::local_locks::LocalLocks;
use super::pace::Pace;
use super::ticket::{Reply, Ticket};
use super::{Job, LaneConfig, LaneEngines, Verdict, unknown_outcome};
use crate::base::error::{Code, Error, Fault, Problem};
use crate::db::Owners;
use crate::engine::idempotency::MAX_KEYS_PER_BATCH;
use crate::engine::own_turns::OwnTurns;

/// How long a command waits for an idempotency key that a transaction elsewhere holds.
const KEY_WAIT: Duration = Duration::from_secs(5);

/// What weighs no more than this is never large, however few changes a batch may take: a request of
/// many items, or a page of fan-out.
pub const MIN_LARGE: u32 = 1000;

/// Of one user's own writes of many changes at most this part of a queue's room is in the queues, and so many changes.
const OWN_PART: u32 = 10;
const MAX_OWN_CHANGES: u32 = 1000;

/// How many keys are tried for one of another lane: where they are hashed, half of them have one with two
/// lanes.
const KEYS_TRIED: i64 = 64;

/// The way into a lane.
#[derive(Debug)]
struct Entrance {
    queue: mpsc::Sender<Ticket>,
    /// Changes for which there is room in the queue.
    room: Arc<Semaphore>,
    /// Held by the one large job that may be in the queue or in the lane: so small ones wait for
    /// one large one at most.
    large: Arc<Semaphore>,
    /// Places for large jobs that wait for their turn.
    large_waiting: Semaphore,
}

/// A job that is queued. It may be passed over where this is dropped before its turn.
#[derive(Debug)]
pub struct Queued {
    answer: oneshot::Receiver<Reply>,
    give_up: Instant,
}

impl Queued {
    /// Waits for the answer, which means that the job is durable.
    ///
    /// # Errors
    /// The command's own problem; 503 when a store is away, or the answer took too long.
    pub async fn answer(self) -> Verdict {
        match tokio::time::timeout_at(self.give_up, self.answer).await {
            Ok(Ok(Reply { verdict, not_before })) => {
                // Here, not in the lane: the lane goes on with the next batch.
                if let Some(not_before) = not_before {
                    tokio::time::sleep_until(not_before).await;
                }
                verdict
            }
            Ok(Err(_)) => Err(Fault::Bug("a lane dropped a job".to_owned()).into()),
            Err(_) => Err(unknown_outcome().into()),
        }
    }
}

/// The front of the write path. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Lanes {
    lanes: Arc<Vec<Entrance>>,
    own_turns: Arc<OwnTurns>,
    owners: Owners,
    closing: CancellationToken,
    tasks: TaskTracker,
    /// How many tasks there are while no lane has failed.
    started: usize,
    timeout: Duration,
    max_weight: u32,
    /// A job that weighs more is large.
    max_small: u32,
}

impl Lanes {
    /// Starts the lanes.
    #[must_use]
    pub fn start(config: &LaneConfig, engines: &LaneEngines) -> Self {
        let count = if engines.db.is_shared() { config.lanes } else { 1 };
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let first_slot = i64::from(rand::rng().random::<u32>());
        let lock_wait = Duration::from_millis(config.lock_timeout_ms);
        // So that their rates can be shown from the first one on.
        metrics::counter!("headmark_lane_stale_batches_total").increment(0);
        metrics::counter!("headmark_lane_local_lock_timeouts_total").increment(0);
        let known = KnownUsers::new(config.lane_copies_mib << 20);
        let locks = (count > 1).then(LocalLocks::default);
        let lane = |place: u32, locks| Lane::new(engines.clone(), known.clone(), locks, first_slot + i64::from(place), lock_wait);
        let lanes = (0..count)
            .map(|place| {
                let (sender, receiver) = mpsc::channel(usize::try_from(config.lane_queue).unwrap_or(usize::MAX));
                let room = Arc::new(Semaphore::new(usize::try_from(config.lane_queue).unwrap_or(usize::MAX)));
                let finisher = || Finisher::start(engines.clone(), &tasks);
                let aside = Aside::start(lane(count + place, None), finisher(), config.lane_batch, config.lane_aside, &tasks);
                tasks.spawn(work(lane(place, locks.clone()), finisher(), aside, receiver, config.lane_batch, closing.clone()));
                let large = Arc::new(Semaphore::new(1));
                let large_waiting = Semaphore::new(usize::try_from(config.lane_large_queue).unwrap_or(usize::MAX));
                Entrance { queue: sender, room, large, large_waiting }
            })
            .collect();
        tasks.close();
        let started = tasks.len();
        let timeout = Duration::from_millis(config.write_timeout_ms);
        Self {
            lanes: Arc::new(lanes),
            own_turns: Arc::new(OwnTurns::new((config.lane_queue / OWN_PART).clamp(1, MAX_OWN_CHANGES))),
            owners: engines.owners.clone(),
            closing,
            tasks,
            started,
            timeout,
            max_weight: config.lane_queue,
            max_small: config.lane_batch.max(MIN_LARGE),
        }
    }

    /// Queues a job and waits for its answer, which means that it is durable.
    ///
    /// # Errors
    /// The command's own problem; 503 when the queue is full, the server shuts down, a store is
    /// away, or the answer took too long.
    pub async fn submit(&self, job: Job) -> Verdict {
        self.queue(job).await?.answer().await
    }

    /// Queues a job behind the earlier ones of its key, and does not wait for its answer: so a caller
    /// with several jobs can queue the next one while the first is under way.
    ///
    /// # Errors
    /// 503 when the queue is full or the server shuts down.
    pub async fn queue(&self, job: Job) -> Result<Queued, Error> {
        let index = self.owners.lane(job.command.lane_key(), self.lanes.len());
        let Some(entrance) = self.lanes.get(index) else {
            return Err(Fault::Bug("there are no lanes".to_owned()).into());
        };
        if self.closing.is_cancelled() {
            return Err(Problem::new(Code::ShuttingDown, "This node is shutting down and accepts no more writes.").into());
        }
        let weight = job.command.weight().clamp(1, self.max_weight);
        // At most half of the room: all of it is never free while anything is under way.
        let room = weight.min(self.max_weight / 2);
        let give_up = Instant::now() + self.timeout;
        // The user's own first: so one user's writes do not wait in the places for large ones.
        let own_turn = match job.command.by_user() {
            Some(user) => Some(self.own_turns.take(user, weight, give_up).await.ok_or_else(busy)?),
            None => None,
        };
        let turn = if weight > self.max_small { Some(large_turn(entrance, give_up).await.ok_or_else(overloaded)?) } else { None };
        let room = Arc::clone(&entrance.room).try_acquire_many_owned(room).map_err(|_| overloaded())?;
        let (reply, answer) = oneshot::channel();
        let now = Instant::now();
        let (put_off_until, set_aside_until) = (now + KEY_WAIT, now + give_up.saturating_duration_since(now) * 2 / 3);
        let ticket = Ticket { job, weight, reply, _room: room, _turns: (own_turn, turn), put_off_until, set_aside_until, place: None };
        if entrance.queue.try_send(ticket).is_err() {
            return Err(Problem::new(Code::ShuttingDown, "This node is shutting down and accepts no more writes. Try another node.").into());
        }
        Ok(Queued { answer, give_up })
    }

    /// A key whose commands go through another lane than those of this one, if there is one.
    #[must_use]
    pub fn key_of_another(&self, key: i64) -> Option<i64> {
        let lane = |key| self.owners.lane(key, self.lanes.len());
        (1..=KEYS_TRIED).map(|step| key.wrapping_add(step)).find(|other| lane(*other) != lane(key))
    }

    /// How much waits in the queues and in the lanes: the weights of all jobs that are not answered
    /// yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let room = usize::try_from(self.max_weight).unwrap_or(usize::MAX);
        self.lanes.iter().map(|entrance| room.saturating_sub(entrance.room.available_permits())).sum()
    }

    /// Whether a lane has ended though the node is not stopping. Its writes fail until the node is
    /// restarted.
    #[must_use]
    pub fn have_failed(&self) -> bool {
        !self.closing.is_cancelled() && self.tasks.len() < self.started
    }

    /// Takes no more jobs, finishes those that are queued, and returns when the lanes have stopped.
    pub async fn drain(&self) {
        self.closing.cancel();
        self.tasks.wait().await;
    }
}

/// Waits until it is a large job's turn, first come, first served; None where too many wait
/// already, or the time is over.
async fn large_turn(entrance: &Entrance, give_up: Instant) -> Option<OwnedSemaphorePermit> {
    if let Ok(turn) = Arc::clone(&entrance.large).try_acquire_owned() {
        return Some(turn);
    }
    let _waiting = entrance.large_waiting.try_acquire().ok()?;
    tokio::time::timeout_at(give_up, Arc::clone(&entrance.large).acquire_owned()).await.ok()?.ok()
}

fn busy() -> Error {
    metrics::counter!("headmark_lane_own_turn_timeouts_total").increment(1);
    Problem::new(Code::RateLimited, "Other large writes of this user are under way. Try again when one completes.").into()
}

fn overloaded() -> Error {
    metrics::counter!("headmark_lane_refused_total").increment(1);
    Problem::new(Code::Overloaded, "Too many writes are waiting. Try again shortly.").into()
}

/// A lane: takes batches until the queue is closed and empty.
async fn work(
    mut lane: Lane,
    finisher: Finisher,
    aside: Aside,
    mut queue: mpsc::Receiver<Ticket>,
    max_weight: u32,
    closing: CancellationToken,
) {
    let mut pace = Pace::new(max_weight);
    // Opened ahead of the first job; a failure shows again with the job, where it is answered.
    lane.warm_up().await;
    let mut waiting = VecDeque::new();
    let mut resting = Resting { tickets: Vec::new(), until: Instant::now() };
    loop {
        let closed = take(&mut queue, &mut waiting, &mut resting, max_weight, &closing).await;
        if waiting.is_empty() && resting.tickets.is_empty() && closed {
            break;
        }
        let batch = pick(&mut waiting, pace.weight(), &aside);
        let changes = batch.iter().fold(0, |sum: u32, ticket| sum.saturating_add(ticket.weight));
        crate::failpoint("lane::outside_of_a_batch");
        // A panic outside of a rule (which is caught where it runs) costs its batch, not the lane.
        let left = AssertUnwindSafe(batch::run(&mut lane, &finisher, &mut pace, batch)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("a lane panicked; it goes on with a new connection");
            lane.reset();
            Left::default()
        });
        lane.shorten_log(changes).await;
        left.locked.into_iter().for_each(|ticket| aside.put(ticket));
        if !left.put_off.is_empty() {
            resting.tickets.extend(left.put_off);
            resting.until = Instant::now() + KEY_PAUSE;
        }
    }
    lane.disconnect().await;
}

/// Jobs whose idempotency key was taken elsewhere: they rest while the others go on.
struct Resting {
    tickets: Vec<Ticket>,
    until: Instant,
}

/// Fills `waiting` with what the queue holds; waits only while there is nothing at all. Returns
/// whether the queue is closed and empty.
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

/// The next batch: in order, up to the bounds on weight and keys, but always at least one job. A
/// caller that is gone is passed over. What must stay behind jobs that are set aside goes there.
fn pick(waiting: &mut VecDeque<Ticket>, max_weight: u32, aside: &Aside) -> Vec<Ticket> {
    let (mut batch, mut weight, mut keys) = (Vec::new(), 0_u32, 0);
    while let Some(ticket) = waiting.pop_front() {
        if ticket.is_abandoned() {
            continue;
        }
        if aside.holds(ticket.key()) {
            aside.put(ticket);
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
