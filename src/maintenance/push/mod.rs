//! What tells services of changes of users' numbers that are no write to the users' rows
//! (`crate::features::push` says which, and has the commands).
//!
//! `follow.rs` makes jobs of what happened, `walk.rs` does them in pages, `ended.rs` has the users
//! for whom a level or a mute has ended. All that they know is in tables, so what happened while no
//! node ran is made up for when one starts.

mod context;
mod ended;
mod follow;
mod walk;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::context::PushContext;
use self::ended::Turns;
use self::follow::Follower;
use self::walk::Walker;
use crate::engine::guard::Trust;

/// How often causes become jobs. However many messages a group gets meanwhile, they make one.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// How often a node looks for jobs, and for users for whom something has ended.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until told to stop.
pub(crate) async fn run(state: Arc<PushContext>, stop: CancellationToken) {
    tokio::join!(follow(&state, &stop), walk(&state, &stop));
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

async fn follow(state: &PushContext, stop: &CancellationToken) {
    let mut follower = Follower::default();
    while !rest(FOLLOW_EVERY, stop).await {
        while state.guard.trust() != Trust::Unsure && !stop.is_cancelled() {
            match follower.round(state).await {
                Ok(true) => {}
                Ok(false) => break,
                // Nothing is lost: it goes on from where it was.
                Err(error) => {
                    tracing::debug!(%error, "cannot read along for push devices yet");
                    break;
                }
            }
        }
    }
}

async fn walk(state: &PushContext, stop: &CancellationToken) {
    let (mut walker, mut turns) = (Walker::default(), Turns::default());
    while !rest(pause(!walker.is_idle() || turns.is_under_way(), state.guard.trust()), stop).await {
        if state.guard.trust() == Trust::Unsure {
            continue;
        }
        // Neither waits for the other where that cannot go on.
        let (walked, told) = (walker.round(state, stop).await, turns.round(state).await);
        if let Err(error) = walked.and(told) {
            tracing::debug!(?error, "could not tell of changed numbers; it is tried again");
            if rest(PAUSE, stop).await {
                return;
            }
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
