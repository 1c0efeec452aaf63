//! The groups of a user, as the user's own list shows them.

use std::sync::Arc;

use super::GroupMark;
use super::chats::{ChatList, ChatTerm};
use super::http::GroupContext;
use super::part::groups;
use crate::base::error::Error;
use crate::base::ids::{GroupId, UserId};
use crate::cache::Revision;
use crate::engine::entries::State;
use crate::engine::heads::Versions;
use crate::http::polling::Seen;

/// One group of a user, with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGroup {
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
    pub revision: Revision,
    /// The versions of the groups' heads.
    pub versions: Versions,
}

/// All groups of a user, not older than what the client has seen.
///
/// # Errors
/// 503 where that cannot be had.
pub async fn read(context: &GroupContext, user: UserId, seen: Seen) -> Result<UserGroups, Error> {
    let State::Current(entry) = context.entries.read(user, seen.revision()).await else { return Err(Error::store_unavailable()) };
    if !context.heads.is_fresh() && !Box::pin(context.entries.catch_up()).await {
        return Err(Error::store_unavailable());
    }
    let list = context.chats.list(user, entry.revision, groups(&entry.parts));
    let found = terms(context, &list, entry.revision).await?;
    // The user's own marks tell too: one that lies beyond a head was set on a node that is further.
    let may_be_behind = seen.has_other(found.versions) || found.groups.iter().any(|of| of.mark.read_seq > of.head);
    if !may_be_behind {
        return Ok(found);
    }
    if !Box::pin(context.entries.catch_up()).await {
        return Err(Error::store_unavailable());
    }
    terms(context, &list, entry.revision).await
}

async fn terms(context: &GroupContext, list: &Arc<ChatList>, revision: Revision) -> Result<UserGroups, Error> {
    let (terms, versions) = match context.chats.terms_here(list) {
        Some(terms) => terms,
        None => context.entries.in_turn(context.chats.terms(list)).await?,
    };
    let group = |term: &ChatTerm<'_>| UserGroup { group: term.group, mark: term.mark.clone(), head: term.head, unread: term.unread };
    Ok(UserGroups { groups: terms.iter().map(group).collect(), revision, versions })
}
