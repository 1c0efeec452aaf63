//! How fast the load goes, and how long its requests take.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// At most so many requests a second, from everybody together; as fast as it goes at first.
#[derive(Debug, Default)]
pub struct Pace(Mutex<Turns>);

#[derive(Debug, Default)]
struct Turns {
    /// Between two requests.
    gap: Duration,
    next: Option<Instant>,
}

impl Pace {
    /// From now on.
    pub fn slow_to(&self, requests_a_second: f64) {
        *self.0.lock().unwrap() = Turns { gap: Duration::from_secs_f64(1.0 / requests_a_second.max(1.0)), next: None };
    }

    /// Waits for the caller's turn. Turns that nobody took, as when a node was away, are not made
    /// up for.
    pub async fn turn(&self) {
        let at = {
            let mut turns = self.0.lock().unwrap();
            let now = Instant::now();
            let at = turns.next.map_or(now, |next| next.max(now));
            turns.next = Some(at + turns.gap);
            at
        };
        tokio::time::sleep_until(at.into()).await;
    }
}

/// How long the answers of the node that stays up took, in microseconds.
#[derive(Debug, Default)]
pub struct Latencies {
    steady: Mutex<String>,
    polls: Mutex<Vec<u32>>,
    writes: Mutex<Vec<u32>>,
}

/// What is slower than one in a hundred.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    pub polls: Duration,
    pub writes: Duration,
}

impl Latencies {
    /// Counts this node's alone.
    pub fn only_of(&self, base: &str) {
        base.clone_into(&mut self.steady.lock().unwrap());
    }

    pub fn poll(&self, base: &str, took: Duration) {
        self.note(&self.polls, base, took);
    }

    pub fn write(&self, base: &str, took: Duration) {
        self.note(&self.writes, base, took);
    }

    fn note(&self, times: &Mutex<Vec<u32>>, base: &str, took: Duration) {
        if *self.steady.lock().unwrap() == base {
            times.lock().unwrap().push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
        }
    }

    /// The 99th percentiles since the last call.
    pub fn take(&self) -> Tail {
        let p99 = |times: &Mutex<Vec<u32>>| {
            let mut times = std::mem::take(&mut *times.lock().unwrap());
            times.sort_unstable();
            Duration::from_micros(times.get(times.len() * 99 / 100).copied().unwrap_or_default().into())
        };
        Tail { polls: p99(&self.polls), writes: p99(&self.writes) }
    }
}
