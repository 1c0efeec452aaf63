//! Reads unread summaries.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;

use super::kept::Kept;
use super::parts::{Counts, Decoded, ExplainOut, Parts, Wanted};
use super::unread::UnreadSummary;
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Error, Result};
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::engine::entries::{Entries, State, alive};
use crate::engine::erased;
use crate::engine::heads::Heads;
use crate::engine::lanes::after_commit;
use crate::features::feed::summary::list_version;
use crate::features::feed::{FeedCount, Horizon};
use crate::features::views::{self, ViewCount, ViewKey};
use crate::http::polling::{Seen, json};

/// How often the user's own state is read again because something was counted from newer rows,
/// before the answer is degraded.
const MAX_READS_AGAIN: u32 = 3;

/// How many summaries of a query are put together at once.
const SUMMARIES_AT_ONCE: usize = 16;

/// The front of the read path.
#[derive(Debug)]
pub struct Summaries {
    pub entries: Arc<Entries>,
    pub heads: Arc<Heads>,
    /// What counts each kind.
    pub parts: Parts,
    pub views: Arc<views::Reader>,
    pub clock: Clock,
}

impl Summaries {
    /// A user's summary, as far as it is wanted, and not older than what the client has seen.
    pub async fn read(&self, user: UserId, wanted: Wanted, seen: Seen) -> UnreadSummary {
        self.read_with(user, wanted, &[], seen).await
    }

    /// The same with these views.
    pub async fn read_with(&self, user: UserId, wanted: Wanted, views: &[ViewKey], seen: Seen) -> UnreadSummary {
        let state = self.entries.read(user, seen.revision()).await;
        let mut summary = self.put_together(user, state, wanted, views, self.clock.now()).await;
        if self.heads.has_peers() && summary.may_be_behind(seen) {
            // Boxed, so that the many polls that need it not need not carry its room.
            Box::pin(self.catch_up(&mut summary, views)).await;
        }
        summary
    }

    /// The answer to a write of the user that raised the revision to this one.
    ///
    /// # Errors
    /// 503 where what is known of the user is from before the write: the write is done.
    pub async fn after_write(&self, user: UserId, written: Revision) -> Result<Response> {
        let summary = self.read(user, Wanted::ALL, Seen::revision_alone(written)).await;
        if summary.entry.as_ref().is_none_or(|entry| entry.revision < written) {
            return Err(after_commit(Error::store_unavailable()));
        }
        Ok(Json(summary.out()).into_response())
    }

    /// The bodies of many users' summaries, all current, in the order asked (without repeats).
    ///
    /// # Errors
    /// 503 where not all can be had, 410 where one was erased.
    pub async fn bodies(&self, users: &[UserId], wanted: Wanted) -> Result<Vec<Bytes>> {
        let mut bodies = Vec::with_capacity(users.len());
        let entries = self.entries.read_many(users).await?;
        let erased = entries.iter().enumerate().filter(|(_, entry)| alive(&entry.parts).is_err());
        let erased: Vec<_> = erased.map(|(at, _)| format!("/user_ids/{at}")).collect();
        if !erased.is_empty() {
            return Err(erased::problem(erased.iter().map(String::as_str)).into());
        }
        let entries = entries.into_iter().zip(users.iter().copied());
        let whole = |(entry, user)| self.put_together(user, State::Current(entry), wanted, &[], self.clock.now());
        let whole: Vec<_> = entries.map(whole).collect();
        let mut whole = futures_util::stream::iter(whole).buffered(SUMMARIES_AT_ONCE);
        while let Some(summary) = whole.next().await {
            if summary.is_degraded() {
                return Err(Error::store_unavailable());
            }
            // It may be of a newer state than was read at first.
            if summary.alive().is_err() {
                return Err(erased::problem([&*format!("/user_ids/{}", bodies.len())]).into());
            }
            bodies.push(self.body(&summary)?);
        }
        Ok(bodies)
    }

    /// The summary of a state that was read, as it is at this time.
    pub async fn put_together(&self, user: UserId, state: State, wanted: Wanted, views: &[ViewKey], now: UnixMs) -> UnreadSummary {
        let shared_is_stale = !self.heads.is_fresh() && !Box::pin(self.entries.catch_up()).await;
        let mut summary = UnreadSummary {
            user,
            entry: None,
            own_is_stale: false,
            was_shown: false,
            broadcast_state: self.heads.broadcast_state_at(now),
            shared_is_stale,
            decoded: Decoded::default(),
            counts: Counts::default(),
            views: Some(Vec::new()),
            wanted,
            now,
        };
        self.set_own(&mut summary, state);
        self.count(&mut summary, views).await;
        summary
    }

