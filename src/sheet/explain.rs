//! Every number of a sheet as its terms, from the rows themselves: enough to settle a user's complaint.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Sheets, store_away};
use crate::clock::UnixMs;
use crate::error::{ProblemOut, Result};
use crate::heads::Board;
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::ids::{GroupId, UserId};
use crate::inbox;
use crate::marks::snapshot::{Snapshot, read_users};
use crate::marks::{Kind, Mark};
use crate::state::AppState;

/// The route.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(explain_badges))
}

/// A counter: unread = head − mark − retracted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CounterTermsOut {
    /// How many there ever were.
    head: i64,
    /// How far the user has read.
    mark: i64,
    /// The positions above the mark that were taken back, as runs.
    #[schema(example = "117 119-121")]
    retracted: String,
    /// What is left.
    unread: i64,
}

/// A channel: unread = the notices after both the mark and the enrolment, less those that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChannelTermsOut {
    /// How many notices there ever were.
    head: i64,
    /// How far the user has read.
    mark: i64,
    /// The last notice that came before the user was first seen.
    enrolled_at: i64,
    /// How many of those after both were withdrawn or have expired.
    gone: i64,
    /// What is left.
    unread: i64,
}

/// A dot: lit where it was lit after both the mark and the enrolment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DotTermsOut {
    /// How often it was lit.
    head: i64,
    /// Up to which light the user has cleared it.
    mark: i64,
    /// When it was lit last.
    lit_at: UnixMs,
    /// Whether that was after the user was first seen.
    after_enrolment: bool,
    /// Whether it is lit for the user.
    lit: bool,
}

/// A creator: unread = the posts after the mark that are still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CreatorTermsOut {
    /// Who.
    user_id: UserId,
    /// How many posts there ever were.
    head: i64,
    /// Up to which post the user has seen them: when the feed was last reset, or the follow was made.
    mark: i64,
    /// How many of those after it were deleted.
    gone: i64,
    /// What is left.
    unread: i64,
}

/// The feed: the sum over the creators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedTermsOut {
    /// The sum.
    unread: i64,
    /// The revision at which the list of creators, or a mark in it, changed last.
    changed_at: i64,
    /// Each creator whom the user follows.
    creators: Vec<CreatorTermsOut>,
}

/// A group: unread = head − read_seq − what was recalled or read alone above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupTermsOut {
    /// Which one.
    group_id: GroupId,
    /// How many messages there ever were.
    head: i64,
    /// Up to which message all is read, or came before the user joined.
    read_seq: i64,
    /// How many of those after it were recalled, or are read alone.
    gone: i64,
    /// What is left.
    unread: i64,
    /// Whether it counts in no sum.
    muted: bool,
}

/// A direct chat with something unread: unread = head − mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectTermsOut {
    /// The other side.
    peer_id: UserId,
    /// How many messages the peer ever sent.
    head: i64,
    /// How many of them the user has read.
    mark: i64,
    /// What is left.
    unread: i64,
    /// Whether it counts in no sum.
    muted: bool,
}

/// Groups and direct chats: the sum over those that are not muted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChatTermsOut {
    /// The sum.
    unread: i64,
    /// Each group that the user is in.
    groups: Vec<GroupTermsOut>,
    /// Each direct chat with something unread; at most 1000.
    directs: Vec<DirectTermsOut>,
}

/// A type of notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotificationTermsOut {
    /// The notifications of the type in the user's list that are not read.
    unread: i64,
}

/// The terms of every number of a sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExplainOut {
    /// The user.
    user_id: UserId,
    /// The revision that all of it belongs to.
    revision: i64,
    /// The sum of counters, broadcasts, chats and notifications.
    total: i64,
    /// How many notices and lights there had been when the user was first seen; left out before that: then broadcasts, dots and feed count nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    enrolled_at: Option<i64>,
    /// The same number now.
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

/// Explain a user's sheet
///
/// Every number as its terms, read from the rows themselves: which channels and creators, with head, mark and difference.
#[utoipa::path(get, path = "/v1/users/{user}/badges/explain", tag = "badges",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = ExplainOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn explain_badges(State(state): State<AppState>, path: UserPath, _: Query<NoParams>) -> Result<Response> {
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
        let snapshot = {
            let _turn = self.turns.take().await?;
            read_users(&self.db, &[user]).await?.into_iter().next().ok_or_else(store_away)?
        };
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
        let term = |term: &crate::feed::Term| CreatorTermsOut {
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
        let group = |term: &crate::groups::chats::ChatTerm<'_>| GroupTermsOut {
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
    let terms = |(name, channel): (&String, &crate::heads::Channel)| {
        let mark = mark_of(snapshot, Kind::Broadcast, name);
        let (since, unread) = (channel.read_up_to(enrolled, mark), channel.unread(enrolled, mark));
        let enrolled_at = channel.read_up_to(enrolled, 0);
        (name.clone(), ChannelTermsOut { head: channel.head, mark, enrolled_at, gone: (channel.head - since - unread).max(0), unread })
    };
    board.channels.iter().map(terms).collect()
}

fn dots(snapshot: &Snapshot, board: &Board) -> BTreeMap<String, DotTermsOut> {
    let enrolled = snapshot.row.enrolled;
    let terms = |(name, dot): (&String, &crate::heads::Dot)| {
        let mark = mark_of(snapshot, Kind::Dot, name);
        let after_enrolment = snapshot.row.is_enrolled() && dot.position > enrolled;
        let lit = dot.is_lit(enrolled, mark);
        (name.clone(), DotTermsOut { head: dot.head, mark, lit_at: dot.lit_at, after_enrolment, lit })
    };
    board.dots.iter().map(terms).collect()
}
