//! `headmark import`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio_util::sync::CancellationToken;

use super::shared::{CommandLogs, Done, Failure, block_on, complain_of_line, say};
use crate::app::config::CacheArgs;
use crate::app::stores::Writing;
use crate::base::clock::Clock;
use crate::db::{SQLITE_FILE, StoreConfig};
use crate::features::relations::FollowConfig;
use crate::maintenance::import::{OnBad, Progress, directs, follows, lane_config, messages, posts};

/// How often progress is shown, on a terminal and elsewhere.
const REDRAW: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(10);

/// What to import.
#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Import follows from a CSV file: plain, gzip or zstd, detected by its content.
    ///
    /// The header line names the columns, in any order:
    /// follower,followee[,timestamp][,action][,visibility][,special][,requested]. A timestamp is in
    /// Unix seconds or RFC 3339; without that column, all follows begin now. An action is `follow`
    /// or `unfollow`. Lines with actions are sorted by time, and the last line of each pair counts.
    /// The visibility is `public` or `secret`; special and requested are `true` or `false`. A line
    /// that is requested makes a follow request.
    ///
    /// Existing follows stay unchanged, even if the file differs, so you can repeat an import, also
    /// after it was killed. A follow that a block forbids is refused. Follows can exceed
    /// HEADMARK_MAX_FOLLOWING unless --enforce-limits is given. No badge is incremented, and events
    /// are published only with --events.
    ///
    /// A line about two users with pending asynchronous writes waits until running servers have
    /// applied those. After 10 s without one, the line is skipped and counted as `writes pending`.
    /// Then start a server and repeat the import.
    ///
    /// The import writes like a server. On Postgres with Redis it can run beside servers; give it
    /// their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On SQLite, and on Postgres without
    /// Redis, stop the server first.
    ///
    /// Exit status: 0 all lines were imported; 3 some lines were invalid, refused by the limit or a
    /// block, or skipped, and all others were imported; 1 the import could not start or finish; 2
    /// invalid usage.
    Follows(Box<ImportFollowsArgs>),
    /// Import posts from a CSV file: plain, gzip or zstd, detected by its content.
    ///
    /// The header line names the columns, in any order: user,post_id[,timestamp]. A timestamp is in
    /// Unix seconds or RFC 3339; it is validated but not stored. The retention of ids
    /// (HEADMARK_POST_TTL_DAYS) starts at the import.
    ///
    /// Known posts count once, and deleted posts stay deleted, so you can repeat an import, also
    /// after it was killed. After HEADMARK_POST_TTL_DAYS an id is no longer known, and its post counts as
    /// new: import only new lines then. Followers of a creator who are enrolled get the new posts as unread.
    /// Events are published for new posts.
    ///
    /// The import writes like a server. On Postgres with Redis it can run beside servers; give it
    /// their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On SQLite, and on Postgres without
    /// Redis, stop the server first.
    ///
    /// Exit status: 0 all lines were imported; 3 some lines were invalid or refused, and all others
    /// were imported; 1 the import could not start or finish; 2 invalid usage.
    Posts(Box<ImportPostsArgs>),
    /// Import a chat log from a CSV file: plain, gzip or zstd, detected by its content.
    ///
    /// The header line names the columns, in any order: timestamp,channel,sender[,content][,event].
    /// A column `topic` is ignored. A timestamp is in Unix seconds or RFC 3339, and lines must be
    /// sorted by time. A channel that is a number becomes the group of that number, shifted by
    /// --id-offset. A channel with a name gets the first free id from --first-group-id on and keeps
    /// it in later runs. The command prints the mapping.
    ///
    /// Senders become members with their first message, or as --members says: a file with
    /// timestamp,channel,user,event, where the event is join or leave, sorted by time. Both files
    /// are merged by time, events before messages of the same second. Within a second each file
    /// keeps its order. A column `event` (message, join or leave) in the log itself keeps the order
    /// of that file instead, for logs with times in minutes. A sender who is not a member joins by
    /// sending.
    ///
    /// With `--as directs` each line is a direct message, and the channel is the receiver's user
    /// id. The retention of these messages starts at the import.
    ///
    /// Each line is imported once, so you can repeat an import, also after it was killed, or with a
    /// log that was repaired or has grown. A message is identified by its sender, time and content.
    /// In a group of which messages have expired, older ones count as known. A direct message that has
    /// expired is sent again: repeat such an import before HEADMARK_INBOX_DAYS are over.
    ///
    /// The import writes like a server. On Postgres with Redis it can run beside servers; give it
    /// their DATABASE_URL, REDIS_URL and HEADMARK_CACHE_PREFIX. On SQLite, and on Postgres without
    /// Redis, stop the server first.
    ///
    /// Exit status: 0 all lines were imported; 3 some lines were invalid or refused, and all others
    /// were imported; 1 the import could not start or finish; 2 invalid usage.
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

    /// The kind of messages to create.
    #[arg(long = "as", env = "HEADMARK_IMPORT_AS", value_enum, default_value_t = MessagesAs::Groups)]
    becomes: MessagesAs,

    /// A file with the joins and leaves of members.
    #[arg(long, env = "HEADMARK_MEMBERS")]
    members: Option<PathBuf>,

    /// The first group id for channels that have names.
    #[arg(long, env = "HEADMARK_FIRST_GROUP_ID", default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..))]
    first_group_id: i64,

    /// Allow channels with names to become existing groups, and add other logs to a channel.
    // Its value needs the `=`: the word behind `--merge` is the file.
    #[arg(
        long,
        env = "HEADMARK_IMPORT_MERGE",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    merge: bool,

    /// A number added to each id, such as `--id-offset 1` if ids start at 0. Can be negative.
    #[arg(long, env = "HEADMARK_ID_OFFSET", default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    logs: CommandLogs,
}

