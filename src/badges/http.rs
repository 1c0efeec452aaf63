//! The routes of counter badges and of the sheet.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{BadgeOut, Command, Increment, IncrementBadgesOut, MAX_BADGES, MAX_STEP, Retract};
use crate::auth::Service;
use crate::error::{Error, Problem, ProblemOut, Result};
use crate::http::body::{Body, IdempotencyKey, in_range, objects, present, unique_map};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::ids::{Invalid, Name, UserId};
use crate::lane::{Answer, Job};
use crate::marks::MAX_HEAD;
use crate::poll::{self, Reading, Resource, Seen};
use crate::sheet::{Sheet, SheetOut, Wanted};
use crate::state::AppState;
use crate::views::{MAX_VIEWS, ViewKey};

/// The most items of a batch.
pub const MAX_ITEMS: usize = 1000;

/// What a query includes where it does not say.
const WITHOUT_FEED: &str = "counters,broadcasts,dots,chats,notifications";

/// The most users of a query.
pub const MAX_QUERY_USERS: usize = 500;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(get_sheet))
        .routes(routes!(increment_badge))
        .routes(routes!(retract_badge))
        .routes(routes!(reset_badge))
        .routes(routes!(reset_badges))
        .routes(routes!(increment_badges))
        .routes(routes!(query_badges))
}

/// What narrows a sheet.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SheetParams {
    /// Which kinds, comma-separated: `counters`, `broadcasts`, `dots`, `feed`, `chats`, `notifications`. Without it, all.
    #[param(
        nullable = false,
        example = "counters,dots",
        pattern = "^(counters|broadcasts|dots|feed|chats|notifications)(,(counters|broadcasts|dots|feed|chats|notifications))*$"
    )]
    include: Option<String>,
    /// No count and no total shows more than this; each then says with `capped` whether there is more.
    #[param(nullable = false, minimum = 1, maximum = 1_000_000_000)]
    cap: Option<i64>,
    /// Views to show, comma-separated, each its name, ':' and its id; at most 50.
    #[param(
        nullable = false,
        example = "home:1,forum:9",
        pattern = "^[a-z0-9][a-z0-9_.-]{0,63}:[A-Za-z0-9._:-]{1,128}(,[a-z0-9][a-z0-9_.-]{0,63}:[A-Za-z0-9._:-]{1,128}){0,49}$"
    )]
    views: Option<String>,
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304. Needs that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// One step of a badge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IncrementBadgeIn {
    /// By how many.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1_000_000, default = 1)]
    by: i64,
}

/// What is to be taken back: one position, or the newest unread ones.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"by": 1}))]
pub struct RetractBadgeIn {
    /// The head that the increment returned.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    at: Option<i64>,
    /// How many of the newest unread ones; 1 where neither is given.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 1_000_000)]
    by: Option<i64>,
}

/// How far a badge was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBadgeIn {
    /// The head that the user was shown. What came after it stays unread. Without it, all that is there now is read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
    up_to: Option<i64>,
}

/// A head that a user was shown.
#[derive(Debug, ToSchema)]
#[schema(value_type = i64, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
pub struct ShownHead(pub i64);

/// How far several badges were read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBadgesIn {
    /// The heads that the user was shown, by badge; the others stay. Without it every counter is read.
    #[serde(default, deserialize_with = "marks_by_badge")]
    #[schema(nullable = false, value_type = Option<BTreeMap<Name, ShownHead>>, example = json!({"mention": 120, "like": 9}))]
    up_to: Option<BTreeMap<Name, i64>>,
}

/// Steps of many badges of many users: all or nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IncrementBadgesIn {
    /// The steps, applied in order.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    items: Vec<IncrementBadgesItemIn>,
}

/// One step in a batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IncrementBadgesItemIn {
    /// Whose badge.
    user_id: UserId,
    /// Which one.
    badge: Name,
    /// By how many.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1_000_000, default = 1)]
    by: i64,
}

/// The name of a kind that a sheet may show.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^(counters|broadcasts|dots|feed|chats|notifications)$", example = "counters")]
pub struct KindName(pub String);

/// Whose sheets.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryBadgesIn {
    /// The users, each once.
    #[schema(value_type = HashSet<UserId>, min_items = 1, max_items = 500)]
    user_ids: Vec<UserId>,
    /// Which kinds, as in a poll.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, value_type = Option<Vec<KindName>>, min_items = 1, example = json!(["counters"]))]
    include: Option<Vec<String>>,
    /// No count and no total shows more than this.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 1_000_000_000, example = 99)]
    cap: Option<i64>,
}

/// The sheets of the users asked for, in that order.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueryBadgesOut<'a> {
    items: Vec<SheetOut<'a>>,
}

