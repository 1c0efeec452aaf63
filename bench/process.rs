//! Processes that are measured: started on a free port, watched for what they cost, killed when
//! dropped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Result;
use crate::wire;

/// How long a process may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(60);
/// What a process that serves says once it does.
const LISTENING: &str = "is listening on http://";

/// A server under measurement.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Where it answers.
    pub(crate) address: SocketAddr,
}

/// Where the truth and the cache of a server are.
#[derive(Debug, Clone)]
pub(crate) enum Stores {
    /// SQLite in this folder, the cache in the process.
    Embedded(PathBuf),
    /// Postgres and Redis, with what its keys begin with.
    Server { postgres: String, redis: String, prefix: &'static str },
}

impl Stores {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Embedded(_) => "embedded",
            Self::Server { .. } => "server",
        }
    }
}

/// The `headmark` program with these stores, and no setting of anyone who runs the bench: what is
/// measured are the defaults.
pub(crate) fn headmark(program: &Path, stores: &Stores) -> Command {
    let mut command = Command::new(program);
    for (name, _value) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("HEADMARK_") || text.starts_with("DATABASE_URL") || text.starts_with("REDIS_") {
            command.env_remove(&name);
        }
    }
    match stores {
        Stores::Embedded(folder) => command.env("HEADMARK_DATA_DIR", folder),
        Stores::Server { postgres, redis, prefix } => {
            command.env("DATABASE_URL", postgres).env("REDIS_URL", redis).env("HEADMARK_CACHE_PREFIX", prefix)
        }
    };
    // No headmark.toml of the folder that the bench runs in.
    command.env("HEADMARK_CONFIG", "/dev/null");
    command.env("HEADMARK_RATE_LIMIT", "0").env("HEADMARK_LOG", "error").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command of `headmark` to its end; what it prints goes to our standard error, where
/// progress is shown.
pub(crate) async fn run(mut command: Command, what: &str) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().await.map_err(|error| format!("{what}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed: {status}").into()) }
}

impl Process {
    /// Starts a server on a free port and waits until it answers.
    pub(crate) async fn server(program: &Path, stores: &Stores) -> Result<Self> {
        let mut command = headmark(program, stores);
        command.env("HEADMARK_LISTEN", "127.0.0.1:0");
        let this = Self::start(command).await?;
        let begun = tokio::time::Instant::now();
        while wire::ask_once(this.address, &wire::request("GET", "/readyz", &[])).await?.status != 200 {
            if begun.elapsed() > START_LIMIT {
                return Err(format!("the {} tier is not ready", stores.name()).into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(this)
    }

    /// Starts a program that says where it listens.
    pub(crate) async fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no standard output")?).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some((_, address)) = line.split_once(LISTENING) {
                    return Ok::<_, crate::Failure>(address.parse()?);
                }
            }
            Err("a server ended before it listened".into())
        };
        let address = tokio::time::timeout(START_LIMIT, listening).await.map_err(|_| "a server does not listen")??;
        // Read on, so that it never waits for a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { child, address })
    }

    /// Processor time used so far, user and system, in seconds. None where the system does not
    /// tell.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()?)).ok()?;
        ticks(&stat).map(|ticks| crate::stats::float(ticks) / ticks_per_second())
    }
}

/// User and system time of a line of `/proc/<pid>/stat`, in ticks. The name in parentheses may hold
/// anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

fn ticks_per_second() -> f64 {
    let told = std::process::Command::new("getconf").arg("CLK_TCK").output().ok();
    told.and_then(|out| String::from_utf8(out.stdout).ok()).and_then(|text| text.trim().parse().ok()).unwrap_or(100.0)
}

/// A folder of this run alone, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("headmark-bench-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("bench: {} is left behind: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_hold_anything() {
        let stat = "42 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 700 30 0 0 20 0 2 0";
        assert_eq!(ticks(stat), Some(730));
        assert_eq!(ticks("nonsense"), None);
    }
}
