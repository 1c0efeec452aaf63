//! What a node knows of the run of Redis that all have agreed on.

use std::sync::{Mutex, PoisonError};

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

    pub(super) fn set(&self, id: &str, written_from: Instant) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.id != id {
            *seen = Seen { id: id.to_owned(), since: Instant::now(), written_from };
        }
        seen.written_from = written_from;
    }

    pub(super) fn may_be_written(&self) -> bool {
        Instant::now() >= self.get().written_from
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_is_known_since_it_was_first_seen_and_written_when_no_other_one_is_read() {
        let (seen, now) = (SeenRun::default(), Instant::now());
        assert_eq!(seen.get().id, RELEASED);
        seen.set("first", now);
        let since = seen.get().since;
        assert!(seen.may_be_written());
        seen.set("first", now);
        assert_eq!(seen.get().since, since, "seen again");
        seen.set("second", now + Duration::from_secs(60));
        assert!(seen.get().since > since && seen.get().id == "second" && !seen.may_be_written());
    }
}
