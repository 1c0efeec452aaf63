//! One batch, whole or in parts: tried again, halved, or set aside, until each of its jobs is
//! answered.
//!
//! What is done about a failure follows from its class alone; the table is in
//! `docs/subsystems/database.md` (Errors of the database).

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::failure::{CACHE_PATIENCE, CACHE_PAUSE, Failure, Outcome};
use super::finish::{Committed, Finisher};
use super::lane::Lane;
use super::pace::Pace;
use super::ticket::Ticket;
use super::{Job, Verdict};
use crate::base::error::{Code, Problem};
use crate::db::{ErrorClass, classify};

/// How often a batch is tried again after a deadlock or the like, before it is halved.
const MAX_TRIES: u32 = 4;

/// How long a batch is worked on without any part of it being committed. Then the database, not the
/// batch, is the trouble, and what is left of the batch is refused.
const NO_PROGRESS: Duration = Duration::from_secs(10);

/// How long a put-off command rests before it is tried again.
pub(super) const KEY_PAUSE: Duration = Duration::from_millis(20);

/// What is left of a batch.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Jobs whose idempotency key a transaction elsewhere holds.
    pub(super) put_off: Vec<Ticket>,
    /// Jobs that met a lock, were in one transaction with a job that did, or come later than such a one of
    /// their key; those of one key in their order.
    pub(super) locked: Vec<Ticket>,
}

impl Left {
    /// Of the next part of a batch, the jobs whose key has one that is set aside are set aside too: they must not
    /// overtake it. Returns the others.
    fn stay_behind(&mut self, part: Vec<Ticket>) -> Vec<Ticket> {
        // Nearly always.
        if self.locked.is_empty() {
            return part;
        }
        let keys: HashSet<_> = self.locked.iter().map(Ticket::key).collect();
        let (behind, others): (Vec<_>, Vec<_>) = part.into_iter().partition(|ticket| keys.contains(&ticket.key()));
        self.locked.extend(behind);
        others
    }
}

/// What is done about a failure.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    /// The batch is at fault, or too large.
    Halve,
    /// Somebody holds a lock.
    SetAside,
    /// These jobs are answered with the failure.
    Answer,
    /// The store is at fault: all that is left of the batch is answered with the failure.
    AnswerAll,
}

impl Remedy {
    fn of(failure: &Failure, jobs: usize, sets_aside: bool) -> Self {
        let halve = if jobs > 1 { Self::Halve } else { Self::Answer };
        match failure {
            Failure::TooSlow => halve,
            Failure::Store(error) => match classify(error) {
                ErrorClass::Locked if sets_aside => Self::SetAside,
                ErrorClass::Retry | ErrorClass::Split | ErrorClass::Refuse => halve,
                ErrorClass::Locked | ErrorClass::Unknown | ErrorClass::Outage => Self::AnswerAll,
            },
            // The next part may find the database again, and must not be told that it is unknown.
            Failure::Unknown => Self::Answer,
            Failure::NotCommitted | Failure::CacheAway(_) | Failure::NotHolder | Failure::Stale => Self::AnswerAll,
        }
    }
}

