//! Which replica, and how old it may be.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;

use crate::base::secret::{path, secret};
use crate::db::StoreConfig;
use crate::db::open::check_url;

/// Where pages are read that may be a moment old.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Replica")]
pub struct ReplicaConfig {
    /// A streaming replica of the Postgres in DATABASE_URL, as `postgres://…`. Lists and counts of
    /// other users, messages of groups and older broadcasts are read from it, and so is what
    /// `headmark export follows` writes. Default: none.
    #[arg(long, env = "HEADMARK_REPLICA_URL", hide_env_values = true, value_parser = secret)]
    pub replica_url: Option<SecretString>,

    /// A file with the value of HEADMARK_REPLICA_URL. Set only one of the two.
    #[arg(long, env = "HEADMARK_REPLICA_URL_FILE", value_name = "PATH", value_parser = path)]
    pub replica_url_file: Option<PathBuf>,

    /// How far the replica may be behind, in milliseconds (250 to 600). While it is further behind,
    /// its reads go to DATABASE_URL.
    #[arg(long, env = "HEADMARK_REPLICA_MAX_LAG_MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(250..=600))]
    pub replica_max_lag_ms: u64,
}

impl ReplicaConfig {
    /// Checks which stores have replicas.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self, stores: &StoreConfig) -> Result<(), String> {
        if self.replica_url.is_some() && stores.database_url.is_none() {
            return Err("HEADMARK_REPLICA_URL is set but DATABASE_URL is not: SQLite has no replica. Set DATABASE_URL=postgres://… \
                        too, or unset HEADMARK_REPLICA_URL."
                .to_owned());
        }
        match &self.replica_url {
            Some(url) => check_url(stores, url, "HEADMARK_REPLICA_URL"),
            None => Ok(()),
        }
    }

    pub(super) fn max_lag(&self) -> Duration {
        Duration::from_millis(self.replica_max_lag_ms)
    }
}
