//! `headmark migrate`.

use clap::Args;

use super::shared::{CommandLogs, Failure, block_on, failed, say};
use crate::db::{Db, Distributed, MAX_PARTITIONS, Progress, Repartition, StoreConfig};

/// Which database.
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Move the rows of all large tables to so many partitions; 1 makes plain tables. Stop all nodes
    /// first. If it is interrupted, run it again: no node starts until it has finished.
    #[arg(long, value_name = "PARTITIONS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PARTITIONS)))]
    repartition: Option<u32>,

    /// Distribute the tables of a Citus over its workers, with their rows. Stop all nodes first. If
    /// it is interrupted, run it again.
    #[arg(long, conflicts_with = "repartition")]
    distribute: bool,

    /// How many rows --repartition copies in one transaction.
    #[arg(long, requires = "repartition", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rows_per_step: u32,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: MigrateArgs) -> Result<(), Failure> {
    args.logs.init()?;
    crate::start_failpoints();
    block_on(async {
        let stores = args.stores.resolved()?;
        let (db, _lock) = Db::open(&stores).await?;
        if args.distribute {
            db.migrate().await.map_err(|error| format!("cannot migrate the database: {error}"))?;
            let mut told = Ok(());
            db.distribute(|placed| told = told.clone().and_then(|()| say(&placed_line(&placed)))).await?;
            told?;
        } else if let Some(partitions) = args.repartition {
            db.migrate().await.map_err(|error| format!("cannot migrate the database: {error}"))?;
            let mut told = Ok(());
            let tell = |progress: Progress| {
                if told.is_ok() && progress.is_done {
                    told = say(&line(progress));
                }
            };
            let repartition = Repartition { partitions, rows_per_step: args.rows_per_step };
            repartition.run(&db, tell).await?;
            told?;
        } else {
            db.prepare(&stores).await?;
        }
        let newer = db.newer_migration().await.map_err(|error| failed("migration", &error))?;
        db.close().await;
        match newer {
            Some(migration) => say(&format!("The schema was left as it is: a newer version has made it (migration {migration}).")),
            None => say("The schema is up to date."),
        }
    })
}

fn line(Progress { table, rows, elapsed_ms, .. }: Progress) -> String {
    format!("{table:<24} {rows:>12} rows {:>10} rows/s", rows.saturating_mul(1000) / elapsed_ms.max(1))
}

fn placed_line(Distributed { table, owner }: &Distributed) -> String {
    match owner {
        Some(owner) => format!("{table:<24} distributed by {owner}"),
        None => format!("{table:<24} stays on the coordinator"),
    }
}
