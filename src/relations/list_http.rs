//! The routes of relations that read: lists, counts, look-ups.
//!
//! Who may see what: a secret follow, who is special and who is blocked are for the user and for services; everybody else is shown the same lists and counts as if
//! they were not there. Only the number of followers is one for everybody.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::lists::{self, List};
use super::{Counts, Listed, Pair, Related, RelationOut, StandingOut};
use crate::auth::Service;
use crate::cache::Revision;
use crate::clock::UnixMs;
use crate::error::{Code, Problem, ProblemOut, Result};
use crate::http::body::Body;
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{AnyUserPath, UserOrMe, UserPath};
use crate::ids::{Invalid, UserId};
use crate::page::{self, MAX_LIMIT, PageOut, PageParams, Position};
use crate::poll::{self, MAX_WAIT_S, Reading, Resource, Version};
use crate::sheet::{self, State as SheetState, store_away};
use crate::state::AppState;

/// The most users of one look-up.
pub const MAX_LOOK_UPS: usize = 100;

/// The most pairs of one query.
pub const MAX_PAIRS: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(list_following))
        .routes(routes!(list_followers))
        .routes(routes!(list_mutuals))
        .routes(routes!(list_special))
        .routes(routes!(list_blocks))
        .routes(routes!(get_following_ids))
        .routes(routes!(get_blocks_ids))
        .routes(routes!(get_relations))
        .routes(routes!(query_relations))
        .routes(routes!(get_relation_counts))
}

/// Which follows are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Those that everybody may see.
    Public,
    /// Those that only the user may see.
    Secret,
    /// Both.
    All,
}

/// Which page of whom a user follows.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FollowingParams {
    /// How many entries at most.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(nullable = false, pattern = "^1[0-9a-f]{32}$")]
    cursor: Option<String>,
    /// Which follows: for the user and services all, unless it is named; for everybody else those that are public.
    #[param(nullable = false, inline)]
    visibility: Option<Shown>,
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedUserOut {
    /// Who.
    pub user_id: UserId,
    /// Since when one follows the other, or blocks the other.
    pub since: UnixMs,
    /// Whether both follow each other, neither in secret.
    pub mutual: bool,
    /// In a user's own list: whether the other is special to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub special: Option<bool>,
    /// In a user's own list: whether only the two of them see the follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<bool>,
}

/// A whole list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WholeListOut {
    /// Who is on it, newest first.
    ids: Vec<UserId>,
    /// How many.
    #[schema(minimum = 0, example = 120)]
    count: usize,
    /// A store is away, and this is the list as it was last known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<bool>,
}

/// How long to hold a poll.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WholeListParams {
    /// With `If-None-Match`: hold the request for up to so many seconds while the answer is what the client has.
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

/// How many there are on a user's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationCountsOut {
    /// How many the user follows, as far as the caller may see.
    #[schema(minimum = 0, example = 120)]
    pub following: i64,
    /// How many follow the user.
    #[schema(minimum = 0, example = 98)]
    pub followers: i64,
    /// How many follow the user and are followed back, neither in secret.
    #[schema(minimum = 0, example = 40)]
    pub mutuals: i64,
    /// For the user and services: how many of those that the user follows are secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 3)]
    pub secret: Option<i64>,
    /// For the user and services: how many of them are special.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 5)]
    pub special: Option<i64>,
    /// For the user and services: how many the user blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 1)]
    pub blocked: Option<i64>,
}

impl RelationCountsOut {
    fn new(counts: &Counts, own: bool) -> Self {
        let Counts { following, followers, mutuals, secret, special, blocked } = *counts;
        let own_only = |count: i64| own.then_some(count);
        Self {
            following: if own { following } else { following - secret },
            followers,
            mutuals,
            secret: own_only(secret),
            special: own_only(special),
            blocked: own_only(blocked),
        }
    }
}

/// Which of the manner of a follow an entry shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Secret,
    All,
}

/// List whom a user follows
///
/// Newest first. Everybody but the user and services is shown what is public.
#[utoipa::path(get, path = "/v1/users/{user}/following", tag = "relations",
    params(("user" = UserOrMe, Path), FollowingParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_following(
    State(state): State<AppState>,
    path: AnyUserPath,
    uri: Uri,
    Query(params): Query<FollowingParams>,
) -> Result<Response> {
    let own = path.is_own();
    let which = match (own, params.visibility) {
        (false, Some(Shown::Secret | Shown::All)) => {
            return Err(Problem::new(Code::Forbidden, "Only the user and services may ask for follows that are not public.").into());
        }
        (false, _) => List::PublicFollowing,
        (true, None | Some(Shown::All)) => List::Following,
        (true, Some(Shown::Public)) => List::PublicFollowing,
        (true, Some(Shown::Secret)) => List::SecretFollowing,
    };
    let page = PageParams { limit: params.limit, cursor: params.cursor };
    list(&state, &path, which, if own { Told::All } else { Told::Nothing }, &uri, &page).await
}

/// List who follows a user
///
/// Newest first. The user and services are shown secret followers too.
#[utoipa::path(get, path = "/v1/users/{user}/followers", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_followers(State(state): State<AppState>, path: AnyUserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    let (which, told) = if path.is_own() { (List::Followers, Told::Secret) } else { (List::PublicFollowers, Told::Nothing) };
    list(&state, &path, which, told, &uri, &params).await
}

