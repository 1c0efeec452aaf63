//! What several commands share: their logs, their output, and how they end.

use std::time::Duration;

use clap::Args;
use tokio::sync::oneshot;

use crate::app::config::{Config, LogFormat};
use crate::app::doctor::DAMAGED;
use crate::app::signals::{StopSignal, told_to_stop};
use crate::app::telemetry;

/// How long what is under way may hold the end of a command: a read of standard input, or a write to
/// a pipe, may never come back.
const MAX_END: Duration = Duration::from_secs(1);

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
    /// It was told to stop.
    Stopped(StopSignal),
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

/// Runs a command to its end, or until a signal asks it to stop. What it was doing is dropped then,
/// as on an error.
pub(super) fn block_on<T>(command: impl Future<Output = Result<T, String>>) -> Result<T, Failure> {
    on_runtime(async {
        let (tell, told) = oneshot::channel();
        tokio::spawn(stop(told_to_stop(), tell));
        tokio::select! {
            done = command => done.map_err(Failure::Other),
            Ok(signal) = told => Err(Failure::Stopped(signal)),
        }
    })?
}

/// Tells a command of the signal that asks it to stop. Inside a call that blocks, it does not hear:
/// then the process ends without it.
async fn stop(signal: impl Future<Output = StopSignal>, tell: oneshot::Sender<StopSignal>) {
    let signal = signal.await;
    // Nobody hears where the command has just ended.
    let _ = tell.send(signal);
    tokio::time::sleep(MAX_END).await;
    std::process::exit(signal.exit_status().into());
}

/// Runs something on a runtime of its own.
///
/// # Errors
/// A sentence: why there is no runtime.
pub(super) fn on_runtime<T>(run: impl Future<Output = T>) -> Result<T, String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| format!("cannot start the runtime: {error}"))?;
    let done = runtime.block_on(run);
    runtime.shutdown_timeout(MAX_END);
    Ok(done)
}
