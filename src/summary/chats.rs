//! The chats in the unread summary: groups and direct messages together.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::base::clock::{Clock, UnixMs};
use crate::base::error::Result;
use crate::base::ids::{GroupId, UserId};
use crate::db::Db;
use crate::engine::entries::{Entries, UserRows};
use crate::engine::heads::{BroadcastState, Versions};
use crate::engine::marks::parts::directs;
use crate::features::groups::chats::{ChatCount, ChatList, ChatTerm, Chats, Which};
use crate::features::groups::part::groups;
use crate::features::inbox::DirectLevel;
use crate::features::inbox::direct_lists::{self, UnreadDirect};
use crate::features::inbox::timed::{Ended, TimedChats};
use crate::features::level::Level;
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
    /// By which levels end.
    pub clock: Clock,
}

/// What is counted of chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChatsCount {
    groups: ChatCount,
    /// The direct chats that the user's own sums do not count yet.
    ended: Ended,
}

/// Unread messages of groups and direct chats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatsOut {
    /// The number of unread messages that count: by the level of each chat all, its mentions only,
    /// or none.
    #[schema(minimum = 0, example = 6)]
    pub unread: i64,
    /// How many of them mention the user.
    #[schema(minimum = 0, example = 1)]
    pub mentions: i64,
    /// The number of groups with unread messages that count.
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
/// read out of order. While messages are unread again, the one before `unread_from` stands for
/// `read_seq`, and own messages above it are gone, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct GroupTermsOut {
    /// The group.
    group_id: GroupId,
    /// The number of messages ever sent.
    head: i64,
    /// The message up to which the user has read, or the last one before the user joined.
    read_seq: i64,
    /// While messages are unread again: the first message that may be; omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    unread_from: Option<i64>,
    /// The number of messages after `read_seq` that were recalled, have expired or were read out of
    /// order.
    gone: i64,
    /// The unread count.
    unread: i64,
    /// The number of unread messages that mention the user.
    mentions: i64,
    /// What of it `chats` and `total` count.
    level: Level,
    /// When the level ends; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    level_until: Option<UnixMs>,
}

impl GroupTermsOut {
    fn new(term: &ChatTerm<'_>, now: UnixMs) -> Self {
        let (read_seq, mark, unread) = (term.mark.read_seq, term.mark.mark, term.numbers.unread);
        let gone = (term.head - mark - unread).max(0);
        let unread_from = (mark < read_seq).then_some(mark + 1);
        let (level, level_until) = (term.mark.level.at(now), term.mark.level.ends_at(now));
        Self {
            group_id: term.group,
            head: term.head,
            read_seq,
            unread_from,
            gone,
            unread,
            mentions: term.numbers.mentions,
            level,
            level_until,
        }
    }

    /// What of it counts in sums.
    fn counted(&self) -> i64 {
        self.level.counted(self.unread, self.mentions)
    }
}

/// A direct chat with unread messages: unread = head − mark − recalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct DirectTermsOut {
    /// The other user.
    peer_id: UserId,
    /// The number of messages that the peer ever sent.
    head: i64,
    /// The number of those messages that do not count as unread, because the user has read them.
    mark: i64,
    /// The number of later messages that were recalled.
    recalled: i64,
    /// The unread count.
    unread: i64,
    /// What `chats` and `total` count: `all` messages or `none`.
    level: DirectLevel,
    /// When the level ends and is `all` again; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    level_until: Option<UnixMs>,
}

impl DirectTermsOut {
    fn new(chat: &UnreadDirect, now: UnixMs) -> Self {
        let UnreadDirect { peer, head, mark, recalled, level } = *chat;
        let (level, level_until) = (level.at(now), level.ends_at(now));
        Self { peer_id: peer, head, mark, recalled, unread: head - mark - recalled, level: level.into(), level_until }
    }
}

