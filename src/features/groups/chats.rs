//! A user's groups as its unread summary counts them: a cached head and a mark for each group, so
//! that counting is reading cached heads.
//!
//! The marks are part of the user's entry in the cache, so a list belongs to the user's revision:
//! one that is kept is either that of the revision or it is made again from the entry at hand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::sync::Cache as Lists;

use super::GroupMark;
use super::known_rows::KnownRows;
use crate::base::clock::UnixMs;
use crate::base::ids::{GroupId, UserId};
use crate::cache::Revision;
use crate::db::{Db, DbResult};
use crate::engine::heads::{CachedHead, Heads, History, KeptCount, Versions};
use crate::engine::marks::{Kind, Numbers, StreamKey};
use crate::features::level::Level;

/// How many bytes of decoded lists a node keeps, and for how long one is kept.
const MAX_LIST_BYTES: u64 = 64 << 20;
const LIST_TTL: Duration = Duration::from_secs(300);

/// What a list takes besides its groups.
const LIST_BYTES: usize = 320;

/// How often cached heads are loaded that were forgotten meanwhile, before the count is given up.
const MAX_LOADS: u32 = 4;

/// One group of a user.
#[derive(Debug)]
pub struct Chat {
    pub group: GroupId,
    /// How far the user has read it.
    pub mark: GroupMark,
    cached_head: Arc<CachedHead>,
}

/// A user's groups, as of one revision in one history of the database.
#[derive(Debug)]
pub struct ChatList {
    as_of: (History, Revision),
    /// In the order of their ids.
    chats: Box<[Chat]>,
    /// What is unread where only the rows tell, by group and the version of its head.
    below: Mutex<HashMap<GroupId, (i64, Numbers)>>,
    counted: KeptCount<ChatCount>,
}

/// One group with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatTerm<'a> {
    pub group: GroupId,
    /// How far the user has read it.
    pub mark: &'a GroupMark,
    /// How many messages there ever were.
    pub head: i64,
    /// When the last one was sent.
    pub sent_at: UnixMs,
    /// What of them is unread.
    pub numbers: Numbers,
}

/// What of a user's groups counts in sums, by the level of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChatCount {
    /// How many unread messages.
    pub unread: i64,
    /// How many of them mention the user.
    pub mentions: i64,
    /// In how many groups.
    pub groups: i64,
    /// The versions of their heads, and the levels that ended.
    pub versions: Versions,
    /// When the next level ends; None: none does.
    pub changes_at: Option<UnixMs>,
}

/// Which groups of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    None,
    /// This one alone.
    One(GroupId),
}

impl Which {
    fn is_wanted(self, group: GroupId) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::One(one) => one == group,
        }
    }
}

/// Which state some groups of a list are in. It tells two states apart without the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListState {
    /// The versions of their heads, and the levels that ended.
    pub versions: Versions,
    /// When the next level ends; None: none does.
    pub changes_at: Option<UnixMs>,
    /// Whether the user's own row knows of a message that a head does not have yet.
    pub is_ahead: bool,
}

/// What the cached heads tell of one group.
enum Told {
    /// The numbers and the head's version.
    Numbers(Numbers, i64),
    /// Only the rows know, as of this version.
    Below(i64),
    /// There is no head here.
    Unloaded,
}

impl Chat {
    fn id(&self) -> u64 {
        self.group.get().cast_unsigned()
    }

    fn add_to(&self, versions: &mut Versions, version: i64) {
        versions.add(Kind::Group, self.id(), version);
    }

    /// Adds the end of the level, and what its end will change: the earlier of the two.
    fn add_level(&self, versions: &mut Versions, changes_at: &mut Option<UnixMs>, now: UnixMs) {
        if self.mark.level.has_ended(now) {
            versions.add_ended(Kind::Group, self.id());
        }
        *changes_at = (*changes_at).into_iter().chain(self.mark.level.ends_at(now)).min();
    }

    /// Whether the user's own row knows of a message that the head does not have yet.
    fn is_ahead(&self) -> bool {
        self.mark.read_seq.max(self.mark.mentions.last().unwrap_or(0)) > self.cached_head.head()
    }

