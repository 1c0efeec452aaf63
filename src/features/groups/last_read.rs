//! What a held poll about a group read last, and as of when. A held poll looks again at every change of
//! any shared head, so it must not ask the database each time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use serde::Serialize;

use super::http::GroupContext;
use crate::base::error::Result;
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::{GroupId, UserId};
use crate::cache::Revision;
use crate::engine::entries::State;
use crate::engine::heads::{CachedHead, History};
use crate::engine::marks::StreamKey;
use crate::http::polling::{self, Version};

/// The versions that an answer follows from: of the group's head, which goes up with each message
/// and each recall, and of the member's own rows, which say since when the user is a member; and the
/// history in which they have these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AsOf {
    history: History,
    head: i64,
    user: Option<Revision>,
}

/// A page as it is sent.
#[derive(Debug, Clone)]
pub(super) struct PageBody {
    pub bytes: Bytes,
    pub version: Version,
    /// Whether a poll is held for it.
    pub is_empty: bool,
}

impl PageBody {
    /// The tag is made from the body: a member and a service who are shown the same have the same
    /// tag. `revision` only ever goes up.
    pub(super) fn new(page: &impl Serialize, revision: Revision, is_empty: bool) -> Result<Self> {
        let bytes = polling::json(page)?;
        let mut print = Fingerprint::default();
        print.add_bytes(&bytes);
        Ok(Self { bytes, version: Version { revision, shared: print.finish() }, is_empty })
    }
}

/// The last answer of a poll.
#[derive(Debug)]
pub(super) struct LastRead<'a, T> {
    state: &'a GroupContext,
    user: Option<UserId>,
    /// None for a request that does not wait, which reads once.
    head: Option<Arc<CachedHead>>,
    key: StreamKey,
    last: Mutex<Option<(AsOf, T)>>,
}

impl<'a, T: Clone> LastRead<'a, T> {
    /// For one request, which waits or not.
    pub(super) fn new(state: &'a GroupContext, group: GroupId, user: Option<UserId>, waits: bool) -> Self {
        let key = StreamKey::group(group);
        let head = waits.then(|| state.heads.cached_head(&key));
        Self { state, user, head, key, last: Mutex::default() }
    }

    fn last(&self) -> MutexGuard<'_, Option<(AsOf, T)>> {
        // Every change is one step, so a poisoned lock guards whole data.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The versions that are known here; None where one is not.
    async fn as_of(&self) -> Option<AsOf> {
        let head = self.head.as_ref()?;
        if !self.state.heads.is_fresh() {
            return None;
        }
        if !head.is_loaded() {
            // Without it, the poll asks the database at each look.
            self.state.heads.load(std::slice::from_ref(&self.key), std::slice::from_ref(head)).await.ok()?;
        }
        let (history, head) = (self.state.heads.history(), head.version());
        let Some(user) = self.user else { return Some(AsOf { history, head, user: None }) };
        match self.state.entries.read(user, 0).await {
            State::Current(entry) => Some(AsOf { history, head, user: Some(entry.revision) }),
            State::LastKnown(_) | State::Unknown => None,
        }
    }

    /// The answer: the last one where nothing has changed since, or else what `read` finds.
    pub(super) async fn read(&self, read: impl Future<Output = Result<T>>) -> Result<T> {
        // Before the rows: what changes after this is found by the next look.
        let as_of = self.as_of().await;
        if let Some(found) = self.last().as_ref().filter(|(then, _)| Some(*then) == as_of).map(|(_, found)| found.clone()) {
            return Ok(found);
        }
        let found = read.await?;
        *self.last() = as_of.map(|as_of| (as_of, found.clone()));
        Ok(found)
    }
}
