//! Why the node lock is refused: another node has it, or a connection that is lost already.
//!
//! The database may hear of a lost connection later than the node, or of a node that is gone later than
//! the next one starts. Until then it keeps the lock for nobody.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long the lock may be held for nobody. Longer than the database takes to notice
/// ([`Db::connect_watched`](crate::db::Db::connect_watched)).
pub(super) const FOR_NOBODY: Duration = Duration::from_secs(15);

/// How often a node that starts asks for it meanwhile.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What was seen where the lock was refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    /// Whether the row says that another node has begun.
    pub(super) is_claimed: bool,
    /// When those that have the lock last did something, by the database's clock: see
    /// [`lock_seen`](super::store::lock_seen). None where that is not known.
    pub(super) seen_ms: Option<i64>,
}

/// Since when the lock is refused, without a break.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<Option<(Instant, Refusal)>>);

impl Refused {
    /// It is not refused, or nobody knows.
    pub(super) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Since when, and what was seen then.
    fn first(&self, refusal: Refusal, now: Instant) -> Option<(Instant, Refusal)> {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *first;
        let known = first.get_or_insert((now, refusal));
        known.1.seen_ms = known.1.seen_ms.or(refusal.seen_ms);
        before
    }

    /// Whether a node that ran must stop, as another one has taken its place. Once is not enough: the
    /// connection that was just given up may hold the lock for a moment yet.
    pub(super) fn displaces(&self, refusal: Refusal, now: Instant) -> bool {
        self.first(refusal, now).is_some_and(|(since, _)| refusal.is_claimed || now - since >= FOR_NOBODY)
    }

    /// Whether a node that starts must give up: those that have the lock do something.
    pub(super) fn keeps_out(&self, refusal: Refusal, now: Instant) -> bool {
        self.first(refusal, now).is_some_and(|(since, first)| {
            let acts = first.seen_ms.zip(refusal.seen_ms).is_some_and(|(first, now)| now > first);
            acts || now - since >= FOR_NOBODY
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_node_that_began_or_time_displaces() {
        let (refused, now) = (Refused::default(), Instant::now());
        let (lost, claimed) = (Refusal { is_claimed: false, seen_ms: Some(7) }, Refusal { is_claimed: true, seen_ms: Some(7) });
        assert!(!refused.displaces(claimed, now), "its own connection may not have ended yet");
        assert!(refused.displaces(claimed, now) && !refused.displaces(lost, now));
        assert!(!refused.displaces(lost, now + FOR_NOBODY - Duration::from_millis(1)));
        assert!(refused.displaces(lost, now + FOR_NOBODY));
        refused.end();
        assert!(!refused.displaces(lost, now + FOR_NOBODY), "from here on");
    }

    #[test]
    fn a_node_that_starts_is_kept_out_by_one_that_lives() {
        let (refused, now) = (Refused::default(), Instant::now());
        let seen = |seen_ms| Refusal { is_claimed: true, seen_ms };
        assert!(!refused.keeps_out(seen(None), now) && !refused.keeps_out(seen(Some(7)), now), "it was not known");
        assert!(!refused.keeps_out(seen(Some(7)), now));
        assert!(!refused.keeps_out(seen(None), now), "it went between the two questions");
        assert!(refused.keeps_out(seen(Some(8)), now));
        assert!(refused.keeps_out(seen(Some(7)), now + FOR_NOBODY));
    }
}
