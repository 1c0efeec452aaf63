//! The routes of relations that change something. Those that read are in `list_http.rs` and
//! `lookup_http.rs`, those of requests in `request_http.rs`.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Act;
use super::worker::{self, WorkerContext};
use super::{ChangedRelationOut, FamiliarReader, HotUsers, Lookups, Pair, PairAction, RelationCommand, RelationConfig};
use crate::base::clock::Clock;
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::UserId;
use crate::db::{Db, PageReads};
use crate::engine::entries::Entries;
use crate::engine::lanes::{Answer, Command, Job, Lanes};
use crate::features::operations::http::Prefer;
use crate::features::operations::{self, Preceding};
use crate::http::body::{Body, NoFields, present};
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::polling::Polling;
use crate::http::served::Served;

/// How often a write has pending ones of its pair done before it gives up: of very many it sees only
/// some at a time.
const MAX_TURNS: u32 = 50;

/// What the handlers of relations work with.
#[derive(Debug)]
pub struct RelationContext {
    pub lanes: Lanes,
    pub db: Db,
    /// For what strangers are shown.
    pub pages: PageReads,
    pub entries: Arc<Entries>,
    /// What is shown of much-read users from memory.
    pub hot: Arc<HotUsers>,
    /// Look-ups, and whole lists.
    pub looks: Lookups,
    pub familiar: FamiliarReader,
    pub polling: Arc<Polling>,
    /// By which mutes end.
    pub clock: Clock,
    /// How follows are bounded, and what they raise.
    pub config: RelationConfig,
    /// Writes that are accepted before they are done.
    pub worker: Arc<WorkerContext>,
}

pub fn routes() -> OpenApiRouter<Served<RelationContext>> {
    OpenApiRouter::new()
        .routes(routes!(follow_user, unfollow_user))
        .routes(routes!(remove_follower))
        .routes(routes!(block_user, unblock_user))
}

/// The visibility of a follow.
// Read as a text first: of a null that stands for an enum, serde_json says that the JSON is
// malformed.
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
            _ => Err("must be 'public' or 'secret'"),
        }
    }
}

/// Follow options. Omitted options keep their values; a new follow is public and not special by
/// default.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowUserIn {
    /// The visibility of the follow.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    visibility: Option<Visibility>,
    /// Whether the other user is special to the user.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    special: Option<bool>,
}

/// The pair of the path: the user, and the one in `{name}`.
pub(super) fn pair(path: &UserPath, name: &str) -> Result<Pair, Problem> {
    let followee: UserId = path.get(name)?;
    if followee == path.user {
        return Err(Problem::new(Code::SelfRelation, "A relation requires two different users."));
    }
    Ok(Pair { follower: path.user, followee })
}

/// Does it now, or accepts it to be done later where the caller prefers that.
pub(super) async fn write(state: &RelationContext, path: &UserPath, prefer: Prefer, pair: Pair, act: Act) -> Result<Response> {
    let action = PairAction { pair, act };
    if prefer.respond_async {
        return worker::accept(&state.worker, &path.caller, action).await;
    }
    let terms = state.config.terms();
    submit(state, pair, |preceding| RelationCommand::Do { action, preceding, terms: terms.clone() }).await.map(IntoResponse::into_response)
}

/// Does it, after what was accepted of the same pair before.
///
/// What is accepted once this waits may come after it, as both are under way then. So nobody can
/// keep it waiting by having more accepted.
pub(super) async fn submit<C: Command + 'static>(state: &RelationContext, pair: Pair, command: impl Fn(Preceding) -> C) -> Result<Answer> {
    let (mut turns, mut preceding) = (0, Preceding::All);
    loop {
        turns += 1;
        match state.lanes.submit(Job { command: Arc::new(command(preceding)), key: None }).await {
            Err(Error::Problem(problem)) if problem.code == Code::OperationsPending && turns < MAX_TURNS => {
                let seen = worker::drain(&state.worker, &[pair.unordered()]).await?;
                if preceding == Preceding::All {
                    preceding = seen;
                }
            }
            outcome => return outcome,
        }
    }
}

/// Follow a user
///
/// Returns the relation. If the other user approves follows, it is a request until that user accepts
/// it. Following a user again updates only the fields in the body. If either user
/// blocks the other, the response is 403 and does not reveal which one. With `Prefer:
/// respond-async`, the server accepts the write with 202 and applies the writes of the two users in
/// order.
#[utoipa::path(put, path = "/v1/users/{user}/following/{target}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation", "blocked", "following_limit"]))),
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "The user to follow", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    request_body(content = FollowUserIn, description = "Optional"),
    responses(
        (status = 200, body = ChangedRelationOut),
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation")))))]
async fn follow_user(state: Served<RelationContext>, path: UserPath, prefer: Prefer, body: Body<FollowUserIn>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    let FollowUserIn { visibility, special } = body.value;
    let secret = visibility.map(|visibility| visibility == Visibility::Secret);
    write(&state, &path, prefer, pair, Act::Follow { secret, special }).await
}

/// Unfollow a user
///
/// Withdraws a follow request, too. Returns 204 also if there was neither.
#[utoipa::path(delete, path = "/v1/users/{user}/following/{target}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation"]))),
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "The user to unfollow", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation"))),
        (status = 204, description = "Unfollowed")))]
async fn unfollow_user(state: Served<RelationContext>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    write(&state, &path, prefer, pair, Act::Unfollow).await
}

/// Remove a follower
///
/// Removes the follow without informing the follower. Returns 204 also if there was no follow.
#[utoipa::path(delete, path = "/v1/users/{user}/followers/{fan}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation"]))),
    params(("user" = UserOrMe, Path), ("fan" = UserId, Path, description = "The follower to remove", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation"))),
        (status = 204, description = "Removed")))]
async fn remove_follower(state: Served<RelationContext>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "fan")?;
    write(&state, &path, prefer, pair, Act::RemoveFollower).await
}

/// Block a user
///
/// Removes the follows and requests in both directions, and forbids new ones. The blocked user can send
/// the user no direct messages. Returns the relation. A repeat changes nothing.
#[utoipa::path(put, path = "/v1/users/{user}/blocks/{target}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation", "too_many"]))),
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "The user to block", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    request_body(content = NoFields, description = "Optional"),
    responses(
        (status = 200, body = ChangedRelationOut),
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation")))))]
async fn block_user(state: Served<RelationContext>, path: UserPath, prefer: Prefer, _: Body<NoFields>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    write(&state, &path, prefer, pair, Act::Block).await
}

/// Unblock a user
///
/// Does not restore follows. Returns 204 also if there was no block.
#[utoipa::path(delete, path = "/v1/users/{user}/blocks/{target}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation"]))),
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "The user to unblock", example = "7"),
        ("Prefer" = Option<String>, Header, description = "respond-async: accept the write with 202 and apply it later")),
    responses(
        (status = 202, body = operations::AcceptedOut, headers(("Location" = String, description = "The URL of the operation"))),
        (status = 204, description = "Unblocked")))]
async fn unblock_user(state: Served<RelationContext>, path: UserPath, prefer: Prefer, _: Query<NoParams>) -> Result<Response> {
    let pair = pair(&path, "target")?;
    write(&state, &path, prefer, pair, Act::Unblock).await
}
