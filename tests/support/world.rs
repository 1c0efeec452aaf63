//! Where a test lives: isolated stores, and nodes on them.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use clap::Parser as _;
use headmark::app::cli::Cli;
use headmark::app::config::Config;
use headmark::app::node::App;
use headmark::app::serve::{Stop, Threads, serve};
use headmark::base::clock::Clock;
use headmark::db::Db;
use rand::RngExt as _;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::net::TcpListener;

use super::distributed;
use super::{Client, Process, STORES};

/// The secret that signs users' tokens.
pub const JWT_SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The secret of [`Node::service`].
const SERVICE_SECRET: &str = "s3cret-of-the-suite";

/// The arguments of a node that asks for credentials.
pub const CREDENTIALS: [&str; 4] = ["--service-keys", "web:s3cret-of-the-suite", "--jwt-secret", JWT_SECRET];

/// Which stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// SQLite and the cache in the process.
    Embedded,
    /// Postgres and Redis.
    Server,
}

/// One test's own stores.
#[derive(Debug)]
pub struct World {
    pub tier: Tier,
    /// The data folder of the embedded tier.
    pub dir: PathBuf,
    /// The database of the server tier, as a URL.
    pub database_url: String,
    /// The Redis of the server tier; empty for a node on Postgres alone.
    pub redis_url: String,
    /// What this world's keys begin with.
    pub prefix: String,
    /// How many partitions the large tables of the server tier have.
    pub partitions: u32,
}

/// As many partitions as show what differs from plain tables.
const PARTITIONS: u32 = 2;

/// The name of the file in a data folder.
pub(super) const SQLITE_FILE: &str = "headmark.sqlite";

/// The URL of an engine that `make test` started.
pub fn engine(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: the suite needs private engines; run `make test`"))
}

/// The number of the advisory lock under which a test makes the template that others take.
const TEMPLATE_LOCK: i64 = 7;

/// Makes every table of the stores that these arguments name, as a node does.
async fn prepare(args: &[&str]) {
    let args = ["headmark"].iter().chain(args);
    let config = Cli::try_parse_from(args).unwrap().into_config().unwrap();
    let (db, _held) = Db::open(&config.stores).await.unwrap();
    db.prepare(&config.stores).await.unwrap();
    db.close().await;
}

/// A database without rows, from which those of the tests are copied: that takes a tenth of the time.
async fn template(conn: &mut PgConnection, admin: &str, partitions: u32) -> String {
    let template = format!("hm_template_{partitions}");
    let there = "select 1 from pg_database where datname = $1";
    conn.execute(sqlx::AssertSqlSafe(format!("select pg_advisory_lock({TEMPLATE_LOCK})"))).await.unwrap();
    if sqlx::query(there).bind(&template).fetch_optional(&mut *conn).await.unwrap().is_none() {
        // Under another name, as a test may end half way.
        let made = format!("hm_{:016x}", rand::rng().random::<u64>());
        conn.execute(sqlx::AssertSqlSafe(format!("create database {made}"))).await.unwrap();
        let url = format!("{}/{made}", admin.rsplit_once('/').unwrap().0);
        prepare(&["--database-url", &url, "--partitions", &partitions.to_string()]).await;
        conn.execute(sqlx::AssertSqlSafe(format!("alter database {made} rename to {template}"))).await.unwrap();
    }
    conn.execute(sqlx::AssertSqlSafe(format!("select pg_advisory_unlock({TEMPLATE_LOCK})"))).await.unwrap();
    template
}

/// A new database; returns its URL. Files are copied: to log every page costs more.
async fn copy_template(name: &str, partitions: u32, is_prepared: bool) -> String {
    let admin = engine("HEADMARK_TEST_POSTGRES");
    let mut conn = PgConnection::connect(&admin).await.unwrap();
    let template = if is_prepared { template(&mut conn, &admin, partitions).await } else { "template1".to_owned() };
    conn.execute(sqlx::AssertSqlSafe(format!("create database {name} template {template} strategy file_copy"))).await.unwrap();
    format!("{}/{name}", admin.rsplit_once('/').unwrap().0)
}

/// The folder for what the tests write, which goes with the engines; None where no engines were started.
fn folder_of_run() -> Option<PathBuf> {
    std::env::var_os("HEADMARK_TEST_DIR").map(PathBuf::from)
}

