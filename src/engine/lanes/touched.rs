//! What of the cache a batch may change: the entries of its users, and the facts of its users.
//! Touched before the commit, left after it.

use tokio::time::Instant;

use crate::base::ids::UserId;
use crate::cache::{Cache, CacheError, Change, Writer};

use super::{Needs, Rows};

/// What a batch may change.
#[derive(Debug)]
pub(super) struct Touched {
    users: Vec<UserId>,
    /// For each user about which others.
    facts: Vec<(UserId, Vec<UserId>)>,
}

impl Touched {
    /// Facts are kept in a shared cache only.
    pub(super) fn new(needs: &Needs, rows: &Rows, shared: bool) -> Self {
        Self { users: needs.users(), facts: if shared { rows.facts(needs) } else { Vec::new() } }
    }

    /// Puts the writer in; doing it again renews the lease. Returns until when other nodes may show
    /// what the entries said, if any may.
    pub(super) async fn touch(&self, cache: &Cache, writer: Writer) -> Result<Option<Instant>, CacheError> {
        if self.facts.is_empty() {
            return cache.touch(&self.users, writer).await;
        }
        let (entries, facts) = tokio::join!(cache.touch(&self.users, writer), cache.touch_facts(&self.facts, writer));
        facts.and(entries)
    }

    /// After the commit. Whether the writer was inside all entries.
    pub(super) async fn publish(&self, cache: &Cache, writer: Writer, changes: &[Change]) -> Result<bool, CacheError> {
        if self.facts.is_empty() {
            return cache.publish(writer, changes).await;
        }
        let (entries, facts) = tokio::join!(cache.publish(writer, changes), cache.leave_facts(&self.facts, writer));
        facts.and(entries)
    }

    /// After the transaction was undone.
    pub(super) async fn leave(&self, cache: &Cache, writer: Writer) -> Result<(), CacheError> {
        let (entries, facts) = tokio::join!(cache.leave(&self.users, writer), cache.leave_facts(&self.facts, writer));
        entries.and(facts)
    }
}