impl ImportMessagesArgs {
    /// What is about groups does nothing for direct messages. Where a variable or the settings file sets
    /// the last two, they may be there for other runs.
    fn check(&self, given: &ArgMatches) -> Result<(), String> {
        let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
        let of_groups =
            [("--members", self.members.is_some()), ("--merge", is_given("merge")), ("--first-group-id", is_given("first_group_id"))];
        match of_groups.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.becomes == MessagesAs::Directs => {
                Err(format!("{option} is about groups; leave it out with --as directs"))
            }
            _ => Ok(()),
        }
    }
}

/// Which file, and how.
#[derive(Debug, Args)]
pub(super) struct ImportFollowsArgs {
    /// The file; `-` is standard input.
    file: PathBuf,

    /// A number added to each id, such as `--id-offset 1` for a graph whose ids start at 0. Can be
    /// negative.
    #[arg(long, env = "HEADMARK_ID_OFFSET", default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,

    /// Refuse follows beyond HEADMARK_MAX_FOLLOWING.
    #[arg(long)]
    enforce_limits: bool,

    /// Publish an event for each imported follow. Default: no events.
    #[arg(long)]
    events: bool,

    /// The maximum number of lines of a file with actions. They are sorted by time in memory, at
    /// about 100 bytes each.
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

    /// A number added to each user id, such as `--id-offset 1` if ids start at 0. Can be negative.
    #[arg(long, env = "HEADMARK_ID_OFFSET", default_value_t = 0, allow_negative_numbers = true)]
    id_offset: i64,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(command: ImportCommand, given: &ArgMatches) -> Result<Done, Failure> {
    match command {
        ImportCommand::Follows(args) => block_on(import_follows(*args)),
        ImportCommand::Posts(args) => block_on(import_posts(*args)),
        ImportCommand::Messages(args) => {
            args.check(given).map_err(Failure::Settings)?;
            block_on(import_messages(*args))
        }
    }
}

async fn import_follows(args: ImportFollowsArgs) -> Result<Done, String> {
    args.logs.init()?;
    let import = follows::FollowImport {
        file: args.file,
        id_offset: args.id_offset,
        limit: args.enforce_limits.then_some(args.follows.max_following),
        badges: args.follows.badges(),
        events: args.events,
        max_events: usize::try_from(args.max_events).unwrap_or(usize::MAX),
        now: Clock::System.now(),
    };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores.lanes(), progress, on_bad).await)
            .await?;
    say(&summary_of_follows(&report, took))?;
    ended(report.broken_off, report.bad + report.done.over_limit + report.done.blocked + report.done.pending)
}

async fn import_posts(args: ImportPostsArgs) -> Result<Done, String> {
    args.logs.init()?;
    let import = posts::PostImport { file: args.file, id_offset: args.id_offset };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores.lanes(), progress, on_bad).await)
            .await?;
    say(&summary_of_posts(&report, took))?;
    ended(report.broken_off, report.bad + report.done.refused)
}

async fn import_messages(args: ImportMessagesArgs) -> Result<Done, String> {
    args.logs.init()?;
    if args.becomes == MessagesAs::Directs {
        return import_directs(args).await;
    }
    let ImportMessagesArgs { file, members, id_offset, first_group_id, merge, .. } = args;
    let import = messages::LogImport { file, members, id_offset, first_group_id, merge };
    let (report, took) = through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| {
        import.run(stores.lanes(), stores.db().clone(), progress, on_bad).await
    })
    .await?;
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

async fn import_directs(args: ImportMessagesArgs) -> Result<Done, String> {
    let import = directs::DirectImport { file: args.file, id_offset: args.id_offset };
    let (report, took) =
        through_lanes(&args.stores, &args.cache, async |stores, progress, on_bad| import.run(stores.lanes(), progress, on_bad).await)
            .await?;
    say(&summary_of_directs(&report, took))?;
    ended(report.broken_off, report.bad + report.done.refused)
}

/// Opens the stores as a node does, runs an import through lanes, and shows how far it is. What
/// became of it, and how long it took.
async fn through_lanes<R>(
    stores: &StoreConfig,
    cache: &CacheArgs,
    import: impl AsyncFnOnce(&Writing, Arc<Progress>, OnBad) -> Result<R, String>,
) -> Result<(R, Duration), String> {
    crate::start_failpoints();
    let (stores, cache) = (stores.clone().resolved()?, cache.clone().resolved()?);
    let file = stores.data_dir.join(SQLITE_FILE);
    let is_new = stores.database_url.is_none() && !file.exists();
    let writing = Writing::start(&stores, &cache, &lane_config(), Clock::System).await?;
    if is_new {
        complain_of_line(&format!("{} was not there: this import goes into a new database", file.display()));
    }
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

fn summary_of_follows(report: &follows::Report, took: Duration) -> String {
    let follows::Report { lines, bad, overtaken, done, .. } = report;
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

fn summary_of_posts(report: &posts::Report, took: Duration) -> String {
    let posts::Report { lines, bad, done, .. } = report;
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

fn summary_of_messages(report: &messages::Report, took: Duration) -> String {
    let messages::Report { lines, bad, done, .. } = report;
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

fn summary_of_directs(report: &directs::Report, took: Duration) -> String {
    let directs::Report { lines, bad, done, .. } = report;
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