    /// Counts from heads in memory.
    async fn count(&self, summary: &mut UnreadSummary, views: &[ViewKey]) {
        summary.counts = self.count_kinds(summary).await;
        if let Some(needed) = summary.needs() {
            Box::pin(self.count_again(summary, needed)).await;
        }
        if !views.is_empty() {
            summary.views = Box::pin(self.count_views(summary, views)).await;
        }
    }

    async fn count_kinds(&self, summary: &UnreadSummary) -> Counts {
        match summary.facts() {
            Some(facts) => self.parts.count(summary.wanted, facts, &summary.decoded).await,
            None => Counts::default(),
        }
    }

    /// Takes the user's own state as it was read, and reads of it what the kinds need.
    fn set_own(&self, summary: &mut UnreadSummary, state: State) {
        summary.set_own(state);
        let kept = summary.kept();
        summary.was_shown = kept.is_some();
        let mut decoded = kept.map(|kept| kept.decoded.clone()).unwrap_or_default();
        if let Some(facts) = summary.facts() {
            self.parts.decode(summary.wanted, facts, &mut decoded);
        }
        summary.decoded = decoded;
    }

    /// The body of a summary: one that was shown before, where that is the same.
    ///
    /// # Errors
    /// A fault, should it have no JSON form, which is a bug.
    pub fn body(&self, summary: &UnreadSummary) -> Result<Bytes> {
        let (Some(entry), Some(from)) = (&summary.entry, summary.made_from()) else { return json(&summary.out()) };
        let kept = summary.kept();
        if let Some(body) = kept.as_ref().and_then(|kept| kept.body(from)) {
            return Ok(body);
        }
        let body = json(&summary.out())?;
        self.entries.keep(summary.user, entry, Kept::new(summary.decoded.clone(), from, body.clone(), kept.as_deref()));
        Ok(body)
    }

    /// Counts all kinds of a newer state of the user. A kind whose rows are always newer still is
    /// not known.
    async fn count_again(&self, summary: &mut UnreadSummary, mut needed: i64) {
        for _ in 0..MAX_READS_AGAIN {
            let state = self.entries.read(summary.user, needed).await;
            self.set_own(summary, state);
            summary.counts = self.count_kinds(summary).await;
            match summary.needs() {
                Some(newer) => needed = newer,
                None => return,
            }
        }
        let counts = std::mem::take(&mut summary.counts);
        summary.counts = counts.without_newer(&summary.decoded);
    }

    /// From what is here, or else from SQL, in a turn; None where that cannot be asked now.
    async fn count_views(&self, summary: &UnreadSummary, views: &[ViewKey]) -> Option<Vec<ViewCount>> {
        let revision = summary.entry.as_ref()?.revision;
        self.views.count_in_turn(&self.entries, summary.user, revision, views).await
    }

    /// Shows what users share as a look finds it that begins now; degraded where none comes through
    /// in time.
    async fn catch_up(&self, summary: &mut UnreadSummary, views: &[ViewKey]) {
        if !self.entries.catch_up().await {
            summary.shared_is_stale = true;
            return;
        }
        summary.broadcast_state = self.heads.broadcast_state();
        self.count(summary, views).await;
    }

    /// Every number of a summary as its terms.
    ///
    /// # Errors
    /// 503 where a store is away: nothing is guessed here.
    pub async fn explain(&self, user: UserId) -> Result<ExplainOut> {
        self.heads.catch_up().await?;
        let read = self.entries.in_turn(self.entries.rows(std::slice::from_ref(&user))).await?;
        let rows = read.into_iter().next().ok_or_else(Error::store_unavailable)?;
        self.parts.explain(&rows, &self.heads.broadcast_state()).await
    }

    /// Counts the feed of a summary again, so that it is known which posts were counted.
    pub async fn load_feed(&self, summary: &mut UnreadSummary, now: UnixMs) -> Result<Horizon> {
        for _ in 0..MAX_READS_AGAIN {
            let (count, horizon) = self.count_up_to_horizon(summary, now).await?;
            summary.counts.feed = Some(count);
            let Some(needed) = summary.needs() else { return Ok(horizon) };
            let state = self.entries.read(summary.user, needed).await;
            self.set_own(summary, state);
        }
        Err(Error::store_unavailable())
    }

    async fn count_up_to_horizon(&self, summary: &UnreadSummary, now: UnixMs) -> Result<(FeedCount, Horizon)> {
        let facts = summary.facts().ok_or_else(Error::store_unavailable)?;
        match list_version(facts) {
            Some(version) => self.parts.feed.feeds.count_up_to_horizon(summary.user, version, now).await,
            // Nothing is counted.
            None => Ok((FeedCount::default(), Horizon { at: now, ..Horizon::default() })),
        }
    }
}
