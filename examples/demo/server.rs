//! A server of the demo's own: started on a free port with a temporary data directory, stopped and
//! removed whatever happens.

use std::fs::{self, DirBuilder, File};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::Result;

/// How long a server may take to be ready.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Another program can take the free port before the server does; then the next one is tried.
const MAX_STARTS: u32 = 3;
/// How often to look whether the server still runs.
const WATCH_EVERY: Duration = Duration::from_millis(200);
/// How much of a failed server's log is shown.
const MAX_LOG_LINES: usize = 20;

/// A running server. Dropping it stops it and removes its data.
#[derive(Debug)]
pub(crate) struct OwnServer {
    // The order matters: fields drop from the top, and the process ends before its directory goes.
    process: Process,
    directory: TempDir,
    port: u16,
}

#[derive(Debug)]
struct Process(Child);

#[derive(Debug)]
struct TempDir(PathBuf);

impl Drop for Process {
    /// Killed, not drained: its data is thrown away in the next moment.
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("demo: the server (process {}) may still run: {error}", self.0.id());
        }
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("demo: {} is left behind: {error}", self.0.display());
        }
    }
}

impl OwnServer {
    /// Starts the binary and waits until it is ready.
    pub(crate) async fn start(binary: Option<&Path>) -> Result<Self> {
        let binary = match binary {
            Some(path) => path.to_path_buf(),
            None => release_build()?,
        };
        // The server runs in its own directory, so a relative path must be made absolute; and this
        // is where a missing one shows.
        let binary = binary
            .canonicalize()
            .map_err(|error| format!("there is no server at {} ({error}); run `cargo build --release` first", binary.display()))?;
        let mut starts = 0;
        loop {
            starts += 1;
            match Self::start_once(&binary).await {
                Err(error) if starts == MAX_STARTS || !error.to_string().contains("in use") => return Err(error),
                Err(_another_took_the_port) => {}
                Ok(server) => return Ok(server),
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.directory.0.join("data")
    }

    /// Waits until the server ends, which it must not while it is used, and says how it ended.
    pub(crate) async fn ended(&mut self) -> Failure {
        loop {
            match self.process.0.try_wait() {
                Ok(None) => tokio::time::sleep(WATCH_EVERY).await,
                Ok(Some(status)) => return format!("the server ended ({status}):\n{}", self.directory.last_log_lines()).into(),
                Err(error) => return error.into(),
            }
        }
    }

    async fn start_once(binary: &Path) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = TempDir::new(port)?;
        let log = File::create(directory.log())?;
        let mut command = Command::new(binary);
        // What is set for another server (its stores, keys and limits) must not reach this one;
        // only how much it logs may be said.
        for (name, _value) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let is_setting = text.starts_with("HEADMARK_") || text.starts_with("DATABASE_URL") || text.starts_with("REDIS_");
            if is_setting && text != "HEADMARK_LOG" {
                command.env_remove(&name);
            }
        }
        let process = command
            .arg("--listen")
            .arg(format!("127.0.0.1:{port}"))
            .arg("--data-dir")
            .arg(directory.0.join("data"))
            .env("HEADMARK_RATE_LIMIT", "0")
            .current_dir(&directory.0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        let mut server = Self { process: Process(process), directory, port };
        server.wait_until_ready().await?;
        Ok(server)
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
        let url = format!("{}/readyz", self.url());
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.0.try_wait()? {
                return Err(format!("the server ended before it was ready ({status}):\n{}", self.directory.last_log_lines()).into());
            }
            // Refused connections and 503 are what starting looks like from outside.
            if http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                let limit = START_LIMIT.as_secs();
                return Err(format!("the server was not ready within {limit} s:\n{}", self.directory.last_log_lines()).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl TempDir {
    /// Made for this run alone and readable by nobody else; one that is already there is never
    /// taken.
    fn new(port: u16) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("headmark-demo-{}-{port}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn log(&self) -> PathBuf {
        self.0.join("server.log")
    }

    fn last_log_lines(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_else(|error| format!("(its log does not read: {error})"));
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(MAX_LOG_LINES)..).unwrap_or_default().join("\n")
    }
}

/// The release build in the target directory that this example was itself built into.
fn release_build() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    // …/target/<profile>/examples/demo
    let target = example.ancestors().nth(3).ok_or("the demo does not lie in a target directory; say --server PATH")?;
    Ok(target.join("release").join(format!("headmark{}", std::env::consts::EXE_SUFFIX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_not_built_says_what_to_do() {
        let error = OwnServer::start(Some(Path::new("/nowhere/headmark"))).await.expect_err("there is none").to_string();
        assert!(error.contains("/nowhere/headmark") && error.contains("cargo build --release"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_ends_at_once_leaves_nothing_behind() {
        // This test program itself: it does not know the arguments and ends.
        let program = std::env::current_exe().expect("a path");
        let error = OwnServer::start(Some(&program)).await.expect_err("it ends").to_string();
        assert!(error.contains("ended before it was ready"), "{error}");
        let mine = format!("headmark-demo-{}-", std::process::id());
        let left = fs::read_dir(std::env::temp_dir()).expect("reads").flatten().any(|e| e.file_name().to_string_lossy().starts_with(&mine));
        assert!(!left);
    }
}
