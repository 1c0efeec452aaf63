//! What of the cache a batch may change: the entries of its users, and the facts of its users.
//! The write begins before the commit, and is applied or abandoned after it.

use crate::base::ids::UserId;
use crate::cache::{Begun, Cache, CacheError, Writer, Written};

use super::{Needs, Rows};

/// What a batch may change.
#[derive(Debug, Clone)]
pub(super) struct WrittenEntries {
    pub(super) users: Vec<UserId>,
    pub(super) facts: Vec<UserId>,
}

impl WrittenEntries {
    /// Facts are kept in a shared cache only.
    pub(super) fn new(needs: &Needs, rows: &Rows, shared: bool) -> Self {
        Self { users: needs.users(), facts: if shared { rows.facts(needs) } else { Vec::new() } }
    }

    fn all(&self) -> Written<'_> {
        Written { users: &self.users, facts: &self.facts }
    }

    /// Puts the writer in; doing it again renews the lease.
    pub(super) async fn begin_write(&self, cache: &Cache, writer: Writer) -> Result<Begun, CacheError> {
        cache.begin_write(self.all(), writer).await
    }

    /// After the transaction was undone.
    pub(super) async fn abandon_write(&self, cache: &Cache, writer: Writer) -> Result<(), CacheError> {
        cache.abandon_write(self.all(), writer).await
    }
}
