//! The signals that ask a process to stop.
//!
//! The kernel drops a signal for which process 1 has no handler, and in a container this program is
//! process 1. So a server listens before it opens its stores, and every command listens, too.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopSignal {
    Interrupt,
    Terminate,
}

impl StopSignal {
    fn kind(self) -> SignalKind {
        match self {
            Self::Interrupt => SignalKind::interrupt(),
            Self::Terminate => SignalKind::terminate(),
        }
    }

    /// The exit status of a command that it stopped, as shells have it: 128 and its number.
    pub(super) fn exit_status(self) -> u8 {
        match self {
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

/// Resolves when the process is asked to stop, by SIGTERM or SIGINT. It listens from the call on,
/// not only once it is awaited: a signal in between would end the process at once.
pub(super) fn told_to_stop() -> impl Future<Output = StopSignal> {
    let [interrupt, terminate] = [StopSignal::Interrupt, StopSignal::Terminate].map(|stop| (stop, signal(stop.kind())));
    async move {
        tokio::select! {
            stop = received(interrupt) => stop,
            stop = received(terminate) => stop,
        }
    }
}

async fn received((stop, signal): (StopSignal, io::Result<Signal>)) -> StopSignal {
    match signal {
        Ok(mut signal) => drop(signal.recv().await),
        Err(error) => {
            tracing::error!(%error, "cannot listen for a signal; only the other one stops this process");
            std::future::pending::<()>().await;
        }
    }
    stop
}
