//! The routes of posts; those of the feed are beside the rest of the summary
//! (`summary/feed_http.rs`).

use std::sync::Arc;

use axum::response::Response;
use axum::routing::MethodRouter;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{FeedCommand, FeedConfig, PostCountOut, PostOut, PostsOut};
use crate::base::error::{Fault, Result};
use crate::base::ids::{ClientId, UserId};
use crate::db::Db;
use crate::engine::heads;
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::engine::marks::StreamKey;
use crate::http::answer::no_cache;
use crate::http::auth::Service;
use crate::http::body::{Body, IdempotencyKey, MAX_ITEMS, count_within, objects};
use crate::http::params::{NoParams, Query};
use crate::http::path::{AnyUserPath, PathParams, UserOrMe};
use crate::http::served::Served;

/// What the handlers and sweeps of posts work with.
#[derive(Debug)]
pub struct FeedContext {
    pub lanes: Lanes,
    pub db: Db,
    /// How the feed is kept.
    pub config: FeedConfig,
}

pub fn routes() -> OpenApiRouter<Served<FeedContext>> {
    OpenApiRouter::new()
        .routes(routes!(put_post, delete_post))
        .routes(routes!(count_posts))
        .routes(routes!(put_posts))
        .route("/v1/users/{user}/posts/count", count_as_post())
}

/// The body of a post, which has no fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutPostIn {}

/// Posts of many creators: all or nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutPostsIn {
    /// The posts, registered in order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    items: Vec<PutPostsItemIn>,
}

/// A post in a batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutPostsItemIn {
    /// The creator.
    user_id: UserId,
    /// The post.
    #[schema(example = "post-9001")]
    post_id: ClientId,
}

/// Register a post
///
/// Each post counts once, regardless of repeats. Followers of the creator get an unread count
/// higher by one.
#[utoipa::path(put, path = "/v1/users/{user}/posts/{post_id}", tag = "feed",
    extensions(("x-problems" = json!(["gone", "too_many"]))),
    params(("user" = UserId, Path), ("post_id" = ClientId, Path)),
    request_body(content = PutPostIn, description = "Optional"),
    responses(
        (status = 201, body = PostOut, description = "Created"),
        (status = 200, body = PostOut, description = "The post already exists")))]
async fn put_post(state: Served<FeedContext>, _: Service, path: PathParams, _: Body<PutPostIn>) -> Result<Answer> {
    submit(&state, FeedCommand::Post { creator: path.get("user")?, post: path.get("post_id")? }).await
}

/// Register many posts
///
/// Registers up to 1000 posts of any creators in one transaction: all or nothing. A post that
/// already exists counts once. Returns 410 if one of the posts was deleted; the problem points to
/// it.
#[utoipa::path(post, path = "/v1/posts", tag = "feed",
    extensions(("x-problems" = json!(["gone", "too_many"]))),
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body = PutPostsIn,
    responses(
        (status = 200, body = PostsOut)))]
async fn put_posts(state: Served<FeedContext>, service: Service, key: IdempotencyKey, body: Body<PutPostsIn>) -> Result<Answer> {
    let items = body.value.items;
    count_within(items.len(), MAX_ITEMS, "/items")?;
    let posts = items.into_iter().map(|item| (item.user_id, item.post_id)).collect();
    let key = key.of(&service.caller(), &body.digest);
    state.lanes.submit(Job { command: Arc::new(FeedCommand::PostMany(posts)), key }).await
}

/// Delete a post
///
/// Users who have not seen the post get an unread count lower by one. Returns 204 also if it was
/// already deleted.
#[utoipa::path(delete, path = "/v1/users/{user}/posts/{post_id}", tag = "feed",
    extensions(("x-problems" = json!(["not_found"]))),
    params(("user" = UserId, Path), ("post_id" = ClientId, Path)),
    responses(
        (status = 204, description = "Deleted")))]
async fn delete_post(state: Served<FeedContext>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, FeedCommand::Delete { creator: path.get("user")?, post: path.get("post_id")? }).await
}

/// `count` is an id like any other; its path alone is also that of the number of posts, which would
/// keep these two from it.
fn count_as_post() -> MethodRouter<Served<FeedContext>> {
    let count = || "count".parse::<ClientId>().map_err(|rule| Fault::Bug(rule.0.to_owned()));
    let put = async move |state: Served<FeedContext>, _: Service, path: PathParams, _: Body<PutPostIn>| {
        submit(&state, FeedCommand::Post { creator: path.get("user")?, post: count()? }).await
    };
    let delete = async move |state: Served<FeedContext>, _: Service, path: PathParams, _: Query<NoParams>| {
        submit(&state, FeedCommand::Delete { creator: path.get("user")?, post: count()? }).await
    };
    axum::routing::put(put).delete(delete)
}

async fn submit(state: &FeedContext, command: FeedCommand) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Count a creator's posts
#[utoipa::path(get, path = "/v1/users/{user}/posts/count", tag = "feed",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = PostCountOut)))]
async fn count_posts(state: Served<FeedContext>, path: AnyUserPath, _: Query<NoParams>) -> Result<Response> {
    let found = heads::store::read(&state.db, &[StreamKey::posts(path.user)]).await?;
    let (_, stream) = found.into_iter().next().unwrap_or_else(|| (StreamKey::posts(path.user), crate::engine::marks::Stream::default()));
    Ok(no_cache(&PostCountOut::of(&stream)))
}
