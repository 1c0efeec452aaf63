//! A sheet put together: the user's own state and what users share, with the version that its entity tag is made from.

use std::sync::Arc;

use futures_util::StreamExt as _;

use super::{Sheets, Wanted};
use crate::base::error::Error;
use crate::base::ids::UserId;
use crate::cache::{Entry, Revision};
use crate::engine::entries::State;
use crate::engine::heads::{Board, Versions};
use crate::engine::marks::parts::{self, counters, enrolled, numbers};
use crate::engine::marks::store::NOT_ENROLLED;
use crate::features::feed::FeedCount;
use crate::features::groups::chats::ChatCount;
use crate::features::views::{ViewCount, ViewKey};
use crate::http::polling::{Seen, Version};

/// How often the user's own state is read again because the list of the feed is newer, before the answer is degraded.
pub(super) const MAX_READS_AGAIN: u32 = 3;

/// How many sheets of a query are put together at once.
const SHEETS_AT_ONCE: usize = 16;

/// A user's sheet as read.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// Whose it is.
    pub user: UserId,
    /// The user's own state; None where it is not known.
    pub entry: Option<Arc<Entry>>,
    /// Whether that is only what was last known.
    pub own_is_stale: bool,
    /// What everybody shares.
    pub board: Arc<Board>,
    /// Whether that is only what was last known.
    pub shared_is_stale: bool,
    /// The feed, where it was wanted; None where it is not known.
    pub feed: Option<FeedCount>,
    /// The groups, where they were wanted; None where they are not known.
    pub chats: Option<ChatCount>,
    /// The views that were asked for, in that order; None where they are not known.
    pub views: Option<Vec<ViewCount>>,
    wanted: Wanted,
}

impl Sheet {
    /// The user's revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.entry.as_ref().map_or(0, |entry| entry.revision)
    }

    /// Whether any part of it is not as new as it is promised to be.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.is_stale() || self.versions().is_none()
    }

    fn is_stale(&self) -> bool {
        self.entry.is_none() || self.own_is_stale || (self.shares() && self.shared_is_stale)
    }

    /// Whether anything that users share was asked for.
    fn shares(&self) -> bool {
        let wanted = self.wanted;
        wanted.broadcasts || wanted.dots || wanted.feed || wanted.chats || self.shows_views()
    }

    /// Whether any views were asked for.
    pub(super) fn shows_views(&self) -> bool {
        self.views.as_ref().is_none_or(|views| !views.is_empty())
    }

    /// The counters: name, unread, head.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        self.entry.iter().flat_map(|entry| counters(&entry.parts))
    }

    /// The channels: name, unread, head.
    pub(super) fn broadcasts(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        let since = self.enrolled();
        self.entry.iter().flat_map(move |entry| {
            self.board.channels.iter().map(move |(name, channel)| {
                let mark = parts::mark(&entry.parts, "b:", name);
                (name.as_str(), channel.unread(since, mark), channel.head)
            })
        })
    }

    /// The dots: name, whether it is lit, head.
    pub(super) fn dots(&self) -> impl Iterator<Item = (&str, bool, i64)> {
        let since = self.enrolled();
        self.entry.iter().flat_map(move |entry| {
            self.board.dots.iter().map(move |(name, dot)| {
                let mark = parts::mark(&entry.parts, "d:", name);
                (name.as_str(), dot.is_lit(since, mark), dot.head)
            })
        })
    }

    /// The types of notifications: name, unread.
    pub(super) fn notifications(&self) -> impl Iterator<Item = (&str, i64)> {
        self.entry.iter().flat_map(|entry| numbers(&entry.parts, "m:")).map(|(name, unread)| (name, unread.max(0)))
    }

    /// Above which number nothing is shown.
    pub(super) fn cap(&self) -> Option<i64> {
        self.wanted.cap
    }

    /// Direct messages: unread, from how many peers.
    pub(super) fn directs(&self) -> (i64, i64) {
        self.entry.as_ref().map_or((0, 0), |entry| parts::directs(&entry.parts))
    }

    fn enrolled(&self) -> i64 {
        self.entry.as_ref().map_or(NOT_ENROLLED, |entry| enrolled(&entry.parts))
    }

    /// What an app icon shows. Each term is at least 0 by itself, so that none can eat another.
    #[must_use]
    pub(super) fn total(&self) -> Option<i64> {
        self.entry.as_ref()?;
        let chats = self.chats?.unread.saturating_add(self.directs().0);
        let own = self.counters().map(|(_, unread, _)| unread).chain(self.notifications().map(|(_, unread)| unread));
        Some(own.chain(self.broadcasts().map(|(_, unread, _)| unread)).fold(chats, i64::saturating_add))
    }

    /// The version that the tag is made from; None for a degraded answer, which has no tag.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.versions().filter(|_| !self.is_stale()).map(|shared| Version::new(self.revision(), shared))
    }

    /// The versions of all shared heads in it; None where a part that was wanted is not known.
    #[must_use]
    pub fn versions(&self) -> Option<Versions> {
        let wanted = self.wanted;
        let mut versions = Versions::default();
        if wanted.broadcasts || wanted.dots {
            self.board.add_to(&mut versions);
        }
        if wanted.feed {
            versions = versions.and(self.feed?.versions);
        }
        if wanted.chats {
            versions = versions.and(self.chats?.versions);
        }
        self.views.as_ref()?.iter().for_each(|view| view.add_to(&mut versions));
        Some(versions)
    }

    /// Whether the feed was counted from a newer list than the user's state names: a follow or an unfollow came between the
    /// two readings. Shown together, they would be a revision with the creators of another one.
    pub(super) fn feed_is_ahead(&self) -> bool {
        let named = self.entry.as_ref().map_or(0, |entry| parts::feed(&entry.parts));
        !self.own_is_stale && self.feed.is_some_and(|feed| feed.list_changed_at > named)
    }

    /// Whether the client has an answer with other shared heads, so that this node may be behind.
    fn may_be_behind(&self, seen: Seen) -> bool {
        self.shares() && !self.is_stale() && self.versions().is_some_and(|versions| seen.has_other(versions))
    }
}