/// Commits a batch and has its callers answered. What is left is not answered yet.
pub(super) async fn run(lane: &mut Lane, finisher: &Finisher, pace: &mut Pace, batch: Vec<Ticket>) -> Left {
    let (mut left, mut todo) = (Left::default(), vec![batch]);
    let mut progress = Instant::now();
    while let Some(batch) = todo.pop() {
        let mut batch = left.stay_behind(batch);
        if batch.is_empty() {
            continue;
        }
        let weight = batch.iter().fold(0_u32, |sum, ticket| sum.saturating_add(ticket.weight));
        if weight > pace.weight() && batch.len() > 1 {
            // What was taken before the lane slowed down.
            let second = batch.split_off(batch.len() / 2);
            todo.extend([second, batch]);
            continue;
        }
        let jobs: Vec<Job> = batch.iter().map(|ticket| ticket.job.clone()).collect();
        let failure = match with_retries(lane, &jobs, progress).await {
            Ok((outcomes, committed, time)) => {
                progress = Instant::now();
                pace.took(weight, time);
                let settled = batch.into_iter().zip(outcomes);
                let answers = settled.filter_map(|(ticket, outcome)| settle(ticket, outcome, &mut left.put_off)).collect();
                finisher.finish(committed, answers).await;
                continue;
            }
            Err(failure) => failure,
        };
        let too_slow = is_too_slow(&failure);
        if too_slow {
            pace.was_too_slow(weight);
            metrics::counter!("headmark_lane_slow_batches_total").increment(1);
        }
        let remedy = match Remedy::of(&failure, batch.len(), lane.sets_aside()) {
            Remedy::Halve if progress.elapsed() > NO_PROGRESS => Remedy::AnswerAll,
            remedy => remedy,
        };
        match remedy {
            Remedy::Halve => {
                if !too_slow {
                    tracing::warn!(?failure, jobs = batch.len(), "splitting a batch that the database refused");
                    metrics::counter!("headmark_lane_splits_total").increment(1);
                }
                let second = batch.split_off(batch.len() / 2);
                todo.extend([second, batch]);
            }
            Remedy::SetAside => left.locked.extend(batch),
            Remedy::Answer => refuse(batch, &failure),
            Remedy::AnswerAll => {
                refuse(batch, &failure);
                todo.drain(..).for_each(|batch| refuse(batch, &failure));
            }
        }
    }
    left
}

fn is_too_slow(failure: &Failure) -> bool {
    match failure {
        Failure::TooSlow => true,
        Failure::Store(error) => classify(error) == ErrorClass::Split,
        _ => false,
    }
}

/// Tries a batch until it is committed, or until trying the same again at once makes no sense: one that is too
/// slow, so long after the last progress. Returns how long the last try took, too.
async fn with_retries(lane: &mut Lane, jobs: &[Job], progress: Instant) -> Result<(Vec<Outcome>, Committed, Duration), Failure> {
    let (mut tries, mut away_since) = (0, None);
    loop {
        tries += 1;
        let began = Instant::now();
        let failure = match lane.attempt(jobs).await {
            Ok((outcomes, committed)) => return Ok((outcomes, committed, began.elapsed())),
            Err(failure) => failure,
        };
        let again = match &failure {
            Failure::CacheAway(error) => {
                if away_since.get_or_insert_with(Instant::now).elapsed() < CACHE_PATIENCE {
                    tracing::debug!(%error, "a cache write cannot begin; trying again");
                    tokio::time::sleep(CACHE_PAUSE).await;
                    tries -= 1;
                    continue;
                }
                tracing::warn!(%error, "a cache write cannot begin");
                lane.engines().guard.enter_bypass().await.is_ok()
            }
            failure => may_pass(failure, jobs.len(), lane.sets_aside(), progress.elapsed()),
        };
        if !again || tries >= MAX_TRIES {
            return Err(failure);
        }
        metrics::counter!("headmark_lane_retries_total").increment(1);
        tokio::time::sleep(Duration::from_millis(u64::from(tries) * 5)).await;
    }
}

/// Whether so many jobs may succeed when they are tried again at once, so long after the last progress.
fn may_pass(failure: &Failure, jobs: usize, sets_aside: bool, without_progress: Duration) -> bool {
    // Alone it cannot be made smaller.
    let slow_again = jobs == 1 && without_progress < NO_PROGRESS;
    match failure {
        Failure::Store(error) => match classify(error) {
            ErrorClass::Retry | ErrorClass::Unknown | ErrorClass::Outage => true,
            ErrorClass::Locked => !sets_aside,
            ErrorClass::Split => slow_again,
            ErrorClass::Refuse => false,
        },
        Failure::TooSlow => slow_again,
        Failure::NotCommitted | Failure::Stale => true,
        Failure::CacheAway(_) | Failure::NotHolder | Failure::Unknown => false,
    }
}

fn refuse(batch: Vec<Ticket>, failure: &Failure) {
    tracing::error!(?failure, jobs = batch.len(), "a batch failed");
    for ticket in batch {
        ticket.answer(Err(failure.answer()));
    }
}

