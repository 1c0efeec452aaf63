//! The routes of relations that read lists, page by page, and counts.
//!
//! Who may see what: a secret follow, who is special and who is blocked are for the user and for
//! services; everybody else is shown the same lists and counts as if they were not there. Only the
//! number of followers is one for everybody. A user may hide the lists (`lists` in the settings); the
//! counts stay visible.

use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::RelationContext;
use super::lists::{self, List, ShownPage};
use super::lookup_http::own_version;
use super::{Counts, Listed};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem, Result};
use crate::base::ids::UserId;
use crate::db::{Db, DbResult};
use crate::engine::marks::ListVisibility;
use crate::http::answer::no_cache;
use crate::http::auth::Caller;
use crate::http::pages::{self, MAX_LIMIT, PageOut, PageParams, Position};
use crate::http::params::{NoParams, Query};
use crate::http::path::{AnyUserPath, UserOrMe, UserPath};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<RelationContext>> {
    OpenApiRouter::new()
        .routes(routes!(list_following))
        .routes(routes!(list_followers))
        .routes(routes!(list_mutuals))
        .routes(routes!(list_special))
        .routes(routes!(list_blocks))
        .routes(routes!(get_relation_counts))
}

/// The follows to list.
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
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
    /// The follows to return. By default, the user and services get all follows; other callers get
    /// public ones.
    #[param(nullable = false, inline)]
    visibility: Option<Shown>,
}

/// A user in a list of relations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedUserOut {
    /// The user.
    pub user_id: UserId,
    /// When the follow or the block began.
    pub since: UnixMs,
    /// Whether the two users follow each other, neither in secret.
    pub mutual: bool,
    /// In a user's own list: whether the other user is special to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub special: Option<bool>,
    /// In a user's own list: whether the follow is visible only to the two users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub secret: Option<bool>,
}

/// The lengths of a user's lists of relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RelationCountsOut {
    /// The number of users that the user follows, as far as the caller can see them.
    #[schema(minimum = 0, example = 120)]
    pub following: i64,
    /// The number of followers.
    #[schema(minimum = 0, example = 98)]
    pub followers: i64,
    /// The number of mutual follows, neither in secret.
    #[schema(minimum = 0, example = 40)]
    pub mutuals: i64,
    /// For the user and services: the number of secret follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 3)]
    pub secret: Option<i64>,
    /// For the user and services: the number of special users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 5)]
    pub special: Option<i64>,
    /// For the user and services: the number of users that the user blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 1)]
    pub blocked: Option<i64>,
    /// For the user and services: the number of open follow requests that the user has received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 2)]
    pub requests: Option<i64>,
    /// For the user and services: the number of open follow requests that the user has sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, example = 0)]
    pub requests_sent: Option<i64>,
}

impl RelationCountsOut {
    fn new(counts: &Counts, own: bool) -> Self {
        let Counts { following, followers, mutuals, secret, special, blocked, requests, requests_sent } = *counts;
        let own_only = |count: i64| own.then_some(count);
        Self {
            following: if own { following } else { following - secret },
            followers,
            mutuals,
            secret: own_only(secret),
            special: own_only(special),
            blocked: own_only(blocked),
            requests: own_only(requests),
            requests_sent: own_only(requests_sent),
        }
    }
}

/// Which of the options of a follow an entry shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Secret,
    All,
}

/// List the users that a user follows
///
/// Newest first. Only the user and services see secret follows.
#[utoipa::path(get, path = "/v1/users/{user}/following", tag = "relations",
    extensions(("x-problems" = json!(["lists_hidden"]))),
    params(("user" = UserOrMe, Path), FollowingParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_following(
    state: Served<RelationContext>,
    path: AnyUserPath,
    uri: Uri,
    Query(params): Query<FollowingParams>,
) -> Result<Response> {
    let own = path.is_own();
    let which = match (own, params.visibility) {
        (false, Some(Shown::Secret | Shown::All)) => {
            return Err(Problem::new(Code::Forbidden, "Only the user and services can list secret follows.").into());
        }
        (false, _) => List::PublicFollowing,
        (true, None | Some(Shown::All)) => List::Following,
        (true, Some(Shown::Public)) => List::PublicFollowing,
        (true, Some(Shown::Secret)) => List::SecretFollowing,
    };
    let page = PageParams { limit: params.limit, cursor: params.cursor };
    list(&state, &path, which, if own { Told::All } else { Told::Nothing }, &uri, &page).await
}

/// List a user's followers
///
/// Newest first. Only the user and services see secret followers.
#[utoipa::path(get, path = "/v1/users/{user}/followers", tag = "relations",
    extensions(("x-problems" = json!(["lists_hidden"]))),
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_followers(state: Served<RelationContext>, path: AnyUserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    let (which, told) = if path.is_own() { (List::Followers, Told::Secret) } else { (List::PublicFollowers, Told::Nothing) };
    list(&state, &path, which, told, &uri, &params).await
}

/// List mutual follows
///
/// Returns users that the user follows and who follow back, neither in secret. Sorted by when the
/// user followed, newest first.
#[utoipa::path(get, path = "/v1/users/{user}/mutuals", tag = "relations",
    extensions(("x-problems" = json!(["lists_hidden"]))),
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_mutuals(state: Served<RelationContext>, path: AnyUserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    list(&state, &path, List::Mutuals, Told::Nothing, &uri, &params).await
}

/// List the users who are special to a user
///
/// Newest first. Available to the user and to services.
#[utoipa::path(get, path = "/v1/users/{user}/special", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_special(state: Served<RelationContext>, path: UserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    own_list(&state, &path, List::Special, Told::All, &uri, &params).await
}

