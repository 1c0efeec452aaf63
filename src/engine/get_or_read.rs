//! One reading for all who ask at the same time.

use std::hash::Hash;

use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};

use crate::base::error::{Error, Fault, Result};

/// What is kept under the key, if it `is_good`. Else what `read` finds, which is kept instead. Those
/// who ask meanwhile wait for it and judge it again.
///
/// # Errors
/// Those of `read`; then nothing is kept.
pub async fn get_or_read<K, V, F>(cache: &Cache<K, V>, key: K, is_good: impl Fn(&V) -> bool, read: impl FnOnce() -> F) -> Result<V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    F: Future<Output = Result<V>>,
{
    // The common case takes no lock of the key.
    if let Some(kept) = cache.get(&key).await.filter(&is_good) {
        return Ok(kept);
    }
    let load = async |kept: Option<moka::Entry<K, V>>| {
        if kept.is_some_and(|kept| is_good(kept.value())) {
            return Ok(Op::Nop);
        }
        Ok::<_, Error>(Op::Put(read().await?))
    };
    match cache.entry(key).and_try_compute_with(load).await? {
        CompResult::Inserted(kept) | CompResult::ReplacedWith(kept) | CompResult::Unchanged(kept) | CompResult::Removed(kept) => {
            Ok(kept.into_value())
        }
        CompResult::StillNone(_) => Err(Fault::Bug("what was read is not there".to_owned()).into()),
    }
}
