//! What this node has changed within the last moments.

use std::hash::Hash;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

/// How long a change is remembered: longer than anything that does not show it yet is shown.
const KEPT: Duration = Duration::from_secs(5);

/// How many changes are remembered. Beyond it the oldest are forgotten.
const MAX_KEPT: u64 = 200_000;

/// The keys that were changed lately.
#[derive(Debug)]
pub struct Lately<K: Hash + Eq + Send + Sync + 'static>(Cache<K, ()>);

impl<K: Hash + Eq + Send + Sync + 'static> Default for Lately<K> {
    fn default() -> Self {
        // The default policy may refuse a new key where others are used more often.
        Self(Cache::builder().max_capacity(MAX_KEPT).time_to_live(KEPT).eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> Lately<K> {
    /// This node has changed something of it.
    pub fn changed(&self, key: K) {
        self.0.insert(key, ());
    }

    /// Whether this node has changed something of it lately.
    #[must_use]
    pub fn has(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_changes_are_known() {
        let lately = Lately::default();
        for key in 0..MAX_KEPT + 1000 {
            lately.changed(key);
        }
        lately.0.run_pending_tasks();
        assert!(lately.has(&(MAX_KEPT + 999)) && !lately.has(&0) && !lately.has(&(MAX_KEPT + 1000)));
        assert!(lately.0.entry_count() <= MAX_KEPT);
    }
}
