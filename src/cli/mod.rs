//! The command line. To add a command: a variant here and a file with its `run`.

mod epoch;
mod export;
mod import;
mod migrate;
mod openapi;
mod recount;
mod serve;
mod token;
mod variables;

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::config::{Config, LogFormat};

/// Everything that a social or chat product polls for, in one HTTP service.
///
/// Without a command it serves. With nothing set it keeps its data in ./headmark-data, listens on 127.0.0.1:8080 and takes requests from
/// anyone on this machine; try http://127.0.0.1:8080/docs.
#[derive(Debug, Parser)]
#[command(name = "headmark", version, args_conflicts_with_subcommands = true, max_term_width = 120)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    config: Config,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve HTTP (the default).
    Serve(Box<Config>),
    /// Bring the database schema up to date and exit.
    ///
    /// Serving does it too, as import does, under a lock. A schema of a newer version is left as it is.
    Migrate(migrate::MigrateArgs),
    /// Make a credential and print it.
    ///
    /// A token for a user is signed with HEADMARK_JWT_SECRET, and names what HEADMARK_JWT_AUDIENCE and HEADMARK_JWT_ISSUER say. A service key is new: it
    /// counts once it is in HEADMARK_SERVICE_KEYS.
    Token(token::TokenArgs),
    /// Take over data from a file.
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Write data to a file.
    #[command(subcommand)]
    Export(export::ExportCommand),
    /// Compare every number with the rows that it counts, and repair what differs.
    ///
    /// Compared are: how many badges and follows a user has, how many followers and mutual follows, and whether both sides of each follow agree (then the
    /// follower's side is right); how many direct messages are unread, and where each direct chat is in the inbox; whether a mark lies beyond the head of its stream. Each difference is printed as it is found. A row that is missing or too much makes the number of followers differ
    /// as well.
    ///
    /// On Postgres it works beside running servers; of these numbers their caches show only the unread direct messages, and take up to HEADMARK_CACHE_TTL_S to
    /// show a repaired one. On SQLite stop the server first, or use --dry-run, which
    /// needs no lock.
    ///
    /// Exit status: 0 nothing differed, or all was repaired; 3 something differs and --dry-run left it so; 1 it could not run, or not to its end; 2
    /// wrong usage.
    Recount(recount::RecountArgs),
    /// Print the epoch of the installation, or begin another.
    ///
    /// A restored database gives revisions and numbers again that clients have seen with other contents. On Postgres a server that starts notices most restores by
    /// itself; after any other, and on SQLite after every one, run this with --renew before clients come back. On Postgres it works beside running servers; on
    /// SQLite stop the server first, but to print it.
    #[command(alias = "inbox-epoch")]
    Epoch(epoch::EpochArgs),
    /// Print the OpenAPI document, as the server has it at /openapi.json.
    Openapi,
}

impl Cli {
    /// The settings of the server that this command line asks for.
    ///
    /// # Errors
    /// As [`Config::resolved`].
    pub fn into_config(self) -> Result<Config, String> {
        match self.command {
            Some(Command::Serve(config)) => config.resolved(),
            _ => self.config.resolved(),
        }
    }

    /// Runs the command to its end.
    #[must_use]
    pub fn run(self) -> ExitCode {
        if let Err(why) = variables::check(&Self::command(), std::env::vars_os()) {
            complain_of_line(&why);
            return ExitCode::FAILURE;
        }
        let done = match self.command {
            None => self.config.resolved().and_then(|config| serve::run(&config)).map(|()| Done::Well),
            Some(Command::Serve(config)) => config.resolved().and_then(|config| serve::run(&config)).map(|()| Done::Well),
            Some(Command::Migrate(args)) => migrate::run(args).map(|()| Done::Well),
            Some(Command::Token(args)) => token::run(&args).map(|()| Done::Well),
            Some(Command::Import(command)) => import::run(command),
            Some(Command::Export(export::ExportCommand::Follows(args))) => export::run(args),
            Some(Command::Recount(args)) => recount::run(args),
            Some(Command::Epoch(args)) => epoch::run(args).map(|()| Done::Well),
            Some(Command::Openapi) => openapi::run().map(|()| Done::Well),
        };
        match done {
            Ok(Done::Well) => ExitCode::SUCCESS,
            Ok(Done::WithFindings) => ExitCode::from(FINDINGS),
            Err(why) => {
                complain_of_line(&why);
                ExitCode::FAILURE
            }
        }
    }
}

/// The exit status of a command that ran to its end and found something that is not as it should be. (1: it could not run, or not to its end; 2: it was
/// called wrongly.)
const FINDINGS: u8 = 3;

/// How a command ended.
enum Done {
    /// All is well.
    Well,
    /// Something is not as it should be; it was told.
    WithFindings,
}

/// What a command other than the server logs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
struct CommandLogs {
    /// What is logged, to standard error: a level, or levels by module (`info,headmark=debug`).
    #[arg(long, env = "HEADMARK_LOG", default_value = "warn")]
    log: String,

    /// How it looks.
    #[arg(long, env = "HEADMARK_LOG_FORMAT", value_enum, default_value = "auto")]
    log_format: LogFormat,
}

impl CommandLogs {
    fn init(&self) -> Result<(), String> {
        crate::telemetry::init_logs(&self.log, self.log_format.is_json())
    }
}

/// Why a command that reads the database ended early.
fn failed(what: &str, error: &sqlx::Error) -> String {
    let schema = matches!(error, sqlx::Error::Database(_)) && !crate::db::classify(error).may_pass();
    let hint = if schema { " (is the schema up to date? see `headmark migrate`)" } else { "" };
    format!("the {what} ended early: {error}{hint}")
}

/// A line on standard error. A reader that went away is no error of ours, nor is a full disk: there is nowhere else to say it.
fn complain_of_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "headmark: {text}");
}

/// Prints to standard output. A reader that went away is no error of ours; a full disk is one.
fn say(text: &str) -> Result<(), String> {
    use std::io::Write as _;
    match writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("cannot write to standard output: {error}")),
        _ => Ok(()),
    }
}

/// The runtime of a command.
fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?
        .block_on(future)
}
