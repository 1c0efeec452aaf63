//! Every number of a sheet as its terms, from the rows themselves: enough to settle a user's complaint.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Sheets;
use super::http::SummaryContext;
use crate::base::clock::UnixMs;
use crate::base::error::{Error, Result};
use crate::base::ids::{GroupId, UserId};
use crate::engine::heads::Board;
use crate::engine::marks::{Kind, Mark};
use crate::features::inbox;
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::problem::ProblemOut;
use crate::http::served::Served;
use crate::summary::snapshot::{Snapshot, read_users};

/// The route.
pub(super) fn routes() -> OpenApiRouter<Served<SummaryContext>> {
    OpenApiRouter::new().routes(routes!(explain_badges))
}

/// A counter: unread = head − mark − retracted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CounterTermsOut {
    /// The total number, including read and removed ones.
    head: i64,
    /// The position up to which the user has read.
    mark: i64,
    /// The retracted positions above the mark, as runs.
    #[schema(example = "117 119-121")]
    retracted: String,
    /// The unread count.
    unread: i64,
}

/// A channel: unread = the broadcasts after both the mark and the enrolment, minus withdrawn and
/// expired ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChannelTermsOut {
    /// The number of broadcasts ever sent in the channel.
    head: i64,
    /// The position up to which the user has read.
    mark: i64,
    /// The last broadcast before the user was enrolled.
    enrolled_at: i64,
    /// The number of withdrawn or expired broadcasts after both.
    gone: i64,
    /// The unread count.
    unread: i64,
}

/// A dot: lit if it was lit after both the mark and the enrolment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DotTermsOut {
    /// How often the dot was lit.
    head: i64,
    /// The head up to which the user has cleared the dot.
    mark: i64,
    /// When the dot was last lit.
    lit_at: UnixMs,
    /// Whether it was last lit after the user was enrolled.
    after_enrolment: bool,
    /// Whether it is lit for the user.
    lit: bool,
}

/// A creator: unread = the posts after the mark, minus deleted ones.
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
}

/// The feed: the sum over the creators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedTermsOut {
    /// The sum.
    unread: i64,
    /// The revision of the last change of the list of creators or of a mark in it.
    changed_at: i64,
    /// The creators that the user follows.
    creators: Vec<CreatorTermsOut>,
}

/// A group: unread = head − read_seq − messages above it that were recalled or read out of order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupTermsOut {
    /// The group.
    group_id: GroupId,
    /// The number of messages ever sent.
    head: i64,
    /// The message up to which the user has read, or the last one before the user joined.
    read_seq: i64,
    /// The number of messages after `read_seq` that were recalled or read out of order.
    gone: i64,
    /// The unread count.
    unread: i64,
    /// Whether `chats` and `total` exclude it.
    muted: bool,
}

/// A direct chat with unread messages: unread = head − mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectTermsOut {
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

/// A notification type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotificationTermsOut {
    /// The unread notifications of the type in the user's list.
    unread: i64,
}

/// The terms of each count of an unread summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExplainOut {
    /// The user.
    user_id: UserId,
    /// The revision of all values.
    revision: i64,
    /// The sum of counters, broadcasts, chats and notifications.
    total: i64,
    /// The number of broadcasts and lit dots when the user was enrolled. Omitted for a user who is
    /// not enrolled: broadcasts, dots and feed are then 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enrolled_at: Option<i64>,
    /// The current value of the same number.
    board_head: i64,
    /// The counters by name.
    counters: BTreeMap<String, CounterTermsOut>,
    /// The channels by name.
    broadcasts: BTreeMap<String, ChannelTermsOut>,
    /// The dots by name.
    dots: BTreeMap<String, DotTermsOut>,
    /// The feed.
    feed: FeedTermsOut,
    /// Groups and direct chats.
    chats: ChatTermsOut,
    /// The notifications by type.
    notifications: BTreeMap<String, NotificationTermsOut>,
}

/// Explain a user's unread summary
///
/// Returns the terms of each count, read from the database: channels and creators with head, mark
/// and difference.
#[utoipa::path(get, path = "/v1/users/{user}/badges/explain", tag = "badges",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = ExplainOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn explain_badges(state: Served<SummaryContext>, path: UserPath, _: Query<NoParams>) -> Result<Response> {
    let explained = state.sheets.explain(path.user).await?;
    let mut response = Json(explained).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

