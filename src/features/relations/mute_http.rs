//! The routes of mutes. `lookup_http.rs` has the list that is polled as a whole.
//!
//! Nobody but the user, and services, sees any of it: there is no event, and nothing of the other
//! user changes.

use std::sync::Arc;

use axum::http::Uri;
use axum::response::Response;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::{RelationContext, pair, submit};
use super::mute_command::{MuteCommand, MutedOut};
use super::{Muted, Pair, mute_store};
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::UserId;
use crate::db::Statement;
use crate::engine::lanes::{Answer, Job};
use crate::features::silence::Mute;
use crate::http::body::{Body, present};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::served::Served;

/// How many mutes that have ended one round of their sweep removes.
const SWEEP_ROWS: i64 = 1000;

pub fn routes() -> OpenApiRouter<Served<RelationContext>> {
    OpenApiRouter::new().routes(routes!(mute_user, unmute_user)).routes(routes!(list_mutes))
}

/// The statements that no batch runs, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> [&'static Statement; 3] {
    mute_store::statements()
}

/// How long a mute lasts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteUserIn {
    /// When the mute ends. By default, it does not end.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    until: Option<UnixMs>,
}

/// A muted user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MutedUserOut {
    /// The muted user.
    pub user_id: UserId,
    /// When the mute began.
    pub since: UnixMs,
    /// When the mute ends; omitted if it does not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub until: Option<UnixMs>,
}

/// Mute a user
///
/// The muted user cannot notice it. While the mute lasts, `chats` and `total` leave out direct
/// messages from that user, and the feed leaves out the posts. When the mute ends, they count as if
/// there had been no mute. Notifications with that user as the actor that are sent during the mute
/// never appear in the user's list. A repeat replaces `until`.
#[utoipa::path(put, path = "/v1/users/{user}/mutes/{target}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation", "too_many", "operations_pending"]))),
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "The user to mute", example = "7")),
    request_body(content = MuteUserIn, description = "Optional"),
    responses(
        (status = 200, body = MutedOut)))]
async fn mute_user(state: Served<RelationContext>, path: UserPath, body: Body<MuteUserIn>) -> Result<Answer> {
    let (pair, until, at) = (pair(&path, "target")?, body.value.until, state.clock.now());
    if until.is_some_and(|until| until <= at) {
        return Err(Problem::invalid("/until", "must be in the future").into());
    }
    let (mute, max_mutes) = (Mute { until }, state.config.max_mutes);
    submit(&state, pair, |preceding| MuteCommand::Mute { pair, mute, preceding, max_mutes }).await
}

/// Unmute a user
///
/// Returns 204 also if there was no mute.
#[utoipa::path(delete, path = "/v1/users/{user}/mutes/{target}", tag = "relations",
    extensions(("x-problems" = json!(["self_relation", "operations_pending"]))),
    params(("user" = UserOrMe, Path), ("target" = UserId, Path, description = "The user to unmute", example = "7")),
    responses(
        (status = 204, description = "Unmuted")))]
async fn unmute_user(state: Served<RelationContext>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    let pair = pair(&path, "target")?;
    submit(&state, pair, |preceding| MuteCommand::Unmute { pair, preceding }).await
}

/// List the users that a user mutes
///
/// Newest first. Available to the user and to services. A mute leaves the list when it ends.
#[utoipa::path(get, path = "/v1/users/{user}/mutes", tag = "relations",
    params(("user" = UserOrMe, Path), PageParams),
    responses(
        (status = 200, body = PageOut<MutedUserOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_mutes(state: Served<RelationContext>, path: UserPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    let wanted = params.wanted("mutes", path.user)?;
    let read = mute_store::page(&state.db, path.user, wanted.after, wanted.rows(), state.clock.now());
    let rows = state.entries.in_list_turn(read).await?;
    let position = |(user, muted): &(UserId, Muted)| Position { at: muted.since.0, id: user.get() };
    pages::respond(&uri, wanted, &rows, position, |(user, muted)| MutedUserOut {
        user_id: *user,
        since: muted.since,
        until: muted.mute.until,
    })
}

/// Removes some mutes that have ended; returns how many. Nothing that anybody is shown changes.
///
/// # Errors
/// The driver's own, or what the lanes answer.
pub async fn sweep_mutes(state: &RelationContext) -> Result<u64> {
    let at = state.clock.now();
    let ended = mute_store::ended(&state.db, at, SWEEP_ROWS).await?;
    let sweep = |pair: &Pair| state.lanes.submit(Job { command: Arc::new(MuteCommand::Sweep { pair: *pair }), key: None });
    for outcome in join_all(ended.iter().map(sweep)).await {
        outcome?;
    }
    Ok(u64::try_from(ended.len()).unwrap_or_default())
}
