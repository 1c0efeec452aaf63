//! The command line. To add a command: a variant here and a file with its `run`.

mod config;
mod doctor;
mod epoch;
mod export;
mod healthcheck;
mod import;
mod layers;
mod manual;
mod migrate;
mod names;
mod openapi;
mod output_file;
mod recount;
mod serve;
mod settings_file;
mod shared;
mod token;
mod variables;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::layers::{Layers, Unreadable};
use self::shared::{Done, Failure, complain_of_line, settled};
use crate::app::config::Config;

/// Unread counts, feeds, receipts and inboxes for social and chat products, in one HTTP service.
///
/// Without a command, it runs the server. By default, the server stores data in ./headmark-data,
/// listens on 127.0.0.1:8080 and accepts requests from any process on this machine. Try
/// http://127.0.0.1:8080/console, or the routes at http://127.0.0.1:8080/docs.
#[derive(Debug, Parser)]
#[command(name = "headmark", version, args_conflicts_with_subcommands = true, max_term_width = 120)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    config: Config,
}

/// Where settings are read from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings file")]
struct FileArgs {
    /// The settings file, in TOML: the name of an option with underscores, and its value
    /// (`redis_url = "redis://…"`). An option overrides a variable, and a variable overrides the
    /// file. Default: `headmark.toml` in the working directory, if there is one.
    #[arg(long = "config", env = "HEADMARK_CONFIG", value_name = "PATH", global = true)]
    settings_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run the server (default).
    Serve(Box<Config>),
    /// Check or print the settings of the server.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Examine the stores, the machine and a running server, and say what to fix.
    ///
    /// It takes the settings of the server. It reads the database, and writes one key to Redis that
    /// lives for a second. With --url it also asks a running server, through a load balancer where
    /// there is one: it writes, polls, waits and is woken, for one user that you can choose.
    ///
    /// Exit status: 0 all is well; 3 something is to be fixed; 1 the command could not start; 2
    /// invalid usage.
    Doctor(Box<doctor::DoctorArgs>),
    /// Ask a running server whether it is ready, for the health check of a container.
    ///
    /// Exit status: 0 it is ready; 1 it is not, or does not answer; 2 invalid usage.
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Migrate the database schema and exit.
    ///
    /// The serve and import commands also migrate, under a lock. A schema of a newer version is
    /// left unchanged.
    Migrate(migrate::MigrateArgs),
    /// Create a credential and print it.
    ///
    /// A user token is signed with HEADMARK_JWT_SECRET, with the claims of HEADMARK_JWT_AUDIENCE
    /// and HEADMARK_JWT_ISSUER. A service key is newly generated; add it to HEADMARK_SERVICE_KEYS
    /// to use it.
    Token(token::TokenArgs),
    /// Import data from a file.
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Export data to a file.
    #[command(subcommand)]
    Export(export::ExportCommand),
    /// Verify all counts against the stored rows, and repair differences.
    ///
    /// It verifies the number of badges and follows of each user, the numbers of followers and
    /// mutual follows, and that both sides of each follow and request agree. If they differ, the follower's
    /// side is right. It also verifies unread direct messages and notifications, memberships,
    /// inboxes, the heads of posts, views, groups and channels, and that no mark is beyond the head
    /// of its stream. It prints each difference when it finds it. A missing or extra row also
    /// changes the number of followers.
    ///
    /// On Postgres it can run beside servers. Polls show two of these numbers: unread direct
    /// messages and notifications. Servers with Redis show repaired ones within
    /// HEADMARK_CACHE_TTL_S. A server without Redis may show the old ones for as long as the user
    /// goes on polling: stop it first, or raise its cache's epoch afterwards, with `update
    /// cache_guard set epoch = epoch + 1048576`. On SQLite stop the server first, or use --dry-run,
    /// which needs no lock.
    ///
    /// Exit status: 0 there was no difference, or all were repaired; 3 there are differences, and
    /// --dry-run left them; 1 the command could not start or finish; 2 invalid usage.
    Recount(recount::RecountArgs),
    /// Print the epoch of the installation, or start a new one.
    ///
    /// A restored database reuses revisions and numbers that clients have already seen with other
    /// contents. On Postgres a starting server detects most restores. After other restores, and
    /// after every restore on SQLite, run this command with --renew before clients reconnect. On
    /// Postgres it can run beside servers. On SQLite stop the server first, except to print the
    /// epoch.
    #[command(alias = "inbox-epoch")]
    Epoch(epoch::EpochArgs),
    /// Print the OpenAPI document, as served at /openapi.json.
    Openapi,
    /// Print what completes commands and options in a shell.
    ///
    /// For bash: `headmark completions bash > /etc/bash_completion.d/headmark`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    ///
    /// It has all commands and settings. To read it: `headmark man | man -l -`.
    Man,
}

