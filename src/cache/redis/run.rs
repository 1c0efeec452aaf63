//! Which run of Redis is read. A replica that took over is another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use crate::cache::CacheError;

/// The run of Redis whose entries may be read. A replica that took over may have lost the begins of
/// writes, so its entries look clean and are outdated, until the guard has ended them.
#[derive(Default)]
pub(super) struct TrustedRun {
    /// None before the guard has seen the first one.
    id: ArcSwapOption<String>,
    /// Whether another one was met since the guard looked last.
    refused: AtomicBool,
}

impl TrustedRun {
    /// Trusts a run. Whether another one was trusted before.
    pub(super) fn trust(&self, id: &str) -> bool {
        let before = self.id.swap(Some(Arc::new(id.to_owned())));
        self.refused.store(false, Ordering::Release);
        before.is_some_and(|before| *before != id)
    }

    /// Whether this run is trusted.
    pub(super) fn is_trusted(&self, id: &str) -> bool {
        self.id.load().as_ref().is_none_or(|trusted| **trusted == id)
    }

    /// Refuses until the guard has looked again: else each poll would connect in vain.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        if self.refused.load(Ordering::Acquire) { Err(another_run()) } else { Ok(()) }
    }

    /// Refuses a connection to another run.
    pub(super) fn check_connection(&self, id: &str) -> Result<(), CacheError> {
        if self.is_trusted(id) {
            return Ok(());
        }
        self.refused.store(true, Ordering::Release);
        // The guard may have trusted it meanwhile.
        if self.is_trusted(id) {
            self.refused.store(false, Ordering::Release);
        }
        Err(another_run())
    }
}

fn another_run() -> CacheError {
    CacheError::Away("another run of Redis than before; its entries are not trusted yet".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_run_is_refused_until_it_is_trusted() {
        let run = TrustedRun::default();
        assert!(run.check_connection("first").is_ok(), "nothing is known before");
        assert!(!run.trust("first") && !run.trust("first"));
        assert!(run.check().is_ok() && run.check_connection("first").is_ok());
        assert!(run.check_connection("second").is_err());
        assert!(run.check().is_err(), "nobody connects in vain");
        assert!(!run.trust("first") && run.check().is_ok(), "the guard looked, and met the first");
        assert!(run.check_connection("second").is_err());
        assert!(run.trust("second") && run.check().is_ok() && run.check_connection("second").is_ok());
        assert!(run.check_connection("first").is_err());
    }
}
