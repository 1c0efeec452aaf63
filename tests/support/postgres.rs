//! A Postgres of a test's own, which it may stop hard, back up and restore.

use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::RngExt as _;
use sqlx::{Connection as _, PgConnection};

use super::engine;

/// How Postgres begins with a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// As after a crash: on the same timeline as before.
    AsItIs,
    /// As from an archive of its log (`recovery.signal`): on another timeline.
    FromArchive,
}

/// A durable Postgres on a free port. Stopped when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    data: PathBuf,
    bin: PathBuf,
    /// The account it runs as, where the test is root, which Postgres refuses to be.
    owner: Option<(u32, u32)>,
    port: u16,
    password: String,
}

impl PostgresServer {
    /// Makes a cluster in this folder and starts it.
    pub fn start(dir: &Path) -> Self {
        let this = Self::make(dir, &[]);
        this.begin();
        this
    }

    /// Makes a cluster in this folder, with further arguments.
    pub fn make(dir: &Path, more: &[&str]) -> Self {
        let this = Self::new(dir.join("pg"), format!("{:032x}", rand::rng().random::<u128>()));
        let secret = dir.join("password");
        std::fs::write(&secret, &this.password).unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        if let Some((uid, gid)) = this.owner {
            chown(&secret, Some(uid), Some(gid)).unwrap();
        }
        let arguments = ["-U", "headmark", "-A", "scram-sha-256", "--pwfile", secret.to_str().unwrap(), "--no-sync"];
        this.run("initdb", &[&arguments[..], more].concat());
        this
    }

    /// A server of its own that follows this one.
    pub fn replica(&self) -> Self {
        let this = Self::new(self.data.with_file_name("replica"), self.password.clone());
        this.run("pg_basebackup", &["-d", &self.url(), "-R", "-X", "stream", "-c", "fast", "--no-sync"]);
        this.begin();
        this
    }

    /// Copies the whole cluster while it serves (a base backup); returns the folder.
    pub fn back_up(&self) -> PathBuf {
        let copy = Self::new(self.data.with_file_name("backup"), self.password.clone());
        copy.run("pg_basebackup", &["-d", &self.url(), "-X", "stream", "-c", "fast", "--no-sync"]);
        copy.data.clone()
    }

    /// Replaces the data by a backup, which is used up, and starts it at the same address. Returns
    /// when it takes writes.
    pub async fn restore(&self, backup: &Path, recovery: Recovery) {
        self.crash();
        std::fs::rename(&self.data, self.data.with_file_name("lost")).unwrap();
        std::fs::rename(backup, &self.data).unwrap();
        if recovery == Recovery::FromArchive {
            let (signal, settings) = (self.data.join("recovery.signal"), self.data.join("postgresql.auto.conf"));
            std::fs::write(&signal, "").unwrap();
            if let Some((uid, gid)) = self.owner {
                chown(&signal, Some(uid), Some(gid)).unwrap();
            }
            // All of the log that is wanted is in the backup.
            let text = std::fs::read_to_string(&settings).unwrap();
            std::fs::write(&settings, format!("{text}restore_command = 'false'\n")).unwrap();
        }
        self.begin();
        super::eventually("it takes writes", async || {
            let Ok(mut conn) = PgConnection::connect(&self.url()).await else { return false };
            sqlx::query_scalar("select not pg_is_in_recovery()").fetch_one(&mut conn).await.unwrap_or(false)
        })
        .await;
    }

    /// With an empty folder.
    fn new(data: PathBuf, password: String) -> Self {
        let owner = std::env::var("HEADMARK_PG_OWNER").ok().map(|owner| {
            let (uid, gid) = owner.split_once(':').unwrap();
            (uid.parse().unwrap(), gid.parse().unwrap())
        });
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
        if let Some((uid, gid)) = owner {
            chown(&data, Some(uid), Some(gid)).unwrap();
        }
        Self { data, bin: PathBuf::from(engine("HEADMARK_PG_BIN")), owner, port, password }
    }

    /// Starts it again at the same address.
    pub fn begin(&self) {
        self.begin_after(":");
    }

    /// The same from a shell, after this command.
    pub fn begin_after(&self, command: &str) {
        let options =
            format!("-c port={} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 -c fsync=on", self.port);
        let log = self.data.join("log");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command}; exec \"$0\" \"$@\"")]).arg(self.bin.join("pg_ctl"));
        let start = self.complete(shell, &["-w", "-l", log.to_str().unwrap(), "-o", &options, "start"]).status().unwrap();
        assert!(start.success(), "pg_ctl start");
    }

    /// Stops every process at once, without a checkpoint: the next start is a crash recovery.
    pub fn crash(&self) {
        self.run("pg_ctl", &["-m", "immediate", "stop"]);
    }

    /// The same where it may have ended by itself.
    pub fn end(&self) {
        let _ended = self.command("pg_ctl", &["-m", "immediate", "stop"]).stderr(std::process::Stdio::null()).status();
    }

    /// A replica becomes a primary.
    pub fn promote(&self) {
        self.run("pg_ctl", &["-w", "promote"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        assert!(self.command(program, arguments).status().unwrap().success(), "{program} {arguments:?}");
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        self.complete(Command::new(self.bin.join(program)), arguments)
    }

    fn complete(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.arg("-D").arg(&self.data).args(arguments).current_dir("/").stdout(std::process::Stdio::null());
        if let Some((uid, gid)) = self.owner {
            command.gid(gid).uid(uid);
        }
        command
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.join("log")).unwrap()
    }

    pub fn url(&self) -> String {
        format!("postgres://headmark:{}@127.0.0.1:{}/postgres", self.password, self.port)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end();
    }
}
