//! `headmark import`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio_util::sync::CancellationToken;

use super::{CommandLogs, Done, block_on, complain_of_line, say};
use crate::clock::Clock;
use crate::config::CacheArgs;
use crate::db::StoreConfig;
use crate::import::{OnBad, Progress, lane_config};
use crate::relations::FollowConfig;
use crate::stores::Writing;
use crate::{feed, groups, inbox, relations};

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
    /// their order in the file, and of several about one pair the last one counts. The visibility is `public` or `secret`, special is `true` or `false`.
    ///
    /// A follow that is there already is left as it is, also where the file has it otherwise, so an import may be run again, also after it was killed: what is imported
    /// stays. A follow that a block forbids is refused. Follows may exceed
    /// HEADMARK_MAX_FOLLOWING unless --enforce-limits is given. No badge is raised, and readers of events are told with --events only.
    ///
    /// A line about two users with asynchronous writes that are accepted and not done comes after those: it waits until running servers have done them. Where none does, it is
    /// given up after 10 s, counted as `writes pending`, and not done: start a server, and run the import again.
    ///
    /// It writes as a server does. On Postgres with Redis it works beside running servers; give it their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On
    /// SQLite, and on Postgres without Redis, stop the server first.
    ///
    /// Exit status: 0 all lines are in; 3 some lines were bad, refused by the limit or a block, or given up, the others are in; 1 it could not run, or not to its end; 2 wrong usage.
    Follows(Box<ImportFollowsArgs>),
    /// Import who posted, from CSV: plain, gzip or zstd, which its first bytes tell.
    ///
    /// The first line names the columns, in any order: user,post_id[,timestamp]. A timestamp is in Unix seconds or RFC 3339; it is checked and not kept, as no route
    /// shows it. For how long an id is known (HEADMARK_POST_TTL_DAYS) counts from the import.
    ///
    /// A post that is known counts once, and one that was deleted stays deleted, so an import may be run again, also after it was killed: what is imported stays. Who
    /// follows a creator and was seen before finds the new posts unread. Readers of events are told of new posts.
    ///
    /// It writes as a server does. On Postgres with Redis it works beside running servers; give it their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On
    /// SQLite, and on Postgres without Redis, stop the server first.
    ///
    /// Exit status: 0 all lines are in; 3 some lines were bad or refused, the others are in; 1 it could not run, or not to its end; 2 wrong usage.
    Posts(Box<ImportPostsArgs>),
    /// Import a chat log, from CSV: plain, gzip or zstd, which its first bytes tell.
    ///
    /// The first line names the columns, in any order: timestamp,channel,sender[,content][,event]; a
    /// column `topic` is ignored. A timestamp is in Unix seconds or RFC 3339, and the lines must be in
    /// the order of time. A channel that is a number becomes the group of that number (--id-offset
    /// shifts it). One that has a name gets the first ids from --first-group-id on that no group has,
    /// keeps its id in later runs, and the mapping is printed.
    ///
    /// Senders are members from their first message on, or from what --members has: a file with
    /// timestamp,channel,user,event, where the event is join or leave, in the order of time. Both are
    /// merged by time, events before messages of the same second. Within a second each file keeps its
    /// order. With a column `event` (message, join or leave) in the log itself, the order of that file
    /// decides, which keeps the order of a log whose times are only to the minute. A sender who is not
    /// a member joins by sending.
    ///
    /// With `--as directs` each line is a direct message to the user whose id the channel is. They are kept in inboxes from the import on.
    ///
    /// Each line is taken once, so an import may be run again, also after it was killed, or with a log
    /// that was repaired or has grown. A message is known by its sender, time and content.
    ///
    /// It writes as a server does. On Postgres with Redis it works beside running servers; give it their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On
    /// SQLite, and on Postgres without Redis, stop the server first.
    ///
    /// Exit status: 0 all lines are in; 3 some lines were bad or refused, the others are in; 1 it could not run, or not to its end; 2 wrong usage.
    Messages(Box<ImportMessagesArgs>),
}

/// What the messages of a log become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MessagesAs {
    /// Messages of groups: each channel is a group.
    Groups,
    /// Direct messages: each channel is the user who received them.
    Directs,
}

