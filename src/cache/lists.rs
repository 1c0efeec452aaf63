//! Lists of users that nodes leave for each other, beside the entries.
//!
//! A list belongs to a version, which the user's entry names. So one that is kept is never wrong,
//! however old it is, and losing it costs a read.

use super::{Cache, CacheError, Revision};
use crate::base::ids::UserId;

/// A list of a user's that is kept by version, beside the user's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKey {
    /// What the feed is counted from.
    Feed,
    Following,
    Blocks,
    Mutes,
}

/// By how many times this the epoch goes up where the database is restored: so what lies above it
/// tells apart histories, in which the same revision stands for different content.
pub const HISTORY_STEP: i64 = 1 << 20;

/// Of which version a list is: one with this is never wrong, however old it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListVersion {
    /// The history of the database; another one after a restore.
    pub history: i64,
    /// The user's revision at which it changed last.
    pub revision: Revision,
}

impl ListVersion {
    /// Whether a list of this version will do where the other one is wanted.
    #[must_use]
    pub fn is_at_least(self, wanted: Self) -> bool {
        self.history == wanted.history && self.revision >= wanted.revision
    }
}

impl Cache {
    /// The version of a user's list at this revision, in the present history of the database. Taken
    /// before the list is read.
    #[must_use]
    pub fn list_version(&self, revision: Revision) -> ListVersion {
        ListVersion { history: self.epoch() / HISTORY_STEP, revision }
    }

    /// The list behind a user's feed as a node left it here, with its version.
    pub async fn get_feed(&self, user: UserId) -> Result<Option<(ListVersion, Vec<u8>)>, CacheError> {
        self.get_list(user, ListKey::Feed).await
    }

    /// Leaves the list behind a user's feed for other nodes.
    pub async fn set_feed(&self, user: UserId, version: ListVersion, list: &[u8]) -> Result<(), CacheError> {
        self.set_list(user, ListKey::Feed, version, list).await
    }

    /// A list of a user's as a node left it here, with its version. It is right for that version,
    /// however old it is. In process there is none: the one node that there is keeps it decoded.
    pub async fn get_list(&self, user: UserId, list: ListKey) -> Result<Option<(ListVersion, Vec<u8>)>, CacheError> {
        match self {
            Self::Memory(_) => Ok(None),
            Self::Redis(redis) => redis.get_list(user, list).await,
        }
    }

    /// Leaves a list of a user's for other nodes.
    pub async fn set_list(&self, user: UserId, list: ListKey, version: ListVersion, content: &[u8]) -> Result<(), CacheError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(redis) => redis.set_list(user, list, version, content).await,
        }
    }
}
