//! What tells services of changes of users' numbers that are no write to the users' rows
//! (`crate::features::push` says which, and has the commands).
//!
//! `follow.rs` makes jobs of what happened, `walk.rs` does them in pages, `ended.rs` has the users
//! for whom a level or a mute has ended. All that they know is in tables, so what happened while no
//! node ran is made up for when one starts. What is due and not told is measured, as it makes no noise.

mod context;
mod ended;
mod follow;
mod walk;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::context::PushContext;
use self::ended::Turns;
use self::follow::Follower;
use self::walk::Walker;
use crate::base::clock::UnixMs;
use crate::base::failures::Failures;
use crate::engine::guard::Trust;
use crate::features::push::store;
use crate::maintenance::oldest::Oldest;

/// How often causes become jobs. However many messages a group gets meanwhile, they make one.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// How often a node looks for jobs, and for users for whom something has ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// How many failures in a row are told, and how many more after that: each is followed by a rest of a second.
const TOLD_EACH: u32 = 30;

/// Runs until told to stop.
pub(crate) async fn run(state: Arc<PushContext>, stop: CancellationToken) {
    let (fails_since, failing) = watch::channel(None);
    tokio::join!(follow(&state, &fails_since, &stop), walk(&state, &failing, &stop));
}

/// Whether it was told to stop meanwhile.
async fn rest(pause: Duration, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => true,
        () = tokio::time::sleep(pause) => false,
    }
}

/// The pause before the next look: none where there is more to do and the database answers.
fn pause(has_more: bool, trust: Trust) -> Duration {
    if has_more && trust != Trust::Unsure { Duration::ZERO } else { LOOK_EVERY }
}

/// What became of a try of one part of the work; whether it has failed.
fn note<T, E: Debug>(failures: &mut Failures<&'static str>, part: &'static str, outcome: &Result<T, E>) -> bool {
    if let Err(error) = outcome {
        tracing::debug!(part, ?error, "could not tell of changed numbers; it is tried again");
    }
    if let Some(failures) = failures.note(&part, outcome.is_err(), Instant::now()) {
        // Without the error: what a database says may quote contents.
        tracing::warn!(part, failures, "telling of changed numbers fails each time; it is tried again");
    }
    outcome.is_err()
}

/// Makes jobs of events. A failure leaves no job that could be late, so it publishes the time of the first failure.
async fn follow(state: &PushContext, fails_since: &watch::Sender<Option<UnixMs>>, stop: &CancellationToken) {
    let (mut follower, mut failures) = (Follower::default(), Failures::new(TOLD_EACH));
    while !rest(FOLLOW_EVERY, stop).await {
        while state.guard.trust() != Trust::Unsure && !stop.is_cancelled() {
            let outcome = follower.round(state).await;
            // Nothing is lost: it goes on from where it was.
            let has_failed = note(&mut failures, "events", &outcome);
            let now = state.clock.now();
            fails_since.send_modify(|since| *since = has_failed.then_some(since.unwrap_or(now)));
            if !matches!(outcome, Ok(true)) {
                break;
            }
        }
    }
}

async fn walk(state: &PushContext, failing: &watch::Receiver<Option<UnixMs>>, stop: &CancellationToken) {
    let (mut walker, mut turns) = (Walker::default(), Turns::default());
    let (mut failures, mut oldest) = (Failures::new(TOLD_EACH), Oldest::new("headmark_unread_jobs_oldest_seconds"));
    while !rest(pause(!walker.is_idle() || turns.is_under_way(), state.guard.trust()), stop).await {
        if state.guard.trust() == Trust::Unsure {
            continue;
        }
        let fails_since = *failing.borrow();
        let look = async { store::first_due(&state.db).await.map(|due| due.into_iter().chain(fails_since).min()) };
        oldest.measure(&state.clock, look).await;
        // Neither waits for the other where that cannot go on.
        let (walked, told) = (walker.round(state, stop).await, turns.round(state).await);
        let has_failed = [("jobs", walked), ("turns", told)].map(|(part, outcome)| note(&mut failures, part, &outcome));
        if has_failed.contains(&true) && rest(PAUSE, stop).await {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_hand_rests_while_the_database_is_away() {
        assert_eq!([Trust::Full, Trust::Bypass].map(|trust| pause(true, trust)), [Duration::ZERO; 2]);
        assert_eq!(pause(true, Trust::Unsure), LOOK_EVERY);
        assert_eq!([Trust::Full, Trust::Bypass, Trust::Unsure].map(|trust| pause(false, trust)), [LOOK_EVERY; 3]);
    }
}