/// List the users that a user blocks
///
/// Newest first. Available to the user and to services.
#[utoipa::path(get, path = "/v1/users/{user}/blocks", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_blocks(state: Served<RelationContext>, path: UserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    own_list(&state, &path, List::Blocks, Told::Nothing, &uri, &params).await
}

/// A page for anyone who asks: strangers get first pages from memory.
async fn list(state: &RelationContext, path: &AnyUserPath, list: List, told: Told, uri: &Uri, params: &PageParams) -> Result<Response> {
    let wanted = params.wanted(list.route(), path.user)?;
    if path.is_own() {
        let rows = state.entries.in_list_turn(lists::page(&state.db, list, path.user, wanted.after, wanted.rows())).await?;
        return respond(uri, wanted, &rows, told);
    }
    let read = |after, most| read_for_others(state, path.user, move |db| lists::page_for_others(db, list, path.user, after, most));
    let ShownPage { mut rows, visibility } = if wanted.after == Position::TOP {
        state.hot.page(path.user, list, || state.entries.in_list_turn(read(Position::TOP, i64::from(MAX_LIMIT) + 1))).await?
    } else {
        state.entries.in_list_turn(read(wanted.after, wanted.rows())).await?
    };
    must_see(state, path, visibility).await?;
    rows.truncate(usize::try_from(wanted.rows()).unwrap_or(usize::MAX));
    respond(uri, wanted, &rows, told)
}

/// Refuses callers whom the user's settings exclude. Followers in secret count: the user knows them.
async fn must_see(state: &RelationContext, path: &AnyUserPath, visibility: ListVisibility) -> Result<()> {
    let is_allowed = match (visibility, &path.caller) {
        (ListVisibility::All, _) => true,
        (ListVisibility::Followers, Caller::User { id }) => {
            let looked = state.looks.look_of(*id, &[path.user], async || own_version(state, *id).await).await?;
            looked.first().is_some_and(|looked| looked.pair_state().mine.options().is_some())
        }
        (ListVisibility::Followers | ListVisibility::Own, _) => false,
    };
    if is_allowed {
        return Ok(());
    }
    Err(Problem::new(Code::ListsHidden, "This user does not show whom the user follows, and who follows the user.").into())
}

/// Reads what strangers are shown of a user: from a replica too, unless this node has changed it
/// lately. What it has changed shows here at once.
async fn read_for_others<'s, T, F>(state: &'s RelationContext, user: UserId, read: impl Fn(&'s Db) -> F) -> DbResult<T>
where
    F: Future<Output = DbResult<T>>,
{
    if state.hot.has_changed_lately(user) { read(&state.db).await } else { state.pages.read(read).await }
}

async fn own_list(state: &RelationContext, path: &UserPath, list: List, told: Told, uri: &Uri, params: &PageParams) -> Result<Response> {
    let wanted = params.wanted(list.route(), path.user)?;
    let rows = state.entries.in_list_turn(lists::page(&state.db, list, path.user, wanted.after, wanted.rows())).await?;
    respond(uri, wanted, &rows, told)
}

fn respond(uri: &Uri, wanted: pages::Wanted, rows: &[Listed], told: Told) -> Result<Response> {
    let position = |row: &Listed| Position { at: row.since.0, id: row.user.get() };
    pages::respond(uri, wanted, rows, position, |row| ListedUserOut {
        user_id: row.user,
        since: row.since,
        mutual: row.mutual,
        special: (told == Told::All).then_some(row.options.special),
        secret: (told != Told::Nothing).then_some(row.options.secret),
    })
}

/// Count a user's relations
///
/// Each count is the length of the list that the caller can read. Only `followers` counts
/// everybody, secret followers too.
#[utoipa::path(get, path = "/v1/users/{user}/relation-counts", tag = "relations",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = RelationCountsOut)))]
async fn get_relation_counts(state: Served<RelationContext>, path: AnyUserPath, _: Query<NoParams>) -> Result<Response> {
    let own = path.is_own();
    let counts = if own {
        state.entries.in_list_turn(lists::counts(&state.db, path.user)).await?
    } else {
        let read = || state.entries.in_list_turn(read_for_others(&state, path.user, |db| lists::counts(db, path.user)));
        state.hot.counts(path.user, read).await?
    };
    Ok(no_cache(&RelationCountsOut::new(&counts, own)))
}
