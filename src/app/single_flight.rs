//! Work that is done once for all requests that ask for it while it is under way.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

/// What is under way, or was last.
#[derive(Clone)]
pub(super) struct SingleFlight<T: Clone>(Arc<Mutex<Option<Flight<T>>>>);

type Flight<T> = Shared<BoxFuture<'static, Option<T>>>;

impl<T: Clone> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// Does it, or waits for what is under way. It goes on where a caller gives up. None where it panics.
    pub(super) async fn get(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let flight = {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match last.as_ref().filter(|flight| flight.peek().is_none()) {
                Some(flight) => flight.clone(),
                None => last.insert(tokio::spawn(work).map(Result::ok).boxed().shared()).clone(),
            }
        };
        flight.await
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
        tokio::select! {
            biased;
            early = flight.get(work()) => panic!("{early:?} before its time"),
            () = yield_now() => {}
        }
        // Who began it has given up.
        let open = async {
            yield_now().await;
            gate.add_permits(1);
        };
        let all = async { tokio::join!(flight.get(work()), flight.get(work()), open) };
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), all).await.unwrap(), (Some(1), Some(1), ()));
        gate.add_permits(2);
        assert_eq!([flight.get(work()).await, flight.get(work()).await], [Some(2), Some(3)]);
    }
}