/// Puts a SQLite file with every table into a data folder.
async fn copy_file(dir: &Path) {
    let Some(folder) = folder_of_run() else { return };
    let template = folder.join("template.sqlite");
    if !template.exists() {
        // In a folder of its own, as a test may end half way, or another one do the same.
        let made = folder.join(format!("template-{:016x}", rand::rng().random::<u64>()));
        prepare(&["--data-dir", made.to_str().unwrap()]).await;
        std::fs::rename(made.join(SQLITE_FILE), &template).unwrap();
        std::fs::remove_dir_all(made).unwrap();
    }
    std::fs::copy(template, dir.join(SQLITE_FILE)).unwrap();
}

/// Shows what nodes in this process log, where a filter is given:
/// `HEADMARK_TEST_LOG=headmark=debug make test ARGS=name`.
fn show_log() {
    if let Ok(filter) = std::env::var("HEADMARK_TEST_LOG") {
        // A second world of the same test finds it set.
        let _set = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
    }
}

impl World {
    pub async fn new(tier: Tier) -> Self {
        Self::with_partitions(tier, PARTITIONS).await
    }

    /// A world whose large tables have so many partitions; with one they are plain tables.
    pub async fn with_partitions(tier: Tier, partitions: u32) -> Self {
        Self::make(tier, partitions, true).await
    }

    /// A world whose database has no tables yet.
    pub async fn without_tables(tier: Tier) -> Self {
        Self::make(tier, PARTITIONS, false).await
    }

    async fn make(tier: Tier, partitions: u32, is_prepared: bool) -> Self {
        show_log();
        for variable in STORES {
            let is_set = std::env::var_os(variable).is_some();
            assert!(!is_set, "{variable} is set, and a node of a test would use that store: unset it, or run `make test`");
        }
        // Random, as process ids come again, and an engine that outlives a run still holds what
        // that run made.
        let name = format!("hm_{:016x}", rand::rng().random::<u64>());
        let dir = folder_of_run().unwrap_or_else(std::env::temp_dir).join(format!("headmark-test-{name}"));
        // A data folder is as Headmark makes it, which warns of one that is open to others. A
        // Postgres of the test's own runs as another account.
        let mode = if tier == Tier::Embedded { 0o700 } else { 0o755 };
        std::fs::DirBuilder::new().recursive(true).mode(mode).create(&dir).unwrap();
        let (mut database_url, mut redis_url) = (String::new(), String::new());
        if tier == Tier::Embedded && is_prepared {
            copy_file(&dir).await;
        }
        if tier == Tier::Server {
            redis_url = engine("HEADMARK_TEST_REDIS");
            database_url = match distributed::database() {
                Some(url) if is_prepared => distributed::empty(&url).await,
                _ => copy_template(&name, partitions, is_prepared).await,
            };
        }
        // Citus has no partitions.
        let partitions = if is_prepared && distributed::database().is_some() { 1 } else { partitions };
        Self { tier, dir, database_url, redis_url, prefix: format!("{name}:"), partitions }
    }

    /// The arguments that name the database.
    pub fn store_args(&self) -> Vec<String> {
        match self.tier {
            Tier::Embedded => ["--data-dir", self.dir.to_str().unwrap()].map(String::from).into(),
            Tier::Server => ["--database-url", &self.database_url, "--partitions", &self.partitions.to_string()].map(String::from).into(),
        }
    }

    /// The arguments that name the cache.
    pub fn cache_args(&self) -> Vec<String> {
        let mut args: Vec<String> = ["--cache-prefix", &self.prefix].map(String::from).into();
        if !self.redis_url.is_empty() && self.tier == Tier::Server {
            args.extend(["--redis-timeout-ms", "1500", "--redis-url", &self.redis_url].map(String::from));
        }
        args
    }

    /// The key of this world's stream of events.
    pub fn event_stream(&self) -> String {
        format!("{}events", self.prefix)
    }

    /// The arguments with which a node of this world is started.
    pub fn args(&self) -> Vec<String> {
        let mut args: Vec<String> = ["headmark", "--listen", "127.0.0.1:0"].map(String::from).into();
        args.extend(self.store_args());
        args.extend(self.cache_args());
        // The clients of the tests keep idle connections, and most tests do not look at how those
        // end.
        args.extend(["--drain-idle-ms", "0"].map(String::from));
        args
    }

