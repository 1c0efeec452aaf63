//! Replays a real private-message log as `dm` badges against a server, with polls and resets in
//! between, and checks every number.
//!
//! `data` reads the log, `client` speaks HTTP, `server` starts a server of its own, `inbox` knows
//! what an inbox may show at any moment, `replay` is the load, `check` compares the end with a
//! direct count over the file, `report` prints. One more kind of request goes into `client` (how to
//! ask), `inbox` (what is a right answer) and `replay` (when).
#![expect(clippy::print_stderr, reason = "progress and errors are for the person who runs the demo")]

mod check;
mod client;
mod data;
mod inbox;
mod replay;
mod report;
mod server;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Client, Target};
use crate::data::Log;
use crate::replay::Stage;
use crate::server::OwnServer;

/// Every failure of the demo ends in a sentence for the person who runs it.
type Failure = Box<dyn Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

/// With a server that others use too, the demo stays clear of real users: their ids are not likely
/// to begin here.
const FIRST_SHARED_OFFSET: u64 = 1_000_000_000_000;
/// Blocks of ids to try on such a server before giving up, and the size of one.
const MAX_BLOCKS: u64 = 100;
const BLOCK_SIZE: u64 = 1_000_000;

/// Replay a real private-message log as badges, poll and reset in between, and check every number.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Args {
    /// Server to start on a free port with a temporary data directory [default: the release build
    /// beside this example]
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    server: Option<PathBuf>,
    /// A running server instead, such as http://127.0.0.1:8080
    #[arg(long, value_parser = client::parse_url)]
    url: Option<String>,
    /// Service key for that server (`name:secret` or the bare secret)
    #[arg(long, env = "DEMO_KEY", hide_env_values = true, requires = "url", value_parser = client::parse_key)]
    key: Option<String>,
    /// Message log: CSV with timestamp,channel,sender, plain or .gz [default: the log that comes
    /// with the project]
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Added to every id of the log [default: 0, or with --url the first block of ids without
    /// counts]
    #[arg(long, value_name = "N")]
    id_offset: Option<u64>,
    /// Name of the badge that counts the messages
    #[arg(long, default_value = "dm", value_parser = client::parse_name)]
    badge: String,
    /// Writers side by side; one inbox always stays with one writer, so its messages stay in order
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: u16,
    /// Further tasks that do nothing but poll, and check, while the writers write
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(0..=4096))]
    pollers: u16,
    /// Decides which inbox polls and resets when: the same seed ends in the same numbers
    #[arg(long, default_value_t = 2004)]
    seed: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("demo: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Whichever branch loses is dropped, and with `run` its server and the temporary directory.
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = run(&args) => outcome,
            outcome = interrupted() => outcome,
        }
    });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for Ctrl-C or SIGTERM; the exit status is the shell's own for it.
async fn interrupted() -> Result<ExitCode> {
    let mut term = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let status = tokio::select! {
        caught = tokio::signal::ctrl_c() => { caught?; 130 }
        _ = term.recv() => 143,
        _ = hangup.recv() => 129,
    };
    eprintln!("\ndemo: interrupted");
    Ok(ExitCode::from(status))
}

async fn run(args: &Args) -> Result<ExitCode> {
    let log = Log::read(args.file.as_deref())?;
    if let Some(url) = &args.url {
        return drive(args, &log, url, None).await;
    }
    let mut server = OwnServer::start(args.server.as_deref()).await?;
    let (url, data_dir) = (server.url(), server.data_dir());
    tokio::select! {
        outcome = drive(args, &log, &url, Some(&data_dir)) => outcome,
        error = server.ended() => Err(error),
    }
}

/// Replays, checks and reports. With a server of our own, `data_dir` is where it keeps its data.
async fn drive(args: &Args, log: &Log, url: &str, data_dir: Option<&Path>) -> Result<ExitCode> {
    let base = url.to_owned();
    let client = Client::new(Target { base, key: args.key.clone(), badge: args.badge.clone(), log_id: log.id.clone() })?;
    client.ready().await?;

    let offset = choose_offset(args, &client, log).await?;
    report::show(&report::opening(log, &client, data_dir, offset)?)?;
    let stage = Arc::new(Stage::new(client, log, offset)?);
    let tally = replay::run(&stage, log, args).await?;
    let checked = check::run(&stage, log, data_dir.is_some()).await?;
    report::show(&report::closing(log, &stage, &tally, &checked, (args.concurrency, args.pollers))?)?;
    Ok(if stage.difference_count() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Finds ids that have no counts yet: the checks compare with a count over the file alone.
async fn choose_offset(args: &Args, client: &Client, log: &Log) -> Result<u64> {
    if let (None, Some(_)) = (args.id_offset, &args.url) {
        for block in 0..MAX_BLOCKS {
            let offset = FIRST_SHARED_OFFSET + block * BLOCK_SIZE;
            if check::used(client, log, offset).await?.is_none() {
                return Ok(offset);
            }
        }
        return Err(
            format!("{MAX_BLOCKS} blocks of ids from {FIRST_SHARED_OFFSET} on are used up; give another --badge or --id-offset").into()
        );
    }
    let offset = args.id_offset.unwrap_or(0);
    match check::used(client, log, offset).await? {
        None => Ok(offset),
        Some(user) => Err(format!(
            "user {user} already has a count in badge \"{}\", and the check needs a fresh start; give another --id-offset or --badge",
            args.badge
        )
        .into()),
    }
}
