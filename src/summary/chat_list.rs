//! A user's chats: groups and direct chats in one list, the latest activity first.
//!
//! The groups come from the user's entry and from heads in memory, the direct chats from SQL in the
//! order of the list. Last messages are read only for the chats that are shown. A first page that was
//! shown before is kept with the entry (`kept.rs`), and shown again while its tag is the same.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::try_join;
use serde::Serialize;
use utoipa::ToSchema;

use super::Summaries;
use super::kept::{FirstPage, Kept, PageBody};
use crate::base::clock::UnixMs;
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::{GroupId, UserId};
use crate::cache::ReadEntry;
use crate::engine::entries::{State, alive};
use crate::engine::heads::{History, Versions};
use crate::features::groups;
use crate::features::groups::chats::Which;
use crate::features::groups::history_http::GroupMessageOut;
use crate::features::groups::http::GroupContext;
use crate::features::groups::user_groups::{self, UserGroup};
use crate::features::inbox::timed::Ended;
use crate::features::inbox::{DirectOut, ItemOut, direct_lists};
use crate::features::level::Level;
use crate::http::pages::Position;
use crate::http::params::IfNoneMatch;
use crate::http::polling::{PolledValue, Seen, Version};
use crate::http::served::Served;

/// How often the user's own state is read again because the direct chats are of a newer one.
const MAX_READS: u32 = 4;

/// What the handlers of the chat list work with.
#[derive(Debug)]
pub struct ChatListContext {
    /// What reads groups.
    pub groups: Served<GroupContext>,
    pub summaries: Arc<Summaries>,
}

/// Which sort of chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(rename_all = "snake_case")]
pub enum ChatKind {
    /// A group.
    Group,
    /// A direct chat.
    Direct,
}

/// A chat of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatOut {
    /// Whether `id` is a group or the other user of a direct chat.
    pub kind: ChatKind,
    /// The group, or the other user.
    #[schema(pattern = "^[1-9][0-9]{0,18}$", example = "9")]
    pub id: String,
    /// The number of unread messages.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The number of unread messages that mention the user. Always 0 in a direct chat.
    #[schema(minimum = 0, example = 1)]
    pub mentions: i64,
    /// The last message, or 0; send it back as `up_to` to clear exactly what the user saw. For a
    /// direct chat, it is a number in the user's own inbox.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// The message up to which the user has read.
    #[schema(minimum = 0, example = 117)]
    pub read_seq: i64,
    /// The first unread message that is kept; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 118)]
    pub first_unread_seq: Option<i64>,
    /// What of the chat `chats` and `total` count.
    pub level: Level,
    /// When the level ends and is `all` again; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level_until: Option<UnixMs>,
    /// The last message; null if there is none, or if it has expired.
    #[schema(required = true)]
    pub last: Option<GroupMessageOut>,
    /// When the last message was sent; in a group without a message, when the user joined. Omitted in
    /// a direct chat without a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_at: Option<UnixMs>,
}

/// A chat before its last message is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Chat {
    Group(UserGroup),
    Direct(DirectOut),
}

impl Chat {
    fn kind(&self) -> ChatKind {
        match self {
            Self::Group(_) => ChatKind::Group,
            Self::Direct(_) => ChatKind::Direct,
        }
    }

    fn id(&self) -> i64 {
        match self {
            Self::Group(of) => of.group.get(),
            Self::Direct(of) => of.peer_id.get(),
        }
    }

    fn last_at(&self) -> Option<UnixMs> {
        match self {
            Self::Group(of) => Some(of.last_at()),
            Self::Direct(of) => of.last_at,
        }
    }

    fn is_unread(&self) -> bool {
        match self {
            Self::Group(of) => of.numbers.unread > 0,
            Self::Direct(of) => of.unread > 0,
        }
    }

    /// The place in the list: by time, then groups before direct chats, then by id. Both numbers go
    /// down, as in every list that shows the highest first.
    pub(super) fn position(&self) -> Position {
        let is_group = i64::from(self.kind() == ChatKind::Group);
        Position { at: self.last_at().unwrap_or_default().0.saturating_mul(2).saturating_add(is_group), id: self.id() }
    }
}

/// The time and the peer that a page of direct chats goes on after.
fn direct_place(after: Position) -> (i64, i64) {
    if after == Position::TOP {
        return (i64::MAX, i64::MAX);
    }
    // Behind a group, all direct chats of the same time follow, whatever the peer's id.
    let (at, is_group) = (after.at.div_euclid(2), after.at.rem_euclid(2) == 1);
    if is_group { (at + 1, 0) } else { (at, after.id) }
}

