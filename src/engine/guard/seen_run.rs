//! What a node knows of the run of Redis that all have agreed on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::store::RELEASED;

/// What this node knows of the run that all agree on.
#[derive(Debug)]
pub(super) struct SeenRun(Mutex<Seen>);

#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) id: String,
    /// Since when this node knows of it.
    pub(super) since: Instant,
    /// From when on it may be written.
    written_from: Instant,
}

impl Default for SeenRun {
    fn default() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Seen { id: RELEASED.to_owned(), since: now, written_from: now }))
    }
}

impl SeenRun {
    pub(super) fn get(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in the run that the row names, which is to be written no earlier than that. Where another
    /// one was known before, some node may trust its view of that one for as long as this one could:
    /// so no earlier than `wait` from now. Returns from when on it may be written.
    pub(super) fn set(&self, id: &str, no_earlier: Instant, wait: Duration) -> Instant {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if seen.id != id {
            let written_from = if seen.id == RELEASED { now } else { now + wait };
            *seen = Seen { id: id.to_owned(), since: now, written_from };
        }
        seen.written_from = seen.written_from.max(no_earlier);
        seen.written_from
    }

    pub(super) fn may_be_written(&self) -> bool {
        Instant::now() >= self.get().written_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_since_it_was_first_seen_and_written_when_no_other_one_is_read() {
        const WAIT: Duration = Duration::from_secs(3);
        let (seen, now) = (SeenRun::default(), Instant::now());
        assert_eq!(seen.get().id, RELEASED);
        seen.set("first", now, WAIT);
        let since = seen.get().since;
        assert!(seen.may_be_written());
        seen.set("first", now, WAIT);
        assert_eq!(seen.get().since, since, "seen again");
        seen.set("second", now + Duration::from_secs(60), WAIT);
        assert!(seen.get().since > since && seen.get().id == "second" && !seen.may_be_written());
        // The row says nothing any more: its commit took longer than it lasts.
        let from = seen.set("third", now, WAIT);
        assert!(from >= now + WAIT && seen.set("third", now, WAIT) == from, "and stays so");
    }
}
