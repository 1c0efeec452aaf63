//! The routes of counter badges.

use std::sync::Arc;

use axum::http::Uri;
use axum::routing::delete;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{BadgeCommand, BadgeOut, DeletedBadgeOut, Increment, MAX_STEP, Retract, Retraction, UserBadgesOut};
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::{MAX_HEAD, Name, UserId};
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::http::auth::Service;
use crate::http::body::{Body, IdempotencyKey, MAX_ITEMS, count_within, in_range, objects, present};
use crate::http::params::{NoParams, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::http::served::Served;

/// What the handlers of badges work with.
#[derive(Debug)]
pub struct BadgeContext {
    pub lanes: Lanes,
}

pub fn routes() -> OpenApiRouter<Served<BadgeContext>> {
    OpenApiRouter::new()
        .routes(routes!(increment_badge))
        .routes(routes!(retract_badge))
        .routes(routes!(reset_badge))
        .routes(routes!(delete_badge))
        .routes(routes!(increment_badges))
        .routes(routes!(retract_badges))
        .route("/v1/users/{user}/badges/reset", delete(delete_badge_named))
        .route("/v1/users/{user}/badges/explain", delete(delete_badge_named))
}

/// An increment of a badge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IncrementBadgeIn {
    /// The amount.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1_000_000, default = 1)]
    by: i64,
}

/// The increment to retract: one position, or the newest unread ones.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"by": 1}))]
pub struct RetractBadgeIn {
    /// The head that the increment returned.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    at: Option<i64>,
    /// The number of newest unread positions to retract; 1 by default.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 1_000_000)]
    by: Option<i64>,
}

/// How far a user has read a badge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBadgeIn {
    /// The head that the user saw. Later items stay unread. By default, all current items are
    /// marked as read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
    up_to: Option<i64>,
}

/// Increments of many badges of many users: all or nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IncrementBadgesIn {
    /// The increments, applied in order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    items: Vec<IncrementBadgesItemIn>,
}

/// An increment in a batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IncrementBadgesItemIn {
    /// The user.
    user_id: UserId,
    /// The badge.
    badge: Name,
    /// The amount.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1_000_000, default = 1)]
    by: i64,
}

/// Retractions of many badges of many users: all or nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetractBadgesIn {
    /// The retractions, applied in order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    items: Vec<RetractBadgesItemIn>,
}

/// A retraction in a batch: one position, or the newest unread ones.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"user_id": "42", "badge": "like", "at": 117}))]
pub struct RetractBadgesItemIn {
    /// The user.
    user_id: UserId,
    /// The badge.
    badge: Name,
    /// The head that the increment returned.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    at: Option<i64>,
    /// The number of newest unread positions to retract; 1 by default.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 1_000_000)]
    by: Option<i64>,
}

/// What `at` or `by` names; `pointer` is where they stand in the body.
fn retract_of(at: Option<i64>, by: Option<i64>, pointer: &str) -> Result<Retract, Problem> {
    match (at, by) {
        (Some(_), Some(_)) => Err(Problem::invalid(format!("{pointer}/by"), "must be omitted when 'at' is set")),
        (Some(at), None) => Ok(Retract::At(in_range(at, 1, MAX_HEAD, || format!("{pointer}/at"))?)),
        (None, by) => Ok(Retract::Newest(in_range(by.unwrap_or(1), 1, MAX_STEP, || format!("{pointer}/by"))?)),
    }
}

fn one() -> i64 {
    1
}

/// Increment a badge
///
/// `head` in the response is the position of this increment. Send it as `at` to retract exactly
/// this increment.
#[utoipa::path(post, path = "/v1/users/{user}/badges/{badge}/increment", tag = "badges",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserId, Path), ("badge" = Name, Path),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body(content = IncrementBadgeIn, description = "Optional. Default: 1"),
    responses(
        (status = 200, body = BadgeOut)))]
async fn increment_badge(
    state: Served<BadgeContext>,
    service: Service,
    path: PathParams,
    key: IdempotencyKey,
    body: Body<IncrementBadgeIn>,
) -> Result<Answer> {
    let by = in_range(body.value.by, 1, MAX_STEP, || "/by".to_owned())?;
    let item = Increment { user: path.get("user")?, badge: path.name("badge")?, by };
    submit(&state, BadgeCommand::Increment(item), key.of(&service.caller(), &body.digest)).await
}

/// Retract an increment of a badge
///
/// Use it when the counted item was deleted. The unread count drops by one if the position was
/// unread, and stays the same otherwise.
#[utoipa::path(post, path = "/v1/users/{user}/badges/{badge}/retract", tag = "badges",
    extensions(("x-problems" = json!(["not_found", "too_many"]))),
    params(("user" = UserId, Path), ("badge" = Name, Path),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body(content = RetractBadgeIn, description = "Optional. Default: the newest unread position"),
    responses(
        (status = 200, body = BadgeOut)))]
