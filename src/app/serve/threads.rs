//! The threads that serve connections.
//!
//! Each is a runtime of its own. A poll that memory answers then runs from its first byte to its
//! last on one thread: no queue, no lock and no wake-up between threads. The runtime that starts
//! the server keeps what runs beside the requests (lanes, the stores, timers), requests with a long
//! body, which would hold up the other connections of a thread, and the requests of HTTP/2, of which
//! one connection may carry more than a thread can answer.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::base::threads;

/// The threads, for as long as this lives. What they started may live in them for longer than a
/// connection, such as a connection to a store: drop this after the stores are closed.
#[derive(Debug)]
pub struct Threads {
    each: Vec<Handle>,
    main: Handle,
    _end: DropGuard,
}

/// The threads and the runtime beside them, to be asked whether they do anything.
#[derive(Debug, Clone)]
pub struct Runtimes(Arc<[Handle]>);

impl Runtimes {
    /// Resolves when each of them has done what it was asked.
    pub(crate) async fn answered(&self) {
        let asked: Vec<_> = self.0.iter().map(|runtime| runtime.spawn(async {})).collect();
        for answer in asked {
            // One that is told to end answers, too.
            let _ = answer.await;
        }
    }
}

impl Threads {
    /// As many threads as there are cores, beside the runtime that this is called in.
    ///
    /// # Errors
    /// The system's, for a thread or its files.
    pub fn start() -> io::Result<Self> {
        let end = CancellationToken::new();
        // Made first: should one thread not start, those before it end.
        let guard = end.clone().drop_guard();
        let count = thread::available_parallelism().map_or(1, usize::from);
        let each = (0..count).map(|_| threads::start("connections", end.clone())).collect::<io::Result<_>>()?;
        Ok(Self { each, main: Handle::current(), _end: guard })
    }

    /// Each of them, and the runtime beside them.
    #[must_use]
    pub fn runtimes(&self) -> Runtimes {
        Runtimes(self.each.iter().chain([&self.main]).cloned().collect())
    }

    /// The runtime of what runs beside the requests.
    pub(super) fn main(&self) -> &Handle {
        &self.main
    }

    /// Serves a connection on the thread that has least to do.
    pub(super) fn serve<F>(&self, tracker: &TaskTracker, stream: TcpStream, run: impl FnOnce(TcpStream) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let thread = self.each.iter().min_by_key(|thread| thread.metrics().num_alive_tasks()).unwrap_or(&self.main);
        tracker.spawn_on(
            async move {
                // A socket belongs to the runtime that waits for it.
                match stream.into_std().and_then(TcpStream::from_std) {
                    Ok(stream) => run(stream).await,
                    Err(error) => tracing::error!(%error, "cannot hand a connection to its thread"),
                }
            },
            thread,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_answer_comes_while_a_thread_stands_still() {
        let threads = Threads::start().unwrap();
        let runtimes = threads.runtimes();
        let answered = async |limit| tokio::time::timeout(limit, runtimes.answered()).await.is_ok();
        assert!(answered(Duration::from_secs(10)).await);
        let (release, held) = mpsc::channel::<()>();
        let _stuck = threads.each[0].spawn(async move { held.recv() });
        assert!(!answered(Duration::from_millis(100)).await);
        drop(release);
        assert!(answered(Duration::from_secs(10)).await);
    }
}
