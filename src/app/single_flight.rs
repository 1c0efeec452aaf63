//! Work that one request does for all that ask while it is at work.

use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// What one made for all: for who asked before it was done, it is as good as their own.
#[derive(Debug)]
pub(super) struct SingleFlight<T>(Arc<Mutex<Option<Made<T>>>>);

#[derive(Debug, Clone)]
struct Made<T> {
    at: Instant,
    value: T,
}

impl<T> Clone for SingleFlight<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> SingleFlight<T> {
    /// Makes it, or waits for who is making it now. Where that one gives up half-way, the next one makes it.
    pub(super) async fn get(&self, make: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let mut last = self.0.lock().await;
        if let Some(made) = last.as_ref().filter(|made| made.at >= asked) {
            return made.value.clone();
        }
        let value = make.await;
        *last = Some(Made { at: Instant::now(), value: value.clone() });
        value
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
    async fn one_makes_it_for_all_who_ask_meanwhile_and_for_nobody_later() {
        let (flight, made, gate) = (SingleFlight::default(), AtomicU32::new(0), Semaphore::new(0));
        let make = || async {
            gate.acquire().await.unwrap().forget();
            made.fetch_add(1, Ordering::Relaxed) + 1
        };
        let open = async {
            yield_now().await;
            gate.add_permits(1);
        };
        let all = async { tokio::join!(flight.get(make()), flight.get(make()), flight.get(make()), open) };
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), all).await.unwrap(), (1, 1, 1, ()));
        tokio::select! {
            biased;
            given_up = flight.get(make()) => panic!("{given_up} is that of those before"),
            () = yield_now() => {}
        }
        gate.add_permits(2);
        assert_eq!([flight.get(make()).await, flight.get(make()).await], [2, 3]);
    }
}
