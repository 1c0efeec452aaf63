//! A user's groups as its unread summary counts them: a cached head and a mark for each group, so
//! that counting is reading cached heads.
//!
//! The marks are part of the user's entry in the cache, so a list belongs to the user's revision:
//! one that is kept is either that of the revision or it is made again from the entry at hand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::sync::Cache as Lists;

use super::{GroupMark, lists};
use crate::base::ids::{GroupId, UserId};
use crate::cache::Revision;
use crate::db::{Db, DbResult};
use crate::engine::heads::{CachedHead, Heads, Versions};
use crate::engine::marks::{Kind, StreamKey, unread};

/// How many bytes of decoded lists a node keeps, and for how long one is kept.
const MAX_LIST_BYTES: u64 = 64 << 20;
const LIST_TTL: Duration = Duration::from_secs(300);

/// What a list takes besides its groups.
const LIST_BYTES: usize = 200;

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

/// A user's groups, as of one revision.
#[derive(Debug)]
pub struct ChatList {
    revision: Revision,
    /// In the order of their ids.
    chats: Box<[Chat]>,
    /// What is unread where only the rows tell, by group and the version of its head.
    below: Mutex<HashMap<GroupId, (i64, i64)>>,
}

/// One group with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatTerm<'a> {
    pub group: GroupId,
    /// How far the user has read it.
    pub mark: &'a GroupMark,
    /// How many messages there ever were.
    pub head: i64,
    /// How many are unread.
    pub unread: i64,
}

/// What of a user's groups is unread, those aside that are muted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChatCount {
    /// How many messages.
    pub unread: i64,
    /// In how many groups.
    pub groups: i64,
    /// The versions of their heads.
    pub versions: Versions,
}

/// What the cached heads tell of one group.
enum Told {
    /// The number and the head's version.
    Unread(i64, i64),
    /// Only the rows know, as of this version.
    Below(i64),
    /// There is no head here.
    Unloaded,
}

impl Chat {
    fn add_to(&self, versions: &mut Versions, version: i64) {
        versions.add(Kind::Group, self.group.get().cast_unsigned(), version);
    }

    fn told(&self) -> Told {
        // Before the head: then the head is at least as new.
        let version = self.cached_head.version();
        if version < 0 {
            return Told::Unloaded;
        }
        self.cached_head.unread(self.mark.read_seq, &self.mark.extra).map_or(Told::Below(version), |unread| Told::Unread(unread, version))
    }
}

impl ChatList {
    fn below(&self) -> std::sync::MutexGuard<'_, HashMap<GroupId, (i64, i64)>> {
        self.below.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is unread in one group and the version of its head, as far as it is known here.
    fn known(&self, chat: &Chat) -> Option<(i64, i64)> {
        match chat.told() {
            Told::Unread(unread, version) => Some((unread, version)),
            Told::Below(version) => self.below().get(&chat.group).filter(|(at, _)| *at == version).map(|(_, unread)| (*unread, version)),
            Told::Unloaded => None,
        }
    }

    /// The sum; None where something is not known here.
    fn count(&self, most: i64) -> Option<ChatCount> {
        let mut count = ChatCount::default();
        for chat in self.chats.iter().filter(|chat| !chat.mark.muted) {
            let (unread, version) = self.known(chat)?;
            chat.add_to(&mut count.versions, version);
            // The versions stay whole also where the count has enough; so does the number of
            // groups.
            count.unread = count.unread.saturating_add(unread).min(most);
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
        LIST_BYTES + self.chats.len() * size_of::<Chat>()
    }
}

/// The lists of the users who poll.
#[derive(Debug)]
pub struct Chats {
    db: Db,
    heads: Arc<Heads>,
    lists: Lists<UserId, Arc<ChatList>>,
}

impl Chats {
    #[must_use]
    pub fn new(db: Db, heads: Arc<Heads>) -> Self {
        let weigh = |_: &UserId, list: &Arc<ChatList>| u32::try_from(list.size_bytes()).unwrap_or(u32::MAX);
        let lists = Lists::builder().weigher(weigh).max_capacity(MAX_LIST_BYTES).time_to_idle(LIST_TTL).build();
        Self { db, heads, lists }
    }

    /// A user's list as of this revision, made of `marks` where it is not here.
    pub fn list(&self, user: UserId, revision: Revision, marks: impl Iterator<Item = (GroupId, GroupMark)>) -> Arc<ChatList> {
        if let Some(list) = self.lists.get(&user).filter(|list| list.revision == revision) {
            return list;
        }
        let mut marks: Vec<_> = marks.collect();
        marks.sort_unstable_by_key(|(group, _)| *group);
        let chat = |(group, mark)| Chat { group, mark, cached_head: self.heads.cached_head(&StreamKey::group(group)) };
        let list = ChatList { revision, chats: marks.into_iter().map(chat).collect(), below: Mutex::default() };
        let list = Arc::new(list);
        self.lists.insert(user, Arc::clone(&list));
        list
    }

    /// The sum over a list; None where SQL must be asked first. Above `most` it is not counted on.
    #[must_use]
    pub fn count_here(&self, list: &ChatList, most: i64) -> Option<ChatCount> {
        list.count(most)
    }

    /// The sum over a list.
    pub async fn count(&self, list: &ChatList, most: i64) -> DbResult<ChatCount> {
        for _ in 0..MAX_LOADS {
            if let Some(count) = list.count(most) {
                return Ok(count);
            }
            self.load(list).await?;
        }
        Err(sqlx::Error::PoolTimedOut)
    }

    /// The groups of a list with their numbers, in the order of their ids, with the versions of all
    /// their heads.
    pub async fn terms<'a>(&self, list: &'a ChatList) -> DbResult<(Vec<ChatTerm<'a>>, Versions)> {
        for _ in 0..MAX_LOADS {
            if let Some(terms) = self.terms_here(list) {
                return Ok(terms);
            }
            self.load(list).await?;
        }
        Err(sqlx::Error::PoolTimedOut)
    }

    /// The same, if nothing of it needs to be read.
    #[must_use]
    pub fn terms_here<'a>(&self, list: &'a ChatList) -> Option<(Vec<ChatTerm<'a>>, Versions)> {
        let mut versions = Versions::default();
        let term = |chat: &'a Chat| {
            let (unread, version) = list.known(chat)?;
            chat.add_to(&mut versions, version);
            Some(ChatTerm { group: chat.group, mark: &chat.mark, head: chat.cached_head.head(), unread })
        };
        let terms = list.chats.iter().map(term).collect::<Option<Vec<_>>>()?;
        Some((terms, versions))
    }

    /// What is unread in one group after `read_seq`, and its head, as the rows have it now.
    pub async fn count_rows(&self, group: GroupId, mark: &GroupMark, head: i64) -> DbResult<i64> {
        let gone = lists::gone(&self.db, group, mark.read_seq, head).await?;
        Ok(unread(head, mark.read_seq, &gone, &mark.extra))
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
                let unread = self.count_rows(chat.group, &chat.mark, chat.cached_head.head()).await?;
                list.below().insert(chat.group, (version, unread));
            }
        }
        Ok(())
    }
}