async fn retract_badge(
    state: Served<BadgeContext>,
    service: Service,
    path: PathParams,
    key: IdempotencyKey,
    body: Body<RetractBadgeIn>,
) -> Result<Answer> {
    let what = retract_of(body.value.at, body.value.by, "")?;
    let command = BadgeCommand::Retract(Retraction { user: path.get("user")?, badge: path.name("badge")?, what });
    submit(&state, command, key.of(&service.caller(), &body.digest)).await
}

/// Mark a badge as read
///
/// Send back the `head` of the unread summary as `up_to` to clear exactly what the user saw. A
/// repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/badges/{badge}/reset", tag = "badges",
    params(("user" = UserOrMe, Path), ("badge" = Name, Path)),
    request_body(content = ResetBadgeIn, description = "Optional. Default: all current items"),
    responses(
        (status = 200, body = BadgeOut)))]
async fn reset_badge(state: Served<BadgeContext>, path: UserPath, body: Body<ResetBadgeIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    submit(&state, BadgeCommand::Reset { user: path.user, badge: path.name("badge")?, up_to }, None).await
}

/// Delete a badge
///
/// The badge leaves the unread summary, and the total falls by its unread count. If it is incremented
/// again, its `head` continues, and only what is new is unread. Deleting a badge that does not exist
/// changes nothing.
#[utoipa::path(delete, path = "/v1/users/{user}/badges/{badge}", tag = "badges",
    params(("user" = UserId, Path), ("badge" = Name, Path)),
    responses(
        (status = 200, body = DeletedBadgeOut)))]
async fn delete_badge(state: Served<BadgeContext>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, BadgeCommand::Delete { user: path.get("user")?, badge: path.name("badge")? }, None).await
}

/// The same of a badge whose name is the end of another route, such as `reset`.
async fn delete_badge_named(state: Served<BadgeContext>, _: Service, path: PathParams, _: Query<NoParams>, uri: Uri) -> Result<Answer> {
    let name = uri.path().rsplit('/').next().unwrap_or_default();
    let badge = name.parse().map_err(|_| Problem::new(Code::InvalidPath, "The name of the badge is invalid."))?;
    submit(&state, BadgeCommand::Delete { user: path.get("user")?, badge }, None).await
}

/// Increment many badges
///
/// Increments up to 1000 badges of any users in one transaction: all or nothing. On failure, the
/// problem points to the invalid item.
#[utoipa::path(post, path = "/v1/badges/increment", tag = "badges",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body = IncrementBadgesIn,
    responses(
        (status = 200, body = UserBadgesOut)))]
async fn increment_badges(
    state: Served<BadgeContext>,
    service: Service,
    key: IdempotencyKey,
    body: Body<IncrementBadgesIn>,
) -> Result<Answer> {
    let items = body.value.items;
    count_within(items.len(), MAX_ITEMS, "/items")?;
    for (at, item) in items.iter().enumerate() {
        in_range(item.by, 1, MAX_STEP, || format!("/items/{at}/by"))?;
    }
    let items = items.into_iter().map(|item| Increment { user: item.user_id, badge: item.badge, by: item.by }).collect();
    submit(&state, BadgeCommand::IncrementMany(items), key.of(&service.caller(), &body.digest)).await
}

/// Retract increments of many badges
///
/// Retracts up to 1000 increments of any users in one transaction: all or nothing. On failure, the
/// problem points to the invalid item.
#[utoipa::path(post, path = "/v1/badges/retract", tag = "badges",
    extensions(("x-problems" = json!(["not_found", "too_many"]))),
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body = RetractBadgesIn,
    responses(
        (status = 200, body = UserBadgesOut)))]
async fn retract_badges(state: Served<BadgeContext>, service: Service, key: IdempotencyKey, body: Body<RetractBadgesIn>) -> Result<Answer> {
    let items = body.value.items;
    count_within(items.len(), MAX_ITEMS, "/items")?;
    let item = |(at, item): (usize, RetractBadgesItemIn)| {
        let what = retract_of(item.at, item.by, &format!("/items/{at}"))?;
        Ok(Retraction { user: item.user_id, badge: item.badge, what })
    };
    let items = items.into_iter().enumerate().map(item).collect::<Result<_, Problem>>()?;
    submit(&state, BadgeCommand::RetractMany(items), key.of(&service.caller(), &body.digest)).await
}

async fn submit(state: &BadgeContext, command: BadgeCommand, key: Option<crate::engine::idempotency::Key>) -> Result<Answer, Error> {
    state.lanes.submit(Job { command: Arc::new(command), key }).await
}
