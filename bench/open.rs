//! A steady open load: requests are due at set times, whether or not earlier ones were answered,
//! and a latency counts from the time at which the request was due. A server that stalls is charged
//! for everybody who would have called meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Result;
use crate::contest::Ratio;
use crate::stats::float;
use crate::wire::Connection;

/// Shorter waits cost more than they are worth: the sleep of the operating system is not exact to
/// more than that.
const SHORTEST_SLEEP: Duration = Duration::from_micros(40);
/// What is sent first and not counted.
const WARM_UP: Duration = Duration::from_secs(1);
/// The longest latency that is told apart from longer ones.
const LONGEST_US: u64 = 60_000_000;

/// How to load.
#[derive(Debug, Clone)]
pub(crate) struct OpenLoad {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Vec<Vec<u8>>>,
    pub(crate) per_second: f64,
    pub(crate) connections: usize,
    pub(crate) duration: Duration,
}

/// The latencies of one round.
#[derive(Debug)]
pub(crate) struct Round {
    us: Histogram<u64>,
    errors: u64,
    lateness_us: Histogram<u64>,
}

/// The latencies of all rounds of a side.
#[derive(Debug)]
pub(crate) struct Latencies {
    /// Of all rounds, in microseconds.
    pub(crate) us: Histogram<u64>,
    /// p99.99 of each round, in microseconds.
    worst_us: Vec<f64>,
    /// Answers that were none (4xx, 5xx).
    pub(crate) errors: u64,
    /// How late the generator itself was in handing out a request, in microseconds: part of every
    /// latency above. It has the requests of the warm-up, too.
    pub(crate) lateness_us: Histogram<u64>,
}

impl Latencies {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { us: histogram()?, worst_us: Vec::new(), errors: 0, lateness_us: histogram()? })
    }

    pub(crate) fn add(&mut self, round: &Round) -> Result<()> {
        self.us.add(&round.us)?;
        self.worst_us.push(float(round.us.value_at_quantile(0.9999)));
        self.errors += round.errors;
        Ok(self.lateness_us.add(&round.lateness_us)?)
    }

    /// p99.99 as a ratio to the other side's of the same round.
    pub(crate) fn against(&self, other: &Self) -> Ratio {
        Ratio::between(&self.worst_us, &other.worst_us)
    }
}

fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LONGEST_US, 3)?)
}

fn note(histogram: &mut Histogram<u64>, elapsed: Duration) {
    let us = u64::try_from(elapsed.as_micros()).unwrap_or(LONGEST_US);
    histogram.saturating_record(us.max(1));
}

/// Loads the server, with one thread that keeps the time and one that talks.
pub(crate) async fn run(load: OpenLoad) -> Result<Round> {
    tokio::task::spawn_blocking(move || {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..load.connections {
            // Not bounded: what a stalled server leaves unanswered is the point, and the duration
            // bounds it.
            let (sender, receiver) = mpsc::unbounded_channel();
            senders.push(sender);
            receivers.push(receiver);
        }
        let start = Instant::now() + Duration::from_millis(300);
        let talking = {
            let load = load.clone();
            std::thread::spawn(move || talk(&load, receivers, start + WARM_UP))
        };
        let lateness_us = keep_time(&load, &senders, start)?;
        drop(senders);
        let (us, errors) = talking.join().map_err(|_| "the load generator panicked")??;
        Ok(Round { us, errors, lateness_us })
    })
    .await?
}

/// Hands out each request at its time, to one connection after the other.
fn keep_time(load: &OpenLoad, senders: &[mpsc::UnboundedSender<Instant>], start: Instant) -> Result<Histogram<u64>> {
    let mut lateness = histogram()?;
    let end = start + WARM_UP + load.duration;
    let mut connections = senders.iter().cycle();
    for number in 0_u64.. {
        let due = start + Duration::from_secs_f64(float(number) / load.per_second);
        if due >= end {
            break;
        }
        let mut wait = due.saturating_duration_since(Instant::now());
        while wait > SHORTEST_SLEEP {
            std::thread::sleep(wait);
            wait = due.saturating_duration_since(Instant::now());
        }
        note(&mut lateness, due.elapsed());
        let sent = connections.next().map(|connection| connection.send(due));
        if !matches!(sent, Some(Ok(()))) {
            break;
        }
    }
    Ok(lateness)
}

/// One runtime of one thread, a task for each connection.
fn talk(load: &OpenLoad, receivers: Vec<mpsc::UnboundedReceiver<Instant>>, count_from: Instant) -> Result<(Histogram<u64>, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for (number, receiver) in receivers.into_iter().enumerate() {
            tasks.spawn(serve_schedule(load.clone(), number, receiver, count_from));
        }
        let (mut all, mut errors) = (histogram()?, 0);
        while let Some(share) = tasks.join_next().await {
            let (us, failed) = share??;
            all.add(us)?;
            errors += failed;
        }
        Ok((all, errors))
    })
}

async fn serve_schedule(
    load: OpenLoad,
    number: usize,
    mut due: mpsc::UnboundedReceiver<Instant>,
    count_from: Instant,
) -> Result<(Histogram<u64>, u64)> {
    let mut connection = Connection::open(load.address).await?;
    let (mut us, mut errors) = (histogram()?, 0);
    // A prime step, so that the connections do not walk the same users side by side.
    let mut requests = load.requests.iter().cycle().skip(number * 7919 % load.requests.len().max(1)).step_by(13);
    while let (Some(due), Some(request)) = (due.recv().await, requests.next()) {
        let status = connection.exchange(request).await?;
        if !(200..400).contains(&status) {
            errors += 1;
        }
        if due >= count_from {
            note(&mut us, due.elapsed());
        }
    }
    Ok((us, errors))
}
