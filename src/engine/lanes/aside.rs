//! Jobs that met a lock, apart from their lane, which goes on with the others.
//!
//! A batch that meets a lock (`HEADMARK_LOCK_TIMEOUT_MS`) comes here whole. A worker with a
//! connection of its own halves it, with short waits, until the jobs at fault stand alone, and does
//! the others at once. Those at fault are tried in turn until the lock is free or their time is
//! over.
//!
//! The order within a key is kept: whatever comes later for a key that is here comes here too, and
//! waits behind. What is here is bounded (`HEADMARK_LANE_ASIDE`).

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::batch::{self, KEY_PAUSE, Left};
use super::finish::Finisher;
use super::lane::Lane;
use super::pace::Pace;
use super::place::Held;
use super::ticket::Ticket;
use super::unavailable;
use crate::base::error::{Code, Problem};
use crate::engine::idempotency::MAX_KEYS_PER_BATCH;

/// How long several jobs wait for a lock together, while those at fault are looked for.
const PROBE: Duration = Duration::from_millis(50);

/// How long it takes to try each of the jobs that are known to wait for a lock, one after the
/// other.
const ROUND: Duration = Duration::from_secs(1);

/// How long the connection is kept while nothing is set aside.
const IDLE: Duration = Duration::from_secs(60);

/// The place for what a lane sets aside.
pub(super) struct Aside {
    sender: mpsc::Sender<Ticket>,
    held: Arc<Held>,
}

impl Aside {
    /// Starts the worker, which ends when this is dropped and all is answered.
    pub(super) fn start(lane: Lane, finisher: Finisher, max_batch: u32, max_weight: u32, tasks: &TaskTracker) -> Self {
        // Each job weighs one at least, and one more may come alone.
        let room = usize::try_from(max_weight).unwrap_or(usize::MAX).clamp(1, tokio::sync::Semaphore::MAX_PERMITS - 1) + 1;
        let (sender, receiver) = mpsc::channel(room);
        tasks.spawn(work(lane, finisher, receiver, max_batch));
        Self { sender, held: Arc::new(Held::new(max_weight)) }
    }

    /// Whether jobs of this key are here, so that a later one must wait behind them.
    pub(super) fn holds(&self, key: i64) -> bool {
        self.held.now().keys.contains_key(&key)
    }

    /// Takes a job, or refuses it where there is no room.
    pub(super) fn put(&self, mut ticket: Ticket) {
        ticket.place = self.held.place(ticket.key(), ticket.weight);
        let refused = match ticket.place {
            Some(_) => self.sender.try_send(ticket).err().map(mpsc::error::TrySendError::into_inner),
            None => Some(ticket),
        };
        if let Some(ticket) = refused {
            metrics::counter!("headmark_lane_refused_total").increment(1);
            ticket.answer(Err(Problem::new(Code::Overloaded, "Too many writes are waiting for a lock. Try again shortly.").into()));
        }
    }
}

async fn work(mut lane: Lane, finisher: Finisher, mut queue: mpsc::Receiver<Ticket>, max_batch: u32) {
    let (mut waiting, mut pace) = (Waiting::default(), Pace::new(max_batch));
    loop {
        if waiting.is_empty() {
            let first = match tokio::time::timeout(IDLE, queue.recv()).await {
                Ok(first) => first,
                Err(_) => {
                    lane.disconnect().await;
                    queue.recv().await
                }
            };
            let Some(first) = first else { return lane.disconnect().await };
            waiting.add(first);
        }
        while let Ok(ticket) = queue.try_recv() {
            waiting.add(ticket);
        }
        let Some((group, batch)) = waiting.next(pace.weight()) else { continue };
        lane.wait_for_locks(waiting.turn(&batch));
        let left = AssertUnwindSafe(batch::run(&mut lane, &finisher, &mut pace, batch)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!("a lane panicked over what is set aside; it goes on with a new connection");
            lane.reset();
            Left::default()
        });
        let rests = !left.put_off.is_empty();
        waiting.put_back(group, left);
        if rests {
            tokio::time::sleep(KEY_PAUSE).await;
        }
    }
}

