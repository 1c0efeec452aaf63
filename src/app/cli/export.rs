//! `headmark export`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::output_file::OutputFile;
use super::shared::{CommandLogs, Done, Failure, block_on};
use crate::base::clock::Clock;
use crate::base::ids::UserId;
use crate::db::{Db, Replica, ReplicaConfig, StoreConfig};
use crate::features::relations::export::{self, ExportError};

/// What to export.
#[derive(Debug, Subcommand)]
pub(super) enum ExportCommand {
    /// Export follows as CSV for import: follower,followee,timestamp,visibility,special,requested, with
    /// times in RFC 3339 and milliseconds. Secret follows and open follow requests are included.
    ///
    /// It can run beside servers, also on SQLite. It reads in batches, and may include or miss
    /// concurrent changes. With HEADMARK_REPLICA_URL it reads the replica, once that shows what was
    /// there when the export began. It ends without an error if the reader goes away (`| head`).
    ///
    /// Exit status: 0 everything was written, or the reader went away; 1 the export could not start
    /// or finish; 2 invalid usage.
    Follows(ExportFollowsArgs),
}

/// Which follows, and where to.
#[derive(Debug, Args)]
pub(super) struct ExportFollowsArgs {
    /// Export only the follows of this user, in both directions: first the users it follows, then
    /// its followers.
    #[arg(long)]
    user: Option<UserId>,

    /// The output file; `-` is standard output. If it exists, it is replaced once everything was
    /// written; it is written at once where nothing may be made beside it. Default: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    replica: ReplicaConfig,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: ExportFollowsArgs) -> Result<Done, Failure> {
    args.logs.init()?;
    crate::start_failpoints();
    block_on(async {
        let (stores, replica) = (args.stores.resolved()?, args.replica.resolved()?);
        let db = Db::open_to_read(&stores).await?;
        let replica = Replica::open(&replica, &stores, &db, Clock::System)?;
        let source = match &replica {
            Some(replica) => replica.caught_up().await.unwrap_or_else(|| {
                tracing::warn!("the replica is away or too far behind; exporting from DATABASE_URL");
                &db
            }),
            None => &db,
        };
        let file = args.output.as_deref().filter(|path| *path != Path::new("-"));
        let written = match file {
            Some(path) => {
                let failed = |error| format!("cannot write {}: {error}", path.display());
                let mut file = OutputFile::create(path).map_err(failed)?;
                let written = export::run(source, args.user, &mut file).await;
                if written.is_ok() {
                    file.finish().await.map_err(failed)?;
                }
                written
            }
            None => export::run(source, args.user, &mut io::stdout()).await.and_then(|()| Ok(io::stdout().flush()?)),
        };
        db.close().await;
        match written {
            Ok(()) => Ok(Done::Well),
            Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Done::Well),
            Err(ExportError::Write(error)) => Err(format!("cannot write: {error}")),
            Err(ExportError::Read(error)) => Err(super::shared::failed("export", &error)),
        }
    })
}
