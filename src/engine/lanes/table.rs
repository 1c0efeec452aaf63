//! Rows of one table inside a batch: as loaded and as they are now, with what the present command
//! changed.

use std::collections::BTreeMap;

/// Rows of one table: as loaded, and as they are now. A row that is not there counts as its
/// default.
#[derive(Debug)]
pub struct Table<K, V> {
    pub(crate) rows: BTreeMap<K, (V, V)>,
    /// The rows before the present command, where it has set them.
    undo: BTreeMap<K, V>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), undo: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, V: Clone + Default + PartialEq> Table<K, V> {
    pub(crate) fn insert_loaded(&mut self, rows: impl IntoIterator<Item = (K, V)>) {
        self.rows.extend(rows.into_iter().map(|(key, row)| (key, (row.clone(), row))));
    }

    /// The row as it is now.
    #[must_use]
    pub fn get(&self, key: &K) -> V {
        self.rows.get(key).map(|(_, now)| now.clone()).unwrap_or_default()
    }

    /// The row as it is now, if it was loaded or set.
    pub(crate) fn look(&self, key: &K) -> Option<&V> {
        self.rows.get(key).map(|(_, now)| now)
    }

    /// Sets the row, so that [`Rows::undo`] can take it back.
    pub fn set(&mut self, key: &K, row: V) {
        let entry = self.rows.entry(key.clone()).or_default();
        let before = std::mem::replace(&mut entry.1, row);
        self.undo.entry(key.clone()).or_insert(before);
    }

    /// The rows that differ from what was loaded.
    pub fn changed(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter().filter(|(_, (loaded, now))| loaded != now).map(|(key, (_, now))| (key, now))
    }

    /// The keys from this one on with their rows, as they are now.
    pub(crate) fn from<'a>(&'a self, first: &K) -> impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V> {
        self.rows.range(first..).map(|(key, (_, now))| (key, now))
    }

    /// What the present command set stays.
    pub(crate) fn settle(&mut self) {
        self.undo.clear();
    }

    /// Takes back what the present command set.
    pub(crate) fn undo(&mut self) {
        for (key, before) in std::mem::take(&mut self.undo) {
            if let Some(row) = self.rows.get_mut(&key) {
                row.1 = before;
            }
        }
    }
}