    /// A node in this process, open.
    pub async fn node(&self) -> Node {
        self.node_with(&[]).await
    }

    /// As many nodes as show what holds across nodes: two where the tier has many, else the one.
    pub async fn nodes(&self) -> Vec<Node> {
        let mut nodes = vec![self.node().await];
        if self.tier == Tier::Server {
            nodes.push(self.node().await);
        }
        nodes
    }

    /// A node in this process with further arguments.
    pub async fn node_with(&self, more: &[&str]) -> Node {
        self.try_node(more, Clock::System).await.expect("a node that starts")
    }

    /// A node in this process whose clock is set by hand.
    pub async fn node_at(&self, at: &Arc<AtomicI64>, more: &[&str]) -> Node {
        self.try_node(more, Clock::Manual(Arc::clone(at))).await.expect("a node that starts")
    }

    /// A node in this process, or the sentence with which it refuses to start.
    pub async fn try_node(&self, more: &[&str], clock: Clock) -> Result<Node, String> {
        let args = self.args().into_iter().chain(more.iter().map(ToString::to_string));
        let config = Cli::try_parse_from(args).map_err(|error| error.to_string())?.into_config()?;
        Node::start(config, clock).await
    }

    /// A node as a process of its own, with further arguments and environment.
    pub async fn process(&self, more: &[&str], env: &[(&str, &str)]) -> Process {
        let args: Vec<String> = self.args().into_iter().skip(1).chain(more.iter().map(ToString::to_string)).collect();
        Process::start(&args, env).await
    }

    /// A connection to this world's Postgres.
    pub async fn postgres(&self) -> PgConnection {
        PgConnection::connect(&self.database_url).await.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        // Hundreds of databases fill a disk. What is left goes with the engines.
        if self.tier == Tier::Server && distributed::database().is_none() {
            let url = self.database_url.clone();
            let _ = std::thread::spawn(move || drop_database(&url)).join();
        }
    }
}

/// Drops a database of the tests, if its engine still runs.
fn drop_database(url: &str) {
    let Some((server, name)) = url.rsplit_once('/').filter(|(_, name)| name.starts_with("hm_")) else { return };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let (admin, statement) = (format!("{server}/postgres"), format!("drop database if exists {name} with (force)"));
    let dropped = async {
        if let Ok(mut conn) = PgConnection::connect(&admin).await {
            let _ = conn.execute(sqlx::AssertSqlSafe(statement)).await;
        }
    };
    // A test may have stopped its engine, or what stands before it.
    let _ = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(5), dropped).await });
}

/// A node in this process, over a real socket.
#[derive(Debug)]
pub struct Node {
    pub base: String,
    pub client: Client,
    pub app: App,
    stop: Stop,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    _threads: Arc<Threads>,
}

impl Node {
    pub async fn start(config: Config, clock: Clock) -> Result<Self, String> {
        let listener = TcpListener::bind(config.http.listen).await.map_err(|error| error.to_string())?;
        let base = format!("http://{}", listener.local_addr().unwrap());
        let threads = Arc::new(Threads::start().map_err(|error| error.to_string())?);
        let app = App::start(&config, threads.runtimes(), clock).await?;
        let stop = Stop::default();
        let serving = tokio::spawn(serve(listener, app.application(), config.http.clone(), stop.clone(), Arc::clone(&threads)));
        Ok(Self { client: Client::new(&base), base, app, stop, serving, _threads: threads })
    }

    /// A client with the key of a service.
    pub fn service(&self) -> Client {
        self.client.with_bearer(SERVICE_SECRET)
    }

    /// A client with a token of this user, for an hour.
    pub fn user(&self, id: i64) -> Client {
        let token = self.app.state().auth.user_token(id.try_into().unwrap(), Duration::from_secs(3600)).unwrap();
        self.client.with_bearer(&token)
    }

    /// Stops each.
    pub async fn stop_all(nodes: Vec<Self>) {
        for node in nodes {
            node.stop().await;
        }
    }

    /// Stops as on SIGTERM.
    pub async fn stop(self) {
        self.app.begin_drain();
        self.stop.drain.cancel();
        self.serving.await.unwrap().unwrap();
        self.app.stop().await;
    }
}
