//! One reading for all who ask at the same time.

use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};

use crate::base::error::{Error, Fault, Result};
use crate::db::MAX_READ;
use crate::engine::turns::overloaded;

/// How long a caller waits for the reads of others. Where a read fails, the next in line reads, so with a
/// database that hangs each would wait for all before it.
const MAX_WAIT: Duration = MAX_READ;

/// What is kept under the key, if it `is_good`. Else what `read` finds, which is kept instead. Those
/// who ask meanwhile wait for it and judge it again.
///
/// # Errors
/// Those of `read`; then nothing is kept. 503 where others read for too long.
pub async fn get_or_read<K, V, F>(cache: &Cache<K, V>, key: K, is_good: impl Fn(&V) -> bool, read: impl FnOnce() -> F) -> Result<V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<V>>,
{
    // The common case takes no lock of the key.
    match cache.get(&key).await.filter(&is_good) {
        Some(kept) => Ok(kept),
        None => read_in_turn(cache, key, is_good, read, MAX_WAIT).await,
    }
}

/// Reads, unless another has meanwhile; waits for so long for its turn.
async fn read_in_turn<K, V, F>(
    cache: &Cache<K, V>,
    key: K,
    is_good: impl Fn(&V) -> bool,
    read: impl FnOnce() -> F,
    max_wait: Duration,
) -> Result<V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<V>>,
{
    let has_turn = AtomicBool::new(false);
    let load = async |kept: Option<moka::Entry<K, V>>| {
        has_turn.store(true, Ordering::Relaxed);
        if kept.is_some_and(|kept| is_good(kept.value())) {
            return Ok(Op::Nop);
        }
        Ok::<_, Error>(Op::Put(read().await?))
    };
    let mut computed = pin!(cache.entry(key).and_try_compute_with(load));
    let computed = match tokio::time::timeout(max_wait, &mut computed).await {
        Ok(computed) => computed?,
        Err(_) if has_turn.load(Ordering::Relaxed) => computed.await?,
        Err(_) => return Err(overloaded()),
    };
    match computed {
        CompResult::Inserted(kept) | CompResult::ReplacedWith(kept) | CompResult::Unchanged(kept) | CompResult::Removed(kept) => {
            Ok(kept.into_value())
        }
        CompResult::StillNone(_) => Err(Fault::Bug("what was read is not there".to_owned()).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_with;
    use std::sync::atomic::AtomicUsize;
    use std::time::Instant;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_all_who_fail_before() {
        let (cache, max_wait): (Cache<u8, u8>, _) = (Cache::new(1), Duration::from_millis(400));
        let read = || async {
            tokio::time::sleep(max_wait / 2).await;
            Err(Error::store_unavailable())
        };
        let begun = Instant::now();
        let asked = repeat_with(|| read_in_turn(&cache, 1, |_| true, read, max_wait)).take(40);
        assert!(join_all(asked).await.iter().all(Result::is_err));
        // One after the other they would take eight seconds.
        assert!(begun.elapsed() < 8 * max_wait, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn one_reads_for_all_however_long_it_takes() {
        let (cache, reads): (Cache<u8, u8>, _) = (Cache::new(1), AtomicUsize::new(0));
        let read = || async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(7)
        };
        let (first, rest) =
            (read_in_turn(&cache, 1, |_| true, read, Duration::ZERO), repeat_with(|| get_or_read(&cache, 1, |_| true, read)));
        let (first, rest) = tokio::join!(first, join_all(rest.take(8)));
        assert!(rest.into_iter().chain([first]).all(|found| matches!(found, Ok(7))));
        assert_eq!(reads.into_inner(), 1);
    }
}
