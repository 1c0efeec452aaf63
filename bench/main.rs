//! `make bench`: every row of the table of speeds, both sides in one run, as `docs/benchmarks.md`.
//!
//! `data` makes databases and fills them, `process` starts what is measured, `peers` is what polls
//! are compared with, `pgbench` what writes and lists are compared with, `load` finds a maximum,
//! `open` takes latencies, `contest` lets sides take turns, `rows/` has the comparisons, `report`
//! writes the document, `chart` its picture, `history` keeps what each run measured. One more row: a function in `rows/` that builds its sides, and a call in
//! `rows/mod.rs`.
#![expect(clippy::print_stderr, reason = "progress and errors are for the person who runs the bench")]

mod chart;
mod contest;
mod data;
mod history;
mod load;
mod machine;
mod open;
mod peers;
mod pgbench;
mod process;
mod report;
mod rows;
mod stats;
mod wire;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::contest::Rounds;
use crate::history::{History, Run};
use crate::peers::Hidden;

/// The same as the server's, so that the peers lose nothing by theirs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Every failure ends in a sentence for the person who runs the bench.
type Failure = Box<dyn Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

/// A part that can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Polls on both tiers, and their latencies.
    Polls,
    /// A poll of everything, and of the feed, and what users take in Redis.
    Unread,
    /// Durable increments, alone and in batches.
    Increments,
    /// Notifications that group, to many receivers.
    Notifications,
    /// Lists, follows, and the import of a graph.
    Relations,
    /// Groups: polls, sends, fan-out, inboxes, receipts.
    Chats,
    /// A user's chats in one list, and messages that mention many.
    ChatList,
    /// Many relations, and many users' unread summaries, in one request.
    Lookups,
    /// What reading a group writes and stores.
    Written,
    /// A broadcast with few users and with ten million.
    Broadcasts,
}

/// Measure the rows of the table of speeds, and write them to docs/benchmarks.md.
#[derive(Debug, Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    hidden: Option<Hidden>,
    /// The server to measure [default: the release build beside this program]
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// A quick look, small and in short rounds; prints and writes nothing unless --out says where
    #[arg(long)]
    quick: bool,
    /// Only these parts (comma-separated); prints and writes nothing unless --out says where
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Where the document goes [default for a whole run: docs/benchmarks.md]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Makes the data smaller or larger: 1 is a million users with badges
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    scale: Option<f64>,
    /// Connections of every client
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(2..=300))]
    connections: u16,
    /// Rounds of each side
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: Option<u16>,
    /// Seconds of a round
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: Option<u16>,
    /// A graph of follows (CSV, plain, .gz or .zst) to import instead of a made one
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
}

fn factor(text: &str) -> Result<f64> {
    let factor: f64 = text.parse()?;
    if (0.001..=100.0).contains(&factor) { Ok(factor) } else { Err("a factor from 0.001 to 100".into()) }
}

/// How much of everything.
#[derive(Debug, Clone, Copy)]
struct Scale {
    users: u64,
    /// How many of them poll.
    polling: usize,
    followers: u64,
    edges: u64,
    /// Users who get a broadcast.
    crowd: u64,
    /// Members of the group into whose inboxes messages are put.
    members: u64,
    rounds: Rounds,
    /// Of rows of which there are many.
    brief: Rounds,
    open: Duration,
    connections: usize,
}

impl Scale {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "factors are from 0.001 to 100")]
    fn of(args: &Args) -> Self {
        let factor = args.scale.unwrap_or(if args.quick { 0.05 } else { 1.0 });
        let times = |count: u64| ((stats::float(count) * factor) as u64).max(1000);
        let (count, seconds) = if args.quick { (2, 2) } else { (5, 4) };
        let each = Duration::from_secs(u64::from(args.seconds.unwrap_or(seconds)));
        let (brief_count, brief_seconds) = if args.quick { (2, 1) } else { (3, 2) };
        let brief_each = Duration::from_secs(u64::from(args.seconds.unwrap_or(brief_seconds)));
        Self {
            users: times(1_000_000),
            // Few enough that what expires between two turns of a side is a small part of what it
            // answers in one.
            polling: 2_000,
            followers: times(1_000_000),
            edges: times(2_000_000),
            crowd: times(10_000_000),
            members: times(10_000).min(100_000),
            rounds: Rounds { count: usize::from(args.rounds.unwrap_or(count)), each },
            brief: Rounds { count: usize::from(args.rounds.unwrap_or(brief_count)), each: brief_each },
            open: Duration::from_secs(if args.quick { 4 } else { 40 }),
            connections: usize::from(args.connections),
        }
    }
}

impl Args {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// Where the document goes; a part or a quick look must not take the place of a whole run.
    fn out(&self) -> Option<PathBuf> {
        let is_whole = !self.quick && self.only.is_empty() && self.scale.is_none();
        self.out.clone().or_else(|| is_whole.then(|| PathBuf::from("docs/benchmarks.md")))
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Whichever branch loses is dropped, and with `run` its servers and the temporary folder.
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = run(&args) => outcome,
            outcome = interrupted() => outcome,
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn interrupted() -> Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        caught = tokio::signal::ctrl_c() => caught?,
        _ = term.recv() => {}
    }
    Err("interrupted".into())
}

async fn run(args: &Args) -> Result<()> {
    if let Some(hidden) = &args.hidden {
        return peers::serve(hidden).await;
    }
    let report = rows::run(args, Scale::of(args)).await?;
    match args.out() {
        Some(out) => write(&report, &out),
        None => report::show(&report.markdown(None)?),
    }
}

/// Writes the document, with its picture and its line in the history beside it.
fn write(report: &report::Report, out: &Path) -> Result<()> {
    let history = History::beside(out)?;
    let run = Run { program: machine::program(), points: report.points() };
    let picture = chart::svg(&run, history.last())?;
    let text = report.markdown(history.last())?;
    report::show(&text)?;
    let put = |file: &Path, text: &str| std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()));
    put(out, &text)?;
    put(&out.with_extension("svg"), &picture)?;
    history.append(&run)?;
    eprintln!("bench: written to {}", out.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_run_takes_the_place_of_the_document() {
        let out = |words: &[&str]| Args::try_parse_from([&["bench"], words].concat()).unwrap().out();
        assert_eq!(out(&[]), Some("docs/benchmarks.md".into()));
        for words in [&["--quick"][..], &["--only", "polls"], &["--only", "chats,written"], &["--scale", "0.5"]] {
            assert_eq!(out(words), None, "{words:?}");
        }
        assert_eq!(out(&["--quick", "--out", "x.md"]), Some("x.md".into()));
        assert!(Args::try_parse_from(["bench", "--scale", "0"]).is_err());
    }
}
