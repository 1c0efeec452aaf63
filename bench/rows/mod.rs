//! The rows: what stands ready for all of them, and in which order they are measured.

mod increments;
mod polls;
mod relations;

use std::path::{Path, PathBuf};

use crate::data::{self, Postgres};
use crate::load::Client;
use crate::process::{self, Folder, Process, Stores};
use crate::report::Report;
use crate::{Args, Part, Result, Scale, machine, peers};

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

    /// A script for pgbench, as a file, and in the document.
    fn script(
        &self,
        report: &mut Report,
        what: &'static str,
        name: &str,
        text: &str,
        defines: &[(&'static str, u64)],
    ) -> Result<crate::pgbench::Script> {
        let file = self.folder().join(name);
        std::fs::write(&file, text)?;
        let clients = self.scale.connections;
        let mut command = format!("pgbench -n -M prepared -j 2 -c {clients} -T {}", self.scale.rounds.each.as_secs());
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
    if args.wants(Part::Polls) {
        polls::run(&stage, &mut report).await?;
    }
    if args.wants(Part::Increments) {
        increments::run(&stage, &mut report).await?;
    }
    if args.wants(Part::Relations) {
        relations::run(&stage, &mut report, args.graph.as_deref()).await?;
    }
    Ok(report)
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
    let server_stores = Stores::Server { postgres: postgres.url.clone(), redis: redis.clone() };
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