impl Sheets {
    /// Every number of a sheet as its terms.
    ///
    /// # Errors
    /// 503 where a store is away: nothing is guessed here.
    pub async fn explain(&self, user: UserId) -> Result<ExplainOut> {
        self.heads.catch_up().await?;
        let read = self.entries.in_turn(read_users(&self.db, std::slice::from_ref(&user))).await?;
        let snapshot = read.into_iter().next().ok_or_else(Error::store_unavailable)?;
        let board = self.heads.board();
        let counters: BTreeMap<_, _> = marks(&snapshot, Kind::Counter).map(|(name, mark)| (name.to_owned(), counter(mark))).collect();
        let broadcasts = channels(&snapshot, &board);
        let notifications: BTreeMap<_, _> =
            snapshot.notifications.iter().map(|(name, unread)| (name.clone(), NotificationTermsOut { unread: *unread })).collect();
        let own = counters.values().map(|terms| terms.unread).chain(notifications.values().map(|terms| terms.unread));
        let chats = self.explain_chats(&snapshot).await?;
        let total = own.chain(broadcasts.values().map(|terms| terms.unread)).fold(chats.unread, i64::saturating_add);
        Ok(ExplainOut {
            user_id: user,
            revision: snapshot.row.revision,
            total,
            enrolled_at: Some(snapshot.row.enrolled).filter(|_| snapshot.row.is_enrolled()),
            board_head: board.head,
            counters,
            broadcasts,
            dots: dots(&snapshot, &board),
            feed: self.feed_terms(user, &snapshot).await?,
            chats,
            notifications,
        })
    }

    async fn feed_terms(&self, user: UserId, snapshot: &Snapshot) -> Result<FeedTermsOut> {
        let changed_at = snapshot.row.feed;
        if changed_at == 0 || !snapshot.row.is_enrolled() {
            return Ok(FeedTermsOut { unread: 0, changed_at, creators: Vec::new() });
        }
        let terms = self.feeds.terms(user, changed_at).await?;
        let term = |term: &crate::features::feed::Term| CreatorTermsOut {
            user_id: term.creator,
            head: term.head,
            mark: term.mark,
            gone: (term.head - term.mark - term.unread).max(0),
            unread: term.unread,
        };
        let creators: Vec<_> = terms.iter().map(term).collect();
        let unread = creators.iter().map(|terms| terms.unread).fold(0, i64::saturating_add);
        Ok(FeedTermsOut { unread, changed_at, creators })
    }
}

/// How many direct chats are told.
const MAX_DIRECTS: i64 = 1000;

impl Sheets {
    async fn explain_chats(&self, snapshot: &Snapshot) -> Result<ChatTermsOut> {
        let list = self.chats.list(snapshot.user, snapshot.row.revision, snapshot.groups.iter().cloned());
        let (terms, _) = self.chats.terms(&list).await?;
        let group = |term: &crate::features::groups::chats::ChatTerm<'_>| GroupTermsOut {
            group_id: term.group,
            head: term.head,
            read_seq: term.mark.read_seq,
            gone: (term.head - term.mark.read_seq - term.unread).max(0),
            unread: term.unread,
            muted: term.mark.muted,
        };
        let groups: Vec<_> = terms.iter().map(group).collect();
        let directs = inbox::lists::unread(&self.db, snapshot.user, MAX_DIRECTS).await?;
        let direct =
            |(peer_id, head, mark, muted): (UserId, i64, i64, bool)| DirectTermsOut { peer_id, head, mark, unread: head - mark, muted };
        let counted = groups.iter().filter(|of| !of.muted).map(|of| of.unread);
        let unread = counted.fold(snapshot.row.direct_unread, i64::saturating_add);
        Ok(ChatTermsOut { unread, groups, directs: directs.into_iter().map(direct).collect() })
    }
}

fn marks(snapshot: &Snapshot, kind: Kind) -> impl Iterator<Item = (&str, &Mark)> {
    snapshot.marks.iter().filter(move |(key, _)| key.kind == kind).map(|(key, mark)| (&*key.name, mark))
}

fn mark_of(snapshot: &Snapshot, kind: Kind, name: &str) -> i64 {
    marks(snapshot, kind).find(|(found, _)| *found == name).map_or(0, |(_, mark)| mark.mark())
}

fn counter(mark: &Mark) -> CounterTermsOut {
    CounterTermsOut { head: mark.head(), mark: mark.mark(), retracted: mark.retracted().to_string(), unread: mark.unread() }
}

fn channels(snapshot: &Snapshot, board: &Board) -> BTreeMap<String, ChannelTermsOut> {
    let enrolled = snapshot.row.enrolled;
    let terms = |(name, channel): (&String, &crate::engine::heads::Channel)| {
        let mark = mark_of(snapshot, Kind::Broadcast, name);
        let (since, unread) = (channel.read_up_to(enrolled, mark), channel.unread(enrolled, mark));
        let enrolled_at = channel.read_up_to(enrolled, 0);
        (name.clone(), ChannelTermsOut { head: channel.head, mark, enrolled_at, gone: (channel.head - since - unread).max(0), unread })
    };
    board.channels.iter().map(terms).collect()
}

fn dots(snapshot: &Snapshot, board: &Board) -> BTreeMap<String, DotTermsOut> {
    let enrolled = snapshot.row.enrolled;
    let terms = |(name, dot): (&String, &crate::engine::heads::Dot)| {
        let mark = mark_of(snapshot, Kind::Dot, name);
        let after_enrolment = snapshot.row.is_enrolled() && dot.position > enrolled;
        let lit = dot.is_lit(enrolled, mark);
        (name.clone(), DotTermsOut { head: dot.head, mark, lit_at: dot.lit_at, after_enrolment, lit })
    };
    board.dots.iter().map(terms).collect()
}