/// Which part of the list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// What it goes on after.
    pub(super) after: Position,
    /// How many chats at most.
    pub(super) rows: i64,
    /// Whether chats without unread messages are left out.
    pub(super) unread_only: bool,
}

/// Which chats are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    Page(Page),
    Group(GroupId),
    Direct(UserId),
}

impl Asked {
    /// What a page follows from that may be kept; None for what is not kept.
    fn first_page(self, history: History, versions: Versions) -> Option<FirstPage> {
        match self {
            Self::Page(Page { after: Position::TOP, rows, unread_only }) => {
                Some(FirstPage { asked: (rows, unread_only), history, versions })
            }
            _ => None,
        }
    }
}

/// Some chats of a user, as of one reading.
#[derive(Debug, Clone, Default)]
pub(super) struct Chats {
    /// In the order of the list.
    pub(super) chats: Vec<Chat>,
    /// Their last messages.
    last: HashMap<(bool, i64), GroupMessageOut>,
    now: UnixMs,
    /// The page itself, where it was shown before. Nothing else is read then.
    pub(super) shown: Option<PageBody>,
    /// Whether the page is to be kept, with which entry, and as what.
    keep: Option<(Arc<ReadEntry>, FirstPage)>,
}

impl Chats {
    /// Keeps the page that was made of them, for the next reader of the same entry.
    pub(super) fn keep(&self, state: &ChatListContext, user: UserId, page: &PageBody) {
        let Some((entry, from)) = &self.keep else { return };
        let before = entry.derived::<Kept>();
        if let Some(kept) = Kept::with_page(before.as_deref(), *from, page) {
            state.groups.entries.keep(user, entry, kept);
        }
    }

    pub(super) fn out(&self, chat: &Chat) -> ChatOut {
        let last = self.last.get(&(chat.kind() == ChatKind::Group, chat.id())).cloned();
        let (kind, last_at) = (chat.kind(), chat.last_at());
        match chat {
            Chat::Group(of) => ChatOut {
                kind,
                id: of.group.to_string(),
                unread: of.numbers.unread,
                mentions: of.numbers.mentions,
                head: of.head,
                read_seq: of.mark.read_seq,
                first_unread_seq: of.numbers.first,
                level: of.mark.level.at(self.now),
                level_until: of.mark.level.ends_at(self.now),
                last,
                last_at,
            },
            Chat::Direct(of) => ChatOut {
                kind,
                id: of.peer_id.to_string(),
                unread: of.unread,
                mentions: 0,
                head: of.last_seq,
                read_seq: of.read_seq,
                first_unread_seq: of.first_unread_seq,
                level: of.level.into(),
                level_until: of.level_until,
                last,
                last_at,
            },
        }
    }
}

/// Reads chats of a user, not older than what the client has seen. Where the client has the answer
/// already by its tag, nothing but the tag is made.
///
/// # Errors
/// 503 where a store is away.
pub(super) async fn read(
    state: &ChatListContext,
    user: UserId,
    asked: Asked,
    seen: Seen,
    tags: &IfNoneMatch,
) -> Result<PolledValue<Chats>> {
    let mut revision = seen.revision();
    for read_again in (0..MAX_READS).rev() {
        // Before anything else is read: what is of a later one is then kept as of an earlier one, and not found.
        let history = state.groups.heads.history();
        let State::Current(entry) = state.groups.entries.read(user, revision).await else { break };
        alive(&entry.parts)?;
        let which = match asked {
            Asked::Page(_) => Which::All,
            Asked::Group(group) => Which::One(group),
            Asked::Direct(_) => Which::None,
        };
        let beside = Ended::of(&entry.parts, state.groups.clock.now()).versions();
        let as_of = user_groups::as_of(&state.groups, (user, &entry), which, seen, beside).await?;
        let (now, ended) = (as_of.now, Ended::of(&entry.parts, as_of.now));
        let versions = as_of.versions.and(ended.versions());
        let version = Some(Version::new(entry.revision, versions));
        let changes_at = as_of.changes_at.into_iter().chain(ended.next).min();
        let found = |value: Chats| Ok(PolledValue { value, version, changes_at });
        if version.is_some_and(|version| tags.matches(&seen.tag(version))) {
            return found(Chats::default());
        }
        let page = asked.first_page(history, versions);
        let shown = page.and_then(|page| entry.derived::<Kept>()?.page(page));
        if shown.is_some() {
            return found(Chats { shown, ..Chats::default() });
        }
        let groups = as_of.groups(&state.groups).await?.groups;
        if let (Asked::Group(group), true) = (asked, groups.is_empty()) {
            return Err(no_chat(state, user, group).await?.into());
        }
        let directs = directs(state, user, asked, now).await?;
        // Both should be of one state of the user. One who changes faster than that can be read has the older tag.
        if directs.revision > entry.revision && read_again > 0 {
            revision = directs.revision;
            continue;
        }
        // What SQL has lost, a kept page would go on to show.
        let keep = page.filter(|_| directs.revision == entry.revision).map(|page| (entry, page));
        let chats = merged(groups, directs.chats, asked);
        let last = last_messages(state, user, &chats).await?;
        return found(Chats { chats, last, now, shown: None, keep });
    }
    Err(Error::store_unavailable())
}

