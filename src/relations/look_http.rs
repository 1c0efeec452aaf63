//! The routes of relations that read whole lists, and what users are to each other.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::list_http::fresh;
use super::{Pair, Related, RelationOut, StandingOut, WholeList};
use crate::auth::Service;
use crate::cache::Revision;
use crate::error::{Problem, ProblemOut, Result};
use crate::http::body::{Body, objects};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::ids::{Invalid, UserId};
use crate::poll::{self, Reading, Resource, Seen, Version};
use crate::sheet::{self, State as SheetState, store_away};
use crate::state::AppState;

/// The most users of one look-up.
pub const MAX_LOOK_UPS: usize = 100;

/// The most pairs of one query.
pub const MAX_PAIRS: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(get_following_ids))
        .routes(routes!(get_blocks_ids))
        .routes(routes!(get_relations))
        .routes(routes!(query_relations))
}

/// A whole list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WholeListOut {
    /// Who is on it, newest first.
    #[serde(serialize_with = "write_ids")]
    #[schema(value_type = Vec<UserId>)]
    ids: Arc<WholeList>,
    /// How many.
    #[schema(minimum = 0, example = 120)]
    count: usize,
    /// A store is away, and this is the list as it was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<bool>,
}

/// From where it is kept, as a list may be long.
fn write_ids<S: Serializer>(list: &Arc<WholeList>, serializer: S) -> Result<S::Ok, S::Error> {
    list.ids.serialize(serializer)
}

/// How long to hold a poll.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WholeListParams {
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304. Needs that header.
    #[param(nullable = false, minimum = 0, maximum = 60, default = 0)]
    wait: Option<u32>,
}

/// Whom a look-up is about.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RelationsParams {
    /// The other users, comma-separated, at most 100.
    #[param(example = "1,2,3", pattern = "^[1-9][0-9]{0,18}(,[1-9][0-9]{0,18}){0,99}$")]
    ids: String,
}

/// What others are to a user, in the order asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationsOut {
    /// One for each id.
    pub items: Vec<RelationOut>,
}

/// Two users.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PairIn {
    /// The one whose relation it is.
    user_id: UserId,
    /// The other.
    target_id: UserId,
}

/// Whom a query is about.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryRelationsIn {
    /// Up to 1000 pairs.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    pairs: Vec<PairIn>,
}

/// What two users are to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PairOut {
    /// The one whose relation it is.
    user_id: UserId,
    /// The other.
    target_id: UserId,
    /// What they are to each other.
    #[serde(flatten)]
    #[schema(inline)]
    standing: StandingOut,
}

/// What the pairs are to each other, in the order asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueryRelationsOut {
    /// One for each pair.
    items: Vec<PairOut>,
}

