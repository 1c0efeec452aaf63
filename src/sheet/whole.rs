//! A sheet put together: the user's own state and what users share, with the version that its entity tag is made from.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use super::parts::{self, counters, enrolled, numbers};
use super::{MAX_SQL_READ, Sheets, State, Wanted};
use crate::cache::{Entry, Revision};
use crate::error::Error;
use crate::groups::chats::ChatCount;
use crate::guard::Trust;
use crate::heads::Board;
use crate::ids::{Name, UserId};
use crate::marks::store::NOT_ENROLLED;
use crate::poll::{Print, Version};
use crate::views::{ViewCount, ViewKey};

/// How long a poll waits for what users share, where that was not heard of for too long.
const MAX_CATCH_UP: Duration = Duration::from_millis(300);

/// How many sheets of a query are put together at once.
const SHEETS_AT_ONCE: usize = 16;

/// How many unread posts the feed has, and what they were counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedCount {
    /// Posts that came since the user last looked; where the sheet is capped, no more than one above the cap.
    pub unread: i64,
    /// How many the user follows.
    pub creators: i64,
    /// The sum of the versions of their heads.
    pub version: i64,
}

/// How far a user has read a channel: a notice is read by either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadUpTo {
    /// Notices up to this seq are read.
    pub mark: i64,
    /// Notices up to this head of the board came before the user.
    pub enrolled: i64,
}

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
        let wanted = self.wanted;
        let shares = wanted.broadcasts || wanted.dots || wanted.feed || wanted.chats || self.shows_views();
        let missing = (wanted.feed && self.feed.is_none()) || (wanted.chats && self.chats.is_none());
        let unknown = self.entry.is_none() || missing || self.views.is_none();
        unknown || self.own_is_stale || (shares && self.shared_is_stale)
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

    /// One channel: unread, head; None where there is no such channel, or nothing is known of the user.
    #[must_use]
    pub fn channel(&self, name: &str) -> Option<(i64, i64)> {
        self.broadcasts().find(|(channel, ..)| *channel == name).map(|(_, unread, head)| (unread, head))
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

    /// The types of messages: name, unread.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&str, i64)> {
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
        let own = self.counters().map(|(_, unread, _)| unread).chain(self.messages().map(|(_, unread)| unread));
        Some(own.chain(self.broadcasts().map(|(_, unread, _)| unread)).fold(chats, i64::saturating_add))
    }

    /// The version that the tag is made from; None for a degraded answer, which has no tag.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        if self.is_degraded() {
            return None;
        }
        let wanted = self.wanted;
        let board = if wanted.broadcasts || wanted.dots { self.board.head } else { 0 };
        let feed = self.feed.filter(|_| wanted.feed).map_or(0, |feed| feed.version);
        let chats = self.chats.filter(|_| wanted.chats).map_or(0, |chats| chats.version);
        Some(Version {
            revision: self.revision(),
            shared: [board, feed, chats, self.views_version()].into_iter().fold(0, i64::saturating_add),
            print: self.print(),
        })
    }

    fn views_version(&self) -> i64 {
        self.views.iter().flatten().map(|view| view.version).fold(0, i64::saturating_add)
    }

    /// A print of the shared numbers that are shown: two nodes that heard of different changes, or of as many, may show different numbers at one sum of versions,
    /// and what expires changes numbers without a version. 0 where nothing is shared.
    fn print(&self) -> u64 {
        let unread = self.feed.filter(|_| self.wanted.feed).map_or(0, |feed| feed.unread);
        let chats = self.chats.filter(|_| self.wanted.chats).unwrap_or_default();
        if self.board.head == 0 && unread == 0 && chats.unread == 0 && !self.shows_views() {
            return 0;
        }
        let mut print = Print::default();
        print.add(unread);
        // Nothing of them is written where there is nothing, so that the tags of those who are in no group stay as they were.
        if chats.unread > 0 {
            [chats.unread, chats.groups].into_iter().for_each(|number| print.add(number));
        }
        if self.wanted.broadcasts {
            self.broadcasts().for_each(|(_, unread, head)| [unread, head].into_iter().for_each(|number| print.add(number)));
        }
        if self.wanted.dots {
            self.dots().for_each(|(_, lit, head)| [i64::from(lit), head].into_iter().for_each(|number| print.add(number)));
        }
        for view in self.views.iter().flatten() {
            [view.unread, view.head, view.at.map_or(0, |at| at.0)].into_iter().for_each(|number| print.add(number));
        }
        print.finish()
    }
}

