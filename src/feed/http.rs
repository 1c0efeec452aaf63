//! The routes of posts and of the feed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Command, Horizon, PostCountOut, PostOut, ResetFeedOut, store};
use crate::auth::Service;
use crate::error::{Code, Fault, Problem, ProblemOut, Result};
use crate::heads;
use crate::http::body::{Body, present};
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{AnyUserPath, PathParams, UserOrMe, UserPath};
use crate::ids::{ClientId, UserId};
use crate::lane::{Answer, Job};
use crate::marks::StreamKey;
use crate::poll::{self, Reading, Resource, Seen};
use crate::sheet::{Sheet, Wanted, store_away};
use crate::state::AppState;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(put_post, delete_post))
        .routes(routes!(count_posts))
        .route("/v1/users/{user}/posts/count", count_as_post())
        .routes(routes!(get_feed))
        .routes(routes!(reset_feed))
}

/// All there is to say of a post is its id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutPostIn {}

/// What the user has seen: all that is there now, or what a token names.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetFeedIn {
    /// The `token` of the answer that the user was shown: posts that came later stay unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 262_144, example = "ASqA…")]
    up_to: Option<String>,
}

/// How a feed is polled.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FeedParams {
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304. Needs that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// What those whom a user follows have posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedOut {
    /// How many posts came since the user last looked.
    #[schema(minimum = 0, example = 7)]
    pub unread: i64,
    /// How many the user follows.
    #[schema(minimum = 0, example = 120)]
    pub creators: i64,
    /// Names the posts that were counted. Sent back as `up_to` of a reset, it marks exactly those as seen. Left out of a degraded answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ASqA…")]
    pub token: Option<String>,
    /// There and true where a store was unreachable: then the numbers are the last known ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub degraded: Option<bool>,
}

