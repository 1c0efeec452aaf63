//! The routes of views.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{NewItem, Reader, ViewCommand, ViewConfig, ViewCount, ViewItemOut, ViewItemsOut, ViewKey, Visited};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::{ClientId, MAX_HEAD, Name, UserId};
use crate::db::Db;
use crate::engine::entries::{Entries, State};
use crate::engine::heads::{Heads, Versions};
use crate::engine::lanes::{Answer, Job, Lanes, after_commit};
use crate::http::auth::Service;
use crate::http::body::{Body, IdempotencyKey, MAX_ITEMS, count_within, objects, present};
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::http::polling::{self, PolledValue, Polling, Resource, Seen, Version, WaitParams};
use crate::http::served::Served;

/// What the handlers and sweeps of views work with.
#[derive(Debug)]
pub struct ViewContext {
    pub lanes: Lanes,
    pub db: Db,
    pub entries: Arc<Entries>,
    pub reader: Arc<Reader>,
    pub heads: Arc<Heads>,
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// How views are kept.
    pub config: ViewConfig,
}

pub fn routes() -> OpenApiRouter<Served<ViewContext>> {
    OpenApiRouter::new()
        .routes(routes!(put_view_item, delete_view_item))
        .routes(routes!(put_view_items))
        .routes(routes!(access_view))
        .routes(routes!(get_view))
}

/// An item of a view.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutViewItemIn {
    /// The user who made the item, for whom it does not count as unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    actor_id: Option<UserId>,
}

/// Items of many views: all or nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutViewItemsIn {
    /// The items, added in order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    items: Vec<PutViewItemsItemIn>,
}

/// An item in a batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutViewItemsItemIn {
    /// The name of the view.
    #[schema(example = "forum")]
    view: Name,
    /// The id of the view.
    #[schema(example = "9")]
    view_id: ClientId,
    /// The item.
    #[schema(example = "item-9001")]
    item_id: ClientId,
    /// The user who made the item, for whom it does not count as unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    actor_id: Option<UserId>,
}

/// A visit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessViewIn {
    /// The head that the user saw; later items stay unread. By default, all current items are
    /// marked as read. The first visit starts at the head and ignores this field.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
    up_to: Option<i64>,
}

/// The unread count of a view for a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserViewOut {
    /// The name of the view.
    pub view: Name,
    /// The id of the view.
    pub view_id: ClientId,
    /// The number of items since the last visit; 0 if there was no visit.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The number of items ever added; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// When the user last visited the view; omitted if the user never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_access_at: Option<UnixMs>,
    /// The user's revision.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
}

/// The view in a path.
fn view_key(params: &PathParams) -> Result<ViewKey, Problem> {
    Ok(ViewKey::new(params.name("view")?, params.get("view_id")?))
}

async fn submit(state: &ViewContext, command: ViewCommand) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Add an item to a view
///
/// Users who visited the view before, except the actor, get an unread count higher by one. A repeat
/// with the same id changes nothing.
#[utoipa::path(put, path = "/v1/views/{view}/{view_id}/items/{item_id}", tag = "views",
    extensions(("x-problems" = json!(["gone", "too_many"]))),
    params(("view" = Name, Path), ("view_id" = ClientId, Path), ("item_id" = ClientId, Path)),
    request_body(content = PutViewItemIn, description = "Optional"),
    responses(
        (status = 200, body = ViewItemOut, description = "The item already exists"),
        (status = 201, body = ViewItemOut)))]
async fn put_view_item(state: Served<ViewContext>, _service: Service, path: PathParams, body: Body<PutViewItemIn>) -> Result<Answer> {
    submit(&state, ViewCommand::Put(NewItem { view: view_key(&path)?, item: path.get("item_id")?, actor: body.value.actor_id })).await
}

/// Add items to many views
///
/// Adds up to 1000 items of any views in one transaction: all or nothing. An item that already
/// exists counts once. Returns 410 if one of the items was deleted; the problem points to it.
#[utoipa::path(post, path = "/v1/views/items", tag = "views",
    extensions(("x-problems" = json!(["gone", "too_many"]))),
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body = PutViewItemsIn,
    responses(
        (status = 200, body = ViewItemsOut)))]
async fn put_view_items(state: Served<ViewContext>, service: Service, key: IdempotencyKey, body: Body<PutViewItemsIn>) -> Result<Answer> {
    let items = body.value.items;
    count_within(items.len(), MAX_ITEMS, "/items")?;
    let item = |item: PutViewItemsItemIn| NewItem { view: ViewKey::new(item.view, item.view_id), item: item.item_id, actor: item.actor_id };
    let command = ViewCommand::PutMany(items.into_iter().map(item).collect());
    state.lanes.submit(Job { command: Arc::new(command), key: key.of(&service.caller(), &body.digest) }).await
}

