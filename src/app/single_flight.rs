//! Work that is done once for all requests that ask for it while it is under way.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;

/// What is under way, or was last.
#[derive(Clone)]
pub(super) struct SingleFlight<T: Clone>(Arc<Mutex<Option<Flight<T>>>>);

struct Flight<T: Clone> {
    task: AbortHandle,
    /// None where the task panicked.
    result: Shared<BoxFuture<'static, Option<T>>>,
}

impl<T: Clone> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// Does it, or waits for what is under way. It goes on where a caller gives up, but nobody who asks later
    /// gets what it came to.
    pub(super) async fn get(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let result = {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match last.as_ref().filter(|flight| !flight.task.is_finished()) {
                Some(flight) => flight.result.clone(),
                None => {
                    let task = tokio::spawn(work);
                    last.insert(Flight { task: task.abort_handle(), result: task.map(Result::ok).boxed().shared() }).result.clone()
                }
            }
        };
        match result.await {
            Some(value) => value,
            None => resume_unwind(Box::new("what was done for all who ask panicked")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::sync::Semaphore;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn it_is_done_once_for_all_who_ask_meanwhile_and_again_for_who_asks_later() {
        let (flight, done, gate) = (SingleFlight::default(), Arc::new(AtomicU32::new(0)), Arc::new(Semaphore::new(0)));
        let work = || {
            let (done, gate) = (Arc::clone(&done), Arc::clone(&gate));
            async move {
                gate.acquire().await.unwrap().forget();
                done.fetch_add(1, Ordering::Relaxed) + 1
            }
        };
        let given_up = async || {
            tokio::select! {
                biased;
                early = flight.get(work()) => panic!("{early:?} before its time"),
                () = yield_now() => {}
            }
        };
        given_up().await;
        // Who began it is gone.
        let open = async {
            yield_now().await;
            gate.add_permits(1);
        };
        let all = async { tokio::join!(flight.get(work()), flight.get(work()), open) };
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), all).await.unwrap(), (1, 1, ()));
        given_up().await;
        gate.add_permits(1);
        while done.load(Ordering::Relaxed) < 2 {
            yield_now().await;
        }
        yield_now().await;
        // It is done, and nobody has heard of it.
        gate.add_permits(2);
        assert_eq!([flight.get(work()).await, flight.get(work()).await], [3, 4]);
    }
}
