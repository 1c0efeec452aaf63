//! `headmark migrate`.

use super::{block_on, say};
use crate::config::Config;
use crate::db::Db;

pub(super) fn run(config: &Config) -> Result<(), String> {
    block_on(async {
        let (db, _lock) = Db::open(&config.stores).await?;
        db.migrate().await.map_err(|error| format!("cannot migrate the database: {error}"))?;
        say("The schema is up to date.");
        db.close().await;
        Ok(())
    })
}
