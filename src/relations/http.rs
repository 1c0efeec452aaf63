//! The routes of relations.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::store::{self, List};
use super::{Command, Counts, Listed, Pair, RelationOut};
use crate::clock::UnixMs;
use crate::error::{Code, Problem, ProblemOut, Result};
use crate::http::body::{Body, present};
use crate::http::params::{NoParams, Query};
use crate::http::path::{AnyUserPath, UserOrMe, UserPath};
use crate::ids::{Invalid, UserId};
use crate::lane::{Answer, Job};
use crate::page::{self, PageOut, PageParams, Position};
use crate::state::AppState;

/// The most users of one look-up.
pub const MAX_LOOK_UPS: usize = 100;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(follow_user, unfollow_user))
        .routes(routes!(list_following))
        .routes(routes!(list_followers))
        .routes(routes!(get_relations))
        .routes(routes!(get_relation_counts))
}

/// Who sees a follow.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(try_from = "String")]
#[schema(rename_all = "snake_case")]
pub enum Visibility {
    /// Everybody.
    Public,
}

impl TryFrom<String> for Visibility {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "public" { Ok(Self::Public) } else { Err("the visibility must be 'public': secret follows are not served yet") }
    }
}

/// How to follow.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowUserIn {
    /// Who sees the follow: everybody, so far.
    #[serde(default, deserialize_with = "present", rename = "visibility")]
    #[schema(nullable = false)]
    _visibility: Option<Visibility>,
    /// Whether the other is special to the user: never, so far.
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = only_false)]
    special: Option<bool>,
}

fn only_false() -> Object {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([false])).description(Some("Never, so far.")).build()
}

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedUserOut {
    /// Who.
    pub user_id: UserId,
    /// Since when one follows the other.
    pub since: UnixMs,
    /// Whether both follow each other.
    pub mutual: bool,
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

fn pair(path: &UserPath) -> Result<Pair, Problem> {
    let followee: UserId = path.get("target")?;
    if followee == path.user {
        return Err(Problem::new(Code::SelfRelation, "The two users of a follow must be different."));
    }
    Ok(Pair { follower: path.user, followee })
}

/// Follow a user
///
/// Answers with the relation. Following someone again changes nothing.
#[utoipa::path(put, path = "/v1/users/{user}/following/{target}", tag = "relations",
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "Whom to follow", example = "7")),
    request_body(content = FollowUserIn, description = "May be left out"),
    responses(
        (status = 200, body = RelationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn follow_user(State(state): State<AppState>, path: UserPath, body: Body<FollowUserIn>) -> Result<Answer> {
    let pair = pair(&path)?;
    if body.value.special == Some(true) {
        return Err(Problem::invalid("/special", "special follows are not served yet; leave it out or false").into());
    }
    let settings = &state.relations;
    let command = Command::Follow { pair, limit: settings.limit.max_following, badge: settings.follower_badge.0.clone() };
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Unfollow a user
///
/// Also answers 204 when there was no follow.
#[utoipa::path(delete, path = "/v1/users/{user}/following/{target}", tag = "relations",
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "Whom to unfollow", example = "7")),
    responses(
        (status = 204, description = "The user does not follow the other"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn unfollow_user(State(state): State<AppState>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    let command = Command::Unfollow(pair(&path)?);
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// List whom a user follows
///
/// Newest first.
#[utoipa::path(get, path = "/v1/users/{user}/following", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_following(State(state): State<AppState>, path: AnyUserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    list(&state, List::Following, path.user, &uri, &params).await
}

/// List who follows a user
///
/// Newest first.
#[utoipa::path(get, path = "/v1/users/{user}/followers", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<ListedUserOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_followers(State(state): State<AppState>, path: AnyUserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    list(&state, List::Followers, path.user, &uri, &params).await
}

async fn list(state: &AppState, list: List, user: UserId, uri: &Uri, params: &PageParams) -> Result<Response> {
    let wanted = params.wanted()?;
    let rows = store::page(&state.db, list, user, wanted.after, wanted.rows()).await?;
    let position = |row: &Listed| Position { at: row.since.0, id: row.user.get() };
    page::respond(uri, wanted, &rows, position, |row| ListedUserOut { user_id: row.user, since: row.since, mutual: row.mutual })
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
    let there = others.iter().map(|other| Pair { follower: path.user, followee: *other });
    let pairs: Vec<_> = there.flat_map(|pair| [pair, pair.reversed()]).collect();
    let follows: HashSet<Pair> = store::read(&state.db, &pairs).await?.into_iter().map(|(pair, _)| pair).collect();
    let relation = |other: &UserId| {
        let pair = Pair { follower: path.user, followee: *other };
        RelationOut::new(*other, follows.contains(&pair), follows.contains(&pair.reversed()))
    };
    Ok(fresh(Json(RelationsOut { items: others.iter().map(relation).collect() })))
}

/// Reads `1,2,3`.
fn ids(text: &str) -> Result<Vec<UserId>, String> {
    if text.split(',').nth(MAX_LOOK_UPS).is_some() {
        return Err(format!("more than {MAX_LOOK_UPS} ids"));
    }
    text.split(',').map(|id| id.parse().map_err(|rule: Invalid| rule.0.to_owned())).collect()
}

/// Count relations
///
/// Each count is the length of its list.
#[utoipa::path(get, path = "/v1/users/{user}/relation-counts", tag = "relations",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = Counts),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_relation_counts(State(state): State<AppState>, path: AnyUserPath, _: Query<NoParams>) -> Result<Response> {
    Ok(fresh(Json(store::counts(&state.db, path.user).await?)))
}

/// What must be asked for anew each time.
fn fresh(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))], body).into_response()
}
