//! The feed in the unread summary.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::{FeedCount, Feeds, Term};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::engine::entries::UserRows;
use crate::engine::heads::{BroadcastState, Versions};
use crate::engine::marks::parts;
use crate::engine::marks::users::NOT_ENROLLED;
use crate::features::summary_part::{Shared, SummaryFacts, SummaryPart, UnreadOut};

/// The feed.
#[derive(Debug)]
pub struct FeedPart {
    /// The lists behind the feeds.
    pub feeds: Arc<Feeds>,
    /// By which mutes end.
    pub clock: Clock,
}

/// A creator: unread = the posts after the mark, minus deleted ones. It does not count while the user
/// mutes the creator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CreatorTermsOut {
    /// The user.
    user_id: UserId,
    /// The number of posts ever made.
    head: i64,
    /// The position up to which the user has seen posts: at the last reset of the feed, or at the
    /// follow.
    mark: i64,
    /// The number of deleted posts after the mark.
    gone: i64,
    /// The unread count.
    unread: i64,
    /// True while the user mutes the creator; omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    muted: bool,
}

impl From<&Term> for CreatorTermsOut {
    fn from(term: &Term) -> Self {
        let gone = (term.head - term.mark - term.unread).max(0);
        Self { user_id: term.creator, head: term.head, mark: term.mark, gone, unread: term.unread, muted: term.muted }
    }
}

/// The feed: the sum over the creators whom the user does not mute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedTermsOut {
    /// The sum.
    unread: i64,
    /// The revision of the last change of the list of creators or of a mark in it.
    changed_at: i64,
    /// The creators that the user follows.
    creators: Vec<CreatorTermsOut>,
}

/// Which list the user's state names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedVersion {
    /// The revision at which the list changed last.
    changed_at: Revision,
    /// The same where the list counts.
    counted: Option<Revision>,
}

/// The version of the user's list; None where nothing counts: nobody is followed, or the user is
/// not enrolled.
#[must_use]
pub fn list_version(facts: SummaryFacts<'_>) -> Option<i64> {
    Some(parts::feed(&facts.entry.parts)).filter(|version| *version > 0 && facts.enrolled() > NOT_ENROLLED)
}

impl SummaryPart for FeedPart {
    const SHARED: Shared = Shared::Heads;
    type Count = FeedCount;
    type Decoded = FeedVersion;
    type Out<'a> = UnreadOut;
    type Terms = FeedTermsOut;

    fn decode(&self, facts: SummaryFacts<'_>) -> FeedVersion {
        FeedVersion { changed_at: parts::feed(&facts.entry.parts), counted: list_version(facts) }
    }

    async fn count(&self, facts: SummaryFacts<'_>, version: &FeedVersion) -> Option<FeedCount> {
        let Some(version) = version.counted else { return Some(FeedCount::default()) };
        // Boxed, so that the polls of users who follow nobody need not carry its room.
        match Box::pin(self.feeds.count(facts.user, version, facts.cap.enough(), facts.now)).await {
            Ok(count) => Some(count),
            Err(error) => {
                tracing::debug!(?error, "cannot count a feed");
                None
            }
        }
    }

    fn versions(count: &FeedCount) -> Versions {
        count.versions
    }

    fn changes_at(count: &FeedCount) -> Option<UnixMs> {
        count.changes_at
    }

    fn needs(version: &FeedVersion, count: &FeedCount) -> Option<Revision> {
        // A follow or an unfollow came between the two readings.
        Some(count.list_changed_at).filter(|changed_at| *changed_at > version.changed_at)
    }

    fn show(facts: SummaryFacts<'_>, count: &FeedCount) -> UnreadOut {
        facts.cap.unread(count.unread)
    }

    async fn explain(&self, rows: &UserRows, _broadcast_state: &BroadcastState) -> Result<FeedTermsOut> {
        let changed_at = rows.row.feed;
        if changed_at == 0 || !rows.row.is_enrolled() {
            return Ok(FeedTermsOut { unread: 0, changed_at, creators: Vec::new() });
        }
        let terms = self.feeds.terms(rows.user, changed_at, self.clock.now()).await?;
        let unread = terms.iter().filter(|term| !term.muted).map(|term| term.unread).fold(0, i64::saturating_add);
        Ok(FeedTermsOut { unread, changed_at, creators: terms.iter().map(CreatorTermsOut::from).collect() })
    }
}