/// The answer to a job, unless it is put off.
fn settle(ticket: Ticket, outcome: Outcome, put_off: &mut Vec<Ticket>) -> Option<(Ticket, Verdict)> {
    match outcome {
        Outcome::Answered(verdict) => Some((ticket, verdict)),
        Outcome::KeyTaken if Instant::now() < ticket.put_off_until => {
            put_off.push(ticket);
            None
        }
        Outcome::KeyTaken => {
            let detail = "A request with this Idempotency-Key is still running. Try again shortly.";
            Some((ticket, Err(Problem::new(Code::IdempotencyInProgress, detail).into())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{Semaphore, oneshot};

    use super::super::{Answer, Command, Names, Needs, Rows};
    use super::*;
    use crate::base::clock::UnixMs;

    /// A command with this lane key.
    #[derive(Debug)]
    struct Of(i64);

    impl Command for Of {
        fn needs(&self, _: &mut Needs) {}

        fn lane_key(&self) -> i64 {
            self.0
        }

        fn names(&self) -> Names {
            Vec::new()
        }

        fn apply(&self, _: &mut Rows, _: UnixMs) -> Result<Answer, Problem> {
            Ok(Answer::no_content())
        }
    }

    /// Jobs by key and weight. By their weights they can be told apart.
    fn tickets<const N: usize>(jobs: [(i64, u32); N]) -> Vec<Ticket> {
        let now = Instant::now();
        let ticket = |(key, weight)| Ticket {
            job: Job { command: Arc::new(Of(key)), key: None },
            weight,
            reply: oneshot::channel().0,
            _room: Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap(),
            _turns: (None, None),
            put_off_until: now,
            set_aside_until: now,
            place: None,
        };
        jobs.map(ticket).into()
    }

    #[test]
    fn jobs_stay_behind_those_of_their_key_that_are_set_aside() {
        let told = |tickets: &[Ticket]| tickets.iter().map(|ticket| (ticket.key(), ticket.weight)).collect::<Vec<_>>();
        let mut left = Left { put_off: Vec::new(), locked: tickets([(1, 1), (3, 2)]) };
        let others = left.stay_behind(tickets([(2, 3), (1, 4), (3, 5), (2, 6), (1, 7)]));
        assert_eq!(told(&others), [(2, 3), (2, 6)]);
        assert_eq!(told(&left.locked), [(1, 1), (3, 2), (1, 4), (3, 5), (1, 7)]);
        let mut none = Left::default();
        assert_eq!(told(&none.stay_behind(tickets([(1, 1), (2, 2)]))), [(1, 1), (2, 2)]);
        assert!(none.locked.is_empty());
    }

    #[test]
    fn what_is_too_slow_is_tried_again_only_alone_and_for_ten_seconds() {
        let again = |jobs, seconds| may_pass(&Failure::TooSlow, jobs, true, Duration::from_secs(seconds));
        assert_eq!([again(1, 0), again(1, 9), again(1, 10), again(2, 0)], [true, true, false, false]);
        assert!(may_pass(&Failure::NotCommitted, 2, true, Duration::from_secs(60)));
    }

    #[test]
    fn what_is_done_follows_from_the_failure() {
        let of = |failure: &Failure, jobs| Remedy::of(failure, jobs, true);
        let store = |error| Failure::Store(error);
        assert_eq!(of(&Failure::TooSlow, 2), Remedy::Halve);
        assert_eq!(of(&Failure::TooSlow, 1), Remedy::Answer);
        assert_eq!(of(&store(sqlx::Error::RowNotFound), 2), Remedy::Halve, "refused");
        assert_eq!(of(&store(sqlx::Error::RowNotFound), 1), Remedy::Answer);
        assert_eq!(of(&store(sqlx::Error::PoolTimedOut), 2), Remedy::AnswerAll, "an outage is not the batch's fault");
        assert_eq!(of(&store(sqlx::Error::WorkerCrashed), 2), Remedy::AnswerAll);
        assert_eq!(of(&Failure::Unknown, 2), Remedy::Answer);
        assert_eq!(of(&Failure::NotHolder, 2), Remedy::AnswerAll);
    }
}