impl Cli {
    /// The settings of the server that this command line asks for.
    ///
    /// # Errors
    /// As [`Config::resolved`].
    pub fn into_config(self) -> Result<Config, String> {
        match self.command {
            Some(CliCommand::Serve(config)) => config.resolved(),
            _ => self.config.resolved(),
        }
    }

    /// Reads the command line, the environment and the settings file, and runs the command to its
    /// end.
    #[must_use]
    pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
        let command = Self::command();
        let args: Vec<_> = args.collect();
        let read = layers::read(&command, &args).and_then(|layers| Ok((Self::from_arg_matches(&layers.matches)?, layers)));
        let done = match read {
            Ok((cli, layers)) => {
                let known = variables::check(&command, std::env::vars_os()).map_err(Failure::Settings);
                known.and_then(|()| cli.done(&layers, &command))
            }
            Err(Unreadable::Line(error)) => error.exit(),
            Err(Unreadable::File(why)) => Err(Failure::Settings(why)),
        };
        match done {
            Ok(Done::Well) => ExitCode::SUCCESS,
            Ok(Done::WithFindings) => ExitCode::from(FINDINGS),
            Err(Failure::Settings(why)) => {
                complain_of_line(&why);
                ExitCode::from(USAGE)
            }
            // Shells say nothing of it either.
            Err(Failure::Stopped(signal)) => ExitCode::from(signal.exit_status()),
            Err(Failure::Other(why)) => {
                complain_of_line(&why);
                ExitCode::FAILURE
            }
        }
    }
}

impl Cli {
    fn done(self, layers: &Layers, command: &clap::Command) -> Result<Done, Failure> {
        match self.command {
            None => serve::run(&settled(self.config)?)?,
            Some(CliCommand::Serve(config)) => serve::run(&settled(*config)?)?,
            Some(CliCommand::Config(of)) => config::run(of, layers, command)?,
            Some(CliCommand::Doctor(args)) => return doctor::run(*args),
            Some(CliCommand::Healthcheck(args)) => healthcheck::run(&args, layers.leaf())?,
            Some(CliCommand::Migrate(args)) => migrate::run(args)?,
            Some(CliCommand::Token(args)) => token::run(&args)?,
            Some(CliCommand::Import(command)) => return import::run(command, layers.leaf()),
            Some(CliCommand::Export(export::ExportCommand::Follows(args))) => return export::run(args),
            Some(CliCommand::Recount(args)) => return recount::run(args),
            Some(CliCommand::Epoch(args)) => epoch::run(args)?,
            Some(CliCommand::Openapi) => openapi::run()?,
            Some(CliCommand::Completions { shell }) => manual::completions(command, shell)?,
            Some(CliCommand::Man) => manual::page(command)?,
        }
        Ok(Done::Well)
    }
}

/// The exit status of a command that ran to its end and found something that is not as it should
/// be. (1: it could not run, or not to its end.)
const FINDINGS: u8 = 3;

/// The exit status where the command line or the settings are wrong, as clap has it. A supervisor
/// need not try again.
const USAGE: u8 = 2;