/// Jobs by key, and the keys in groups that are tried together.
#[derive(Default)]
struct Waiting {
    queues: HashMap<i64, VecDeque<Ticket>>,
    /// Each key is in one group, or fresh.
    groups: VecDeque<Group>,
    /// Keys that were not tried yet.
    fresh: Vec<i64>,
}

struct Group {
    keys: Vec<i64>,
    /// How many jobs of each key are tried at once.
    most: usize,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    fn add(&mut self, ticket: Ticket) {
        let key = ticket.key();
        let queue = self.queues.entry(key).or_insert_with(|| {
            self.fresh.push(key);
            VecDeque::new()
        });
        queue.push_back(ticket);
    }

    /// How long the next jobs wait for their lock: one that stands alone has its part of the round,
    /// and no more than what is left of its time.
    fn turn(&self, batch: &[Ticket]) -> Duration {
        let [alone] = batch else { return PROBE };
        let groups = u32::try_from(self.groups.len() + 1).unwrap_or(u32::MAX);
        let left = alone.set_aside_until.saturating_duration_since(Instant::now());
        (ROUND / groups).min(left).max(PROBE)
    }

    /// The next group, with its next jobs up to this weight, and the bound on keys, but one at
    /// least. None where nothing of it is left to do.
    fn next(&mut self, max_weight: u32) -> Option<(Group, Vec<Ticket>)> {
        if !self.fresh.is_empty() {
            let keys = std::mem::take(&mut self.fresh);
            self.groups.push_front(Group { keys, most: usize::MAX });
        }
        let group = self.groups.pop_front()?;
        let (mut batch, mut weight, mut keyed, now) = (Vec::new(), 0_u32, 0, Instant::now());
        for key in &group.keys {
            let Some(queue) = self.queues.get_mut(key) else { continue };
            let mut taken = 0;
            while taken < group.most
                && let Some(ticket) = queue.pop_front()
            {
                if ticket.is_abandoned() {
                    continue;
                }
                if ticket.set_aside_until <= now {
                    ticket.answer(Err(unavailable()));
                    continue;
                }
                let has_key = usize::from(ticket.job.key.is_some());
                let over = weight.saturating_add(ticket.weight) > max_weight || keyed + has_key > MAX_KEYS_PER_BATCH;
                if over && !batch.is_empty() {
                    queue.push_front(ticket);
                    break;
                }
                weight = weight.saturating_add(ticket.weight);
                keyed += has_key;
                taken += 1;
                batch.push(ticket);
            }
        }
        if batch.is_empty() {
            self.put_back(group, Left::default());
            return None;
        }
        Some((group, batch))
    }

    /// Puts back what is left of a group, and decides how it is tried next.
    fn put_back(&mut self, group: Group, left: Left) {
        let locked = left.locked.len();
        for ticket in left.put_off.into_iter().chain(left.locked).rev() {
            self.queues.entry(ticket.key()).or_default().push_front(ticket);
        }
        let Group { mut keys, most } = group;
        keys.retain(|key| {
            let is_over = self.queues.get(key).is_none_or(VecDeque::is_empty);
            if is_over {
                self.queues.remove(key);
            }
            !is_over
        });
        match (locked, keys.len()) {
            (_, 0) => {}
            // It went well. What is left of it may be tried in larger parts again.
            (0, _) => self.groups.push_back(Group { keys, most: most.saturating_mul(2) }),
            // This one stands alone: its lock is not free.
            (1, 1) => self.groups.push_back(Group { keys, most: 1 }),
            (_, 1) => self.groups.push_front(Group { keys, most: locked / 2 }),
            _ => {
                let second = keys.split_off(keys.len() / 2);
                self.groups.push_front(Group { keys: second, most });
                self.groups.push_front(Group { keys, most });
            }
        }
    }
}
