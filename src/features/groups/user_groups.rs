//! The groups of a user, as the user's own list shows them.

use std::sync::Arc;

use super::GroupMark;
use super::chats::{ChatList, ChatTerm, ChatTerms, Which};
use super::http::GroupContext;
use super::part::groups;
use crate::base::clock::UnixMs;
use crate::base::error::Error;
use crate::base::ids::{GroupId, UserId};
use crate::cache::{Entry, Revision};
use crate::engine::entries::State;
use crate::engine::heads::Versions;
use crate::engine::marks::Numbers;
use crate::http::polling::Seen;

/// One group of a user, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGroup {
    pub group: GroupId,
    /// How far the user has read it.
    pub mark: GroupMark,
    /// How many messages there ever were.
    pub head: i64,
    /// When the last one was sent.
    pub sent_at: UnixMs,
    /// What of them is unread.
    pub numbers: Numbers,
}

impl UserGroup {
    /// Whether a message was sent since the user joined.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        self.mark.has_messages(self.head)
    }

    /// When the last message was sent; where there is none, when the user joined.
    #[must_use]
    pub fn last_at(&self) -> UnixMs {
        if self.has_messages() { self.sent_at } else { self.mark.at }
    }

    /// Whether the user's own row knows of a message that the head does not have yet.
    fn is_ahead(&self) -> bool {
        self.mark.read_seq.max(self.mark.mentions.last().unwrap_or(0)) > self.head
    }
}

/// Groups of a user, as of one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGroups {
    /// In the order of their ids.
    pub groups: Vec<UserGroup>,
    pub revision: Revision,
    /// The versions of the groups' heads, and the levels that ended.
    pub versions: Versions,
    /// When the numbers were counted.
    pub now: UnixMs,
    /// When the next level ends; None: none does.
    pub changes_at: Option<UnixMs>,
}

/// These groups of a user, not older than what the client has seen.
///
/// # Errors
/// 503 where that cannot be had.
pub async fn read(context: &GroupContext, user: UserId, which: Which, seen: Seen) -> Result<UserGroups, Error> {
    let State::Current(entry) = context.entries.read(user, seen.revision()).await else { return Err(Error::store_unavailable()) };
    of_entry(context, (user, &entry), which, seen, Versions::default()).await
}

/// The same, given the user's entry. `beside` are the versions that the tag of the answer has beside
/// those of the groups.
///
/// # Errors
/// 503 where that cannot be had.
pub async fn of_entry(
    context: &GroupContext,
    (user, entry): (UserId, &Entry),
    which: Which,
    seen: Seen,
    beside: Versions,
) -> Result<UserGroups, Error> {
    if !context.heads.is_fresh() && !Box::pin(context.entries.catch_up()).await {
        return Err(Error::store_unavailable());
    }
    let list = context.chats.list(user, entry.revision, groups(&entry.parts));
    let found = terms(context, &list, which, entry.revision).await?;
    // The user's own marks tell too: one that lies beyond a head was set on a node that is further,
    // or in a batch of this one whose heads are about to show.
    let has_seen_more = context.heads.has_peers() && seen.has_other(found.versions.and(beside));
    let may_be_behind = has_seen_more || found.groups.iter().any(UserGroup::is_ahead);
    if !may_be_behind {
        return Ok(found);
    }
    if !Box::pin(context.entries.catch_up()).await {
        return Err(Error::store_unavailable());
    }
    terms(context, &list, which, entry.revision).await
}

async fn terms(context: &GroupContext, list: &Arc<ChatList>, which: Which, revision: Revision) -> Result<UserGroups, Error> {
    let now = context.clock.now();
    let ChatTerms { terms, versions, changes_at } = match context.chats.terms_here(list, which, now) {
        Some(terms) => terms,
        None => context.entries.in_turn(context.chats.terms(list, which, now)).await?,
    };
    let group = |term: &ChatTerm<'_>| UserGroup {
        group: term.group,
        mark: term.mark.clone(),
        head: term.head,
        sent_at: term.sent_at,
        numbers: term.numbers,
    };
    Ok(UserGroups { groups: terms.iter().map(group).collect(), revision, versions, now, changes_at })
}