    fn told(&self) -> Told {
        // Before the head: then the head is at least as new.
        let Some(version) = self.cached_head.loaded_version() else { return Told::Unloaded };
        let numbers = self.cached_head.numbers(self.mark.mark, &self.mark.extra, &self.mark.mentions);
        numbers.map_or(Told::Below(version), |numbers| Told::Numbers(numbers, version))
    }
}

impl ChatList {
    fn below(&self) -> std::sync::MutexGuard<'_, HashMap<GroupId, (i64, Numbers)>> {
        self.below.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is unread in one group and the version of its head, as far as it is known here.
    fn known(&self, chat: &Chat) -> Option<(Numbers, i64)> {
        match chat.told() {
            Told::Numbers(numbers, version) => Some((numbers, version)),
            Told::Below(version) => self.below().get(&chat.group).filter(|(at, _)| *at == version).map(|(_, numbers)| (*numbers, version)),
            Told::Unloaded => None,
        }
    }

    /// The sum; None where something is not known here.
    fn count(&self, history: History, most: i64, now: UnixMs) -> Option<ChatCount> {
        let heads = self.chats.iter().filter(|chat| chat.mark.level.at(now) != Level::None).map(|chat| &*chat.cached_head);
        let count = || self.count_all(now).map(|count| (count, count.changes_at));
        let count = self.counted.get_or_count(history, heads, now, count)?;
        Some(ChatCount { unread: count.unread.min(most), mentions: count.mentions.min(most), ..count })
    }

    fn count_all(&self, now: UnixMs) -> Option<ChatCount> {
        let mut count = ChatCount::default();
        for chat in &self.chats {
            chat.add_level(&mut count.versions, &mut count.changes_at, now);
            let level = chat.mark.level.at(now);
            if level == Level::None {
                continue;
            }
            let (numbers, version) = self.known(chat)?;
            chat.add_to(&mut count.versions, version);
            let unread = level.counted(numbers.unread, numbers.mentions);
            count.unread = count.unread.saturating_add(unread);
            count.mentions = count.mentions.saturating_add(numbers.mentions);
            count.groups += i64::from(unread > 0);
        }
        Some(count)
    }

    /// Whether the user is in no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chats.is_empty()
    }

    /// How much memory it takes, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let runs = self.chats.iter().map(|chat| chat.mark.extra.runs() + chat.mark.mentions.runs()).sum::<usize>();
        LIST_BYTES + self.chats.len() * size_of::<Chat>() + runs * size_of::<(i64, i64)>()
    }
}

/// The lists of the users who poll.
#[derive(Debug)]
pub struct Chats {
    heads: Arc<Heads>,
    rows: KnownRows,
    lists: Lists<UserId, Arc<ChatList>>,
}

impl Chats {
    #[must_use]
    pub fn new(db: Db, heads: Arc<Heads>) -> Self {
        let weigh = |_: &UserId, list: &Arc<ChatList>| u32::try_from(list.size_bytes()).unwrap_or(u32::MAX);
        let lists = Lists::builder().weigher(weigh).max_capacity(MAX_LIST_BYTES).time_to_idle(LIST_TTL).build();
        Self { rows: KnownRows::new(db), heads, lists }
    }

    /// A user's list as of this revision, made of `marks` where it is not here.
    pub fn list(&self, user: UserId, revision: Revision, marks: impl Iterator<Item = (GroupId, GroupMark)>) -> Arc<ChatList> {
        let as_of = (self.heads.history(), revision);
        if let Some(list) = self.lists.get(&user).filter(|list| list.as_of == as_of) {
            return list;
        }
        let mut marks: Vec<_> = marks.collect();
        marks.sort_unstable_by_key(|(group, _)| *group);
        let chat = |(group, mark)| Chat { group, mark, cached_head: self.heads.cached_head(&StreamKey::group(group)) };
        let list = ChatList { as_of, chats: marks.into_iter().map(chat).collect(), below: Mutex::default(), counted: KeptCount::default() };
        let list = Arc::new(list);
        self.lists.insert(user, Arc::clone(&list));
        list
    }

