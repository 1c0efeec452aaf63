//! `headmark epoch`.

use clap::Args;

use super::shared::{CommandLogs, Failure, block_on, say};
use crate::db::{Db, StoreConfig};
use crate::engine::epoch;
use crate::engine::guard::SEEN;

/// What to do with it.
#[derive(Debug, Args)]
pub(super) struct EpochArgs {
    /// Start a new epoch, so that every client discards its state.
    #[arg(long)]
    renew: bool,

    #[command(flatten)]
    stores: StoreConfig,
    #[command(flatten)]
    logs: CommandLogs,
}

pub(super) fn run(args: EpochArgs) -> Result<(), Failure> {
    args.logs.init()?;
    block_on(async {
        let stores = args.stores.resolved()?;
        let failed = |error: sqlx::Error| super::shared::failed("command", &error);
        if !args.renew {
            let db = Db::open_to_read(&stores).await?;
            let epoch = epoch::current(&db).await.map_err(failed)?;
            db.close().await;
            return say(&epoch.ok_or("there is no epoch yet: the first start of a server makes it")?);
        }
        let (db, _lock) = Db::open_existing(&stores).await?;
        let epoch = epoch::renew(&db, SEEN).await.map_err(failed)?;
        db.close().await;
        say(&epoch)
    })
}
