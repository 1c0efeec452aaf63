//! The routes of relations that read whole lists, and what users are to each other.

use std::sync::Arc;

use axum::response::Response;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::RelationContext;
use super::lists_part::list_versions;
use super::lookup_batch::Looked;
use super::{Pair, PairStateOut, Related, RelationOut, WholeList};
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::{Invalid, UserId};
use crate::cache::Revision;
use crate::engine::entries::State;
use crate::engine::heads::Versions;
use crate::engine::marks::Kind;
use crate::http::answer::no_cache;
use crate::http::auth::Service;
use crate::http::body::{Body, objects};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::polling::{self, PolledValue, Resource, Seen, Version, WaitParams};
use crate::http::served::Served;

/// The most users of one look-up.
pub const MAX_LOOK_UPS: usize = 100;

/// The most pairs of one query.
pub const MAX_PAIRS: usize = 1000;

pub fn routes() -> OpenApiRouter<Served<RelationContext>> {
    OpenApiRouter::new()
        .routes(routes!(get_following_ids))
        .routes(routes!(get_blocks_ids))
        .routes(routes!(get_mutes_ids))
        .routes(routes!(get_relations))
        .routes(routes!(query_relations))
}

/// A complete list of user ids.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WholeListOut {
    /// The user ids, newest first.
    #[serde(serialize_with = "write_ids")]
    #[schema(value_type = Vec<UserId>)]
    ids: Arc<WholeList>,
    /// The number of ids.
    #[schema(minimum = 0, example = 120)]
    count: usize,
    /// True if a store is unavailable and this is the last known list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<bool>,
}

/// From where it is kept, as a list may be long.
fn write_ids<S: Serializer>(list: &Arc<WholeList>, serializer: S) -> Result<S::Ok, S::Error> {
    list.ids.serialize(serializer)
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

/// The relations of other users to a user, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationsOut {
    /// One relation for each id.
    pub items: Vec<RelationOut>,
}

/// A pair of users.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PairIn {
    /// The user.
    user_id: UserId,
    /// The other user.
    target_id: UserId,
}

/// The pairs to query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryRelationsIn {
    /// Up to 1000 pairs.
    #[schema(min_items = 1, max_items = 1000)]
    #[serde(deserialize_with = "objects")]
    pairs: Vec<PairIn>,
}

/// The relation between two users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PairOut {
    /// The user.
    user_id: UserId,
    /// The other user.
    target_id: UserId,
    /// The relation.
    #[serde(flatten)]
    #[schema(inline)]
    pair_state: PairStateOut,
}

/// The relations of the pairs, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueryRelationsOut {
    /// One relation for each pair.
    items: Vec<PairOut>,
}

