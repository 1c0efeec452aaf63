//! `make chaos`: writers, pollers and readers on every feature, while nodes and stores fail under
//! them. It checks the promises while it runs and again at its end, and prints each finding.
//!
//! `fleet` has the nodes and their stores, `faults` breaks them, `ledger` holds what was
//! acknowledged, `writers` write, `watchers` poll and read inboxes and events, `verdict` compares
//! at the end, `soak` looks for what a long run leaves behind, at the `pace` that it sets, `crowd`
//! holds as many polls as a node may. To add a check: note what is acknowledged in `ledger`, and
//! compare it in `watchers` or `verdict`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a run that meets what it does not expect must stop, and it talks to a person"
)]
#![expect(unreachable_pub, unused_imports, dead_code, reason = "`support` serves the suite, too")]

mod crowd;
mod faults;
mod findings;
mod fleet;
mod ledger;
mod pace;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod verdict;
mod watchers;
mod writers;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::findings::Findings;
use self::fleet::Fleet;
use self::ledger::Ledger;
use self::pace::{Latencies, Pace};
use crate::support::{Nodes, Tier};

/// Which tiers to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Embedded,
    Server,
    Both,
}

/// Break nodes and stores under load, and check every promise.
#[derive(Debug, Parser)]
#[command(name = "chaos")]
struct Args {
    /// The tiers to run, one after the other
    #[arg(long, value_enum, default_value = "both")]
    tier: Which,
    /// Seconds of faults on each tier
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(5..=86_400))]
    seconds: u64,
    /// Seconds of the soak on each tier; 0: none
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    soak_seconds: u64,
    /// Polls that one node holds at once, on each tier; 0: none
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=20_000))]
    waiting_polls: u32,
    /// The same seed draws the same faults and requests
    #[arg(long, default_value_t = 1)]
    seed: usize,
    /// Only these faults (comma-separated)
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<faults::Fault>,
}

/// What every task of a run shares.
#[derive(Debug, Clone)]
pub struct Run {
    /// What was acknowledged.
    pub ledger: Arc<Ledger>,
    /// What went wrong.
    pub findings: Findings,
    /// The nodes that are up.
    pub nodes: Nodes,
    pub pace: Arc<Pace>,
    pub latencies: Arc<Latencies>,
    /// Cancelled when the load is to end.
    pub over: CancellationToken,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let found = runtime.block_on(async {
        tokio::select! {
            found = all(&args) => found,
            () = interrupted() => 1,
        }
    });
    println!("chaos: {found} findings");
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Ends the run on Ctrl-C or SIGTERM, so that the nodes and stores end with it.
async fn interrupted() {
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
    }
    println!("chaos: interrupted");
}

async fn all(args: &Args) -> usize {
    let mut found = 0;
    for tier in [Tier::Embedded, Tier::Server] {
        let is_wanted = match args.tier {
            Which::Both => true,
            Which::Embedded => tier == Tier::Embedded,
            Which::Server => tier == Tier::Server,
        };
        if is_wanted {
            if args.waiting_polls > 0 {
                found += crowd::run(tier, args.waiting_polls).await;
            }
            found += faults_under_load(tier, args).await;
            if args.soak_seconds > 0 {
                found += soak::run(tier, args).await;
            }
        }
    }
    found
}

/// The load of a run, with so many clients that poll; it goes on until `over`.
fn load(run: &Run, seed: usize, pollers: usize) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for writer in 0..ledger::WRITERS {
        tasks.spawn(writers::write(run.clone(), writer, seed));
    }
    for watcher in 0..pollers {
        tasks.spawn(watchers::poll(run.clone(), seed * 100 + watcher));
    }
    for user in ledger::users().take(6) {
        tasks.spawn(watchers::read_inbox(run.clone(), user));
    }
    tasks.spawn(watchers::read_events(run.clone()));
    tasks
}

async fn faults_under_load(tier: Tier, args: &Args) -> usize {
    println!("chaos: {tier:?}, {} s of faults, seed {}", args.seconds, args.seed);
    let mut fleet = Fleet::start(tier).await;
    let run = fleet.run();
    writers::prepare(&run).await;
    let mut tasks = load(&run, args.seed, 4);
    faults::inject(&mut fleet, &run, Duration::from_secs(args.seconds), args.seed, &args.only).await;
    run.over.cancel();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    verdict::pronounce(&fleet, &run).await;
    println!("chaos: {tier:?}: {}", run.ledger.summary());
    run.findings.count()
}
