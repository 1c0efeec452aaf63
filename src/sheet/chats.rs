//! The groups of a user, as the sheet sums them up and as the user's own list shows them.

use std::sync::Arc;

use super::whole::Sheet;
use super::{MAX_SQL_READ, Sheets, State, parts, store_away};
use crate::cache::Revision;
use crate::error::Error;
use crate::groups::GroupMark;
use crate::groups::chats::{ChatCount, ChatList};
use crate::guard::Trust;
use crate::heads::Versions;
use crate::ids::{GroupId, UserId};
use crate::poll::Seen;

/// One group of a user, with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGroup {
    /// Which one.
    pub group: GroupId,
    /// How far the user has read it.
    pub mark: GroupMark,
    /// How many messages there ever were.
    pub head: i64,
    /// How many are unread.
    pub unread: i64,
}

/// All groups of a user, as of one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGroups {
    /// In the order of their ids.
    pub groups: Vec<UserGroup>,
    /// The user's revision.
    pub revision: Revision,
    /// The versions of the groups' heads.
    pub versions: Versions,
}

impl Sheets {
    /// What of the groups is unread. None where a store is away.
    pub(super) async fn count_chats(&self, sheet: &Sheet) -> Option<ChatCount> {
        let entry = sheet.entry.as_ref()?;
        let mut groups = parts::groups(&entry.parts).peekable();
        if groups.peek().is_none() {
            return Some(ChatCount::default());
        }
        let list = self.chats.list(sheet.user, entry.revision, groups);
        let most = sheet.cap().map_or(i64::MAX, |cap| cap.saturating_add(1));
        match self.chats.count_here(&list, most) {
            Some(count) => Some(count),
            // Boxed, so that the many polls that need it not need not carry its room.
            None => Box::pin(self.count_chats_on(&list, most)).await,
        }
    }

    async fn count_chats_on(&self, list: &ChatList, most: i64) -> Option<ChatCount> {
        if self.guard.trust() == Trust::Unsure {
            return None;
        }
        let _turn = self.turns.take().await.ok()?;
        let counted = tokio::time::timeout(MAX_SQL_READ, self.chats.count(list, most)).await;
        match counted.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(count) => Some(count),
            Err(error) => {
                // They are shown as missing, and read by the next poll.
                tracing::debug!(%error, "cannot count groups");
                None
            }
        }
    }

    /// All groups of a user, not older than what the client has seen.
    ///
    /// # Errors
    /// 503 where that cannot be had.
    pub async fn groups(&self, user: UserId, seen: Seen) -> Result<UserGroups, Error> {
        let State::Current(entry) = self.read(user, seen.revision()).await else { return Err(store_away()) };
        if !self.heads.is_fresh() && !Box::pin(self.catch_up()).await {
            return Err(store_away());
        }
        let list = self.chats.list(user, entry.revision, parts::groups(&entry.parts));
        let groups = self.terms(&list, entry.revision).await?;
        // The user's own marks tell too: one that lies beyond a head was set on a node that is further.
        let may_be_behind = seen.has_other(groups.versions) || groups.groups.iter().any(|of| of.mark.read_seq > of.head);
        if !may_be_behind {
            return Ok(groups);
        }
        if !Box::pin(self.catch_up()).await {
            return Err(store_away());
        }
        self.terms(&list, entry.revision).await
    }

    async fn terms(&self, list: &Arc<ChatList>, revision: Revision) -> Result<UserGroups, Error> {
        let (terms, versions) = match self.chats.terms_here(list) {
            Some(terms) => terms,
            None => {
                let _turn = self.turns.take().await?;
                let read = tokio::time::timeout(MAX_SQL_READ, self.chats.terms(list)).await;
                read.unwrap_or(Err(sqlx::Error::PoolTimedOut))?
            }
        };
        let group = |term: &crate::groups::chats::ChatTerm<'_>| UserGroup {
            group: term.group,
            mark: term.mark.clone(),
            head: term.head,
            unread: term.unread,
        };
        Ok(UserGroups { groups: terms.iter().map(group).collect(), revision, versions })
    }
}
