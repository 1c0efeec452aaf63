//! Which run of Redis is read and written. A replica that took over is another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::{CacheError, SharedRun};

/// The run of Redis whose entries may be read. A replica that took over may have lost the begins of
/// writes, so its entries look clean and are outdated, until the guard has ended them.
pub(super) struct TrustedRun {
    /// None before the guard has seen the first one.
    trusted: ArcSwapOption<Trusted>,
    /// Whether another one was met since the guard looked last.
    refused: AtomicBool,
    changed: watch::Sender<()>,
}

struct Trusted {
    id: String,
    /// Whether the guard has met it: else it is what the database names, and nothing was read of it.
    is_met: bool,
    /// Until when it may be read without another look; None where a connection shows that it is the
    /// same.
    read_until: Option<Instant>,
    /// From when on and until when writers may count on it; None where it is the only one that anybody
    /// reaches.
    writes: Option<(Instant, Instant)>,
}

impl Default for TrustedRun {
    fn default() -> Self {
        Self { trusted: ArcSwapOption::empty(), refused: AtomicBool::new(false), changed: watch::channel(()).0 }
    }
}

impl TrustedRun {
    /// No other run is read before one is trusted.
    pub(super) fn expect(&self, id: &str, read_until: Option<Instant>) {
        self.set(Trusted { id: id.to_owned(), is_met: false, read_until, writes: None });
    }

    /// Trusts a run. Whether another one was trusted before.
    pub(super) fn trust(&self, id: &str, read_until: Option<Instant>) -> bool {
        self.set(Trusted { id: id.to_owned(), is_met: true, read_until, writes: None })
    }

    /// Trusts the run that all nodes agree on. Whether another one was trusted before.
    pub(super) fn share(&self, run: SharedRun) -> bool {
        self.set(Trusted { id: run.id, is_met: true, read_until: None, writes: Some((run.written_from, run.known_until)) })
    }

    fn set(&self, trusted: Trusted) -> bool {
        let trusted = Arc::new(trusted);
        let before = self.trusted.swap(Some(Arc::clone(&trusted)));
        self.refused.store(false, Ordering::Release);
        let is_other = before.is_some_and(|before| before.is_met && before.id != trusted.id);
        if is_other {
            self.changed.send_replace(());
        }
        is_other
    }

    /// Told when another one is trusted than before.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Whether this run is trusted.
    pub(super) fn is_trusted(&self, id: &str) -> bool {
        self.trusted.load().as_ref().is_none_or(|trusted| trusted.id == id)
    }

