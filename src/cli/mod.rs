//! The command line. To add a command: a variant here and a file with its `run`.

mod migrate;
mod openapi;
mod serve;
mod token;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Config;

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
    /// Bring the database schema up to date and exit. Serving does it too, under a lock.
    Migrate(migrate::MigrateArgs),
    /// Make a credential and print it.
    Token(token::TokenArgs),
    /// Print the OpenAPI document.
    Openapi,
}

impl Cli {
    /// The settings of the server that this command line asks for.
    #[must_use]
    pub fn into_config(self) -> Config {
        match self.command {
            Some(Command::Serve(config)) => config.without_empty(),
            _ => self.config.without_empty(),
        }
    }

    /// Runs the command to its end.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let done = match self.command {
            None => serve::run(&self.config.without_empty()),
            Some(Command::Serve(config)) => serve::run(&config.without_empty()),
            Some(Command::Migrate(args)) => migrate::run(args),
            Some(Command::Token(args)) => token::run(&args),
            Some(Command::Openapi) => openapi::run(),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                complain(&why);
                ExitCode::FAILURE
            }
        }
    }
}

#[expect(clippy::print_stderr, reason = "the last word of a command that failed")]
fn complain(why: &str) {
    eprintln!("headmark: {why}");
}

/// Prints to standard output; a reader that went away is no error of ours.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The runtime of a command.
fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?
        .block_on(future)
}
