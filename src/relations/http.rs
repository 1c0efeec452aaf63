//! The routes of relations that change something. Those that read are in `list_http.rs` and
//! `look_http.rs`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Act;
use super::{Command, Deed, Pair, RelationOut, list_http, look_http};
use crate::error::{Code, Error, Problem, ProblemOut, Result};
use crate::http::body::{Body, NoFields, present};
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::ids::UserId;
use crate::lane::{Answer, Job};
use crate::operations;
use crate::operations::http::Prefer;
use crate::state::AppState;

/// How often a write has pending ones of its pair done before it gives up: others may go on accepting more.
const MAX_TURNS: u32 = 50;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(follow_user, unfollow_user))
        .routes(routes!(remove_follower))
        .routes(routes!(block_user, unblock_user))
        .merge(list_http::routes())
        .merge(look_http::routes())
}

/// Who sees a follow.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(try_from = "String")]
#[schema(rename_all = "snake_case")]
pub enum Visibility {
    /// Everybody.
    Public,
    /// The two of them alone.
    Secret,
}

impl TryFrom<String> for Visibility {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "public" => Ok(Self::Public),
            "secret" => Ok(Self::Secret),
            _ => Err("the visibility must be 'public' or 'secret'"),
        }
    }
}

/// How to follow. What is not named stays as it is; of a new follow, public and not special.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowUserIn {
    /// Who sees the follow.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    visibility: Option<Visibility>,
    /// Whether the other is special to the user.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    special: Option<bool>,
}

/// The pair of the path: the user, and the one in `{name}`.
fn pair(path: &UserPath, name: &str) -> Result<Pair, Problem> {
    let followee: UserId = path.get(name)?;
    if followee == path.user {
        return Err(Problem::new(Code::SelfRelation, "The two users of a relation must be different."));
    }
    Ok(Pair { follower: path.user, followee })
}

/// Does it now, or accepts it to be done later where the caller prefers that.
async fn write(state: &AppState, path: &UserPath, prefer: Prefer, pair: Pair, act: Act) -> Result<Response> {
    let deed = Deed { pair, act };
    if prefer.respond_async {
        return operations::http::accept(state, &path.caller, deed).await;
    }
    submit(state, deed).await.map(IntoResponse::into_response)
}

/// Does it, after what was accepted of the same pair before.
async fn submit(state: &AppState, deed: Deed) -> Result<Answer> {
    let mut turns = 0;
    loop {
        let command = Arc::new(Command::Do { deed, terms: state.relations.terms() });
        turns += 1;
        match state.lanes.submit(Job { command, key: None }).await {
            Err(Error::Problem(problem)) if problem.code == Code::OperationsPending && turns < MAX_TURNS => {
                operations::drain(state, &[deed.pair.unordered()]).await?;
            }
            outcome => return outcome,
        }
    }
}

/// Follow a user
///
/// Answers with the relation. Following someone again changes what it names, and nothing else. Where either of the two blocks the other it is refused, and it is not
/// told which. With `Prefer: respond-async` it is accepted with 202 and done later, in order for the two users.
#[utoipa::path(put, path = "/v1/users/{user}/following/{target}", tag = "relations",
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "Whom to follow", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept it with 202, and do it later")),
    request_body(content = FollowUserIn, description = "May be left out"),
    responses(
        (status = 200, body = RelationOut),
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "Where to ask what comes of it"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn follow_user(State(state): State<AppState>, path: UserPath, prefer: Prefer, body: Body<FollowUserIn>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    let FollowUserIn { visibility, special } = body.value;
    let secret = visibility.map(|visibility| visibility == Visibility::Secret);
    write(&state, &path, prefer, pair, Act::Follow { secret, special }).await
}

/// Unfollow a user
///
/// Also answers 204 when there was no follow.
#[utoipa::path(delete, path = "/v1/users/{user}/following/{target}", tag = "relations",
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "Whom to unfollow", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept it with 202, and do it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "Where to ask what comes of it"))),
        (status = 204, description = "The user does not follow the other"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn unfollow_user(State(state): State<AppState>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    write(&state, &path, prefer, pair, Act::Unfollow).await
}

/// Remove a follower
///
/// The other follows the user no longer, and is not told. Also answers 204 when there was no follow.
#[utoipa::path(delete, path = "/v1/users/{user}/followers/{fan}", tag = "relations",
    params(("user" = UserOrMe, Path), ("fan" = UserId, Path, description = "Who is to follow no longer", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept it with 202, and do it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "Where to ask what comes of it"))),
        (status = 204, description = "The other does not follow the user"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn remove_follower(State(state): State<AppState>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "fan")?;
    write(&state, &path, prefer, pair, Act::RemoveFollower).await
}

/// Block a user
///
/// Severs both follows, and forbids new ones and direct messages, either way. Answers with the relation; blocking someone again changes nothing.
#[utoipa::path(put, path = "/v1/users/{user}/blocks/{target}", tag = "relations",
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "Whom to block", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept it with 202, and do it later")),
    request_body(content = NoFields, description = "May be left out"),
    responses(
        (status = 200, body = RelationOut),
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "Where to ask what comes of it"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn block_user(State(state): State<AppState>, path: UserPath, prefer: Prefer, _: Body<NoFields>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    write(&state, &path, prefer, pair, Act::Block).await
}

/// Unblock a user
///
/// Brings no follow back. Also answers 204 when there was no block.
#[utoipa::path(delete, path = "/v1/users/{user}/blocks/{target}", tag = "relations",
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "Whom to block no longer", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept it with 202, and do it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "Where to ask what comes of it"))),
        (status = 204, description = "The user does not block the other"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn unblock_user(State(state): State<AppState>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    write(&state, &path, prefer, pair, Act::Unblock).await
}