/// Poll the ids of all users that a user follows
///
/// Returns the complete list, newest first. Send the `ETag` back as `If-None-Match`: while nothing
/// has changed, the response is 304 without a body. A list of more than `HEADMARK_MAX_WHOLE_LIST`
/// users returns 409 `too_many`; use the paginated list instead.
#[utoipa::path(get, path = "/v1/users/{user}/following/ids", tag = "relations",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = WholeListOut, headers(
            ("ETag" = String, description = "The version of the list; omitted if degraded"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_following_ids(
    state: Served<RelationContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    whole(&state, path.user, Related::Following, &params, &tags).await
}

/// Poll the ids of all users that a user blocks
///
/// Returns the complete list, newest first, like `following/ids`.
#[utoipa::path(get, path = "/v1/users/{user}/blocks/ids", tag = "relations",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = WholeListOut, headers(
            ("ETag" = String, description = "The version of the list; omitted if degraded"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_blocks_ids(
    state: Served<RelationContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    whole(&state, path.user, Related::Blocks, &params, &tags).await
}

/// Poll the ids of all users that a user mutes
///
/// Returns the complete list, newest first, like `following/ids`. A mute that ends leaves the list at
/// its time.
#[utoipa::path(get, path = "/v1/users/{user}/mutes/ids", tag = "relations",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = WholeListOut, headers(
            ("ETag" = String, description = "The version of the list; omitted if degraded"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_mutes_ids(
    state: Served<RelationContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    whole(&state, path.user, Related::Mutes, &params, &tags).await
}

async fn whole(state: &RelationContext, user: UserId, related: Related, params: &WaitParams, tags: &IfNoneMatch) -> Result<Response> {
    let wait = polling::wait_of(params.wait)?;
    let read = |seen: Seen| read_whole(state, user, related, seen.revision());
    polling::poll_own(&state.polling, user, wait, tags, Resource { read, write: polling::json::<WholeListOut> }).await
}

/// The user's entry names the version of the list; where a store is away, the list as it was last
/// known here.
async fn read_whole(state: &RelationContext, user: UserId, related: Related, at_least: Revision) -> Result<PolledValue<WholeListOut>> {
    let out = |list: Arc<WholeList>, degraded| WholeListOut { count: list.ids.len(), ids: list, degraded };
    let State::Current(entry) = state.entries.read(user, at_least).await else {
        let known = state.looks.last_known(user, related).await.ok_or_else(Error::store_unavailable)?;
        return Ok(PolledValue { value: out(known.at(state.clock.now()), Some(true)), version: None, changes_at: None });
    };
    let versions = list_versions(&entry);
    let version = match related {
        Related::Following => versions.following,
        Related::Blocks => versions.blocks,
        Related::Mutes => versions.mutes,
    };
    let list = state.looks.whole(user, related, version).await?;
    let now = state.clock.now();
    let mut ended = Versions::default();
    for (id, _) in list.ends.iter().filter(|(_, until)| *until <= now) {
        ended.add_ended(Kind::Counter, id.get().cast_unsigned());
    }
    let changes_at = list.ends.iter().map(|(_, until)| *until).filter(|until| *until > now).min();
    let version = Version::new(list.version.revision, ended);
    Ok(PolledValue { value: out(list.at(now), None), version: Some(version), changes_at })
}

/// Look up a user's relations
///
/// Returns the relation of each of up to 100 other users to the user, in the order of the request.
#[utoipa::path(get, path = "/v1/users/{user}/relations", tag = "relations",
    params(("user" = UserOrMe, Path), RelationsParams),
    responses(
        (status = 200, body = RelationsOut)))]
async fn get_relations(state: Served<RelationContext>, path: UserPath, Query(params): Query<RelationsParams>) -> Result<Response> {
    let others = ids(&params.ids, MAX_LOOK_UPS).map_err(|why| Problem::query("ids", why))?;
    state.entries.refuse_erased_among(&others, |_| "ids".to_owned()).await?;
    let looked = state.looks.look_of(path.user, &others, async || own_version(&state, path.user).await).await?;
    let pairs: Vec<_> = others.iter().map(|other| Pair { follower: path.user, followee: *other }).collect();
    let muting = state.looks.muting(&pairs, &looked, state.clock.now()).await?;
    let told = others.iter().zip(looked).zip(muting);
    let items = told.map(|((other, looked), muting)| RelationOut::new(*other, looked.pair_state(), muting)).collect();
    Ok(no_cache(&RelationsOut { items }))
}

/// The revision at which the user did something last about others, as the user's entry names it;
/// None where a store is away.
pub(super) async fn own_version(state: &RelationContext, user: UserId) -> Option<Revision> {
    match state.entries.read(user, 0).await {
        State::Current(entry) => Some(list_versions(&entry).relations()),
        _ => None,
    }
}

/// Reads `1,2,3`, of which there are at most so many.
pub(super) fn ids(text: &str, most: usize) -> Result<Vec<UserId>, String> {
    if text.split(',').nth(most).is_some() {
        return Err(format!("must have at most {most} ids"));
    }
    text.split(',').map(|id| id.parse().map_err(|rule: Invalid| rule.0.to_owned())).collect()
}

/// Query relations of many pairs
///
/// Returns the relation between the users of each of up to 1000 pairs, in the order of the request.
#[utoipa::path(post, path = "/v1/relations/query", tag = "relations",
    request_body = QueryRelationsIn,
    responses(
        (status = 200, body = QueryRelationsOut)))]
async fn query_relations(state: Served<RelationContext>, _: Service, body: Body<QueryRelationsIn>) -> Result<Response> {
    let asked = body.value.pairs;
    if !(1..=MAX_PAIRS).contains(&asked.len()) {
        return Err(Problem::invalid("/pairs", format!("must have between 1 and {MAX_PAIRS} pairs")).into());
    }
    let pairs: Vec<_> = asked.iter().map(|pair| Pair { follower: pair.user_id, followee: pair.target_id }).collect();
    let named: Vec<_> = asked.iter().flat_map(|pair| [pair.user_id, pair.target_id]).collect();
    let pointer = |at: usize| format!("/pairs/{}/{}", at / 2, if at.is_multiple_of(2) { "user_id" } else { "target_id" });
    state.entries.refuse_erased_among(&named, pointer).await?;
    let looked = state.looks.look(&pairs).await?;
    let muting = state.looks.muting(&pairs, &looked, state.clock.now()).await?;
    let item = |((pair, looked), muting): ((&PairIn, Looked), bool)| PairOut {
        user_id: pair.user_id,
        target_id: pair.target_id,
        pair_state: PairStateOut::new(looked.pair_state(), muting),
    };
    Ok(no_cache(&QueryRelationsOut { items: asked.iter().zip(looked).zip(muting).map(item).collect() }))
}
