//! `headmark export`.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{CommandLogs, Done, block_on};
use crate::db::{Db, StoreConfig};
use crate::ids::UserId;
use crate::relations::export::{self, ExportError};

/// What to export.
#[derive(Debug, Subcommand)]
pub(super) enum ExportCommand {
    /// Export who follows whom, as CSV that import takes: follower,followee,timestamp,visibility,special, with times in RFC 3339 and milliseconds, so that nothing
    /// is lost. Secret follows are in it.
    ///
    /// It works while servers run, also on SQLite, and reads in batches: what is changed meanwhile is in it or not, each follow for itself. A reader that
    /// goes away (`| head`) ends it without an error.
    ///
    /// Exit status: 0 all is written, or the reader went away; 1 it could not run, or not to its end; 2 wrong usage.
    Follows(ExportFollowsArgs),
}

/// Which follows, and where to.
#[derive(Debug, Args)]
pub(super) struct ExportFollowsArgs {
    /// Only the follows of this user, in both directions: whom it follows, then who follows it.
    #[arg(long)]
    user: Option<UserId>,

    /// The file to write; one that is there is replaced. Else standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: ExportFollowsArgs) -> Result<Done, String> {
    args.logs.init()?;
    block_on(async {
        let db = Db::open_to_read(&args.stores.resolved()?).await?;
        let written = match &args.output {
            Some(path) => {
                let mut file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
                let written = export::run(&db, args.user, &mut file).await;
                if written.is_ok() {
                    file.sync_all().map_err(|error| format!("cannot write {}: {error}", path.display()))?;
                }
                written
            }
            None => export::run(&db, args.user, &mut io::stdout()).await.and_then(|()| Ok(io::stdout().flush()?)),
        };
        db.close().await;
        match written {
            Ok(()) => Ok(Done::Well),
            Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Done::Well),
            Err(ExportError::Write(error)) => Err(format!("cannot write: {error}")),
            Err(ExportError::Read(error)) => Err(super::failed("export", &error)),
        }
    })
}
