//! `headmark doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::shared::{Done, Failure, block_on, say, settled, url};
use crate::app::config::Config;
use crate::app::doctor::{Backups, Service, State, examine};
use crate::base::ids::UserId;

/// What to look at.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// A running server to ask, by the address that its clients use: that of the load balancer, if
    /// there is one. It is called with the first of the service keys.
    #[arg(long, value_parser = url)]
    url: Option<reqwest::Url>,

    /// The address of a single node; repeat it for each. A write through it must wake a poll that
    /// waits at --url.
    #[arg(long, value_name = "URL", requires = "url", value_parser = url)]
    node: Vec<reqwest::Url>,

    /// The user for whom --url writes and polls: one that the product does not use. It keeps a
    /// counter named `headmark-doctor`, which is read up to its head.
    #[arg(long, requires = "url", default_value = "9223372036854775807")]
    user: UserId,

    /// How long a poll is held to see whether something in between cuts it, in seconds. Load
    /// balancers often do after 60.
    #[arg(long, requires = "url", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    hold_seconds: u64,

    /// Where backups of the database are: a file, or a folder with one entry for each. The newest
    /// must not be empty, nor older than --backup-max-age.
    #[arg(long, value_name = "PATH")]
    backups: Option<PathBuf>,

    /// The age in hours at which the newest backup is too old.
    #[arg(long, value_name = "HOURS", requires = "backups", default_value_t = 26, value_parser = clap::value_parser!(u64).range(1..=8_784))]
    backup_max_age: u64,

    #[command(flatten)]
    config: Config,
}

pub(super) fn run(args: DoctorArgs) -> Result<Done, Failure> {
    let config = settled(args.config)?;
    let service = args.url.map(|url| Service {
        url,
        nodes: args.node,
        key: config.auth.service_keys.first().cloned(),
        user: args.user,
        hold: Duration::from_secs(args.hold_seconds),
    });
    let backups = args.backups.map(|path| Backups { path, max_age: Duration::from_hours(args.backup_max_age) });
    let mut printed = Ok(());
    let worst = block_on(async {
        Ok(examine(&config, backups.as_ref(), service, |finding| {
            if printed.is_ok() {
                printed = say(&finding.to_string());
            }
        })
        .await)
    })?;
    printed?;
    Ok(if worst == State::Ok { Done::Well } else { Done::WithFindings })
}