impl Sheets {
    /// A user's sheet, as far as it is wanted, and not older than what the client has seen.
    pub async fn sheet(&self, user: UserId, wanted: Wanted, seen: Version) -> Sheet {
        self.sheet_with(user, wanted, &[], seen).await
    }

    /// The same with these views.
    pub async fn sheet_with(&self, user: UserId, wanted: Wanted, views: &[ViewKey], seen: Version) -> Sheet {
        let state = self.read(user, seen.revision).await;
        let sheet = self.whole(user, state, wanted, views).await;
        match sheet.version() {
            Some(version) if version.is_behind_in_shared(seen) => Box::pin(self.caught_up(sheet, views)).await,
            _ => sheet,
        }
    }

    /// Many users' sheets, all current, in the order asked (without repeats).
    ///
    /// # Errors
    /// 503 where not all can be had.
    pub async fn sheets(&self, users: &[UserId], wanted: Wanted) -> Result<Vec<Sheet>, Error> {
        let mut sheets = Vec::with_capacity(users.len());
        let entries = self.read_many(users).await?.into_iter().zip(users.iter().copied());
        let whole: Vec<_> = entries.map(|(entry, user)| self.whole(user, State::Current(entry), wanted, &[])).collect();
        let mut whole = futures_util::stream::iter(whole).buffered(SHEETS_AT_ONCE);
        while let Some(sheet) = whole.next().await {
            if sheet.is_degraded() {
                return Err(super::store_away());
            }
            sheets.push(sheet);
        }
        Ok(sheets)
    }

    /// How far a user has read a channel.
    ///
    /// # Errors
    /// 503 where that cannot be had.
    pub async fn read_up_to(&self, user: UserId, channel: &Name) -> Result<ReadUpTo, Error> {
        let entries = self.read_many(&[user]).await?;
        let entry = entries.first().ok_or_else(super::store_away)?;
        let mark = parts::mark(&entry.parts, "b:", channel.as_str());
        // Everything that is there is old to somebody who was not seen yet.
        let enrolled = Some(enrolled(&entry.parts)).filter(|at| *at > NOT_ENROLLED).unwrap_or(i64::MAX);
        Ok(ReadUpTo { mark, enrolled })
    }

    async fn whole(&self, user: UserId, state: State, wanted: Wanted, views: &[ViewKey]) -> Sheet {
        let (entry, own_is_stale) = match state {
            State::Current(entry) => (Some(entry), false),
            State::LastKnown(entry) => (Some(entry), true),
            State::Unknown => (None, false),
        };
        let shared_is_stale = !self.heads.is_fresh() && !Box::pin(self.catch_up()).await;
        let board = self.heads.board();
        let mut sheet =
            Sheet { user, entry, own_is_stale, board, shared_is_stale, feed: None, chats: None, views: Some(Vec::new()), wanted };
        if wanted.feed {
            sheet.feed = self.count_feed(&sheet).await;
        }
        if wanted.chats {
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
        if let Some(counts) = self.views.count_here(sheet.user, revision, views) {
            return Some(counts);
        }
        if self.guard.trust() == Trust::Unsure {
            return None;
        }
        let _turn = self.turns.take().await.ok()?;
        let counted = tokio::time::timeout(MAX_SQL_READ, self.views.count(sheet.user, revision, views)).await;
        match counted.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
            Ok(counts) => Some(counts),
            Err(error) => {
                // They are shown as missing, and read by the next poll.
                tracing::debug!(%error, "cannot count views");
                None
            }
        }
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

    /// The same sheet with what users share as it is in SQL now.
    async fn caught_up(&self, sheet: Sheet, views: &[ViewKey]) -> Sheet {
        if !self.catch_up().await {
            return sheet;
        }
        let mut sheet = Sheet { board: self.heads.board(), ..sheet };
        if sheet.wanted.feed {
            sheet.feed = self.count_feed(&sheet).await;
        }
        if sheet.wanted.chats {
            sheet.chats = self.count_chats(&sheet).await;
        }
        if !views.is_empty() {
            sheet.views = self.count_views(&sheet, views).await;
        }
        sheet
    }

    /// Whether what users share is as new as SQL has it. Not tried where the database did not answer of late.
    pub(super) async fn catch_up(&self) -> bool {
        if self.guard.trust() == Trust::Unsure {
            return false;
        }
        match tokio::time::timeout(MAX_CATCH_UP, self.heads.catch_up()).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot ask what others changed");
                false
            }
            Err(_) => false,
        }
    }
}
