//! The rows: what stands ready for all of them, and in which order they are measured.

mod bytes;
mod chat_list;
mod chats;
mod crowd;
mod feed;
mod inboxes;
mod increments;
mod lookups;
mod memory;
mod notifications;
mod polls;
mod receipts;
mod relations;
mod visits;
mod whole;

use std::path::{Path, PathBuf};

use crate::Args;
use crate::Part;
use crate::Result;
use crate::Scale;
use crate::contest::{self, Rounds, Series, Side, Work};
use crate::data::{self, Postgres};
use crate::load::{self, Client, Order, Requests};
use crate::machine;
use crate::peers;
use crate::process::{self, Folder, Process, Stores};
use crate::report::Report;
use crate::wire::{self, Answer};

/// What all rows share.
#[derive(Debug)]
struct Stage {
    // The order matters: fields drop from the top, and the servers end before the folder goes.
    embedded: Process,
    server: Process,
    client: Client,
    postgres: Postgres,
    redis: String,
    program: PathBuf,
    server_stores: Stores,
    scale: Scale,
    folder: Folder,
}

impl Stage {
    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sends all of these, to fill a server with what is measured.
    async fn fill(&self, process: &Process, requests: Vec<Vec<u8>>) -> Result<()> {
        load::send_all(process.address, requests, self.scale.connections).await.map(|_| ())
    }