fn marks_by_badge<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<Name, i64>>, D::Error> {
    unique_map(deserializer).map(Some)
}

fn one() -> i64 {
    1
}

/// Reads `home:1,forum:9`.
fn view_keys(text: &str) -> Result<Vec<ViewKey>, String> {
    if text.split(',').nth(MAX_VIEWS).is_some() {
        return Err(format!("more than {MAX_VIEWS} views"));
    }
    let views = text.split(',').map(|view| view.parse().map_err(|rule: Invalid| rule.0.to_owned())).collect::<Result<Vec<ViewKey>, _>>()?;
    let mut seen = HashSet::with_capacity(views.len());
    match views.iter().find(|view| !seen.insert(&view.stream)) {
        Some(twice) => Err(format!("{} is there more than once", twice.stream)),
        None => Ok(views),
    }
}

/// Poll a user's sheet
///
/// Everything unread in one answer. Send the answer's `ETag` back as `If-None-Match`: 304 without a body while nothing changed.
#[utoipa::path(get, path = "/v1/users/{user}/badges", tag = "badges",
    params(("user" = UserOrMe, Path), SheetParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = SheetOut, headers(
            ("ETag" = String, description = "The version of the answer; none when degraded"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_sheet(
    State(state): State<AppState>,
    path: UserPath,
    Query(params): Query<SheetParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let wanted = Wanted::parse(params.include.as_deref(), params.cap).map_err(|(name, detail)| Problem::query(name, detail))?;
    let wait = poll::wait_of(params.wait)?;
    let views = params.views.as_deref().map(view_keys).transpose();
    let views = views.map_err(|why| Problem::query("views", why))?.unwrap_or_default();
    let user = path.user;
    let read = |seen| {
        let (state, views) = (state.clone(), &views);
        async move {
            let value = state.sheets.sheet_with(user, wanted, views, seen).await;
            let version = value.version();
            Ok(Reading { value, version })
        }
    };
    let write = |value: &Sheet| poll::json(&SheetOut::new(user, value, wanted));
    poll::poll(&state, user, wait, &tags, Resource { read, write }).await
}

/// Increment a badge
///
/// The `head` of the answer is the position of what was counted: given to retract as `at`, it takes back exactly that.
#[utoipa::path(post, path = "/v1/users/{user}/badges/{badge}/increment", tag = "badges",
    params(("user" = UserId, Path), ("badge" = Name, Path),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first answer")),
    request_body(content = IncrementBadgeIn, description = "May be left out: by 1"),
    responses(
        (status = 200, body = BadgeOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn increment_badge(
    State(state): State<AppState>,
    service: Service,
    path: PathParams,
    key: IdempotencyKey,
    body: Body<IncrementBadgeIn>,
) -> Result<Answer> {
    let by = in_range(body.value.by, 1, MAX_STEP, || "/by".to_owned())?;
    let item = Increment { user: path.get("user")?, badge: path.name("badge")?, by };
    submit(&state, Command::Increment(item), key.of(&service.caller(), &body.digest)).await
}

/// Retract from a badge
///
/// The item whose increment returned that head is gone: one less if it was unread, else no change.
#[utoipa::path(post, path = "/v1/users/{user}/badges/{badge}/retract", tag = "badges",
    params(("user" = UserId, Path), ("badge" = Name, Path),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first answer")),
    request_body(content = RetractBadgeIn, description = "May be left out: the newest unread one"),
    responses(
        (status = 200, body = BadgeOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn retract_badge(
    State(state): State<AppState>,
    service: Service,
    path: PathParams,
    key: IdempotencyKey,
    body: Body<RetractBadgeIn>,
) -> Result<Answer> {
    let what = match (body.value.at, body.value.by) {
        (Some(_), Some(_)) => return Err(Problem::invalid("/by", "give either 'at' or 'by'").into()),
        (Some(at), None) => Retract::At(in_range(at, 1, MAX_HEAD, || "/at".to_owned())?),
        (None, by) => Retract::Newest(in_range(by.unwrap_or(1), 1, MAX_STEP, || "/by".to_owned())?),
    };
    let command = Command::Retract { user: path.get("user")?, badge: path.name("badge")?, what };
    submit(&state, command, key.of(&service.caller(), &body.digest)).await
}

/// Mark a badge as read
///
/// Clears what the user was shown: send back the `head` of the sheet as `up_to`. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/badges/{badge}/reset", tag = "badges",
    params(("user" = UserOrMe, Path), ("badge" = Name, Path)),
    request_body(content = ResetBadgeIn, description = "May be left out: all that is there now"),
    responses(
        (status = 200, body = BadgeOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn reset_badge(State(state): State<AppState>, path: UserPath, body: Body<ResetBadgeIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    submit(&state, Command::Reset { user: path.user, badge: path.name("badge")?, up_to }, None).await
}

/// Mark badges as read
///
/// Several up to what the user was shown, or every counter. Answers with the sheet.
#[utoipa::path(post, path = "/v1/users/{user}/badges/reset", tag = "badges",
    params(("user" = UserOrMe, Path)),
    request_body(content = ResetBadgesIn, description = "May be left out: every counter"),
    responses(
        (status = 200, body = SheetOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn reset_badges(State(state): State<AppState>, path: UserPath, body: Body<ResetBadgesIn>) -> Result<Response> {
    if let Some(up_to) = &body.value.up_to {
        let most = usize::try_from(MAX_BADGES).unwrap_or(usize::MAX);
        if up_to.len() > most {
            return Err(Problem::invalid("/up_to", format!("more than {most} badges")).into());
        }
        for (badge, up_to) in up_to {
            in_range(*up_to, 0, MAX_HEAD, || format!("/up_to/{badge}"))?;
        }
    }
    let user = path.user;
    let answer = state.lanes.submit(Job { command: Arc::new(Command::ResetMany { user, up_to: body.value.up_to }), key: None }).await?;
    let written: super::ResetOut = answer.read()?;
    let sheet = state.sheets.sheet(user, Wanted::default(), Seen::revision_alone(written.revision)).await;
    Ok(Json(SheetOut::new(user, &sheet, Wanted::default())).into_response())
}

/// Increment many badges
///
/// Up to 1000 steps of any users' badges in one transaction: all or nothing. A problem names the item at fault.
#[utoipa::path(post, path = "/v1/badges/increment", tag = "badges",
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first answer")),
    request_body = IncrementBadgesIn,
    responses(
        (status = 200, body = IncrementBadgesOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn increment_badges(
    State(state): State<AppState>,
    service: Service,
    key: IdempotencyKey,
    body: Body<IncrementBadgesIn>,
) -> Result<Answer> {
    let items = body.value.items;
    count(items.len(), MAX_ITEMS, "/items")?;
    for (at, item) in items.iter().enumerate() {
        in_range(item.by, 1, MAX_STEP, || format!("/items/{at}/by"))?;
    }
    let items = items.into_iter().map(|item| Increment { user: item.user_id, badge: item.badge, by: item.by }).collect();
    submit(&state, Command::IncrementMany(items), key.of(&service.caller(), &body.digest)).await
}

/// Read many users' sheets
///
/// For senders of push notifications that need the icon's number. Never degraded: 503 instead.
#[utoipa::path(post, path = "/v1/badges/query", tag = "badges",
    request_body = QueryBadgesIn,
    responses(
        (status = 200, body = QueryBadgesOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn query_badges(State(state): State<AppState>, _service: Service, body: Body<QueryBadgesIn>) -> Result<Response> {
    let users = body.value.user_ids;
    count(users.len(), MAX_QUERY_USERS, "/user_ids")?;
    let mut seen = HashSet::with_capacity(users.len());
    if let Some(at) = users.iter().position(|user| !seen.insert(*user)) {
        return Err(Problem::invalid(format!("/user_ids/{at}"), "the user is there more than once").into());
    }
    if body.value.include.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::invalid("/include", "name one kind at least, or leave it out").into());
    }
    for (at, kind) in body.value.include.iter().flatten().enumerate() {
        let known =
            if kind.contains(',') { Err("one kind each".to_owned()) } else { Wanted::parse(Some(kind), None).map_err(|(_, why)| why) };
        known.map_err(|why| Problem::invalid(format!("/include/{at}"), why))?;
    }
    // The feed costs more than the rest together, and no icon shows it.
    let include = body.value.include.map_or_else(|| WITHOUT_FEED.to_owned(), |kinds| kinds.join(","));
    let wanted = Wanted::parse(Some(&include), body.value.cap).map_err(|(name, detail)| Problem::invalid(format!("/{name}"), detail))?;
    let sheets = state.sheets.sheets(&users, wanted).await?;
    let items = users.iter().zip(&sheets).map(|(user, sheet)| SheetOut::new(*user, sheet, wanted)).collect();
    Ok(Json(QueryBadgesOut { items }).into_response())
}

fn count(items: usize, most: usize, pointer: &str) -> Result<(), Problem> {
    if (1..=most).contains(&items) { Ok(()) } else { Err(Problem::invalid(pointer, format!("{items} items are not from 1 to {most}"))) }
}

async fn submit(state: &AppState, command: Command, key: Option<crate::idempotency::Key>) -> Result<Answer, Error> {
    state.lanes.submit(Job { command: Arc::new(command), key }).await
}
