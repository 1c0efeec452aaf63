//! What strangers are shown of users whom many look at: first pages and counts, kept in memory for a moment, so that a million visitors of a star cost the
//! database a read a second. What this node has changed shows at once; what others changed, within [`KEPT`]. Owners and services are never answered from here.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};

use super::lists::List;
use super::{Counts, Listed};
use crate::db::DbResult;
use crate::error::{Fault, Result};
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
        for user in users {
            // Of two writes at once the later number stays, whichever comes here first.
            self.written.entry(user).and_upsert_with(|known| known.map_or(number, |known| known.into_value().max(number)));
        }
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

    /// One reading for all who ask within a moment, unless this node has written since it began. Then those who ask meanwhile wait for one new reading, so a star that
    /// gains followers all the time is not read once for each visitor.
    async fn kept<K, T, F>(&self, cache: &Cache<K, Arc<Kept<T>>>, key: K, user: UserId, read: impl Fn() -> F) -> Result<T>
    where
        K: Hash + Eq + Send + Sync + Clone + 'static,
        T: Clone + Send + Sync + 'static,
        F: Future<Output = DbResult<T>>,
    {
        let written = self.written.get(&user).unwrap_or(0);
        if let Some(kept) = cache.get(&key).await.filter(|kept| kept.begun >= written) {
            return Ok(kept.value.clone());
        }
        let load = async |kept: Option<moka::Entry<K, Arc<Kept<T>>>>| {
            if kept.is_some_and(|kept| kept.value().begun >= written) {
                return Ok(Op::Nop);
            }
            let begun = self.writes.load(Ordering::Acquire);
            Ok::<_, sqlx::Error>(Op::Put(Arc::new(Kept { begun, value: read().await? })))
        };
        match cache.entry(key).and_try_compute_with(load).await? {
            CompResult::Inserted(kept) | CompResult::ReplacedWith(kept) | CompResult::Unchanged(kept) | CompResult::Removed(kept) => {
                Ok(kept.into_value().value.clone())
            }
            CompResult::StillNone(_) => Err(Fault::Bug("an answer that was read is not there".to_owned()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use super::*;

    fn user(id: i64) -> UserId {
        id.try_into().unwrap()
    }

    #[tokio::test]
    async fn one_reading_serves_many_until_this_node_writes() {
        let (hot, reads) = (Hot::default(), AtomicI64::new(0));
        let counts = async |id: i64| {
            let read = || async { Ok(Counts { followers: reads.fetch_add(1, Ordering::SeqCst) + 1, ..Counts::default() }) };
            hot.counts(user(id), read).await.unwrap().followers
        };
        assert_eq!([counts(1).await, counts(1).await, counts(2).await, counts(1).await], [1, 1, 2, 1]);
        hot.wrote([user(1), user(3)]);
        assert_eq!([counts(1).await, counts(1).await, counts(2).await], [3, 3, 2], "anew, and once");
    }

    #[tokio::test]
    async fn a_reading_that_began_before_a_write_is_not_shown_after_it() {
        let hot = Arc::new(Hot::default());
        let (begun, go_on) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let slow = {
            let (hot, begun, go_on) = (Arc::clone(&hot), Arc::clone(&begun), Arc::clone(&go_on));
            tokio::spawn(async move {
                let read = || async {
                    begun.notify_one();
                    go_on.notified().await;
                    Ok(Counts::default())
                };
                hot.counts(user(1), read).await.unwrap().followers
            })
        };
        begun.notified().await;
        hot.wrote([user(1)]);
        let later = {
            let hot = Arc::clone(&hot);
            tokio::spawn(async move {
                hot.counts(user(1), || async { Ok(Counts { followers: 1, ..Counts::default() }) }).await.unwrap().followers
            })
        };
        go_on.notify_one();
        assert_eq!((slow.await.unwrap(), later.await.unwrap()), (0, 1));
    }
}