    /// What a server answers to this; an error where that is none.
    async fn ask(&self, process: &Process, path: &str) -> Result<Answer> {
        let answer = wire::ask_once(process.address, &wire::request("GET", path, &[])).await?;
        if answer.status != 200 {
            return Err(format!("GET {path} is answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
        }
        Ok(answer)
    }

    /// GETs of these paths, in any order.
    fn gets(&self, name: &str, paths: impl IntoIterator<Item = String>) -> Result<Requests> {
        let all = paths.into_iter().map(|path| wire::request("GET", &path, &[])).collect();
        Requests::new(self.folder(), name, Order::Random, all)
    }

    /// One side over HTTP, with all connections.
    fn side<'a>(&self, name: &str, process: &'a Process, requests: &'a Requests) -> Side<'a> {
        Side { name: name.to_owned(), work: Work::Http { process, requests, connections: self.scale.connections, counts_for: 1 } }
    }

    /// One side in plain SQL.
    fn plain(&self, name: &str, script: crate::pgbench::Script) -> Side<'_> {
        Side { name: name.to_owned(), work: Work::Pgbench { pgbench: &self.postgres.pgbench, script } }
    }

    /// The sides by turns, in the brief rounds of rows of which there are many.
    async fn contest(&self, sides: &[Side<'_>]) -> Result<Vec<Series>> {
        contest::run(&self.client, self.scale.brief, sides).await
    }

    /// One more server of the server tier, with a database and keys of its own, and what it is made
    /// of.
    async fn one_more(&self, database: &'static str, prefix: &'static str) -> Result<Stores> {
        let postgres = self.postgres.create(database).await?;
        let stores = Stores::Server { postgres, redis: self.redis.clone(), prefix };
        let mut migrate = process::headmark(&self.program, &stores);
        migrate.arg("migrate");
        process::run(migrate, "headmark migrate").await?;
        Ok(stores)
    }

    /// A script for pgbench, as a file, and in the document.
    fn script(
        &self,
        report: &mut Report,
        what: &'static str,
        name: &str,
        text: &str,
        defines: &[(&'static str, u64)],
    ) -> Result<crate::pgbench::Script> {
        self.script_for(report, self.scale.rounds, what, name, text, defines)
    }

    /// The same for these rounds.
    fn script_for(
        &self,
        report: &mut Report,
        rounds: Rounds,
        what: &'static str,
        name: &str,
        text: &str,
        defines: &[(&'static str, u64)],
    ) -> Result<crate::pgbench::Script> {
        let file = self.folder().join(name);
        std::fs::write(&file, text)?;
        let clients = self.scale.connections;
        let mut command = format!("pgbench -n -M prepared -j 2 -c {clients} -T {}", rounds.each.as_secs());
        for (define, value) in defines {
            command.push_str(&format!(" -D {define}={value}"));
        }
        report.command(what, format!("{command} -f {name} DATABASE\n\n{}", text.trim()));
        Ok(crate::pgbench::Script { file, clients, defines: defines.to_vec() })
    }
}

/// Measures what is asked for.
pub(crate) async fn run(args: &Args, scale: Scale) -> Result<Report> {
    let mut report = Report::default();
    let stage = prepare(args, scale, &mut report).await?;
    let parts = [
        Part::Polls,
        Part::Unread,
        Part::Increments,
        Part::Notifications,
        Part::Relations,
        Part::Chats,
        Part::ChatList,
        Part::Lookups,
        Part::Written,
        Part::Broadcasts,
    ];
    for part in parts.into_iter().filter(|part| args.wants(*part)) {
        measure(part, args, &stage, &mut report).await;
    }
    Ok(report)
}

/// One part. What fails is told, and the others are measured all the same.
async fn measure(part: Part, args: &Args, stage: &Stage, report: &mut Report) {
    match part {
        Part::Polls => {
            let outcome = polls::run(stage, report).await;
            report.attempt("polls", outcome);
        }
        Part::Unread => {
            let outcome = whole::run(stage, report).await;
            report.attempt("polls of the whole summary", outcome);
            let outcome = feed::run(stage, report).await;
            report.attempt("the feed", outcome);
        }
        Part::Increments => {
            let outcome = increments::run(stage, report).await;
            report.attempt("increments", outcome);
        }
        Part::Notifications => {
            let outcome = notifications::run(stage, report).await;
            report.attempt("notifications", outcome);
        }
        Part::Relations => {
            let outcome = relations::run(stage, report, args.graph.as_deref()).await;
            report.attempt("relations", outcome);
        }
        Part::Chats => {
            let outcome = chats::run(stage, report).await;
            report.attempt("groups", outcome);
            let outcome = inboxes::run(stage, report).await;
            report.attempt("inboxes", outcome);
            let outcome = receipts::run(stage, report).await;
            report.attempt("receipts", outcome);
        }
        Part::ChatList => {
            let outcome = chat_list::run(stage, report).await;
            report.attempt("chat lists", outcome);
        }
        Part::Lookups => {
            let outcome = lookups::run(stage, report).await;
            report.attempt("look-ups", outcome);
        }
        Part::Written => {
            let outcome = bytes::run(stage, report).await;
            report.attempt("what reading writes", outcome);
        }
        Part::Broadcasts => {
            let outcome = crowd::run(stage, report).await;
            report.attempt("broadcasts", outcome);
        }
    }
}

/// Databases with their data, and a server of each tier.
async fn prepare(args: &Args, scale: Scale, report: &mut Report) -> Result<Stage> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set; start the bench with `make bench`"));
    let (url, redis) = (variable("HEADMARK_TEST_POSTGRES")?, variable("HEADMARK_TEST_REDIS")?);
    let program = match &args.server {
        Some(path) => path.clone(),
        None => release_build()?,
    };
    let program = program.canonicalize().map_err(|error| format!("there is no server at {}: {error}", program.display()))?;
    let folder = Folder::new()?;
    let postgres = Postgres::open(&url, Path::new(&variable("HEADMARK_PG_BIN")?)).await?;
    let client = Client::find(folder.path())?;
    report.fact(machine::describe());
    report.fact(format!("Program: {}", machine::program()));
    report.fact(format!(
        "Postgres {} (fsync, full_page_writes and synchronous_commit on, max_wal_size 16 GB, else as it comes), Redis {}; a durable write of 8 KiB takes {:.0} µs here",
        postgres.version,
        peers::redis_version(&redis).await?,
        data::fsync_us(folder.path())?
    ));
    report.fact(format!("Client for rates: {}; for latencies: the bench's own", client.name()));
    report.fact(format!(
        "{} users with {} badges each, on either tier; {} connections; {} rounds of {} s for each side, by turns",
        crate::stats::grouped(crate::stats::float(scale.users)),
        data::BADGES.len(),
        scale.connections,
        scale.rounds.count,
        scale.rounds.each.as_secs(),
    ));

    let embedded_stores = Stores::Embedded(folder.path().join("embedded"));
    let server_stores = Stores::Server { postgres: postgres.url.clone(), redis: redis.clone(), prefix: memory::PREFIX };
    for stores in [&embedded_stores, &server_stores] {
        eprintln!("filling the {} tier", stores.name());
        let mut migrate = process::headmark(&program, stores);
        migrate.arg("migrate");
        process::run(migrate, "headmark migrate").await?;
        match stores {
            Stores::Embedded(path) => data::fill_sqlite(path, scale.users).await?,
            Stores::Server { .. } => postgres.fill_badges(scale.users).await?,
        }
    }
    tokio::time::sleep(data::SETTLE).await;
    let embedded = Process::server(&program, &embedded_stores).await?;
    let server = Process::server(&program, &server_stores).await?;
    Ok(Stage { embedded, server, client, postgres, redis, program, server_stores, scale, folder })
}

/// The release build in the target folder that this program was itself built into.
fn release_build() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    // …/target/<profile>/examples/bench
    let target = example.ancestors().nth(3).ok_or("the bench does not lie in a target folder; say --server PATH")?;
    Ok(target.join("release").join("headmark"))
}
