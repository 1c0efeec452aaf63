//! What makes a held poll look again, and how soon.

use std::time::Duration;

use rand::RngExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::base::ids::UserId;
use crate::cache::{Cache, Listener};
use crate::engine::heads::{Changes, Heads};

/// How much later than asked a poll may look, so that many that wait do not come at once.
pub(super) const JITTER_MS: u64 = 250;

/// The same after a post: those are many, and a reminder in the feed is in less of a hurry.
const FEED_JITTER_MS: u64 = 1000;

/// How far apart two looks of a held poll are where others' changes wake it, and how much later the second one may be.
/// Others could otherwise make it read the database as often as they write. A change of the poll's own user does not
/// wait for that.
const OTHERS_APART: Duration = Duration::from_millis(100);
const OTHERS_JITTER_MS: u64 = 100;

/// What makes a waiting poll look again.
#[derive(Debug, Default)]
pub struct Wakers {
    /// A change of the rows of the user whose poll it is. The answer is 410 once the user is erased.
    pub user: Option<UserId>,
    /// The same of another user, of whom the answer tells something.
    pub peer: Option<UserId>,
    /// Whatever this tells of.
    pub also: Option<watch::Receiver<()>>,
    /// Whether the heads that users share do, too.
    pub shared: bool,
}

impl Wakers {
    /// A user's own rows, and the heads that users share.
    #[must_use]
    pub fn of_user(user: UserId) -> Self {
        Self { shared: true, ..Self::of_user_alone(user) }
    }

    /// A user's own rows alone.
    #[must_use]
    pub fn of_user_alone(user: UserId) -> Self {
        Self { user: Some(user), ..Self::default() }
    }

    /// Returns once changes from now on are heard.
    pub(super) async fn listen(self, cache: &Cache, heads: &Heads) -> Listening {
        let mut user = self.user.map(|user| cache.listen(user));
        let mut peer = self.peer.map(|peer| cache.listen(peer));
        for listener in [&mut user, &mut peer].into_iter().flatten() {
            listener.ready().await;
        }
        Listening { user, peer, also: self.also, shared: self.shared.then(|| heads.listen()) }
    }
}

/// Wakers that are listened to.
#[derive(Debug)]
pub(super) struct Listening {
    user: Option<Listener>,
    peer: Option<Listener>,
    also: Option<watch::Receiver<()>>,
    shared: Option<watch::Receiver<Changes>>,
}

impl Listening {
    /// Called after a look, resolves when it is time for the next one: at once after a change of the poll's own user
    /// and when the node stops, otherwise after a change of others, and at this time at the latest. What changes before
    /// it resolves is found by the next look, what changes later makes it resolve again.
    pub(super) async fn next_look(&mut self, at_latest: Instant, draining: &CancellationToken) {
        let Self { user, peer, also, shared } = self;
        let not_before = at_latest.min(Instant::now() + OTHERS_APART + jitter(OTHERS_JITTER_MS));
        tokio::select! {
            () = woken(user) => return,
            () = draining.cancelled() => return,
            () = tokio::time::sleep_until(at_latest) => return,
            () = woken(peer) => {}
            () = told(also) => {}
            () = shared_changed(shared) => {}
        }
        tokio::select! {
            () = woken(user) => {}
            () = draining.cancelled() => {}
            () = tokio::time::sleep_until(not_before) => {}
        }
    }
}

/// Resolves when the user that is listened to is woken; without a listener, never.
async fn woken(listener: &mut Option<Listener>) {
    match listener {
        Some(listener) => listener.woken().await,
        None => std::future::pending().await,
    }
}

/// Waits for a change; without a receiver, for ever.
async fn told(also: &mut Option<watch::Receiver<()>>) {
    if let Some(receiver) = also
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Resolves some time after something changed that users share. Anyone who waits for anything is
/// told, so those that were told at once look at different times; a stream of posts makes each look
/// at most a few times a second.
async fn shared_changed(changes: &mut Option<watch::Receiver<Changes>>) {
    let Some(changes) = changes else { return std::future::pending().await };
    let before = *changes.borrow();
    if changes.changed().await.is_err() {
        return std::future::pending().await;
    }
    let after = *changes.borrow_and_update();
    let most = if before.broadcast_state == after.broadcast_state { FEED_JITTER_MS } else { JITTER_MS };
    tokio::time::sleep(jitter(most)).await;
}

/// A random time below so many milliseconds.
pub(super) fn jitter(most_ms: u64) -> Duration {
    Duration::from_millis(rand::rng().random_range(0..most_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheConfig;

    #[tokio::test]
    async fn a_change_of_others_waits_and_is_not_lost() {
        let cache = Cache::memory(CacheConfig::default());
        let [user, peer] = [1_i64, 2].map(|id| UserId::try_from(id).unwrap());
        let listen = |user| Some(cache.listen(user));
        let mut listening = Listening { user: listen(user), peer: listen(peer), also: None, shared: None };
        let (draining, began) = (CancellationToken::new(), Instant::now());
        let at_latest = began + Duration::from_secs(60);
        for looks in 1..=3 {
            cache.wake(peer).await;
            let meanwhile = async {
                tokio::time::sleep(OTHERS_APART / 2).await;
                cache.wake(peer).await;
            };
            tokio::join!(listening.next_look(at_latest, &draining), meanwhile);
            assert!(began.elapsed() >= OTHERS_APART * looks);
        }
        // The last one that came meanwhile.
        listening.next_look(at_latest, &draining).await;
        cache.wake(peer).await;
        cache.wake(user).await;
        let own = Instant::now();
        listening.next_look(at_latest, &draining).await;
        assert!(own.elapsed() < OTHERS_APART, "one's own does not wait");
        let soon = Instant::now() + Duration::from_millis(1);
        listening.next_look(soon, &draining).await;
        draining.cancel();
        listening.next_look(at_latest, &draining).await;
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