/// Poll all whom a user follows
///
/// The whole list at once, newest first. Send the answer's `ETag` back as `If-None-Match`: 304 without a body while nothing changed. A list of more than
/// `HEADMARK_MAX_WHOLE_LIST` users gets 409 `too_many`, and is read page by page.
#[utoipa::path(get, path = "/v1/users/{user}/following/ids", tag = "relations",
    params(("user" = UserOrMe, Path), WholeListParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = WholeListOut, headers(
            ("ETag" = String, description = "The version of the list; none when degraded"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_following_ids(
    State(state): State<AppState>,
    path: UserPath,
    Query(params): Query<WholeListParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    whole(&state, path.user, Related::Following, &params, &tags).await
}

/// Poll all whom a user blocks
///
/// The whole list at once, newest first, as `following/ids`.
#[utoipa::path(get, path = "/v1/users/{user}/blocks/ids", tag = "relations",
    params(("user" = UserOrMe, Path), WholeListParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = WholeListOut, headers(
            ("ETag" = String, description = "The version of the list; none when degraded"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_blocks_ids(
    State(state): State<AppState>,
    path: UserPath,
    Query(params): Query<WholeListParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    whole(&state, path.user, Related::Blocks, &params, &tags).await
}

async fn whole(state: &AppState, user: UserId, related: Related, params: &WholeListParams, tags: &IfNoneMatch) -> Result<Response> {
    let wait = poll::wait_of(params.wait)?;
    let read = |seen: Seen| read_whole(state, user, related, seen.revision());
    poll::poll(state, user, wait, tags, Resource { read, write: poll::json::<WholeListOut> }).await
}

/// The user's entry names the version of the list; where a store is away, the list as it was last known here.
async fn read_whole(state: &AppState, user: UserId, related: Related, at_least: Revision) -> Result<Reading<WholeListOut>> {
    let out = |list: Arc<WholeList>, degraded| WholeListOut { count: list.ids.len(), ids: list, degraded };
    let SheetState::Current(entry) = state.sheets.read(user, at_least).await else {
        let known = state.looks.last_known(user, related).await.ok_or_else(store_away)?;
        return Ok(Reading { value: out(known, Some(true)), version: None });
    };
    let versions = sheet::list_versions(&entry);
    let version = match related {
        Related::Following => versions.following,
        Related::Blocks => versions.blocks,
    };
    let list = state.looks.whole(user, related, version).await?;
    let version = Version::from(list.version);
    Ok(Reading { value: out(list, None), version: Some(version) })
}

/// Look up relations
///
/// What each of up to 100 others is to the user, in the order asked.
#[utoipa::path(get, path = "/v1/users/{user}/relations", tag = "relations",
    params(("user" = UserOrMe, Path), RelationsParams),
    responses(
        (status = 200, body = RelationsOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_relations(State(state): State<AppState>, path: UserPath, Query(params): Query<RelationsParams>) -> Result<Response> {
    let others = ids(&params.ids).map_err(|why| Problem::query("ids", why))?;
    let standings = state.looks.look_of(path.user, &others, async || own_version(&state, path.user).await).await?;
    let items = others.iter().zip(standings).map(|(other, standing)| RelationOut::new(*other, standing)).collect();
    Ok(fresh(Json(RelationsOut { items })))
}

/// The revision at which the user did something last about others, as the user's entry names it; None where a store is away.
async fn own_version(state: &AppState, user: UserId) -> Option<Revision> {
    match state.sheets.read(user, 0).await {
        SheetState::Current(entry) => Some(sheet::list_versions(&entry).relations()),
        _ => None,
    }
}

/// Reads `1,2,3`.
fn ids(text: &str) -> Result<Vec<UserId>, String> {
    if text.split(',').nth(MAX_LOOK_UPS).is_some() {
        return Err(format!("more than {MAX_LOOK_UPS} ids"));
    }
    text.split(',').map(|id| id.parse().map_err(|rule: Invalid| rule.0.to_owned())).collect()
}

/// Query relations
///
/// What the two of each of up to 1000 pairs are to each other, in the order asked.
#[utoipa::path(post, path = "/v1/relations/query", tag = "relations",
    request_body = QueryRelationsIn,
    responses(
        (status = 200, body = QueryRelationsOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn query_relations(State(state): State<AppState>, _: Service, body: Body<QueryRelationsIn>) -> Result<Response> {
    let asked = body.value.pairs;
    if !(1..=MAX_PAIRS).contains(&asked.len()) {
        return Err(Problem::invalid("/pairs", format!("{} pairs are not from 1 to {MAX_PAIRS}", asked.len())).into());
    }
    let pairs: Vec<_> = asked.iter().map(|pair| Pair { follower: pair.user_id, followee: pair.target_id }).collect();
    let standings = state.looks.look(&pairs).await?;
    let item = |(pair, standing): (&PairIn, _)| PairOut {
        user_id: pair.user_id,
        target_id: pair.target_id,
        standing: StandingOut::from(standing),
    };
    Ok(fresh(Json(QueryRelationsOut { items: asked.iter().zip(standings).map(item).collect() })))
}
