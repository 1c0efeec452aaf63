//! `headmark recount`.

use clap::Args;

use super::{CommandLogs, Done, block_on, say};
use crate::db::{Db, StoreConfig};
use crate::ids::UserId;
use crate::recount::{Difference, Recount};

/// What to compare.
#[derive(Debug, Args)]
pub(super) struct RecountArgs {
    /// Only say what differs; change nothing.
    #[arg(long)]
    dry_run: bool,

    /// Only this user. Finds also the followers that are missing in this user's list, for which it reads all follows once.
    #[arg(long)]
    user: Option<UserId>,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: RecountArgs) -> Result<Done, String> {
    args.logs.init()?;
    block_on(async {
        let stores = args.stores.resolved()?;
        let (db, _lock) = if args.dry_run { (Db::open_to_read(&stores).await?, None) } else { Db::open_existing(&stores).await? };
        let recount = Recount { user: args.user, dry_run: args.dry_run };
        let mut told = Ok(());
        let tell = |difference: &Difference| {
            if told.is_ok() {
                told = say(&difference.to_string());
            }
        };
        let report = recount.run(&db, tell).await.map_err(|error| super::failed("recount", &error))?;
        db.close().await;
        let end = match (report.found, args.dry_run) {
            (0, _) => "nothing differs",
            (_, true) => "nothing was changed",
            (_, false) => "all repaired",
        };
        told.and_then(|()| say(&format!("users        {}\ndifferences  {}, {end}", report.users, report.found)))?;
        Ok(if args.dry_run && report.found > 0 { Done::WithFindings } else { Done::Well })
    })
}
