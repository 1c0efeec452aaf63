//! The groups of a user, as the user's own list shows them.

use std::sync::Arc;

use super::GroupMark;
use super::chats::{ChatList, ChatTerm, ListState, Which};
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

/// Groups of a user as of one state, before their numbers are told.
#[derive(Debug)]
pub struct GroupsAsOf {
    list: Arc<ChatList>,
    which: Which,
    revision: Revision,
    /// The versions of the groups' heads, and the levels that ended.
    pub versions: Versions,
    /// When it was.
    pub now: UnixMs,
    /// When the next level ends; None: none does.
    pub changes_at: Option<UnixMs>,
}

impl GroupsAsOf {
    /// The groups with their numbers, which are as new as the versions or newer.
    ///
    /// # Errors
    /// 503 where they cannot be had.
    pub async fn groups(self, context: &GroupContext) -> Result<UserGroups, Error> {
        let Self { list, which, revision, versions, now, changes_at } = self;
        let terms = match context.chats.terms_here(&list, which) {
            Some(terms) => terms,
            None => context.entries.in_turn(context.chats.terms(&list, which)).await?,
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
}

/// These groups of a user, not older than what the client has seen.
///
/// # Errors
/// 503 where that cannot be had.
pub async fn read(context: &GroupContext, user: UserId, which: Which, seen: Seen) -> Result<UserGroups, Error> {
    let State::Current(entry) = context.entries.read(user, seen.revision()).await else { return Err(Error::store_unavailable()) };
    as_of(context, (user, &entry), which, seen, Versions::default()).await?.groups(context).await
}

/// Which state they are in, given the user's entry. `beside` are the versions that the tag of the
/// answer has beside those of the groups.
///
/// # Errors
/// 503 where that cannot be had.
pub async fn as_of(
    context: &GroupContext,
    (user, entry): (UserId, &Entry),
    which: Which,
    seen: Seen,
    beside: Versions,
) -> Result<GroupsAsOf, Error> {
    if !context.heads.is_fresh() && !Box::pin(context.entries.catch_up()).await {
        return Err(Error::store_unavailable());
    }
    let list = context.chats.list(user, entry.revision, groups(&entry.parts));
    let (mut state, mut now) = state(context, &list, which).await?;
    // The user's own marks tell too: one that lies beyond a head was set on a node that is further,
    // or in a batch of this one whose heads are about to show.
    let has_seen_more = context.heads.has_peers() && seen.has_other(state.versions.and(beside));
    if has_seen_more || state.is_ahead {
        if !Box::pin(context.entries.catch_up()).await {
            return Err(Error::store_unavailable());
        }
        (state, now) = self::state(context, &list, which).await?;
    }
    let ListState { versions, changes_at, .. } = state;
    Ok(GroupsAsOf { list, which, revision: entry.revision, versions, now, changes_at })
}

async fn state(context: &GroupContext, list: &ChatList, which: Which) -> Result<(ListState, UnixMs), Error> {
    let now = context.clock.now();
    let state = match context.chats.state_here(list, which, now) {
        Some(state) => state,
        None => context.entries.in_turn(context.chats.state(list, which, now)).await?,
    };
    Ok((state, now))
}