/// List mutual follows
///
/// Whom the user follows and who follows back, neither in secret; by when the user followed, newest first.
#[utoipa::path(get, path = "/v1/users/{user}/mutuals", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_mutuals(State(state): State<AppState>, path: AnyUserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    list(&state, &path, List::Mutuals, Told::Nothing, &uri, &params).await
}

/// List who is special to a user
///
/// Newest first. For the user and services.
#[utoipa::path(get, path = "/v1/users/{user}/special", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_special(State(state): State<AppState>, path: UserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    own_list(&state, &path, List::Special, Told::All, &uri, &params).await
}

/// List whom a user blocks
///
/// Newest first. For the user and services.
#[utoipa::path(get, path = "/v1/users/{user}/blocks", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_blocks(State(state): State<AppState>, path: UserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    own_list(&state, &path, List::Blocks, Told::Nothing, &uri, &params).await
}

/// A page for whoever asks: strangers get first pages from memory.
async fn list(state: &AppState, path: &AnyUserPath, list: List, told: Told, uri: &Uri, params: &PageParams) -> Result<Response> {
    let wanted = params.wanted()?;
    if path.is_own() || wanted.after != Position::TOP {
        let rows = lists::page(&state.db, list, path.user, wanted.after, wanted.rows()).await?;
        return respond(uri, wanted, &rows, told);
    }
    let most = i64::from(MAX_LIMIT) + 1;
    let mut rows = state.hot.page(path.user, list, || lists::page(&state.db, list, path.user, Position::TOP, most)).await?;
    rows.truncate(usize::try_from(wanted.rows()).unwrap_or(usize::MAX));
    respond(uri, wanted, &rows, told)
}

async fn own_list(state: &AppState, path: &UserPath, list: List, told: Told, uri: &Uri, params: &PageParams) -> Result<Response> {
    let wanted = params.wanted()?;
    let rows = lists::page(&state.db, list, path.user, wanted.after, wanted.rows()).await?;
    respond(uri, wanted, &rows, told)
}

fn respond(uri: &Uri, wanted: page::Wanted, rows: &[Listed], told: Told) -> Result<Response> {
    let position = |row: &Listed| Position { at: row.since.0, id: row.user.get() };
    page::respond(uri, wanted, rows, position, |row| ListedUserOut {
        user_id: row.user,
        since: row.since,
        mutual: row.mutual,
        special: (told == Told::All).then_some(row.manner.special),
        secret: (told != Told::Nothing).then_some(row.manner.secret),
    })
}

/// Poll all whom a user follows
///
/// The whole list at once, newest first. Send the answer's `ETag` back as `If-None-Match`: 304 without a body while nothing changed.
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
    let wait = params.wait.unwrap_or(0);
    if wait > MAX_WAIT_S {
        return Err(Problem::new(Code::InvalidQuery, "See errors.").at("wait", format!("{wait} is not from 0 to {MAX_WAIT_S}")).into());
    }
    let read = |seen: Version| read_whole(state, user, related, seen.revision);
    poll::poll(state, user, wait, tags, Resource { read, write: poll::json::<WholeListOut> }).await
}

/// The user's entry names the version of the list; where a store is away, the list as it was last known here.
async fn read_whole(state: &AppState, user: UserId, related: Related, at_least: Revision) -> Result<Reading<WholeListOut>> {
    let out = |ids: &[UserId], degraded| WholeListOut { ids: ids.to_vec(), count: ids.len(), degraded };
    let SheetState::Current(entry) = state.sheets.read(user, at_least).await else {
        let known = state.looks.last_known(user, related).await.ok_or_else(store_away)?;
        return Ok(Reading { value: out(&known.ids, Some(true)), version: None });
    };
    let versions = sheet::list_versions(&entry);
    let version = match related {
        Related::Following => versions.following,
        Related::Blocks => versions.blocks,
    };
    let list = state.looks.whole(user, related, version).await?;
    Ok(Reading { value: out(&list.ids, None), version: Some(Version::from(list.version)) })
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
    let others = ids(&params.ids).map_err(|why| Problem::new(Code::InvalidQuery, "See errors.").at("ids", why))?;
    let pairs: Vec<_> = others.iter().map(|other| Pair { follower: path.user, followee: *other }).collect();
    let standings = state.looks.look(&pairs).await?;
    let items = others.iter().zip(standings).map(|(other, standing)| RelationOut::new(*other, standing)).collect();
    Ok(fresh(Json(RelationsOut { items })))
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

/// Count relations
///
/// Each count is the length of its list, as the user or a service walks it.
#[utoipa::path(get, path = "/v1/users/{user}/relation-counts", tag = "relations",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = RelationCountsOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_relation_counts(State(state): State<AppState>, path: AnyUserPath, _: Query<NoParams>) -> Result<Response> {
    let own = path.is_own();
    let read = || lists::counts(&state.db, path.user);
    let counts = if own { read().await? } else { state.hot.counts(path.user, read).await? };
    Ok(fresh(Json(RelationCountsOut::new(&counts, own))))
}

/// What must be asked for anew each time.
fn fresh(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))], body).into_response()
}
