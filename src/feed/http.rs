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

use super::{Command, PostCountOut, PostOut, ResetFeedOut, store};
use crate::auth::Service;
use crate::error::{Fault, ProblemOut, Result};
use crate::heads;
use crate::http::body::Body;
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{AnyUserPath, PathParams, UserOrMe, UserPath};
use crate::ids::{ClientId, UserId};
use crate::lane::{Answer, Job};
use crate::marks::StreamKey;
use crate::poll::{self, Reading, Resource};
use crate::sheet::{Wanted, store_away};
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

/// A reset takes in all that is there now.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetFeedIn {}

/// How a feed is polled.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FeedParams {
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// What those whom a user follows have posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedOut {
    /// How many posts came since the user last looked.
    #[schema(minimum = 0, example = 7)]
    pub unread: i64,
    /// How many the user follows.
    #[schema(minimum = 0, example = 120)]
    pub creators: i64,
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
    let read = |seen| {
        let state = state.clone();
        async move {
            let sheet = state.sheets.sheet(user, Wanted::feed(), seen).await;
            let Some(feed) = sheet.feed else { return Err(store_away()) };
            let version = sheet.version();
            let value = FeedOut { unread: feed.unread, creators: feed.creators, degraded: version.is_none().then_some(true) };
            Ok(Reading { value, version })
        }
    };
    poll::poll(&state, user, wait, &tags, Resource { read, write: poll::json::<FeedOut> }).await
}

/// Mark a feed as seen
///
/// As the client loads the feed: all that is there now is seen, and what comes from now on counts.
#[utoipa::path(post, path = "/v1/users/{user}/feed/reset", tag = "feed",
    params(("user" = UserOrMe, Path)),
    request_body(content = ResetFeedIn, description = "May be left out"),
    responses(
        (status = 200, body = ResetFeedOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn reset_feed(State(state): State<AppState>, path: UserPath, _: Body<ResetFeedIn>) -> Result<Answer> {
    // From SQL, not from memory: the client may have been shown newer posts by another node.
    let followed = store::read_followed(&state.db, path.user).await?;
    submit(&state, Command::Reset { user: path.user, followed }).await
}