/// What of a user's chats is read of the entry once, and kept with it.
#[derive(Debug, Clone)]
pub struct DecodedChats {
    /// None: the user is in no group.
    list: Option<Arc<ChatList>>,
    /// None: there are none.
    timed: Option<Arc<TimedChats>>,
}

/// Groups and direct chats: the sum over the chats that count.
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
    type Count = ChatsCount;
    type Decoded = DecodedChats;
    type Out<'a> = ChatsOut;
    type Terms = ChatTermsOut;

    fn decode(&self, facts: SummaryFacts<'_>) -> DecodedChats {
        let mut groups = groups(&facts.entry.parts).peekable();
        let list = groups.peek().is_some().then(|| self.chats.list(facts.user, facts.entry.revision, groups));
        let timed = TimedChats::of(&facts.entry.parts);
        DecodedChats { list, timed: (timed != TimedChats::default()).then(|| Arc::new(timed)) }
    }

    fn decoded_bytes(decoded: &DecodedChats) -> usize {
        decoded.list.as_ref().map_or(0, |list| list.size_bytes()) + decoded.timed.as_ref().map_or(0, |timed| timed.size_bytes())
    }

    async fn count(&self, facts: SummaryFacts<'_>, decoded: &DecodedChats) -> Option<ChatsCount> {
        let ended = decoded.timed.as_ref().map(|timed| timed.at(facts.now)).unwrap_or_default();
        let Some(list) = &decoded.list else { return Some(ChatsCount { ended, ..ChatsCount::default() }) };
        let enough = facts.cap.enough();
        let groups = match self.chats.count_here(list, enough, facts.now) {
            Some(count) => Some(count),
            // Boxed, so that polls that do not need it do not carry its room.
            None => Box::pin(self.entries.in_turn_or_none("groups", self.chats.count(list, enough, facts.now))).await,
        }?;
        Some(ChatsCount { groups, ended })
    }

    fn versions(count: &ChatsCount) -> Versions {
        count.groups.versions.and(count.ended.versions())
    }

    fn changes_at(count: &ChatsCount) -> Option<UnixMs> {
        count.groups.changes_at.into_iter().chain(count.ended.next).min()
    }

    fn unread(facts: SummaryFacts<'_>, count: &ChatsCount) -> i64 {
        count.groups.unread.saturating_add(directs(&facts.entry.parts).0).saturating_add(count.ended.unread)
    }

    fn show(facts: SummaryFacts<'_>, count: &ChatsCount) -> ChatsOut {
        let (unread, capped) = facts.cap.show(Self::unread(facts, count));
        let directs = directs(&facts.entry.parts).1.saturating_add(count.ended.chats);
        let (groups, directs) = (facts.cap.show(count.groups.groups).0, facts.cap.show(directs).0);
        let mentions = facts.cap.show(count.groups.mentions).0;
        ChatsOut { unread, mentions, groups, directs, capped }
    }

    async fn explain(&self, rows: &UserRows, _broadcast_state: &BroadcastState) -> Result<ChatTermsOut> {
        let list = self.chats.list(rows.user, rows.entry.revision, groups(&rows.entry.parts));
        let now = self.clock.now();
        let terms = self.chats.terms(&list, Which::All).await?;
        let groups: Vec<_> = terms.iter().map(|term| GroupTermsOut::new(term, now)).collect();
        let directs = direct_lists::unread(&self.db, rows.user, MAX_DIRECTS).await?;
        let directs = directs.iter().map(|chat| DirectTermsOut::new(chat, now)).collect();
        let counted = groups.iter().map(GroupTermsOut::counted);
        let ended = Ended::of(&rows.entry.parts, now).unread;
        let unread = counted.fold(rows.row.direct_unread, i64::saturating_add).saturating_add(ended);
        Ok(ChatTermsOut { unread, groups, directs })
    }

    fn explained_unread(_rows: &UserRows, terms: &ChatTermsOut) -> i64 {
        terms.unread
    }
}
