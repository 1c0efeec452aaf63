//! `headmark import`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio_util::sync::CancellationToken;

use super::{CommandLogs, Done, block_on, complain_of_line, say};
use crate::clock::Clock;
use crate::config::CacheArgs;
use crate::db::StoreConfig;
use crate::import::{OnBad, Progress, lane_config};
use crate::relations::FollowLimit;
use crate::relations::import::{Import, Report};
use crate::stores::Writing;

/// How many bad lines are told one by one; the others are counted.
const MAX_TOLD: u64 = 20;

/// How often progress is shown, on a terminal and elsewhere.
const REDRAW: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(10);

/// What to import.
#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Import who follows whom, from CSV: plain, gzip or zstd, which its first bytes tell.
    ///
    /// The first line names the columns, in any order: follower,followee[,timestamp][,action][,visibility][,special]. A timestamp is in Unix seconds or RFC
    /// 3339; without that column all follows are as of now. An action is `follow` or `unfollow`; the lines are then taken in the order of time, whatever
    /// their order in the file, and of several about one pair the last one counts. The visibility can only be `public` so far, and special only `false`.
    ///
    /// A follow that is there already is left as it is, so an import may be run again, also after it was killed: what is imported stays. Follows may exceed
    /// HEADMARK_MAX_FOLLOWING unless --enforce-limits is given. No badge is raised.
    ///
    /// It writes as a server does. On Postgres with Redis it works beside running servers; give it their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On
    /// SQLite, and on Postgres without Redis, stop the server first.
    ///
    /// Exit status: 0 all lines are in; 3 some lines were bad or refused by the limit, the others are in; 1 it could not run, or not to its end; 2 wrong usage.
    Follows(Box<ImportFollowsArgs>),
}

/// Which file, and how.
#[derive(Debug, Args)]
pub(super) struct ImportFollowsArgs {
    /// The file; `-` is standard input.
    file: PathBuf,

    /// Added to each id, as in `--id-offset 1` for a graph whose ids begin at 0. May be negative.
    #[arg(long, env = "HEADMARK_ID_OFFSET", default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,

    /// Refuse follows beyond HEADMARK_MAX_FOLLOWING.
    #[arg(long)]
    enforce_limits: bool,

    /// How many lines a file with actions may have: they are held in memory, at about 100 bytes each, to put them in the order of time.
    #[arg(long, env = "HEADMARK_MAX_EVENTS", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_events: u32,

    #[command(flatten)]
    limit: FollowLimit,
    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: ImportFollowsArgs) -> Result<Done, String> {
    args.logs.init()?;
    crate::start_failpoints();
    block_on(async {
        let (stores, cache) = (args.stores.without_empty(), args.cache.without_empty());
        let import = Import {
            file: args.file,
            id_offset: args.id_offset,
            limit: args.enforce_limits.then_some(args.limit.max_following),
            max_events: usize::try_from(args.max_events).unwrap_or(usize::MAX),
            now: Clock::System.now(),
        };
        let writing = Writing::start(&stores, &cache, &lane_config(), Clock::System).await?;
        let began = Instant::now();
        let progress = Arc::new(Progress::default());
        let (stop, bar) = (CancellationToken::new(), bar());
        let shown = tokio::spawn(show(Arc::clone(&progress), bar.clone(), stop.clone()));
        let done = import.run(writing.lanes(), progress, teller(bar)).await;
        stop.cancel();
        // Nothing but the end of the bar waits for it.
        let _ = shown.await;
        writing.finish().await;
        let report = done?;
        say(&summary(&report, began.elapsed()));
        Ok(if report.bad + report.done.over_limit == 0 { Done::Well } else { Done::WithFindings })
    })
}

/// Tells the first bad lines, without tearing the bar.
fn teller(bar: ProgressBar) -> OnBad {
    let mut told = 0;
    Box::new(move |number, why| {
        told += 1;
        if told <= MAX_TOLD {
            bar.suspend(|| complain_of_line(&format!("line {number} {why}")));
        }
        if told == MAX_TOLD {
            bar.suspend(|| complain_of_line("further bad lines are only counted"));
        }
    })
}

/// A bar on a terminal, and nothing elsewhere.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {msg}, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    // The template is well-formed; were it not, the default would do.
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

async fn show(progress: Arc<Progress>, bar: ProgressBar, stop: CancellationToken) {
    let (began, mut told) = (Instant::now(), Instant::now());
    loop {
        tokio::select! {
            () = stop.cancelled() => break bar.finish_and_clear(),
            () = tokio::time::sleep(REDRAW) => {}
        }
        let (bytes, total) = (progress.bytes.load(Ordering::Relaxed), progress.total_bytes.load(Ordering::Relaxed));
        let steps = progress.steps.load(Ordering::Relaxed);
        let message = format!("{steps} done, {} a second", per_second(steps, began.elapsed()));
        if bar.is_hidden() && told.elapsed() >= TELL {
            complain_of_line(&message);
            told = Instant::now();
        }
        // Of what comes through a pipe, the end is not known.
        bar.set_length(if total == 0 { bytes } else { total });
        bar.set_position(bytes);
        bar.set_message(message);
    }
}

fn per_second(count: u64, took: Duration) -> u64 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    count.saturating_mul(1000) / millis
}

fn summary(report: &Report, took: Duration) -> String {
    let Report { lines, bad, overtaken, done } = report;
    let edges = done.followed + done.unfollowed + done.known + done.over_limit;
    format!(
        "lines read        {lines}\nfollowed          {}\nunfollowed        {}\nknown already     {}\novertaken         {overtaken}\n\
         refused by limit  {}\nbad               {bad}\nseconds           {:.1}\nedges a second    {}",
        done.followed,
        done.unfollowed,
        done.known,
        done.over_limit,
        took.as_secs_f64(),
        per_second(edges, took)
    )
}
