//! The routes of the unread summary: one user's, its explanation, many users', and the reset that
//! answers with it.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::wanted::{KindName, KindNames};
use super::{ExplainOut, Summaries, UnreadSummary, UnreadSummaryOut, Wanted};
use crate::base::clock::Clock;
use crate::base::error::{Problem, Result};
use crate::base::ids::{Invalid, MAX_HEAD, Name, UserId};
use crate::db::Db;
use crate::engine::lanes::{Job, Lanes};
use crate::features::badges::{BadgeCommand, MAX_BADGES, ResetOut};
use crate::features::views::{MAX_VIEWS, ViewKey};
use crate::http::auth::Service;
use crate::http::body::{Body, count_within, in_range, present, unique_map};
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{PolledUser, UserOrMe, UserPath};
use crate::http::polling::{self, PolledValue, Polling, Resource};
use crate::http::served::Served;

/// What a query includes where it does not say.
const WITHOUT_FEED: &str = "counters,broadcasts,dots,chats,notifications";

/// What a query answers with.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The most users of a query.
pub const MAX_QUERY_USERS: usize = 500;

/// What the handlers of the summary work with.
#[derive(Debug)]
pub struct SummaryContext {
    pub lanes: Lanes,
    pub db: Db,
    /// The one way to read.
    pub summaries: Arc<Summaries>,
    pub polling: Arc<Polling>,
    pub clock: Clock,
}

/// The routes of the summary.
pub fn routes() -> OpenApiRouter<Served<SummaryContext>> {
    OpenApiRouter::new()
        .routes(routes!(get_unread_summary))
        .routes(routes!(reset_badges))
        .routes(routes!(query_badges))
        .routes(routes!(explain_badges))
}

/// The name of the route that clients poll; the router is not asked for it.
pub const POLL: &str = "/v1/users/{user}/badges";

/// Its handler.
pub fn poll(
    context: Served<SummaryContext>,
) -> impl tower::Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync {
    Handler::with_state(get_unread_summary, context)
}

/// What narrows a summary.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SummaryParams {
    /// The kinds to return, comma-separated. All by default.
    #[param(nullable = false, inline, value_type = Option<KindNames>)]
    include: Option<String>,
    /// The highest count and total to return. `capped` then shows which counts are higher.
    #[param(nullable = false, minimum = 1, maximum = 1_000_000_000)]
    cap: Option<i64>,
    /// The views to return, comma-separated, each as name, ':' and id; at most 50.
    #[param(
        nullable = false,
        example = "home:1,forum:9",
        pattern = "^[a-z0-9][a-z0-9_.-]{0,63}:[A-Za-z0-9._:-]{1,128}(,[a-z0-9][a-z0-9_.-]{0,63}:[A-Za-z0-9._:-]{1,128}){0,49}$"
    )]
    views: Option<String>,
    /// Hold the request for up to this many seconds until the response differs from the one that
    /// `If-None-Match` names; then return 304. Requires that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// A head that a user saw.
#[derive(Debug, ToSchema)]
#[schema(value_type = i64, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 120)]
pub struct ShownHead(pub i64);

/// How far a user has read several badges.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBadgesIn {
    /// The heads that the user saw, by badge; other badges stay unchanged. By default, all counters
    /// are marked as read.
    #[serde(default, deserialize_with = "marks_by_badge")]
    #[schema(nullable = false, value_type = Option<BTreeMap<Name, ShownHead>>, example = json!({"mention": 120, "like": 9}))]
    up_to: Option<BTreeMap<Name, i64>>,
}

/// The users to query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryBadgesIn {
    /// The users, without duplicates.
    #[schema(value_type = HashSet<UserId>, min_items = 1, max_items = 500)]
    user_ids: Vec<UserId>,
    /// The kinds to return, as in a poll.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, value_type = Option<Vec<KindName>>, min_items = 1, example = json!(["counters"]))]
    include: Option<Vec<String>>,
    /// The highest count and total to return.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 1, maximum = 1_000_000_000, example = 99)]
    cap: Option<i64>,
}

/// The unread summaries, in the order of the request.
// For the document; `as_items` writes it.
#[derive(Debug, ToSchema)]
pub struct QueryBadgesOut<'a> {
    pub items: Vec<UnreadSummaryOut<'a>>,
}

/// Writes these bodies as [`QueryBadgesOut`].
fn as_items(bodies: &[Bytes]) -> Vec<u8> {
    const AROUND: usize = r#"{"items":[]}"#.len();
    let mut out = Vec::with_capacity(AROUND + bodies.iter().map(|body| body.len() + 1).sum::<usize>());
    out.extend_from_slice(br#"{"items":["#);
    for (at, body) in bodies.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(body);
    }
    out.extend_from_slice(b"]}");
    out
}

fn marks_by_badge<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<Name, i64>>, D::Error> {
    unique_map(deserializer).map(Some)
}

