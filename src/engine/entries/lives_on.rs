//! Entries of users who are polled live on, where SQL shows that they are not outdated.
//!
//! An entry in Redis ends, so that one that is outdated does not stay (ADR 0033). To read it again
//! costs SQL, Redis and the node much more than a poll. One look at the revisions of many users costs
//! little.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::Entries;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::db::{Column, Statement, Type, in_time};
use crate::engine::guard::Trust;

/// How many are looked at together, and the pause in which they gather.
const LOOKED_AT_ONCE: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);

/// How long those of one round are looked at, and the pause where a store did not answer. The others
/// are told of again while they are polled.
const MAX_ROUND: Duration = Duration::from_secs(1);
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Those of these users who are at these revisions.
static UNCHANGED: Statement = Statement::new(
    "select u.user_id
    from {rows} r
    join users u on u.user_id = r.user_id
    where u.revision = r.revision",
    &[("user_id", Type::Int), ("revision", Type::Int)],
)
.by("user_id");

/// The statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statement() -> &'static Statement {
    &UNCHANGED
}

impl Entries {
    /// Lets the entries of users who are polled live on, until told to stop.
    pub async fn let_live_on(self: Arc<Self>, stop: CancellationToken) {
        let work = async {
            loop {
                let ending = self.cache.ending().await;
                tokio::time::sleep(if self.look_at_all(&ending).await { PAUSE } else { LONG_PAUSE }).await;
            }
        };
        stop.run_until_cancelled(work).await;
    }

    /// Whether the stores answered.
    async fn look_at_all(&self, ending: &[(UserId, Revision)]) -> bool {
        let begun = Instant::now();
        for some in ending.chunks(LOOKED_AT_ONCE) {
            if begun.elapsed() > MAX_ROUND {
                break;
            }
            if !self.look_at(some).await {
                return false;
            }
        }
        true
    }

    /// Those whose entries may not live on are read again when they end. Whether the stores answered.
    async fn look_at(&self, ending: &[(UserId, Revision)]) -> bool {
        let begun = Instant::now();
        // Before SQL is asked: what it says is of this epoch or of a later one.
        let epoch = self.cache.epoch();
        if self.guard.trust() != Trust::Full {
            return false;
        }
        let columns = [ending.iter().map(|(user, _)| user.get()).collect(), ending.iter().map(|(_, revision)| *revision).collect()];
        let found = match in_time(self.db.fetch::<(i64,)>(&UNCHANGED, &columns.map(Column::Int))).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "cannot look whether entries are outdated");
                return false;
            }
        };
        let unchanged: Vec<_> = found.into_iter().filter_map(|(user,)| UserId::try_from(user).ok()).collect();
        // What it said a while ago is no reason to let one live on.
        if self.guard.trust() != Trust::Full || begun.elapsed() > MAX_ROUND {
            return false;
        }
        match self.cache.extend(epoch, &unchanged).await {
            Ok(extended) => metrics::counter!("headmark_cache_extended_total").increment(u64::try_from(extended).unwrap_or_default()),
            Err(error) => {
                tracing::debug!(%error, "cannot let entries live on");
                return false;
            }
        }
        true
    }
}
