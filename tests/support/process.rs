//! A node as a process of its own, that can be killed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use super::Client;

/// Variables that name stores. In the environment of the tests they are somebody else's.
pub const STORES: [&str; 4] = ["DATABASE_URL", "DATABASE_URL_FILE", "REDIS_URL", "REDIS_URL_FILE"];

/// Runs `headmark` to its end, which must come within twenty seconds.
pub async fn run(args: &[&str], env: &[(&str, &str)]) -> std::process::Output {
    tokio::time::timeout(Duration::from_secs(20), run_with_input(args, env, Vec::new())).await.expect("it ends")
}

/// Runs `headmark` to its end, with this as standard input.
pub async fn run_with_input(args: &[&str], env: &[(&str, &str)], input: Vec<u8>) -> std::process::Output {
    let mut child = start(args, env);
    let mut stdin = child.stdin.take().unwrap();
    // Anyone who ends early does not read all of it.
    let write = async { stdin.write_all(&input).await.ok().map(|()| drop(stdin)) };
    tokio::join!(write, child.wait_with_output()).1.unwrap()
}

/// `headmark` with these arguments, of which the URLs of the stores go by the environment: they
/// hold passwords, and every account of the machine can read the arguments of a process.
fn headmark<T: AsRef<str>>(args: &[T]) -> Command {
    with_args(Command::new(env!("CARGO_BIN_EXE_headmark")), args)
}

fn with_args<T: AsRef<str>>(mut command: Command, args: &[T]) -> Command {
    for variable in STORES {
        command.env_remove(variable);
    }
    // Nor the stores of a headmark.toml in the folder that the tests run in.
    command.env("HEADMARK_CONFIG", "/dev/null");
    let mut args = args.iter().map(AsRef::<str>::as_ref);
    while let Some(arg) = args.next() {
        match arg {
            "--database-url" => command.env("DATABASE_URL", args.next().expect("a URL")),
            "--redis-url" => command.env("REDIS_URL", args.next().expect("a URL")),
            arg => command.arg(arg),
        };
    }
    command
}

/// Starts `headmark`, all of whose streams are pipes.
pub fn start(args: &[&str], env: &[(&str, &str)]) -> Child {
    headmark(args)
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the headmark binary")
}

/// The sentence with which `headmark` refuses to start.
pub async fn refusal(args: &[&str], env: &[(&str, &str)]) -> String {
    let output = run(args, env).await;
    assert!(!output.status.success(), "it started");
    String::from_utf8(output.stderr).unwrap()
}

/// A running `headmark`. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pub base: String,
    pub client: Client,
}

impl Process {
    /// Starts it and waits until it listens.
    pub async fn start(args: &[String], env: &[(&str, &str)]) -> Self {
        Self::spawn(headmark(args).envs(env.iter().copied())).await
    }

    /// Starts it from a shell, after this command, and with its log in this file.
    pub async fn start_after(command: &str, args: &[String], env: &[(&str, &str)], log: &Path) -> Self {
        let log = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_headmark")]);
        Self::spawn(with_args(shell, args).envs(env.iter().copied()).stderr(log)).await
    }

    async fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("the headmark binary");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(Duration::from_secs(20), async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some((_, base)) = line.split_once("is listening on ") {
                    return base.to_owned();
                }
            }
            panic!("the node ended before it listened");
        });
        let base = first.await.expect("a node that listens within twenty seconds");
        // Read on, so that it never waits for a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, client: Client::new(&base), base }
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("a process to kill");
    }

    /// Memory that it has in use, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        ps(self.id(), "rss=").parse::<u64>().unwrap() * 1024
    }

    /// CPU time that it has used, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        ps(self.id(), "time=").split([':', '-']).fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap())
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// SIGSTOP, and waits until it stands still: on busy cores it may go on for a while, and serve
    /// what comes.
    pub async fn stall(&self) {
        self.signal("-STOP");
        stands_still(self.id()).await;
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        kill(signal, self.id());
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id().expect("a running process")
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        tokio::time::timeout(Duration::from_secs(40), self.child.wait()).await.expect("the process ends").unwrap()
    }
}

/// Sends a process a signal, named as the command has it.
pub fn kill(signal: &str, process: u32) {
    assert!(std::process::Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// Waits until a process that was sent SIGSTOP stands still.
pub async fn stands_still(process: u32) {
    super::eventually("it stands still", async || ps(process, "stat=").starts_with('T')).await;
}

/// What `ps` says of a process.
fn ps(process: u32, what: &str) -> String {
    let told = std::process::Command::new("ps").args(["-o", what, "-p", &process.to_string()]).output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().to_owned()
}
