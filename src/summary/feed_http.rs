//! The routes of the feed.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::SummaryContext;
use super::{UnreadSummary, Wanted};
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::UserId;
use crate::engine::lanes::{Answer, Job, after_commit};
use crate::features::feed::{FeedCommand, Followed, Horizon, ResetFeedOut, store};
use crate::http::body::{Body, present};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{PolledUser, UserOrMe, UserPath};
use crate::http::polling::{self, PolledValue, Resource, Seen, WaitParams};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<SummaryContext>> {
    OpenApiRouter::new().routes(routes!(get_feed)).routes(routes!(reset_feed))
}

/// What the user has seen: all current posts, or those that a token names.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetFeedIn {
    /// The `token` of the response that the user saw; later posts stay unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 262_144, example = "ASqA…")]
    up_to: Option<String>,
}

/// Posts of the users that a user follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedOut {
    /// The number of posts since the user last saw the feed.
    #[schema(minimum = 0, example = 7)]
    pub unread: i64,
    /// The number of users that the user follows, those whom it mutes among them.
    #[schema(minimum = 0, example = 120)]
    pub creators: i64,
    /// Identifies the counted posts. Send it back as `up_to` of a reset to mark exactly those as
    /// seen. Omitted from a degraded response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ASqA…")]
    pub token: Option<String>,
    /// Present and true if a store was unavailable: the numbers are then the last known ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub degraded: Option<bool>,
}

/// The feed alone.
const FEED: Wanted = Wanted { feed: true, ..Wanted::NOTHING };

async fn submit(state: &SummaryContext, user: UserId, followed: Followed) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(FeedCommand::Reset { user, followed }), key: None }).await
}

/// Poll a user's feed
///
/// Returns the number of posts, by the users that this user follows and does not mute, since the user
/// last saw the feed. Send the `ETag` back as `If-None-Match`: while nothing has changed, the response is 304
/// without a body.
#[utoipa::path(get, path = "/v1/users/{user}/feed", tag = "feed",
    params(("user" = UserOrMe, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = FeedOut, headers(
            ("ETag" = String, description = "The version of the response; omitted if degraded"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_feed(
    state: Served<SummaryContext>,
    PolledUser(user): PolledUser,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let wait = polling::wait_of(params.wait)?;
    let read = |seen: Seen| {
        let (state, tags) = (state.clone(), &tags);
        async move {
            let mut summary = state.summaries.read(user, FEED, seen).await;
            summary.alive()?;
            let has_it = summary.version().is_none_or(|version| tags.matches(&seen.tag(version)));
            let token = if has_it { None } else { load(&state, &mut summary).await };
            let Some(feed) = summary.counts.feed else { return Err(Error::store_unavailable()) };
            let version = summary.version().filter(|_| has_it || token.is_some());
            let value = FeedOut { unread: feed.unread, creators: feed.creators, token, degraded: version.is_none().then_some(true) };
            Ok(PolledValue { value, version, changes_at: feed.changes_at })
        }
    };
    polling::poll(&state.polling, user, wait, &tags, Resource { read, write: polling::json::<FeedOut> }).await
}

/// Counts the feed of a summary again, with a token; None where that cannot be had now.
async fn load(state: &SummaryContext, summary: &mut UnreadSummary) -> Option<String> {
    let user = summary.user;
    match state.summaries.load_feed(summary, state.clock.now()).await {
        Ok(horizon) => Some(horizon.encode(user)),
        Err(error) => {
            // The answer is degraded then.
            tracing::debug!(?error, "cannot make a token of a feed");
            None
        }
    }
}

/// Mark a feed as seen
///
/// Call it when the client loads the feed. With a token, the posts that the token names are marked
/// as seen, and later posts stay unread. Without a token, all current posts are marked as seen.
/// Marks never go back.
#[utoipa::path(post, path = "/v1/users/{user}/feed/reset", tag = "feed",
    extensions(("x-problems" = json!(["gone"]))),
    params(("user" = UserOrMe, Path)),
    request_body(content = ResetFeedIn, description = "Optional"),
    responses(
        (status = 200, body = ResetFeedOut)))]
async fn reset_feed(state: Served<SummaryContext>, path: UserPath, body: Body<ResetFeedIn>) -> Result<Response> {
    let user = path.user;
    let Some(token) = &body.value.up_to else {
        // From SQL, not from memory: the client may have been shown newer posts by another node.
        let followed = state.summaries.entries.in_long_list_turn(user, store::read_followed(&state.db, user)).await?;
        return Ok(submit(&state, user, followed).await?.into_response());
    };
    let horizon = Horizon::decode(token, user).ok_or_else(|| Problem::invalid("/up_to", "must be a token from this user's feed"))?;
    if state.summaries.parts.feed.feeds.is_forgotten(&horizon, state.clock.now()) {
        return Err(Problem::new(Code::Gone, "The feed token has expired. Load the feed again.").into());
    }
    // Up to some dozens of statements, each about everybody whom the user follows.
    let read = store::read_followed_at(&state.db, user, &horizon);
    let followed = state.summaries.entries.in_long_list_turn(user, read).await?;
    let written: ResetFeedOut = submit(&state, user, followed).await?.value()?;
    let summary = state.summaries.read(user, FEED, Seen::revision_alone(written.revision)).await;
    let feed = summary.counts.feed.filter(|_| !summary.own_is_stale).ok_or_else(|| after_commit(Error::store_unavailable()))?;
    let revision = summary.revision().max(written.revision);
    Ok(Json(ResetFeedOut { unread: feed.unread, creators: feed.creators, revision }).into_response())
}
