//! What strangers are shown of users whom many look at: first pages and counts, kept in memory for a moment, so that a million visitors of a star cost the
//! database a read a second. What this node has changed shows at once; what others changed, within [`KEPT`]. Owners and services are never answered from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;

use super::lists::List;
use super::{Counts, Listed};
use crate::db::DbResult;
use crate::error::{Error, Fault, Result};
use crate::ids::UserId;

/// For how long an answer is kept: with the time that reading it takes, below the 2 s in which a change must show.
const KEPT: Duration = Duration::from_secs(1);

/// How many first pages, and counts, are kept.
const MAX_KEPT: u64 = 20_000;

/// How many users are remembered as changed by this node, and for how long: longer than anything read before is kept or under way.
const MAX_WRITTEN: u64 = 200_000;
const WRITTEN_FOR: Duration = Duration::from_secs(15);

/// An answer, and how much this node had written when reading it began.
#[derive(Debug)]
struct Kept<T> {
    begun: u64,
    value: T,
}

/// The answers.
#[derive(Debug)]
pub struct Hot {
    pages: Cache<(UserId, List), Arc<Kept<Vec<Listed>>>>,
    counts: Cache<UserId, Arc<Kept<Counts>>>,
    /// Counts the writes of this node.
    writes: AtomicU64,
    /// Which of them changed a user last.
    written: moka::sync::Cache<UserId, u64>,
}

impl Default for Hot {
    fn default() -> Self {
        Self {
            pages: Cache::builder().max_capacity(MAX_KEPT).time_to_live(KEPT).build(),
            counts: Cache::builder().max_capacity(MAX_KEPT).time_to_live(KEPT).build(),
            writes: AtomicU64::new(0),
            written: moka::sync::Cache::builder().max_capacity(MAX_WRITTEN).time_to_live(WRITTEN_FOR).build(),
        }
    }
}

impl Hot {
    /// This node has changed relations of these users: what was read before is shown no longer.
    pub fn wrote(&self, users: impl IntoIterator<Item = UserId>) {
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        users.into_iter().for_each(|user| self.written.insert(user, number));
    }

    /// The first entries of a list, as many as the longest page has and one more.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn page<F>(&self, user: UserId, list: List, read: impl Fn() -> F) -> Result<Vec<Listed>>
    where
        F: Future<Output = DbResult<Vec<Listed>>>,
    {
        self.kept(&self.pages, (user, list), user, read).await
    }

    /// A user's counts.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn counts<F>(&self, user: UserId, read: impl Fn() -> F) -> Result<Counts>
    where
        F: Future<Output = DbResult<Counts>>,
    {
        self.kept(&self.counts, user, user, read).await
    }

    /// One reading for all who ask within a moment, unless this node has written since it began.
    async fn kept<K, T, F>(&self, cache: &Cache<K, Arc<Kept<T>>>, key: K, user: UserId, read: impl Fn() -> F) -> Result<T>
    where
        K: std::hash::Hash + Eq + Send + Sync + Clone + 'static,
        T: Clone + Send + Sync + 'static,
        F: Future<Output = DbResult<T>>,
    {
        let load = async {
            let begun = self.writes.load(Ordering::Acquire);
            Ok::<_, sqlx::Error>(Arc::new(Kept { begun, value: read().await? }))
        };
        let kept = cache.try_get_with(key.clone(), load).await.map_err(|error| shared(&error))?;
        if self.written.get(&user).is_none_or(|written| kept.begun >= written) {
            return Ok(kept.value.clone());
        }
        cache.invalidate(&key).await;
        Ok(read().await?)
    }
}

/// An error that several share, of which only one can have the driver's own.
fn shared(error: &sqlx::Error) -> Error {
    if crate::db::is_outage(error) { crate::sheet::store_away() } else { Fault::Bug(error.to_string()).into() }
}