/// Which file, and how.
#[derive(Debug, Args)]
pub(super) struct ImportMessagesArgs {
    /// The file; `-` is standard input.
    file: PathBuf,

    /// What the messages become.
    #[arg(long = "as", env = "HEADMARK_IMPORT_AS", value_enum, default_value_t = MessagesAs::Groups)]
    becomes: MessagesAs,

    /// A file of who joined and left when.
    #[arg(long, env = "HEADMARK_MEMBERS")]
    members: Option<PathBuf>,

    /// The first id for channels that have names.
    #[arg(long, env = "HEADMARK_FIRST_GROUP_ID", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..))]
    first_group_id: i64,

    /// Let channels with names become groups that exist already, and add other logs to a channel.
    #[arg(long, env = "HEADMARK_IMPORT_MERGE")]
    merge: bool,

    /// Added to each id, as in `--id-offset 1` where ids begin at 0. May be negative.
    #[arg(long, env = "HEADMARK_ID_OFFSET", default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    logs: CommandLogs,
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

    /// Tell readers of events of each follow; else what is imported is no news.
    #[arg(long)]
    events: bool,

    /// How many lines a file with actions may have: they are held in memory, at about 100 bytes each, to put them in the order of time.
    #[arg(long, env = "HEADMARK_MAX_EVENTS", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_events: u32,

    #[command(flatten)]
    follows: FollowConfig,
    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    logs: CommandLogs,
}

/// Which file, and how.
#[derive(Debug, Args)]
pub(super) struct ImportPostsArgs {
    /// The file; `-` is standard input.
    file: PathBuf,

    /// Added to each user's id, as in `--id-offset 1` where ids begin at 0. May be negative.
    #[arg(long, env = "HEADMARK_ID_OFFSET", default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(command: ImportCommand) -> Result<Done, String> {
    match command {
        ImportCommand::Follows(args) => import_follows(*args),
        ImportCommand::Posts(args) => import_posts(*args),
        ImportCommand::Messages(args) => import_messages(*args),
    }
}

fn import_follows(args: ImportFollowsArgs) -> Result<Done, String> {
    args.logs.init()?;
    let import = relations::import::Import {
        file: args.file,
        id_offset: args.id_offset,
        limit: args.enforce_limits.then_some(args.follows.max_following),
        badge: args.follows.follower_badge.0,
        events: args.events,
        max_events: usize::try_from(args.max_events).unwrap_or(usize::MAX),
        now: Clock::System.now(),
    };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores.lanes(), progress, on_bad).await)?;
    say(&summary_of_follows(&report, took))?;
    ended(report.broken_off, report.bad + report.done.over_limit + report.done.blocked + report.done.pending)
}

fn import_posts(args: ImportPostsArgs) -> Result<Done, String> {
    args.logs.init()?;
    let import = feed::import::Import { file: args.file, id_offset: args.id_offset };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores.lanes(), progress, on_bad).await)?;
    say(&summary_of_posts(&report, took))?;
    ended(report.broken_off, report.bad + report.done.refused)
}

fn import_messages(args: ImportMessagesArgs) -> Result<Done, String> {
    args.logs.init()?;
    if args.becomes == MessagesAs::Directs {
        return import_directs(args);
    }
    let ImportMessagesArgs { file, members, id_offset, first_group_id, merge, .. } = args;
    let import = groups::import::Import { file, members, id_offset, first_group_id, merge };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores, progress, on_bad).await)?;
    for (channel, group, is_imported) in &report.named {
        if *is_imported {
            say(&format!("channel {channel} is group {group}"))?;
        } else {
            complain_of_line(&format!(
                "channel {channel} is refused: group {group} has that name from another log; rename the channel, or add to the group with --merge"
            ));
        }
    }
    say(&summary_of_messages(&report, took))?;
    ended(report.broken_off, report.bad + report.done.refused)
}

/// How an import ended: with a file that broke off, with findings, or well.
fn ended(broken_off: Option<String>, findings: u64) -> Result<Done, String> {
    match broken_off {
        Some(why) => Err(why),
        None if findings == 0 => Ok(Done::Well),
        None => Ok(Done::WithFindings),
    }
}

