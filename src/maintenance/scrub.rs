//! The scrubber: walks those who were seen recently, again and again, and compares what polls show
//! with what the rows say. On a healthy system it finds nothing, and `headmark_drift_total` reads
//! 0; what it finds it repairs and counts.
//!
//! Two things are compared. The *cache entry* of a user with the rows that it was made from, where
//! both are at the same revision: each change of an entry raises the revision, so they must say the
//! same. And the *numbers* that rows only carry along (follows,
//! followers, groups, unread direct messages and notifications) with what they count, as
//! `headmark recount` does. Users who are erased are left out of both. The heads of streams that users share are
//! not compared: to count one is to read all that ever happened in it, which is left to that command.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rand::RngExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::cache::{Cache, Entry, Lookup, Writer};
use crate::db::Db;
use crate::engine::entries::Entries;
use crate::engine::guard::{Guard, Trust};
use crate::engine::marks::parts::is_erased;
use crate::features::users::LastSeen;
use crate::maintenance::recount;

/// What was found to differ, by what it was.
pub(crate) const DRIFT: &str = "headmark_drift_total";

/// Users that were looked at.
pub(crate) const SCRUBBED: &str = "headmark_scrubbed_users_total";

/// How often a batch is looked at, at most.
const EVERY: Duration = Duration::from_secs(1);

/// After a batch it rests for so many times as long as the batch took: to count what users have can
/// be much work, and the database has other work to do.
const REST: u32 = 9;

/// How much is scrubbed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Polls")]
pub struct ScrubConfig {
    /// The number of users a second, of those seen today, whose cached numbers are compared with
    /// the database: fewer where that takes more than a tenth of the time. 0: none.
    #[arg(long, env = "HEADMARK_SCRUB_USERS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub scrub_users: u32,
}

/// What is compared.
#[derive(Debug)]
pub struct ScrubContext {
    pub db: Db,
    pub cache: Arc<Cache>,
    /// The rows behind it.
    pub entries: Arc<Entries>,
    pub guard: Arc<Guard>,
    /// Who was seen.
    pub last_seen: Arc<LastSeen>,
}

/// Scrubs until told to stop.
pub(crate) async fn run(state: Arc<ScrubContext>, config: ScrubConfig, stop: CancellationToken) {
    let most = usize::try_from(config.scrub_users).unwrap_or(usize::MAX);
    if most == 0 {
        return;
    }
    let (mut left, mut took): (Vec<UserId>, _) = (Vec::new(), Duration::ZERO);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(rest_after(took)) => {}
        }
        if left.is_empty() {
            left = state.last_seen.seen_today();
        }
        let batch = left.split_off(left.len().saturating_sub(most));
        if batch.is_empty() || state.guard.trust() != Trust::Full {
            continue;
        }
        let began = Instant::now();
        let outcome = scrub(&state, &batch).await;
        took = began.elapsed();
        if let Err(error) = outcome {
            // Nothing depends on it: they are looked at in the next round.
            tracing::debug!(?error, "could not scrub");
        }
    }
}

/// How long it rests after a batch that took so long.
fn rest_after(took: Duration) -> Duration {
    EVERY.max(took * REST)
}

/// Compares these users' entries and numbers with their rows, and repairs what differs. Returns how
/// many differences there were.
pub async fn scrub(state: &ScrubContext, users: &[UserId]) -> Result<u64> {
    metrics::counter!(SCRUBBED).increment(u64::try_from(users.len()).unwrap_or_default());
    let entries = entries(state, users).await?;
    let numbers = recount::numbers(&state.db, users).await?;
    for difference in &numbers {
        tracing::warn!(%difference, "a number differed from its rows; repaired");
        metrics::counter!(DRIFT, "what" => "number").increment(1);
    }
    // Some of these numbers are in the entries too.
    let repaired: BTreeSet<_> = numbers.iter().filter_map(|found| UserId::try_from(found.user).ok()).collect();
    read_anew(state, &repaired.into_iter().collect::<Vec<_>>()).await;
    Ok(entries + u64::try_from(numbers.len()).unwrap_or_default())
}

async fn entries(state: &ScrubContext, users: &[UserId]) -> Result<u64> {
    let drifted = differing(state, users).await?;
    for user in &drifted {
        tracing::warn!(%user, "a cache entry differed from its rows; it is read again");
        metrics::counter!(DRIFT, "what" => "entry").increment(1);
    }
    read_anew(state, &drifted).await;
    Ok(u64::try_from(drifted.len()).unwrap_or_default())
}

/// Has these users' entries read again. A writer that begins and abandons makes an entry dirty, so
/// that anyone who reads next fills it.
async fn read_anew(state: &ScrubContext, users: &[UserId]) {
    if users.is_empty() {
        return;
    }
    let writer = Writer(rand::rng().random());
    let repaired = async {
        let _shown_until = state.cache.begin_write(users, writer).await?;
        state.cache.abandon_write(users, writer).await
    };
    if let Err(error) = repaired.await {
        tracing::warn!(%error, "could not have the entries read again; they end with their time to live");
    }
}

/// The users whose clean entries show something else than their rows at the same revision.
async fn differing(state: &ScrubContext, users: &[UserId]) -> Result<Vec<UserId>> {
    let lookups = state.cache.get_many(users).await.unwrap_or_default();
    let hits: HashMap<_, _> = users
        .iter()
        .zip(lookups)
        .filter_map(|(user, lookup)| match lookup {
            Lookup::Hit(entry) => Some((*user, entry)),
            Lookup::Miss { .. } => None,
        })
        .collect();
    if hits.is_empty() {
        return Ok(Vec::new());
    }
    let asked: Vec<_> = hits.keys().copied().collect();
    let mut found = Vec::new();
    for rows in state.entries.rows(&asked).await? {
        let Some(entry) = hits.get(&rows.user) else { continue };
        // The rows of one who is erased go one after the other, and nobody is shown them.
        if is_erased(&rows.entry.parts) {
            continue;
        }
        if rows.complete && entry.revision == rows.entry.revision && saying(entry) != saying(&rows.entry) {
            found.push(rows.user);
        }
    }
    Ok(found)
}

/// The parts that say something: a number that is 0, or a group that was left, is as good as no
/// part.
fn saying(entry: &Entry) -> BTreeMap<&str, &str> {
    entry.parts.iter().filter(|(_, text)| !matches!(*text, "" | "0" | "0 0")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_a_tenth_of_the_time_at_most() {
        assert_eq!(rest_after(Duration::from_millis(20)), Duration::from_secs(1));
        for took in [200, 2000, 60_000].map(Duration::from_millis) {
            assert!(took * 10 <= took + rest_after(took), "{took:?}");
        }
    }
}