/// Note a post
///
/// Each post counts once, however often it is put. Who follows the creator finds one more unread.
#[utoipa::path(put, path = "/v1/users/{user}/posts/{post_id}", tag = "feed",
    params(("user" = UserId, Path), ("post_id" = ClientId, Path)),
    request_body(content = PutPostIn, description = "May be left out"),
    responses(
        (status = 201, body = PostOut, description = "The post is new"),
        (status = 200, body = PostOut, description = "The post was known"),
        (status = 410, body = ProblemOut, content_type = "application/problem+json", description = "The post was deleted"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn put_post(State(state): State<AppState>, _: Service, path: PathParams, _: Body<PutPostIn>) -> Result<Answer> {
    submit(&state, Command::Post { creator: path.get("user")?, post: path.get("post_id")? }).await
}

/// Delete a post
///
/// One less for those who had not seen it, no change for the others. Also answers 204 when it was deleted before.
#[utoipa::path(delete, path = "/v1/users/{user}/posts/{post_id}", tag = "feed",
    params(("user" = UserId, Path), ("post_id" = ClientId, Path)),
    responses(
        (status = 204, description = "The post is gone"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn delete_post(State(state): State<AppState>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, Command::Delete { creator: path.get("user")?, post: path.get("post_id")? }).await
}

/// `count` is an id like any other; its path alone is also that of the number of posts, which would keep these two from it.
fn count_as_post() -> MethodRouter<AppState> {
    let count = || "count".parse::<ClientId>().map_err(|rule| Fault::Bug(rule.0.to_owned()));
    let put = async move |State(state): State<AppState>, _: Service, path: PathParams, _: Body<PutPostIn>| {
        submit(&state, Command::Post { creator: path.get("user")?, post: count()? }).await
    };
    let delete = async move |State(state): State<AppState>, _: Service, path: PathParams, _: Query<NoParams>| {
        submit(&state, Command::Delete { creator: path.get("user")?, post: count()? }).await
    };
    axum::routing::put(put).delete(delete)
}

async fn submit(state: &AppState, command: Command) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Count a creator's posts
#[utoipa::path(get, path = "/v1/users/{user}/posts/count", tag = "feed",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = PostCountOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn count_posts(State(state): State<AppState>, path: AnyUserPath, _: Query<NoParams>) -> Result<Response> {
    let found = heads::store::read(&state.db, &[StreamKey::posts(path.user)]).await?;
    let (_, stream) = found.into_iter().next().unwrap_or_else(|| (StreamKey::posts(path.user), crate::marks::Stream::default()));
    let fresh = [(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))];
    Ok((fresh, Json(PostCountOut::of(&stream))).into_response())
}

/// Poll a user's feed
///
/// How much those whom the user follows have posted since the user last looked. Send the answer's `ETag` back as `If-None-Match`: 304 without a body while nothing
/// changed.
#[utoipa::path(get, path = "/v1/users/{user}/feed", tag = "feed",
    params(("user" = UserOrMe, Path), FeedParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = FeedOut, headers(
            ("ETag" = String, description = "The version of the answer; none when degraded"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_feed(State(state): State<AppState>, path: UserPath, Query(params): Query<FeedParams>, tags: IfNoneMatch) -> Result<Response> {
    let wait = poll::wait_of(params.wait)?;
    let user = path.user;
    let read = |seen: Seen| {
        let (state, tags) = (state.clone(), &tags);
        async move {
            let mut sheet = state.sheets.sheet(user, Wanted::feed(), seen).await;
            let has_it = sheet.version().is_none_or(|version| tags.matches(&seen.tag(version)));
            let token = if has_it { None } else { load(&state, &mut sheet).await };
            let Some(feed) = sheet.feed else { return Err(store_away()) };
            let version = sheet.version().filter(|_| has_it || token.is_some());
            let value = FeedOut { unread: feed.unread, creators: feed.creators, token, degraded: version.is_none().then_some(true) };
            Ok(Reading { value, version })
        }
    };
    poll::poll(&state, user, wait, &tags, Resource { read, write: poll::json::<FeedOut> }).await
}

/// Counts the feed of a sheet again, with a token; None where that cannot be had now.
async fn load(state: &AppState, sheet: &mut Sheet) -> Option<String> {
    let user = sheet.user;
    match state.sheets.load_feed(sheet, state.clock.now()).await {
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
/// As the client loads the feed: what the token names is seen, and what came later counts. Without a token, all that is there now is seen. A mark never goes back.
#[utoipa::path(post, path = "/v1/users/{user}/feed/reset", tag = "feed",
    params(("user" = UserOrMe, Path)),
    request_body(content = ResetFeedIn, description = "May be left out"),
    responses(
        (status = 200, body = ResetFeedOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn reset_feed(State(state): State<AppState>, path: UserPath, body: Body<ResetFeedIn>) -> Result<Response> {
    let user = path.user;
    let Some(token) = &body.value.up_to else {
        // From SQL, not from memory: the client may have been shown newer posts by another node.
        let followed = store::read_followed(&state.db, user).await?;
        return Ok(submit(&state, Command::Reset { user, followed }).await?.into_response());
    };
    let horizon =
        Horizon::decode(token, user).ok_or_else(|| Problem::invalid("/up_to", "is not the token of an answer about this user's feed"))?;
    if state.sheets.feeds().is_forgotten(&horizon, state.clock.now()) {
        return Err(Problem::new(Code::Gone, "The token is older than posts are kept. Load the feed again.").into());
    }
    let followed = store::read_followed_at(&state.db, user, &horizon).await?;
    submit(&state, Command::Reset { user, followed }).await?;
    let sheet = state.sheets.sheet(user, Wanted::feed(), Seen::revision_alone(0)).await;
    let Some(feed) = sheet.feed else { return Err(store_away()) };
    Ok(Json(ResetFeedOut { unread: feed.unread, creators: feed.creators, revision: sheet.revision() }).into_response())
}