fn import_directs(args: ImportMessagesArgs) -> Result<Done, String> {
    if args.members.is_some() {
        return Err("--members is about groups; leave it out with --as directs".to_owned());
    }
    let import = inbox::import::Import { file: args.file, id_offset: args.id_offset };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores.lanes(), progress, on_bad).await)?;
    say(&summary_of_directs(&report, took))?;
    ended(report.broken_off, report.bad + report.done.refused)
}

/// Opens the stores as a node does, runs an import through lanes, and shows how far it is. What became of it, and how long it took.
fn through_lanes<R>(
    stores: &StoreConfig,
    cache: &CacheArgs,
    import: impl AsyncFnOnce(&Writing, Arc<Progress>, OnBad) -> Result<R, String>,
) -> Result<(R, Duration), String> {
    crate::start_failpoints();
    block_on(async {
        let (stores, cache) = (stores.clone().resolved()?, cache.clone().resolved()?);
        let writing = Writing::start(&stores, &cache, &lane_config(), Clock::System).await?;
        let began = Instant::now();
        let progress = Arc::new(Progress::default());
        let (stop, bar) = (CancellationToken::new(), bar());
        let shown = tokio::spawn(show(Arc::clone(&progress), bar.clone(), stop.clone()));
        let done = import(&writing, progress, teller(bar)).await;
        stop.cancel();
        // Nothing but the end of the bar waits for it.
        let _ = shown.await;
        writing.finish().await;
        done.map(|report| (report, began.elapsed()))
    })
}

/// Tells of each bad line, without tearing the bar.
fn teller(bar: ProgressBar) -> OnBad {
    Box::new(move |number, why| bar.suspend(|| complain_of_line(&format!("line {number} {why}"))))
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

fn summary_of_follows(report: &relations::import::Report, took: Duration) -> String {
    let relations::import::Report { lines, bad, overtaken, done, .. } = report;
    let edges = done.followed + done.unfollowed + done.known + done.over_limit + done.blocked + done.pending;
    format!(
        "lines read        {lines}\nfollowed          {}\nunfollowed        {}\nknown already     {}\novertaken         {overtaken}\n\
         refused by limit  {}\nrefused by block  {}\nwrites pending    {}\nbad               {bad}\nseconds           {:.1}\nedges a second    {}",
        done.followed,
        done.unfollowed,
        done.known,
        done.over_limit,
        done.blocked,
        done.pending,
        took.as_secs_f64(),
        per_second(edges, took)
    )
}

fn summary_of_posts(report: &feed::import::Report, took: Duration) -> String {
    let feed::import::Report { lines, bad, done, .. } = report;
    let posts = done.posted + done.known + done.gone + done.refused;
    format!(
        "lines read        {lines}\nposted            {}\nknown already     {}\ndeleted before    {}\nrefused           {}\nbad               {bad}\n\
         seconds           {:.1}\nposts a second    {}",
        done.posted,
        done.known,
        done.gone,
        done.refused,
        took.as_secs_f64(),
        per_second(posts, took)
    )
}

fn summary_of_messages(report: &groups::import::Report, took: Duration) -> String {
    let groups::import::Report { lines, bad, done, .. } = report;
    let steps = done.sent + done.left + done.known + done.refused;
    format!(
        "lines read        {lines}\nsent              {}\njoined            {}\nleft              {}\nknown already     {}\nrefused           {}\n\
         bad               {bad}\nseconds           {:.1}\nlines a second    {}",
        done.sent,
        done.joined,
        done.left,
        done.known,
        done.refused,
        took.as_secs_f64(),
        per_second(steps, took)
    )
}

fn summary_of_directs(report: &inbox::import::Report, took: Duration) -> String {
    let inbox::import::Report { lines, bad, done, .. } = report;
    format!(
        "lines read        {lines}\nsent              {}\nknown already     {}\nrefused           {}\nbad               {bad}\nseconds           {:.1}\n\
         messages a second {}",
        done.sent,
        done.known,
        done.refused,
        took.as_secs_f64(),
        per_second(done.sent + done.known + done.refused, took)
    )
}