/// Delete an item from a view
///
/// Users who have not read the item get an unread count lower by one. Returns 204 also if it was
/// already deleted.
#[utoipa::path(delete, path = "/v1/views/{view}/{view_id}/items/{item_id}", tag = "views",
    extensions(("x-problems" = json!(["not_found"]))),
    params(("view" = Name, Path), ("view_id" = ClientId, Path), ("item_id" = ClientId, Path)),
    responses(
        (status = 204, description = "Deleted")))]
async fn delete_view_item(state: Served<ViewContext>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, ViewCommand::Delete { view: view_key(&path)?, item: path.get("item_id")? }).await
}

/// Visit a view
///
/// Call it when a user enters and leaves the view. The first visit starts at the view's head.
#[utoipa::path(post, path = "/v1/users/{user}/views/{view}/{view_id}/access", tag = "views",
    params(("user" = UserOrMe, Path), ("view" = Name, Path), ("view_id" = ClientId, Path)),
    request_body(content = AccessViewIn, description = "Optional. Default: all current items"),
    responses(
        (status = 200, body = UserViewOut)))]
async fn access_view(state: Served<ViewContext>, path: UserPath, body: Body<AccessViewIn>) -> Result<Response> {
    let (user, view, up_to) = (path.user, view_key(&path.params)?, body.value.up_to);
    if up_to.is_some_and(|up_to| !(0..=MAX_HEAD).contains(&up_to)) {
        return Err(Problem::invalid("/up_to", format!("must be between 0 and {MAX_HEAD}")).into());
    }
    let keep = state.config.visited_views;
    let answer = submit(&state, ViewCommand::Access { user, view: view.clone(), up_to, keep }).await?;
    let visited: Visited = answer.value()?;
    let (unread, head) = match visited.unread {
        Some(unread) => (unread, visited.head),
        None => {
            let counted = state.reader.count(user, visited.revision, std::slice::from_ref(&view)).await.map_err(after_commit)?;
            counted.first().map_or((0, visited.head), |count| (count.unread, count.head))
        }
    };
    let ViewKey { view, id: view_id, .. } = view;
    let last_access_at = Some(UnixMs(visited.at));
    Ok(Json(UserViewOut { view, view_id, unread, head, last_access_at, revision: visited.revision }).into_response())
}

/// Poll a view
///
/// Returns what a visit would return, without visiting. The unread count of a view that the user
/// never visited is 0.
#[utoipa::path(get, path = "/v1/users/{user}/views/{view}/{view_id}", tag = "views",
    params(("user" = UserOrMe, Path), ("view" = Name, Path), ("view_id" = ClientId, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = UserViewOut, headers(
            ("ETag" = String, description = "The version of the response; omitted if it shows last known values"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_view(state: Served<ViewContext>, path: UserPath, Query(params): Query<WaitParams>, tags: IfNoneMatch) -> Result<Response> {
    let (user, view) = (path.user, view_key(&path.params)?);
    let wait = polling::wait_of(params.wait)?;
    let read = |seen: Seen| {
        let (state, view) = (state.clone(), &view);
        async move { read(&state, user, view, seen).await }
    };
    let write = |(count, revision): &(ViewCount, i64)| {
        let ViewKey { view, id: view_id, .. } = view.clone();
        polling::json(&UserViewOut { view, view_id, unread: count.unread, head: count.head, last_access_at: count.at, revision: *revision })
    };
    polling::poll(&state.polling, user, wait, &tags, Resource { read, write }).await
}

/// What a user has unread in a view, not older than what the client has seen; only what was last
/// known has no version.
async fn read(state: &ViewContext, user: UserId, view: &ViewKey, seen: Seen) -> Result<PolledValue<(ViewCount, i64)>> {
    let (entry, mut is_stale) = match state.entries.read(user, seen.revision()).await {
        State::Current(entry) => (entry, false),
        State::LastKnown(entry) => (entry, true),
        State::Unknown => return Err(Error::store_unavailable()),
    };
    is_stale |= !state.heads.is_fresh() && !state.entries.catch_up().await;
    let mut count = count(state, user, view, entry.revision).await?;
    if !is_stale && state.heads.has_peers() && seen.has_other(versions(&count)) {
        // The client was answered by a node that was further.
        if state.entries.catch_up().await {
            count = self::count(state, user, view, entry.revision).await?;
        } else {
            is_stale = true;
        }
    }
    let version = (!is_stale).then(|| Version::new(entry.revision, versions(&count)));
    Ok(PolledValue { value: (count, entry.revision), version, changes_at: None })
}

/// From what is here, or else from SQL, in a turn.
async fn count(state: &ViewContext, user: UserId, view: &ViewKey, revision: i64) -> Result<ViewCount> {
    let counts = state.reader.count_in_turn(&state.entries, user, revision, std::slice::from_ref(view)).await;
    counts.and_then(|counts| counts.into_iter().next()).ok_or_else(Error::store_unavailable)
}

fn versions(count: &ViewCount) -> Versions {
    let mut versions = Versions::default();
    count.add_to(&mut versions);
    versions
}
