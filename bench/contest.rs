//! Several sides of one comparison, in short rounds by turns, so that whatever else the machine is
//! doing hits all of them alike.

use std::time::Duration;

use crate::Result;
use crate::load::{Client, Closed, Counted, Requests, Turn};
use crate::pgbench::{Pgbench, Script, Until};
use crate::process::Process;
use crate::stats::{float, median, range};

/// The connections of a side that is to have only one request under way.
pub(crate) const ALONE: usize = 1;
/// The first turn of each side, which is not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// One side.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    pub(crate) name: String,
    pub(crate) work: Work<'a>,
}

/// What a side does.
#[derive(Debug)]
pub(crate) enum Work<'a> {
    /// Requests to a server, each of which counts for so many.
    Http { process: &'a Process, requests: &'a Requests, connections: usize, counts_for: u64 },
    /// Transactions.
    Pgbench { pgbench: &'a Pgbench, script: Script },
}

/// What a side did, by round.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    rates: Vec<f64>,
    /// Processor time of the server for each request, in microseconds.
    cpu_us: Vec<f64>,
    pub(crate) errors: u64,
}

/// How one side compares with another: the median over the rounds, and the lowest and the highest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Ratio {
    /// What one side measured in each round, against what the other one did.
    pub(crate) fn between(ours: &[f64], theirs: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let (low, high) = range(&ratios);
        Self { median: median(&ratios), low, high }
    }
}

impl Series {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), rates: Vec::new(), cpu_us: Vec::new(), errors: 0 }
    }

    /// A series of a single number.
    pub(crate) fn single(name: &str, rate: f64) -> Self {
        Self { rates: vec![rate], ..Self::new(name) }
    }

    /// So many things in one go, with the processor time that they took.
    pub(crate) fn once(name: &str, things: u64, seconds: f64, cpu_s: Option<f64>) -> Self {
        let cpu_us = cpu_s.map(|cpu_s| cpu_s * 1e6 / float(things.max(1)));
        Self { rates: vec![float(things) / seconds], cpu_us: cpu_us.into_iter().collect(), ..Self::new(name) }
    }

    pub(crate) fn rate(&self) -> f64 {
        median(&self.rates)
    }

    /// None where the system does not tell, and for what is no server of ours.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        if self.cpu_us.is_empty() { None } else { Some(median(&self.cpu_us)) }
    }

    /// Round against round.
    pub(crate) fn against(&self, other: &Self) -> Ratio {
        Ratio::between(&self.rates, &other.rates)
    }

    fn add(&mut self, counted: &Counted, counts_for: u64, cpu_s: Option<f64>) {
        self.rates.push(counted.per_second() * float(counts_for));
        self.errors += counted.errors;
        if let Some(cpu_s) = cpu_s
            && counted.answered > 0
        {
            self.cpu_us.push(cpu_s * 1e6 / float(counted.answered * counts_for));
        }
    }
}

/// How long a comparison goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    pub(crate) each: Duration,
}

/// Lets the sides take turns. One short turn of each goes before and is not counted: it warms what
/// there is to warm.
pub(crate) async fn run(client: &Client, rounds: Rounds, sides: &[Side<'_>]) -> Result<Vec<Series>> {
    let mut series: Vec<Series> = sides.iter().map(|side| Series::new(&side.name)).collect();
    for side in sides {
        turn(client, Turn { number: 0, of: rounds.count + 1 }, WARM_UP, side).await?;
    }
    for round in 1..=rounds.count {
        for (side, series) in sides.iter().zip(&mut series) {
            let (counted, cpu_s) = turn(client, Turn { number: round, of: rounds.count + 1 }, rounds.each, side).await?;
            let counts_for = if let Work::Http { counts_for, .. } = &side.work { *counts_for } else { 1 };
            series.add(&counted, counts_for, cpu_s);
            let rate = counted.per_second() * float(counts_for);
            eprintln!("  round {round}: {:<44} {:>12}/s", side.name, crate::stats::grouped(rate));
        }
    }
    Ok(series)
}

async fn turn(client: &Client, turn: Turn, duration: Duration, side: &Side<'_>) -> Result<(Counted, Option<f64>)> {
    match &side.work {
        Work::Http { process, requests, connections, .. } => {
            let before_s = process.cpu_s();
            let load = Closed { address: process.address, requests, connections: *connections };
            let counted = client.drive(load, turn, duration).await?;
            let cpu_s = process.cpu_s().zip(before_s).map(|(after_s, before_s)| after_s - before_s);
            Ok((counted, cpu_s))
        }
        Work::Pgbench { pgbench, script } => Ok((pgbench.run(script, Until::Elapsed(duration)).await?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let of = |rates: &[f64]| Series { rates: rates.to_vec(), ..Series::new("x") };
        let ratio = of(&[100.0, 50.0, 90.0]).against(&of(&[100.0, 100.0, 100.0]));
        assert!((ratio.median - 0.9).abs() < 1e-9 && (ratio.low - 0.5).abs() < 1e-9 && (ratio.high - 1.0).abs() < 1e-9);
    }
}