/// Why a group is not among the user's chats.
async fn no_chat(state: &ChatListContext, user: UserId, group: GroupId) -> Result<Problem> {
    groups::lists::view_known(&state.groups.db, group, None).await?;
    Ok(groups::no_member(group, user))
}

async fn directs(state: &ChatListContext, user: UserId, asked: Asked, now: UnixMs) -> Result<direct_lists::Directs> {
    let (db, entries) = (&state.groups.db, &state.groups.entries);
    match asked {
        Asked::Page(page) if page.unread_only => {
            entries.in_turn(direct_lists::unread_by_activity(db, user, direct_place(page.after), page.rows, now)).await
        }
        Asked::Page(page) => entries.in_turn(direct_lists::by_activity(db, user, direct_place(page.after), page.rows, now)).await,
        Asked::Direct(peer) => entries.in_turn(direct_lists::one(db, user, peer, now)).await,
        Asked::Group(_) => Ok(direct_lists::Directs::default()),
    }
}

/// The chats of a page in their order, given all groups and the direct chats of the page.
fn merged(groups: Vec<UserGroup>, directs: Vec<DirectOut>, asked: Asked) -> Vec<Chat> {
    let mut chats: Vec<_> = groups.into_iter().map(Chat::Group).chain(directs.into_iter().map(Chat::Direct)).collect();
    let Asked::Page(page) = asked else { return chats };
    let place = |chat: &Chat| {
        let Position { at, id } = chat.position();
        (at, id)
    };
    chats.retain(|chat| place(chat) < (page.after.at, page.after.id) && (chat.is_unread() || !page.unread_only));
    chats.sort_unstable_by_key(|chat| Reverse(place(chat)));
    chats.truncate(usize::try_from(page.rows).unwrap_or(usize::MAX));
    chats
}

/// The last messages of these chats, where they are kept.
async fn last_messages(state: &ChatListContext, user: UserId, chats: &[Chat]) -> Result<HashMap<(bool, i64), GroupMessageOut>> {
    let (mut of_groups, mut of_directs) = (Vec::new(), Vec::new());
    for chat in chats {
        match chat {
            Chat::Group(of) if of.has_messages() => of_groups.push((of.group, of.head)),
            Chat::Direct(of) if of.last_seq > 0 => of_directs.push(of.last_seq),
            Chat::Group(_) | Chat::Direct(_) => {}
        }
    }
    if of_groups.is_empty() && of_directs.is_empty() {
        return Ok(HashMap::new());
    }
    let db = &state.groups.db;
    let groups = async { if of_groups.is_empty() { Ok(Vec::new()) } else { groups::lists::messages_at(db, &of_groups).await } };
    let directs = async { if of_directs.is_empty() { Ok(Vec::new()) } else { direct_lists::messages_at(db, user, &of_directs).await } };
    let (groups, directs) = state.groups.entries.in_turn(try_join(groups, directs)).await?;
    let groups = groups.into_iter().map(|(group, seq, message)| ((true, group.get()), GroupMessageOut::new((seq, message))));
    let directs = directs.into_iter().filter_map(|item| Some(((false, item.peer_id?.get()), direct_message(item))));
    Ok(groups.chain(directs).collect())
}

/// An item of the inbox as a message of a chat.
fn direct_message(item: ItemOut) -> GroupMessageOut {
    let ItemOut { seq, sender_id, content, sent_at, recalled, .. } = item;
    GroupMessageOut { seq, sender_id, content, sent_at: (!recalled).then_some(sent_at), recalled: recalled.then_some(true) }
}
