//! What several commands share: their logs, their output, and how they end.

use clap::Args;

use crate::app::config::{Config, LogFormat};
use crate::app::doctor::DAMAGED;
use crate::app::telemetry;

/// How a command ended.
pub(super) enum Done {
    /// All is well.
    Well,
    /// Something is not as it should be; it was told.
    WithFindings,
}

/// Why a command did not run, or not to its end.
pub(super) enum Failure {
    /// The settings are wrong, and stay so until somebody changes them.
    Settings(String),
    /// Something else.
    Other(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// The settings of the server, with the secrets from their files, and checked.
pub(super) fn settled(config: Config) -> Result<Config, Failure> {
    let config = config.resolved().map_err(Failure::Settings)?;
    config.check().map_err(Failure::Settings)?;
    Ok(config)
}

/// The address of a server.
///
/// # Errors
/// What it is to look like.
pub(super) fn url(text: &str) -> Result<reqwest::Url, String> {
    let url = text.parse().ok().filter(|url: &reqwest::Url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    url.ok_or_else(|| "an address begins with http:// or https://, as in http://127.0.0.1:8080".to_owned())
}

/// What a command other than the server logs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs")]
pub(super) struct CommandLogs {
    /// The log level on standard error, or levels by module (`info,headmark=debug`).
    #[arg(long, env = "HEADMARK_LOG", default_value = "warn", value_parser = telemetry::filter)]
    log: String,

    /// The log format.
    #[arg(long, env = "HEADMARK_LOG_FORMAT", value_enum, default_value = "auto")]
    log_format: LogFormat,
}

impl CommandLogs {
    pub(super) fn init(&self) -> Result<(), String> {
        telemetry::init_logs(&self.log, self.log_format.is_json())
    }
}

/// Why a command that reads the database ended early.
pub(super) fn failed(what: &str, error: &sqlx::Error) -> String {
    let said = crate::db::said(error);
    let hint = if DAMAGED.iter().any(|code| said.contains(code)) {
        " (stop the server and restore a backup)"
    } else if matches!(error, sqlx::Error::Database(_)) && !crate::db::classify(error).may_pass() {
        " (is the schema up to date? see `headmark migrate`)"
    } else {
        ""
    };
    format!("the {what} ended early: {said}{hint}")
}

/// A line on standard error. A reader that went away is no error of ours, nor is a full disk: there
/// is nowhere else to say it.
pub(super) fn complain_of_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "headmark: {text}");
}

/// Prints to standard output. A reader that went away is no error of ours; a full disk is one.
pub(super) fn say(text: &str) -> Result<(), String> {
    use std::io::Write as _;
    match writeln!(std::io::stdout(), "{text}").and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("cannot write to standard output: {error}")),
        _ => Ok(()),
    }
}

/// The runtime of a command.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?
        .block_on(future)
}