    /// The sum over a list, no more than `most`; None where SQL must be asked first.
    #[must_use]
    pub fn count_here(&self, list: &ChatList, most: i64, now: UnixMs) -> Option<ChatCount> {
        list.count(self.heads.history(), most, now)
    }

    /// The sum over a list.
    pub async fn count(&self, list: &ChatList, most: i64, now: UnixMs) -> DbResult<ChatCount> {
        for _ in 0..MAX_LOADS {
            if let Some(count) = self.count_here(list, most, now) {
                return Ok(count);
            }
            self.load(list).await?;
        }
        Err(sqlx::Error::PoolTimedOut)
    }

    /// The state of a list.
    pub async fn state(&self, list: &ChatList, which: Which, now: UnixMs) -> DbResult<ListState> {
        for _ in 0..MAX_LOADS {
            if let Some(state) = self.state_here(list, which, now) {
                return Ok(state);
            }
            self.load(list).await?;
        }
        Err(sqlx::Error::PoolTimedOut)
    }

    /// The same, if nothing of it needs to be read.
    #[must_use]
    pub fn state_here(&self, list: &ChatList, which: Which, now: UnixMs) -> Option<ListState> {
        let mut found = ListState::default();
        for chat in list.chats.iter().filter(|chat| which.is_wanted(chat.group)) {
            // Before all else: then what is shown of the head is at least as new.
            let version = chat.cached_head.loaded_version()?;
            chat.add_to(&mut found.versions, version);
            // What its members still have of it goes in the background.
            if chat.cached_head.is_deleted() {
                continue;
            }
            chat.add_level(&mut found.versions, &mut found.changes_at, now);
            found.is_ahead |= chat.is_ahead();
        }
        Some(found)
    }

    /// The groups of a list with their numbers, in the order of their ids.
    pub async fn terms<'a>(&self, list: &'a ChatList, which: Which) -> DbResult<Vec<ChatTerm<'a>>> {
        for _ in 0..MAX_LOADS {
            if let Some(terms) = self.terms_here(list, which) {
                return Ok(terms);
            }
            self.load(list).await?;
        }
        Err(sqlx::Error::PoolTimedOut)
    }

    /// The same, if nothing of it needs to be read.
    #[must_use]
    pub fn terms_here<'a>(&self, list: &'a ChatList, which: Which) -> Option<Vec<ChatTerm<'a>>> {
        let mut terms = Vec::new();
        for chat in list.chats.iter().filter(|chat| which.is_wanted(chat.group)) {
            let (numbers, _) = list.known(chat)?;
            if chat.cached_head.is_deleted() {
                continue;
            }
            let (head, sent_at) = (chat.cached_head.head(), chat.cached_head.at());
            terms.push(ChatTerm { group: chat.group, mark: &chat.mark, head, sent_at, numbers });
        }
        Some(terms)
    }

    /// Reads what is missing: heads that are not here, and recalled messages that only the rows
    /// know.
    async fn load(&self, list: &ChatList) -> DbResult<()> {
        let unloaded: Vec<_> = list.chats.iter().filter(|chat| !chat.cached_head.is_loaded()).collect();
        if !unloaded.is_empty() {
            let keys: Vec<_> = unloaded.iter().map(|chat| StreamKey::group(chat.group)).collect();
            let cached_heads: Vec<_> = unloaded.iter().map(|chat| Arc::clone(&chat.cached_head)).collect();
            self.heads.load(&keys, &cached_heads).await?;
        }
        for chat in &list.chats {
            if let Told::Below(version) = chat.told()
                && list.known(chat).is_none()
            {
                // None: it tells by itself now.
                if let Some(numbers) = self.rows.numbers(list.as_of.0, chat.group, &chat.mark, &chat.cached_head).await? {
                    list.below().insert(chat.group, (version, numbers));
                }
            }
        }
        Ok(())
    }
}