    /// Refuses until the guard has looked again: else each poll would connect in vain.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        if self.refused.load(Ordering::Acquire) { Err(another_run()) } else { Ok(()) }
    }

    /// Refuses a connection to another run.
    pub(super) fn check_connection(&self, id: &str) -> Result<(), CacheError> {
        if self.is_trusted(id) {
            return self.check_now();
        }
        self.refused.store(true, Ordering::Release);
        // The guard may have trusted it meanwhile.
        if self.is_trusted(id) {
            self.refused.store(false, Ordering::Release);
        }
        Err(another_run())
    }

    /// Refuses to read what may be another run by now, or what other nodes do not write yet. Asked before
    /// a read and after its reply, so it asks for the time only where that decides: not with a single Redis.
    pub(super) fn check_now(&self) -> Result<(), CacheError> {
        match self.trusted.load().as_deref() {
            None | Some(Trusted { read_until: None, writes: None, .. }) => Ok(()),
            Some(_) => self.check_look(Instant::now()),
        }
    }

    /// The same at this time.
    fn check_look(&self, now: Instant) -> Result<(), CacheError> {
        match self.trusted.load().as_deref() {
            Some(Trusted { writes: Some((from, _)), .. }) if now < *from => Err(others_remain()),
            Some(Trusted { read_until: Some(until), .. }) if now >= *until => {
                Err(CacheError::Away("not all masters of the cluster have answered lately".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Whether it may not be read for want of a look.
    pub(super) fn is_unseen(&self, now: Instant) -> bool {
        self.trusted.load().as_ref().and_then(|trusted| trusted.read_until).is_some_and(|until| now >= until)
    }

    /// Refuses to read from another run.
    pub(super) fn check_read(&self, id: &str) -> Result<(), CacheError> {
        if self.is_trusted(id) { self.check_now() } else { Err(another_run()) }
    }

    /// Refuses a writer unless all nodes that read the cache now read this run.
    pub(super) fn check_write(&self, id: &str, now: Instant) -> Result<(), CacheError> {
        match self.trusted.load().as_deref() {
            Some(trusted) if trusted.id != id => Err(another_run()),
            Some(Trusted { writes: Some((from, until)), .. }) if now < *from || now >= *until => Err(others_remain()),
            _ => Ok(()),
        }
    }
}

fn others_remain() -> CacheError {
    CacheError::Away("other nodes may still use another run of Redis".to_owned())
}

fn another_run() -> CacheError {
    CacheError::Away("another run of Redis than before; its entries are not trusted yet".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_run_is_refused_until_it_is_trusted() {
        let run = TrustedRun::default();
        assert!(run.check_connection("first").is_ok(), "nothing is known before");
        assert!(!run.trust("first", None) && !run.trust("first", None));
        assert!(run.check().is_ok() && run.check_connection("first").is_ok());
        assert!(run.check_connection("second").is_err());
        assert!(run.check().is_err(), "nobody connects in vain");
        assert!(!run.trust("first", None) && run.check().is_ok(), "the guard looked, and met the first");
        assert!(run.check_connection("second").is_err());
        assert!(run.trust("second", None) && run.check().is_ok() && run.check_connection("second").is_ok());
        assert!(run.check_connection("first").is_err());
    }

    #[test]
    fn another_run_than_the_expected_one_is_refused_and_then_no_change() {
        let run = TrustedRun::default();
        let changes = run.changes();
        run.expect("first", None);
        assert!(run.check_connection("first").is_ok() && run.check_connection("second").is_err());
        assert!(!run.trust("second", None) && !changes.has_changed().unwrap(), "nothing was read of the first");
        assert!(run.check_connection("second").is_ok() && run.check_connection("first").is_err());
        assert!(run.trust("first", None) && changes.has_changed().unwrap());
    }

    #[test]
    fn a_cluster_is_read_only_while_all_of_its_masters_answer() {
        let (run, now) = (TrustedRun::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert!(run.check_look(now).is_ok() && !run.is_unseen(now), "nothing is known before");
        assert!(!run.trust("a,b,c", Some(now + second)));
        assert!(run.check_look(now).is_ok() && run.check_look(now + second).is_err());
        assert!(!run.is_unseen(now) && run.is_unseen(now + second));
        assert!(!run.trust("a,b,c", Some(now + 2 * second)) && run.check_look(now + second).is_ok());
    }

    #[test]
    fn writers_count_on_a_run_while_all_nodes_read_it() {
        let (run, now) = (TrustedRun::default(), Instant::now());
        let second = Duration::from_secs(1);
        let shared = |id: &str, from: Instant, until: Instant| SharedRun { id: id.to_owned(), written_from: from, known_until: until };
        assert!(run.check_write("first", now).is_ok(), "nothing is known before");
        assert!(!run.share(shared("first", now, now + 2 * second)));
        assert!(run.check_write("first", now).is_ok() && run.check_write("second", now).is_err());
        assert!(run.check_write("first", now + 2 * second).is_err(), "another node may have gone on to another since");
        let changes = run.changes();
        assert!(run.share(shared("second", now + second, now + 3 * second)) && changes.has_changed().unwrap());
        assert!(run.check_read("second").is_err() && run.check_read("first").is_err());
        assert!(run.check_look(now).is_err() && run.check_look(now + second).is_ok());
        assert!(run.check_connection("second").is_err() && run.check().is_ok(), "soon it is read");
        assert!(run.check_write("second", now).is_err(), "others may read the first yet");
        assert!(run.check_write("second", now + second).is_ok());
    }
}