/// Reads `home:1,forum:9`.
fn view_keys(text: &str) -> Result<Vec<ViewKey>, String> {
    if text.split(',').nth(MAX_VIEWS).is_some() {
        return Err(format!("must have at most {MAX_VIEWS} views"));
    }
    let views = text.split(',').map(|view| view.parse().map_err(|rule: Invalid| rule.0.to_owned())).collect::<Result<Vec<ViewKey>, _>>()?;
    let mut seen = HashSet::with_capacity(views.len());
    match views.iter().find(|view| !seen.insert(&view.stream)) {
        Some(twice) => Err(format!("must not repeat {}", twice.stream)),
        None => Ok(views),
    }
}

/// Poll a user's unread summary
///
/// Returns all unread counts in one response. Send its `ETag` back as `If-None-Match`: while
/// nothing has changed, the response is 304 without a body.
#[utoipa::path(get, path = "/v1/users/{user}/badges", tag = "badges",
    params(("user" = UserOrMe, Path), SummaryParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = UnreadSummaryOut, headers(
            ("ETag" = String, description = "The version of the response; omitted if degraded"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_unread_summary(
    state: Served<SummaryContext>,
    PolledUser(user): PolledUser,
    Query(params): Query<SummaryParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let wanted = Wanted::parse(params.include.as_deref(), params.cap).map_err(|(name, detail)| Problem::query(name, detail))?;
    let wait = polling::wait_of(params.wait)?;
    let views = params.views.as_deref().map(view_keys).transpose();
    let views = views.map_err(|why| Problem::query("views", why))?.unwrap_or_default();
    let read = |seen| {
        let (state, views) = (state.clone(), &views);
        async move {
            let value = state.summaries.read_with(user, wanted, views, seen).await;
            value.alive()?;
            let (version, changes_at) = (value.version(), value.counts.changes_at());
            Ok(PolledValue { value, version, changes_at })
        }
    };
    let write = |value: &UnreadSummary| state.summaries.body(value);
    polling::poll(&state.polling, user, wait, &tags, Resource { read, write }).await
}

/// Explain a user's unread summary
///
/// Returns the terms of each count, read from the database: channels and creators with head, mark
/// and difference.
#[utoipa::path(get, path = "/v1/users/{user}/badges/explain", tag = "badges",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = ExplainOut)))]
async fn explain_badges(state: Served<SummaryContext>, path: UserPath, _: Query<NoParams>) -> Result<Response> {
    let mut response = Json(state.summaries.explain(path.user).await?).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    Ok(response)
}

/// Mark badges as read
///
/// Resets all counters, or several counters up to the heads that the user saw. Returns the unread
/// summary.
#[utoipa::path(post, path = "/v1/users/{user}/badges/reset", tag = "badges",
    params(("user" = UserOrMe, Path)),
    request_body(content = ResetBadgesIn, description = "Optional. Default: all counters"),
    responses(
        (status = 200, body = UnreadSummaryOut)))]
async fn reset_badges(state: Served<SummaryContext>, path: UserPath, body: Body<ResetBadgesIn>) -> Result<Response> {
    if let Some(up_to) = &body.value.up_to {
        if up_to.len() > MAX_BADGES {
            return Err(Problem::invalid("/up_to", format!("must have at most {MAX_BADGES} badges")).into());
        }
        for (badge, up_to) in up_to {
            in_range(*up_to, 0, MAX_HEAD, || format!("/up_to/{badge}"))?;
        }
    }
    let user = path.user;
    let answer =
        state.lanes.submit(Job { command: Arc::new(BadgeCommand::ResetMany { user, up_to: body.value.up_to }), key: None }).await?;
    let written: ResetOut = answer.value()?;
    state.summaries.after_write(user, written.revision).await
}

/// Get the unread summaries of many users
///
/// Meant for push notification senders that show the number on the app icon. The response is never
/// degraded; the server returns 503 instead.
#[utoipa::path(post, path = "/v1/badges/query", tag = "badges",
    request_body = QueryBadgesIn,
    responses(
        (status = 200, body = QueryBadgesOut)))]
async fn query_badges(state: Served<SummaryContext>, _service: Service, body: Body<QueryBadgesIn>) -> Result<Response> {
    let users = body.value.user_ids;
    count_within(users.len(), MAX_QUERY_USERS, "/user_ids")?;
    let mut seen = HashSet::with_capacity(users.len());
    if let Some(at) = users.iter().position(|user| !seen.insert(*user)) {
        return Err(Problem::invalid(format!("/user_ids/{at}"), "must not be repeated").into());
    }
    if body.value.include.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::invalid("/include", "must have at least one kind, or be omitted").into());
    }
    for (at, kind) in body.value.include.iter().flatten().enumerate() {
        let known = if kind.contains(',') {
            Err("must be a single kind".to_owned())
        } else {
            Wanted::parse(Some(kind), None).map_err(|(_, why)| why)
        };
        known.map_err(|why| Problem::invalid(format!("/include/{at}"), why))?;
    }
    // The feed costs more than the rest together, and no icon shows it.
    let include = body.value.include.map_or_else(|| WITHOUT_FEED.to_owned(), |kinds| kinds.join(","));
    let wanted = Wanted::parse(Some(&include), body.value.cap).map_err(|(name, detail)| Problem::invalid(format!("/{name}"), detail))?;
    let bodies = state.summaries.bodies(&users, wanted).await?;
    Ok(([(header::CONTENT_TYPE, JSON)], as_items(&bodies)).into_response())
}
