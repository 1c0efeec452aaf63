//! `headmark doctor`: looks at the stores, the machine and a running server, and says what is wrong,
//! why, and what to do.
//!
//! `stores.rs`, `machine.rs` and `backups.rs` judge facts, which others have read; `service.rs` makes round trips.

mod backups;
mod finding;
mod machine;
mod service;
mod stores;

use crate::app::config::Config;
use crate::base::clock::Clock;
use crate::db::{Db, look_at_replica, unverified};

pub use self::backups::Backups;
pub use self::finding::{Finding, State};
pub use self::service::Service;
pub(super) use self::service::cause_of;
pub(super) use self::stores::DAMAGED;

/// Looks at everything, and tells each finding when it is made.
pub async fn examine(config: &Config, backups: Option<&Backups>, service: Option<Service>, mut tell: impl FnMut(&Finding)) -> State {
    let mut worst = State::Ok;
    let mut told = |findings: Vec<Finding>| {
        for finding in findings {
            worst = worst.max(finding.state);
            tell(&finding);
        }
    };
    told(machine::examine(config));
    told(backups.map(|backups| backups.examine(Clock::System.now())).into_iter().collect());
    told(unverified(&config.stores, &config.replica).into_iter().map(stores::unverified).collect());
    told(database(config).await);
    match look_at_replica(&config.replica, &config.stores).await {
        Ok(None) => {}
        Ok(Some(facts)) => told(vec![stores::of_replica(&facts)]),
        Err(why) => told(vec![stores::no_replica(&why)]),
    }
    if let Some(redis) = config.cache.redis() {
        told(stores::of_redis(crate::cache::look_at_redis(&redis).await.map_err(|error| error.to_string()), &redis));
    }
    if let Some(service) = service {
        told(service.examine().await);
    }
    worst
}

async fn database(config: &Config) -> Vec<Finding> {
    let about = if config.stores.database_url.is_some() { "postgres" } else { "sqlite" };
    let opened = match Db::open_to_read(&config.stores).await {
        Ok(db) => db,
        Err(why) => return stores::unopened(about, why),
    };
    let before = Clock::System.now().0;
    let facts = opened.facts().await;
    let after = Clock::System.now().0;
    opened.close().await;
    match facts {
        Ok(facts) => stores::of_database(&facts, config, before, after),
        Err(error) => stores::unopened(about, format!("cannot look at the database: {error}")),
    }
}