/// The user's own state, and whether it is only what was last known.
fn own(state: State) -> (Option<Arc<Entry>>, bool) {
    match state {
        State::Current(entry) => (Some(entry), false),
        State::LastKnown(entry) => (Some(entry), true),
        State::Unknown => (None, false),
    }
}

impl Sheets {
    /// A user's sheet, as far as it is wanted, and not older than what the client has seen.
    pub async fn sheet(&self, user: UserId, wanted: Wanted, seen: Seen) -> Sheet {
        self.sheet_with(user, wanted, &[], seen).await
    }

    /// The same with these views.
    pub async fn sheet_with(&self, user: UserId, wanted: Wanted, views: &[ViewKey], seen: Seen) -> Sheet {
        let state = self.entries.read(user, seen.revision()).await;
        let sheet = self.whole(user, state, wanted, views).await;
        // Boxed, so that the many polls that need it not need not carry its room.
        if sheet.may_be_behind(seen) { Box::pin(self.caught_up(sheet, views)).await } else { sheet }
    }

    /// Many users' sheets, all current, in the order asked (without repeats).
    ///
    /// # Errors
    /// 503 where not all can be had.
    pub async fn sheets(&self, users: &[UserId], wanted: Wanted) -> Result<Vec<Sheet>, Error> {
        let mut sheets = Vec::with_capacity(users.len());
        let entries = self.entries.read_many(users).await?.into_iter().zip(users.iter().copied());
        let whole: Vec<_> = entries.map(|(entry, user)| self.whole(user, State::Current(entry), wanted, &[])).collect();
        let mut whole = futures_util::stream::iter(whole).buffered(SHEETS_AT_ONCE);
        while let Some(sheet) = whole.next().await {
            if sheet.is_degraded() {
                return Err(Error::store_unavailable());
            }
            sheets.push(sheet);
        }
        Ok(sheets)
    }

    async fn whole(&self, user: UserId, state: State, wanted: Wanted, views: &[ViewKey]) -> Sheet {
        let (entry, own_is_stale) = own(state);
        let shared_is_stale = !self.heads.is_fresh() && !Box::pin(self.entries.catch_up()).await;
        let board = self.heads.board();
        let sheet = Sheet { user, entry, own_is_stale, board, shared_is_stale, feed: None, chats: None, views: Some(Vec::new()), wanted };
        self.counted(sheet, views).await
    }

    /// The sheet with all that is counted from heads in memory.
    async fn counted(&self, mut sheet: Sheet, views: &[ViewKey]) -> Sheet {
        if sheet.wanted.feed {
            sheet.feed = self.count_feed(&sheet).await;
            if sheet.feed_is_ahead() {
                Box::pin(self.count_feed_again(&mut sheet)).await;
            }
        }
        if sheet.wanted.chats {
            sheet.chats = self.count_chats(&sheet).await;
        }
        if !views.is_empty() {
            sheet.views = Box::pin(self.count_views(&sheet, views)).await;
        }
        sheet
    }

    /// From what is here, or else from SQL, in a turn; None where that cannot be asked now.
    async fn count_views(&self, sheet: &Sheet, views: &[ViewKey]) -> Option<Vec<ViewCount>> {
        let revision = sheet.entry.as_ref()?.revision;
        self.views.count_in_turn(&self.entries, sheet.user, revision, views).await
    }

    /// What of the feed is unread. None where a store is away; of a user who was not seen yet, nothing counts.
    async fn count_feed(&self, sheet: &Sheet) -> Option<FeedCount> {
        let entry = sheet.entry.as_ref()?;
        let version = parts::feed(&entry.parts);
        if version == 0 || enrolled(&entry.parts) <= NOT_ENROLLED {
            return Some(FeedCount::default());
        }
        match self.feeds.count(sheet.user, version, sheet.wanted.cap).await {
            Ok(count) => Some(count),
            Err(error) => {
                tracing::debug!(?error, "cannot count a feed");
                None
            }
        }
    }

    /// Counts the feed of a newer state of the user; unknown where the list is always newer still.
    async fn count_feed_again(&self, sheet: &mut Sheet) {
        for _ in 0..MAX_READS_AGAIN {
            self.read_again(sheet).await;
            sheet.feed = self.count_feed(sheet).await;
            if !sheet.feed_is_ahead() {
                return;
            }
        }
        sheet.feed = None;
    }

    /// Reads the user's own state again, at least as new as the list that was counted.
    pub(super) async fn read_again(&self, sheet: &mut Sheet) {
        let at_least = sheet.feed.map_or(0, |feed| feed.list_changed_at);
        (sheet.entry, sheet.own_is_stale) = own(self.entries.read(sheet.user, at_least).await);
    }

    /// The same sheet with what users share as a look finds it that begins now; degraded where none comes through in time.
    async fn caught_up(&self, sheet: Sheet, views: &[ViewKey]) -> Sheet {
        if !self.entries.catch_up().await {
            return Sheet { shared_is_stale: true, ..sheet };
        }
        self.counted(Sheet { board: self.heads.board(), ..sheet }, views).await
    }
}
