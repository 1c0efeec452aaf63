//! What of the cache a batch may change: the entries of its users, and the facts of its users.
//! The write begins before the commit, and is applied or abandoned after it.

use tokio::time::Instant;

use crate::base::ids::UserId;
use crate::cache::{Cache, CacheError, Change, Writer};

use super::{Needs, Rows};

/// What a batch may change.
#[derive(Debug)]
pub(super) struct WrittenEntries {
    users: Vec<UserId>,
    /// For each user about which others.
    facts: Vec<(UserId, Vec<UserId>)>,
}

impl WrittenEntries {
    /// Facts are kept in a shared cache only.
    pub(super) fn new(needs: &Needs, rows: &Rows, shared: bool) -> Self {
        Self { users: needs.users(), facts: if shared { rows.facts(needs) } else { Vec::new() } }
    }

    /// Puts the writer in; doing it again renews the lease. Returns until when other nodes may show
    /// what the entries said, if any may.
    pub(super) async fn begin_write(&self, cache: &Cache, writer: Writer) -> Result<Option<Instant>, CacheError> {
        if self.facts.is_empty() {
            return cache.begin_write(&self.users, writer).await;
        }
        let (entries, facts) = tokio::join!(cache.begin_write(&self.users, writer), cache.begin_facts_write(&self.facts, writer));
        facts.and(entries)
    }

    /// After the commit. Whether the writer was inside all entries.
    pub(super) async fn apply_write(&self, cache: &Cache, writer: Writer, changes: &[Change]) -> Result<bool, CacheError> {
        if self.facts.is_empty() {
            return cache.apply_write(writer, changes).await;
        }
        let (entries, facts) = tokio::join!(cache.apply_write(writer, changes), cache.end_facts_write(&self.facts, writer));
        facts.and(entries)
    }

    /// After the transaction was undone.
    pub(super) async fn abandon_write(&self, cache: &Cache, writer: Writer) -> Result<(), CacheError> {
        let (entries, facts) = tokio::join!(cache.abandon_write(&self.users, writer), cache.end_facts_write(&self.facts, writer));
        entries.and(facts)
    }
}
