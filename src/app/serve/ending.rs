//! The end of a server, as its connections see it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// A connection looks at the flags on every poll. It registers with each token only once, because
/// asking a token takes a lock that all connections share. A flag is set before its token is
/// cancelled.
#[derive(Default)]
pub(super) struct Ending {
    announcing: AtomicBool,
    pub(super) announce: CancellationToken,
    draining: AtomicBool,
    pub(super) drain: CancellationToken,
    /// Cut off whatever is left.
    pub(super) cut: CancellationToken,
}

impl Ending {
    pub(super) fn is_announcing(&self) -> bool {
        self.announcing.load(Ordering::Acquire)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(super) fn announce(&self) {
        self.announcing.store(true, Ordering::Release);
        self.announce.cancel();
    }

    pub(super) fn drain(&self) {
        self.announce();
        self.draining.store(true, Ordering::Release);
        self.drain.cancel();
    }
}
