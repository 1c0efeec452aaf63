//! `headmark recount`.

use clap::Args;

use super::shared::{CommandLogs, Done, Failure, block_on, say};
use crate::base::ids::UserId;
use crate::db::{Db, StoreConfig};
use crate::maintenance::recount::{Difference, Recount};

/// What to compare.
#[derive(Debug, Args)]
pub(super) struct RecountArgs {
    /// Report differences without changing anything.
    #[arg(long)]
    dry_run: bool,

    /// Check only this user. This also finds followers missing in the user's list, by reading all
    /// follows once.
    #[arg(long)]
    user: Option<UserId>,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: RecountArgs) -> Result<Done, Failure> {
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
        let report = recount.run(&db, tell).await.map_err(|error| super::shared::failed("recount", &error))?;
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
