//! The chats in the unread summary: groups and direct messages together.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::error::Result;
use crate::base::ids::{GroupId, UserId};
use crate::db::Db;
use crate::engine::entries::{Entries, UserRows};
use crate::engine::heads::{BroadcastState, Versions};
use crate::engine::marks::parts::directs;
use crate::features::groups::chats::{ChatCount, ChatList, ChatTerm, Chats};
use crate::features::groups::part::groups;
use crate::features::inbox;
use crate::features::summary_part::{Shared, SummaryFacts, SummaryPart};

/// How many direct chats are explained.
const MAX_DIRECTS: i64 = 1000;

/// Groups and direct messages.
#[derive(Debug)]
pub struct ChatPart {
    /// Where the direct chats are.
    pub db: Db,
    /// Whose turn it is to ask the database.
    pub entries: Arc<Entries>,
    pub chats: Arc<Chats>,
}

/// Unread messages of groups and direct chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatsOut {
    /// The number of unread messages, without muted chats.
    #[schema(minimum = 0, example = 6)]
    pub unread: i64,
    /// The number of groups with unread messages.
    #[schema(minimum = 0, example = 2)]
    pub groups: i64,
    /// The number of direct chats with unread messages.
    #[schema(minimum = 0, example = 1)]
    pub directs: i64,
    /// With `cap`: whether the count is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

/// A group: unread = head − read_seq − messages above it that were recalled, have expired or were
/// read out of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct GroupTermsOut {
    /// The group.
    group_id: GroupId,
    /// The number of messages ever sent.
    head: i64,
    /// The message up to which the user has read, or the last one before the user joined.
    read_seq: i64,
    /// The number of messages after `read_seq` that were recalled, have expired or were read out of
    /// order.
    gone: i64,
    /// The unread count.
    unread: i64,
    /// Whether `chats` and `total` exclude it.
    muted: bool,
}

impl From<&ChatTerm<'_>> for GroupTermsOut {
    fn from(term: &ChatTerm<'_>) -> Self {
        let read_seq = term.mark.read_seq;
        let gone = (term.head - read_seq - term.unread).max(0);
        Self { group_id: term.group, head: term.head, read_seq, gone, unread: term.unread, muted: term.mark.muted }
    }
}

/// A direct chat with unread messages: unread = head − mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct DirectTermsOut {
    /// The other user.
    peer_id: UserId,
    /// The number of messages that the peer ever sent.
    head: i64,
    /// The number of those messages that the user has read.
    mark: i64,
    /// The unread count.
    unread: i64,
    /// Whether `chats` and `total` exclude it.
    muted: bool,
}

/// Groups and direct chats: the sum over the chats that are not muted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatTermsOut {
    /// The sum.
    unread: i64,
    /// The groups of the user.
    groups: Vec<GroupTermsOut>,
    /// The direct chats with unread messages; at most 1000.
    directs: Vec<DirectTermsOut>,
}

impl SummaryPart for ChatPart {
    const SHARED: Shared = Shared::Heads;
    const IN_TOTAL: bool = true;
    type Count = ChatCount;
    /// None: the user is in no group.
    type Decoded = Option<Arc<ChatList>>;
    type Out<'a> = ChatsOut;
    type Terms = ChatTermsOut;

    fn decode(&self, facts: SummaryFacts<'_>) -> Option<Arc<ChatList>> {
        let mut groups = groups(&facts.entry.parts).peekable();
        groups.peek()?;
        Some(self.chats.list(facts.user, facts.entry.revision, groups))
    }

    fn decoded_bytes(list: &Option<Arc<ChatList>>) -> usize {
        list.as_ref().map_or(0, |list| list.size_bytes())
    }

    async fn count(&self, facts: SummaryFacts<'_>, list: &Option<Arc<ChatList>>) -> Option<ChatCount> {
        let Some(list) = list else { return Some(ChatCount::default()) };
        let enough = facts.cap.enough();
        match self.chats.count_here(list, enough) {
            Some(count) => Some(count),
            // Boxed, so that polls that do not need it do not carry its room.
            None => Box::pin(self.entries.in_turn_or_none("groups", self.chats.count(list, enough))).await,
        }
    }

    fn versions(count: &ChatCount) -> Versions {
        count.versions
    }

    fn unread(facts: SummaryFacts<'_>, count: &ChatCount) -> i64 {
        count.unread.saturating_add(directs(&facts.entry.parts).0)
    }

    fn show(facts: SummaryFacts<'_>, count: &ChatCount) -> ChatsOut {
        let (unread, capped) = facts.cap.show(Self::unread(facts, count));
        let (groups, directs) = (facts.cap.show(count.groups).0, facts.cap.show(directs(&facts.entry.parts).1).0);
        ChatsOut { unread, groups, directs, capped }
    }

    async fn explain(&self, rows: &UserRows, _broadcast_state: &BroadcastState) -> Result<ChatTermsOut> {
        let list = self.chats.list(rows.user, rows.entry.revision, groups(&rows.entry.parts));
        let (terms, _) = self.chats.terms(&list).await?;
        let groups: Vec<_> = terms.iter().map(GroupTermsOut::from).collect();
        let direct =
            |(peer_id, head, mark, muted): (UserId, i64, i64, bool)| DirectTermsOut { peer_id, head, mark, unread: head - mark, muted };
        let directs = inbox::lists::unread(&self.db, rows.user, MAX_DIRECTS).await?.into_iter().map(direct).collect();
        let counted = groups.iter().filter(|of| !of.muted).map(|of| of.unread);
        let unread = counted.fold(rows.row.direct_unread, i64::saturating_add);
        Ok(ChatTermsOut { unread, groups, directs })
    }

    fn explained_unread(_rows: &UserRows, terms: &ChatTermsOut) -> i64 {
        terms.unread
    }
}
