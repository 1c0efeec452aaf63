//! `headmark migrate`.

use clap::Args;

use super::shared::{block_on, say};
use crate::db::{Db, StoreConfig};

/// Which database.
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    stores: StoreConfig,
}

pub(super) fn run(args: MigrateArgs) -> Result<(), String> {
    block_on(async {
        let (db, _lock) = Db::open(&args.stores.resolved()?).await?;
        db.migrate().await.map_err(|error| format!("cannot migrate the database: {error}"))?;
        db.close().await;
        say("The schema is up to date.")
    })
}
